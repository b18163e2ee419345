"""Means of the parts of latencies: by QoS level, and by bands of the latency within each.

Sums by level and band are made once; the means of either are read from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from mqttlab.metrics.catalogue import PARTS

# Percentiles of the latency, within each QoS level.
BANDS = ((0, 50), (50, 90), (90, 99), (99, 100))


def bands(latencies: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The place in :data:`BANDS` of each latency among these; equal ones are divided in their order.

    Ranks of all would take several times the room of the latencies: here they are needed at three places only.
    """
    found = np.zeros(len(latencies), np.uint8)
    # The first rank, from 0, that is not below the percentile.
    firsts = [first for _, high in BANDS[:-1] if (first := -(-len(latencies) * high // 100)) < len(latencies)]
    if not firsts:
        return found
    ranked = np.partition(latencies, firsts)
    thresholds = [(first, ranked[first]) for first in firsts]
    del ranked
    for first, threshold in thresholds:
        found += latencies > threshold
        below = np.count_nonzero(latencies < threshold)
        found[np.flatnonzero(latencies == threshold)[first - below :]] += 1
    return found


def sums(table: pl.LazyFrame) -> pl.LazyFrame:
    """Of rows with ``qos``, ``band``, ``latency_ns``, the parts and ``adjusted_ns``: by level and band each part's sum,
    ``latency_ns``, ``messages`` (of whose parts it is known) and ``delivered`` (all)."""
    # Where one part is known, all are.
    known = pl.col("adjusted_ns").is_not_null()
    return table.group_by("qos", "band").agg(
        *(pl.col(part).cast(pl.Float64).sum() for part in PARTS),
        # Cast, then filtered: the other way round polars reads the whole table at once.
        latency_ns=pl.col("latency_ns").cast(pl.Float64).filter(known).sum(),
        messages=known.sum().cast(pl.Int64), delivered=pl.len().cast(pl.Int64))


def by_qos(summed: pl.DataFrame) -> pl.DataFrame:
    """Columns: ``qos``, ``messages``, ``delivered``, ``part``, ``mean_ms``, ``share_percent``; of :func:`sums`."""
    return _means(summed.group_by("qos").agg(pl.exclude("band").sum()), ["qos"])


def by_band(summed: pl.DataFrame) -> pl.DataFrame:
    """The same with ``band`` behind ``qos``, by its name: ``p0–50`` …."""
    names = dict(enumerate(f"p{low}–{high}" for low, high in BANDS))
    return _means(summed, ["qos", "band"]).with_columns(pl.col("band").replace_strict(names, return_dtype=pl.String))


def _means(summed: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    latency_ms = pl.col("latency_ns") / pl.col("messages") / 1e6
    return (
        summed.filter(pl.col("messages") > 0)
        .select(*keys, "messages", "delivered", *(pl.col(part) / pl.col("messages") / 1e6 for part in PARTS),
                latency_ms=latency_ms)
        .unpivot(index=[*keys, "latency_ms", "messages", "delivered"], on=list(PARTS), variable_name="part",
                 value_name="mean_ms")
        .with_columns(share_percent=100 * pl.col("mean_ms") / pl.col("latency_ms"))
        .sort(*keys, maintain_order=True)
        .select(*keys, "messages", "delivered", "part", "mean_ms", "share_percent")
    )
