"""The figures of a run that goes on, by name: from what its engine has said so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from mqttlab import figures
from mqttlab.figures.drawing import Figure
from mqttlab.figures.marks import mark
from mqttlab.plan.events import Change
from mqttlab.report.changes import marks

SCHEMA: dict[str, Any] = {
    "at_s": pl.Float64, "connected": pl.Int64, "offered": pl.Int64, "sent": pl.Int64, "delivered": pl.Int64,
    "disconnects": pl.Int64, "latency_p50_ns": pl.Int64, "latency_p99_ns": pl.Int64,
    "sender_lateness_p99_ns": pl.Int64, "emulator_lateness_p99_ns": pl.Int64, "events_per_s": pl.Int64,
}
LINKS = {"link": pl.String, "at_s": pl.Float64, "rate_bit_s": pl.Float64, "queue_bytes": pl.Float64}
SERVERS = {"server": pl.String, "at_s": pl.Float64, "percent": pl.Float64}
Ticks = list[dict[str, Any]]
# What a screen shows; of a longer run every second tick, every third, ...
TICKS_DRAWN = 600


def ticks(kept: Ticks) -> pl.DataFrame:
    """Ticks as a table."""
    return pl.DataFrame([{**{name: line.get(name) for name in SCHEMA}, "at_s": line["at_ns"] / 1e9} for line in kept],
                        schema=SCHEMA)


def links(kept: Ticks) -> pl.DataFrame:
    """What the busiest links of each tick did."""
    return pl.DataFrame([(name, line["at_ns"] / 1e9, rate, queue) for line in kept
                         for name, (rate, queue) in line["links"].items()], schema=LINKS, orient="row")


def servers(kept: Ticks) -> pl.DataFrame:
    """What servers used."""
    return pl.DataFrame([(name, line["at_ns"] / 1e9, percent) for line in kept
                         for name, percent in line["servers"].items()], schema=SERVERS, orient="row")


FIGURES: dict[str, Callable[[Ticks], Figure]] = {
    "messages": lambda kept: figures.message_rates(ticks(kept)),
    "latency": lambda kept: figures.live_latency(ticks(kept)),
    "lateness": lambda kept: figures.live_lateness(ticks(kept)),
    "links": lambda kept: figures.live_links(links(kept)),
    "queues": lambda kept: figures.live_queues(links(kept)),
    "servers": lambda kept: figures.live_servers(servers(kept)),
}


def nothing(kept: Ticks) -> str:
    """Why a figure shows nothing; the recording may have more than the progress lines."""
    return ("The engine has told nothing that this figure shows." if len(kept) > 1 else
            "The engine has told too little for a figure so far.")


def drawn(name: str, kept: Ticks, taken: Sequence[Change] = ()) -> Figure | None:
    """A figure with the events that took place; nothing where there is no such figure, or too little to draw."""
    thinned = kept[::-(-max(len(kept), 1) // TICKS_DRAWN)]
    if name not in FIGURES or len(thinned) < 2:
        return None
    figure = FIGURES[name](thinned)
    return mark(figure, marks(taken)) if any(len(trace.x) for trace in figure.data) else None
