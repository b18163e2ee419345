"""How long bursts take: from when the first message of several due together was due until all have arrived.

No latency of single messages tells that. Only a plan says what a burst is, so that imports have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import has_messages, in_order
from mqttlab.metrics.window import is_measured
from mqttlab.plan import StoredPlan, publications_of, topics_of
from mqttlab.plan.events import kind_of
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
    bursts = _bursts(recording.plan)
    if not bursts or not has_messages(recording) or sums.is_summed(recording):
        return pl.DataFrame()
    taken = pl.concat([_in_bursts(recording, each, number) for number, each in enumerate(bursts)])
    arrived = pl.col("received_ns").filter(pl.col("fate") == "delivered")
    return (
        taken.group_by(*KEYS, "publisher", "subscriber", "publication", "burst")
        .agg(
            measured=is_measured(recording).all(),
            complete=(pl.col("fate") == "delivered").all() & pl.col("intended_ns").is_not_null().all(),
            completion_ms=(arrived.max() - pl.col("intended_ns").min()) / NS_PER_MS,
            spread_ms=(arrived.max() - arrived.min()) / NS_PER_MS,
        )
        .filter("measured")
        .drop("publication")
    )


@dataclass(frozen=True)
class _Bursts:
    """Publications in bursts alike."""

    sizes: dict[str, int]
    """Messages in a burst, by group."""
    topics: str | None = None
    """Of one that is not alone in its group: its topics, as a regular expression."""


def _bursts(plan: StoredPlan) -> list[_Bursts]:
    """Publications in bursts: those that are alone in their groups together. Of several with one topic nothing tells
    whose a message is, and of clients with bursts more, by events, nothing tells which burst it belongs to."""
    alone, found = dict[str, int](), list[_Bursts]()
    events = cast("dict[str, Any]", plan).get("events") or ()
    more = {client for event in events if kind_of(event) == "clients_burst" for client in event["clients"]}
    first = 0
    for group in plan["groups"]:
        first, members = first + group["count"], range(first, first + group["count"])
        if not more.isdisjoint(members):
            continue
        publications = publications_of(group)
        topics = [publish.get("topic") for publish in publications]
        for publish in publications:
            if publish["arrival"]["kind"] != "burst":
                continue
            size = publish["arrival"]["size"]
            if len(publications) == 1:
                alone[group["name"]] = size
            elif topics.count(publish.get("topic")) == 1:
                found.append(_Bursts({group["name"]: size}, topics_of(group, publish)))
    return [*([_Bursts(alone)] if alone else []), *found]


def _in_bursts(recording: Recording, bursts: _Bursts, number: int) -> pl.DataFrame:
    """The messages of publications, with the numbers of their bursts."""
    clients = recording.layout["clients"]
    of_group = pl.Series([bursts.sizes.get(group) for group in clients.group_names], dtype=pl.Int64)
    of_client = of_group.gather(clients.group_numbers)
    theirs = recording.messages.with_columns(size=looked_up("publisher", of_client)).filter(
        pl.col("size").is_not_null())
    place = pl.col("sequence").cast(pl.Int64)
    if bursts.topics is not None:
        # All messages of a client are counted together.
        theirs = theirs.filter(pl.col("topic").cast(pl.String).str.contains(bursts.topics))
        place = place.rank("dense").over("publisher").cast(pl.Int64) - 1
    theirs = theirs.with_columns(burst=place // pl.col("size"), publication=pl.lit(number))
    return theirs.filter(pl.col("fate").is_in(EXPECTED))


def _statistics(what: str) -> dict[str, pl.Expr]:
    times = pl.col(f"{what}_ms").filter("complete")
    return {
        f"burst_{what}_ms_mean": times.mean(), f"burst_{what}_ms_p50": times.quantile(0.5, "linear"),
        f"burst_{what}_ms_p99": times.quantile(0.99, "linear"), f"burst_{what}_ms_max": times.max(),
    }
