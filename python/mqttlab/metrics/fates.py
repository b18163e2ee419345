"""Why messages did not arrive: counts by fate and cause, and their words.

A cause says by what a message was lost, or what may have become of one whose fate is unknown
(``docs/reference/recording.md``, ``messages.cause``).
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import EXPECTED, FIRST_DELIVERY, has_messages, measured
from mqttlab.recording import Recording, named

CODE_NAME = r": code 0x[0-9a-f]{2} \((.*)\)$"

FATES = {"under_way": "still under way", "no_receiver": "without a receiver", "unknown": "of unknown fate",
         "not_decided": "of a subscription that was changing"}
CAUSES = {
    "queue_full": "the broker's queue was full", "socket_full": "the broker's socket had no room",
    "over_inflight": "acknowledged by the broker, which then dropped it: over max_inflight_messages",
    "too_large": "larger than its receiver or its broker takes", "not_released": "QoS 2, and never released by PUBREL",
    "window_full": "its receiver acknowledged nothing more and had as much in flight as it takes",
    "expired": "it waited at the broker for longer than its expiry",
    "session_ended": "the receiver's session had ended", "not_subscribed": "the receiver had not subscribed yet",
    "connection_lost": "a connection broke", "unknown_topic": "a gateway did not know its topic",
    "not_acknowledged": "the receiving host never acknowledged it (TCP), and its connection ended",
    "overtaken": "a later message arrived before it", "refused": "the broker refused it",
    "no_matching_subscribers": "the broker knew of no subscriber, although there was one",
    "link_queue_full": "a link's queue dropped it", "policer": "a link's policer dropped it",
    "link_down": "the link was down", "link_loss": "a link lost or damaged it",
}
POSSIBLE = {
    "queue_full": "the broker dropped messages and does not say which",
    "session_ended": "the receiver's session ended before or after the broker had it",
    "not_subscribed": "the receiver was subscribed for a part of the time",
    "connection_lost": "a connection broke that may have carried it",
    "no_acknowledgement": "it was sent, its connection ended, and no acknowledgement of TCP was captured",
    "untraced": "a delivery that nothing traces to a message may be it",
    "equal_content": "of several with equal contents; which of them did not arrive cannot be told",
    "not_recorded": "what would tell was not recorded",
}
"""The same causes where a fate is unknown."""

DROPS = {"random_loss": "random loss", "burst_loss": "burst loss", "queue_full": "its queue was full",
         "bit_error": "bit error", "retry_limit": "the last retry failed", "unreachable": "out of reach",
         "link_down": "the link was down", "nat_forgot": "the NAT had forgotten the connection",
         "codel": "CoDel kept its queue short", "policer": "it exceeded the policer's rate"}
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
