"""What MQTT promises and did not happen, flow by flow, as far as the messages of a recording show it.

Flows are those of :mod:`mqttlab.metrics.flow`. Second copies at QoS 2 are in :mod:`mqttlab.metrics.copies`.

- Order: what one publisher sends at one topic and QoS reaches a subscriber in the order of sending (MQTT 3.1.1 and 5,
  §4.6). Members of a shared subscription, MQTT-SN and ZeroMQ have no such promise.
- Delivery: what a broker has acknowledged at QoS 1 or 2 it delivers to a subscriber that was subscribed (§4.3). Where a
  session had ended, or the message was refused or had expired, there is no such promise; neither where the subscription
  is at QoS 0, nor where its QoS is not known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import FIRST_DELIVERY, measured
from mqttlab.metrics.copies import matches
from mqttlab.metrics.flow import FLOW, Key, key_of
from mqttlab.recording import Recording

OTHERS = ("mqtt_sn", "zeromq")
"""Protocols that promise neither."""
EXCUSED = ("session_ended", "not_subscribed", "expired", "too_large", "refused", "no_matching_subscribers",
           "not_released", "window_full", "not_acknowledged")
"""Causes of a loss for which no delivery was promised: the receiver's session, or the message itself, had ended."""
SHARE = "$share/"


@dataclass(frozen=True, kw_only=True)
class Broken:
    """What was promised to a flow and did not happen, in messages."""

    behind: int
    """First deliveries behind a later message of the same publisher, topic and QoS; 0 where only sums are known."""
    dropped: tuple[tuple[str | None, int], ...]
    """Deliveries that were lost although the publisher had the last acknowledgement: by cause, the most frequent
    first; the cause is ``None`` where it is not known."""


def broken(recording: Recording, out_of_order: bool, lost: bool) -> dict[Key, Broken]:
    """By flow; those whose promises were kept are left out.

    Args:
        recording: with messages.
        out_of_order: whether a delivery was behind a later one of its publisher; else order is not looked at.
        lost: whether a message was lost; else losses are not looked at.
    """
    behind = _behind(recording) if out_of_order and not sums.is_summed(recording) else {}
    dropped = (_dropped_of_sums if sums.is_summed(recording) else _dropped)(recording) if lost else {}
    return {key: Broken(behind=behind.get(key, 0), dropped=tuple(dropped.get(key, Counter()).most_common()))
            for key in {**behind, **dropped}}


def _behind(recording: Recording) -> dict[Key, int]:
    order = ("publisher", "subscriber", "topic", "qos", "qos_delivered")
    rows = measured(recording).filter(
        FIRST_DELIVERY, pl.col("identified").cast(pl.String).fill_null("") != "ambiguous",
        pl.all_horizontal(pl.col("publisher", "subscriber", "sent_ns", "received_ns").is_not_null()))
    # What is behind one of its topic is behind one of its publisher, which the table has.
    some = rows.filter(pl.col("out_of_order")).select(order).unique()
    sent = rows.select(*FLOW, *(name for name in order if name not in FLOW), "sent_ns", "sequence", "received_ns")
    flows = sent.join(some, on=order, how="semi", nulls_equal=True).sort("sent_ns", "sequence").with_row_index("place")
    placed = flows.sort("received_ns", maintain_order=True)
    latest = pl.col("place").cum_max().over(order)
    found = placed.filter(pl.col("place") < latest).group_by(FLOW).agg(count=pl.len())
    promised = _of_mqtt(recording), {name for name, asked in _subscriptions(recording).items()
                                     if any(wanted.startswith(SHARE) for wanted, _ in asked)}
    return {key: count for *ends, count in recording.collect(found).rows()
            if (key := key_of(ends, recording)) and {key.publishers, key.subscribers} <= promised[0]
            and key.subscribers not in promised[1]}


def _dropped(recording: Recording) -> dict[Key, Counter[str | None]]:
    rows = measured(recording).with_columns(pl.col("topic", "cause").cast(pl.String))
    lost = rows.filter(
        pl.col("fate") == "lost", pl.col("qos") > 0, pl.col("acknowledged_ns").is_not_null(),
        ~pl.col("cause").is_in(EXCUSED).fill_null(False)).group_by(*FLOW, "topic", "cause").agg(count=pl.len())
    # What the broker granted shows in what it delivered, where the plan does not say it.
    came = rows.filter(FIRST_DELIVERY).group_by(*FLOW, "topic").agg(at=pl.col("qos_delivered").max())
    told = recording.collect(lost.join(came, on=[*FLOW, "topic"], how="left", nulls_equal=True))
    speak, asked = _of_mqtt(recording), _subscriptions(recording)
    found: dict[Key, Counter[str | None]] = {}
    for *ends, topic, cause, count, at in told.select(*FLOW, "topic", "cause", "count", "at").rows():
        key = key_of(ends, recording)
        granted = _at_qos(asked.get(key.subscribers or "", ()), topic or "", at or 0)
        if {key.publishers, key.subscribers} <= speak and granted > 0:
            found.setdefault(key, Counter())[cause] += count
    return found


def _dropped_of_sums(recording: Recording) -> dict[Key, Counter[str | None]]:
    table = sums.measured_sums(recording).filter(
        pl.col("fate") == "lost", pl.col("qos") > 0, pl.col("acknowledged") > 0,
        ~pl.col("cause").cast(pl.String).is_in(EXCUSED).fill_null(False))
    speak, asked = _of_mqtt(recording), _subscriptions(recording)
    found: dict[Key, Counter[str | None]] = {}
    for *ends, cause, count in table.select(*FLOW, pl.col("cause").cast(pl.String), pl.col("acknowledged")).rows():
        key = Key(*ends)
        # Sums have no topics: only where all subscriptions are above QoS 0 a message was promised.
        at = [granted for _, granted in asked.get(key.subscribers or "", ())]
        if {key.publishers, key.subscribers} <= speak and min(at, default=0) > 0:
            found.setdefault(key, Counter())[cause] += int(count)
    return found


def _of_mqtt(recording: Recording) -> set[str | None]:
    """The groups that speak MQTT. What is not said of a group of an import is MQTT: nothing else is imported."""
    groups: list[Any] = list(recording.plan.get("groups") or ())
    return {str(group["name"]) for group in groups
            if not any(name in (group.get("protocol") or {}) for name in OTHERS)}


def _subscriptions(recording: Recording) -> dict[str, list[tuple[str, int]]]:
    """What each group subscribes to by the plan and by its events, with the QoS."""
    groups: list[Any] = list(recording.plan.get("groups") or ())
    found = {str(group["name"]): [(str(each["filter"]), int(each.get("qos") or 0)) for each in
                                  group.get("subscriptions") or ()] for group in groups}
    ends = list(accumulate(int(group["count"]) for group in groups))
    events: list[Any] = list(recording.plan.get("events") or ())
    for event in events:
        if event.get("clients") and event["change"]["kind"] == "subscribe":
            group = groups[bisect_right(ends, event["clients"][0])]["name"]
            found[str(group)].append((str(event["change"]["filter"]), int(event["change"]["qos"])))
    return found


def _at_qos(asked: Sequence[tuple[str, int]], topic: str, otherwise: int) -> int:
    """The largest QoS of the subscriptions to a topic; a placeholder of the plan stands for one level."""
    return max((qos for wanted, qos in asked if matches(
        "/".join("+" if "{" in level else level for level in wanted.split("/")), topic)), default=otherwise)
