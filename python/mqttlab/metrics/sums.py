"""What sums over messages say, of runs that keep a sample of them (``recording.detail = "summary"``).

Counts, sums, means, smallest and largest values are exact. Quantiles are read from a histogram, and off by 1/256 at
most (:data:`QUANTILE_ERROR`). What needs every message is unknown: intervals of quantiles, topics, single devices,
bursts, what followed from events.

Of the modules of other metrics this knows only what names a flow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from mqttlab.metrics.flow import publications_named
from mqttlab.metrics.quantiles import QUANTILES
from mqttlab.recording import Recording
from mqttlab.words import EXPECTED_FATES

QUANTILE_ERROR = 1 / 256
TABLE, HISTOGRAMS = "message_sums", "latency_sums"
NS_PER_MS = 1e6
FATES = {"messages_delivered": "delivered", "messages_lost": "lost", "messages_under_way": "under_way",
         "messages_unknown": "unknown", "messages_not_decided": "not_decided", "duplicates": "duplicate",
         "retained_copies": "retained"}
WORDS = ("publisher_group", "subscriber_group", "phase", "fate", "cause")


def is_summed(recording: Recording) -> bool:
    """Whether a recording has sums of messages, and a sample of them alone."""
    return (recording.directory / f"{TABLE}.parquet").is_file()


def sampled(recording: Recording) -> str | None:
    """Which messages a recording has rows of, such as ``1 in 64``; ``None`` where it has all."""
    if not is_summed(recording):
        return None
    return str(recording.run.get("sampled") or "an unknown part")


def of_sample(recording: Recording) -> str:
    """What to add to the title of a figure that is made of rows: nothing, where all are there."""
    told = sampled(recording)
    return f" of a sample, {told} messages" if told else ""


def sums(recording: Recording) -> pl.DataFrame:
    """The table of sums, with the row's number in ``sum``."""
    def read(recording: Recording) -> pl.DataFrame:
        table = recording.table(TABLE).with_columns(pl.col(*WORDS).cast(pl.String))
        return publications_named(table, recording).with_row_index("sum")

    return recording.derived("sums of messages", read)


def measured_sums(recording: Recording) -> pl.DataFrame:
    """Sums of the measurement's messages."""
    return sums(recording).filter(pl.col("phase") == "measurement")


def counts(recording: Recording, keys: Sequence[str], seconds: float) -> pl.DataFrame:
    """Counts, latencies and rates of the measurement, a row for each value of ``keys``.

    Args:
        recording: one with sums.
        keys: of :data:`mqttlab.metrics.flow.FLOW`, and ``_whole``.
        seconds: how long the measurement was.
    """
    table = sums(recording).with_columns(_whole=pl.lit(True))
    measured = table.filter(pl.col("phase") == "measurement", pl.col("count") > 0, pl.col("fate") != "will")
    if measured.is_empty():
        return pl.DataFrame()
    # A message with receivers in several groups counts in each of their rows, and once where rows do not tell groups.
    messages, written = ("messages", "written_bytes") if "subscriber_group" in keys else (
        "messages_first", "written_first_bytes")
    fate, count = pl.col("fate"), pl.col("count")
    aged = (fate == "retained") & pl.col("age_mean_ns").is_not_null()
    found = measured.group_by(keys, maintain_order=True).agg(
        messages_offered=pl.col(messages).sum(),
        messages_unsent=pl.col(messages).filter(fate == "unsent").sum(),
        deliveries_expected=count.filter(fate.is_in(EXPECTED_FATES)).sum(),
        **{name: count.filter(fate == word).sum() for name, word in FATES.items()},
        retained_age_s_mean=(
            pl.col("age_mean_ns").cast(pl.Float64) * count).filter(aged).sum() / count.filter(aged).sum() / 1e9,
        out_of_order=pl.col("out_of_order").sum(),
        late=pl.col("late").sum(),
    ).with_columns(
        pl.col("retained_age_s_mean").fill_nan(None),
        messages_sent=pl.col("messages_offered") - pl.col("messages_unsent"),
        messages_lost_percent=pl.when(pl.col("deliveries_expected") > 0).then(
            100.0 * pl.col("messages_lost") / pl.col("deliveries_expected")))
    rates = table.group_by(keys).agg(
        throughput_per_s=pl.col("received").sum() / seconds,
        goodput_kbit_s=pl.col("received_bytes").sum() * 8 / 1000 / seconds,
        effective_throughput_kbit_s=pl.col(written).sum() * 8 / 1000 / seconds)
    found = _with_undelivered(measured_sums(recording).with_columns(_whole=pl.lit(True)), found, keys)
    for part in (_latencies(recording, measured, keys), rates):
        found = found.join(part, on=keys, how="left", nulls_equal=True)
    return found


