"""A glance at an SQLite catalog: the few fields of every run that a list shows, without SQLAlchemy or frames.

Loading those takes longer than the question.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

QUESTION = "SELECT directory, name, backend, started_at, state, valid FROM run ORDER BY started_at, id"


@dataclass(frozen=True, kw_only=True)
class Glimpse:
    """A run, as a list shows it."""

    directory: Path
    name: str
    backend: str
    started: str
    state: str
    valid: bool | None


def glance(file: Path) -> list[Glimpse]:
    """The runs of a catalog, oldest first; none where there is no catalog, or none that can be read like this."""
    if not file.is_file():
        return []
    # Where nothing can be written, the memory that SQLite's readers share cannot be made either.
    how = "mode=ro" if os.access(file.parent, os.W_OK) or Path(f"{file}-wal").exists() else "immutable=1"
    path = file.absolute().as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"file:{path}?{how}", uri=True)
        try:
            rows = connection.execute(QUESTION).fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return []
    base = file.parent.resolve()
    return [Glimpse(directory=base / directory, name=name, backend=backend, started=started or "", state=state,
                    valid=None if valid is None else bool(valid))
            for directory, name, backend, started, state, valid in rows]
