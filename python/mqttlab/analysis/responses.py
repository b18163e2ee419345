"""One response over all points: estimates, comparisons with the reference, effects of factors, trends, drift."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from mqttlab import statistics
from mqttlab.analysis.design import ExperimentDesign, Factor
from mqttlab.metrics import ALL, called

RESPONSE = ("metric", "scope", "scope_name")
LINES_MOST = 6
FILLING = ("latin-hypercube", "sobol")
# Points share their blocks' random streams: however many there are, they tell no more of skewness than these.
POINTS_TELLING = 4
# Of these units, differences are shares: a millisecond means something else to 10 ms than to 1 s.
LOGARITHMIC = ("ms", "s", "ns")


@dataclass(frozen=True, kw_only=True)
class PointEstimate:
    """A point's runs as one estimate."""

    point: int
    key: str
    levels: dict[str, str]
    numbers: dict[str, float | None]
    """Of the levels, in base units, where they are numbers."""
    values: tuple[float, ...]
    blocks: tuple[int, ...]
    seeds: tuple[int, ...]
    interval: statistics.Interval
    expected: int | None = None
    """Deliveries that were expected in its runs, where it is a share of these, and they are known."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A point beside the reference."""

    point: PointEstimate
    difference: statistics.Difference
    """Of the means, in the response's unit."""
    tested: statistics.Difference
    """What the verdict rests on: the same, or the difference of the logarithms' means."""
    ratio: statistics.Interval
    """Of the means; of the geometric means where the logarithms are tested."""
    overlap: statistics.Interval
    verdict: statistics.Verdict | None = None
    """Given when all comparisons of the experiment are known."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """The trend over a factor, at fixed levels of the others."""

    factor: str
    others: dict[str, str]
    x: tuple[float, ...]
    y: tuple[float, ...]
    trend: statistics.Trend


@dataclass(frozen=True, kw_only=True)
class Response:
    """All that is said of one response."""

    metric: str
    scope: str
    scope_name: str | None
    unit: str
    declared: bool
    rows: pl.DataFrame
    """The runs that count: the tidy table's rows."""
    points: tuple[PointEstimate, ...]
    compared: tuple[Compared, ...]
    model: statistics.Factorial | None
    logarithm: bool
    """Whether the model is of the values' natural logarithms."""
    lines: tuple[Line, ...]
    drift: statistics.Drift | None
    drift_of: str
    """What drift was looked for in: control runs, residuals, or runs of one point."""
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """As a heading: the metric, and of what."""
        title = called(self.metric)
        return title if self.scope == "run" else f"{title} of {self.scope_name or self.scope}"

    @property
    def varies(self) -> bool:
        """Whether any two runs differ in it."""
        return self.rows["value"].n_unique() > 1

    @property
    def better(self) -> statistics.Direction:
        """Which side is good."""
        return ALL[self.metric].better if self.metric in ALL else "neither"

    @property
    def label(self) -> str:
        """The name with its unit, for an axis."""
        return f"{self.name} ({self.unit})" if self.unit and self.unit not in self.name.split() else self.name


def response(
    design: ExperimentDesign, rows: pl.DataFrame, controls: pl.DataFrame, expected: Mapping[int, int] | None = None,
) -> Response:
    """Analyse one response.

    Args:
        design: the question.
        rows: the tidy table's rows of this response that count.
        controls: those of control runs.
        expected: by point, the deliveries that were expected in all its runs, of a response that is a share of them.
    """
    rows = rows.sort("point", "block", "order_no")
    first = rows.row(0, named=True)
    points = tuple(replace(point, expected=(expected or {}).get(point.point)) for point in _points(design, rows))
    varies = rows["value"].n_unique() > 1
    reference = {point.key: point for point in points}.get(design.reference or "")
    model, logarithm = _model(design, rows, first["unit"])
    # A search chooses its order by what it finds, and a simulation does not know what was simulated before it.
    ordered = design.kind != "search" and not design.simulated
    drift, drift_of = _drift(rows, controls, model) if ordered else (None, "")
    return Response(
        metric=first["metric"], scope=first["scope"], scope_name=first["scope_name"], unit=first["unit"],
        declared=bool(first.get("declared", True)), rows=rows, points=points,
        compared=tuple(_compared(design, reference, points, logarithm)) if reference and varies else (), model=model,
        logarithm=logarithm, lines=tuple(_lines(design, rows)),
        drift=drift, drift_of=drift_of, warnings=tuple(_warnings(points)))


