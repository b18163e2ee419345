"""A queue, as commands and a dashboard use it: hand in, look, hold, cancel. The work is done by its process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqttlab import secrets
from mqttlab.engine import is_locked
from mqttlab.errors import MqttlabError
from mqttlab.queue.handed import Handed
from mqttlab.queue.store import EVERYTHING, Store, now
from mqttlab.runs.job import Job, ulid
from mqttlab.scratch import remove_unfinished

STARTED_WITHIN_S = 20
OPEN = ("pending", "running")


class QueueError(MqttlabError):
    """The queue cannot be used, or is asked about what it does not have."""


@dataclass(frozen=True, kw_only=True)
class QueuedJob:
    """A run in the queue."""

    identifier: str
    """The job's; the recording's is ``run``, which differs after a death of the queue made it begin again."""
    run: str
    name: str
    label: str
    """What it belongs to: an experiment's name, or the scenario's."""
    backend: str
    state: str
    """``pending``, ``held``, ``running``, ``done`` or ``cancelled``."""
    verdict: str | None
    """When done: ``complete``, ``incomplete`` or ``failed``."""
    reason: str | None
    directory: Path
    attempt: int
    detached: bool
    """Whether it stays when the command that handed it in ends."""
    submitted_at: str
    started_at: str | None
    ended_at: str | None
    progress: dict[str, Any] = field(default_factory=dict)
    """The engine's last ``phase`` or ``tick``."""


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A command that the queue runs as its child, because it was handed over: an experiment."""

    identifier: str
    label: str
    command: list[str]
    state: str
    status: int | None
    log: Path


class Queue:
    """The queue of a directory. Commands need no process to look at it; :meth:`start` begins one."""

    def __init__(self, directory: Path | None = None) -> None:
        """Open a queue, and make it where there is none.

        Args:
            directory: where it is kept; the user's own (``$XDG_STATE_HOME/mqttlab/queue``) when left out.

        Raises:
            QueueError: it cannot be written to.
        """
        self.directory = (directory or default_directory()).absolute()
        try:
            for place in (self.directory, self.directory / "owners", self.directory / "logs"):
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.store = Store(self.directory)
            self.handed = Handed(self.directory)
        except (OSError, sqlite3.Error) as error:
            words = getattr(error, "strerror", None) or error
            raise QueueError(f"--queue {directory or self.directory}: {words}") from error

    @property
    def is_running(self) -> bool:
        """Whether the queue's process is there: it holds a lock until it ends, however it ends."""
        with contextlib.suppress(FileNotFoundError):
            return is_locked(self.directory / "lock")
        return False

    def start(self) -> None:
        """Begin the queue's process, if there is none.

        Raises:
            QueueError: it does not come up.
        """
        if self.is_running:
            return
        log = self.directory / "queue.log"
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "mqttlab.queue", str(self.directory)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=out,
                # Jobs are told their secrets; one command's variables are not another one's.
                start_new_session=True, cwd="/", env=secrets.environment_without_variables())
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not self.is_running:
            # A process that finds another one ends with 0.
            if process.poll() not in (None, 0) or time.monotonic() > deadline:
                raise QueueError(f"the queue's process does not come up; {log} says why")
            if process.poll() == 0 and not self.rows_open():
                return
            time.sleep(0.02)

    def rows_open(self) -> int:
        """How many jobs and drivers wait or run."""
        question = "SELECT (SELECT COUNT(*) FROM job WHERE state IN ('pending', 'running')) + " \
                   "(SELECT COUNT(*) FROM driver WHERE state IN ('pending', 'running'))"
        return int(self.store.rows(question)[0][0])

    # Handing in.

    def submit(self, job: Job, *, label: str = "", catalog: str | None = None, keep: Callable[..., Any] | None = None,
               owner: str | None = None, held: bool = False) -> None:
        """Hand a run in and see that the queue's process is there.

        A job whose identifier is in the queue already is not handed in again.

        Args:
            job: the run; its directory as an absolute path.
            label: what it belongs to; its scenario's name when left out.
            catalog: the URL of the catalog that takes the recording.
            keep: called in the queue's process with job and outcome, before the next live run begins: a function of a
            module,
                or a :class:`functools.partial` of one.
            owner: with what it ends (:meth:`owned`); it stays when left out.
            held: it does not begin before it is resumed.
        """
        plan = job.plan
        catalog = None if catalog is None else secrets.safe_url(catalog)
        kept = None if keep is None else pickle.dumps(keep)
        # What keeps a recording may name a place by a URL, with a mark in it.
        marked = (catalog or "") + ("" if kept is None else kept.decode("latin-1"))
        self.handed.give(job.identifier, job.known_secrets | secrets.values_in(marked))
        values = {
            "id": job.identifier, "run": job.identifier, "label": label or str(plan["name"]), "name": str(plan["name"]),
            "backend": str(plan["backend"]), "plan": job.text, "directory": str(job.directory.absolute()),
            "origin": None if job.origin is None else json.dumps(job.origin, default=str), "catalog": catalog,
            "keep": kept, "owner": owner, "submitted_at": now(),
        }
        names = ", ".join(values)
        with self.store.writing() as connection:
            if held:
                connection.execute("INSERT OR IGNORE INTO held (name) VALUES (?)", (job.identifier,))
            connection.execute(f"INSERT OR IGNORE INTO job ({names}) VALUES ({', '.join('?' * len(values))})",
                               [*values.values()])
        self.start()

    def add_driver(self, arguments: Sequence[str], *, label: str, directory: Path) -> str:
        """Have the queue run ``mqttlab ARGUMENTS…`` in a directory, as its child, until it has ended by itself.

        Returns:
            Its identifier; what it prints is in ``logs/<identifier>.log`` of the queue's directory.

        Raises:
            QueueError: one with this label is there already.
        """
        identifier = ulid()
        told = [secrets.hidden(secrets.safe_url(argument)) for argument in arguments]
        self.handed.give(identifier, secrets.values_in("\n".join(told)) | secrets.variables())
        with self.store.writing() as connection:
            there = connection.execute("SELECT id FROM driver WHERE label = ? AND state IN ('pending', 'running')",
                                       (label,))
            if there.fetchone() is not None:
                raise QueueError(f"{label!r} is in the queue already; mqttlab queue list shows it")
            connection.execute(
                "INSERT INTO driver (id, label, command, directory, submitted_at) VALUES (?, ?, ?, ?, ?)",
                (identifier, label, json.dumps(told), str(directory.absolute()), now()))
        self.start()
        return identifier

    @contextlib.contextmanager
    def owned(self) -> Iterator[str]:
        """A name for whom jobs belong to: when this program ends, however it ends, the queue ends them."""
        name = ulid()
        path = self.directory / "owners" / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield name
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)

    # Looking.

    def jobs(self, *, all_: bool = False) -> list[QueuedJob]:
        """Jobs in the order in which they were handed in: those that wait or run, or with ``all_`` what has ended,
        too."""
        which = "" if all_ else "WHERE state IN ('pending', 'running')"
        self._end_left()
        held = self.held()
        columns = "id, run, name, label, backend, state, verdict, reason, directory, attempt, owner, submitted_at, " \
                  "started_at, ended_at, progress"
        return [_job(row, held) for row in self.store.rows(f"SELECT {columns} FROM job {which} ORDER BY seq")]

    def drivers(self, *, all_: bool = False) -> list[Driver]:
        """Commands that the queue runs as its children."""
        which = "" if all_ else "WHERE state IN ('pending', 'running')"
        self._end_left()
        return [Driver(identifier=row["id"], label=row["label"], command=json.loads(row["command"]), state=row["state"],
                       status=row["status"], log=self.directory / "logs" / f"{row['id']}.log")
                for row in self.store.rows(f"SELECT * FROM driver {which} ORDER BY seq")]

    def held(self) -> set[str]:
        """Labels and identifiers that are held; :data:`EVERYTHING` where all is."""
        return {row["name"] for row in self.store.rows("SELECT name FROM held")}

    def events(self, after: int = 0, job: str | None = None,
               limit: int = 1000) -> list[tuple[int, str, dict[str, Any]]]:
        """Progress lines behind a number: their numbers, their jobs and the lines, oldest first."""
        mine, values = ("", [after]) if job is None else ("AND job = ?", [after, job])
        rows = self.store.rows(f"SELECT seq, job, line FROM event WHERE seq > ? {mine} ORDER BY seq LIMIT {limit}",
                               values)
        return [(row["seq"], row["job"], json.loads(row["line"])) for row in rows]

    def lengths_s(self) -> dict[str, float]:
        """How long the runs that wait or run take at most from the beginning of publishing, by identifier: seconds of
        run time."""
        phases = " + ".join(f"json_extract(plan, '$.phases.{name}_ns')" for name in ("warm_up", "duration",
                                                                                     "cool_down"))
        rows = self.store.rows(f"SELECT id, {phases} AS length FROM job WHERE state IN ('pending', 'running')")
        return {row["id"]: (row["length"] or 0) / 1e9 for row in rows}

    def took_s(self) -> dict[tuple[str, str], float]:
        """How long complete runs took from their beginning to their end, on the average, by name and backend: seconds
        of real time."""
        rows = self.store.rows(
            "SELECT name, backend, AVG(julianday(ended_at) - julianday(started_at)) * 86400 AS took FROM job "
            "WHERE state = 'done' AND verdict = 'complete' GROUP BY name, backend")
        return {(row["name"], row["backend"]): row["took"] for row in rows if row["took"] is not None}

    # Changing one's mind. Names are identifiers, their ends of at least six letters, or labels.

    def pause(self, names: Sequence[str] = ()) -> list[str]:
        """Let nothing of these begin, or nothing at all; what runs goes on."""
        wanted = self.named(names) if names else [EVERYTHING]
        with self.store.writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO held (name) VALUES (?)", [(name,) for name in wanted])
        return wanted

    def resume(self, names: Sequence[str] = ()) -> list[str]:
        """Let these begin, or everything, and see that the queue's process is there."""
        wanted = self.named(names) if names else sorted(self.held())
        with self.store.writing() as connection:
            connection.executemany("DELETE FROM held WHERE name = ?", [(name,) for name in wanted])
        if self.rows_open():
            self.start()
        return wanted

    def cancel(self, names: Sequence[str] | None = None) -> int:
        """End these, or everything: what runs keeps what it has recorded, what waits is not begun; returns how many."""
        return self.end(None if names is None else self.named(names))

    def end(self, wanted: Sequence[str] | None) -> int:
        """:meth:`cancel`, of labels and whole identifiers; those that have ended are passed over."""
        places = "" if wanted is None else f" AND (id IN ({_places(wanted)}) OR label IN ({_places(wanted)}))"
        values = [] if wanted is None else [*wanted, *wanted]
        before = self.store.open()
        with self.store.writing() as connection:
            waiting = connection.execute(f"SELECT directory FROM job WHERE state = 'pending'{places}",
                                         values).fetchall()
            count = connection.execute(
                f"UPDATE job SET cancel = 1 WHERE state = 'running' AND cancel = 0{places}", values).rowcount
            count += connection.execute(
                f"UPDATE job SET state = 'cancelled', ended_at = ?, reason = 'cancelled before it began' "
                f"WHERE state = 'pending'{places}", [now(), *values]).rowcount
            count += connection.execute(
                f"UPDATE driver SET cancel = 1, state = CASE state WHEN 'pending' THEN 'cancelled' ELSE state END "
                f"WHERE state IN ('pending', 'running') AND cancel = 0{places}", values).rowcount
        self._end_left()
        for row in waiting:
            # Taken when it was handed in.
            remove_unfinished(Path(row["directory"]))
        self.handed.forget(before - self.store.open())
        return count

    def _end_left(self) -> None:
        """End what was cancelled and ran in a queue's process that was killed: nobody else does, until the next."""
        left = "state = 'running' AND cancel = 1"
        if not self.store.rows(f"SELECT id FROM job WHERE {left} UNION SELECT id FROM driver WHERE {left}"):
            return
        if self.is_running:
            return
        with self.store.writing() as connection:
            connection.execute("UPDATE job SET state = 'cancelled', ended_at = ?, reason = 'cancelled, and the queue "
                               f"ended while it ran' WHERE {left}", [now()])
            connection.execute(f"UPDATE driver SET state = 'cancelled' WHERE {left}")

    def rewrite(self, change: Callable[[str], str]) -> int:
        """Change the plans and origins of jobs that have ended, and leave nothing in the file of what they were;
        returns how many jobs were changed."""
        ended = self.store.rows("SELECT seq, plan, origin FROM job WHERE state IN ('done', 'cancelled')")
        count = 0
        for row in ended:
            plan, origin = change(row["plan"]), None if row["origin"] is None else change(row["origin"])
            if (plan, origin) != (row["plan"], row["origin"]):
                self.store.change("UPDATE job SET plan = ?, origin = ? WHERE seq = ?", (plan, origin, row["seq"]))
                count += 1
        if count:
            self.store.connection.execute("VACUUM")
            self.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return count

    def named(self, names: Sequence[str]) -> list[str]:
        """Labels and whole identifiers of what people name.

        Raises:
            QueueError: there is no such thing in the queue, or there are several.
        """
        from mqttlab.mistaken import did_you_mean

        rows = self.store.rows("SELECT id, label FROM job WHERE state IN ('pending', 'running') UNION "
                               "SELECT id, label FROM driver WHERE state IN ('pending', 'running')")
        labels, identifiers = {row["label"] for row in rows} | self.held(), {row["id"] for row in rows}
        found = []
        for name in names:
            ends = [name] if name in labels else [one for one in identifiers if len(name) >= 6
                                                  and one.endswith(name.upper())]
            if len(ends) != 1:
                known = sorted(labels - {EVERYTHING})
                words = did_you_mean(name, known) if known else "nothing is"
                raise QueueError(f"{name!r} is {'several jobs' if ends else 'not in the queue'}; {words}")
            found += ends
        return found


def default_directory() -> Path:
    """Where a user's queue is."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "mqttlab" / "queue"


def _job(row: sqlite3.Row, held: set[str]) -> QueuedJob:
    state = row["state"]
    if state == "pending" and held & {EVERYTHING, row["id"], row["label"]}:
        state = "held"
    return QueuedJob(
        identifier=row["id"], run=row["run"], name=row["name"], label=row["label"], backend=row["backend"], state=state,
        verdict=row["verdict"], reason=row["reason"], directory=Path(row["directory"]), attempt=row["attempt"],
        detached=row["owner"] is None, submitted_at=row["submitted_at"], started_at=row["started_at"],
        ended_at=row["ended_at"], progress=json.loads(row["progress"] or "{}"))


def _places(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
