"""Where the time of each flow's messages went: of the faster half, and of the slowest hundredth."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab.metrics.attribution import ATTRIBUTED, attribution_gap, means
from mqttlab.metrics.catalogue import PARTS
from mqttlab.metrics.window import is_measured
from mqttlab.recording import Recording, looked_up

# Rows of two tables beside each other: polars reads ahead, and holds what it has read.
SUMMED_AT_ONCE = 500_000
# Levels are 0 to 2.
QOS = 4
FLOW = ("publisher_group", "subscriber_group", "qos")


def attribution_by_flow(recording: Recording) -> pl.DataFrame:
    """Means of the parts by bands of each flow's latencies.

    Columns: ``publisher_group``, ``subscriber_group``, ``qos``, ``band`` (as in ``attribution_by_band``), ``messages``
    (of whose parts they are known), ``delivered``, ``part``, ``mean_ms``, ``share_percent``.
    """
    return recording.derived("attribution by flow and band", _by_flow)


def _by_flow(recording: Recording) -> pl.DataFrame:
    if attribution_gap(recording) is not None:
        return pl.DataFrame()
    clients = recording.layout["clients"]
    names, number = clients.group_names, clients.group_numbers.cast(pl.Int64)
    # A flow's number stands where the sums have the QoS.
    flow = (looked_up("publisher", number) * len(names) + looked_up("subscriber", number)) * QOS + pl.col("qos")
    rows = recording.collect(_deliveries(recording).select(
        qos=flow.cast(pl.Int64), measured=is_measured(recording)))
    latencies = recording.read_column(
        "messages", lambda first, length: _deliveries(recording, first, length).select("latency_ns"))
    # A delivery before its sending, by clocks that differ, has no latency to divide.
    rows = rows.with_columns(measured=pl.col("measured") & pl.Series(~np.isnan(latencies)))
    rows = rows.with_columns(latency_ns=pl.Series(latencies), band=pl.Series(_bands(rows, latencies)))
    stored, summed = recording.scan_summary("attribution").select(*PARTS, "adjusted_ns"), []
    for begin, length in recording.ranges(stored, SUMMED_AT_ONCE):
        both = pl.concat([rows.lazy().slice(begin, length), stored.slice(begin, length)], how="horizontal")
        summed.append(recording.collect(means.sums(both.filter("measured", pl.col("qos").is_not_null()))))
    whole = pl.concat(summed).group_by("qos", "band").agg(pl.all().sum())
    if whole.is_empty():
        return pl.DataFrame()
    return _named(means.by_band(whole), names)


def _named(table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Numbers of flows as their groups and QoS."""
    words, ends = pl.Series(names, dtype=pl.String), pl.col("qos") // QOS
    told = table.with_columns(publisher=ends // len(names), subscriber=ends % len(names)).with_columns(
        looked_up("publisher", words).alias("publisher_group"),
        looked_up("subscriber", words).alias("subscriber_group"), (pl.col("qos") % QOS).cast(pl.UInt8))
    return told.select(*FLOW, pl.exclude(*FLOW, "publisher", "subscriber"))


def _deliveries(recording: Recording, first: int = 0, length: int | None = None) -> pl.LazyFrame:
    return recording.scan("messages").slice(first, length).filter(*ATTRIBUTED)


def _bands(rows: pl.DataFrame, latencies: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Of each row its band among the measured ones of its flow; of others 0."""
    found = np.zeros(rows.height, np.uint8)
    for flow in rows["qos"].drop_nulls().unique():
        which = (rows["measured"] & (rows["qos"] == flow)).fill_null(False).to_numpy()
        if which.any():
            found[which] = means.bands(latencies[which])
    return found