def _points(design: ExperimentDesign, rows: pl.DataFrame) -> list[PointEstimate]:
    found = []
    for _, part in rows.sort("point", "block").group_by("point", maintain_order=True):
        one = part.row(0, named=True)
        values = part["value"].to_list()
        found.append(PointEstimate(
            point=one["point"], key=one["key"], levels={factor.name: one[factor.name] for factor in design.factors},
            numbers={factor.name: one[f"{factor.name}__value"] for factor in design.factors},
            values=tuple(values), blocks=tuple(part["block"].to_list()), seeds=tuple(part["seed"].to_list()),
            interval=statistics.mean_interval(values, confidence=design.confidence)))
    return found


def _compared(
    design: ExperimentDesign, reference: PointEstimate, points: Sequence[PointEstimate], logarithm: bool,
) -> list[Compared]:
    """Every other point against the reference, by pairs of runs with the same seed where there are at least two.

    Latencies are compared as logarithms: they spread in proportion to what they are, so that the spread of their
    differences is that of the slower point alone.
    """
    found = []
    for point in points:
        if point.key == reference.key or len(point.values) < 2 or len(reference.values) < 2:
            continue
        first, second, paired = compared = pairs(design, reference, point)
        absolute = _tested(design, compared, False)
        tested = _tested(design, compared, True) if logarithm else absolute
        found.append(Compared(
            point=point, difference=absolute, tested=tested,
            ratio=_geometric(tested.interval) if logarithm else statistics.ratio_interval(
                first, second, paired=paired, confidence=design.confidence),
            overlap=statistics.cliffs_delta(first, second, confidence=design.confidence)))
    return found


def _geometric(logarithms: statistics.Interval) -> statistics.Interval:
    """The ratio of geometric means from the difference of the logarithms' means."""
    ends = [math.exp(end) for end in (logarithms.estimate, logarithms.low, logarithms.high)]
    return replace(logarithms, estimate=ends[0], low=ends[1], high=ends[2], method=f"{logarithms.method} of logarithms")


def margin(design: ExperimentDesign, mean: float, logarithm: bool) -> float:
    """The largest difference from a mean that does not matter; of logarithms, where these are compared."""
    return math.log1p(design.margin) if logarithm else abs(mean) * design.margin


def difference(
    design: ExperimentDesign, first: PointEstimate, second: PointEstimate, logarithm: bool,
) -> statistics.Difference | None:
    """What a verdict on two points rests on: by pairs of runs with the same seed where there are at least two.
    ``None`` where a point has fewer than two runs."""
    if len(first.values) < 2 or len(second.values) < 2:
        return None
    return _tested(design, pairs(design, first, second), logarithm)


def _tested(
    design: ExperimentDesign, compared: tuple[list[float], list[float], bool], logarithm: bool,
) -> statistics.Difference:
    before, after, paired = compared
    if logarithm:
        return statistics.difference(np.log(before), np.log(after), paired=paired, confidence=design.confidence)
    return statistics.difference(before, after, paired=paired, confidence=design.confidence)


def pairs(
    design: ExperimentDesign, first: PointEstimate, second: PointEstimate,
) -> tuple[list[float], list[float], bool]:
    """The values of both points with the same block and seed, and whether they are pairs: all of them, unpaired, where
    seeds have nothing in common, or fewer than two have a partner."""
    places = {(block, seed): value for block, seed, value in zip(first.blocks, first.seeds, first.values, strict=True)}
    both = [(places[block, seed], value)
            for block, seed, value in zip(second.blocks, second.seeds, second.values, strict=True)
            if (block, seed) in places]
    if not design.common_seeds or len(both) < 2:
        return list(first.values), list(second.values), False
    return [a for a, _ in both], [b for _, b in both], True


