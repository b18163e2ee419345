"""Thresholds: held, broken or undecided, judged on the confidence limit.

Over several runs the unit is the run: a t interval (``mqttlab.statistics``) of the metric's values. Of a single run
there is an interval of its own for the mean latency (batch means), and none missing of N deliveries counts as "less
than 3/N"; a share of N that lies beyond a bound breaks it by Wilson's interval, and does not hold one, for losses
cluster. Any other metric of a single run is judged on its value only where the bound is broken or met by an exact
count, and is undecided otherwise.

A bound holds where the whole interval lies on its right side, is broken where all of it lies on the wrong side, and is
undecided in between. A run that a threshold has ended has broken it.

A latency is that of what was delivered. Where more was under way at the end of the runs than a quantile leaves out, a
bound from above is not held: the rest would have come later (censored from the right).

A percentile of too few deliveries is the largest of them, and more runs do not change that: it is undecided, also where
only a baseline has so few.

A bound on ``messages_lost_percent`` is judged by ``undelivered_percent``, and says so: what was still under way when a
run ended is not lost, but has not arrived either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mqttlab.digits import plain
from mqttlab.experiments.factors import Factor
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.load import Experiment
from mqttlab.experiments.points import Point
from mqttlab.experiments.responses import (
    EXPECTED,
    LOST,
    UNDELIVERED,
    Response,
    Value,
    better_of,
    bound,
    chosen,
    is_cut_off,
    judged_of,
    response_of,
    too_few,
    too_few_in_words,
    under_way,
    unit_of,
)
from mqttlab.plurals import counted
from mqttlab.samples import fewest
from mqttlab.scenario.threshold import Threshold
from mqttlab.statistics import mean_interval, proportion_interval, ratio_interval

Verdict = Literal["held", "broken", "undecided"]
Draw = tuple[int, int]
"""What the random streams of a run depend on: its plan's seed and repetition."""


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """A run of a baseline."""

    value: float
    draw: Draw | None
    """``None`` where it had no random streams, as imports."""
    too_few: int | None = None
    """Of how many values its percentile is, where these are too few to tell it."""


