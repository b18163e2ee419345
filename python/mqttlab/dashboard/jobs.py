"""What is started from the browser goes to the queue, and what the page knows of it comes from there.

```text
  dashboard ──► queue.db ──► queue process ──► engine ──► recording below the runs
      ▲             │  jobs, their states, the engines' progress lines
      └─────────────┘
```

The dashboard has no process of its own and keeps nothing: it may be closed, killed and started again, and several may
look at the same queue.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from mqttlab.catalog import url_for
from mqttlab.dashboard.configure import drafts
from mqttlab.queue import Queue, QueuedJob
from mqttlab.queue.client import Driver
from mqttlab.queue.store import EVERYTHING
from mqttlab.runs import Announced, Job, going_on, taken_directory
from mqttlab.scenario import Scenario, ScenarioError, compile_plan
from mqttlab.scenario.needs import need_secrets, need_servers, room
from mqttlab.scenario.secret import without_secrets

TENDED_EVERY_S = 2.0
OPEN = ("pending", "held", "running")
# From the engine's start to publishing, and from the end of publishing to the finished recording.
AROUND_S = 3.0


class Jobs:
    """Runs in the queue, as seen from one directory of recordings."""

    def __init__(self, runs: Path, queue: Path | None = None, catalog: str | None = None) -> None:
        """Make it; the queue is opened when it is first needed.

        Args:
            runs: where recordings go.
            queue: the queue's directory; the user's own when left out.
            catalog: the URL of the catalog that takes them in, or ``none``; when left out ``catalog.db`` in ``runs``.
        """
        self.runs = runs
        self.catalog = None if catalog == "none" else catalog or url_for(runs)
        self._where = queue
        self._tended = 0.0
        # Plans do not change, and are long to read.
        self._lengths: dict[str, float] = {}
        self._took: tuple[float, dict[tuple[str, str], float]] = (-TENDED_EVERY_S, {})

    @cached_property
    def queue(self) -> Queue:
        """The queue.

        Raises:
            QueueError: it cannot be written to.
        """
        return Queue(self._where)

    def start(self, toml: str, *, held: bool = False) -> list[str]:
        """Hand all repetitions of a scenario over, and return their identifiers.

        Args:
            toml: the scenario.
            held: they wait until they are resumed.

        Raises:
            ScenarioError: it cannot be run, or not from a browser.
            QueueError: the queue does not take it.
            OSError: nothing can be written below the runs.
        """
        origin = {"scenario": {"toml": without_secrets(toml), "settings": {}}}
        return self.start_scenario(drafts.check(toml), origin, held=held)

    def start_scenario(self, scenario: Scenario, origin: dict[str, Any] | None = None, *, held: bool = False,
                       ) -> list[str]:
        """:meth:`start`, of a scenario that may be run: the dashboard's own, or one that was checked."""
        need_servers(scenario)
        need_secrets(scenario)
        wanted, free = room(scenario, self.runs)
        if wanted > free:
            raise ScenarioError(f"scenario: its recording would take about {wanted / 1e6:,.0f} MB, and the disk has "
                                f"{free / 1e6:,.0f} MB free; shorten `phases.duration`, or set `recording.detail = "
                                "\"messages\"`")
        begun = []
        for repetition in range(scenario.repetitions):
            with taken_directory(scenario.name, repetition, scenario.repetitions, self.runs) as (directory, promise):
                job = Job(compile_plan(scenario, repetition), directory, origin=origin)
                self.queue.submit(job, label=scenario.name, catalog=self.catalog, held=held)
                promise.of(None)
            begun.append(job.identifier)
        return begun

    def going_on(self) -> list[QueuedJob]:
        """What waits and what runs, in the queue's order."""
        self._tend()
        return self.queue.jobs()

    def elsewhere(self) -> list[Announced]:
        """The runs below :attr:`runs` that go on and are not this queue's: those of commands, and of other queues."""
        # One of the queue's may have ended a moment before its announcement goes.
        mine = {job.directory for job in self.queue.jobs(all_=True)}
        return [run for run in going_on() if run.directory not in mine and self.has(run)]

    def outside(self) -> list[Announced]:
        """The runs of this user that go on and whose recordings are not below :attr:`runs`."""
        return [run for run in going_on() if not self.has(run)]

    def has(self, job: QueuedJob | Announced) -> bool:
        """Whether a job's recording is below :attr:`runs`. One queue performs the runs of all directories."""
        return self._name_of(job.directory) is not None

    def experiments(self) -> list[Driver]:
        """The experiments below :attr:`runs` that the queue performs, or will."""
        return [one for one in self.queue.drivers() if one.command[:1] == ["experiment"] and (
            "--runs" not in one.command or self._name_of(Path(one.command[one.command.index("--runs") + 1])) == ".")]

    def _name_of(self, directory: Path) -> str | None:
        # Either may be written from where a command was given, or through a link.
        real, runs = directory.resolve(), self.runs.resolve()
        return str(real.relative_to(runs)) if real.is_relative_to(runs) else None

    def ended(self, limit: int) -> list[QueuedJob]:
        """What has ended last below :attr:`runs`, the latest first."""
        jobs = [job for job in self.queue.jobs(all_=True) if job.state not in OPEN and self.has(job)]
        return sorted(jobs, key=lambda job: job.ended_at or "", reverse=True)[:limit]

    def directory_of(self, identifier: str) -> Path | None:
        """Where a job's recording will be; nothing where there is no such job."""
        return next((job.directory for job in self.queue.jobs(all_=True) if job.identifier == identifier), None)

    def run_of(self, job: QueuedJob | Announced) -> str | None:
        """The name of a job's recording below these runs; nothing where it has none, or is elsewhere."""
        return self._name_of(job.directory) if (job.directory / "plan.json").is_file() else None

    @property
    def paused(self) -> bool:
        """Whether nothing begins."""
        return EVERYTHING in self.queue.held()

    def cancel(self, identifier: str) -> bool:
        """End a job: what runs keeps what it has recorded, what waits is not begun. False where it has ended."""
        return self.queue.end([identifier]) > 0

    def resume(self, name: str = "") -> list[str]:
        """Let a job begin that is held, or everything; returns what was held."""
        return self.queue.resume([name] if name else [])

    def left_s(self, going_on: Sequence[QueuedJob]) -> dict[str, float | None]:
        """How long each of these jobs still takes, in seconds of real time; nothing where nobody knows.

        A live run takes as long as its phases; a simulation as long as complete ones of its name took, or, once it
        runs, as its speed says.
        """
        if any(job.identifier not in self._lengths for job in going_on):
            self._lengths = self.queue.lengths_s()
        if time.monotonic() - self._took[0] > TENDED_EVERY_S:
            self._took = (time.monotonic(), self.queue.took_s())
        found: dict[str, float | None] = {}
        for job in going_on:
            length = self._lengths.get(job.identifier, 0.0)
            known = length + AROUND_S if job.backend == "live" else self._took[1].get((job.name, job.backend))
            found[job.identifier] = _left(job, length, known)
        return found

    def _tend(self) -> None:
        """Begin the queue's process where it was killed, and something waits for it."""
        if time.monotonic() - self._tended < TENDED_EVERY_S:
            return
        self._tended = time.monotonic()
        waiting = not self.paused and (any(job.state != "held" for job in self.queue.jobs()) or self.queue.drivers())
        if waiting and not self.queue.is_running:
            self.queue.start()


def _left(job: QueuedJob, length_s: float, known_s: float | None) -> float | None:
    """Of a job that takes so long in all, as far as that is known."""
    if job.state != "running":
        return known_s
    at, speed = job.progress.get("at_ns"), job.progress.get("speed")
    if not isinstance(at, int):
        return known_s
    rest = max(0.0, length_s - at / 1e9)
    if job.backend == "live":
        return rest
    return rest / speed if isinstance(speed, (int, float)) and speed > 0 else None
