"""What a run says, held against its scenario and against its own evidence.

Each rule reads what a user reads, or a column of the recording, and a second column that decides it. None asks the
functions that made the sentence.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from chance import MACHINE

from mqttlab.recording import Recording

Found = tuple[str, str]
"""A word for the rule, and what contradicts."""

NEVER = ("never connected",)
AWAY_SHARE = 0.5
"""A part that TCP has cannot be most of a latency of which the client was away for more than this share."""
SLOW_NS = 1_000_000_000
WAITED_NS = 1_000_000
CAUSE_SHARE, CAUSE_MIN = 0.1, 3
"""A cause counts between backends from this share of the expected deliveries, and from so many."""
TOP_SHARE, OTHER_SHARE = 0.5, 0.2
"""The largest part of the mean latency of one backend has at least the second share in the other."""
SOCKETS = ("broker_socket_ns", "broker_nagle_ns", "sender_socket_ns", "sender_nagle_ns")


@dataclass(frozen=True)
class Read:
    """A run as a user reads it."""

    recording: Recording
    simulated: bool
    text: str
    reasons: list[str]

    @property
    def messages(self) -> pl.DataFrame:
        """Its messages."""
        return self.recording.messages


def within(recording: Recording) -> dict[str, Any]:
    """What is kept of a run: its verdict, what contradicts it, and what the other backend is held against."""
    verdict = recording.run.get("validity") or {}
    read = Read(recording, recording.plan["backend"] == "sim", said(recording), list(verdict.get("reasons", [])))
    found = [entry for rule in RULES for entry in rule(read)]
    return {
        "valid": bool(verdict.get("valid", True)), "reasons": read.reasons, "late_ms": 0.0,
        "contradictions": found, "causes": causes(recording), "parts": parts(recording),
        "expected": len(_expected(recording.messages)),
    }


def said(recording: Recording) -> str:
    """The report with all tables, and the explanation of slow and of a lost message."""
    lost = recording.messages.filter(pl.col("fate") == "lost").head(1)
    words = [["report", "--full"], ["explain", "--slowest", "3"]]
    words += [["explain", "--message", f"{publisher}:{sequence}"]
              for publisher, sequence in lost.select("publisher", "sequence").iter_rows()]
    screens = []
    for first, *more in words:
        program = [sys.executable, "-m", "mqttlab", first, str(recording.directory), *more]
        wide = {**os.environ, "COLUMNS": "240"}
        done = subprocess.run(program, capture_output=True, text=True, check=False, env=wide)
        screens += [done.stdout, done.stderr]
    return "\n".join(screens)


def causes(recording: Recording) -> dict[str, int]:
    """How many expected deliveries of the measurement have which fate and cause."""
    table = _expected(recording.messages).filter(pl.col("phase") == "measurement")
    of = pl.concat_str("fate", pl.col("cause").fill_null(""), separator=" ").alias("of")
    return dict(table.select(of).group_by("of").len().sort("of").rows())


def parts(recording: Recording) -> dict[str, float]:
    """The share of each part in the sum of all latencies of the measurement."""
    table = parts_of(recording).filter(pl.col("phase") == "measurement")
    sums = {name: float(table[name].sum() or 0) for name in _names(table)}
    whole = sum(sums.values())
    return {name: round(value / whole, 3) for name, value in sorted(sums.items()) if whole and value / whole >= 0.01}


def between(live: Mapping[str, Any], sim: Mapping[str, Any]) -> Iterator[Found]:
    """What one backend says and the other does not."""
    late = live["reasons"] and all(any(word in reason for word in MACHINE) for reason in live["reasons"])
    if live["valid"] != sim["valid"] and not late:
        yield "verdict", f"live {live['valid']} {live['reasons']}, simulated {sim['valid']} {sim['reasons']}"
    shown, modelled = _known_alike(live["causes"], sim["causes"])
    for cause in sorted({*shown, *modelled}):
        counts = shown.get(cause, 0), modelled.get(cause, 0)
        least = max(CAUSE_MIN, CAUSE_SHARE * max(live["expected"], sim["expected"], 1))
        if max(counts) >= least and min(counts) < 0.3 * max(counts):
            yield "fate", f"{cause}: live {counts[0]} of {live['expected']}, simulated {counts[1]} of {sim['expected']}"
    for one, other, name in ((live, sim, "live"), (sim, live, "simulated")):
        for part, share in one["parts"].items():
            beside = other["parts"].get(part, 0.0)
            if share >= TOP_SHARE and beside < OTHER_SHARE and other["parts"]:
                yield "part", f"{part} {100 * share:.0f} % {name}, {100 * beside:.0f} % in the other"


def _known_alike(live: Mapping[str, int], sim: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The causes of both, where a live run cannot know what a simulation does.

    What a live run calls unknown, with what may have become of it, is held against what a simulation calls lost by
    that. What it calls overtaken is lost by something that nobody said: it is held against whatever the simulation has
    more of.
    """
    shown: dict[str, int] = {}
    modelled: dict[str, int] = {}
    for causes, into in ((live, shown), (sim, modelled)):
        for cause, count in causes.items():
            fate, word = cause.split(" ", 1)
            known = f"lost {word}" if fate == "unknown" and word else cause
            into[known] = into.get(known, 0) + count
    unsaid = shown.pop("lost overtaken", 0)
    for cause in sorted(name for name in modelled if name.startswith("lost ")):
        share = min(unsaid, max(0, modelled[cause] - shown.get(cause, 0)))
        shown[cause] = shown.get(cause, 0) + share
        unsaid -= share
    return shown | {"lost overtaken": unsaid}, modelled


# Rules


