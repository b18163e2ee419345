"""On how many events of loss the 99th percentile of a flow's latencies rests.

Deliveries at or beyond the percentile that were under way at one time, of one publisher for one subscriber, are one
event: a burst of loss delays what is behind it, too. An event is one of loss where some delivery waited for a
repetition, or for a broken connection, for ``WAITED_PERCENT`` of its latency. The percentile rests on loss where at
least half of these deliveries belong to such events.

Few events are a small sample, whatever the number of messages: four events may be one or nine in the next run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from mqttlab.metrics.attribution import attribution_gap, attribution_parts
from mqttlab.metrics.flow import FLOW, Key
from mqttlab.metrics.window import is_measured
from mqttlab.recording import Recording

REPEATED = ("retransmission_to_broker_ns", "retransmission_to_subscriber_ns", "retry_ns")
"""Parts of a latency that are waits for what was sent again."""
WAITED_PERCENT = 40
SHARE_OF_SLOW = 0.5
ROWS_AT_ONCE = 500_000
NS_PER_MS = 1e6
# A float's last digits, between a percentile in ms and a latency in ns.
TOLERANCE_NS = 1


def loss_events(recording: Recording, p99_ms: dict[Key, float]) -> dict[Key, int]:
    """Events of loss behind the percentile, of each flow whose percentile rests on loss.

    Args:
        recording: where from.
        p99_ms: the percentile of each flow to look at.
    """
    if not p99_ms or attribution_gap(recording) is not None:
        return {}
    asked = pl.DataFrame(
        [(*flow, value * NS_PER_MS - TOLERANCE_NS) for flow, value in p99_ms.items()], orient="row",
        schema={**dict.fromkeys(FLOW, pl.String), "qos": pl.UInt8, "p99_ns": pl.Float64})
    waited = pl.sum_horizontal(pl.col(name).fill_null(0) for name in REPEATED)
    slow = pl.concat([recording.collect(
        part.filter(is_measured(recording))
        .with_columns(pl.col("qos").cast(pl.UInt8))
        .join(asked.lazy(), on=list(FLOW), nulls_equal=True).filter(pl.col("latency_ns") >= pl.col("p99_ns"))
        .select(*FLOW, "publisher", "subscriber", "intended_ns", "received_ns",
                again=100 * waited >= WAITED_PERCENT * pl.col("latency_ns")))
        for part in attribution_parts(recording, ROWS_AT_ONCE)])
    events = _events(slow)
    found = events.group_by(FLOW).agg(
        slow=pl.col("deliveries").sum(), by_loss=pl.col("deliveries").filter("again").sum(),
        events=pl.col("again").sum())
    resting = found.filter(pl.col("by_loss") >= SHARE_OF_SLOW * pl.col("slow"), pl.col("events") > 0)
    rows: Iterable[tuple[Any, ...]] = resting.select(*FLOW, "events").rows()
    return {Key(*row[:-1]): int(row[-1]) for row in rows}


def _events(slow: pl.DataFrame) -> pl.DataFrame:
    """A row for each event: its flow, its ``deliveries``, and whether one of them waited ``again``."""
    ends = [*FLOW, "publisher", "subscriber"]
    ordered = slow.sort(*ends, "intended_ns", nulls_last=True)
    until = pl.col("received_ns").cum_max().shift(1).over(ends)
    begins = (until.is_null() | (pl.col("intended_ns").cast(pl.Int64) > until.cast(pl.Int64)))
    return ordered.with_columns(event=begins.cast(pl.UInt32).cum_sum()).group_by("event", *FLOW).agg(
        deliveries=pl.len(), again=pl.col("again").any())
