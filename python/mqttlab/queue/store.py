"""The queue on disk: an SQLite file that the queue's process, commands and a dashboard read and write.

A job's life: ``pending`` → ``running`` → ``done``; or ``cancelled``, before it began or while it ran. Each step is one
transaction, so that whoever is killed leaves either the step before or the step after.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BUSY_MS = 10_000
SCHEMA = 1
TABLES = """
CREATE TABLE IF NOT EXISTS job (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, run TEXT NOT NULL, label TEXT NOT NULL,
    name TEXT NOT NULL,
    backend TEXT NOT NULL, plan TEXT NOT NULL, directory TEXT NOT NULL, origin TEXT, catalog TEXT, keep BLOB,
    owner TEXT,
    state TEXT NOT NULL DEFAULT 'pending', cancel INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 1,
    verdict TEXT, reason TEXT, warnings TEXT, result BLOB, error BLOB, taken INTEGER NOT NULL DEFAULT 0,
    submitted_at TEXT NOT NULL, started_at TEXT, ended_at TEXT, progress TEXT
);
CREATE INDEX IF NOT EXISTS job_state ON job (state);
CREATE INDEX IF NOT EXISTS job_owner ON job (owner, state);
CREATE TABLE IF NOT EXISTS driver (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, label TEXT NOT NULL, command TEXT NOT NULL,
    directory TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'pending', cancel INTEGER NOT NULL DEFAULT 0,
    submitted_at TEXT NOT NULL, started_at TEXT, ended_at TEXT, status INTEGER, pid INTEGER
);
CREATE TABLE IF NOT EXISTS event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, job TEXT NOT NULL, line TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS event_job ON event (job);
CREATE TABLE IF NOT EXISTS held (name TEXT PRIMARY KEY);
"""
EVERYTHING = "*"
"""Held by this name: nothing begins."""


class Store:
    """The file. Each thread has a connection of its own."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "queue.db"
        self._local = threading.local()
        # Only where it is new: whoever closes a file loses all of this process's POSIX locks on it, those of SQLite's
        # other connections, too (SQLite, "How To Corrupt An SQLite Database File", 2.2). Another process then believes
        # that nobody has the file, and removes the log that these go on writing to.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._file = _inode(self.path)
        with self.writing() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA):
                raise sqlite3.DatabaseError(f"{self.path} is of another version of mqttlab; remove it when no run is "
                                            "in it")
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        found = getattr(self._local, "connection", None)
        if found is None:
            found = sqlite3.connect(self.path, timeout=BUSY_MS / 1000, isolation_level=None)
            found.row_factory = sqlite3.Row
            found.execute("PRAGMA journal_mode = WAL")
            found.execute("PRAGMA synchronous = NORMAL")
            self._local.connection = found
        return found

    @property
    def is_there(self) -> bool:
        """Whether the file is still the one that was opened: whoever removes it takes all that waits in it."""
        return _inode(self.path) == self._file

    def close(self) -> None:
        """Close this thread's connection."""
        found = getattr(self._local, "connection", None)
        if found is not None:
            found.close()
            del self._local.connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, which waits for other writers before it reads."""
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def rows(self, question: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """The answer to a question."""
        return self.connection.execute(question, values).fetchall()

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """One statement in a transaction; returns how many rows it changed."""
        with self.writing() as connection:
            return connection.execute(statement, values).rowcount

    def open(self) -> set[str]:
        """The identifiers of jobs and commands that wait or run."""
        states = "WHERE state IN ('pending', 'running')"
        return {row["id"] for row in self.rows(f"SELECT id FROM job {states} UNION SELECT id FROM driver {states}")}

    def version(self) -> int:
        """A number that changes when another connection has written."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def say(self, job: str, line: dict[str, Any]) -> None:
        """Write an event of a job: a progress line of its engine, or a word of the queue's own."""
        text = json.dumps(line)
        with self.writing() as connection:
            connection.execute("INSERT INTO event (at, job, line) VALUES (?, ?, ?)", (now(), job, text))
            if line.get("event") in ("phase", "tick"):
                connection.execute("UPDATE job SET progress = ? WHERE id = ?", (text, job))


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def now() -> str:
    """The present instant, as text that sorts by time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
