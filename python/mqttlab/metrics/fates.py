"""Why messages did not arrive: counts by fate and cause, and their words.

A cause says by what a message was lost, or what may have become of one whose fate is unknown
(``docs/reference/recording.md``, ``messages.cause``).
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import EXPECTED, FIRST_DELIVERY, has_messages, measured
from mqttlab.recording import Recording

FATES = {"under_way": "still under way", "no_receiver": "without a receiver", "unknown": "of unknown fate",
         "not_decided": "of a subscription that was changing"}
CAUSES = {
    "queue_full": "the broker's queue was full", "socket_full": "the broker's socket had no room",
    "over_inflight": "acknowledged by the broker, which then dropped it: over max_inflight_messages",
    "expired": "it waited at the broker for longer than its expiry",
    "session_ended": "the receiver's session had ended", "not_subscribed": "the receiver had not subscribed yet",
    "connection_lost": "a connection broke", "unknown_topic": "a gateway did not know its topic",
    "overtaken": "a later message arrived before it",
}
POSSIBLE = {
    "queue_full": "the broker dropped messages and does not say which",
    "session_ended": "the receiver's session ended before or after the broker had it",
    "not_subscribed": "the receiver was subscribed for a part of the time",
    "connection_lost": "a connection broke that may have carried it",
    "untraced": "a delivery that nothing traces to a message may be it",
    "equal_content": "of several with equal contents; which of them did not arrive cannot be told",
    "not_recorded": "what would tell was not recorded",
}
"""The same causes where a fate is unknown."""


def in_words(fate: str, cause: str | None) -> str:
    """A message's fate with its cause."""
    told = FATES.get(fate, fate)
    return f"{told} ({because(fate, cause)})" if cause else told


def because(fate: str, cause: str) -> str:
    """A cause in words."""
    return (POSSIBLE if fate == "unknown" else CAUSES).get(cause, cause)


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
