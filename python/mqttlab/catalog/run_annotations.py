"""What people say of a recording: tags, notes and baselines, in ``annotations.json`` beside its tables.

They stand with the recording, so that a catalog that is built anew has them, and so that they travel with a copy.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from mqttlab import scratch
from mqttlab.catalog.place import CatalogError

FILE = "annotations.json"
Covers = Literal["run", "point"]


@dataclass(frozen=True, kw_only=True)
class Note:
    """A sentence about a recording."""

    at: str
    author: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What later runs are judged against: one run, or all runs of its experiment's point."""

    covers: Covers
    set_at: str


@dataclass(kw_only=True)
class Annotations:
    """All that is said of one recording."""

    tags: dict[str, str] = field(default_factory=dict)
    """By name; the value may be empty."""
    notes: list[Note] = field(default_factory=list)
    baselines: dict[str, Baseline] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Annotations:
        """What is said of this recording; nothing where there is no such file.

        Raises:
            CatalogError: the file is damaged.
        """
        path = directory / FILE
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise CatalogError(f"{path} cannot be read: {error.strerror}") from error
        try:
            found = json.loads(text)
            return cls(
                tags={str(name): str(value) for name, value in found.get("tags", {}).items()},
                notes=[Note(**note) for note in found.get("notes", [])],
                baselines={str(name): Baseline(**value) for name, value in found.get("baselines", {}).items()},
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise CatalogError(f"{path} cannot be read: {error}; mend it, or remove it") from error


def change(directory: Path, work: Callable[[Annotations], None]) -> Annotations:
    """Change what is said of a recording: read, changed and written by one at a time.

    Raises:
        CatalogError: the recording cannot be written to.
    """
    try:
        with _alone(directory):
            annotations = Annotations.read(directory)
            work(annotations)
            _write(directory, annotations)
            return annotations
    except OSError as error:
        raise CatalogError(f"{directory / FILE} cannot be written: {error.strerror}; what is said of a recording is "
                           "kept in "
                           "its directory") from error


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    # Not the directory's own lock, which says that an engine writes it.
    descriptor = os.open(directory / f".{FILE}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(directory: Path, annotations: Annotations) -> None:
    path = directory / FILE
    if annotations == Annotations():
        path.unlink(missing_ok=True)
        return
    with scratch.unfinished(path) as made:
        made.write_text(json.dumps(asdict(annotations), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def now() -> str:
    """The present instant as the catalog writes instants."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def author() -> str:
    """Who is using this program."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
