"""Means of the parts of latencies: by QoS level, and by bands of the latency within each.

Sums by level and band are made once; the means of either are read from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab.metrics.catalogue import PARTS

# Percentiles of the latency, within each QoS level.
BANDS = ((0, 50), (50, 90), (90, 99), (99, 100))
# Latencies are counted in so many ranges, and so many of them are looked at together.
RANGES, AT_ONCE = 1 << 12, 1 << 20


def bands(latencies: NDArray[Any]) -> NDArray[np.uint8]:
    """The place in :data:`BANDS` of each latency among these; equal ones are divided in their order.

    Ranks of all would take several times the room of the latencies: here they are needed at three places only.
    """
    found = np.zeros(len(latencies), np.uint8)
    # The first rank, from 0, that is not below the percentile.
    firsts = [first for _, high in BANDS[:-1] if (first := -(-len(latencies) * high // 100)) < len(latencies)]
    for first in firsts:
        threshold, before = _at_rank(latencies, first)
        for part, marks in zip(_parts(latencies), _parts(found), strict=True):
            marks += part > threshold
            equal = np.flatnonzero(part == threshold)
            marks[equal[before:]] += 1
            before = max(before - len(equal), 0)
    return found


def _at_rank(values: NDArray[Any], rank: int) -> tuple[int, int]:
    """The value, a whole number, that has this rank among them, from 0, and how many equal ones are before it.

    Values are counted in ranges of one width, then again within the range that has the rank, until few are left: a
    partition or a sort would hold a second copy of all.
    """
    low, high = int(values.min()), int(values.max())
    while low < high:
        width = (high - low) // RANGES + 1
        counts = np.zeros(RANGES, np.int64)
        for part in _parts(values):
            places = (part[(part >= low) & (part <= high)] - low) // width
            counts += np.bincount(places.astype(np.int64), minlength=RANGES)
        upto = np.cumsum(counts)
        place = int(np.searchsorted(upto, rank, side="right"))
        rank -= int(upto[place] - counts[place])
        low, high = low + place * width, min(high, low + (place + 1) * width - 1)
        if counts[place] <= AT_ONCE:
            few = np.concatenate([part[(part >= low) & (part <= high)] for part in _parts(values)])
            value = np.partition(few, rank)[rank]
            return int(value), rank - int(np.count_nonzero(few < value))
    return low, rank


def _parts(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (values[begin : begin + AT_ONCE] for begin in range(0, len(values), AT_ONCE))


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
