"""The messages of each client: what a sum over a fleet hides.

A client that publishes is judged by what it sent, any other by what was sent to it. Of a client with few messages a
percentile is no more than its slowest message: there are means, medians and largest values.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import EXPECTED, FIRST_DELIVERY, NS_PER_MS, has_messages, measured
from mqttlab.metrics.undelivered import share_of, with_undelivered
from mqttlab.recording import Recording, named

COLUMNS = ("deliveries_expected", "messages_delivered", "undelivered_percent", "latency_ms_mean", "latency_ms_p50",
           "latency_ms_max")


def messages_by_device(recording: Recording) -> pl.DataFrame:
    """One row for each client that published, or was to receive and did not publish: ``client`` (its name), ``group``,
    ``number`` (as rows have it), and :data:`COLUMNS` of the messages of the measurement. Empty where there was none."""
    return recording.derived("messages by device", _messages_by_device)


def worst_first(each: pl.DataFrame) -> pl.DataFrame:
    """Rows of such a table, those with the least delivered first, then those with the largest median latency: the
    largest latency is that of any client that shares a delivery with a slow one."""
    order = ("undelivered_percent", "latency_ms_p50", "latency_ms_max")
    return each.sort(order, descending=True, nulls_last=True, maintain_order=True)


def _messages_by_device(recording: Recording) -> pl.DataFrame:
    if not has_messages(recording) or sums.is_summed(recording):
        return pl.DataFrame()
    sent = _of(recording, "publisher")
    received = _of(recording, "subscriber").join(sent, on="client", how="anti")
    each = pl.concat([sent, received]).sort("client")
    clients = recording.layout["clients"]
    return each.select(named("client", clients.names),
                       named("client", clients.groups).alias("group"), *COLUMNS, number="client")


def _of(recording: Recording, end: str) -> pl.DataFrame:
    messages = measured(recording)
    latency = pl.col("latency_ns").filter(FIRST_DELIVERY)
    counted = recording.collect(messages.group_by(end).agg(
        deliveries_expected=EXPECTED.sum().cast(pl.Int64), messages_delivered=FIRST_DELIVERY.sum().cast(pl.Int64),
        latency_ms_mean=latency.mean() / NS_PER_MS,
        latency_ms_p50=latency.median() / NS_PER_MS, latency_ms_max=latency.max() / NS_PER_MS)).drop_nulls(end)
    # What was never sent has no row for each of its subscribers, so that it counts for its publisher alone.
    table = with_undelivered(recording, messages, counted, [end]) if end == "publisher" else counted.with_columns(
        undelivered_percent=share_of(pl.col("deliveries_expected")))
    return table.select(pl.col(end).cast(pl.Int64).alias("client"), *COLUMNS)
