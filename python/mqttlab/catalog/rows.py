"""Rows of one table at a time, in plain SQL that SQLite, PostgreSQL and MariaDB read alike.

Taking a recording into a catalog needs no more than this, and so no SQLAlchemy, which takes longer to load than a small
simulation and its report take to make: a catalog that is a file of SQLite is written to by Python's own module
(:mod:`mqttlab.catalog.database`). Names of tables and columns are this program's own; values are always parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mqttlab.foreign import stored

Row = tuple[Any, ...]
Perform = Callable[[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]], list[Row]]
"""Performs a statement whose parameters are written ``:name``, once or once for each of several; returns its rows."""


class Rows:
    """The rows of a database, within a transaction."""

    def __init__(self, perform: Perform, quote: str = '"') -> None:
        """Take what performs statements; ``quote`` encloses names, which is the one thing that databases differ in."""
        self._performed = perform
        self._quote = quote

    def ask(self, question: str, **values: Any) -> list[Row]:
        """The answer to a question that names no column that needs quotes."""
        return self._perform(question, values)

    def find(self, table: str, columns: Sequence[str], **by: Any) -> list[Row]:
        """Some columns of the rows that have these values."""
        names = ", ".join(map(self._name, columns))
        return self._perform(f"SELECT {names} FROM {self._name(table)}{self._where(by)}", by)

    def find_in(self, table: str, columns: Sequence[str], column: str, values: Sequence[Any]) -> list[Row]:
        """Some columns of the rows whose column has one of these values: of a few thousand at most."""
        places = {f"v{number}": value for number, value in enumerate(values)}
        names, wanted = ", ".join(map(self._name, columns)), ", ".join(f":{place}" for place in places)
        condition = f"{self._name(column)} IN ({wanted})"
        return self._perform(f"SELECT {names} FROM {self._name(table)} WHERE {condition}", places)

    def key(self, table: str, **by: Any) -> int | None:
        """The key of the row that has these values."""
        found = self.find(table, ("id",), **by)
        return int(found[0][0]) if found else None

    def insert(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows, all with the same columns."""
        added = list(rows)
        if added:
            names = ", ".join(map(self._name, added[0]))
            places = ", ".join(f":{name}" for name in added[0])
            self._perform(f"INSERT INTO {self._name(table)} ({names}) VALUES ({places})", added)

    def update(self, table: str, key: int, row: Mapping[str, Any]) -> None:
        """Give a row these values."""
        values = ", ".join(f"{self._name(name)} = :{name}" for name in row)
        self._perform(f"UPDATE {self._name(table)} SET {values} WHERE id = :id", {**row, "id": key})

    def delete(self, table: str, **by: Any) -> None:
        """Remove the rows that have these values."""
        self._perform(f"DELETE FROM {self._name(table)}{self._where(by)}", by)

    def delete_unused(self, table: str, referring: str, column: str) -> None:
        """Remove the rows that no row of another table refers to."""
        table, referring, column = map(self._name, (table, referring, column))
        self._perform(f"DELETE FROM {table} WHERE NOT EXISTS "
                      f"(SELECT 1 FROM {referring} WHERE {referring}.{column} = {table}.id)", {})

    def perform(self, statement: str) -> None:
        """Perform a statement without values."""
        self._perform(statement, {})

    def _perform(self, statement: str, values: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Row]:
        return self._performed(statement, stored(values) if isinstance(values, Mapping) else list(map(stored, values)))

    def _where(self, by: Mapping[str, Any]) -> str:
        return f" WHERE {' AND '.join(f'{self._name(name)} = :{name}' for name in by)}" if by else ""

    def _name(self, name: str) -> str:
        return f"{self._quote}{name}{self._quote}"
