"""The queue's process: begins what waits, one live run alone or as many simulations as there are processors.

It is the engines' parent. A thread for each run waits for its engine, works out what is kept of it, and takes it into
the catalog, all before the next live run begins; the main thread decides what begins, ends what was cancelled or whose
command is gone, and ends the process when nothing is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from mqttlab import scratch, secrets
from mqttlab.engine import Interruption, is_being_written, is_locked
from mqttlab.errors import MqttlabError
from mqttlab.queue.handed import Handed
from mqttlab.queue.store import EVERYTHING, Store, now
from mqttlab.runs import Job, Outcome, live_alone, perform
from mqttlab.runs.job import ulid

LOOK_S = 0.05
OWNERS_S = 0.5
# Somebody who has just handed in something often hands in more.
IDLE_S = 5.0
LOCK_S = 2.0
# An engine that nobody listens to ends within two seconds, and writes its tables then.
ORPHAN_S = 60.0
KEPT_DAYS = 30
PR_SET_PDEATHSIG = 1
# Loaded before anything is forked.
LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class Waiting:
    """A job, as far as the choice of what begins needs it."""

    identifier: str
    live: bool


def choose(waiting: Sequence[Waiting], running: Sequence[Waiting], processors: int) -> list[Waiting]:
    """What begins now, of what waits in this order.

    A live run begins when nothing else runs, and nothing begins beside it. The order is kept: what stands behind a live
    run waits for it, so that simulations that keep coming do not keep it waiting for ever.
    """
    chosen: list[Waiting] = []
    for one in waiting:
        going = [*running, *chosen]
        room = not going if one.live else len(going) < processors and not any(other.live for other in going)
        if not room:
            break
        chosen.append(one)
    return chosen


@dataclass
class Run:
    """A job that runs here."""

    waiting: Waiting
    owner: str | None
    interruption: Interruption = field(default_factory=Interruption)
    thread: threading.Thread | None = None


class Process:
    """The process's state; :meth:`serve` is its life."""

    def __init__(self, directory: Path, lock: int, *, processors: int | None = None, idle_s: float = IDLE_S) -> None:
        self._directory = directory
        self._lock = lock
        self._store = Store(directory)
        self._handed = Handed(directory)
        self._processors = processors or os.cpu_count() or 1
        self._idle_s = idle_s
        self._running: dict[str, Run] = {}
        self._orphans: dict[str, Waiting] = {}
        self._drivers: dict[str, subprocess.Popen[bytes]] = {}
        self._importing: set[str] = set()
        self._ending: signal.Signals | None = None
        self._catalogs = threading.Lock()

    def serve(self) -> None:
        """Serve until nothing is left, or until a signal: then what runs ends, and waits again."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._hear)
        self._take_over()
        busy_at = time.monotonic()
        owners_at = 0.0
        known: tuple[Any, ...] = ()
        while True:
            rested = time.monotonic() - owners_at > OWNERS_S
            if rested:
                self._end_of_owners()
                owners_at = time.monotonic()
            self._settle_orphans()
            # It shares the machine with the run that it measures: nothing is asked twenty times a second that can be
            # told by whether anybody has written, a run has left, or a command has ended.
            now_known = (self._store.version(), frozenset(self._running), self._ending)
            if rested or now_known != known or any(driver.poll() is not None for driver in self._drivers.values()):
                known = now_known
                self._end_cancelled()
                self._tend_drivers()
                if self._ending is None:
                    self._begin()
            if self._running or self._drivers or self._orphans:
                busy_at = time.monotonic()
            if (self._ending is not None or time.monotonic() - busy_at > self._idle_s) and self._leave():
                return
            time.sleep(LOOK_S)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self._ending = self._ending or signal.Signals(number)
        for run in list(self._running.values()):
            run.interruption.end(signal.SIGTERM)
        for driver in self._drivers.values():
            driver.terminate()

    def _leave(self) -> bool:
        """End, if nothing can begin any more; who hands in something now finds the lock free, or is found."""
        if self._running or self._drivers:
            return False
        with self._store.writing() as connection:
            held = {row["name"] for row in connection.execute("SELECT name FROM held")}
            left = [row for row in connection.execute("SELECT id, label FROM job WHERE state = 'pending' UNION ALL "
                                                      "SELECT id, label FROM driver "
                                                      "WHERE state IN ('pending', 'running') AND cancel = 0")
                    if not held & {EVERYTHING, row["id"], row["label"]}]
            if left and self._ending is None:
                return False
            os.close(self._lock)
        return True

    # What a process that was killed has left.

    def _take_over(self) -> None:
        with self._store.writing() as connection:
            connection.execute("DELETE FROM event WHERE at < ?", (_days_ago(1),))
            connection.execute("DELETE FROM job WHERE state IN ('done', 'cancelled') AND ended_at < ?",
                               (_days_ago(KEPT_DAYS),))
            rows = connection.execute("SELECT id, backend FROM job WHERE state = 'running'").fetchall()
        self._orphans = {row["id"]: Waiting(row["id"], row["backend"] == "live") for row in rows}
        self._since = time.monotonic()
        self._handed.forget_others(self._store.open())

    def _settle_orphans(self) -> None:
        for identifier in list(self._orphans):
            [row] = self._store.rows("SELECT * FROM job WHERE id = ?", (identifier,))
            place = Path(row["directory"])
            going_on = is_being_written(place) or _has_engine(row["run"])
            if going_on and time.monotonic() - self._since < ORPHAN_S:
                continue
            del self._orphans[identifier]
            self._settle(row, place)

    def _settle(self, row: sqlite3.Row, place: Path) -> None:
        """A run whose queue was killed: adopted where it had come to its end, made again where it is the queue's
        own."""
        ended = _ended(place)
        if ended is not None:
            self._finish(row, Outcome(verdict=ended, directory=place, reason=None))
        elif row["cancel"]:
            self._set(row["id"], state="cancelled", ended_at=now(), reason="cancelled while it ran")
        elif row["owner"] is not None:
            there = (place / "plan.json").is_file()
            self._finish(row, Outcome(verdict="incomplete" if there else "failed", directory=place,
                                      reason="the queue ended while it ran"))
        else:
            attempt = row["attempt"] + 1
            scratch.remove_unfinished(place)
            base = place.name if row["attempt"] == 1 else place.name.rpartition("-again-")[0]
            again = place.with_name(f"{base}-again-{attempt}")
            self._store.say(row["id"], {"event": "warning", "text": f"the queue ended while {place.name} ran; it "
                                                                    "begins again"})
            self._set(row["id"], state="pending", attempt=attempt, run=ulid(), directory=str(again), started_at=None,
                      progress=None)

    # What begins.

    def _begin(self) -> None:
        rows = self._store.rows("SELECT id, label, backend, owner FROM job WHERE state = 'pending' ORDER BY seq")
        if not rows:
            return
        held = {row["name"] for row in self._store.rows("SELECT name FROM held")}
        # What belongs to a command that is gone is cancelled in a moment, and must not begin before.
        gone = {owner for owner in {row["owner"] for row in rows} if owner and _is_gone(self._owner(owner))}
        waiting = [Waiting(row["id"], row["backend"] == "live") for row in rows
                   if row["owner"] not in gone and not held & {EVERYTHING, row["id"], row["label"]}]
        # An import works as a simulation does; a live run waits for it.
        going = [run.waiting for run in self._running.values()] + [*self._orphans.values()] + [
            Waiting(identifier, False) for identifier in self._importing & self._drivers.keys()]
        owners = {row["id"]: row["owner"] for row in rows}
        for one in choose(waiting, going, self._processors):
            # It may have been cancelled meanwhile.
            if not self._store.change("UPDATE job SET state = 'running', started_at = ? WHERE id = ? AND state = "
                                      "'pending'",
                                      (now(), one.identifier)):
                continue
            run = Run(one, owners[one.identifier])
            run.thread = threading.Thread(target=self._perform, args=(run,), name=one.identifier)
            self._running[one.identifier] = run
            run.thread.start()

    def _perform(self, run: Run) -> None:
        """A run's thread: from its beginning until all is written down."""
        identifier = run.waiting.identifier
        try:
            [row] = self._store.rows("SELECT * FROM job WHERE id = ?", (identifier,))
            origin = None if row["origin"] is None else json.loads(row["origin"])
            job = Job(json.loads(row["plan"]), Path(row["directory"]), row["run"], origin,
                      self._handed.of(identifier))
            # Its catalog's password is among them.
            secrets.learn(job.secrets)
            try:
                outcome = self._outcome(job, run)
            except MqttlabError as error:
                if self._is_postponed(row):
                    self._set(identifier, state="pending", started_at=None)
                else:
                    self._fail(row, error)
                return
            if outcome.verdict != "complete" and self._is_postponed(row):
                self._settle(row, outcome.directory)
            else:
                self._finish(row, outcome)
        except BaseException as error:
            self._set(identifier, state="done", verdict="failed", reason=f"{type(error).__name__}: {error}",
                      ended_at=now(),
                      error=_pickled(error))
            raise
        finally:
            self._running.pop(identifier, None)
            self._forget(identifier)
            self._store.close()

    def _is_postponed(self, row: sqlite3.Row) -> bool:
        """Whether the queue was told to end, and not this run of its own: it is made again."""
        return self._ending is not None and row["owner"] is None and not self._cancelled(row["id"])

    def _outcome(self, job: Job, run: Run) -> Outcome:
        def observe(line: dict[str, Any]) -> None:
            self._store.say(run.waiting.identifier, line)

        if not run.waiting.live:
            return perform(job, observe, run.interruption)
        # Other programs make live runs, too.
        with live_alone(lambda: run.interruption.asked is not None, what=str(job.directory),
                        waiting=lambda words: observe({"event": "waiting", "text": words})) as lock:
            inherited = () if lock is None else (lock,)
            return perform(job, observe, run.interruption, inherited)

    def _finish(self, row: sqlite3.Row, outcome: Outcome) -> None:
        """Work out what is kept, take the recording into the catalog, and write down how it ended."""
        job = Job(json.loads(row["plan"]), Path(row["directory"]), row["run"])
        kept, error = None, None
        if row["keep"] is not None:
            try:
                kept = pickle.dumps(pickle.loads(row["keep"])(job, outcome))
            except Exception as problem:
                error = _pickled(problem)
        if row["catalog"] is not None and (outcome.directory / "plan.json").is_file():
            self._remember(row["id"], outcome.directory, row["catalog"])
        cancelled = outcome.verdict != "complete" and self._cancelled(row["id"])
        self._set(row["id"], state="cancelled" if cancelled else "done", verdict=outcome.verdict, reason=outcome.reason,
                  warnings=json.dumps(outcome.warnings), directory=str(outcome.directory), result=kept, error=error,
                  ended_at=now())

    def _fail(self, row: sqlite3.Row, error: MqttlabError) -> None:
        cancelled = self._cancelled(row["id"])
        self._set(row["id"], state="cancelled" if cancelled else "done", verdict=None if cancelled else "failed",
                  reason=str(error), error=_pickled(error), ended_at=now())

    def _forget(self, identifier: str) -> None:
        """The secrets of a job that has ended, and does not begin again."""
        if identifier not in self._store.open():
            self._handed.forget([identifier])

    def _remember(self, identifier: str, directory: Path, url: str) -> None:
        try:
            from mqttlab.catalog import Catalog

            secrets.learn(self._handed.of(identifier))
            with self._catalogs, Catalog.open(url) as catalog:
                catalog.add(directory)
        except Exception as error:
            # The recording is what matters.
            self._store.say(identifier, {"event": "warning", "text": f"not in the catalog: {error}"})

    # What ends.

    def _end_cancelled(self) -> None:
        for identifier, run in list(self._running.items()):
            if run.interruption.asked is None and self._cancelled(identifier):
                run.interruption.end(signal.SIGTERM)
        for row in self._store.rows("SELECT id FROM driver WHERE state = 'running' AND cancel = 1"):
            if row["id"] in self._drivers:
                self._drivers[row["id"]].terminate()

    def _cancelled(self, identifier: str) -> bool:
        return bool(self._store.rows("SELECT 1 FROM job WHERE id = ? AND cancel = 1", (identifier,)))

    def _end_of_owners(self) -> None:
        """What belongs to a command ends with it."""
        owners = {row["owner"] for row in self._store.rows(
            "SELECT DISTINCT owner FROM job "
            "WHERE owner IS NOT NULL AND cancel = 0 AND state IN ('pending', 'running')")}
        for owner in owners:
            if _is_gone(self._owner(owner)):
                with self._store.writing() as connection:
                    connection.execute("UPDATE job SET cancel = 1 WHERE owner = ? AND state = 'running'", (owner,))
                    connection.execute(
                        "UPDATE job SET state = 'cancelled', ended_at = ?, reason = 'its command ended' "
                        "WHERE owner = ? AND state = 'pending'", (now(), owner))

    def _owner(self, name: str) -> Path:
        return self._directory / "owners" / name

    # Commands that were handed over.

    def _tend_drivers(self) -> None:
        for identifier, driver in list(self._drivers.items()):
            status = driver.poll()
            if status is None:
                continue
            del self._drivers[identifier]
            again = self._ending is not None and not self._store.rows(
                "SELECT 1 FROM driver WHERE id = ? AND cancel = 1", (identifier,))
            self._store.change("UPDATE driver SET state = ?, status = ?, ended_at = ? WHERE id = ?",
                               ("pending" if again else "done", status, now(), identifier))
            self._forget(identifier)
        if self._ending is not None:
            return
        for row in self._store.rows("SELECT * FROM driver WHERE state IN ('pending', 'running') ORDER BY seq"):
            if row["id"] in self._drivers or row["cancel"] or _is_driver(row["pid"]):
                # One that a queue before this one began is told to end by the kernel, and may take a moment.
                continue
            command = json.loads(row["command"])
            if command[0] == "import":
                # It uses a processor by itself, and would be measured along with a live run.
                if any(run.waiting.live for run in list(self._running.values())):
                    continue
                self._importing.add(row["id"])
            with (self._directory / "logs" / f"{row['id']}.log").open("ab") as out:
                driver = subprocess.Popen(
                    [sys.executable, "-m", "mqttlab", *command], cwd=row["directory"],
                    stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                    preexec_fn=_end_with_parent,
                    env=os.environ | {secrets.TOLD: json.dumps(self._handed.of(row["id"]))})
            self._drivers[row["id"]] = driver
            self._store.change("UPDATE driver SET state = 'running', started_at = ?, pid = ? WHERE id = ?",
                               (now(), driver.pid, row["id"]))

    def _set(self, identifier: str, **values: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        self._store.change(f"UPDATE job SET {names} WHERE id = ?", [*values.values(), identifier])


def main(directory: Path) -> int:
    """Serve a queue's directory; 0 at once where somebody does already."""
    os.umask(0o077)
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            # Who only looks whether it is held holds it for a moment, too.
            if time.monotonic() > deadline:
                return 0
            time.sleep(LOOK_S)
    # Recordings are made as the user's files usually are.
    os.umask(0o022)
    Process(directory, lock).serve()
    return 0


def _end_with_parent() -> None:
    """The kernel ends a driver when the queue's main thread ends, and with it the queue."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == 1:
        os.kill(os.getpid(), signal.SIGTERM)


def _is_driver(pid: int | None) -> bool:
    """Whether this is still the process of a command that was handed over."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"mqttlab" in words


def _ended(place: Path) -> str | None:
    """How a recording says that it ended, if it does."""
    try:
        found = json.loads((place / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return "complete" if found.get("status") == "complete" else None


def _has_engine(run: str) -> bool:
    """Whether an engine that makes this recording is there, from before it takes its directory."""
    wanted = run.encode()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if wanted in place.read_bytes().split(b"\0"):
                return True
    return False


def _is_gone(path: Path) -> bool:
    """Whether the command that held an owner's file has ended; its file goes then, too."""
    try:
        if is_locked(path):
            return False
    except FileNotFoundError:
        return True
    path.unlink(missing_ok=True)
    return True


def _days_ago(days: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 86_400 * days))


def _pickled(error: BaseException) -> bytes:
    try:
        text = pickle.dumps(error)
        pickle.loads(text)
        return text
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
