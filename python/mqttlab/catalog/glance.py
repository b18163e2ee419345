"""A glance at an SQLite catalog: the few fields of every run that a list shows, without SQLAlchemy or frames.

Loading those takes longer than the question.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

VALUES = {"p99_ms": "latency_ms_p99", "undelivered_percent": "undelivered_percent"}
# Of the run as a whole: those that its headline begins with.
QUESTION = (
    "SELECT run.directory, run.name, run.backend, run.started_at, run.state, run.valid, experiment.name, "
    + ", ".join("(SELECT value FROM metric_value JOIN series ON series.id = series_id "
                f"WHERE metric_value.run_id = run.id AND metric = '{metric}' AND scope = 'run')"
                for metric in VALUES.values())
    + " FROM run LEFT JOIN experiment ON experiment.id = experiment_id ORDER BY run.started_at, run.id")


@dataclass(frozen=True, kw_only=True)
class Glimpse:
    """A run, as a list shows it."""

    directory: Path
    name: str
    backend: str
    started: str
    state: str
    valid: bool | None
    experiment: str | None = None
    """The experiment that it is a run of."""
    p99_ms: float | None = None
    undelivered_percent: float | None = None


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
                    valid=None if valid is None else bool(valid), experiment=experiment, p99_ms=p99_ms,
                    undelivered_percent=undelivered_percent)
            for directory, name, backend, started, state, valid, experiment, p99_ms, undelivered_percent in rows]
