"""Which runs an experiment needs next: worked out anew from what has ended, and from nothing else.

:func:`wanted` returns, in order, every run that is known to be needed by now, those that are done included. With a
fixed number of repetitions that is all of them; a rule for repetitions adds a block when the one before is settled, a
search a level when the one before is decided. Because no state is kept beside the journal, going on is the
same as beginning.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from mqttlab.experiments.factors import Factor, Level
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.load import Experiment
from mqttlab.experiments.model import Repetitions, Search
from mqttlab.experiments.points import Point, point
from mqttlab.experiments.responses import (
    UNDELIVERED,
    Response,
    bound,
    chosen,
    is_cut_off,
    judged_of,
    response_of,
    too_few,
    under_way,
)
from mqttlab.statistics import mean_interval, proportion_interval

SEARCH_STEPS_MAX = 60
Answer = Literal["holds", "fails", "void"]
"""Of a level: its criterion holds, does not hold, or too few of its runs have a valid result to say."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A run that is needed."""

    kind: str
    """``run``, ``control`` or ``pilot``."""
    point: Point
    block: int

    @property
    def key(self) -> str:
        """Of equal tasks equal: point, block and kind."""
        return f"{self.kind}/{self.point.key}/{self.block}"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search has found for one combination of the other factors: an interval."""

    start: Point
    """Levels of the other factors."""
    holds_at: Level | None
    """The largest level at which the criterion holds; ``None``: not even at the lowest."""
    fails_at: Level | None
    """The smallest at which it does not; ``None``: none was found."""
    void_at: Level | None = None
    """The smallest level above ``holds_at`` without a valid result, where there is one: whether it holds there is not
    known. ``fails_at`` is then no neighbour of ``holds_at``."""
    decided: bool
    """Whether the interval is as narrow as was asked for, and both its ends have a result."""
    open: bool = False
    """Whether runs are still to be done."""
    too_few: bool = False
    """Whether runs at ``void_at`` have a percentile, of too few values to judge by it."""


class Answers(Protocol):
    """What has become of tasks."""

    def settled(self, task: Task) -> bool:
        """Whether nothing more will be done for it."""

    def values(self, task: Task) -> RunRecord | None:
        """The run that counts, where one does."""


class Records:
    """What has become of tasks, from the journal's runs."""

    def __init__(self, runs: Iterable[RunRecord], attempts: int) -> None:
        self._attempts = attempts
        self._by_task: dict[str, list[RunRecord]] = {}
        self._aborted: set[str] = set()
        for record in runs:
            if not record.stale:
                self._by_task.setdefault(record.task, []).append(record)
                if record.state == "aborted":
                    self._aborted.add(record.point_key)

    def of(self, task: Task) -> list[RunRecord]:
        """The attempts at a task."""
        return self._by_task.get(task.key, [])

    def values(self, task: Task) -> RunRecord | None:
        """The run that counts, where one does."""
        return next((record for record in self.of(task) if record.state in ("done", "aborted")), None)

    def given_up(self, task: Task) -> bool:
        """Whether it was tried often enough without a result; what others interrupted does not count. A simulation that
        is not valid would be the same again: its seed is."""
        wrong = [record for record in self.of(task)
                 if record.state in ("failed", "invalid", "incomplete") and not record.interrupted]
        same_again = any(record.state == "invalid" and record.backend == "sim" for record in wrong)
        return self.values(task) is None and (same_again or len(wrong) >= self._attempts)

    def left_out(self, task: Task) -> bool:
        """Whether a threshold has ended a run of its point, so that no other is begun."""
        return task.point.key in self._aborted and task.kind == "run" and not self.of(task)

    def settled(self, task: Task) -> bool:
        """Whether nothing more will be done for it."""
        return self.values(task) is not None or self.given_up(task) or self.left_out(task)

    def running(self, task: Task) -> bool:
        """Whether it is being performed."""
        return any(record.state == "running" for record in self.of(task))


def wanted(experiment: Experiment, answers: Answers) -> list[Task]:
    """Every run that is needed, as far as is known by now, in order."""
    file = experiment.file
    if file.search is not None:
        return _searched(experiment, file.search, answers)
    if isinstance(file.repetitions, Repetitions):
        return _until(experiment, file.repetitions, answers)
    return with_controls(experiment, [
        task for number in range(file.repetitions) for task in block(experiment, experiment.design.points, number)])


