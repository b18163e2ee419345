"""Jobs on a Dask cluster: each worker says what it has (``cpu`` for simulations, ``live`` for live runs).

A worker performs a run in a scratch directory of its own, works out there what is kept of it, and stores the recording
by URL. It opens no catalog and no journal. When it dies, its engine ends with it and Dask gives its runs to others; the
same plan leaves the same recording there. A run whose recording is complete in its place is not performed again.

A live run that is shared by several engines (``live.parts``) takes as many workers, one such run at a time: the first
leads, and says where, the others are sent there. What a part has recorded goes to the first one; where that has died,
the others' rows are stored beside the run's place, and Dask begins the run again.

What it does not do: start workers, or move programs to them. They have this package, in this version, and the engine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlsplit

from mqttlab import scratch, secrets
from mqttlab.engine import EngineError, Interrupted, Interruption
from mqttlab.errors import MqttlabError, UsageError
from mqttlab.runs import storage
from mqttlab.runs.executor import Finished, Observe
from mqttlab.runs.job import Job, following, leading
from mqttlab.runs.machine import live_alone
from mqttlab.runs.perform import Outcome, perform
from mqttlab.version import __version__

T = TypeVar("T")
Keep = Callable[[Job, Outcome], T]
LOOK_S = 0.5
CONNECT_S = 10
TOPIC = "mqttlab"


class DaskCluster(Generic[T]):
    """Performs jobs on the workers of a Dask cluster. A context manager, as ``LocalPool`` is."""

    def __init__(self, address: str, keep: Keep[T], *, to: str,
                 observe: Observe = lambda job, progress: None) -> None:
        """Connect.

        Args:
            address: the scheduler's, such as ``tcp://10.0.0.1:8786``.
            keep: what is kept of a run, called on the worker; it is sent there, so it lies at the level of a module.
            to: a URL; recordings go below it, by the name of their directory.
            observe: called with some of the engines' progress lines.

        Raises:
            UsageError: there is no cluster, none of its workers has a resource, or they have another version.
        """
        try:
            import distributed
        except ImportError as error:
            raise UsageError(
                "--cluster: distributed is not installed; pip install 'mqttlab[cluster]'") from error
        connect: Any = distributed.Client
        try:
            self._client: Any = connect(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"--cluster {address}: no Dask scheduler answers there: {error}") from error
        self._keep, self._to, self._observe = keep, secrets.safe_url(to), observe
        self._jobs: dict[str, tuple[Job, Any]] = {}
        self._ended: queue.SimpleQueue[Finished[T]] = queue.SimpleQueue()
        self._all = Interruption()
        self._signals = contextlib.ExitStack()
        self._cancelled: set[str] = set()
        # Runs of several parts, each of which would hold workers that the other needs; and where part 0 of one listens.
        self._shared: list[Job] = []
        self._leading: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self._check(address)

    def _check(self, address: str) -> None:
        resources = self._resources()
        if not any({"cpu", "live"} & set(of_worker) for of_worker in resources):
            self._client.close()
            raise UsageError(f"--cluster {address}: none of its {len(resources)} workers has the resource cpu or live; "
                             "start them with: dask worker ADDRESS --resources \"cpu=4\"")
        others = sorted({version for version in self._client.run(_version).values() if version != __version__})
        if others:
            self._client.close()
            raise UsageError(f"--cluster {address}: its workers have mqttlab {', '.join(others)}, this is "
                             f"{__version__}; install one version")

    @property
    def asked(self) -> signal.Signals | None:
        """The signal that asked for the end of all, if one did."""
        return self._all.asked

    def room(self, resource: str) -> int:
        """How many runs that need this resource there is room for: ``cpu`` or ``live``."""
        return int(sum(of_worker.get(resource, 0) for of_worker in self._resources()))

    def _resources(self) -> list[dict[str, float]]:
        """What each worker has."""
        # `scheduler_info` may be of no worker: the client itself asks every other second, for none of them, and both
        # answers have one place.
        known = self._client.sync(self._client.scheduler.identity, n_workers=-1)
        return [worker.get("resources") or {} for worker in known["workers"].values()]

    def __enter__(self) -> Self:
        self._signals.enter_context(self._all.heard())
        self._client.subscribe_topic(TOPIC, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._signals:
            if self._jobs:
                self.cancel()
            with contextlib.suppress(Exception):
                self._client.unsubscribe_topic(TOPIC)
            self._client.close()

    def submit(self, job: Job) -> None:
        """Take a job; it begins when a worker has room.

        Raises:
            UsageError: the run is split into more parts than there are workers for live runs.
        """
        # They travel with the job; who reads the cluster's traffic reads them, unless it is tls://.
        job = dataclasses.replace(job, secrets=job.known_secrets | secrets.values_in(self._to))
        if job.parts == 1:
            self._submit(job)
            return
        if (room := self.room("live")) < job.parts:
            raise UsageError(f"`live.parts` is {job.parts}, but the cluster has room for {room} live runs; start more "
                             "workers with --resources \"live=1\"")
        self._shared.append(job)
        self._jobs[job.identifier] = job, None
        if self._shared[0] is job:
            self._submit(job)

    def _submit(self, job: Job) -> None:
        resource = "live" if job.plan["backend"] == "live" else "cpu"
        future = self._client.submit(
            _on_worker, job, self._keep, self._place(job), pure=False, resources={resource: 1},
            key=f"mqttlab-{job.identifier}")
        self._jobs[job.identifier] = job, future
        future.add_done_callback(lambda done, job=job: self._ended.put(_finished(job, done)))

    def _place(self, job: Job) -> str:
        return f"{self._to.rstrip('/')}/{job.directory.name}"

    def _send_parts(self) -> None:
        """Send the other parts to where part 0 of a run listens by now."""
        while not self._leading.empty():
            identifier, line = self._leading.get()
            if identifier not in self._jobs:
                continue
            job = self._jobs[identifier][0]
            for number in range(1, job.parts):
                future = self._client.submit(
                    _follow_on_worker, job, number, line["address"], line["boot"], f"{self._place(job)}.part-{number}",
                    pure=False, resources={"live": 1}, key=f"mqttlab-{identifier}-{number}-{line['address']}")
                future.add_done_callback(lambda done, identifier=identifier: self._look_at_part(identifier, done))

    def _look_at_part(self, identifier: str, done: Any) -> None:
        """A part that could not begin would be waited for."""
        with contextlib.suppress(Exception):
            if identifier in self._jobs and (done.status == "error" or done.result() == "failed"):
                _end_of(identifier, self._client).set()

    def _next_shared(self, ended: Job) -> None:
        if ended not in self._shared:
            return
        self._shared.remove(ended)
        if self._shared and self._shared[0].identifier in self._jobs:
            self._submit(self._shared[0])

    def cancel(self, identifier: str | None = None) -> None:
        """End this job, or all: those that run keep what they recorded, those that wait are not begun."""
        for one in [identifier] if identifier is not None else list(self._jobs):
            if one in self._jobs and one not in self._cancelled:
                self._cancelled.add(one)
                _end_of(one, self._client).set()
                job, future = self._jobs[one]
                if future is None:
                    self._shared.remove(job)
                    self._ended.put(Finished(
                        job=job, error=Interrupted(f"{job.directory.name} was cancelled before it began")))

    def results(self) -> Iterator[Finished[T]]:
        """How jobs ended, as they end, until none of those that were taken is left."""
        while self._jobs:
            if self._all.asked is not None:
                self.cancel()
            self._send_parts()
            try:
                finished = self._ended.get(timeout=LOOK_S)
            except queue.Empty:
                continue
            self._jobs.pop(finished.job.identifier, None)
            self._next_shared(finished.job)
            yield finished

    def _hear(self, event: tuple[Any, Any]) -> None:
        _, line = event
        found = self._jobs.get(line.get("run", "")) if isinstance(line, dict) else None
        if found is not None:
            if line["line"].get("event") == "leading":
                self._leading.put((line["run"], line["line"]))
            self._observe(found[0], line["line"])


def _end_of(identifier: str, client: Any) -> Any:
    """The cluster's event that asks for the end of a run."""
    from distributed import Event

    event: Any = Event
    return event(f"mqttlab-end-{identifier}", client=client)


