"""An executor whose jobs wait in the queue: for whoever makes many runs, and waits for them."""

from __future__ import annotations

import contextlib
import json
import pickle
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from mqttlab.engine import Interrupted, Interruption
from mqttlab.queue.client import Queue, QueueError
from mqttlab.runs import Finished, Outcome
from mqttlab.runs.executor import Observe
from mqttlab.runs.job import Job

T = TypeVar("T")
LOOK_S = 0.05
ALIVE_S = 1.0


class QueueExecutor(Generic[T]):
    """Performs jobs through the queue, as :class:`mqttlab.runs.LocalPool` does in this program.

    A context manager. Its jobs belong to this program: when it leaves, or is killed, they end. Within it Ctrl-C,
    SIGTERM and SIGHUP cancel all, if it was entered in the main thread. Where the queue's process is killed, another is
    begun: what ran ends as incomplete unless its recording is whole, what waited goes on waiting.
    """

    def __init__(self, queue: Queue, keep: Callable[[Job, Outcome], T], *, label: str = "",
                 observe: Observe = lambda job, progress: None, catalog: str | None = None) -> None:
        """Make an executor.

        Args:
            queue: the queue.
            keep: what is kept of a run: a function of a module, or a :class:`functools.partial` of one, called in the
            queue's
                process, before the next live run begins; what it returns can be pickled.
            label: what the jobs belong to, as ``mqttlab queue list`` shows it.
            observe: called with each of the engines' progress lines, while :meth:`results` is waited for.
            catalog: the URL of the catalog that takes the recordings.
        """
        self._queue = queue
        self._keep = keep
        self._label = label
        self._observe = observe
        self._catalog = catalog
        self._jobs: dict[str, Job] = {}
        self._all = Interruption()
        self._stack = contextlib.ExitStack()
        self._owner = ""
        self._heard = 0

    @property
    def asked(self) -> signal.Signals | None:
        """The signal that asked for the end of all, if one did."""
        return self._all.asked

    def __enter__(self) -> Self:
        self._owner = self._stack.enter_context(self._queue.owned())
        self._stack.enter_context(self._all.heard())
        last = self._queue.store.rows("SELECT MAX(seq) FROM event")[0][0]
        self._heard = int(last or 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if self._jobs:
                self.cancel()
                for _ in self.results():
                    pass

    def submit(self, job: Job) -> None:
        """Take a job; it begins when there is room."""
        self._queue.submit(job, label=self._label, catalog=self._catalog, keep=self._keep, owner=self._owner)
        self._jobs[job.identifier] = job

    def cancel(self, identifier: str | None = None) -> None:
        """End this job, or all: those that run keep what they recorded, those that wait are not begun."""
        self._queue.end([*self._jobs] if identifier is None else [identifier])

    def results(self) -> Iterator[Finished[T]]:
        """How jobs ended, as they end, until none of those that were taken is left.

        Raises:
            QueueError: the queue's file was removed, and with it the jobs.
        """
        alive_at, cancelled = time.monotonic(), False
        while self._jobs:
            if self._all.asked is not None and not cancelled:
                cancelled = True
                self.cancel()
            ended = self._ended()
            self._hear()
            for row in ended:
                job = self._jobs.pop(row["id"])
                yield self._finished(job, row)
            if time.monotonic() - alive_at > ALIVE_S:
                alive_at = time.monotonic()
                if not self._queue.store.is_there:
                    self._jobs.clear()
                    raise QueueError(f"{self._queue.store.path} was removed or replaced while jobs waited in it; "
                                     "what had begun may go on, what waited is lost: give the command again")
                self._queue.start()
            if not ended:
                time.sleep(LOOK_S)

    def _ended(self) -> list[sqlite3.Row]:
        return self._queue.store.rows(
            "SELECT * FROM job WHERE owner = ? AND state IN ('done', 'cancelled') AND taken = 0 ORDER BY ended_at, seq",
            (self._owner,))

    def _finished(self, job: Job, row: sqlite3.Row) -> Finished[T]:
        # What was kept is handed out once; the row stays for the list.
        self._queue.store.change("UPDATE job SET taken = 1, result = NULL, error = NULL WHERE id = ?",
                                 (job.identifier,))
        if row["error"] is not None:
            return Finished(job=job, error=pickle.loads(row["error"]))
        if row["result"] is not None:
            return Finished(job=job, kept=pickle.loads(row["result"]))
        if row["started_at"] is None:
            return Finished(job=job, error=Interrupted(f"{job.directory.name} was cancelled before it began"))
        outcome = Outcome(verdict=row["verdict"] or "incomplete", directory=Path(row["directory"]),
                          reason=row["reason"],
                          warnings=json.loads(row["warnings"] or "[]"))
        return Finished(job=job, kept=self._keep(job, outcome))

    def _hear(self) -> None:
        """Hand on what the engines have said meanwhile."""
        for number, identifier, line in self._queue.events(self._heard):
            self._heard = number
            job = self._jobs.get(identifier)
            if job is not None:
                self._observe(job, line)
