"""Why messages did not arrive: counts by fate and cause, and their words.

A cause says by what a message was lost, or what may have become of one whose fate is unknown
(``docs/reference/recording.md``, ``messages.cause``).
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import EXPECTED, FIRST_DELIVERY, has_messages, measured
from mqttlab.recording import Recording, named
from mqttlab.words import phrases

CODE_NAME = r": code 0x[0-9a-f]{2} \((.*)\)$"

FATES = phrases("message_fate", "absent")
CAUSES = phrases("loss_cause", "lost")
POSSIBLE = phrases("loss_cause", "unknown")
"""The same causes where a fate is unknown."""
DROPS = phrases("frame_cause", "frame")
"""Why links dropped frames."""


def in_words(fate: str, cause: str | None, refusals: str = "") -> str:
    """A message's fate with its cause; of a refusal with the names of its codes."""
    if cause == "refused":
        return "refused by the broker" + (f": {refusals}" if refusals else "")
    told = FATES.get(fate, fate)
    return f"{told} ({because(fate, cause)})" if cause else told


def because(fate: str, cause: str) -> str:
    """A cause in words."""
    return (POSSIBLE if fate == "unknown" else CAUSES).get(cause, cause)


def refusals(recording: Recording) -> dict[str | None, str]:
    """Names of the codes with which brokers refused messages of each group, the most frequent first; None: of all."""
    names: dict[str | None, list[str]] = {}
    for group, name in recording.derived("refusals of messages", _refusals).rows():
        for key in (group, None):
            if name not in names.setdefault(key, []):
                names[key].append(name)
    return {group: ", ".join(told) for group, told in names.items()}


def _refusals(recording: Recording) -> pl.DataFrame:
    """Group and name of a code, the most frequent first."""
    events = recording.events
    if events.is_empty():
        return pl.DataFrame(schema={"group": pl.String, "name": pl.String})
    detail = pl.col("detail").cast(pl.String)
    found = events.filter(pl.col("kind").cast(pl.String) == "refused", detail.str.starts_with("PUBLISH")).select(
        group=named("client", recording.layout["clients"].groups), name=detail.str.extract(CODE_NAME))
    return found.drop_nulls("name").group_by("group", "name").agg(count=pl.len()).sort(
        pl.col("count").cast(pl.Int64) * -1, "name", "group").select("group", "name")


def declined(recording: Recording) -> set[str]:
    """Groups whose clients did not send messages because their broker's CONNACK forbids them."""
    events = recording.events
    if events.is_empty():
        return set()
    is_declined = pl.col("detail").cast(pl.String).str.contains(": not sent, ", literal=True)
    found = events.filter(pl.col("kind").cast(pl.String) == "refused", is_declined)
    return set(found.select(group=named("client", recording.layout["clients"].groups))["group"].drop_nulls())


def absent(recording: Recording) -> pl.DataFrame:
    """What was expected in the measurement and did not happen: ``fate``, ``cause``, ``count``, most frequent first."""
    return recording.derived("absent in the measurement", _absent)


def _absent(recording: Recording) -> pl.DataFrame:
    if not has_messages(recording):
        return pl.DataFrame(schema={"fate": pl.String, "cause": pl.String, "count": pl.UInt32})
    if sums.is_summed(recording):
        return sums.absent(recording)
    missing = measured(recording).filter(EXPECTED, ~FIRST_DELIVERY).group_by("fate", "cause").agg(count=pl.len())
    return recording.collect(missing).with_columns(pl.col("fate", "cause").cast(pl.String)).sort(
        "count", "fate", "cause", descending=[True, False, False])
