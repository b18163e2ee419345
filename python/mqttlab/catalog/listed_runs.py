"""Of an SQLite catalog the few fields of every run that a list shows, without SQLAlchemy or frames.

Loading those takes longer than the question.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Of the headline, those that a list shows. A catalog before schema 3 has no such columns; the next run upgrades it.
# Where no latency is known, the time to acknowledge stands in; it is looked up for these runs alone.
ACKNOWLEDGE = (
    "CASE WHEN run.latency_ms_p99 IS NULL AND run.undelivered_percent IS NULL THEN (SELECT value FROM metric_value "
    "JOIN series ON series.id = series_id "
    "WHERE metric = 'acknowledge_ms_p99' AND scope = 'run' AND run_id = run.id) END")
VALUES = ("run.latency_ms_p99", "run.undelivered_percent", ACKNOWLEDGE, "run.messages_delivered")
QUESTIONS = tuple(
    "SELECT run.directory, run.name, run.backend, run.started_at, run.state, run.valid, experiment.name, "
    f"{', '.join(values)} FROM run LEFT JOIN experiment ON experiment.id = experiment_id "
    "ORDER BY run.started_at, run.id" for values in (VALUES, ["NULL"] * len(VALUES)))


@dataclass(frozen=True, kw_only=True)
class ListedRun:
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
    acknowledge_ms_p99: float | None = None
    """Where no delivery could be seen."""
    delivered: int | None = None


def listed_runs(file: Path) -> list[ListedRun]:
    """The runs of a catalog, oldest first; none where there is no catalog, or none that can be read like this."""
    if not file.is_file():
        return []
    # Where nothing can be written, the memory that SQLite's readers share cannot be made either.
    how = "mode=ro" if os.access(file.parent, os.W_OK) or Path(f"{file}-wal").exists() else "immutable=1"
    path = file.absolute().as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"file:{path}?{how}", uri=True)
        try:
            rows = _answered(connection)
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError):
        return []
    base = file.parent.resolve()
    return [ListedRun(
        directory=base / directory, name=name, backend=backend, started=started or "", state=state,
        valid=None if valid is None else bool(valid), experiment=experiment, p99_ms=p99_ms,
        undelivered_percent=undelivered_percent, acknowledge_ms_p99=acknowledge_ms_p99, delivered=delivered)
        for (directory, name, backend, started, state, valid, experiment, p99_ms, undelivered_percent,
             acknowledge_ms_p99, delivered) in rows if isinstance(directory, str)]


def _answered(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    try:
        return connection.execute(QUESTIONS[0]).fetchall()
    except sqlite3.OperationalError:
        return connection.execute(QUESTIONS[1]).fetchall()
