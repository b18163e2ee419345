"""Figures of an experiment: what each factor does to a response, and how far that can be trusted.

Error bars are 95 % confidence intervals of means over runs; the caption of a page says so, too.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mqttlab.digits import plain
from mqttlab.figures.drawing import Figure, panels, trace
from mqttlab.figures.hover import hover
from mqttlab.figures.style import PART_COLOURS, SERIES_COLOURS, blank

CDF_POINTS = 500
# A tail is drawn as far as this many samples lie beyond it.
SAMPLES_BEYOND = 1
NINES = {1.0: "all", 0.1: "1 nine", 0.01: "2 nines", 0.001: "3 nines", 0.0001: "4 nines"}
# Lines of parallel coordinates, from the lowest to the highest value of the first response.
LOW_TO_HIGH = ("#0072B2", "#56B4E9", "#8C9AA8", "#E69F00", "#D55E00")
TICKS = 3
NAME_LETTERS = 14
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def boxes(runs: pl.DataFrame, label: str) -> Figure:
    """Box plots of the runs by the levels of each factor, side by side; every run is a point.

    Args:
        runs: columns ``factor``, ``level``, ``value``; levels in the order in which they are to stand.
        label: of the response, with its unit.
    """
    factors = runs["factor"].unique(maintain_order=True).to_list()
    figure = _side_by_side(f"{label} by factor", factors, label)
    for place, factor in enumerate(factors, start=1):
        part = runs.filter(pl.col("factor") == factor)
        for level in part["level"].unique(maintain_order=True).to_list():
            values = part.filter(pl.col("level") == level)["value"].to_list()
            figure.add_trace(trace(
                "box", y=values, x=[level] * len(values), name=str(level), boxpoints="all", jitter=0.5, pointpos=0,
                marker={"color": _colour(place - 1), "size": 3, "opacity": 0.5}, line={"width": 1.5}, showlegend=False,
                fillcolor="rgba(0,0,0,0)"), panel=place)
    figure.update_xaxes(type="category")
    return _log_where_wide(figure, runs["value"])


def means(points: pl.DataFrame, x: str, label: str) -> Figure:
    """Mean and interval of each point over one factor, a line for each combination of the others.

    Args:
        points: columns ``x`` (levels in order), ``by`` (the others' levels as text, may be empty), ``estimate``,
            ``low``, ``high`` (null where there is no interval).
        x: the factor's name.
        label: of the response, with its unit.
    """
    figure = blank(f"{label} over {x}: mean and 95 % interval", x, label)
    lines = points["by"].unique(maintain_order=True).to_list()
    for index, by in enumerate(lines):
        part = points.filter(pl.col("by") == by)
        up, down = part["high"] - part["estimate"], part["estimate"] - part["low"]
        figure.add_trace(trace(
            "scatter", x=part["x"].to_list(), y=part["estimate"].to_list(), name=by or label, mode="lines+markers",
            line={"color": _colour(index), "width": 2, "dash": DASHES[index // len(SERIES_COLOURS) % len(DASHES)]},
            marker={"size": 7}, error_y={"type": "data", "array": up.to_list(), "arrayminus": down.to_list(),
                                         "thickness": 1.2, "width": 4},
            hovertemplate=f"{x} %{{x}}<br>%{{y:,.4~r}}<extra>{by}</extra>"))
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=_ordered(points, "x"))
    figure.update_layout(showlegend=len(lines) > 1)
    return _legend_beside(_log_where_wide(figure, points["estimate"]), len(lines))


def interaction(cells: pl.DataFrame, first: str, second: str, label: str) -> Figure:
    """Means over one factor, a line for each level of another: parallel lines do not interact.

    Args:
        cells: columns ``x``, ``by``, ``mean``, averaged over all other factors.
    """
    figure = blank(f"{label}: {first} × {second}", first, f"mean of {label}")
    for index, by in enumerate(cells["by"].unique(maintain_order=True).to_list()):
        part = cells.filter(pl.col("by") == by)
        figure.add_trace(trace("scatter", x=part["x"].to_list(), y=part["mean"].to_list(), name=f"{second} {by}",
                               mode="lines+markers", line={"color": _colour(index), "width": 2}))
    figure.update_xaxes(type="category", categoryorder="array", categoryarray=_ordered(cells, "x"))
    return _log_where_wide(figure, cells["mean"])


def variation(terms: pl.DataFrame) -> Figure:
    """The allocation of variation: how much of it each term explains, a bar for each response.

    Args:
        terms: columns ``response``, ``term``, ``percent``.
    """
    figure = blank("What the variation comes from", "share of the variation (%)", "")
    for index, term in enumerate(terms["term"].unique(maintain_order=True).to_list()):
        part = terms.filter(pl.col("term") == term)
        colour = "#D3D8DE" if term == "residuals" else "#8a8f98" if term == "block" else _colour(index)
        figure.add_trace(trace("bar",
                               y=part["response"].to_list(), x=part["percent"].to_list(), name=term, orientation="h",
                               marker={"color": colour}, hovertemplate="%{y}: %{x:.1f} %<extra>" + term + "</extra>"))
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"}, margin={"t": 90},
                         height=190 + 46 * terms["response"].n_unique())
    figure.update_yaxes(autorange="reversed", ticks="", automargin=True)
    figure.update_xaxes(range=[0, 100.5])
    return figure


def heat_map(cells: pl.DataFrame, x: str, y: str, label: str) -> Figure:
    """The mean of each combination of two factors.

    Args:
        cells: columns ``x``, ``y``, ``mean``, averaged over all other factors.
    """
    figure = blank(f"{label}: {y} and {x}", x, y)
    across, down = (_ordered(cells, name) for name in ("x", "y"))
    known = {(row["x"], row["y"]): row["mean"] for row in cells.iter_rows(named=True)}
    grid = [[known.get((a, b)) for a in across] for b in down]
    text = [["" if value is None else plain(value, 3) for value in row] for row in grid]
    positive = bool((cells["mean"] > 0).all()) and cells["mean"].len() > 0
    wide = positive and float(cells["mean"].max()) / float(cells["mean"].min()) > 30  # type: ignore[arg-type]
    shown = [[None if value is None else float(np.log10(value)) if wide else value for value in row] for row in grid]
    figure.add_trace(trace(
        "heatmap", x=across, y=down, z=shown, text=text, texttemplate="%{text}", colorscale="Cividis", xgap=2, ygap=2,
        colorbar={"title": "log₁₀" if wide else "", "thickness": 12},
        hovertemplate="%{x}, %{y}: %{text}<extra></extra>"))
    figure.update_xaxes(type="category")
    figure.update_yaxes(type="category")
    return figure


def parallel(points: pl.DataFrame, factors: Mapping[str, Sequence[str]], responses: Sequence[str]) -> Figure:
    """Every point as a line through its levels and its means; coloured by the first response.

    Args:
        points: a column for each factor (its level as text, or a number) and each response (the mean).
        factors: the levels of each factor in order; empty for those that are numbers.
        responses: names of the responses' columns, with their units.
    """
    known = points.drop_nulls(list(responses))
    names = [*factors, *responses]
    # Each axis has its own scale: what is drawn is the place between its ends.
    axes = [_axis(known[name], list(factors.get(name, ()))) for name in names]
    places = np.array([axis.places for axis in axes]).reshape(len(names), known.height)
    of_first = known[responses[0]].to_numpy() if responses else np.zeros(known.height)
    words = ["<br>".join(f"{name}: {value if isinstance(value, str) else plain(value, 4)}"
                         for name, value in zip(names, row, strict=True)) for row in known.select(names).rows()]
    figure = blank("Every point: factors and responses", "", "")
    shares = _axis(known[responses[0]], []).places if responses else of_first
    for step, colour in enumerate(LOW_TO_HIGH):
        among = np.flatnonzero(np.minimum(shares * len(LOW_TO_HIGH), len(LOW_TO_HIGH) - 1).astype(int) == step)
        # A gap ends each line.
        lines = [(place, along) for point in among for place, along in [*enumerate(places[:, point]), (None, None)]]
        if lines:
            figure.add_trace(trace(
                "scatter", x=[along for _, along in lines], y=[place for place, _ in lines], mode="lines+markers",
                line={"color": colour, "width": 1.5}, marker={"color": colour, "size": 5}, showlegend=True,
                name=_from_to(of_first[among]), opacity=0.8, hoverinfo="text",
                text=[words[point] for point in among for _ in range(len(names) + 1)]))
    for place, axis in enumerate(axes):
        figure.add_line("y", place, {"color": "#8A8F98", "width": 1})
        for along, label in axis.ticks:
            figure.add_annotation(x=along, y=place, text=label, showarrow=False, yanchor="top", yshift=-5,
                                  font={"size": 11}, bgcolor="white", opacity=0.85)
    # One below another: names beside axes have room on a narrow page, too.
    figure.update_xaxes(visible=False, range=[-0.1, 1.1])
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=[_broken(name) for name in names],
                        range=[len(names) - 0.5, -0.3], showgrid=False, zeroline=False)
    figure.update_layout(height=120 + 60 * len(names), legend={"title": {"text": responses[0] if responses else ""}})
    return figure


@dataclass(frozen=True)
class _Axis:
    """An axis of parallel coordinates: where each point is between its ends, and its labels with their places."""

    places: np.ndarray
    ticks: tuple[tuple[float, str], ...]


def _axis(values: pl.Series, levels: list[str]) -> _Axis:
    """Of a factor's levels in order, or of numbers."""
    numbers = np.array([levels.index(level) for level in values] if levels else values.to_list(), dtype=float)
    low, high = (0.0, len(levels) - 1.0) if levels else (float(numbers.min()), float(numbers.max()))
    width = high - low
    places = (numbers - low) / width if width else np.full(numbers.size, 0.5)
    if levels:
        return _Axis(places, tuple((place / width if width else 0.5, level) for place, level in enumerate(levels)))
    shares = np.linspace(0, 1, TICKS) if width else np.array([0.5])
    return _Axis(places, tuple((float(share), plain(low + width * float(share), 3)) for share in shares))


def _broken(name: str) -> str:
    """A name in lines of about so many letters."""
    return "<br>".join(textwrap.wrap(name, NAME_LETTERS))


def _from_to(values: np.ndarray) -> str:
    low, high = plain(float(values.min()), 3), plain(float(values.max()), 3)
    return low if low == high else f"{low} to {high}"


def cdf(samples: Mapping[str, np.ndarray], title: str = "Latency, cumulative") -> Figure:
    """Cumulative latency of several sets of messages, in milliseconds."""
    figure = blank(title, "latency (ms)", "share of the deliveries")
    for index, (name, values) in enumerate(samples.items()):
        share = np.linspace(0, 1, min(CDF_POINTS, max(values.size, 2)))
        figure.add_trace(trace(
            "scatter", x=np.quantile(values, share).tolist(), y=share.tolist(), name=name, mode="lines",
            line={"color": _colour(index), "width": 2, "shape": "hv"}))
    figure.update_yaxes(range=[0, 1.01], tickformat=".0%")
    return _wide_across(figure, samples)


def tail(samples: Mapping[str, np.ndarray], title: str = "Latency, tail") -> Figure:
    """The share of messages that took longer, down to four nines, on logarithmic axes.

    A curve ends where no sample lies beyond: there is nothing to read further out.
    """
    figure = blank(title, "latency (ms)", "share that took longer")
    lowest = 1.0
    for index, (name, values) in enumerate(samples.items()):
        ordered = np.sort(values)
        beyond = 1 - np.arange(1, ordered.size + 1) / ordered.size
        keep = beyond >= SAMPLES_BEYOND / ordered.size * 0.999
        x, y = ordered[keep], beyond[keep]
        if x.size > CDF_POINTS:
            # Evenly on the logarithmic axis.
            wanted = np.unique(np.searchsorted(-y, -np.geomspace(y[0], y[-1], CDF_POINTS)).clip(0, x.size - 1))
            x, y = x[wanted], y[wanted]
        lowest = min(lowest, float(y[-1]) if y.size else 1.0)
        figure.add_trace(trace("scatter", x=x.tolist(), y=y.tolist(), name=name, mode="lines",
                               line={"color": _colour(index), "width": 2, "shape": "hv"}))
    shown = [share for share in NINES if share >= lowest / 10]
    figure.update_yaxes(type="log", range=[np.log10(min(shown[-1], lowest)) - 0.1, 0.02], tickvals=shown,
                        ticktext=[f"{plain(100 * share)} %, {NINES[share]}" if share < 1 else "100 %"
                                  for share in shown])
    figure.update_layout(margin={"l": 120})
    return _wide_across(figure, samples)


def attribution_by_level(parts: pl.DataFrame, titles: Mapping[str, str], factor: str) -> Figure:
    """Where the time went, a bar for each level of a factor.

    Args:
        parts: columns ``level`` (in order), ``part``, ``mean_ms``.
        titles: what each part is called. Parts below a thousandth of the tallest bar are left out.
        factor: its name.
    """
    figure = blank(f"Where the time went, by {factor}", factor, "mean time (ms)")
    levels = _ordered(parts, "level")
    tallest = max((float(parts.filter(pl.col("level") == level)["mean_ms"].sum()) for level in levels), default=0.0)
    for part, title in titles.items():
        known = dict(parts.filter(pl.col("part") == part).select("level", "mean_ms").iter_rows())
        heights = [known.get(level) or 0.0 for level in levels]
        if max(heights, default=0.0) > tallest / 1000:
            figure.add_trace(trace("bar", x=levels, y=heights, name=title, marker={"color": PART_COLOURS[part]},
                                   **hover(heights, "%{y:.3f} ms", f"%{{x}}<br>{title}: ", "<extra></extra>")))
    figure.update_layout(barmode="stack", height=470, margin={"t": 110}, showlegend=True)
    figure.update_xaxes(type="category")
    return figure


def residuals(table: pl.DataFrame, label: str) -> Figure:
    """What the model leaves: against what it fits, against the order of the runs, and against the normal distribution.

    Args:
        table: columns ``fitted``, ``residual``, ``order``, ``normal`` (the quantile of the standard normal).
        label: of the response.
    """
    titles = ("fitted value", "order of the runs", "normal quantile")
    figure = _side_by_side(f"Residuals of {label}", titles, "residual")
    for place, column in enumerate(("fitted", "order", "normal"), start=1):
        figure.add_trace(trace(
            "scatter", x=table[column].to_list(), y=table["residual"].to_list(), mode="markers", showlegend=False,
            marker={"color": SERIES_COLOURS[0], "size": 4, "opacity": 0.6}), panel=place)
    spread = float(table["residual"].std() or 0)  # type: ignore[arg-type]
    figure.add_trace(trace("scatter", x=[-3, 3], y=[-3 * spread, 3 * spread], mode="lines", showlegend=False,
                           line={"color": "#5b6572", "width": 1}), panel=3)
    return figure


def trend(values: pl.DataFrame, line: pl.DataFrame, title: str, x: str, label: str) -> Figure:
    """A trend with its runs: the line, where it lies with 95 % confidence, and where the next run would.

    Args:
        values: columns ``x``, ``y``, a row a run.
        line: columns ``x``, ``y``, ``low``, ``high``, ``next_low``, ``next_high``.
        title: of the figure.
        x: the factor, with its unit.
        label: of the response, with its unit.
    """
    figure = blank(title, x, label)
    for low, high, name, colour in (("next_low", "next_high", "next run, 95 %", "rgba(0,114,178,0.10)"),
                                    ("low", "high", "line, 95 %", "rgba(0,114,178,0.28)")):
        across = line["x"].to_list()
        figure.add_trace(trace("scatter",
                               x=[*across, *across[::-1]], y=[*line[high].to_list(), *line[low].to_list()[::-1]],
                               fill="toself", fillcolor=colour, line={"width": 0}, name=name, hoverinfo="skip",
                               mode="lines"))
    figure.add_trace(trace("scatter", x=line["x"].to_list(), y=line["y"].to_list(), name="trend", mode="lines",
                           line={"color": SERIES_COLOURS[0], "width": 2}))
    figure.add_trace(trace("scatter", x=values["x"].to_list(), y=values["y"].to_list(), name="runs", mode="markers",
                           marker={"color": SERIES_COLOURS[1], "size": 6}))
    return figure


def _side_by_side(title: str, titles: Sequence[str], y: str) -> Figure:
    """Panels that share the vertical axis, in the house's style."""
    figure = blank(title, "", "")
    style = {axis: {**figure.layout[axis], "title": None} for axis in ("xaxis", "yaxis")}
    for name, axis in panels(max(len(titles), 1)).items():
        figure.update_layout({name: {**style[name.rstrip("0123456789")], **axis}})
    figure.update_layout(xaxis={"title": None}, yaxis={"title": y})
    for place, words in enumerate(titles, start=1):
        # Each stands below its own panel, which on half a page is a hundred pixels wide.
        figure.update_xaxes(title={"text": words, "font": {"size": 12}}, panel=place)
    return figure


def _ordered(frame: pl.DataFrame, column: str) -> list[str]:
    return [str(value) for value in frame[column].unique(maintain_order=True).to_list()]


def _colour(index: int) -> str:
    return SERIES_COLOURS[index % len(SERIES_COLOURS)]


def _legend_beside(figure: Figure, lines: int) -> Figure:
    """Many lines have their names beside the figure: above it they would cover it."""
    if lines > 5:
        figure.update_layout(legend={"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top"}, margin={"r": 10},
                             height=max(400, 110 + 20 * lines))
    return figure


def _log_where_wide(figure: Figure, values: pl.Series) -> Figure:
    """A logarithmic axis where the values span more than a factor of 30."""
    known = values.drop_nulls()
    wide = known.len() > 0 and float(known.min()) > 0 and float(known.max()) / float(known.min()) > 30  # type: ignore[arg-type]
    figure.update_yaxes(**({"type": "log", "dtick": 1} if wide else {"rangemode": "tozero"}))
    return figure


def _wide_across(figure: Figure, samples: Mapping[str, np.ndarray]) -> Figure:
    lows = [float(np.quantile(values, 0.001)) for values in samples.values()]
    highs = [float(values.max()) for values in samples.values()]
    if lows and min(lows) > 0 and max(highs) / min(lows) > 30:
        figure.update_xaxes(type="log", dtick=1)
    else:
        figure.update_xaxes(rangemode="tozero")
    return _legend_beside(figure, len(samples))
