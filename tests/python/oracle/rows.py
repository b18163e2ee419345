"""Frames, one after the other, as plain values: for checks that walk them as somebody with a pencil would.

Nothing here is shared with :mod:`mqttlab.metrics`: a connection's client and a frame's direction are found anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mqttlab.recording import Recording

SYN, ACK = 0x02, 0x10


@dataclass(frozen=True)
class Frame:
    """A row of ``packets``, with what its connection tells."""

    row: dict[str, Any]
    group: str | None
    """Of the connection's client, where it is known."""
    is_to_broker: bool | None


def frames(recording: Recording) -> Iterator[Frame]:
    """Each row of ``packets`` in its order, copies that links make included."""
    groups = [client["group"] for client in recording.layout["clients"]]
    clients: dict[int, int] = {}
    for table in (recording.network_metrics, recording.control_packets):
        if {"connection", "client"} <= set(table.columns):
            for connection, client in table.select("connection", "client").iter_rows():
                if connection is not None and client is not None:
                    clients.setdefault(connection, client)
    rows = list(recording.table("packets").iter_rows(named=True))
    opened: dict[int, int] = {}
    first: dict[int, int] = {}
    for row in rows:
        if (connection := row["connection"]) is None:
            continue
        first.setdefault(connection, max(row["source_port"], row["destination_port"]))
        # Who opens a connection is its client (RFC 9293 §3.5).
        if row["flags"] is not None and row["flags"] & (SYN | ACK) == SYN:
            opened.setdefault(connection, row["source_port"])
    for row in rows:
        connection = row["connection"]
        client = clients.get(connection)
        port = opened.get(connection, first.get(connection))
        yield Frame(row, None if client is None else groups[client],
                    None if port is None else row["source_port"] == port)
