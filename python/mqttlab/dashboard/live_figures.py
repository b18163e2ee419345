"""The figures of a run that goes on, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import polars as pl

from mqttlab import figures

SCHEMA: dict[str, Any] = {
    "at_s": pl.Float64, "connected": pl.Int64, "offered": pl.Int64, "sent": pl.Int64, "delivered": pl.Int64,
    "disconnects": pl.Int64, "latency_p50_ns": pl.Int64, "latency_p99_ns": pl.Int64,
    "sender_lateness_p99_ns": pl.Int64, "emulator_lateness_p99_ns": pl.Int64, "events_per_s": pl.Int64,
}
FIGURES: dict[str, Callable[[pl.DataFrame], go.Figure]] = {
    "messages": figures.message_rates, "latency": figures.live_latency, "lateness": figures.live_lateness}
# What a screen shows; of a longer run every second tick, every third, ...
TICKS_DRAWN = 1200


def ticks(lines: list[dict[str, Any]]) -> pl.DataFrame:
    """The engine's ticks as a table, thinned for a figure."""
    found = [{**line, "at_s": line["at_ns"] / 1e9} for line in lines if line.get("event") == "tick"]
    table = pl.DataFrame([{name: line.get(name) for name in SCHEMA} for line in found], schema=SCHEMA)
    return table.gather_every(-(-max(table.height, 1) // TICKS_DRAWN))


def drawn(name: str, lines: list[dict[str, Any]]) -> go.Figure | None:
    """A figure; nothing where there is no such figure, or too little to draw."""
    table = ticks(lines)
    return FIGURES[name](table) if name in FIGURES and table.height > 1 else None
