"""Whether a recording's files have the bytes that were written: the engine leaves a check of each. Those of the run's
own files are in `run.json` (or `incomplete.json`), those of that file and of derived tables in `summary.json`.

Parquet's pages have none that Polars reads, and JSON has none at all, so that a byte that a disk has lost would be
another number in a report. CRC-32 finds every change of up to 32 bits that lie together. Recordings of earlier engines
have checks in `summary.json` alone, or none; of their plan `run.json` has a digest.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mqttlab.files import json_object

PLAN = "plan.json"
ENDED = ("run.json", "incomplete.json")
CHECKED = "summary.json"
READ_AT_ONCE_BYTES = 1 << 20


class Checks:
    """Compares files with what is said beside them that they were; each once."""

    def __init__(self) -> None:
        self._known: dict[Path, dict[str, Any]] = {}
        self._done: set[Path] = set()
        self._lock = threading.Lock()

    def problem(self, path: Path) -> str | None:
        """What is wrong with a file, in words that stand behind its name; nothing where nothing is known of it.

        Raises:
            OSError: it cannot be read.
        """
        with self._lock:
            if path in self._done:
                return None
            if path.parent not in self._known:
                self._known[path.parent] = _told(path.parent, CHECKED) | _told(path.parent, *ENDED)
            if words := _differs(path, self._known[path.parent].get(path.name)):
                return words
            self._done.add(path)
            return None

    def problem_of_run(self, directory: Path) -> tuple[Path, str] | None:
        """The first file of a run that is not as the run has left it, and what is wrong with it.

        Raises:
            OSError: one cannot be read.
        """
        for name in sorted(_told(directory, *ENDED)):
            path = directory / name
            if path.is_file() and (words := self.problem(path)):
                return path, words
        return None


def _differs(path: Path, told: Any) -> str | None:
    again = "copy it again from where it came"
    if isinstance(told, dict):
        size = _size(path)
        if size != told.get("bytes"):
            return f"it is not the file that was written: it has {size} bytes instead of {told.get('bytes')}; {again}"
        return f"its bytes are not those that were written; {again}" if _crc32(path) != told.get("crc32") else None
    if path.name == PLAN:
        digest = next((said for name in ENDED if (said := json_object(path.parent / name).get("plan_sha256"))), None)
        if digest is None or not path.is_file():
            return None
        # Most commands ask for no digest, and begin sooner without.
        from hashlib import sha256
        if sha256(path.read_bytes()).hexdigest() != digest:
            return f"it is not the plan of this run (`plan_sha256`); {again}"
    return None


def checked_again(directory: Path, changed: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """What files with checks say when others were changed on purpose, each to be written before the next is asked
    for."""
    names = {path.name for path in changed}
    for place in (*ENDED, CHECKED):
        if concerned := names & _told(directory, place).keys():
            told = json.loads((directory / place).read_text(encoding="utf-8"))
            told["checks"] |= {
                name: {"bytes": _size(directory / name), "crc32": _crc32(directory / name)} for name in concerned}
            # As the engine writes them.
            written = {"separators": (",", ":")} if place == CHECKED else {"indent": 2}
            yield directory / place, json.dumps(told, ensure_ascii=False, **written) + "\n"
            names.add(place)


def _told(directory: Path, *names: str) -> dict[str, Any]:
    """The checks in the first of these files that has some."""
    for name in names:
        if isinstance(found := json_object(directory / name).get("checks"), dict):
            return found
    return {}


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _crc32(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while part := file.read(READ_AT_ONCE_BYTES):
            found = zlib.crc32(part, found)
    return found
