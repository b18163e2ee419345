"""Small recordings of what crossed the links, with known times: for tests of everything that reads packets.

A :class:`Conversation` is written frame by frame, in milliseconds. The broker is host 0; clients 0 and 1 live on hosts
1 and 2, one connection each, with the client's number. Control packets are laid into the streams by hand, because what
is tested is how they are read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab.recording import Recording
from recordings import MESSAGE_SCHEMA, MS

ISN = 1_000
PACKETS: dict[str, Any] = {
    "link": pl.UInt16, "direction": pl.String, "hop": pl.UInt8, "hops": pl.UInt8, "frame": pl.Int64,
    "from_host": pl.UInt16, "to_host": pl.UInt16, "entered_ns": pl.Int64, "start_ns": pl.Int64, "sent_ns": pl.Int64,
    "delivered_ns": pl.Int64, "fate": pl.String, "cause": pl.String, "frame_bytes": pl.UInt32, "ip_bytes": pl.UInt32,
    "source_port": pl.UInt16, "destination_port": pl.UInt16, "connection": pl.UInt32, "seq": pl.UInt32,
    "ack": pl.UInt32, "payload_bytes": pl.UInt32, "stream_offset": pl.Int64, "mqtt": pl.String, "marks": pl.String,
    "ack_rtt_ns": pl.Int64,
}
CONTROL: dict[str, Any] = {
    "connection": pl.UInt32, "direction": pl.String, "client": pl.UInt32, "kind": pl.String, "qos": pl.UInt8,
    "dup": pl.Boolean, "packet_id": pl.UInt16, "reason": pl.UInt8, "topic": pl.String, "publisher": pl.UInt32,
    "sequence": pl.UInt32, "stream_start": pl.Int64, "stream_end": pl.Int64, "payload_bytes": pl.UInt32,
    "first_sent_ns": pl.Int64, "complete_ns": pl.Int64, "segments": pl.UInt32,
    "seen_by": pl.String, "written_ns": pl.Int64, "read_ns": pl.Int64,
}


def ns(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds * MS)


@dataclass
class Conversation:
    """What crossed the links, and what the clients noted."""

    nagle: bool = True
    max_inflight: int = 20
    deliver_on_release: bool = True
    groups: list[dict[str, Any]] = field(default_factory=list)
    isn: int = ISN
    packets: list[dict[str, Any]] = field(default_factory=list)
    control: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    frames: int = 0

    def frame(self, client: int, up: bool, at: float, arrives: float | None, *, offset: int | None = None,
              size: int = 0, ack: int | None = None, waits: float = 0, connection: int | None = None,
              cause: str = "random_loss") -> int:
        """A frame of a client's connection, to the broker or from it; lost without ``arrives``. Returns its number."""
        self.frames += 1
        lost = arrives is None
        start = (self.isn + (offset or 0)) % 2**32
        self.packets.append({
            "link": client, "direction": "up" if up else "down", "hop": 0, "hops": 1, "frame": self.frames,
            "from_host": client + 1 if up else 0, "to_host": 0 if up else client + 1, "entered_ns": ns(at),
            "start_ns": ns(at + waits), "sent_ns": ns(at + waits), "delivered_ns": ns(arrives),
            "fate": "dropped" if lost else "delivered", "cause": cause if lost else None, "frame_bytes": size + 52,
            "ip_bytes": size + 52, "source_port": 4000 + client if up else 1883,
            "destination_port": 1883 if up else 4000 + client,
            "connection": client if connection is None else connection, "seq": start,
            "ack": None if ack is None else (self.isn + ack) % 2**32, "payload_bytes": size,
            "stream_offset": offset if size else None, "mqtt": None, "marks": None, "ack_rtt_ns": None,
        })
        return self.frames

    def packet(self, client: int, up: bool, kind: str, start: int, end: int, sent: float, complete: float | None,
               **more: Any) -> None:
        """A control packet at its place in a client's stream."""
        self.control.append({
            "connection": client, "direction": "to_broker" if up else "to_client", "client": client, "kind": kind,
            "qos": None, "dup": False, "packet_id": None, "reason": None, "topic": None, "publisher": None,
            "sequence": None, "stream_start": start, "stream_end": end, "payload_bytes": 0,
            "first_sent_ns": ns(sent), "complete_ns": ns(complete), "segments": 1,
            "seen_by": "capture", "written_ns": None, "read_ns": None, **more})

    def own(self, client: int, up: bool, at: float, kind: str = "PUBLISH", **more: Any) -> None:
        """A control packet that only its client has seen; a PUBLISH is of message 0."""
        seen = {"seen_by": "client", "segments": None, "connection": 2**30 + client,
                "written_ns" if up else "read_ns": ns(at)}
        tell = self.publish if kind == "PUBLISH" else self.packet
        more = {**seen, **more} if kind == "PUBLISH" else {"kind": kind, **seen, **more}
        tell(client, up, start=0, end=100, sent=at, complete=None, **{**more, "first_sent_ns": None})

    def publish(self, client: int, up: bool, start: int, end: int, sent: float, complete: float | None,
                **more: Any) -> None:
        """A PUBLISH of message 0 of client 0 on topic ``t``."""
        fields = {"qos": 0, "topic": "t", "publisher": 0, "sequence": 0, "payload_bytes": end - start, **more}
        self.packet(client, up, "PUBLISH", start, end, sent, complete, **fields)

    def message(self, intended: float, sent: float, written: float, received: float | None, **more: Any) -> None:
        """A row of ``messages``: from client 0 to client 1."""
        row = {
            "publisher": 0, "sequence": 0, "topic": "t", "subscriber": 1, "fate": "delivered", "phase": "measurement",
            "qos": 0, "qos_delivered": more.get("qos", 0), "payload_bytes": 100, "retain": False, "retained": False,
            "dup": False, "out_of_order": False, "late": False, "identified": "payload", "intended_ns": ns(intended),
            "sent_ns": ns(sent), "written_ns": ns(written), "acknowledged_ns": None, "received_ns": ns(received),
            **more}
        row["latency_ns"] = None if row["received_ns"] is None else row["received_ns"] - row["intended_ns"]
        self.messages.append(row)

    def carried(self, **more: Any) -> None:
        """Message 0 in one frame up and one down: intended at 0, received at 33.4 ms, QoS 0."""
        self.message(0, 1, 3, 33.4, **more)
        self.frame(0, True, 3.5, 16.5, offset=0, size=100, waits=3)
        self.publish(0, True, 0, 100, 3.5, 16.5, qos=more.get("qos", 0))
        self.frame(1, False, 17, 33, offset=0, size=100, waits=6)
        self.publish(1, False, 0, 100, 17, 33, qos=more.get("qos", 0))

    def write(self, directory: Path) -> Recording:
        """The recording."""
        directory.mkdir(parents=True, exist_ok=True)
        names = list(MESSAGE_SCHEMA)
        for name, rows, kinds in (("messages", self.messages, MESSAGE_SCHEMA), ("packets", self.packets, PACKETS),
                                  ("control_packets", self.control, CONTROL)):
            # A run without frames has a table of them, too.
            if rows or (name == "packets" and self.control):
                columns = names if name == "messages" else list(kinds)
                pl.DataFrame(rows, schema=kinds).select(columns).write_parquet(directory / f"{name}.parquet")
        session = {"version": "3.1.1", "max_inflight": self.max_inflight, "receive_maximum": 65535,
                   "deliver_on_release": self.deliver_on_release}
        groups = self.groups or [{"name": "p", "count": 1}, {"name": "s", "count": 1}]
        plan = {
            "name": "known", "description": "", "backend": "live", "seed": 1,
            "phases": {"warm_up_ns": 0, "duration_ns": 10**10, "cool_down_ns": 0},
            "hosts": [{"name": name, "tcp": {"timestamps": True, "mss_bytes": None}} for name in ("broker", "a", "b")],
            "groups": [{"tcp_nodelay": not self.nagle, "mqtt": session, "relay": None, **group} for group in groups],
            "broker": {"name": "b", "version": "", "host": 0, "port": 1883,
                       "settings": {"tcp_nodelay": not self.nagle, "max_inflight": self.max_inflight}},
            "network": {"kind": "emulated", "description": "", "mtu_bytes": 1500},
        }
        clients = [{"name": "p-0", "group": "p", "host": 1}, {"name": "s-0", "group": "s", "host": 2}]
        layout = {"hosts": ["broker", "field", "office"], "links": ["one", "two"], "clients": clients,
                  "warm_up_end_ns": 0, "measurement_end_ns": 10**10}
        run = {"status": "complete", "warnings": [], "validity": {"valid": True}}
        for name, value in (("plan.json", plan), ("layout.json", layout), ("run.json", run)):
            (directory / name).write_text(json.dumps(value), encoding="utf-8")
        events = {"at_ns": pl.Int64, "kind": pl.String, "client": pl.UInt32, "took_ns": pl.Int64, "detail": pl.String}
        pl.DataFrame(schema=events).write_parquet(directory / "events.parquet")
        return Recording.open(directory)
