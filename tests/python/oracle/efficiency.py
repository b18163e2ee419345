"""What part of the bytes and frames at a client's link is the application's, message by message and frame by frame.

perez2005 §5.1: S is application bytes sent over link bytes sent, R application bytes received over link bytes received
or overheard, T both over all three. Application bytes of a message: topic, payload, one for the QoS.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl

from mqttlab.recording import Recording
from oracle.rows import frames

MESSAGES = ("messages_sent", "application_sent_bytes", "messages_received", "application_received_bytes")
FRAMES = ("frames_sent", "frames_sent_bytes", "frames_received", "frames_received_bytes", "frames_overheard",
          "frames_overheard_bytes")


def efficiency(recording: Recording) -> pl.DataFrame:
    """One row per group of clients, in their order."""
    clients = recording.layout["clients"]
    stations = (recording.run.get("details") or {}).get("stations") or []
    # A radio's counters are those of the whole run, so that messages are, too.
    window = range(2**62) if stations else range(
        recording.layout["warm_up_end_ns"], min(recording.layout["measurement_end_ns"], 2**62))
    alone: dict[int, set[str]] = defaultdict(set)
    for client in clients:
        alone[client["host"]].add(client["group"])
    of_host = {host: next(iter(groups)) for host, groups in alone.items() if len(groups) == 1}
    sent = _messages(recording, window)
    on_links = _radio(stations, of_host) if stations else _links(recording, window, of_host)
    rows = []
    for group in dict.fromkeys(client["group"] for client in clients):
        counted = {name: sent[group, name] for name in MESSAGES}
        # Of groups without frames nothing is known.
        counted |= dict.fromkeys(FRAMES) if group not in on_links else {name: on_links[group][name] for name in FRAMES}
        members = sum(client["group"] == group for client in clients)
        rows.append({"group": group, "clients": members, **counted, **_shares(counted)})
    return pl.DataFrame(rows, infer_schema_length=None)


def _shares(counted: Mapping[str, int | None]) -> dict[str, float | None]:
    shares = {}
    for suffix, up, down, unit in (
        ("", "application_sent_bytes", "application_received_bytes", "_bytes"),
        ("_messages", "messages_sent", "messages_received", ""),
    ):
        own, there = counted[up] or 0, counted[down] or 0
        on_air = [counted[f"frames_{what}{unit}"] for what in ("sent", "received", "overheard")]
        known = None not in on_air
        out, in_, over = (count or 0 for count in on_air)
        shares[f"s{suffix}"] = own / out if known and own and out else None
        shares[f"r{suffix}"] = there / (in_ + over) if known and there and in_ + over else None
        shares[f"t{suffix}"] = (own + there) / (out + in_ + over) if known and out + in_ + over else None
    return shares


def _messages(recording: Recording, window: range) -> Counter[tuple[str, str]]:
    groups = [client["group"] for client in recording.layout["clients"]]
    counted: Counter[tuple[str, str]] = Counter()
    seen = set()
    for row in recording.messages.iter_rows(named=True):
        if row["topic"] is None or row["payload_bytes"] is None:
            size = 0
        else:
            size = len(row["topic"].encode()) + row["payload_bytes"] + 1
        message = row["publisher"], row["sequence"]
        if row["sent_ns"] is not None and row["sent_ns"] in window and message not in seen:
            seen.add(message)
            if row["publisher"] is not None:
                counted[groups[row["publisher"]], "messages_sent"] += 1
                counted[groups[row["publisher"]], "application_sent_bytes"] += size
        if row["fate"] == "delivered" and row["received_ns"] is not None and row["received_ns"] in window:
            counted[groups[row["subscriber"]], "messages_received"] += 1
            counted[groups[row["subscriber"]], "application_received_bytes"] += size
    return counted


def _links(recording: Recording, window: range, of_host: Mapping[int, str]) -> dict[str, Counter[str]]:
    """Frames at the clients' own ends: sent where they begin their way, received where they end it."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for frame in frames(recording):
        row = frame.row
        is_first = row["hop"] == 0 and row["fate"] != "duplicated" and row["entered_ns"] in window
        is_last = (row["hop"] + 1 == row["hops"] and row["fate"] in ("delivered", "duplicated")
                   and row["delivered_ns"] in window)
        for is_here, is_their_way, host, what in (
            (is_first, frame.is_to_broker is True, row["from_host"], "sent"),
            (is_last, frame.is_to_broker is False, row["to_host"], "received"),
        ):
            # What the broker's host sends is not all of the clients there: the connection tells, where it is known.
            by_connection = frame.group if is_their_way else None
            group = of_host.get(host) if frame.group is None else by_connection
            if is_here and group is not None:
                counted[group][f"frames_{what}"] += 1
                counted[group][f"frames_{what}_bytes"] += row["frame_bytes"]
    return counted


def _radio(stations: list[dict[str, Any]], of_host: Mapping[int, str]) -> dict[str, Counter[str]]:
    counted: dict[str, Counter[str]] = {group: Counter() for group in of_host.values()}
    for station in stations:
        if (group := of_host.get(station["host"])) is not None:
            for what in ("sent", "received", "overheard"):
                counted[group][f"frames_{what}"] += station[f"frames_{what}"]
                counted[group][f"frames_{what}_bytes"] += station[f"bytes_{what}"]
    return counted
