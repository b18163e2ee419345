"""Whether a recording's files have the bytes that were written: the engine leaves a check of each in `summary.json`.

Parquet's pages have none that Polars reads, and JSON has none at all, so that a byte that a disk has lost would be
another number in a report. CRC-32 finds every change of up to 32 bits that lie together. Recordings of earlier engines
have no checks, and nothing is found in them.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CHECKED = "summary.json"
READ_AT_ONCE_BYTES = 1 << 20


class Checks:
    """Compares files with what `summary.json` beside them says that they were; each once."""

    def __init__(self) -> None:
        self._known: dict[Path, dict[str, Any]] = {}
        self._done: set[Path] = set()
        self._lock = threading.Lock()

    def problem(self, path: Path) -> str | None:
        """What is wrong with a file. Of one of another length nothing is said: a lost byte does not change it, so that
        somebody has put another file there."""
        with self._lock:
            if path in self._done:
                return None
            if path.parent not in self._known:
                self._known[path.parent] = _checks(path.parent)
            told = self._known[path.parent].get(path.name)
            if isinstance(told, dict) and _size(path) == told.get("bytes") and _crc32(path) != told.get("crc32"):
                return "its bytes are not those that were written; copy it again from where it came"
            self._done.add(path)
            return None


def checked_again(directory: Path, changed: Iterable[Path]) -> str | None:
    """What `summary.json` says when files were changed on purpose; nothing where it says nothing of them."""
    names = {path.name for path in changed} & _checks(directory).keys()
    if not names:
        return None
    told = json.loads((directory / CHECKED).read_text(encoding="utf-8"))
    told["checks"] |= {name: {"bytes": _size(directory / name), "crc32": _crc32(directory / name)} for name in names}
    # As the engine writes it.
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False) + "\n"


def _checks(directory: Path) -> dict[str, Any]:
    try:
        found = json.loads((directory / CHECKED).read_text(encoding="utf-8"))["checks"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


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
