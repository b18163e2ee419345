"""Many jobs: an executor takes them, performs some at once, and hands out how each ended.

:class:`Executor` is what a study or an experiment needs of whoever performs its runs; :class:`LocalPool` performs them
on this machine, each in an engine of its own. What is kept of a recording is worked out where the recording is, by
``keep``, so that an executor on other machines need not send recordings about.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from mqttlab.engine import Interrupted, Interruption
from mqttlab.runs.job import Job
from mqttlab.runs.machine import live_alone
from mqttlab.runs.perform import Outcome, perform

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Observe = Callable[[Job, dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Finished(Generic[T_co]):
    """How a job ended: with what was kept of it, or with an error."""

    job: Job
    kept: T_co | None = None
    error: BaseException | None = None

    def result(self) -> T_co:
        """What was kept.

        Raises:
            BaseException: the job ended with this one; :class:`Interrupted` where it was cancelled before it began.
        """
        if self.error is not None:
            raise self.error
        return self.kept  # type: ignore[return-value]


class Executor(Protocol[T_co]):
    """Performs jobs."""

    def submit(self, job: Job) -> None:
        """Take a job; it begins when there is room."""

    def cancel(self, identifier: str | None = None) -> None:
        """End this job, or all: those that run keep what they recorded, those that wait are not begun."""

    def results(self) -> Iterator[Finished[T_co]]:
        """How jobs ended, as they end, until none of those that were taken is left."""


class LocalPool(Generic[T]):
    """Performs jobs on this machine, ``jobs`` at once. A context manager: at its end nothing runs any more.

    Within it Ctrl-C, SIGTERM and SIGHUP cancel all, if it was entered in the main thread; :meth:`cancel` works from any
    thread. After a signal no further job is begun.
    """

    def __init__(self, keep: Callable[[Job, Outcome], T], *, jobs: int | None = None,
                 observe: Observe = lambda job, progress: None, live_alone: bool = False,
                 waiting: Callable[[str], None] = lambda words: None) -> None:
        """Make a pool.

        Args:
            keep: what is kept of a run, called in the thread that waited for it.
            jobs: engines at once; as many as there are processors when left out.
            observe: called with each of the engines' progress lines.
            live_alone: a live run waits until no other one holds the machine, those of other programs included.
            waiting: told for which one it waits, where it has to.
        """
        # Loaded by who runs something, and not by who lists what was run; so are others of these rooms.
        from concurrent.futures import ThreadPoolExecutor

        self._keep = keep
        self._observe = observe
        self._live_alone = live_alone
        self._waiting = waiting
        self._threads = ThreadPoolExecutor(jobs or os.cpu_count() or 1)
        self._all = Interruption()
        self._each: dict[str, Interruption] = {}
        self._ended: queue.SimpleQueue[Finished[T]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._left = 0
        self._signals = contextlib.ExitStack()

    @property
    def asked(self) -> signal.Signals | None:
        """The signal that asked for the end of all, if one did."""
        return self._all.asked

    def __enter__(self) -> Self:
        self._signals.enter_context(self._all.heard())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The threads wait for their engines, whose recordings are of no use where it is left in the middle.
        with self._signals:
            if self._left:
                self.cancel()
            self._threads.shutdown()

    def submit(self, job: Job) -> None:
        """Take a job; it begins when there is room."""
        interruption = Interruption()
        with self._lock:
            self._each[job.identifier] = interruption
            self._left += 1
        self._threads.submit(self._perform, job, interruption)

    def cancel(self, identifier: str | None = None) -> None:
        """End this job, or all: those that run keep what they recorded, those that wait are not begun."""
        interruption = self._all if identifier is None else self._each.get(identifier)
        if interruption is not None:
            interruption.end(signal.SIGTERM)

    def results(self) -> Iterator[Finished[T]]:
        """How jobs ended, as they end, until none of those that were taken is left."""
        while self._left:
            finished = self._ended.get()
            with self._lock:
                self._left -= 1
                del self._each[finished.job.identifier]
            yield finished

    def _perform(self, job: Job, interruption: Interruption) -> None:
        try:
            with self._all.passing_on(interruption):
                if interruption.asked is not None:
                    raise Interrupted(f"{job.directory.name} was cancelled before it began")
                outcome = self._outcome(job, interruption)
            self._ended.put(Finished(job=job, kept=self._keep(job, outcome)))
        except BaseException as error:
            self._ended.put(Finished(job=job, error=error))

    def _outcome(self, job: Job, interruption: Interruption) -> Outcome:
        def observe(progress: dict[str, Any]) -> None:
            self._observe(job, progress)

        if not self._live_alone or job.plan["backend"] != "live":
            return perform(job, observe, interruption)
        with live_alone(lambda: interruption.asked is not None, what=str(job.directory),
                        waiting=self._waiting) as lock:
            if lock is None:
                raise Interrupted(f"{job.directory.name} was cancelled before it began")
            return perform(job, observe, interruption, (lock,))
