"""How long the broker took to acknowledge messages, of flows whose deliveries are not in the evidence.

Where only publishers' connections were captured, or no client of a run subscribes, the last acknowledgement is all that
is known of a message's way: PUBACK at QoS 1, PUBCOMP at QoS 2. At QoS 0 MQTT acknowledges nothing; then the round trips
of TCP to the broker are taken, which are of segments, not of messages.

The time is from the first packet (of our own runs from handing over) to the last acknowledgement. A message without one
counts as not acknowledged, also where the evidence ends before it could come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab.metrics import sums
from mqttlab.metrics.application import has_messages, measured
from mqttlab.metrics.flow import FLOW, Key, key_of
from mqttlab.metrics.network import round_trips
from mqttlab.metrics.quantiles import QUANTILES, Bounded, Latency, bounds, latencies
from mqttlab.recording import Recording

PACKETS = {1: "PUBACK", 2: "PUBCOMP"}
"""The last acknowledgement of a message, by QoS."""
NS_PER_MS = 1e6
NOT_KNOWN: Bounded = (None, None, None)


@dataclass(frozen=True, kw_only=True)
class Acknowledgements:
    """What is known of the acknowledgements of one flow."""

    sent: int
    acknowledged: int
    latency: dict[str, Latency]
    """By ``p50``, ``p95``, ``p99`` and ``max``; unknown where nothing was acknowledged, or frames have no time."""


@dataclass(frozen=True, kw_only=True)
class RoundTrips:
    """Round trips of TCP from a group's clients to the broker, in ms."""

    p50: float
    p95: float
    count: int


def acknowledgements(recording: Recording) -> dict[Key, Acknowledgements]:
    """Of each flow without a receiver at QoS 1 or 2: its messages and their acknowledgements."""
    if not has_messages(recording):
        return {}
    return _of_sums(recording) if sums.is_summed(recording) else _of_messages(recording)


def _of_messages(recording: Recording) -> dict[Key, Acknowledgements]:
    took = (pl.col("acknowledged_ns").cast(pl.Int64) - pl.col("sent_ns").cast(pl.Int64)) / NS_PER_MS
    rows = recording.collect(
        measured(recording).filter(pl.col("fate") == "no_receiver", pl.col("qos").is_in(list(PACKETS)))
        .sort("intended_ns", nulls_last=True).select(*FLOW, took=took))
    found: dict[Key, Acknowledgements] = {}
    for ends, part in rows.partition_by(FLOW, as_dict=True, maintain_order=True).items():
        known = part["took"].drop_nulls()
        timed = np.empty(0) if recording.layout.get("is_untimed") else known.to_numpy()
        found[key_of(ends, recording)] = Acknowledgements(
            sent=part.height, acknowledged=known.len(), latency=_latencies(timed))
    return found


def _latencies(took_ms: NDArray[np.float64]) -> dict[str, Latency]:
    if not took_ms.size:
        return latencies(dict.fromkeys(QUANTILES, NOT_KNOWN), None, 0)
    values, between = np.quantile(took_ms, list(QUANTILES.values())).tolist(), bounds(took_ms)
    largest = float(took_ms.max())
    return latencies({name: (value, *between[name]) for name, value in zip(QUANTILES, values, strict=True)},
                     largest, took_ms.size, int(np.count_nonzero(took_ms == largest)))


def _of_sums(recording: Recording) -> dict[Key, Acknowledgements]:
    table = sums.measured_sums(recording).filter(
        pl.col("fate") == "no_receiver", pl.col("qos").is_in(list(PACKETS)), pl.col("count") > 0)
    histograms = recording.table(sums.HISTOGRAMS).filter(pl.col("quantity").cast(pl.String) == "acknowledgement")
    found: dict[Key, Acknowledgements] = {}
    for ends, part in table.partition_by(FLOW, as_dict=True, maintain_order=True).items():
        its = histograms.filter(pl.col("sum").is_in(part["sum"].implode()))
        acknowledged = int(part["acknowledged"].sum())
        quantiles: dict[str, Bounded] = dict.fromkeys(QUANTILES, NOT_KNOWN)
        if not its.is_empty():
            values = sums.quantiles(its, list(QUANTILES.values()), 0, math.inf)
            quantiles = {name: (value / NS_PER_MS, None, None)
                         for name, value in zip(QUANTILES, values, strict=True)}
        found[Key(*ends)] = Acknowledgements(
            sent=int(part["count"].sum()), acknowledged=acknowledged,
            latency=latencies(quantiles, None, acknowledged))
    return found


def round_trips_to_broker(recording: Recording) -> dict[str, RoundTrips]:
    """Of each group, what TCP's acknowledgements show of the way to the broker; empty where no segment tells."""
    found = round_trips(recording, ["group", "towards", "rtt_ms"]).filter(pl.col("towards") == "to_broker")
    told = found.drop_nulls().group_by("group").agg(
        p50=pl.col("rtt_ms").quantile(0.5, "linear"), p95=pl.col("rtt_ms").quantile(0.95, "linear"), count=pl.len())
    return {str(group): RoundTrips(p50=p50, p95=p95, count=count) for group, p50, p95, count in told.rows()}