def _with_undelivered(measured: pl.DataFrame, table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Adds ``undelivered_percent``: of what was to be delivered, also of messages that were never sent."""
    known = set(table.select(keys).rows())
    wanted: dict[tuple[Any, ...], int] = {}
    for *values, many in measured.filter(pl.col("wanted") > 0).group_by(keys).agg(pl.col("wanted").sum()).rows():
        # A group that got no message has no row: the unsent ones have one, of nobody.
        nobody = tuple(None if name == "subscriber_group" else value for name, value in zip(keys, values, strict=True))
        key = tuple(values) if tuple(values) in known else nobody
        wanted[key] = wanted.get(key, 0) + many
    more = pl.Series([wanted.get(key, 0) for key in table.select(keys).rows()], dtype=pl.Int64)
    whole = pl.col("deliveries_expected") + more
    return table.with_columns(undelivered_percent=pl.when(whole > 0).then(
        100.0 * (whole - pl.col("messages_delivered")) / whole))


def _latencies(recording: Recording, measured: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    delivered = measured.filter(pl.col("latencies") > 0)
    histograms = recording.table(HISTOGRAMS).filter(pl.col("quantity").cast(pl.String) == "latency")
    rows = []
    for key, part in delivered.partition_by(keys, as_dict=True, maintain_order=True).items():
        many = part["latencies"].to_numpy().astype(float)
        means = part["latency_sum_ns"].to_numpy() / many
        mean = int(part["latency_sum_ns"].sum()) / int(part["latencies"].sum())
        # As whole numbers the squares of deviations above 3 s have no room.
        deviations = part["latency_deviation_ns"].cast(pl.Float64).fill_null(0.0).to_numpy()
        spread = float(((many - 1) * deviations ** 2).sum()
                       + (many * (means - mean) ** 2).sum())
        least, most = float(part["latency_least_ns"].min()), float(part["latency_most_ns"].max())  # type: ignore[arg-type]
        of = histograms.filter(pl.col("sum").is_in(part["sum"].implode()))
        found = quantiles(of, list(QUANTILES.values()), least, most)
        deviation = math.sqrt(spread / (many.sum() - 1)) if many.sum() > 1 else None
        values = [least, mean, *found, most, deviation]
        rows.append((*key, *(None if value is None else value / NS_PER_MS for value in values), None, None))
    names = ("min", "mean", *QUANTILES, "max", "std", "mean_ci95")
    schema = {key: measured.schema[key] for key in keys} | {
        **{f"latency_ms_{name}": pl.Float64() for name in names}, "latency_batches_correlation": pl.Float64()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def quantiles(histogram: pl.DataFrame, shares: Sequence[float], least: float, most: float) -> list[float]:
    """Quantiles of a histogram with columns ``from_ns``, ``to_ns`` and ``count``, between the smallest and the largest.

    Each value stands in the middle of its range; between two values they are linear.
    """
    by = histogram.group_by("from_ns", "to_ns").agg(pl.col("count").sum()).sort("from_ns")
    middle = np.clip(((by["from_ns"] + by["to_ns"]) / 2).to_numpy(), least, most)
    upto = by["count"].cum_sum().to_numpy()
    found = []
    for share in shares:
        place = share * (int(upto[-1]) - 1)
        low, high = (middle[int(np.searchsorted(upto, rank, side="right"))] for rank in (
            math.floor(place), math.ceil(place)))
        found.append(float(low + (high - low) * (place - math.floor(place))))
    return found


def acknowledgements(recording: Recording) -> dict[str, float | int | None]:
    """How many messages were acknowledged, and how long that took: ``messages_acknowledged`` and its quantiles."""
    histogram = recording.table(HISTOGRAMS).filter(pl.col("quantity").cast(pl.String) == "acknowledgement")
    p50, p99 = (None, None)
    if not histogram.is_empty():
        p50, p99 = (value / NS_PER_MS for value in quantiles(histogram, (0.5, 0.99), 0, math.inf))
    return {"messages_acknowledged": int(sums(recording)["acknowledged"].sum()), "acknowledge_ms_p50": p50,
            "acknowledge_ms_p99": p99}


def absent(recording: Recording, keys: Sequence[str] = ()) -> pl.DataFrame:
    """What was expected in the measurement and did not happen: ``keys``, ``fate``, ``cause``, ``count``."""
    return measured_sums(recording).filter(
        pl.col("fate").is_in(EXPECTED_FATES), pl.col("fate") != "delivered", pl.col("count") > 0,
    ).group_by(*keys, "fate", "cause").agg(pl.col("count").sum()).sort(
        "count", "fate", "cause", descending=[True, False, False])


def span(recording: Recording) -> tuple[int | None, int | None]:
    """When the first message of the measurement was due, and the last instant of any of them."""
    told = measured_sums(recording).select(
        pl.col("intended_first_ns").min(), pl.max_horizontal("intended_last_ns", "received_last_ns").max())
    return told.row(0)


def taking_part(recording: Recording, keys: Sequence[str]) -> pl.LazyFrame:
    """Each client that sent, was to send or received something in the measurement, beside the sums of its group:
    ``keys``, ``publisher``, ``subscriber``."""
    clients = recording.clients
    sent = clients.filter(pl.col("sent") + pl.col("unsent") > 0)
    heard = clients.filter(pl.col("delivered") + pl.col("lost") + pl.col("under_way") + pl.col("unknown") > 0)
    table = measured_sums(recording).filter(pl.col("count") > 0).with_columns(_whole=pl.lit(True))
    parts = []
    for role, other, who in (("publisher", "subscriber", sent), ("subscriber", "publisher", heard)):
        theirs = who.select(pl.col("group").cast(pl.String).alias("group"), pl.col("client").cast(pl.Int64).alias(role))
        group = pl.col(f"{role}_group").alias("group")
        parts.append(table.select(*keys, group).unique().join(theirs, on="group").select(
            *keys, role, pl.lit(None, pl.Int64).alias(other)).select(*keys, "publisher", "subscriber"))
    return pl.concat(parts).lazy()


def first_deliveries(recording: Recording) -> pl.DataFrame:
    """First deliveries of the whole run: ``publisher_group``, ``subscriber_group``, ``count``."""
    return sums(recording).filter(pl.col("fate") == "delivered").group_by(
        "publisher_group", "subscriber_group").agg(pl.col("count").sum())
