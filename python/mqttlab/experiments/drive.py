"""The loop that runs an experiment: begins what is needed next, writes down what has ended, until nothing is left.

Simulations run as many at once as the executor has room for; a live run has the machine to itself. What is begun stands
in the journal before the executor hears of it, so that a death at any point loses no run and repeats none.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mqttlab import secrets
from mqttlab.engine import Interrupted
from mqttlab.errors import MqttlabError
from mqttlab.experiments import journal
from mqttlab.experiments.directory import ExperimentDirectory
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.keep import Kept
from mqttlab.experiments.load import digest_of
from mqttlab.experiments.schedule import Records, Task, wanted
from mqttlab.runs import Executor, Finished, Job
from mqttlab.runs.job import ulid


class Observer(Protocol):
    """Who is told how an experiment goes on."""

    def began(self, record: RunRecord, task: Task) -> None:
        """A run was handed to the executor."""

    def ended(self, record: RunRecord) -> None:
        """A run has ended."""


@dataclass(kw_only=True)
class Finish:
    """How driving an experiment ended."""

    records: list[RunRecord]
    """All runs of the journal."""
    given_up: list[Task]
    """Runs without a result, however often they were tried."""
    left_out: list[Task]
    """Runs that were not begun, because a threshold had ended one of their point."""
    pending: list[Task]
    """Runs that are left, because the end was asked for."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return not self.pending


class Silent:
    """Tells nobody."""

    def began(self, record: RunRecord, task: Task) -> None:
        """A run was handed to the executor."""

    def ended(self, record: RunRecord) -> None:
        """A run has ended."""


@dataclass
class _Drive:
    directory: ExperimentDirectory
    executor: Executor[Kept]
    observer: Observer
    stop: Callable[[], bool]
    width: int
    aborted: Callable[[str], str | None]
    tasks: Callable[[Records], list[Task]]
    to: str | None
    alone: bool
    running: dict[str, tuple[RunRecord, Task]] = field(default_factory=dict)
    queue: deque[Task] = field(default_factory=deque)
    records: list[RunRecord] = field(default_factory=list)

    def answers(self) -> Records:
        return Records(self.records, self.directory.experiment.file.attempts)

    def fill(self) -> bool:
        """Begin what there is room for; whether anything runs."""
        while len(self.running) < self.width and not self.stop():
            task = self.next()
            if task is None:
                break
            self.begin(task)
        return bool(self.running)

    def next(self) -> Task | None:
        """What is begun next: nothing beside a live run."""
        if not self.queue:
            answers, busy = self.answers(), {task.key for _, task in self.running.values()}
            self.queue.extend(task for task in self.tasks(answers)
                              if not answers.settled(task) and task.key not in busy)
        while self.queue and self.answers_left_out(self.queue[0]):
            self.queue.popleft()
        if not self.queue:
            return None
        live = any(record.backend == "live" for record, _ in self.running.values())
        if self.alone and self.running and (live or self.is_live(self.queue[0])):
            return None
        return self.queue.popleft()

    def answers_left_out(self, task: Task) -> bool:
        aborted = any(record.state == "aborted" and record.point_key == task.point.key for record in self.records)
        return aborted and task.kind == "run"

    def is_live(self, task: Task) -> bool:
        return str(self.directory.experiment.values_at(task.point).get("backend", "live")) == "live"

    def begin(self, task: Task) -> None:
        experiment = self.directory.experiment
        scenario = experiment.scenario_at(task.point)
        seed = experiment.seed_of(task.point, task.block, task.kind)
        plan = experiment.plan(scenario, seed=seed, repetition=task.block)
        run = ulid()
        name = {"run": "p", "control": "control-p", "pilot": "pilot-p"}[task.kind]
        place = Path("runs", f"{name}{task.point.number:03d}-b{task.block:03d}-{run[-6:]}")
        order = max((record.order_no for record in self.records), default=-1) + 1
        event = self.directory.journal.append(
            "began", run=run, kind=task.kind, point=task.point.number, point_key=task.point.key,
            levels={name: level.text for name, level in task.point.levels.items()}, block=task.block,
            repetition=task.block, order_no=order, seed=seed,
            attempt=1 + sum(record.task == task.key and not record.stale for record in self.records),
            plan_digest=digest_of(plan), backend=plan["backend"],
            directory=str(place) if self.to is None else f"{self.to.rstrip('/')}/{place.name}")
        record = journal.began(event)
        self.records.append(record)
        self.running[run] = record, task
        self.observer.began(record, task)
        self.executor.submit(Job(plan, (self.directory.path / place).absolute(), run))

    def end(self, finished: Finished[Kept]) -> None:
        record, task = self.running.pop(finished.job.identifier)
        event = self._ended(record, finished)
        after = journal.ended(record, event)
        self.records[next(i for i, each in enumerate(self.records) if each.run == record.run)] = after
        if not self.directory.experiment.file.keep_recordings and after.state == "done":
            shutil.rmtree(finished.job.directory, ignore_errors=True)
        self.observer.ended(after)
        if not self.answers().settled(task):
            self.queue.append(task)

    def _ended(self, record: RunRecord, finished: Finished[Kept]) -> dict[str, Any]:
        threshold = self.aborted(record.run)
        try:
            kept = finished.result()
        except Interrupted as error:
            return self.directory.journal.append("ended", run=record.run, verdict="incomplete", interrupted=True,
                                                 reason=str(error))
        except MqttlabError as error:
            return self.directory.journal.append("ended", run=record.run, verdict="failed", reason=str(error))
        if threshold is not None and kept.verdict != "complete":
            return self.directory.end(record, _because(kept, threshold), aborted=True)
        # An engine that is told to end before it has taken its directory has failed for the same reason.
        asked = kept.verdict != "complete" and self.stop()
        return self.directory.end(record, kept, interrupted=asked)


def _because(kept: Kept, reason: str) -> Kept:
    return Kept(**{**vars(kept), "reason": reason})


def drive(
    directory: ExperimentDirectory, executor: Executor[Kept], *, observer: Observer | None = None,
    stop: Callable[[], bool] = lambda: False, width: int = 1, aborted: Callable[[str], str | None] = lambda run: None,
    tasks: Callable[[Records], list[Task]] | None = None, to: str | None = None, alone: bool = True,
) -> Finish:
    """Run what an experiment needs, until nothing is left or the end is asked for.

    Args:
        directory: held by the caller (:meth:`ExperimentDirectory.driven`), and settled.
        executor: performs the runs; its ``keep`` is :func:`mqttlab.experiments.keep.keeping`.
        observer: told what begins and ends.
        stop: whether the end was asked for; nothing is begun then.
        width: how many simulations are handed to the executor at once.
        aborted: the threshold for which a run (by its identifier) was cancelled, if one was.
        tasks: what is needed, instead of what the design says; for pilot runs.
        to: the URL below which the executor puts recordings; the experiment's directory when left out.
        alone: nothing is begun beside a live run; for executors of one machine.
    """
    experiment = directory.experiment
    # The journal has the place of each recording.
    to = None if to is None else secrets.safe_url(to)

    def design(answers: Records) -> list[Task]:
        return wanted(experiment, answers)

    going = _Drive(directory, executor, observer or Silent(), stop, width, aborted, tasks or design, to, alone,
                   records=directory.runs())
    while going.fill():
        for finished in executor.results():
            going.end(finished)
            going.fill()
    answers = going.answers()
    needed = going.tasks(answers)
    return Finish(
        records=going.records, given_up=[task for task in needed if answers.given_up(task)],
        left_out=[task for task in needed if answers.left_out(task)],
        pending=[task for task in needed if not answers.settled(task)])

