"""Figures of several runs as one: means of their points, with intervals between the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mqttlab.statistics import mean_interval
from mqttlab.studies.chart import Chart, Series


def mean_charts(repetitions: Sequence[Sequence[Chart]]) -> list[Chart]:
    """The charts of several runs as one each.

    Args:
        repetitions: for each repetition its charts. One that a repetition lacks, because too little of it was run, is
            the mean of those that have it.
    """
    if len(repetitions) == 1:
        return list(repetitions[0])
    named: dict[str, list[Chart]] = {}
    for chart in (chart for charts in repetitions for chart in charts):
        named.setdefault(chart.name, []).append(chart)
    return [_mean(charts) for charts in named.values()]


def _mean(charts: Sequence[Chart]) -> Chart:
    """One chart of all; the words of a chart are the same in every run."""
    runs: dict[tuple[str, bool], list[Series]] = {}
    for series in (series for chart in charts for series in chart.series):
        runs.setdefault((series.name, series.published), []).append(series)
    return replace(charts[0], series=[each[0] if each[0].published else _mean_series(each) for each in runs.values()])


def _mean_series(runs: Sequence[Series]) -> Series:
    """The means at each x. Where x is measured, too, the n-th point of one run stands beside the n-th of another."""
    if len(runs) == 1:
        return runs[0]
    places = [[x for x, _ in run.points] for run in runs]
    shared = all(run == places[0] for run in places)
    if not shared and len({len(run) for run in places}) == 1:
        across = [_over(points) for points in zip(*(run.points for run in runs), strict=True)]
        return replace(runs[0], points=[point for point, _ in across], halves=[half for _, half in across])
    at: dict[float, list[float]] = {}
    for x, y in (point for run in runs for point in run.points):
        at.setdefault(x, []).append(y)
    means: Mapping[float, tuple[float, float | None]] = {x: mean_of_runs(values) for x, values in at.items()}
    # In the order of x, unless that is what the runs' own points are not in.
    order: Iterable[float] = places[0] if shared else sorted(means)
    return replace(runs[0], points=[(x, means[x][0]) for x in order], halves=[means[x][1] for x in order])


def _over(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], float | None]:
    mean, half = mean_of_runs([y for _, y in points])
    return (mean_of_runs([x for x, _ in points])[0], mean), half


def mean_of_runs(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of one value a run, and half of its 95 % interval, which one run has not.

    Where one of several has no value there is no mean (not a number); where one has no end, nor has the mean.
    """
    if len(values) == 1:
        return values[0], None
    if not all(math.isfinite(value) for value in values):
        # A sum is as its worst term.
        return sum(values), None
    interval = mean_interval(values)
    return interval.estimate, (interval.high - interval.low) / 2
