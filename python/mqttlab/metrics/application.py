"""What the application saw: messages offered, sent, delivered, lost; how long they took."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import polars as pl

from mqttlab.recording import Recording
from mqttlab.statistics import batch_means_ci95

NS_PER_MS = 1e6
# Of a signed column.
TIME_MAX_NS = 2**63 - 1
FIRST_DELIVERY = pl.col("fate") == "delivered"
# What was to be delivered, whatever became of it.
EXPECTED = pl.col("fate").is_in(["delivered", "lost", "under_way", "unknown"])


def deliveries(recording: Recording) -> pl.DataFrame:
    """First deliveries of the measurement's messages, in the order of their intended sending.

    Columns: ``publisher_group``, ``subscriber_group``, ``qos``, ``intended_s`` (since the measurement began),
    ``latency_ms``.
    """
    messages = _measured(recording.messages)
    if messages.is_empty():
        return pl.DataFrame(schema={"publisher_group": pl.String, "subscriber_group": pl.String,
                                    "qos": pl.Int64, "intended_s": pl.Float64, "latency_ms": pl.Float64})
    start_ns = messages["intended_ns"].min()
    # A run that was killed, or goes on, may have written a delivery and not yet what was sent.
    known = pl.col("latency_ns").is_not_null() & pl.col("qos").is_not_null()
    return (
        messages.filter(FIRST_DELIVERY & known)
        .sort("intended_ns", "publisher", "sequence", maintain_order=True)
        .select(
            "publisher_group",
            "subscriber_group",
            pl.col("qos").cast(pl.Int64),
            intended_s=(pl.col("intended_ns") - start_ns) / 1e9,
            latency_ms=pl.col("latency_ns") / NS_PER_MS,
        )
    )


def application(recording: Recording, by: Sequence[str] = ("qos",)) -> pl.DataFrame:
    """The application-layer table: a row for each value of ``by``, in order.

    Args:
        by: any of ``qos``, ``publisher_group``, ``subscriber_group``, ``topic``; none for one row of everything.
    """
    return recording.derived(f"application by {', '.join(by)}", functools.partial(_application, tuple(by)))


def _application(by: tuple[str, ...], recording: Recording) -> pl.DataFrame:
    every = recording.messages.with_columns(_whole=pl.lit(True))
    messages = _measured(every)
    if messages.is_empty():
        return pl.DataFrame()
    keys = list(by) or ["_whole"]
    seconds = measurement_s(recording)
    table = _counts(messages, keys)
    for part in (_latencies(messages, keys, seconds), _written(recording, every, keys, seconds)):
        table = table.join(part, on=keys, how="left", nulls_equal=True)
    return _with_disconnects(recording, messages, table, keys).sort(keys).drop("_whole", strict=False)


def has_both_ways(recording: Recording) -> bool:
    """Whether some messages come back to their publisher and others reach somebody else: no mean is of both."""
    delivered = _measured(recording.messages)
    if delivered.is_empty():
        return False
    delivered = delivered.filter(FIRST_DELIVERY)
    back = int((delivered["publisher"] == delivered["subscriber"]).sum())
    return "sources" in recording.plan and 0 < back < delivered.height


def clients(recording: Recording) -> pl.DataFrame:
    """One row per client: who it is, its counts and its timings, as recorded."""
    return recording.clients


def setup(recording: Recording) -> pl.DataFrame:
    """How long it takes to connect, to subscribe and to have a message acknowledged: one row."""
    took = {
        "connect": ("connects", _took_ms(recording.events, "connack")),
        "subscribe": ("subscriptions", _took_ms(recording.events, "suback")),
        "acknowledge": ("messages_acknowledged", _acknowledge_ms(recording.messages)),
    }
    row: dict[str, float | None] = {}
    for name, (count, samples) in took.items():
        row |= {count: samples.len(), **_two_percentiles(name, samples)}
    kinds = {name: pl.Float64 if "_ms_" in name else pl.Int64 for name in row}
    return pl.DataFrame([row], schema=kinds)


def measurement_s(recording: Recording) -> float:
    """Length of the measurement in seconds: as it was, or until a run that was cut short ended."""
    phases = (recording.run.get("details") or {}).get("phases") or {}
    if recording.complete and phases.get("measure_until_ns") is not None:
        return float(phases["measure_until_ns"] - phases["measure_from_ns"]) / 1e9
    planned = float(recording.plan["phases"]["duration_ns"]) / 1e9
    if recording.complete:
        return planned
    intended = _measured(recording.messages)["intended_ns"].to_numpy()
    span = float(np.ptp(intended)) / 1e9 if intended.size else 0.0
    return min(planned, span) or planned


def _measured(messages: pl.DataFrame) -> pl.DataFrame:
    return messages if "phase" not in messages.columns else messages.filter(pl.col("phase") == "measurement")


def _counts(messages: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    offered = pl.struct("publisher", "sequence").filter(~pl.col("fate").is_in(["duplicate", "foreign"]))
    return (
        messages.group_by(keys)
        .agg(
            messages_offered=offered.n_unique(),
            messages_unsent=pl.struct("publisher", "sequence").filter(pl.col("fate") == "unsent").n_unique(),
            deliveries_expected=EXPECTED.sum(),
            messages_delivered=FIRST_DELIVERY.sum(),
            messages_lost=(pl.col("fate") == "lost").sum(),
            messages_under_way=(pl.col("fate") == "under_way").sum(),
            messages_unknown=(pl.col("fate") == "unknown").sum(),
            duplicates=(pl.col("fate") == "duplicate").sum(),
            out_of_order=pl.col("out_of_order").sum(),
            late=pl.col("late").sum(),
        )
        .with_columns(
            messages_sent=pl.col("messages_offered") - pl.col("messages_unsent"),
            messages_lost_percent=100 * pl.col("messages_lost") / pl.col("deliveries_expected"),
        )
    )


def _latencies(messages: pl.DataFrame, keys: list[str], seconds: float) -> pl.DataFrame:
    latency = pl.col("latency_ns") / NS_PER_MS
    delivered = messages.filter(FIRST_DELIVERY).sort("intended_ns", "publisher", "sequence", maintain_order=True)
    table = delivered.group_by(keys).agg(
        latency_ms_min=latency.min(),
        latency_ms_mean=latency.mean(),
        latency_ms_p50=latency.quantile(0.5, "linear"),
        latency_ms_p95=latency.quantile(0.95, "linear"),
        latency_ms_p99=latency.quantile(0.99, "linear"),
        latency_ms_max=latency.max(),
        latency_ms_std=latency.std(),
        samples=latency,
        throughput_per_s=pl.len() / seconds,
        goodput_kbit_s=pl.col("payload_bytes").sum() * 8 / 1000 / seconds,
    )
    halves = [batch_means_ci95(samples.to_numpy()) for samples in table["samples"]]
    return table.with_columns(latency_ms_mean_ci95=pl.Series(halves, dtype=pl.Float64)).drop("samples")


def _written(recording: Recording, messages: pl.DataFrame, keys: list[str], seconds: float) -> pl.DataFrame:
    """What publishers could write in the measurement: as perez2005 counts it, topic, payload and one byte a message."""
    layout = recording.layout
    written = pl.coalesce("written_ns", "sent_ns")
    within = written.is_between(int(layout["warm_up_end_ns"]), min(int(layout["measurement_end_ns"]), TIME_MAX_NS),
                                closed="left")
    application = (pl.col("topic").str.len_bytes() + pl.col("payload_bytes") + 1).cast(pl.Int64)
    return (
        messages.filter(within).select(*keys, "publisher", "sequence", application=application)
        .unique([*keys, "publisher", "sequence"])
        .group_by(keys).agg(effective_throughput_kbit_s=pl.col("application").sum() * 8 / 1000 / seconds)
    )


def _with_disconnects(
    recording: Recording, messages: pl.DataFrame, table: pl.DataFrame, keys: list[str]
) -> pl.DataFrame:
    """Count unplanned disconnects of the publishers and subscribers that a row is about."""
    events = recording.events
    if events.is_empty():
        return table.with_columns(disconnects=pl.lit(0))
    lost = events.filter(pl.col("kind") == "disconnect").select("client")
    taking_part = pl.concat(
        [messages.select(*keys, client=pl.col(role).cast(pl.Int64)) for role in ("publisher", "subscriber")]
    ).unique()
    counts = (
        taking_part.join(lost.with_columns(pl.col("client").cast(pl.Int64)), on="client", how="inner")
        .group_by(keys)
        .agg(disconnects=pl.len())
    )
    return table.join(counts, on=keys, how="left", nulls_equal=True).with_columns(
        pl.col("disconnects").fill_null(0)
    )


def _took_ms(events: pl.DataFrame, kind: str) -> pl.Series:
    if events.is_empty():
        return pl.Series([], dtype=pl.Float64)
    return (events.filter(pl.col("kind") == kind)["took_ns"].drop_nulls() / NS_PER_MS).rename("ms")


def _acknowledge_ms(messages: pl.DataFrame) -> pl.Series:
    if messages.is_empty():
        return pl.Series([], dtype=pl.Float64)
    once = messages.filter(pl.col("acknowledged_ns").is_not_null()).unique(["publisher", "sequence"])
    return (once["acknowledged_ns"] - once["sent_ns"]) / NS_PER_MS


def _two_percentiles(name: str, samples: pl.Series) -> dict[str, float | None]:
    return {
        f"{name}_ms_p50": samples.quantile(0.5, "linear"),
        f"{name}_ms_p99": samples.quantile(0.99, "linear"),
    }
