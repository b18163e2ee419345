"""How long bursts take: from when the first message of several due together was due until all have arrived.

No latency of single messages tells that. Only a plan says what a burst is, so that imports have none.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.application import has_messages, in_order
from mqttlab.plan import StoredPlan
from mqttlab.recording import Recording, looked_up

KEYS = ("publisher_group", "subscriber_group", "qos")
EXPECTED = ("delivered", "lost", "under_way", "unknown")
NS_PER_MS = 1e6


def bursts(recording: Recording) -> pl.DataFrame:
    """One row for each pair of groups and QoS level with bursts: ``KEYS``, and the metrics of ``BURSTS``.

    A burst counts if all its messages belong to the measurement. Empty where nobody publishes in bursts.
    """
    each = burst_times(recording)
    if each.is_empty():
        return pl.DataFrame()
    return in_order(recording, each.group_by(KEYS).agg(
        bursts=pl.len().cast(pl.Int64), bursts_complete=pl.col("complete").sum().cast(pl.Int64),
        **_statistics("completion"), **_statistics("spread"),
    ), KEYS)


def burst_times(recording: Recording) -> pl.DataFrame:
    """One row for each burst of the measurement and each subscriber: ``KEYS``, ``publisher``, ``subscriber``,
    ``burst`` (from 0), ``complete``, ``completion_ms`` and ``spread_ms``.

    Empty where nobody publishes in bursts.
    """
    sizes = _sizes(recording.plan)
    if not sizes or not has_messages(recording):
        return pl.DataFrame()
    groups = [client["group"] for client in recording.layout["clients"]]
    of_client = pl.Series([sizes.get(group) for group in groups], dtype=pl.Int64)
    messages = recording.messages.with_columns(size=looked_up("publisher", of_client))
    taken = messages.filter(pl.col("fate").is_in(EXPECTED), pl.col("size").is_not_null()).with_columns(
        burst=pl.col("sequence").cast(pl.Int64) // pl.col("size"))
    arrived = pl.col("received_ns").filter(pl.col("fate") == "delivered")
    return (
        taken.group_by(*KEYS, "publisher", "subscriber", "burst")
        .agg(
            measured=(pl.col("phase") == "measurement").all(),
            complete=(pl.col("fate") == "delivered").all() & pl.col("intended_ns").is_not_null().all(),
            completion_ms=(arrived.max() - pl.col("intended_ns").min()) / NS_PER_MS,
            spread_ms=(arrived.max() - arrived.min()) / NS_PER_MS,
        )
        .filter("measured")
    )


def _sizes(plan: StoredPlan) -> dict[str, int]:
    """Messages in a burst, of the groups that publish in bursts."""
    sizes = {}
    for group in plan["groups"]:
        publish = group.get("publish")
        if publish is not None and publish["arrival"]["kind"] == "burst":
            sizes[group["name"]] = publish["arrival"]["size"]
    return sizes


def _statistics(what: str) -> dict[str, pl.Expr]:
    times = pl.col(f"{what}_ms").filter("complete")
    return {
        f"burst_{what}_ms_mean": times.mean(), f"burst_{what}_ms_p50": times.quantile(0.5, "linear"),
        f"burst_{what}_ms_p99": times.quantile(0.99, "linear"), f"burst_{what}_ms_max": times.max(),
    }