def _version() -> str:
    return __version__


def _finished(job: Job, future: Any) -> Finished[Any]:
    """How a job ended, from its future."""
    if future.status == "finished":
        try:
            return Finished(job=job, kept=future.result())
        except Exception as error:
            return Finished(job=job, error=EngineError(f"its result cannot be fetched: {error}"))
    if future.status == "cancelled":
        return Finished(job=job, error=Interrupted(f"{job.directory.name} was cancelled before it began"))
    fault = future.exception()
    if isinstance(fault, MqttlabError):
        return Finished(job=job, error=fault)
    return Finished(job=job, error=EngineError(f"its worker failed: {type(fault).__name__}: {fault}"))


def _on_worker(job: Job, keep: Keep[T], url: str) -> T:
    """Perform a job on a worker: in a scratch directory, which goes when the recording is in its place."""
    secrets.learn(job.secrets)
    with scratch.directory("worker") as place:
        there = dataclasses.replace(job, directory=place / job.directory.name)
        if storage.is_complete(url):
            found = storage.fetch(url, place)
            return keep(there, Outcome(verdict="complete", directory=found))
        outcome = _performed(there)
        kept = keep(there, outcome)
        if outcome.directory.is_dir():
            storage.store(outcome.directory, url)
        return kept


def _follow_on_worker(job: Job, number: int, lead: str, boot: str, url: str) -> str:
    """Perform a part of a run, whose part 0 is elsewhere; in a word, how it ended.

    Where part 0 is on this machine, it holds that for all of its parts.
    """
    secrets.learn(job.secrets)
    with scratch.directory("worker") as place:
        part = following(job, number, lead, place / f"{job.directory.name}.part-{number}")
        outcome = _performed(part, alone=boot != _boot())
        if outcome.directory.is_dir():
            storage.store(outcome.directory, url)
        return outcome.verdict


