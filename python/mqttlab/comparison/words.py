"""What happened to a message in two runs, as sentences."""

from __future__ import annotations

from typing import Any

from mqttlab.comparison.messages import ByMessage
from mqttlab.digits import LONG_NS, duration
from mqttlab.metrics import fates, part_titles

FRAMES_TOLD = 3

def head(record: dict[str, Any]) -> str:
    """Which message, and how its fate or its latency differs."""
    to = f" to {record['subscriber']}" if record["subscriber"] else ""
    who = f"{record['publisher']}:{record['sequence']}{to}, {record['topic']}, QoS {record['qos']}"
    if record["fate"] != record["fate_second"]:
        told = [fates.in_words(record[f"fate{of}"], record[f"cause{of}"]) for of in ("", "_second")]
        return f"{who}: {told[0]} → {told[1]}"
    before, after = (record[name] for name in ("latency_ns", "latency_ns_second"))
    return f"{who}: {_time(before)} → {_time(after)} ({_change(after - before)})"


def what_happened(pair: ByMessage, record: dict[str, Any]) -> list[str]:
    """Why one row of :attr:`ByMessage.different` is in it, a sentence for each frame that made the difference."""
    sentences = []
    rows = record["lost_frames"] or []
    waited = record["reason"] != "its own segment"
    for row in rows[:FRAMES_TOLD]:
        sentences.append(frame(pair.parted.row(row, named=True), waited=waited))
    if len(rows) > FRAMES_TOLD:
        sentences.append(f"So were {len(rows) - FRAMES_TOLD} more frames.")
    for side, of in ((1, ""), (2, "_second")):
        if record[f"cause{of}"] and record["fate"] != record["fate_second"]:
            sentences.append(f"In run {side} {fates.because(record[f'fate{of}'], record[f'cause{of}'])}.")
    if record["part"] is not None:
        title, change = part_titles(pair.first)[record["part"]], record["part_ns"]
        sentences.append(f"Of its time {title!r} changed most: {_change(change)}.")
    if record["reason"] == "what was offered":
        sentences.append("Only one of the runs sent it.")
    return sentences or ["The recordings do not show why."]


def _time(nanoseconds: int) -> str:
    return duration(nanoseconds) if abs(nanoseconds) >= LONG_NS else f"{nanoseconds / 1e6:.1f} ms"


def _change(nanoseconds: int) -> str:
    return f"{'' if nanoseconds < 0 else '+'}{_time(nanoseconds)}"


def frame(lost: dict[str, Any], *, waited: bool = False) -> str:
    """A frame that one run lost and the other did not."""
    other = 3 - lost["lost_in"]
    times = "" if not lost["times"] else f", sent again (repetition {lost['times']} of its sender)"
    way = "to the broker" if lost["direction"] == "to_broker" else "from the broker"
    if lost["acknowledges"]:
        what = f"the acknowledgement of byte {lost['position'] - 1}"
    elif lost["start"] is None:
        what = "a segment without data"
    else:
        what = f"bytes {lost['start']}–{lost['end'] - 1} of the stream"
    cause = fates.DROPS.get(lost["cause"], lost["cause"])
    there = (f"run {other} did not send it" if lost["other_fate"] is None
             else f"in run {other} it is frame {lost['other_frame']} and was {lost['other_fate']}")
    subject = f"It waited for frame {lost['frame']}" if waited else f"It was in frame {lost['frame']}"
    return (f"{subject} ({what}, connection {lost['ordinal']} of {lost['host']} {way}{times}), which run "
            f"{lost['lost_in']} lost on {lost['link']} at {lost['entered_ns'] / 1e9:.3f} s ({cause}); {there}.")