def _model(design: ExperimentDesign, rows: pl.DataFrame, unit: str) -> tuple[statistics.Factorial | None, bool]:
    values = rows["value"].to_numpy()
    logarithm = unit in LOGARITHMIC and bool((values > 0).all())
    levels = {factor.name: rows[factor.name].to_list() for factor in design.factors}
    if not levels or design.kind in (*FILLING, "search"):
        return None, logarithm
    blocks = rows["block"].to_list()
    wanted = np.log(values) if logarithm else values
    found = statistics.factorial(levels, wanted, blocks=blocks, confidence=design.confidence)
    return found or statistics.factorial(levels, wanted, confidence=design.confidence), logarithm


def _lines(design: ExperimentDesign, rows: pl.DataFrame) -> list[Line]:
    """The trend over each numeric factor with enough levels, for each combination of the others, or for that of the
    reference where there are many."""
    found = []
    for factor in design.factors:
        place = f"{factor.name}__value"
        if factor.kind != "numeric" or rows[place].null_count() or rows[place].n_unique() < 4:
            continue
        # In a space that is filled no two points share the other levels: the line is through all of them.
        filled = design.kind in FILLING
        others = [other.name for other in design.factors if other.name != factor.name and not filled]
        parts = list(rows.group_by(others, maintain_order=True)) if others else [((), rows)]
        if len(parts) > LINES_MOST and design.reference is not None:
            of_reference = rows.filter(pl.col("key") == design.reference)
            if of_reference.height:
                wanted = of_reference.select(others).row(0)
                parts = [(key, part) for key, part in parts if tuple(key) == wanted]
        for key, part in parts[:LINES_MOST]:
            x, y = part[place].to_list(), part["value"].to_list()
            trend = statistics.trend(x, y, confidence=design.confidence)
            if trend is not None:
                found.append(Line(factor=factor.name, others=dict(zip(others, map(str, key), strict=True)), x=tuple(x),
                                  y=tuple(y), trend=trend))
    return found


def _drift(
    rows: pl.DataFrame, controls: pl.DataFrame, model: statistics.Factorial | None,
) -> tuple[statistics.Drift | None, str]:
    """Control runs tell best; then the residuals of the model; then a point that was run often."""
    if controls.height >= 4:
        found = statistics.drift(controls["order_no"].to_list(), controls["value"].to_list())
        if found is not None:
            return found, "control runs"
    left = pl.Series("left", model.residuals) if model is not None else (
        rows["value"] - rows.select(pl.col("value").mean().over("point")).to_series())
    # Blocks differ by their random streams, and come one after another: only within them is order free of that.
    place, size = (pl.col(name).rank().over("block") for name in ("order_no", "left")), pl.len().over("block")
    within = rows.select("block", "order_no", left=left).select(
        *((rank / size).alias(name) for rank, name in zip(place, ("order", "left"), strict=True)))
    what = "residuals of the model" if model is not None else "deviations from the points' means"
    return statistics.drift(within["order"].to_list(), within["left"].to_list()), f"{what}, within the blocks"


def _warnings(points: Sequence[PointEstimate]) -> list[str]:
    """What to read before the intervals are trusted."""
    said = []
    varied = [point for point in points if len(set(point.values)) > 2]
    if varied:
        n = min(len(point.values) for point in varied)
        skewness = float(np.mean([statistics.skewness(point.values) for point in varied]))
        error = statistics.skewness_error(n) / math.sqrt(min(len(varied), POINTS_TELLING))
        covered = statistics.mean_coverage(n, skewness)
        if covered < statistics.WARN_BELOW and abs(skewness) > 2 * error:
            said.append(f"The runs are skewed (on average by {skewness:+.2f}); intervals of such values with n = {n} "
                        f"cover the true mean in about {100 * covered:.0f} % of experiments, not in 95 %.")
    alone = sum(len(point.values) == 1 for point in points)
    if alone:
        said.append(f"{alone} of {len(points)} points have one run, and no interval.")
    return said


def combinations(factors: Sequence[Factor]) -> list[dict[str, str]]:
    """Every combination of the factors' levels."""
    return [dict(zip([factor.name for factor in factors], levels, strict=True))
            for levels in itertools.product(*(factor.levels for factor in factors))]
