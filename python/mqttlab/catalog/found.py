"""Runs for which conditions hold, as plain rows: for a list, without data frames, whose loading takes longer than the
answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from mqttlab.catalog import tables as t
from mqttlab.catalog.database import Database
from mqttlab.catalog.place import path_of
from mqttlab.catalog.query import FIELDS, Kind, Names, Question


@dataclass(frozen=True)
class Found:
    """What was found."""

    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: list[tuple[Any, ...]]
    """A value for each column: text, a number, a truth value, or nothing."""
    known: set[Path]
    """The directories of all recordings in the catalog."""


def find(
    url: str, where: Sequence[str] = (), *, columns: Sequence[str], sort: Sequence[str] = (), limit: int | None = None,
) -> Found:
    """Ask a catalog, which is not written to.

    Args:
        url: its URL, or the path of an SQLite file.
        where: conditions that all must hold (:mod:`mqttlab.catalog.query`).
        columns: names, as in :meth:`mqttlab.catalog.Catalog.runs`.
        sort: names to order by.
        limit: at most so many.

    Raises:
        CatalogError: it is not there, or does not know a name; a condition that is none.
    """
    database = Database(url, read_only=True)
    try:
        base = database.base
        with database.reading() as connection:
            rows, kinds = ask(connection, where, columns=columns, sort=sort, limit=limit)
            stored = connection.execute(sa.select(t.RUN.c.directory)).scalars().all()
    finally:
        database.close()
    number = list(columns).index("directory") if "directory" in columns else None
    if number is not None:
        rows = [(*row[:number], str(path_of(row[number], base)), *row[number + 1:]) for row in rows]
    return Found(tuple(columns), tuple(kinds), [_typed(row, columns, kinds) for row in rows],
                 {path_of(each, base) for each in stored})


def ask(
    connection: sa.Connection, where: Sequence[str], *, columns: Sequence[str], sort: Sequence[str], limit: int | None,
) -> tuple[list[tuple[Any, ...]], list[Kind]]:
    """The rows of a question, as the database has them, and the kind of each column."""
    question = Question(Names.read(connection))
    for condition in where:
        question.where(condition)
    for name in sort:
        question.order(name)
    rows = [tuple(row) for row in connection.execute(question.select(columns, limit))]
    return rows, [question.column(name).kind for name in columns]


def is_integer(name: str) -> bool:
    """Whether a column has whole numbers."""
    field = FIELDS.get(name)
    return field is not None and isinstance(field.column.type, sa.Integer)


def _typed(row: Sequence[Any], columns: Sequence[str], kinds: Sequence[Kind]) -> tuple[Any, ...]:
    def one(value: Any, name: str, kind: Kind) -> Any:
        if value is None or kind == "text":
            return value
        if kind == "truth":
            return bool(value)
        return int(value) if is_integer(name) else float(value)

    return tuple(one(*each) for each in zip(row, columns, kinds, strict=True))
