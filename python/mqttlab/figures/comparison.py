"""Figures of two and more sides: their latencies, how far each quantile is shifted, each message in both."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import polars as pl

from mqttlab.figures.drawing import Figure, trace
from mqttlab.figures.hover import hover, hover_of_two
from mqttlab.figures.series import divided
from mqttlab.figures.style import SERIES_COLOURS, blank

CDF_POINTS = 500
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
PATTERNS = ("", "/", ".", "x")
POINTS_MOST = 5_000


def bars_by_qos(values: pl.DataFrame, title: str, axis: str) -> Figure:
    """A metric of every side at each QoS, side by side, as andersen2021 draws its networks; with intervals over runs.

    Args:
        values: columns ``side``, ``qos`` (as text), ``mean``, ``low``, ``high`` (null of fewer than two runs).
        title: the figure's.
        axis: what is measured, with its unit.
    """
    figure = blank(title, "QoS", axis)
    for index, side in enumerate(values["side"].unique(maintain_order=True)):
        part = values.filter(pl.col("side") == side)
        up, down = part["high"] - part["mean"], part["mean"] - part["low"]
        figure.add_trace(trace(
            "bar", x=[f"QoS {qos}" for qos in part["qos"]], y=part["mean"].to_list(), name=side,
            marker={"color": SERIES_COLOURS[index % len(SERIES_COLOURS)],
                    "pattern": {"shape": PATTERNS[index % len(PATTERNS)]}},
            error_y={"type": "data", "array": up.to_list(), "arrayminus": down.to_list(),
                     "visible": part["low"].is_not_null().any()},
            hovertemplate="%{x}: %{y:,.4~r}<extra>%{fullData.name}</extra>"))
    figure.update_layout(barmode="group")
    figure.update_xaxes(type="category", categoryorder="category ascending")
    figure.update_yaxes(rangemode="tozero")
    return figure


def latency_cdf_of_sides(samples: Mapping[str, pl.DataFrame]) -> Figure:
    """Cumulative latency of each side, all its runs together: a colour for each QoS, and publication where there are
    several; dashes for each side.

    Args:
        samples: by the side's name: columns ``qos``, ``latency_ms``, and ``publication`` where there are several.
    """
    figure = blank("Latency, cumulative", "latency (ms)", "share of the deliveries")
    for dash, (name, side) in zip(itertools.cycle(DASHES), samples.items(), strict=False):
        for each in divided(side):
            latency = each.samples["latency_ms"].to_numpy()
            probability = np.linspace(0, 1, min(CDF_POINTS, max(latency.size, 2)))
            across = np.quantile(latency, probability).tolist()
            figure.add_trace(trace(
                "scatter", x=across, y=probability.tolist(), mode="lines",
                name=f"{name}, {each.name}",
                line={"color": each.colour, "width": 2, "shape": "hv", "dash": dash},
                **hover(across, "%{x:.3f} ms", "%{y:.1%} within ", f"<extra>{name}, {each.name}</extra>")))
    figure.update_yaxes(range=[0, 1.01], tickformat=".0%")
    values = [float(value) for side in samples.values() for value in side["latency_ms"].to_list()]
    if values and min(values) > 0 and max(values) / float(np.quantile(values, 0.001)) > 30:
        figure.update_xaxes(type="log", dtick=1)
    else:
        figure.update_xaxes(rangemode="tozero")
    return figure


def quantile_shifts(shifts: pl.DataFrame) -> Figure:
    """How far each quantile of the latency is shifted, with its interval where there is one.

    Args:
        shifts: columns ``flow``, ``quantile`` (as text), ``shift_ms``, ``low_ms``, ``high_ms`` (null without interval).
    """
    figure = blank("Shift of each quantile (second less first)", "quantile of the latency", "shift (ms)")
    for place, flow in enumerate(shifts["flow"].unique(maintain_order=True).to_list()):
        part, name = shifts.filter(pl.col("flow") == flow), str(flow)
        up, down = part["high_ms"] - part["shift_ms"], part["shift_ms"] - part["low_ms"]
        known = part["low_ms"].is_not_null().all()
        figure.add_trace(trace(
            "scatter",
            x=part["quantile"].to_list(), y=part["shift_ms"].to_list(), mode="lines+markers", name=name,
            line={"color": SERIES_COLOURS[place % len(SERIES_COLOURS)], "width": 2}, marker={"size": 8},
            error_y={"type": "data", "array": up.to_list(), "arrayminus": down.to_list(), "visible": known},
            **hover(part["shift_ms"].to_list(), "%{y:+.3f} ms", "%{x}: ", f"<extra>{name}</extra>", signed=True)))
    figure.add_line("y", 0, {"color": "#5b6572", "width": 1})
    figure.update_xaxes(type="category")
    return figure


def ratios(table: pl.DataFrame) -> Figure:
    """The ratio of means of each metric with its interval; left of 1 the second is smaller.

    Args:
        table: columns ``name``, ``ratio``, ``low``, ``high``, ``verdict``.
    """
    figure = blank("Second over first, ratio of means with 95 % interval", "ratio", "")
    colours = {"better": "#009E73", "worse": "#D55E00", "equivalent": "#0072B2", "different": "#CC79A7",
               "undecided": "#8a8f98"}
    for word in colours:
        part = table.filter(pl.col("verdict").str.starts_with(word))
        if part.height:
            up, down = part["high"] - part["ratio"], part["ratio"] - part["low"]
            figure.add_trace(trace(
                "scatter", x=part["ratio"].to_list(), y=part["name"].to_list(), mode="markers", name=word,
                marker={"color": colours[word], "size": 9},
                error_x={"type": "data", "array": up.to_list(), "arrayminus": down.to_list()},
                hovertemplate="%{y}: %{x:,.4~r}<extra>" + word + "</extra>"))
    figure.add_line("x", 1, {"color": "#5b6572", "width": 1})
    figure.update_yaxes(automargin=True, ticks="", categoryorder="array",
                        categoryarray=table["name"].to_list()[::-1])
    figure.update_layout(height=max(300, 120 + 26 * table.height))
    return figure


def latency_in_both(messages: pl.DataFrame, most: int = POINTS_MOST) -> Figure:
    """Each message's latency in both runs; those on the line are as fast in both.

    Args:
        messages: columns ``first_ms``, ``second_ms``, ``reason``.
        most: above so many messages an even selection is drawn, and the title says so.
    """
    title = "Latency of each message in both runs"
    shown = messages
    if messages.height > most:
        shown = messages.gather_every(-(-messages.height // most))
        title += f" ({shown.height} of {messages.height} drawn)"
    figure = blank(title, "first run (ms)", "second run (ms)")
    for index, reason in enumerate(sorted(shown["reason"].unique().to_list())):
        part = shown.filter(pl.col("reason") == reason)
        figure.add_trace(trace(
            "scattergl", x=part["first_ms"].to_list(), y=part["second_ms"].to_list(), mode="markers", name=reason,
            marker={"color": SERIES_COLOURS[index % len(SERIES_COLOURS)], "size": 6, "opacity": 0.7},
            **hover_of_two(part["first_ms"].to_list(), part["second_ms"].to_list(), "%{x:.2f} ms → %{y:.2f} ms",
                           f"<extra>{reason}</extra>")))
    if shown.height:
        both = [*shown["first_ms"].to_list(), *shown["second_ms"].to_list()]
        ends = [min(both), max(both)]
        figure.add_trace(trace("scatter",
                               x=ends, y=ends, mode="lines", name="equal", line={"color": "#5b6572", "width": 1}))
        if ends[0] > 0 and ends[1] / ends[0] > 30:
            figure.update_xaxes(type="log", dtick=1)
            figure.update_yaxes(type="log", dtick=1)
    figure.update_layout(height=480, margin={"t": 90})
    return figure
