"""The figures of one TCP connection, under names that an address can hold: ``connection-12-to_broker-sequence``."""

from __future__ import annotations

import polars as pl

from mqttlab import metrics
from mqttlab.dashboard.panels import MARKERS_MAX
from mqttlab.digits import whole
from mqttlab.figures import connection as figures
from mqttlab.figures.drawing import Figure
from mqttlab.recording import Recording

KINDS = ("sequence", "round-trips", "in-flight", "window")
PREFIX = "connection-"


def names(connection: int) -> list[str]:
    """The figures of a connection, both directions of each beside each other."""
    return [f"{PREFIX}{connection}-{towards}-{kind}" for kind in KINDS for towards in metrics.DIRECTIONS]


def drawn(recording: Recording, name: str, shown: tuple[float, float] | None) -> Figure | None:
    """A figure of this name, of the range of time that is shown; nothing where there is none."""
    written, _, rest = name.removeprefix(PREFIX).partition("-")
    towards, _, kind = rest.partition("-")
    connection = whole(written)
    if connection is None or towards not in metrics.DIRECTIONS or kind not in KINDS:
        return None
    flight = _within(recording.derived(f"flight {connection} {towards}", lambda of: metrics.connection_flight(
        of, connection, towards)), shown)
    if flight.is_empty():
        return None
    if kind == "sequence":
        segments = recording.derived(f"segments {connection} {towards}", lambda of: metrics.connection_segments(
            of, connection, towards))
        return figures.time_sequence(_within(segments, shown), flight, towards, MARKERS_MAX)
    if kind == "window":
        return figures.receive_window(flight, towards)
    if kind == "in-flight":
        return figures.in_flight(flight, _states(recording, connection, towards), towards)
    samples = recording.derived("round trips of figures", metrics.round_trips).filter(
        pl.col("connection") == connection, pl.col("towards") == towards)
    samples = _within(samples, shown)
    return None if samples.is_empty() else figures.connection_round_trips(
        samples, towards, MARKERS_MAX)


def _states(recording: Recording, connection: int, towards: str) -> pl.DataFrame:
    states = recording.tcp_state
    if states.is_empty():
        return states
    end = "client" if towards == "to_broker" else "server"
    return states.filter(pl.col("connection") == connection, pl.col("end").cast(pl.String) == end).sort("at_ns")


def _within(rows: pl.DataFrame, shown: tuple[float, float] | None) -> pl.DataFrame:
    return rows if shown is None or rows.is_empty() else rows.filter(pl.col("at_s").is_between(*shown))
