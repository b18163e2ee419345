"""Figures of one TCP connection: its stream over time, its round trips, its windows and what is in flight."""

from __future__ import annotations

import polars as pl

from mqttlab.figures.drawing import Figure, trace
from mqttlab.figures.style import SERIES_COLOURS, blank

MOST_POINTS = 6000
WORDS = {"to_broker": "to the broker", "to_client": "to the client"}


def time_sequence(segments: pl.DataFrame, flight: pl.DataFrame, towards: str, most: int = MOST_POINTS) -> Figure:
    """The stream over time: each segment from its first to its last byte, and how far it was acknowledged.

    Args:
        segments: columns ``at_s``, ``start``, ``end``, ``again``, ``lost``, ``mqtt``
            (:func:`mqttlab.metrics.connection_segments`).
        flight: columns ``at_s``, ``acknowledged`` (:func:`mqttlab.metrics.connection_flight`).
        towards: the data's direction.
        most: above so many segments an even selection is drawn, and the title says so; those sent again or lost are
            always kept.
    """
    title = f"Time and sequence, {WORDS.get(towards, towards)}"
    shown = _thinned(segments, pl.col("again") | pl.col("lost"), most)
    if shown.height < segments.height:
        title += f" ({shown.height} of {segments.height} segments drawn)"
    figure = blank(title, "run time (s)", "position in the stream (B)")
    kinds = (("sent", ~pl.col("again") & ~pl.col("lost"), 0), ("sent again", pl.col("again"), 1),
             ("lost on the way", pl.col("lost") & ~pl.col("again"), 5))
    for name, which, colour in kinds:
        part = shown.filter(which)
        if part.is_empty():
            continue
        xs, ys, words = [], [], []
        for at, start, end, mqtt in part.select("at_s", "start", "end", "mqtt").iter_rows():
            xs += [at, at, None]
            ys += [start, end, None]
            words += [mqtt, mqtt, ""]
        figure.add_trace(trace(
            "scatter", x=xs, y=ys, mode="lines+markers", name=name, text=words,
            marker={"size": 3, "color": SERIES_COLOURS[colour]},
            line={"color": SERIES_COLOURS[colour], "width": 3 if colour else 2},
            hovertemplate="%{x:.4f} s, byte %{y}<br>%{text}<extra>" + name + "</extra>"))
    known = _thinned(flight, pl.lit(False))
    figure.add_trace(trace("scatter", x=known["at_s"].to_list(), y=known["acknowledged"].to_list(), mode="lines",
                           name="acknowledged", line={"color": SERIES_COLOURS[2], "width": 1.5, "shape": "hv"}))
    return figure.update_yaxes(rangemode="tozero")


def in_flight(flight: pl.DataFrame, states: pl.DataFrame, towards: str) -> Figure:
    """Bytes in flight, and the windows that bound them.

    Args:
        flight: columns ``at_s``, ``in_flight_bytes`` (:func:`mqttlab.metrics.connection_flight`).
        states: rows of ``tcp_state`` of the sender: columns ``at_ns``, ``congestion_window_bytes``,
            ``slow_start_threshold_bytes``; may be empty.
        towards: the data's direction.
    """
    figure = blank(f"In flight and windows, {WORDS.get(towards, towards)}", "run time (s)", "B")
    shown = _thinned(flight, pl.lit(False))
    figure.add_trace(trace("scatter", x=shown["at_s"].to_list(), y=shown["in_flight_bytes"].to_list(), mode="lines",
                           name="in flight", line={"color": SERIES_COLOURS[0], "width": 1.5, "shape": "hv"}))
    for index, (column, name) in enumerate((("congestion_window_bytes", "congestion window"),
                                            ("slow_start_threshold_bytes", "slow-start threshold")), start=1):
        if states.is_empty() or states[column].null_count() == states.height:
            continue
        figure.add_trace(trace(
            "scatter", x=(states["at_ns"] / 1e9).to_list(), y=states[column].to_list(), mode="lines", name=name,
            line={"color": SERIES_COLOURS[index], "width": 2, "shape": "hv", "dash": "dot" if index > 1 else "solid"}))
    return figure.update_yaxes(rangemode="tozero")


def receive_window(flight: pl.DataFrame, towards: str) -> Figure:
    """What the receiver has announced, as in the header: not scaled.

    Args:
        flight: columns ``at_s``, ``window`` (:func:`mqttlab.metrics.connection_flight`).
        towards: the data's direction.
    """
    title = f"Window announced by the receiver of data {WORDS.get(towards, towards)} (not scaled)"
    figure = blank(title, "run time (s)", "window field")
    known = _thinned(flight.drop_nulls("window"), pl.lit(False))
    figure.add_trace(trace("scatter",
                           x=known["at_s"].to_list(), y=known["window"].to_list(), mode="lines", name="window",
                           line={"color": SERIES_COLOURS[3], "width": 1.5, "shape": "hv"}))
    return figure.update_yaxes(rangemode="tozero")


def connection_round_trips(samples: pl.DataFrame, towards: str, most: int = MOST_POINTS) -> Figure:
    """The round trips of one direction's data, and the retransmission time-out that follows from them.

    Args:
        samples: columns ``at_s``, ``rtt_ms``, ``rto_ms`` (:func:`mqttlab.metrics.round_trips`).
        towards: the data's direction.
        most: above so many of them an even selection is drawn, and the title says so.
    """
    figure = blank(f"Round trips of data {WORDS.get(towards, towards)}", "run time (s)", "ms")
    shown = _thinned(samples, pl.lit(False), most)
    if shown.height < samples.height:
        figure.update_layout(title=f"{figure.layout.title.text} ({shown.height} of {samples.height} drawn)")
    for column, name, colour, mode in (("rtt_ms", "round trip", 0, "markers"), ("rto_ms", "time-out", 1, "lines")):
        known = shown.drop_nulls(column)
        figure.add_trace(trace("scatter", x=known["at_s"].to_list(), y=known[column].to_list(), mode=mode, name=name,
                               marker={"size": 4, "color": SERIES_COLOURS[colour]},
                               line={"color": SERIES_COLOURS[colour], "width": 1.5}))
    return figure.update_yaxes(rangemode="tozero")


def _thinned(rows: pl.DataFrame, always: pl.Expr, most: int = MOST_POINTS) -> pl.DataFrame:
    """An even selection of many rows, and those that are to be kept."""
    if rows.height <= most:
        return rows
    step = -(-rows.height // most)
    numbered = rows.with_row_index("row")
    kept = numbered.filter((pl.col("row") % step == 0) | always)
    return kept.drop("row")