def most(experiment: Experiment) -> int:
    """How many runs there are at most, control runs included."""
    file, points = experiment.file, len(experiment.design.points)
    if file.search is not None:
        factor = _searched_factor(experiment, file.search)
        steps = len(factor.levels).bit_length() + 2 if factor.ends is None else _bisections(factor, file.search) + 2
        runs = points * steps * file.search.counts[1]
    else:
        runs = points * (file.repetitions.max if isinstance(file.repetitions, Repetitions) else file.repetitions)
    return runs + (runs // file.control if file.control else 0)


def block(experiment: Experiment, points: Sequence[Point], number: int) -> list[Task]:
    """Every one of these points once, in this block's order."""
    order = list(points)
    if experiment.file.order == "random-blocks":
        random.Random(f"{experiment.seed}/order/{number}").shuffle(order)
    return [Task(kind="run", point=each, block=number) for each in order]


def with_controls(experiment: Experiment, tasks: Sequence[Task]) -> list[Task]:
    """The reference point in between, after every so many runs."""
    every, reference = experiment.file.control, experiment.design.reference
    if every is None or reference is None:
        return list(tasks)
    mixed: list[Task] = []
    for index, task in enumerate(tasks, start=1):
        mixed.append(task)
        if index % every == 0:
            # Control runs are numbered in place of a block: each has a seed of its own.
            mixed.append(Task(kind="control", point=reference, block=index // every - 1))
    return mixed


def _until(experiment: Experiment, rule: Repetitions, answers: Answers) -> list[Task]:
    """Blocks until every point's interval is narrow enough: looked at after each block from the minimum on."""
    points = list(experiment.design.points)
    tasks: list[Task] = []
    for number in range(rule.max):
        if number >= rule.min:
            if not all(answers.settled(task) for task in tasks):
                break
            points = [each for each in points if not _narrow(rule, each, tasks, answers)]
        if not points:
            break
        tasks += block(experiment, points, number)
    return with_controls(experiment, tasks)


def _narrow(rule: Repetitions, at: Point, tasks: Sequence[Task], answers: Answers) -> bool:
    response = response_of(rule.until)
    found = [answers.values(task) for task in tasks if task.point.key == at.key]
    # Between the largest of a few lies no percentile, and their agreement is none of it.
    if any(record is not None and too_few(record.responses, response) is not None for record in found):
        return False
    values = [value for record in found if record is not None
              if (value := chosen(record.responses, response)) is not None]
    if len(values) < 2:
        return False
    interval = mean_interval(values)
    share = rule.until.half_width[0] / rule.until.half_width[1]
    return (interval.high - interval.low) / 2 <= share * abs(interval.estimate)


def _searched_factor(experiment: Experiment, search: Search) -> Factor:
    return next(factor for factor in experiment.factors if factor.name == search.factor)


def _bisections(factor: Factor, search: Search) -> int:
    """Halvings until the interval is narrow enough, wherever it lies."""
    assert factor.ends is not None
    first, last = factor.ends
    width = search.tolerance[0] / search.tolerance[1] or 1e-6
    low = max(first.value, last.value * 1e-3)
    if factor.scale == "logarithmic":
        return max(1, math.ceil(math.log2(math.log(last.value / first.value) / -math.log1p(-min(width, 0.999)))))
    return max(1, math.ceil(math.log2((last.value - first.value) / (width * max(low, 1e-12)))))


def _searched(experiment: Experiment, search: Search, answers: Answers) -> list[Task]:
    tasks: list[Task] = []
    for start in experiment.design.points:
        runs, _ = search_from(experiment, search, start, answers)
        tasks += runs
    return tasks


def search_from(experiment: Experiment, search: Search, start: Point, answers: Answers) -> tuple[list[Task], Found]:
    """The runs of one bisection as far as they are decided, and what they have found.

    The lowest level is looked at first, then the highest; the interval between a level at which the criterion holds and
    one at which it does not is halved until it is as narrow as the tolerance, or until no level lies between them.
    """
    factor = _searched_factor(experiment, search)
    tasks: list[Task] = []
    looked: dict[float, Answer | None] = {}
    few: set[float] = set()

    def look(share: float) -> Answer | None:
        level = factor.at(share)
        at = point(experiment.factors, {**start.levels, factor.name: level}, start.number)
        runs = [Task(kind="run", point=at, block=number) for number in range(search.counts[1])]
        tasks.extend(task for task in runs if task.key not in {other.key for other in tasks})
        looked[share] = _answer(search, runs, answers)
        if any((record := answers.values(task)) is not None and is_too_few(search, record) for task in runs):
            few.add(share)
        return looked[share]

    def found(low: float | None, *, is_open: bool = False) -> tuple[list[Task], Found]:
        fails, void = (min((share for share, answer in looked.items() if answer == wanted), default=None)
                       for wanted in ("fails", "void"))
        # Above a level at which it does not hold nothing is asked.
        void = None if void is None or (fails is not None and fails < void) else void
        holds_at, fails_at, void_at = (None if share is None else factor.at(share) for share in (low, fails, void))
        return tasks, Found(start=start, holds_at=holds_at, fails_at=fails_at, void_at=void_at,
                            decided=not is_open and void is None, open=is_open, too_few=void in few)

    low, high = 0.0, 1.0
    lowest = look(low)
    if lowest != "holds":
        return found(None, is_open=lowest is None)
    highest = look(high)
    if highest is None or highest == "holds":
        return found(high if highest else low, is_open=highest is None)
    for _ in range(SEARCH_STEPS_MAX):
        middle = _middle(factor, search, low, high)
        if middle is None:
            break
        answer = look(middle)
        if answer is None:
            return found(low, is_open=True)
        # A level without a valid result bounds the search from above: those below it may have one.
        low, high = (middle, high) if answer == "holds" else (low, middle)
    return found(low)


def _middle(factor: Factor, search: Search, low: float, high: float) -> float | None:
    """A share between two, or none where the interval is narrow enough."""
    if factor.ends is None:
        count = len(factor.levels)
        first, last = (min(int(share * count), count - 1) for share in (low, high))
        return None if last - first <= 1 else ((first + last) // 2 + 0.5) / count
    below, above = factor.at(low), factor.at(high)
    middle = factor.at((low + high) / 2)
    if middle.text in (below.text, above.text):
        return None
    assert below.value is not None
    assert above.value is not None
    width = search.tolerance[0] / search.tolerance[1]
    return None if above.value - below.value <= width * abs(above.value) else (low + high) / 2


def _answer(search: Search, runs: Sequence[Task], answers: Answers) -> Answer | None:
    """What the runs of a level say; ``None`` while that is open.

    A run that was given up says nothing of the criterion: a machine that is too slow is not the broker's limit. Nor
    does a percentile of too few deliveries.
    """
    holds, of = search.counts
    settled = [task for task in runs if answers.settled(task)]
    records = [None if record is not None and is_too_few(search, record) else record
               for record in map(answers.values, settled)]
    good = sum(record is not None and met(search, record) for record in records)
    without = 0 if any(record is not None and record.state == "aborted" for record in records) else records.count(None)
    if good >= holds:
        return "holds"
    if len(settled) - good - without > of - holds:
        return "fails"
    return "void" if len(settled) == of else None


def met(search: Search, record: RunRecord) -> bool:
    """Whether a run fulfils a search's criterion."""
    criterion = search.criterion
    response = judged_of(criterion)
    value = chosen(record.responses, response)
    # A valid run has no latency if nothing arrived.
    if value is None:
        return False
    if criterion.below is not None:
        # What was under way at the end would be later than what was delivered.
        if is_cut_off(response, under_way(record.responses, response)):
            return False
        return value < bound(criterion.metric, criterion.below)
    assert criterion.above is not None
    return value > bound(criterion.metric, criterion.above)


def is_too_few(search: Search, record: RunRecord) -> bool:
    """Whether a run's value is a percentile of too few values, and what was under way does not decide."""
    response = judged_of(search.criterion)
    n = too_few(record.responses, response)
    if n is None or record.state == "aborted" or chosen(record.responses, response) is None:
        return False
    return search.criterion.below is None or not _is_surely_cut_off(response, n, record)


def _is_surely_cut_off(response: Response, delivered: int, record: RunRecord) -> bool:
    """Whether so much was under way that chance does not explain it: one of fifty says nothing of the 99th."""
    missing = (chosen(record.responses, replace(response, metric=UNDELIVERED)) or 0.0) / 100
    if missing >= 1:
        return True
    expected = round(delivered / (1 - missing))
    late = round(expected * under_way(record.responses, response) / 100)
    return is_cut_off(response, 100 * proportion_interval(late, expected).low)


def found_by(experiment: Experiment, search: Search, answers: Answers) -> Mapping[str, Found]:
    """What a search has found so far, by the other factors' levels."""
    found = [search_from(experiment, search, start, answers)[1] for start in experiment.design.points]
    return {str(each.start): each for each in found}
