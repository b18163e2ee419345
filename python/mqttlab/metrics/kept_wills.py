"""Whether the wills of clients that fell silent came, and in time.

A server closes a connection of which nothing came for 1.5 keep-alives, and then publishes the client's will (MQTT 3.1.1
§3.1.2.5 and §3.1.2.10; MQTT 5 alike). So a will is owed to each subscriber of its topic by 1.5 keep-alives after the
event by which its client vanished.

It is told of wills and subscriptions above QoS 0, in runs of our own, where nothing else explains a late will: no other
event of a network or server, no receiver whose connection ended, no client that came back before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import has_messages
from mqttlab.metrics.copies import matches
from mqttlab.plan.events import Change
from mqttlab.recording import Recording

KEEP_ALIVES = 1.5
GRACE_S = 1.0
"""A server looks at its connections about once a second, and the will has a way to go."""
NS_PER_S = 1e9
OTHERS = ("link_", "server_", "interferer_", "stations_", "station_")


@dataclass(frozen=True, kw_only=True)
class Wills:
    """The wills that a group owed by one event, in copies: one for each client and receiver."""

    group: str
    topic: str
    owed: int
    late: int
    missing: int
    within_s: float
    """1.5 keep-alives."""


def broken_wills(recording: Recording) -> tuple[Wills, ...]:
    """Those of which a copy came late or not at all, in the order of the events."""
    plan: Any = recording.plan
    if "sources" in plan or not recording.complete or sums.is_summed(recording) or not has_messages(recording):
        return ()
    gone = [change for change in recording.changes if change.kind == "clients_vanish"]
    return tuple(wills for change in gone for wills in _of_change(recording, change) if wills.late or wills.missing)


def _of_change(recording: Recording, change: Change) -> list[Wills]:
    found = []
    for first, group in _placed(recording):
        session = (group.get("protocol") or {}).get("mqtt") or {}
        will, keep_alive_s = session.get("will"), session.get("keep_alive_s")
        clients = [client for client in change.left if first <= client < first + group["count"]]
        if not (clients and will and will["qos"] and keep_alive_s):
            continue
        within_s = KEEP_ALIVES * keep_alive_s
        until = change.at_ns + int((within_s + GRACE_S) * NS_PER_S)
        if until < _ended(recording) and _is_alone(recording, change, until):
            found.append(_counted(recording, (str(group["name"]), str(will["topic"]), within_s),
                                  _connected(recording, clients, change, until), (change.at_ns, until)))
    return found


def _counted(recording: Recording, of: tuple[str, str, float], clients: list[int], window: tuple[int, int]) -> Wills:
    group, topic, within_s = of
    at, until = window
    receivers = _receivers(recording, topic, at)
    # A will may have no topic in the table, and no publisher where several clients announced the same one.
    rows = recording.collect(recording.scan("messages").filter(
        pl.col("fate").cast(pl.String) == "will", (pl.col("topic").cast(pl.String) == topic).fill_null(True),
        pl.col("publisher").cast(pl.Int64).is_in(clients).fill_null(True),
        pl.col("subscriber").cast(pl.Int64).is_in(receivers), pl.col("received_ns") >= at).select("received_ns"))
    owed, came = len(clients) * len(receivers), rows["received_ns"]
    # Later wills of the same topic may be of other clients.
    late = min(int((came > until).sum()), max(0, owed - int((came <= until).sum())))
    in_time = min(owed, int((came <= until).sum()))
    return Wills(group=group, topic=topic, owed=owed, late=late, missing=owed - in_time - late, within_s=within_s)


def _placed(recording: Recording) -> list[tuple[int, dict[str, Any]]]:
    """The plan's groups, each behind the number of its first client."""
    first, found = 0, []
    groups: list[Any] = list(recording.plan["groups"])
    for group in groups:
        found.append((first, group))
        first += int(group["count"])
    return found


def _ended(recording: Recording) -> int:
    """When the last stage of the run was over: clients leave then."""
    events = recording.events
    kinds = events.filter(pl.col("kind").cast(pl.String) == "phase")["at_ns"]
    last = kinds.max() if kinds.len() else None
    return int(last) if isinstance(last, int) else 0


def _is_alone(recording: Recording, change: Change, until: int) -> bool:
    return not any(other.at_ns < until and (other.until_ns is None or other.until_ns > change.at_ns)
                   for other in recording.changes if other.kind.startswith(OTHERS))


def _ends_and_begins(recording: Recording) -> pl.DataFrame:
    rows = recording.events.filter(pl.col("client").is_not_null()).select(
        pl.col("client").cast(pl.Int64), pl.col("at_ns").cast(pl.Int64), kind=pl.col("kind").cast(pl.String))
    return rows.filter(pl.col("kind").is_in(["connack", "disconnect", "close"]))


def _connected(recording: Recording, clients: list[int], change: Change, until: int) -> list[int]:
    """Those that were connected when they vanished, and did not come back before their wills were due."""
    rows = _ends_and_begins(recording).filter(pl.col("client").is_in(clients))
    before = rows.filter(pl.col("at_ns") <= change.at_ns).sort("at_ns").group_by("client", maintain_order=True).last()
    there = set(before.filter(pl.col("kind") == "connack")["client"])
    back = rows.filter(pl.col("at_ns").is_between(change.at_ns + 1, until), pl.col("kind") == "connack")
    return sorted(there - set(back["client"]))


def _receivers(recording: Recording, topic: str, at: int) -> list[int]:
    """Clients that were subscribed to a topic above QoS 0, and whose connections lasted."""
    asked = {client for first, group in _placed(recording) for client in range(first, first + group["count"])
             if any(each["qos"] and matches(str(each["filter"]).replace("{group}", str(group["name"])), topic)
                    for each in group.get("subscriptions") or () if not str(each["filter"]).startswith("$share/"))}
    rows = _ends_and_begins(recording)
    there = set(rows.filter(pl.col("at_ns") <= at, pl.col("kind") == "connack")["client"])
    ended = rows.filter(pl.col("kind") != "connack", pl.col("at_ns") < _ended(recording))
    vanished = {client for change in recording.changes for client in change.left}
    return sorted((asked & there) - set(ended["client"]) - vanished)
