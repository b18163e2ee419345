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


ORIGIN = "origin.json"
"""What a run was made from, beside its plan."""


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
