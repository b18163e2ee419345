"""Runs as a set: grouped by what was set, with the number of runs, mean and interval in the cells; and their figures.

The run is the unit. Runs that are not valid are left out of all means and figures unless they are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import polars as pl

from mqttlab import metrics
from mqttlab.dashboard.store import METRICS, Store
from mqttlab.figures.drawing import Figure
from mqttlab.figures.experiment import cdf, tail
from mqttlab.figures.runs import natural, run_boxes, run_lines, run_scatter
from mqttlab.report.text import heading, number, unit
from mqttlab.statistics import mean_interval

NEVER = ("run", "started", "verdict", "href")
RUNS_DRAWN = 1000
DISTRIBUTIONS_MAX = 8
AXES_MAX = 7
# What a figure shows of each run where nobody has chosen.
PREFERRED = ("latency_ms_p99", "latency_ms_mean")
FIGURES = ("scatter", "box", "parallel", "cdf", "tail")


def settings(runs: pl.DataFrame) -> list[str]:
    """The columns that say what was run: groups are made by them."""
    return [name for name in runs.columns if name not in NEVER and name not in METRICS]


def responses(runs: pl.DataFrame) -> list[str]:
    """The columns that were measured."""
    return [name for name in METRICS if name in runs.columns and runs[name].null_count() < runs.height]


def titles(runs: pl.DataFrame) -> dict[str, str]:
    """What columns are called, with their units."""
    return {name: heading(name) + (f" ({unit(name)})" if unit(name) else "") for name in runs.columns}


def counted(runs: pl.DataFrame, everything: bool) -> pl.DataFrame:
    """The runs that count."""
    return runs if everything else runs.filter(pl.col("verdict") == "valid")


def varied(runs: pl.DataFrame) -> list[str]:
    """Settings in which the runs differ, without what differs in every run of a repeated one."""
    return [name for name in settings(runs) if name != "seed" and runs[name].n_unique() > 1]


def grouped(runs: pl.DataFrame, by: Sequence[str]) -> tuple[list[str], list[list[Any]], list[list[str]]]:
    """A row for each group, in the order of their settings: these, how many runs, and of each response mean, 95 %
    interval and extremes.

    Returns:
        The columns' names, with ``n`` between settings and responses; the rows, with empty cells where no run has a
        value; and of each group its settings as a search has them.
    """
    measured = responses(runs)
    rows, keys = [], []
    groups = runs.partition_by(*by, as_dict=True, maintain_order=True)
    for key, part in sorted(groups.items(), key=lambda group: [natural(value) for value in group[0]]):
        keys.append(["" if value is None else str(pl.Series([value]).cast(pl.String)[0]) for value in key])
        rows.append([*("–" if value is None else str(value) for value in key), part.height,
                     *(_cell(part[name]) for name in measured)])
    return [*by, "n", *measured], rows, keys


def _cell(values: pl.Series) -> str:
    known = [float(value) for value in values.drop_nulls() if math.isfinite(value)]
    if not known:
        return ""
    found = mean_interval(known)
    if len(known) == 1:
        return number(found.estimate)
    half = max(found.high - found.estimate, found.estimate - found.low)
    return f"{number(found.estimate)} ± {number(half, 2)} ({number(min(known))} – {number(max(known))})"


def chosen(runs: pl.DataFrame, query: Mapping[str, str]) -> pl.DataFrame:
    """Of these runs those that are selected; all where none is, and of very many an even selection."""
    wanted = [name for name in query.get("runs", "").split(",") if name]
    found = runs.filter(pl.col("run").is_in(wanted)) if wanted else counted(runs, query.get("all") == "1")
    return found.gather_every(-(-max(found.height, 1) // RUNS_DRAWN))


def source(name: str, query: Mapping[str, str]) -> str:
    """The address of a figure."""
    kept = {key: value for key, value in query.items() if value}
    return f"/data/runs/figure/{name}.json?{urlencode(kept)}"


def drawn(store: Store, name: str, runs: pl.DataFrame, query: Mapping[str, str]) -> Figure | None:
    """A figure of runs; nothing where there is too little to draw, or no such figure."""
    found = chosen(runs, query)
    measured = responses(found) if found.height else []
    if not measured:
        return None
    if name in ("cdf", "tail"):
        return _distributions(store, name, found, query)
    colour = query.get("colour", "")
    texts = pl.col(colour).cast(pl.String).fill_null("–") if colour in found.columns else pl.lit("")
    table, called = found.with_columns(by=texts), titles(found)
    y = query.get("y", "") if query.get("y") in measured else _first(
        [name for name in PREFERRED if name in measured], measured[0])
    if name == "scatter":
        x = query.get("x", "") if query.get("x") in found.columns else _first(varied(found), measured[-1])
        return run_scatter(table.filter(pl.col(y).is_not_null()), x, y, called)
    if name == "box":
        return run_boxes(table, y, called, colour)
    if name == "parallel":
        axes = [*varied(found)[:AXES_MAX - 3], *reversed(measured)][:AXES_MAX]
        return run_lines(table, axes, called)
    return None


def _first(names: Sequence[str], otherwise: str) -> str:
    return names[0] if names else otherwise


def _distributions(store: Store, name: str, found: pl.DataFrame, query: Mapping[str, str]) -> Figure | None:
    """Of runs that were selected: all of their deliveries, a curve each."""
    if not query.get("runs") or found.height > DISTRIBUTIONS_MAX:
        return None
    samples = {}
    for run in found["run"]:
        recording = store.recording(run)
        latencies = recording.derived("deliveries", metrics.deliveries)
        if latencies.height:
            samples[run] = latencies["latency_ms"].to_numpy()
    if not samples:
        return None
    return cdf(samples) if name == "cdf" else tail(samples)
