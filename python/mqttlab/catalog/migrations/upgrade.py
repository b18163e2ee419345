"""From an older schema to the present one: a copy first, then Alembic's steps."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from mqttlab.catalog.place import CatalogError

ROWS_AT_ONCE = 10_000


def migrate(connection: sa.Connection, revision: str = "head") -> None:
    """Perform the steps up to a schema, on this connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def copy(connection: sa.Connection, out: Path) -> None:
    """Copy every table into a new SQLite file, whatever database this is.

    A copy of a server's tables keeps values and names, which is what a catalog can be filled from again; it has no
    keys.

    Raises:
        CatalogError: the file is there already, or cannot be written.
    """
    if out.exists():
        raise CatalogError(f"--backup {out}: this file is there already; name a new one")
    try:
        file = sqlite3.connect(out)
    except sqlite3.Error as error:
        raise CatalogError(f"--backup {out}: {error}") from error
    try:
        with file:
            for table in sa.inspect(connection).get_table_names():
                _copy_table(connection, file, table)
    except sqlite3.Error as error:
        out.unlink(missing_ok=True)
        raise CatalogError(f"--backup {out}: {error}; nothing was changed") from error
    finally:
        file.close()


def _copy_table(connection: sa.Connection, file: sqlite3.Connection, table: str) -> None:
    quote = connection.dialect.identifier_preparer.quote
    columns = [column["name"] for column in sa.inspect(connection).get_columns(table)]
    file.execute(f'CREATE TABLE "{table}" ({", ".join(f"{chr(34)}{name}{chr(34)}" for name in columns)})')
    rows = connection.execute(sa.text(f"SELECT {', '.join(map(quote, columns))} FROM {quote(table)}"))
    places = ", ".join("?" * len(columns))
    for part in rows.partitions(ROWS_AT_ONCE):
        file.executemany(f'INSERT INTO "{table}" VALUES ({places})', [tuple(row) for row in part])
