"""Where each message's time went: its latency, split into parts that are never negative and add up to it.

```text
  intended ─schedule─ sent ─session─ written ─nagle/socket─ first byte on the link ─(again)─ queue ─ wire ─► broker
     ─ handshake ─ window ─ nagle/socket ─ broker ─ first byte on the link ─(again)─ queue ─ wire ─► client
     ─ release ─ received
```

`matching` finds the MQTT packets that carried a message, `transport` what TCP did with their bytes, `chain` puts the
instants in order; this module adds up the legs of relayed messages and takes means. Nothing here knows who made the
recording; where no packets were recorded, the parts are null.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mqttlab.metrics.catalogue import PARTS
from mqttlab.recording import Recording
from oracle.attribution.chain import chain
from oracle.attribution.matching import control_packets, delivered, legs
from oracle.attribution.transport import Transport

__all__ = ["ADDED", "Evidence", "attribution", "attribution_gap", "evidence"]

ADDED = (*PARTS, "adjusted_ns", "legs", "unattributed")
EARLIER_LEG = "a part of their way to the relay was not recorded"
NO_PACKETS = "packets were not recorded, because the network was direct or the scenario did not ask for them"
COLUMNS = ("publisher", "sequence", "topic", "subscriber", "publisher_group", "subscriber_group", "phase", "qos",
           "intended_ns", "received_ns", "latency_ns")


def attribution(recording: Recording) -> pl.DataFrame:
    """One row per delivered message and receiver, in the order of the recording.

    Columns: who and when, ``latency_ns``, the parts, which add up to it, ``adjusted_ns`` (by how much in all the
    recorded instants had to be moved for that), ``legs`` (1, and 1 more for each relay), and ``unattributed``: why the
    parts are null, where they are.
    """
    return recording.derived("oracle attribution", _attribution)


def _attribution(recording: Recording) -> pl.DataFrame:
    if recording.messages.is_empty():
        return pl.DataFrame()
    if attribution_gap(recording) is None:
        return _whole(evidence(recording).legs).select(*COLUMNS, *ADDED)
    nothing = pl.lit(None, pl.Int64)
    parts = delivered(recording).select(*COLUMNS, *(nothing.alias(name) for name in ADDED))
    return parts.with_columns(unattributed=pl.lit(NO_PACKETS))


@dataclass(frozen=True)
class Evidence:
    """What the parts were read from."""

    control_packets: pl.DataFrame
    transport: Transport
    legs: pl.DataFrame
    """One row per delivery: the parts of its last leg, and the packets, frames and instants that tell them."""


def evidence(recording: Recording) -> Evidence:
    """The legs of every delivery; only where :func:`attribution_gap` is ``None``."""
    packets = control_packets(recording)
    transport = Transport.of(recording)
    return Evidence(packets, transport, chain(legs(recording, packets), packets, transport, recording.plan))


def attribution_gap(recording: Recording) -> str | None:
    """Why nothing can be said about where the time went; ``None`` when it can."""
    if recording.messages.is_empty():
        return "no message was recorded"
    if recording.table("packets").is_empty() or recording.control_packets.is_empty():
        return NO_PACKETS
    return None


def _whole(legs: pl.DataFrame) -> pl.DataFrame:
    """Add the parts of the legs before to those of the last, until there are none before."""
    sums = ("adjusted_ns", *PARTS, "legs")
    table = legs.with_columns(legs=pl.lit(1, pl.Int64), _before="before")
    while table["_before"].is_not_null().any():
        earlier = legs.with_columns(legs=pl.lit(1, pl.Int64)).select(
            pl.col("leg").alias("_before"), pl.col("before").alias("_next"),
            *(pl.col(name).alias(f"_{name}") for name in sums))
        table = table.join(earlier, on="_before", how="left", maintain_order="left")
        relayed = pl.col("_before").is_not_null()
        unknown = relayed & pl.col("_adjusted_ns").is_null() & pl.col("unattributed").is_null()
        table = table.with_columns(
            *(pl.when(relayed).then(pl.col(name) + pl.col(f"_{name}")).otherwise(name).alias(name) for name in sums),
            unattributed=pl.when(unknown).then(pl.lit(EARLIER_LEG)).otherwise("unattributed"),
        ).with_columns(_before=pl.col("_next")).drop("_next", *(f"_{name}" for name in sums))
    return table
