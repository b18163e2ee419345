"""An import beside what is right: right, cannot be told, or wrong and valid.

Each message of each publisher is compared, in the order of sending, at each of its receivers: what became of it, and
the time from its sending until its delivery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from right import Delivery, Right

from mqttlab.engine import EngineError
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording

EXPECTED = ("delivered", "lost", "under_way", "unknown")
WRONG, UNTOLD, RIGHT = "wrong and valid", "cannot be told", "right"
EXAMPLES_MAX = 3
Key = tuple[int, int]
SentRow = tuple[int, dict[int | None, list[dict[str, Any]]]]
"""When a message was sent, and by receiver what an import has of it; by none: of a shared subscription's members."""


@dataclass
class Found:
    """What is said of an import."""

    word: str
    problems: Counter[str] = field(default_factory=Counter)
    """Kinds of differences, and how often."""
    examples: dict[str, list[str]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    """Why it is not valid."""
    numbers: dict[str, Any] = field(default_factory=dict)
    untimed: int = 0
    """Deliveries of which it does not say how long they took."""

    def add(self, problem: str, example: str = "") -> None:
        """A difference."""
        self.problems[problem] += 1
        kept = self.examples.setdefault(problem, [])
        if len(kept) < EXAMPLES_MAX:
            kept.append(example)


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Messages of an import: by publisher, in the order of sending, with what is said of each receiver."""

    sent: dict[int, list[SentRow]]
    foreign: int
    valid: bool
    reasons: list[str]
    unmapped: list[str]
    warnings: list[str]
    open_copies: set[int]
    """Receivers of second copies of which it does not say of which message they are."""


def imported(directory: Path, names: Mapping[str, int]) -> Imported:
    """Read an import.

    Args:
        directory: the recording.
        names: numbers of the run's clients by identifiers, and by addresses with ports.
    """
    recording = Recording.open(directory)
    validity = recording.run.get("validity") or {}
    own = list(recording.layout["clients"].names)
    clients = {number: names.get(name, -1 - number) for number, name in enumerate(own)}
    started_ns = int(recording.layout["started_unix_ns"])
    messages = recording.messages
    sent: dict[int, list[SentRow]] = {}
    rows: dict[Key, SentRow] = {}
    columns = ("publisher", "sequence", "subscriber", "fate", "cause", "sent_ns", "received_ns", "latency_ns")
    known = messages.filter(pl.col("publisher").is_not_null(), pl.col("fate") != "unsent").select(columns)
    for row in known.sort("publisher", "sequence").iter_rows(named=True):
        key = row["publisher"], row["sequence"]
        if key not in rows:
            rows[key] = (started_ns + (row["sent_ns"] or 0), {})
            sent.setdefault(clients[key[0]], []).append(rows[key])
        # Of a member of a shared subscription, or of nobody.
        if row["subscriber"] is not None or row["fate"] in EXPECTED:
            rows[key][1].setdefault(clients.get(row["subscriber"]), []).append(row)
    for found in sent.values():
        found.sort(key=lambda each: each[0])
    return Imported(
        sent=sent, foreign=len(messages.filter(pl.col("fate") == "foreign")), valid=bool(validity.get("valid", True)),
        reasons=list(validity.get("reasons", [])), unmapped=[name for name in own if name not in names],
        warnings=list(recording.run.get("warnings") or []),
        open_copies={subscriber for found in sent.values() for _, receivers in found
                     for subscriber, each in receivers.items() if subscriber is not None
                     and any(row["fate"] == "duplicate" and row["latency_ns"] is None for row in each)})


def judge(files: list[Path], directory: Path, names: Mapping[str, int], right: Right,
          expected: Mapping[Key, set[int]], never: set[tuple[int, int, int]], *, tolerance_ns: int) -> Found:
    """Import files, and compare.

    Args:
        files: the capture.
        directory: where the import goes.
        names: numbers of the run's clients by identifiers, and by addresses with ports.
        right: what is right.
        expected: by publisher and sequence, the clients that should have it by the run.
        never: messages that the run itself has not delivered.
        tolerance_ns: how exact the files' times are.
    """
    try:
        outcome = import_evidence("capture", files, directory, lambda progress: None)
    except EngineError as error:
        return Found("failed", Counter({str(error).splitlines()[0][:80]: 1}))
    said = imported(directory, names)
    found = Found(RIGHT, reasons=said.reasons)
    if outcome.verdict != "complete":
        found.reasons.append(f"{outcome.verdict}: {outcome.reason}")
    _compare(said, right, expected, never, found, tolerance_ns)
    found.numbers |= _numbers(said, right) | {"untimed": found.untimed}
    if found.reasons:
        found.word = UNTOLD
    elif found.problems:
        found.word = WRONG
    elif found.numbers["unknown"] or found.untimed:
        found.word = UNTOLD
    return found


def _numbers(said: Imported, right: Right) -> dict[str, Any]:
    fates = Counter(row["fate"] for found in said.sent.values() for _, receivers in found
                    for rows in receivers.values() for row in rows)
    return {"sent": sum(map(len, said.sent.values())), "sent_right": len(right.sent), **{
        fate: fates[fate] for fate in (*EXPECTED, "duplicate")}, "foreign": said.foreign,
        "delivered_right": sum(key[:2] in right.sent for key in right.deliveries), "contradicts": right.contradicts}


def _compare(said: Imported, right: Right, expected: Mapping[Key, set[int]],
             never: set[tuple[int, int, int]], found: Found, tolerance_ns: int) -> None:
    if right.contradicts and (named := [words for words in said.warnings if words.startswith("The clock of ")]):
        # What it was set by is right within bounds.
        found.reasons += named
        return
    if right.contradicts:
        found.add("clocks that contradict each other are not named")
        return
    for name in said.unmapped:
        found.add("a client that the run does not have", name)
    by_publisher: dict[int, list[Key]] = {}
    for key, sent in right.sent.items():
        by_publisher.setdefault(sent.publisher, []).append(key)
    for publisher in sorted({*by_publisher, *said.sent} - right.again):
        keys = sorted(by_publisher.get(publisher, []), key=lambda key: right.sent[key].at_ns)
        rows = said.sent.get(publisher, [])
        pairs = _paired(keys, rows, right, tolerance_ns)
        if pairs is None:
            found.add("sent", f"client {publisher}: {len(rows)} instead of {len(keys)}")
            continue
        for key, (at_ns, receivers) in pairs:
            if abs(at_ns - right.sent[key].at_ns) > tolerance_ns:
                found.add("time of sending", f"{key}: {(at_ns - right.sent[key].at_ns) / 1e6:.3f} ms later")
            _compare_receivers(said, key, at_ns, receivers, right, expected.get(key, set()), never, found, tolerance_ns)


def _paired(keys: list[Key], rows: list[SentRow], right: Right, tolerance_ns: int) -> list[tuple[Key, SentRow]] | None:
    """Messages with what the import has of them, in their order; nothing where one is too many or too few."""
    if len(keys) == len(rows):
        return list(zip(keys, rows, strict=True))
    pairs, left = list[tuple[Key, SentRow]](), rows[:]
    for key in keys:
        sent = right.sent[key]
        if left and (sent.is_whole or abs(left[0][0] - sent.at_ns) <= tolerance_ns):
            pairs.append((key, left.pop(0)))
        elif sent.is_whole:
            return None
    return None if left else pairs


def _compare_receivers(
    said: Imported, key: Key, at_ns: int, receivers: dict[int | None, list[dict[str, Any]]], right: Right,
    expected: set[int], never: set[tuple[int, int, int]], found: Found, tolerance_ns: int,
) -> None:
    # Which of several messages with one content it is, an import may leave open: of a shared subscription also whose.
    is_open = any(row["fate"] == "delivered" and row["latency_ns"] is None
                  for rows in receivers.values() for row in rows)
    members = receivers.get(None, [])
    is_unknown = any(row["fate"] == "unknown" for row in members)
    known = {subscriber for subscriber in receivers if subscriber is not None}
    for subscriber in sorted({*known, *expected, *(each for *its, each in right.deliveries if (*its,) == key)}):
        place = (*key, subscriber)
        deliveries, rows = right.deliveries.get(place, []), receivers.get(subscriber, [])
        fates = Counter(row["fate"] for row in rows)
        sure = any(delivery.is_certain for delivery in deliveries)
        if fates["delivered"] and next(row for row in rows if row["fate"] == "delivered")["latency_ns"] is None:
            found.untimed += 1
        elif fates["delivered"]:
            _compare_time(place, at_ns, rows, deliveries, right, found, tolerance_ns)
            again = len(deliveries) - 1
            least = sum(delivery.is_certain for delivery in deliveries) - 1
            if deliveries and not least <= fates["duplicate"] <= again:
                if subscriber in said.open_copies:
                    found.untimed += 1
                else:
                    found.add("duplicates", f"{place}: {fates['duplicate']} instead of {again}")
        elif sure and is_open:
            found.untimed += 1
        elif sure and not fates["unknown"] and not is_unknown:
            found.add(f"delivered, said {_fate(rows or members)}", f"{place}")
        elif not rows and not members and subscriber in expected & right.subscribers and right.is_due(key, subscriber):
            found.add("missing, said not expected", f"{place}")
        elif fates["lost"] and place not in never and deliveries:
            found.add("delivered later, said lost", f"{place}")


def _fate(rows: list[dict[str, Any]]) -> str:
    return " ".join(filter(None, (rows[0]["fate"], rows[0]["cause"]))) if rows else "not expected"


def _compare_time(place: tuple[int, int, int], at_ns: int, rows: list[dict[str, Any]], deliveries: list[Delivery],
                  right: Right, found: Found, tolerance_ns: int) -> None:
    row = next(row for row in rows if row["fate"] == "delivered")
    if not deliveries:
        found.add("not delivered, said delivered", f"{place}")
        return
    took = row["received_ns"] - row["sent_ns"]
    sent_ns = right.sent[place[:2]].at_ns
    if not any(each.low_ns - sent_ns - tolerance_ns <= took <= each.high_ns - sent_ns + tolerance_ns
               for each in deliveries):
        first = deliveries[0]
        is_first_sight = abs(took - (first.seen_ns - sent_ns)) <= tolerance_ns
        kind = "" if not is_first_sight else (
            ", of another file than the receiver's" if first.is_at_receiver else ", of a copy that did not arrive")
        found.add(f"latency{kind}", f"{place}: {took / 1e6:.3f} ms instead of {(first.low_ns - sent_ns) / 1e6:.3f} to "
                             f"{(first.high_ns - sent_ns) / 1e6:.3f} ms")