Baselines = Callable[[str, Response], Sequence[Earlier]]
"""The runs of a named baseline."""
# Exact counts: a single run says what it says.
COUNTS = ("messages", "deliveries", "connections", "packets", "segments", "frames", "bursts", "clients", "times", "B")
# Shares of the expected deliveries, of which none may still be less than 3 of so many.
SHARES = {LOST: "lost", UNDELIVERED: "missing"}
ABORT_NS = 2 * 10**9
TICKS = {"latency_ms_p50": ("latency_p50_ns", 1e6), "latency_ms_p99": ("latency_p99_ns", 1e6),
         "disconnects": ("disconnects", 1.0)}


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What became of a threshold, at one point."""

    threshold: Threshold
    point: str
    """In words; empty where there is only one."""
    verdict: Verdict
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    """Runs."""
    words: str
    """The numbers behind it, in a line."""

    @property
    def name(self) -> str:
        """The threshold in words."""
        return title(self.threshold)


def title(threshold: Threshold) -> str:
    """A threshold in words: ``latency_ms_p99 of qos 1 below 250 ms``."""
    response = response_of(threshold)
    what = str(response) + (f" (judged by {UNDELIVERED})" if response.metric == LOST else "")
    if threshold.not_worse_than is not None:
        share = 100 * threshold.not_worse_than.by[0] / threshold.not_worse_than.by[1]
        return f"{what} not worse than {threshold.not_worse_than.baseline} by more than {plain(share)} %"
    side, written = ("below", threshold.below) if threshold.below is not None else ("above", threshold.above)
    assert written is not None, "a threshold has a side"
    shown = written if isinstance(written, str) else f"{plain(written)} {unit_of(threshold.metric)}".strip()
    return f"{what} {side} {shown}"


def judge(
    experiment: Experiment, points: Iterable[Point], records: Sequence[RunRecord], baselines: Baselines,
) -> list[Judgement]:
    """Every threshold at every point that it is about.

    Args:
        experiment: its thresholds.
        points: those that were run.
        records: the runs that count, and those that a threshold has ended.
        baselines: the values that ``not_worse_than`` compares with.
    """
    judged = []
    for at in points:
        mine = [record for record in records if record.point_key == at.key and record.kind == "run"
                and record.state in ("done", "aborted")]
        where = str(at) if experiment.factors else ""
        judged += [judge_runs(threshold, where, mine, baselines, experiment.file.analysis.confidence)
                   for threshold in experiment.thresholds if _is_about(threshold, at, experiment.factors)]
    return judged


def _is_about(threshold: Threshold, at: Point, factors: Sequence[Factor]) -> bool:
    by_name = {factor.name: factor for factor in factors}
    for name, written in threshold.at.items():
        level = by_name[name].find(written) or by_name[name].made(written)
        if at.levels[name].text != level.text:
            return False
    return True


def judge_runs(
    threshold: Threshold, point: str, records: Sequence[RunRecord], baselines: Baselines,
    confidence: tuple[int, int] = (19, 20),
) -> Judgement:
    """One threshold over the runs of one point."""
    aborted = next((record for record in records if record.state == "aborted"), None)
    if aborted is not None and threshold.abort:
        return Judgement(threshold=threshold, point=point, verdict="broken", estimate=None, low=None, high=None,
                         n=len(records), words=f"a run was ended: {aborted.reason}")
    response = judged_of(threshold)
    pairs = [(value, record) for record in records if (value := chosen(record.responses, response)) is not None]
    values = [value for value, _ in pairs]
    if not values:
        words = "there is no run with a value" if records else "there is no run that counts"
        return Judgement(threshold=threshold, point=point, verdict="undecided", estimate=None, low=None, high=None, n=0,
                         words=words)
    share = confidence[0] / confidence[1]
    if threshold.not_worse_than is not None:
        return _not_worse(threshold, point, pairs, baselines, share)
    estimate, low, high, note = limits(response, values, [record for _, record in pairs], share)
    limit = bound(threshold.metric, threshold.below if threshold.below is not None else threshold.above or 0)
    verdict = side(low, high, limit, below=threshold.below is not None)
    late = math.fsum(under_way(record.responses, response) for _, record in pairs) / len(pairs)
    if verdict == "held" and threshold.below is not None and is_cut_off(response, late):
        verdict = "undecided"
        note = "; ".join(filter(None, (note, f"{plain(late, 3)} % were still under way and would be later; lengthen "
                                             "`phases.cool_down`, or offer less")))
    if few := _too_few(pairs, response):
        verdict, note = "undecided", too_few_in_words(few, response)
    return Judgement(threshold=threshold, point=point, verdict=verdict, estimate=estimate, low=low, high=high,
                     n=len(values), words=_words(estimate, low, high, unit_of(threshold.metric), len(values), note))


def _too_few(runs: Sequence[tuple[float, RunRecord]], response: Response) -> list[int]:
    """Of how many values the percentiles of runs are that have too few."""
    return [n for _, record in runs if (n := too_few(record.responses, response)) is not None]


def side(low: float, high: float, limit: float, *, below: bool) -> Verdict:
    """Where an interval lies of a bound. A value that equals the bound is neither below nor above it."""
    held, broken = (high < limit, low >= limit) if below else (low > limit, high <= limit)
    return "held" if held else "broken" if broken else "undecided"


def limits(
    response: Response, values: Sequence[float], records: Sequence[RunRecord], confidence: float,
) -> tuple[float, float, float, str]:
    """Estimate, lower and upper confidence limit, and what they rest on."""
    estimate = math.fsum(values) / len(values)
    if len(values) == 1:
        return _of_one_run(response, values[0], records[0].responses)
    if response.metric in SHARES and not any(values):
        expected = [chosen(record.responses, replace(response, metric=EXPECTED)) for record in records]
        total = math.fsum(number for number in expected if number is not None)
        return 0.0, 0.0, 300 / total if total else 100.0, f"none of {total:,.0f} {SHARES[response.metric]}: below 3/N"
    interval = mean_interval(list(values), confidence=confidence)
    # No metric is negative.
    return estimate, max(0.0, interval.low) if min(values) >= 0 else interval.low, interval.high, ""


def _of_one_run(response: Response, value: float, others: Sequence[Value]) -> tuple[float, float, float, str]:
    def other(metric: str) -> float | None:
        return chosen(others, replace(response, metric=metric))

    if response.metric == "latency_ms_mean" and (half := other("latency_ms_mean_ci95")) is not None:
        return value, value - half, value + half, "batch means of one run"
    if response.metric in SHARES and value == 0 and (expected := other(EXPECTED)):
        return 0.0, 0.0, 300 / expected, f"none of {expected:,.0f} {SHARES[response.metric]}: below 3/N"
    if response.metric in SHARES and (expected := other(EXPECTED)):
        low = 100 * proportion_interval(min(round(value * expected / 100), round(expected)), round(expected)).low
        return value, low, math.inf, "losses cluster: one run can break this bound, not hold it; add repetitions"
    if unit_of(response.metric) in COUNTS:
        return value, value, value, "counted in one run"
    return value, -math.inf, math.inf, "one run has no interval for this; add repetitions"


def _not_worse(
    threshold: Threshold, point: str, runs: Sequence[tuple[float, RunRecord]], baselines: Baselines, confidence: float
) -> Judgement:
    assert threshold.not_worse_than is not None
    response = judged_of(threshold)
    earlier = list(baselines(threshold.not_worse_than.baseline, response))
    matched = _matched(runs, earlier)
    values = [value for value, _ in matched or runs]
    before = [each.value for _, each in matched] or [each.value for each in earlier]
    share = threshold.not_worse_than.by[0] / threshold.not_worse_than.by[1]
    lower = better_of(threshold.metric) != "higher"
    name = threshold.not_worse_than.baseline

    def judged(verdict: Verdict, words: str, ratio: Any = None) -> Judgement:
        return Judgement(threshold=threshold, point=point, verdict=verdict, n=len(values), words=words,
                         estimate=None if ratio is None else ratio.estimate, low=None if ratio is None else ratio.low,
                         high=None if ratio is None else ratio.high)

    if not before:
        return judged("undecided", f"the baseline {name} has no value of {response}")
    if sorted(values) == sorted(before):
        # Simulations of the same seeds: nothing has changed.
        return judged("held", f"the same values as {name}, run by run")
    few = _too_few(runs, response) or [each.too_few for each in earlier if each.too_few is not None]
    if few:
        return judged("undecided", too_few_in_words(few, response))
    if len(values) < 2 or len(before) < 2:
        runs_words = f"{counted(len(values), 'run')} against {len(before)} of {name}"
        return judged("undecided", f"{runs_words}; both need 2 or more")
    ratio = ratio_interval(before, values, paired=bool(matched), confidence=confidence)
    verdict = side(ratio.low, ratio.high, 1 + share, below=True) if lower else side(
        ratio.low, ratio.high, 1 - share, below=False)
    how = (f"{counted(len(values), 'pair')} of runs with the same random streams" if matched else
           f"{len(values)} and {counted(len(before), 'run')}")
    words = f"ratio to {name} {plain(ratio.estimate, 4)} [{plain(ratio.low, 4)}, {plain(ratio.high, 4)}], {how}"
    return judged(verdict, words, ratio)


def _matched(
    runs: Sequence[tuple[float, RunRecord]], earlier: Sequence[Earlier],
) -> list[tuple[float, Earlier]]:
    """Runs and those of the baseline with the same random streams, which share what chance did to them; none unless
    every run has one, and streams tell the baseline's runs apart."""
    by_draw = {each.draw: each for each in earlier if each.draw is not None}
    draws = [(record.seed, record.repetition) for _, record in runs]
    if len(by_draw) < len(earlier) or len(set(draws)) < len(draws) or not set(draws) <= set(by_draw):
        return []
    return [(value, by_draw[draw]) for (value, _), draw in zip(runs, draws, strict=True)]


