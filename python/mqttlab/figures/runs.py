"""Figures of many runs, a point or a line for each; whoever clicks on one opens the run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mqttlab.digits import plain
from mqttlab.figures.drawing import Figure, trace
from mqttlab.figures.style import SERIES_COLOURS, blank

COLOURS_MAX = 8
OTHERS = "others"


def run_scatter(runs: pl.DataFrame, x: str, y: str, titles: Mapping[str, str]) -> Figure:
    """A point for each run.

    Args:
        runs: columns ``run``, ``by`` (what it is coloured by, as text), and those named ``x`` and ``y``.
        x: a column of numbers or texts.
        y: a column of numbers.
        titles: of the columns, with their units.
    """
    figure = blank(f"{titles.get(y, y)} over {titles.get(x, x)}", titles.get(x, x), titles.get(y, y))
    for index, (by, part) in enumerate(_by(runs)):
        figure.add_trace(trace(
            "scatter",
            x=part[x].to_list(), y=part[y].to_list(), mode="markers", name=by, customdata=part["run"].to_list(),
            marker={"color": _colour(index), "size": 8, "opacity": 0.75, "symbol": _symbol(index)},
            hovertemplate="%{customdata}<br>%{x}, %{y:,.4~r}<extra>" + by + "</extra>"))
    if not runs[x].dtype.is_numeric():
        figure.update_xaxes(type="category", categoryorder="array", categoryarray=in_order(runs[x].drop_nulls()))
    return figure.update_layout(showlegend=runs["by"].n_unique() > 1)


def run_boxes(runs: pl.DataFrame, y: str, titles: Mapping[str, str], by: str) -> Figure:
    """A box for each group of runs: quartiles and extremes over runs, the mean as a dashed line.

    Args:
        runs: columns ``by`` and the one named ``y``.
        y: a column of numbers.
        titles: of the columns, with their units.
        by: what ``by`` is.
    """
    figure = blank(f"{titles.get(y, y)} by {titles.get(by, by)}" if by else f"{titles.get(y, y)} of all runs",
                   titles.get(by, by), titles.get(y, y))
    for index, (name, part) in enumerate(_by(runs)):
        values = part[y].drop_nulls()
        if values.is_empty():
            continue
        low, first, middle, third, high = (float(values.quantile(q, "linear") or 0) for q in (0, 0.25, 0.5, 0.75, 1))
        figure.add_trace(trace(
            "box", x=[name or "all"], lowerfence=[low], q1=[first], median=[middle], q3=[third], upperfence=[high],
            mean=[float(values.mean() or 0)], name=name or "all", marker={"color": _colour(index)}))  # type: ignore[arg-type]
    return figure.update_layout(showlegend=False)


def run_lines(runs: pl.DataFrame, columns: Sequence[str], titles: Mapping[str, str]) -> Figure:
    """Parallel coordinates: each run as a line across the columns, each between its least and its greatest value.

    Args:
        runs: columns ``run``, ``by``, and those named; texts stand in their order.
        columns: the axes, from left to right.
        titles: of the columns.
    """
    figure = blank("Every run across its settings and results", "", "")
    shares = runs.select("run", "by", *(_share(runs[name]).alias(name) for name in columns))
    for index, (by, part) in enumerate(_by(shares)):
        # One line for all runs of a colour: gaps stand between them.
        xs, ys, names = [], [], []
        for row in part.iter_rows(named=True):
            xs += [*range(len(columns)), None]
            ys += [*(row[name] for name in columns), None]
            names += [row["run"]] * (len(columns) + 1)
        figure.add_trace(trace("scatter", x=xs, y=ys, mode="lines+markers", name=by, customdata=names, opacity=0.6,
                               line={"color": _colour(index), "width": 1.5}, marker={"size": 5},
                               hovertemplate="%{customdata}<extra>" + by + "</extra>"))
    ends = [_ends(runs[name]) for name in columns]
    words = [titles.get(name, name).replace(" (", "<br>(") for name in columns]
    figure.update_xaxes(tickvals=list(range(len(columns))), range=[-0.3, len(columns) - 0.7], ticktext=[
        f"{word}<br>{low} –<br>{high}" for word, (low, high) in zip(words, ends, strict=True)])
    figure.update_yaxes(showticklabels=False, range=[-0.05, 1.05], ticks="")
    return figure.update_layout(showlegend=runs["by"].n_unique() > 1)


def in_order(values: pl.Series) -> list[Any]:
    """Each of these texts once, numbers within them by their size: ``5 %`` before ``10 %``."""
    return sorted(values.unique().to_list(), key=natural)


def natural(value: Any) -> tuple[bool, list[tuple[str, float]]]:
    """By what a text is put in order with others; what there is not comes last."""
    parts = re.split(r"(\d+(?:\.\d+)?)", str(value))
    return value is None, [(words, float(number or 0)) for words, number in zip(
        parts[::2], [*parts[1::2], ""], strict=True)]


def _share(values: pl.Series) -> pl.Series:
    """Where each value lies between the least and the greatest; texts by their rank."""
    if values.dtype.is_numeric():
        numbers = values.cast(pl.Float64)
    else:
        ranks = {value: float(rank) for rank, value in enumerate(in_order(values.drop_nulls()))}
        numbers = pl.Series([ranks.get(value) for value in values], dtype=pl.Float64)
    low, high = numbers.min(), numbers.max()
    if low is None or low == high:
        return pl.Series([None if value is None else 0.5 for value in numbers], dtype=pl.Float64)
    shares: pl.Series = (numbers - low) / (float(high) - float(low))  # type: ignore[arg-type]
    return shares


def _ends(values: pl.Series) -> tuple[str, str]:
    known = values.drop_nulls()
    if known.is_empty():
        return "–", "–"
    ordered = known.sort().to_list() if known.dtype.is_numeric() else in_order(known)
    low, high = ordered[0], ordered[-1]
    return (plain(low, 4), plain(high, 4)) if isinstance(low, (int, float)) else (str(low)[:14], str(high)[:14])


def _by(runs: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The runs of each colour, in order; beyond eight the others together, last."""
    names = in_order(runs["by"])
    if len(names) > COLOURS_MAX:
        names = [*names[:COLOURS_MAX - 1], OTHERS]
        runs = runs.with_columns(by=pl.when(pl.col("by").is_in(names)).then("by").otherwise(pl.lit(OTHERS)))
    parts = runs.partition_by("by", as_dict=True, maintain_order=True)
    return [(name, parts[name,]) for name in dict.fromkeys(names)]


def _colour(index: int) -> str:
    return SERIES_COLOURS[index % len(SERIES_COLOURS)]


def _symbol(index: int) -> str:
    return ("circle", "diamond", "square", "triangle-up", "x", "cross", "star", "triangle-down")[index % 8]
