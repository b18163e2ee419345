"""The database behind a catalog: how it is opened, written to by several at once, and brought to the present schema.

Whoever writes holds a transaction for the length of one recording. On SQLite it begins IMMEDIATE, so that two writers
wait for each other instead of finding out at the end; on servers two may meet in a row that both add, and the one that
is told so begins again. Readers open SQLite's file read-only and wait for nobody.

A catalog of an older schema is brought up to date when it is next written to, after a copy of it was made; on a server,
which others use as well, only by ``mqttlab catalog upgrade``. A newer one is refused.

A file is made and written to by Python's own module for SQLite (:class:`mqttlab.catalog.rows.Rows`); SQLAlchemy is
loaded for questions, for servers and for upgrades.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from mqttlab import secrets
from mqttlab.catalog.place import CatalogError, CatalogUnavailable, file_of, refuse_network, url_of
from mqttlab.catalog.rows import Row, Rows
from mqttlab.errors import MqttlabError
from mqttlab.files import as_open_as, from_here

if TYPE_CHECKING:
    import sqlalchemy as sa

T = TypeVar("T")
HEAD = "0003"
"""The schema that this program reads and writes: the last of the migrations."""
MIGRATIONS = Path(__file__).parent / "migrations"
SCHEMA = Path(__file__).parent / "schema.sql"
"""What a file of SQLite is made from; :mod:`mqttlab.catalog.tables` writes it."""
BUSY_MS = 10_000
ATTEMPTS = 12
# A name for the locks of PostgreSQL (a number) and MariaDB under which the schema is made or changed.
LOCK = 0x6D71_746C


class Database:
    """One catalog's database. Connections are opened when they are needed; several threads may use it."""

    def __init__(self, given: str, *, read_only: bool = False, as_it_is: bool = False) -> None:
        """Open it, and make it where it is a file that is not there yet.

        Args:
            given: a URL, or the path of an SQLite file.
            read_only: never write, nor wait for who writes.
            as_it_is: take whatever schema it has, for :meth:`schema` and :meth:`upgrade` alone.

        Raises:
            CatalogError: it is of another schema, on a network file system, or no catalog.
            CatalogUnavailable: it cannot be reached.
        """
        self.url = url_of(given)
        self.file = file_of(self.url)
        self.read_only = read_only
        self.base = None if self.file is None else self.file.parent.resolve()
        """What directories are written relative to: where the file lies; none of a server."""
        self._writer: sqlite3.Connection | None = None
        self._writing = Lock()
        if self.file is not None:
            self._check_file(self.file)
        if not as_it_is:
            with self.problems():
                self._ready()

    @property
    def name(self) -> str:
        """What messages call it: without a password."""
        return secrets.url_to_show(self.url) if self.file is None else str(from_here(self.file))

    @cached_property
    def engine(self) -> sa.Engine:
        """SQLAlchemy's, for questions and servers."""
        import sqlalchemy as sa
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError

        try:
            if self.file is None:
                return sa.create_engine(secrets.revealed(self.url), isolation_level="READ COMMITTED",
                                        pool_pre_ping=True)
            engine = sa.create_engine("sqlite://", creator=self._connect, poolclass=sa.pool.QueuePool)
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            raise CatalogError(secrets.hidden(f"--catalog {self.url}: {str(error).splitlines()[0]}")) from error
        begin = "BEGIN" if self.read_only else "BEGIN IMMEDIATE"
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine

    def close(self) -> None:
        """Close all connections."""
        if "engine" in self.__dict__:
            self.engine.dispose()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection to ask with."""
        with self.problems(), self.engine.connect() as connection:
            yield connection

    def write(self, work: Callable[[Rows], T]) -> T:
        """Do ``work`` in one transaction, again where another writer came between."""
        with self.problems():
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return self._written_to_server(work) if self.file is None else self._written_to_file(work)
                except Exception as error:
                    if attempt == ATTEMPTS or not _is_passing(error):
                        raise
                    time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 6)))
        raise AssertionError("the last attempt returns or raises")

    def _written_to_file(self, work: Callable[[Rows], T]) -> T:
        with self._writing:
            if self._writer is None:
                self._writer = self._connect()
            connection = self._writer
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(_rows_of_file(connection))
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
            return result

    def overwrite(self) -> None:
        """Make an SQLite file anew of its rows, without what pages that are free, or the log, still have."""
        if self.file is None:
            return
        with self.problems(), self._writing:
            connection = self._connect()
            try:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()

    def _written_to_server(self, work: Callable[[Rows], T]) -> T:
        with self.engine.begin() as connection:
            return work(rows_of(connection))

    @contextmanager
    def problems(self) -> Iterator[None]:
        """What the database says as a :class:`CatalogError`."""
        try:
            yield
        except MqttlabError:
            raise
        except Exception as error:
            told = _told(error) or self._damage(error)
            if told is None:
                raise
            kind, words = told
            raise kind(f"the catalog {self.name}: {words}") from error

    def _damage(self, error: Exception) -> tuple[type[CatalogError], str] | None:
        """What an error is that a file has caused which SQLite itself calls damaged: text that is not UTF-8, or nothing
        where there must be a value. An error with a sound file is a fault of the program."""
        if self.file is None or not isinstance(error, (TypeError, ValueError)):
            return None
        if not isinstance(error, UnicodeDecodeError) and _is_sound(self.file):
            return None
        return CatalogError, ("the file is damaged; remove it, and mqttlab catalog scan DIR makes it again from the "
                              "recordings")

    def _check_file(self, file: Path) -> None:
        place = from_here(file)
        if file.is_dir():
            raise CatalogError(f"--catalog {place}: this is a directory; name a file in it")
        if self.read_only and not file.exists():
            raise CatalogError(f"there is no catalog {place}; mqttlab catalog scan DIR makes it")
        if not file.parent.is_dir():
            raise CatalogError(f"--catalog {place}: there is no directory {place.parent}; make it first, or name "
                               "another")
        if not self.read_only:
            refuse_network(file)

    def _connect(self, *, foreign_keys: bool = True) -> sqlite3.Connection:
        assert self.file is not None
        if not self.read_only and not self.file.exists():
            # The log beside it gets its mode.
            with suppress(FileExistsError):
                os.close(os.open(self.file, os.O_CREAT | os.O_EXCL, as_open_as(self.file.parent, 0o600)))
        how = "mode=ro" if self.read_only else "mode=rwc"
        if self.read_only and not os.access(self.file.parent, os.W_OK) and not Path(f"{self.file}-wal").exists():
            # Without a log nothing is in flight, and no shared memory can be made here.
            how = "immutable=1"
        path = self.file.as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(f"file:{path}?{how}", uri=True, timeout=BUSY_MS / 1000, isolation_level=None,
                                     check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        if not self.read_only:
            _log_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    # The schema.

    def schema(self) -> str | None:
        """The schema that the database has; none where it is empty.

        Raises:
            CatalogError: it has tables, and no catalog's.
        """
        if self.file is None:
            with self.reading() as connection:
                return self._schema(rows_of(connection), _tables_of(connection))
        with self.problems():
            file = self._connect()
            try:
                return self._schema_of_file(_rows_of_file(file))
            finally:
                file.close()

    def _schema_of_file(self, rows: Rows) -> str | None:
        names = rows.ask("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'")
        return self._schema(rows, {name for (name,) in names})

    def _schema(self, rows: Rows, tables: set[str]) -> str | None:
        if "alembic_version" in tables:
            found = rows.find("alembic_version", ("version_num",))
            if found:
                return str(found[0][0])
            if self.file is None:
                # MariaDB commits each table by itself: another process is making them now, or died while it did.
                return None
        if "run" in tables or (tables - {"alembic_version"} and self.file is not None):
            raise CatalogError(f"{self.name} is not a catalog of mqttlab: it has other tables "
                               f"({', '.join(sorted(tables)[:3])})")
        return None

    def _ready(self) -> None:
        schema = self._known()
        if schema == HEAD:
            return
        if schema is None:
            if self.read_only:
                raise CatalogError(f"there is no catalog in {self.name} yet; mqttlab catalog scan DIR makes it")
            if self.file is None:
                self._exclusively(self._make)
            else:
                self.write(self._make_file)
        elif self.read_only or self.file is None:
            raise CatalogError(f"{self.name} has schema {schema}, and this mqttlab needs {HEAD}; bring it up to date "
                               "with "
                               "mqttlab catalog upgrade")
        else:
            self.upgrade()

    def _known(self) -> str | None:
        schema = self.schema()
        if schema is not None and schema not in known_schemas():
            raise CatalogError(f"{self.name} has schema {schema}, but this mqttlab knows schemas up to {HEAD}; update "
                               "mqttlab, or name another catalog with --catalog")
        return schema

    def _make(self, connection: sa.Connection) -> None:
        from mqttlab.catalog.tables import METADATA

        rows = rows_of(connection)
        if self._schema(rows, _tables_of(connection)) is None:
            # The table of the version comes first, and its row last: who looks between the two waits for the lock.
            make_version_table(rows)
            METADATA.create_all(connection)
            stamp(rows)

    def _make_file(self, rows: Rows) -> None:
        # Another process may have been faster.
        if self._schema_of_file(rows) is None:
            make_version_table(rows)
            for statement in SCHEMA.read_text(encoding="utf-8").split(";\n"):
                if statement.strip():
                    rows.perform(statement)
            stamp(rows)

    def upgrade(self, backup: Path | None = None) -> Path | None:
        """Bring the database to the present schema, after a copy of it was made.

        Args:
            backup: an SQLite file for the copy; beside the catalog where it is a file itself.

        Returns:
            The copy; none where there was nothing to do.

        Raises:
            CatalogError: the copy cannot be made, and nothing was changed.
        """
        schema = self._known()
        if schema in (None, HEAD):
            return None
        if backup is None:
            if self.file is None:
                raise CatalogError("a catalog on a server is upgraded with --backup FILE, which gets a copy first")
            moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
            backup = self.file.with_name(f"{self.file.name}.schema-{schema}-{moment}")
        self._exclusively(lambda connection: self._upgrade(connection, backup))
        return backup

    def _upgrade(self, connection: sa.Connection, backup: Path) -> None:
        from mqttlab.catalog.migrations.upgrade import copy, migrate

        # Another process may have been faster.
        if self._schema(rows_of(connection), _tables_of(connection)) != HEAD:
            if self.file is None:
                copy(connection, backup)
            else:
                self._copy_file(backup)
            migrate(connection)

    def _copy_file(self, backup: Path) -> None:
        if backup.exists():
            raise CatalogError(f"--backup {backup}: this file is there already; name a new one")
        source = self._connect()
        try:
            target = sqlite3.connect(backup)
            try:
                source.backup(target)
            finally:
                target.close()
        except sqlite3.Error as error:
            backup.unlink(missing_ok=True)
            raise CatalogError(f"--backup {backup}: {error}; nothing was changed") from error
        finally:
            source.close()

    def _exclusively(self, work: Callable[[sa.Connection], None]) -> None:
        """Do what changes the schema, while nobody else does."""
        import sqlalchemy as sa

        engine = self.engine
        if self.file is not None:
            # A table is changed by making it again, which would delete what refers to it.
            engine = sa.create_engine("sqlite://", creator=lambda: self._connect(foreign_keys=False),
                                      poolclass=sa.pool.NullPool)
            sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        with self.problems(), engine.begin() as connection:
            dialect = connection.dialect.name
            if dialect == "postgresql":
                connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({LOCK})"))
            elif dialect in ("mysql", "mariadb"):
                connection.execute(sa.text(f"SELECT GET_LOCK('{LOCK:x}', 60)"))
            try:
                work(connection)
            finally:
                if dialect in ("mysql", "mariadb"):
                    connection.execute(sa.text(f"SELECT RELEASE_LOCK('{LOCK:x}')"))


def known_schemas() -> list[str]:
    """Every schema that there is a migration to, the first one first."""
    return sorted(path.name[1:5] for path in (MIGRATIONS / "versions").glob("v[0-9]*_*.py"))


def _is_sound(file: Path) -> bool:
    """Whether SQLite finds nothing wrong with a file."""
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_MS / 1000)
        try:
            return connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Have the file in WAL mode, which a new file is not.

    Raises:
        sqlite3.OperationalError: somebody holds the file for longer than ``BUSY_MS``.
    """
    # SQLite does not wait here where two connections change a new file at once: neither could give way.
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))