def _own_address() -> str:
    """Where other workers reach this one's machine, with a port that the kernel chooses."""
    from distributed import get_worker

    host = urlsplit(get_worker().address).hostname or "127.0.0.1"
    return f"{socket.gethostbyname(host)}:0"


def _boot() -> str:
    """Which machine this is, until it is started again."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _performed(job: Job, alone: bool = True) -> Outcome:
    """The engine's run, with its progress told and its end watched for."""
    if job.parts > 1 and not job.part:
        job = leading(job, _own_address())
    interruption, over = Interruption(), threading.Event()
    watcher = threading.Thread(target=_watch, args=(job.identifier, interruption, over), daemon=True)
    watcher.start()
    # What other parts see is in part 0's lines.
    observe = _teller(job.identifier) if "--part" not in job.part else lambda line: None
    try:
        if job.plan["backend"] != "live" or not alone:
            return perform(job, observe, interruption)
        with live_alone(lambda: interruption.asked is not None, what=str(job.directory)) as lock:
            if lock is None:
                raise Interrupted(f"{job.directory.name} was cancelled before it began")
            return perform(job, observe, interruption, (lock,))
    finally:
        over.set()


def _watch(identifier: str, interruption: Interruption, over: threading.Event) -> None:
    """End the run when the cluster's event of its name is set."""
    from distributed import get_client

    while not over.wait(LOOK_S):
        with contextlib.suppress(Exception):
            if _end_of(identifier, get_client()).is_set():
                interruption.end(signal.SIGTERM)
                return


def _teller(identifier: str) -> Callable[[dict[str, Any]], None]:
    """Tells phases, and a tick a second."""
    from distributed import get_worker

    worker, last = get_worker(), [0.0]

    def tell(line: dict[str, Any]) -> None:
        now = time.monotonic()
        if line.get("event") == "tick" and now - last[0] < 1:
            return
        last[0] = now
        if line.get("event") == "leading":
            line = {**line, "boot": _boot()}
        with contextlib.suppress(Exception):
            worker.log_event(TOPIC, {"run": identifier, "line": line})

    return tell
