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
    "phase": pl.String, "qos": pl.UInt8, "qos_delivered": pl.UInt8, "payload_bytes": pl.UInt32, "retain": pl.Boolean,
    "retained": pl.Boolean, "dup": pl.Boolean, "out_of_order": pl.Boolean, "late": pl.Boolean,
    "identified": pl.String, "intended_ns": pl.UInt64, "sent_ns": pl.UInt64, "written_ns": pl.UInt64,
    "acknowledged_ns": pl.UInt64, "received_ns": pl.UInt64, "latency_ns": pl.UInt64,
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
            "fate": self.fate, "phase": self.phase, "qos": self.qos, "qos_delivered": None, "payload_bytes": 100,
            "retain": False, "retained": False, "dup": False, "out_of_order": self.out_of_order, "late": self.late,
            "identified": "payload", "intended_ns": intended, "sent_ns": sent, "written_ns": sent,
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
        "link": link, "from_host": 0, "to_host": 1, "entered_ns": entered, "start_ns": start, "sent_ns": sent,
        "delivered_ns": sent, "fate": fate, "cause": cause, "frame_bytes": size,
    }


def write(
    directory: Path,
    messages: Sequence[Message],
    *,
    packets: Sequence[dict[str, Any]] = (),
    events: Sequence[dict[str, Any]] = (),
    complete: bool = True,
    duration_s: float = 10,
    validity: dict[str, Any] | None = None,
) -> Path:
    """Write a recording of two clients, ``p`` in group ``publishers`` and ``s`` in group ``subscribers``."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = [message.row() for message in messages]
    pl.DataFrame(rows, schema=MESSAGE_SCHEMA).write_parquet(directory / "messages.parquet")
    if packets:
        kinds = {"start_ns": pl.UInt64, "sent_ns": pl.UInt64, "delivered_ns": pl.UInt64, "entered_ns": pl.UInt64,
                 "cause": pl.String}
        pl.DataFrame(list(packets), schema_overrides=kinds).write_parquet(directory / "packets.parquet")
    if events:
        kinds = {"at_ns": pl.UInt64, "client": pl.UInt32, "took_ns": pl.UInt64, "detail": pl.String}
        pl.DataFrame(list(events), schema_overrides=kinds).write_parquet(directory / "events.parquet")
    clients = [
        {"name": "p", "group": "publishers", "host": 0}, {"name": "s", "group": "subscribers", "host": 1},
    ]
    _dump(directory / "layout.json", {"hosts": ["a", "b"], "links": ["up", "down"], "clients": clients})
    _dump(directory / "plan.json", {
        "name": "known", "description": "Known answers.", "backend": "live", "seed": 1,
        "phases": {"warm_up_ns": 0, "duration_ns": int(duration_s * S), "cool_down_ns": 0},
        "groups": [{"name": "publishers", "count": 1}, {"name": "subscribers", "count": 1}],
        "broker": {"name": "mosquitto", "version": "2.0"}, "network": {"kind": "emulated", "description": "SATCOM"},
    })
    name = "run.json" if complete else "incomplete.json"
    status = "complete" if complete else "incomplete"
    _dump(directory / name, {"status": status, "warnings": [], "validity": validity or {"valid": True}})
    return directory


def _dump(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