def rows_of(connection: sa.Connection) -> Rows:
    """The rows behind a connection of SQLAlchemy's."""
    import sqlalchemy as sa

    def perform(statement: str, values: Any) -> list[Row]:
        result = connection.execute(sa.text(statement), values)
        return [tuple(row) for row in result] if result.returns_rows else []

    return Rows(perform, connection.dialect.identifier_preparer.initial_quote)


def _rows_of_file(connection: sqlite3.Connection) -> Rows:
    def perform(statement: str, values: Any) -> list[Row]:
        if isinstance(values, list):
            connection.executemany(statement, values)
            return []
        return connection.execute(statement, values).fetchall()

    return Rows(perform)


def _tables_of(connection: sa.Connection) -> set[str]:
    import sqlalchemy as sa

    return set(sa.inspect(connection).get_table_names())


def make_version_table(rows: Rows) -> None:
    """Make the table in which Alembic keeps the schema, where there is none: without a row nothing is finished."""
    rows.perform("CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")


def stamp(rows: Rows) -> None:
    """Say, as Alembic does, that the database is of the present schema."""
    make_version_table(rows)
    rows.delete("alembic_version")
    rows.insert("alembic_version", [{"version_num": HEAD}])


def _is_passing(error: Exception) -> bool:
    """Whether an error may be another writer's doing, so that it is worth trying again."""
    if isinstance(error, sqlite3.Error):
        return isinstance(error, (sqlite3.IntegrityError, sqlite3.OperationalError))
    from sqlalchemy.exc import IntegrityError, OperationalError

    return isinstance(error, (IntegrityError, OperationalError))


def _told(error: Exception) -> tuple[type[CatalogError], str] | None:
    """What an error of a database is to who uses the catalog, and the database's own words in one line."""
    origin: Any
    if isinstance(error, sqlite3.Error):
        passing, origin = isinstance(error, (sqlite3.OperationalError, sqlite3.InterfaceError)), error
    else:
        from sqlalchemy.exc import DatabaseError, InterfaceError, OperationalError

        if not isinstance(error, (DatabaseError, InterfaceError)):
            return None
        passing, origin = isinstance(error, (OperationalError, InterfaceError)), error.orig
    words = str(origin.args[1] if len(getattr(origin, "args", ())) > 1 else origin)
    return CatalogUnavailable if passing else CatalogError, " ".join(words.split()) or type(origin).__name__
