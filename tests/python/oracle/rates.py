"""Rates, shares and means of messages and links, row by row, as somebody with a pencil would work them out.

Nothing here is shared with :mod:`mqttlab.metrics`: the window's ends come from the run's own phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqttlab.recording import Recording

Row = dict[str, Any]
WAITED_FOR = ("delivered", "lost", "under_way", "unknown")


def window(recording: Recording) -> tuple[int, int]:
    """From when to when the measurement went, in nanoseconds."""
    phases = recording.run["details"]["phases"]
    steady = phases.get("steady_from_ns") if recording.plan["sim"]["detect_transient"] else None
    return steady or phases["measure_from_ns"], phases["measure_until_ns"]


def messages(recording: Recording, chosen: dict[str, Any]) -> dict[str, float | None]:
    """The rates, shares and means of the rows of ``messages`` with these values, such as ``{"qos": 1}``."""
    begin, end = window(recording)
    seconds = (end - begin) / 1e9
    rows = list(_rows(recording, chosen))
    due = [row for row in rows if row["intended_ns"] is not None and begin <= row["intended_ns"] < end]
    received = [row for row in rows if row["fate"] == "delivered" and begin <= row["received_ns"] < end]
    expected = [row for row in due if row["fate"] in WAITED_FOR]
    arrived = [row for row in due if row["fate"] == "delivered"]
    lost = [row for row in due if row["fate"] == "lost"]
    never = sum(_receivers(recording, row["topic"]) for row in due if row["fate"] == "unsent")
    written = {}
    for row in rows:
        at = row["sent_ns"] if row["written_ns"] is None else row["written_ns"]
        if at is not None and begin <= at < end:
            written[row["publisher"], row["sequence"]] = len(row["topic"].encode()) + row["payload_bytes"] + 1
    wanted = len(expected) + never
    latencies = [row["received_ns"] - row["intended_ns"] for row in arrived]
    return {
        "throughput_per_s": len(received) / seconds,
        "goodput_kbit_s": sum(row["payload_bytes"] for row in received) * 8 / 1000 / seconds,
        "effective_throughput_kbit_s": sum(written.values()) * 8 / 1000 / seconds,
        "messages_lost_percent": 100 * len(lost) / len(expected) if expected else None,
        "undelivered_percent": 100 * (wanted - len(arrived)) / wanted if wanted else None,
        "latency_ms_mean": sum(latencies) / len(latencies) / 1e6 if latencies else None,
    }


def link(recording: Recording, name: str) -> dict[str, float | None]:
    """The rates and means of one link, from its first frame to its last."""
    rows = [row for row in recording.packets.iter_rows(named=True) if row["link"] == name]
    first = min(row["entered_ns"] for row in rows)
    last = max(max(row["entered_ns"], row["sent_ns"] or 0) for row in rows)
    out = [row for row in rows if row["sent_ns"] is not None and row["fate"] != "duplicated"]
    waits = [(row["start_ns"] - row["entered_ns"]) / 1e6 for row in rows if row["start_ns"] is not None]
    return {
        "data_rate_kbit_s": sum(row["frame_bytes"] for row in out) * 8 / 1000 / ((last - first) / 1e9),
        "utilisation_percent": 100 * sum(row["sent_ns"] - row["start_ns"] for row in out) / (last - first),
        "queue_wait_ms_mean": sum(waits) / len(waits),
        "frame_bytes_mean": sum(row["frame_bytes"] for row in rows) / len(rows),
    }


def _rows(recording: Recording, chosen: dict[str, Any]) -> Iterator[Row]:
    for row in recording.messages.iter_rows(named=True):
        if all(row[name] == value for name, value in chosen.items()):
            yield row


def _receivers(recording: Recording, topic: str) -> int:
    """How many deliveries a message of this topic would have had."""
    layout = recording.layout
    [found] = [each for each in layout["topics"] if each["name"] == topic]
    return len(layout["receivers"][found["receivers"]]) + int(found["shares"])