def _verdict(read: Read) -> Iterator[Found]:
    """Nothing that a simulation does is outside its scenario; live only the machine is.

    A station out of reach never connects, and there is no measurement without it."""
    for reason in read.reasons:
        known = NEVER if read.simulated else (*MACHINE, *NEVER)
        if not any(word in reason for word in known):
            yield "not valid", reason


def _notation(read: Read) -> Iterator[Found]:
    for match in re.finditer(r"[^\n]{0,60}\b\d+(?:\.\d+)?e[+-]?\d+[^\n]{0,30}", read.text):
        yield "notation", match.group().strip()


def _simulated_machine(read: Read) -> Iterator[Found]:
    """A simulation has neither a log nor a busy machine."""
    if read.simulated:
        for match in re.finditer(r"[^\n]{0,80}(?:\blogs?\b|too busy|busy machine|machine is)[^\n]{0,40}", read.text):
            yield "machine", match.group().strip()


def _failed(read: Read) -> Iterator[Found]:
    if "Traceback" in read.text:
        yield "failed", read.text[read.text.index("Traceback"):][:200]


def _cut(read: Read) -> Iterator[Found]:
    for match in re.finditer(r"[^\n]{20,80}…[ )]*\n", read.text):
        yield "cut off", match.group().strip()


def _sockets_of_the_absent(read: Read) -> Iterator[Found]:
    """No socket holds a message while there is no connection."""
    table = parts_of(read.recording).filter((pl.col("latency_ns") > SLOW_NS) & (pl.col("fate") == "delivered"))
    away = _away(read.recording)
    for row in table.iter_rows(named=True):
        for client, sockets in ((row["subscriber"], SOCKETS[:2]), (row["publisher"], SOCKETS[2:])):
            without = sum(max(0, min(end, row["received_ns"]) - max(begin, row["sent_ns"]))
                          for begin, end in away.get(client, []))
            held = sum(row.get(name) or 0 for name in sockets)
            if without > AWAY_SHARE * row["latency_ns"] and held > row["latency_ns"] - without + SLOW_NS / 10:
                name = f"{row['publisher']}:{row['sequence']}@{row['subscriber']} of {row['latency_ns'] / 1e9:.2f} s"
                yield "socket", f"{name}: {held / 1e9:.2f} s in one, client {client} away for {without / 1e9:.2f} s"
                return


def _repeated_without_repetition(read: Read) -> Iterator[Found]:
    packets = read.recording.packets
    if len(packets) and not (packets["repetition"] > 0).any() and "repeated segment" in read.text:
        line = next(line for line in read.text.splitlines() if "repeated segment" in line)
        yield "repeated", f"no segment was sent again: {line.strip()}"


def _overtaken(read: Read) -> Iterator[Found]:
    """Whoever knows every drop and every end of a session has a better cause than a later message."""
    lost = read.messages.filter((pl.col("fate") == "lost") & (pl.col("cause") == "overtaken"))
    if len(lost) and read.simulated:
        yield "overtaken", f"{len(lost)} lost in a simulation because a later message arrived"


def _under_way_without_a_way(read: Read) -> Iterator[Found]:
    """A frame of UDP has arrived or not, long before the end."""
    packets = read.recording.packets
    if read.simulated and len(packets) and set(packets["protocol"].unique()) == {17}:
        under_way = read.messages.filter((pl.col("fate") == "under_way") & (pl.col("qos") == 0))
        if len(under_way):
            yield "under way", f"{len(under_way)} over UDP"


def _overload_without_a_queue(read: Read) -> Iterator[Found]:
    """`more was sent than the link carries` needs a frame that a full queue dropped or held."""
    packets = read.recording.packets
    if "more was sent than the link carries" in read.text and len(packets):
        queued = packets.filter((pl.col("start_ns") - pl.col("entered_ns") > WAITED_NS) | (pl.col("cause") == "queue"))
        if queued.is_empty():
            yield "overload", "no frame waited"


RULES = (_verdict, _notation, _simulated_machine, _failed, _cut, _sockets_of_the_absent, _repeated_without_repetition,
         _overtaken, _under_way_without_a_way, _overload_without_a_queue)


def _expected(messages: pl.DataFrame) -> pl.DataFrame:
    return messages.filter(pl.col("fate").is_in(["delivered", "lost", "under_way", "unknown", "not_decided"]))


def parts_of(recording: Recording) -> pl.DataFrame:
    """Messages with the parts of their latencies; those that have none are left out."""
    path = recording.directory / "attribution.parquet"
    if not path.is_file():
        return recording.messages.clear()
    table = pl.read_parquet(path).with_columns(pl.col("row").cast(pl.UInt32))
    return recording.messages.with_row_index("row").join(table, on="row", how="inner")


def _names(table: pl.DataFrame) -> set[str]:
    """Columns that are parts: those behind `row` of the attribution."""
    of_messages = {"intended_ns", "sent_ns", "written_ns", "acknowledged_ns", "received_ns", "latency_ns",
                   "adjusted_ns"}
    return {name for name in table.columns if name.endswith("_ns")} - of_messages


def _away(recording: Recording) -> dict[int, list[tuple[int, int]]]:
    """When each client had no connection: from a close until the next CONNACK, or for ever."""
    away: dict[int, list[tuple[int, int]]] = {}
    gone: dict[int, int] = {}
    for at, kind, client in recording.events.select("at_ns", "kind", "client").iter_rows():
        if client is None:
            continue
        if kind in ("close", "disconnect"):
            gone.setdefault(client, at)
        elif kind == "connack" and client in gone:
            away.setdefault(client, []).append((gone.pop(client), at))
    for client, at in gone.items():
        away.setdefault(client, []).append((at, 1 << 62))
    return away
