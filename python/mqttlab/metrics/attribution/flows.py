"""Where the time of each flow's messages went: of the faster half, and of the slowest hundredth."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab.metrics.attribution import ATTRIBUTED, attribution_gap, means
from mqttlab.metrics.catalogue import PARTS
from mqttlab.metrics.flow import FLOW, group_names, numbered, publications, with_names
from mqttlab.metrics.window import is_measured
from mqttlab.recording import Recording

# Rows of two tables beside each other: polars reads ahead, and holds what it has read.
SUMMED_AT_ONCE = 500_000
# Levels are 0 to 2.
QOS = 4


def attribution_by_flow(recording: Recording) -> pl.DataFrame:
    """Means of the parts by bands of each flow's latencies.

    Columns: those of ``FLOW``, ``band`` (as in ``attribution_by_band``), ``messages``
    (of whose parts they are known), ``delivered``, ``part``, ``mean_ms``, ``share_percent``.
    """
    return recording.derived("attribution by flow and band", _by_flow)


def _by_flow(recording: Recording) -> pl.DataFrame:
    if attribution_gap(recording) is not None:
        return pl.DataFrame()
    # A flow's number stands where the sums have the QoS.
    rows = recording.collect(numbered(_deliveries(recording), recording).select(
        qos=_number(recording), measured=is_measured(recording)))
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
    return _named(means.by_band(whole), recording)


def _number(recording: Recording) -> pl.Expr:
    """The number of a row's flow. Of publications 0 stands for the one of its group."""
    publisher, publication, subscriber, qos = (pl.col(name).cast(pl.Int64) for name in FLOW)
    several, groups = len(publications(recording)) + 1, len(group_names(recording))
    return ((publisher * several + (publication + 1).fill_null(0)) * groups + subscriber) * QOS + qos


def _named(table: pl.DataFrame, recording: Recording) -> pl.DataFrame:
    """Numbers of flows as what these are made of."""
    several, groups, flow = len(publications(recording)) + 1, len(group_names(recording)), pl.col("qos") // QOS
    publication = flow // groups % several
    told = table.with_columns(
        publisher_group=flow // groups // several, subscriber_group=flow % groups,
        publication=pl.when(publication > 0).then(publication - 1), qos=(pl.col("qos") % QOS).cast(pl.UInt8))
    return with_names(told, recording).select(*FLOW, pl.exclude(FLOW))


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
