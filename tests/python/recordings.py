"""Small recordings with known answers, for tests of everything that reads one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

S = 1_000_000_000
MS = 1_000_000

MESSAGE_SCHEMA: dict[str, Any] = {
    "publisher": pl.UInt32, "sequence": pl.UInt32, "topic": pl.String, "subscriber": pl.UInt32, "fate": pl.String,
    "cause": pl.String, "phase": pl.String, "qos": pl.UInt8, "qos_delivered": pl.UInt8, "payload_bytes": pl.UInt32,
    "retain": pl.Boolean, "retained": pl.Boolean, "dup": pl.Boolean, "out_of_order": pl.Boolean, "late": pl.Boolean,
    "identified": pl.String, "intended_ns": pl.UInt64, "sent_ns": pl.UInt64, "written_ns": pl.UInt64,
    "acknowledged_ns": pl.UInt64, "received_ns": pl.UInt64, "latency_ns": pl.UInt64,
}


PACKET_SCHEMA: dict[str, Any] = {
    "link": pl.UInt16, "direction": pl.String, "hop": pl.UInt8, "hops": pl.UInt8, "frame": pl.Int64,
    "from_host": pl.UInt16, "to_host": pl.UInt16, "entered_ns": pl.Int64, "start_ns": pl.Int64, "sent_ns": pl.Int64,
    "delivered_ns": pl.Int64, "fate": pl.String, "cause": pl.String, "frame_bytes": pl.UInt32, "ip_bytes": pl.UInt32,
    "protocol": pl.UInt8, "source_port": pl.UInt16, "destination_port": pl.UInt16, "connection": pl.UInt32,
    "seq": pl.UInt32, "ack": pl.UInt32, "flags": pl.UInt8, "window": pl.UInt16, "payload_bytes": pl.UInt32,
    "tsval": pl.UInt32, "tsecr": pl.UInt32, "sack": pl.String, "stream_offset": pl.Int64, "mqtt": pl.String,
    "marks": pl.String, "ack_rtt_ns": pl.Int64, "repetition": pl.UInt32, "ecn": pl.UInt8,
}

CONTROL_PACKET_SCHEMA: dict[str, Any] = {
    "connection": pl.UInt32, "direction": pl.String, "client": pl.UInt32, "kind": pl.String, "qos": pl.UInt8,
    "dup": pl.Boolean, "retain": pl.Boolean, "packet_id": pl.UInt16, "reason": pl.UInt8, "topic": pl.String,
    "publisher": pl.UInt32, "sequence": pl.UInt32, "stream_start": pl.Int64, "stream_end": pl.Int64,
    "fixed_header_bytes": pl.UInt32, "topic_bytes": pl.UInt32, "packet_id_bytes": pl.UInt32,
    "property_bytes": pl.UInt32, "payload_bytes": pl.UInt32, "first_sent_ns": pl.Int64, "complete_ns": pl.Int64,
    "segments": pl.UInt32,
}


@dataclass(frozen=True)
class Message:
    """One row of ``messages``; the rest follows from these."""

    sequence: int
    latency_ms: float | None = 10.0
    publisher: int = 0
    subscriber: int | None = 1
    qos: int = 0
    fate: str = "delivered"
    cause: str | None = None
    phase: str = "measurement"
    out_of_order: bool = False
    late: bool = False

    def row(self) -> dict[str, Any]:
        """The row, sent at ``sequence`` × 100 ms."""
        intended = self.sequence * 100 * MS
        latency = None if self.latency_ms is None else int(self.latency_ms * MS)
        sent = None if self.fate == "unsent" else intended
        return {
            "publisher": self.publisher, "sequence": self.sequence, "topic": "t", "subscriber": self.subscriber,
            "fate": self.fate, "cause": self.cause, "phase": self.phase, "qos": self.qos, "qos_delivered": None,
            "payload_bytes": 100, "retain": False, "retained": False, "dup": False,
            "out_of_order": self.out_of_order, "late": self.late, "identified": "payload",
            "intended_ns": intended, "sent_ns": sent, "written_ns": sent,
            "acknowledged_ns": sent + 2 * MS if sent is not None and self.qos else None,
            "received_ns": None if latency is None else intended + latency, "latency_ns": latency,
        }


def packet(entered_ms: float, *, size: int = 1000, send_ms: float = 10, wait_ms: float = 0, link: int = 0,
           fate: str = "delivered", cause: str | None = None) -> dict[str, Any]:
    """One row of ``packets``: only what links are measured by."""
    entered = int(entered_ms * MS)
    start = None if fate == "dropped" else entered + int(wait_ms * MS)
    sent = None if start is None else start + int(send_ms * MS)
    return {
        "link": link, "direction": "up", "hop": 0, "hops": 1, "frame": entered, "from_host": 0, "to_host": 1,
        "entered_ns": entered, "start_ns": start, "sent_ns": sent, "delivered_ns": sent, "fate": fate, "cause": cause,
        "frame_bytes": size,
    }


def segment(at_ms: float, *, frame: int, up: bool = True, payload: int = 0, offset: int | None = None,
            delay_ms: float = 20, flags: int = 16, lost: bool = False, connection: int = 0,
            **more: Any) -> dict[str, Any]:
    """One row of ``packets``: a TCP segment between client ``p`` (up) and a broker on port 1883, 52 B of headers."""
    entered = int(at_ms * MS)
    return {
        "link": 0 if up else 1, "direction": "up" if up else "down", "hop": 0, "hops": 1, "frame": frame,
        "from_host": 0 if up else 1, "to_host": 1 if up else 0, "entered_ns": entered, "start_ns": entered,
        "sent_ns": entered, "delivered_ns": None if lost else entered + int(delay_ms * MS),
        "fate": "dropped" if lost else "delivered", "cause": "random_loss" if lost else None,
        "frame_bytes": 66 + payload, "ip_bytes": 52 + payload, "protocol": 6,
        "source_port": 40_000 + connection if up else 1883, "destination_port": 1883 if up else 40_000 + connection,
        "connection": connection, "flags": flags, "payload_bytes": payload, "stream_offset": offset, **more,
    }


def control_packet(kind: str, *, up: bool, start: int, header: int = 2, topic: int = 0, identifier: int = 0,
                   properties: int = 0, payload: int = 0, qos: int | None = None, segments: int = 1) -> dict[str, Any]:
    """One row of ``control_packets`` of connection 0, with these parts in bytes."""
    return {
        "connection": 0, "direction": "to_broker" if up else "to_client", "client": 0, "kind": kind, "qos": qos,
        "stream_start": start, "stream_end": start + header + topic + identifier + properties + payload,
        "fixed_header_bytes": header, "topic_bytes": topic, "packet_id_bytes": identifier,
        "property_bytes": properties, "payload_bytes": payload, "first_sent_ns": 0, "segments": segments,
    }


def write(
    directory: Path,
    messages: Sequence[Message],
    *,
    packets: Sequence[dict[str, Any]] = (),
    control_packets: Sequence[dict[str, Any]] = (),
    events: Sequence[dict[str, Any]] = (),
    complete: bool = True,
    duration_s: float = 10,
    validity: dict[str, Any] | None = None,
    hosts: tuple[int, int] = (0, 1),
    foreign: int = 0,
    planned: Sequence[dict[str, Any]] = (),
    stages: Sequence[tuple[str, float, float, bool]] = (),
) -> Path:
    """Write a recording of two clients, ``p`` in group ``publishers`` and ``s`` in group ``subscribers``.

    ``hosts`` are theirs; so many ``foreign`` deliveries were counted; ``planned`` are the plan's events, ``stages`` its
    stages: name, begin and end in seconds, whether they are measured. The measurement lasts from the start until
    ``duration_s``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    rows = [message.row() for message in messages]
    pl.DataFrame(rows, schema=MESSAGE_SCHEMA).write_parquet(directory / "messages.parquet")
    if packets:
        pl.DataFrame(list(packets), schema=PACKET_SCHEMA).write_parquet(directory / "packets.parquet")
    if control_packets:
        rows = list(control_packets)
        pl.DataFrame(rows, schema=CONTROL_PACKET_SCHEMA).write_parquet(directory / "control_packets.parquet")
    if events:
        kinds = {"at_ns": pl.UInt64, "client": pl.UInt32, "took_ns": pl.UInt64, "detail": pl.String}
        pl.DataFrame(list(events), schema_overrides=kinds).write_parquet(directory / "events.parquet")
    clients = [
        {"name": "p", "group": "publishers", "host": hosts[0]},
        {"name": "s", "group": "subscribers", "host": hosts[1]},
    ]
    _dump(directory / "layout.json", {
        "hosts": ["a", "b"], "links": ["up", "down"], "clients": clients, "warm_up_end_ns": 0,
        "measurement_end_ns": int(duration_s * S),
    })
    _dump(directory / "plan.json", {
        "name": "known", "description": "Known answers.", "backend": "live", "seed": 1,
        "phases": {"warm_up_ns": 0, "duration_ns": int(duration_s * S), "cool_down_ns": 0},
        "groups": [{"name": "publishers", "count": 1}, {"name": "subscribers", "count": 1}],
        "broker": {"name": "mosquitto", "version": "2.0", "host": 1, "port": 1883},
        "hosts": [{"name": name, "tcp": {"mss_bytes": None, "timestamps": True}} for name in ("a", "b")],
        "network": {"kind": "emulated", "description": "SATCOM", "mtu_bytes": 1500},
        **({"events": list(planned)} if planned else {}),
        **({"stages": [{"name": name, "from_ns": int(begin * S), "until_ns": int(end * S), "measured": measured}
                       for name, begin, end, measured in stages]} if stages else {}),
    })
    name = "run.json" if complete else "incomplete.json"
    status = "complete" if complete else "incomplete"
    _dump(directory / name, {"status": status, "warnings": [], "validity": validity or {"valid": True},
                             "messages": {"foreign": foreign} if foreign else {}})
    return directory


def _dump(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
