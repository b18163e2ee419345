"""The analysis of an experiment: from its tidy table to what a report says.

The table's columns are those of ``docs/how-to/experiment.md``. Runs that are not done are left out by that rule
alone, and listed; nothing is left out for its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from mqttlab import statistics
from mqttlab.analysis.answered import Cost, Judged
from mqttlab.analysis.design import ExperimentDesign
from mqttlab.analysis.recommendation import Recommendations, Weighed, recommend
from mqttlab.analysis.responses import RESPONSE, Compared, Response, margin, response

SHARES, OF_SHARE = ("messages_lost_percent", "undelivered_percent"), "deliveries_expected"


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A run that does not count."""

    point: int
    run: str
    state: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What an experiment says."""

    design: ExperimentDesign
    responses: tuple[Response, ...]
    left_out: tuple[LeftOut, ...]
    runs: int
    """That count, control runs not among them."""
    controls: int
    recommendations: Recommendations | None
    thresholds: tuple[Judged, ...] = ()
    costs: tuple[Cost, ...] = ()
    costs_unknown: tuple[str, ...] = ()
    """Sentences: which costs are not known, and why."""

    @property
    def comparisons(self) -> list[tuple[Response, Compared]]:
        """Every comparison with the reference, of all responses: one family."""
        return [(each, found) for each in self.responses for found in each.compared]

    def words(self) -> dict[str, int]:
        """How many comparisons have which verdict."""
        counts: dict[str, int] = {}
        for _, found in self.comparisons:
            if found.verdict is not None:
                counts[found.verdict.word] = counts.get(found.verdict.word, 0) + 1
        return counts


def analyse(
    design: ExperimentDesign, table: pl.DataFrame, thresholds: Sequence[Judged] = (), costs: Sequence[Cost] = (),
) -> Analysis:
    """Analyse an experiment.

    Args:
        design: what it was asked.
        table: its tidy table.
        thresholds: what became of its thresholds. A choice that breaks one is not preferred for its cost.
        costs: what its points cost.
    """
    counted = table.filter(pl.col("state") == "done", pl.col("metric").is_not_null(), pl.col("value").is_not_null(),
                           pl.col("value").is_finite())
    measured, controls = counted.filter(pl.col("kind") == "run"), counted.filter(pl.col("kind") == "control")
    responses: list[Response] = []
    kept: list[Response] = []
    for key, rows in measured.group_by(RESPONSE, maintain_order=True):
        # What judging a response needs is kept beside it. A recommendation asks for the shares.
        is_support = bool(design.responses) and not any(_asks_for(wanted, key) for wanted in design.responses)
        if is_support and key[0] not in SHARES:
            continue
        same = controls.filter(*(pl.col(name).eq_missing(pl.lit(value)) for name, value in zip(
            RESPONSE, key, strict=True)))
        expected = _expected(measured, key) if key[0] in SHARES else None
        (kept if is_support else responses).append(response(design, rows, same, expected))
    order = {wanted[:2]: place for place, wanted in reversed(list(enumerate(design.responses)))}
    responses.sort(key=lambda each: order.get((each.metric, each.scope), len(order)))
    judged = _judge(design, _with_adjusted_drift(responses))
    return Analysis(
        design=design, responses=tuple(judged), left_out=tuple(_left_out(table)), runs=measured["run"].n_unique(),
        controls=controls["run"].n_unique(), thresholds=tuple(thresholds), costs=tuple(costs),
        recommendations=recommend(design, judged, kept, Weighed(
            costs=tuple(costs), margin=design.margin,
            broken=frozenset(each.key for each in thresholds if each.verdict == "broken"))))


def _asks_for(wanted: tuple[str, str, str | None], key: tuple[object, ...]) -> bool:
    """Whether a declared response is this one; without a name it is of all that its scope has."""
    return wanted[:2] == key[:2] and wanted[2] in (None, key[2])


def _expected(measured: pl.DataFrame, key: tuple[object, ...]) -> dict[int, int]:
    """By point, how many deliveries were expected in its runs; nothing where that was not kept of every run."""
    where = [pl.col(name).eq_missing(pl.lit(value)) for name, value in zip(RESPONSE[1:], key[1:], strict=True)]
    counted = measured.filter(pl.col("metric") == OF_SHARE, *where)
    runs = measured.filter(pl.col("metric") == key[0], *where)["run"].n_unique()
    if counted["run"].n_unique() < runs:
        return {}
    return {int(point): int(count) for point, count in counted.group_by("point").agg(pl.col("value").sum()).iter_rows()}


def _judge(design: ExperimentDesign, responses: Sequence[Response]) -> list[Response]:
    """Verdicts over everything that is compared, as one family."""
    places = [(number, found) for number, each in enumerate(responses) for found in each.compared]
    means = {number: {point.key: point.interval.estimate for point in each.points}
             for number, each in enumerate(responses)}
    margins = [margin(design, means[number].get(design.reference or "", 0.0), responses[number].logarithm)
               for number, _ in places]
    verdicts = iter(statistics.judge([found.tested for _, found in places], margins,
                                     [responses[number].better for number, _ in places], alpha=design.family))
    return [replace(each, compared=tuple(replace(found, verdict=next(verdicts)) for found in each.compared))
            for each in responses]


def _with_adjusted_drift(responses: Sequence[Response]) -> list[Response]:
    """Drift is looked for in every response: Holm's method over them."""
    p = iter(statistics.holm([each.drift.p for each in responses if each.drift is not None]))
    return [each if each.drift is None else replace(each, drift=replace(each.drift, p=next(p))) for each in responses]


def _left_out(table: pl.DataFrame) -> list[LeftOut]:
    rest = table.filter(pl.col("state") != "done").unique("run", maintain_order=True)
    return [LeftOut(point=row["point"], run=row["run"], state=row["state"], reason=row["reason"] or "")
            for row in rest.iter_rows(named=True)]