def _words(estimate: float, low: float, high: float, unit: str, n: int, note: str) -> str:
    interval = "" if math.isinf(high) else f" [{plain(low, 4)}, {plain(high, 4)}]"
    return f"{plain(estimate, 4)}{interval} {unit}".strip() + f", {counted(n, 'run')}" + (f" ({note})" if note else "")


class Watch:
    """Ends runs whose progress figures stay beyond a threshold's bound: for 2 s of the measurement, without a break.

    :meth:`observe` is an executor's ``observe``; ``cancel`` is its cancel.
    """

    def __init__(self, thresholds: Iterable[Threshold], cancel: Callable[[str], None] | None = None) -> None:
        self.cancel = cancel
        self._bounds = [(each, *TICKS[each.metric], bound(each.metric, each.below or 0)) for each in thresholds
                        if each.abort]
        self._measuring: set[str] = set()
        self._since: dict[tuple[str, int], int] = {}
        self._ended: dict[str, str] = {}

    def ended(self, run: str) -> str | None:
        """The threshold that has ended a run, in words, if one has."""
        return self._ended.get(run)

    def observe(self, run: str, line: dict[str, Any]) -> None:
        """Look at a progress line."""
        if line.get("event") == "phase":
            (self._measuring.add if line["phase"] == "measurement" else self._measuring.discard)(run)
        if line.get("event") != "tick" or run not in self._measuring or run in self._ended:
            return
        for index, (threshold, figure, per, limit) in enumerate(self._bounds):
            value = line.get(figure)
            if value is None or line.get("delivered", math.inf) < fewest(threshold.metric):
                # Nothing was delivered since the last figure, which says nothing for the run; nor does the largest
                # of a few.
                continue
            if value / per < limit:
                self._since.pop((run, index), None)
                continue
            since = self._since.setdefault((run, index), line["at_ns"])
            if line["at_ns"] - since >= ABORT_NS:
                self._ended[run] = (f"{title(threshold)} was broken: {plain(value / per, 4)} for "
                                    f"{plain(ABORT_NS / 1e9)} s")
                if self.cancel is not None:
                    self.cancel(run)
                return
