"""What several rooms read and say of files: JSON as far as it is there, and a path as people would write it here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one where there is no file, or something else is in it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing, for this user alone; one that is there stays as it is."""
    missing = []
    while not directory.exists():
        missing.append(directory)
        directory = directory.parent
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)


def as_open_as(above: Path, own: int = 0o700) -> int:
    """The mode of what is made in a directory: the user's own rights, and others' as they have them there. So what lies
    in a directory that is shared on purpose is shared, too."""
    try:
        return own | (above.stat().st_mode & (own | own >> 3 | own >> 6) & 0o077)
    except OSError:
        return own


ORIGIN = "origin.json"
"""What a run was made from, beside its plan."""
BY_HAND = "by-hand.jsonl"
"""The events that were fired by hand, beside its plan."""


def written_scenario(directory: Path) -> tuple[str, dict[str, Any]] | None:
    """The scenario that a run was started with, as written, and the fields that were replaced; None where it is not
    there, or something else is in its place."""
    told = json_object(directory / ORIGIN).get("scenario")
    if not isinstance(told, dict) or not isinstance(told.get("toml"), str):
        return None
    settings = told.get("settings")
    return told["toml"], settings if isinstance(settings, dict) else {}


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file with one on each line; lines that were torn, or are something else, are passed over.

    Raises:
        OSError: the file cannot be read.
    """
    found = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict):
            found.append(line)
    return found


def from_here(path: Path) -> Path:
    """A path below the working directory without that directory; any other as it is."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
