"""How long bursts take: from when the first message of several due together was due until all have arrived.

No latency of single messages tells that. Only a plan says what a burst is, so that imports have none.
"""

from __future__ import annotations

from typing import Any, cast

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import has_messages, in_order
from mqttlab.metrics.flow import FLOW, publications_named
from mqttlab.metrics.window import is_measured
from mqttlab.plan import StoredPlan, publications_of
from mqttlab.plan.events import kind_of
from mqttlab.recording import Recording
from mqttlab.words import EXPECTED_FATES

NS_PER_MS = 1e6


def bursts(recording: Recording) -> pl.DataFrame:
    """One row for each flow with bursts: ``FLOW``, and the metrics of ``BURSTS``.

    A burst counts if all its messages belong to the measurement. Empty where nobody publishes in bursts.
    """
    each = burst_times(recording)
    if each.is_empty():
        return pl.DataFrame()
    return in_order(recording, each.group_by(FLOW).agg(
        bursts=pl.len().cast(pl.Int64), bursts_complete=pl.col("complete").sum().cast(pl.Int64),
        **_statistics("completion"), **_statistics("spread"),
    ), FLOW)


def burst_times(recording: Recording) -> pl.DataFrame:
    """One row for each burst of the measurement and each subscriber: ``FLOW``, ``publisher``, ``subscriber``,
    ``burst`` (from 0), ``complete``, ``completion_ms`` and ``spread_ms``.

    Empty where nobody publishes in bursts.
    """
    sizes = _sizes(recording.plan)
    if not sizes or not has_messages(recording) or sums.is_summed(recording):
        return pl.DataFrame()
    taken = _in_bursts(recording, sizes)
    arrived = pl.col("received_ns").filter(pl.col("fate") == "delivered")
    times = (
        taken.group_by(*FLOW, "publisher", "subscriber", "burst")
        .agg(
            measured=is_measured(recording).all(),
            complete=(pl.col("fate") == "delivered").all() & pl.col("intended_ns").is_not_null().all(),
            completion_ms=(arrived.max() - pl.col("intended_ns").min()) / NS_PER_MS,
            spread_ms=(arrived.max() - arrived.min()) / NS_PER_MS,
        )
        .filter("measured")
    )
    return publications_named(times, recording)


def _sizes(plan: StoredPlan) -> dict[tuple[str, int | None], int]:
    """Messages in a burst, by group and its publication, as rows have that. Of clients with bursts more, by events,
    nothing tells which burst a message belongs to."""
    found = dict[tuple[str, int | None], int]()
    events = cast("dict[str, Any]", plan).get("events") or ()
    more = {client for event in events if kind_of(event) == "clients_burst" for client in event["clients"]}
    first = 0
    for group in plan["groups"]:
        first, members = first + group["count"], range(first, first + group["count"])
        publications = publications_of(group) if more.isdisjoint(members) else []
        for number, publish in enumerate(publications):
            if publish["arrival"]["kind"] == "burst":
                found[group["name"], number if len(publications) > 1 else None] = publish["arrival"]["size"]
    return found


def _in_bursts(recording: Recording, sizes: dict[tuple[str, int | None], int]) -> pl.DataFrame:
    """The messages of publications in bursts, with the numbers of their bursts."""
    bursts = pl.DataFrame([(*key, size) for key, size in sizes.items()], orient="row", schema={
        "publisher_group": pl.String, "publication": pl.UInt16, "size": pl.Int64})
    theirs = recording.messages.join(bursts, on=("publisher_group", "publication"), nulls_equal=True)
    # All messages of a client are counted together.
    place = pl.col("sequence").rank("dense").over("publisher", "publication").cast(pl.Int64) - 1
    alone = pl.col("publication").is_null()
    theirs = theirs.with_columns(
        burst=pl.when(alone).then(pl.col("sequence").cast(pl.Int64)).otherwise(place) // pl.col("size"))
    return theirs.filter(pl.col("fate").is_in(EXPECTED_FATES))


def _statistics(what: str) -> dict[str, pl.Expr]:
    times = pl.col(f"{what}_ms").filter("complete")
    return {
        f"burst_{what}_ms_mean": times.mean(), f"burst_{what}_ms_p50": times.quantile(0.5, "linear"),
        f"burst_{what}_ms_p99": times.quantile(0.99, "linear"), f"burst_{what}_ms_max": times.max(),
    }
