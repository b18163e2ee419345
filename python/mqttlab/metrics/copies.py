"""Messages that came to a receiver more than once, flow by flow, and why, as far as packets and subscriptions show it.

Flows are those of :mod:`mqttlab.metrics.flow`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqttlab.metrics.application import measured
from mqttlab.metrics.flow import FLOW, Key, with_names
from mqttlab.plurals import counted
from mqttlab.recording import Recording

AFTER_PUBREL = "the client sent PUBLISH again after PUBREL (MQTT 3.1.1 §4.3.3)"
PUBLISHED_AGAIN = "the publisher sent PUBLISH again"
SENT_AGAIN = "the broker sent PUBLISH again with DUP"
# A copy is looked up among packets and subscriptions; the first ones show what the others are.
LOOKED_UP = 10_000
MESSAGE = ("publisher", "sequence")


@dataclass(frozen=True, kw_only=True)
class Copies:
    """What came to receivers of a flow beside first deliveries."""

    messages: int | None
    """Deliveries that were followed by a copy; ``None`` where only sums are known."""
    extra: int
    """Second and later copies."""
    why: tuple[str, ...]
    """The reasons that are known, the most frequent first."""
    at_qos_2: bool
    """Whether some were delivered at QoS 2, which promises one delivery."""


def copies(recording: Recording) -> dict[Key, Copies]:
    """By flow; those without copies are left out. Not for sums."""
    found = _found(recording)
    if found.is_empty():
        return {}
    reasons = _reasons(recording, found.head(LOOKED_UP))
    told = {}
    for key, part in found.partition_by(FLOW, as_dict=True, maintain_order=True).items():
        whys = Counter(why for row in part["row"] for why in reasons.get(row, ()))
        told[Key(*key)] = Copies(
            messages=part.select(*MESSAGE, "subscriber").n_unique(), extra=part.height,
            why=tuple(why for why, _ in whys.most_common()), at_qos_2=bool((part["qos_delivered"] == 2).any()))
    return told


def _found(recording: Recording) -> pl.DataFrame:
    of_flows = measured(recording).filter(pl.col("fate").cast(pl.String) == "duplicate")
    rows = recording.collect(of_flows.select(
        *FLOW, *MESSAGE, "subscriber", "topic", "dup", "qos_delivered", "received_ns"))
    return with_names(rows, recording).with_columns(
        pl.col("topic").cast(pl.String), pl.col(MESSAGE).cast(pl.Int64)).with_row_index("row")


def _reasons(recording: Recording, found: pl.DataFrame) -> dict[int, tuple[str, ...]]:
    """What packets and subscriptions show of each copy, by its row."""
    again = _published_again(recording, found)
    overlaps: dict[tuple[int, str], str] = {}
    filters = _filters(recording)
    told: dict[int, tuple[str, ...]] = {}
    for row in found.select("row", *MESSAGE, "subscriber", "topic", "dup").rows(named=True):
        asked = (row["subscriber"], row["topic"])
        if asked not in overlaps:
            covering = sum(matches(each, row["topic"] or "") for each in filters.get(row["subscriber"], ()))
            overlaps[asked] = f"{counted(covering, 'subscription')} that overlap" if covering > 1 else ""
        why = again.get((row["publisher"], row["sequence"])) or overlaps[asked] or (SENT_AGAIN if row["dup"] else "")
        if why:
            told[row["row"]] = (why,)
    return told


def _published_again(recording: Recording, found: pl.DataFrame) -> dict[tuple[int, int], str]:
    """Messages that were published more than once by their own publisher, and by which right."""
    packets = recording.scan("control_packets")
    if not packets.collect_schema():
        return {}
    words = [pl.col(name).cast(pl.String) for name in ("kind", "direction")]
    packets = packets.with_columns(*words).filter(
        pl.col("direction") == "to_broker", pl.col("kind").is_in(["PUBLISH", "PUBREL"])).select(
        "kind", "client", "packet_id", "qos", "first_sent_ns", *(pl.col(name).cast(pl.Int64) for name in MESSAGE))
    own = packets.filter(pl.col("kind") == "PUBLISH", pl.col("client").cast(pl.Int64) == pl.col("publisher")).join(
        found.lazy().select(*MESSAGE).unique(), on=MESSAGE, how="semi")
    times = recording.collect(own.group_by(*MESSAGE, "client", "packet_id").agg(
        pl.len(), qos=pl.col("qos").max(), first=pl.col("first_sent_ns").min(),
        last=pl.col("first_sent_ns").max()).filter(pl.col("len") > 1))
    if times.is_empty():
        return {}
    told = dict.fromkeys(times.select(MESSAGE).rows(), PUBLISHED_AGAIN)
    releases = packets.filter(pl.col("kind") == "PUBREL").select("client", "packet_id", released="first_sent_ns")
    broken = recording.collect(times.lazy().filter(pl.col("qos") == 2).join(
        releases, on=["client", "packet_id"]).filter(
        pl.col("released") > pl.col("first"), pl.col("released") < pl.col("last")).select(MESSAGE).unique())
    return told | dict.fromkeys(broken.rows(), AFTER_PUBREL)


def _filters(recording: Recording) -> dict[int, set[str]]:
    """What each client has subscribed to: as its SUBSCRIBE said, else as the scenario says."""
    filters: dict[int, set[str]] = {}
    events = recording.events
    if not events.is_empty():
        asked = events.filter(pl.col("kind").cast(pl.String) == "subscribe", pl.col("client").is_not_null())
        for client, detail in asked.select("client", pl.col("detail").cast(pl.String)).rows():
            filters.setdefault(client, set()).update((detail or "").split())
    groups: list[Any] = list(recording.plan.get("groups") or ())
    planned = {str(group.get("name")): {str(each["filter"]) for each in group.get("subscriptions") or ()}
               for group in groups}
    several = {name: wanted for name, wanted in planned.items() if len(wanted) > 1}
    if several:
        clients = recording.layout["clients"].table.select("client", pl.col("group").cast(pl.String))
        for client, group in clients.filter(pl.col("group").is_in(list(several))).rows():
            filters.setdefault(client, set()).update(several[group])
    return filters


def matches(wanted: str, topic: str) -> bool:
    """Whether a topic filter without a share covers a topic (MQTT 5 §4.7)."""
    levels, names = wanted.split("/"), topic.split("/")
    if wanted.startswith("$share/"):
        levels = levels[2:]
    for place, level in enumerate(levels):
        if level == "#":
            return True
        if place >= len(names) or level not in ("+", names[place]):
            return False
    return len(levels) == len(names)
