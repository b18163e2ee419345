"""Which copies of retained messages a new subscription was owed, and which did not come.

A server sends the stored message of each topic that a new subscription matches (MQTT 3.1.1 and 5, §3.3.1.3). A topic
counts where its message was at the server for certain before the SUBSCRIBE: acknowledged at QoS 1 and 2. A copy is
missing where nothing of that topic came to the client from the SUBSCRIBE to the end of the recording.

It is told of runs of our own, whose plan and events have all filters. It is not told where messages expire, where a
server may lose its store, and of subscriptions that ask for no copies, or are shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import has_messages
from mqttlab.metrics.copies import matches
from mqttlab.metrics.flow import FLOW, Key, key_of, numbered
from mqttlab.recording import Recording

PAIRS_MAX = 5_000_000
"""So many topics and subscriptions are compared; of more nothing is told."""
STOPS = ("stop", "kill")


@dataclass(frozen=True, kw_only=True)
class StoredCopies:
    """Copies from the store that new subscriptions of a flow's receivers were owed."""

    owed: int
    missing: int


def stored_copies(recording: Recording) -> dict[Key, StoredCopies]:
    """By flow; also those of which no copy is missing."""
    if not has_messages(recording) or sums.is_summed(recording) or not _is_told(recording):
        return {}
    stored = _stored(recording)
    asked = _asked(recording)
    if stored.is_empty() or asked.is_empty():
        return {}
    topics = stored["topic"].unique().to_list()
    wanted = asked["filter"].unique().to_list()
    if len(topics) * max(len(wanted), asked.height) > PAIRS_MAX:
        return {}
    pairs = [(each, topic) for each in wanted for topic in topics if matches(each, topic)]
    matched = pl.DataFrame(pairs, schema={"filter": pl.String, "topic": pl.String}, orient="row")
    owed = asked.join(matched, on="filter").unique(("client", "at", "topic")).sort("at").join_asof(
        stored.sort("at"), on="at", by="topic", strategy="backward", check_sortedness=False).filter(
        pl.col("payload_bytes") > 0)
    came = recording.collect(recording.scan("messages").filter(pl.col("received_ns").is_not_null()).select(
        pl.col("subscriber").cast(pl.Int64).alias("client"), pl.col("topic").cast(pl.String),
        last=pl.col("received_ns").cast(pl.Int64)).group_by("client", "topic").agg(pl.col("last").max()))
    told = owed.join(came, on=("client", "topic"), how="left").with_columns(
        missing=(pl.col("last") < pl.col("at")).fill_null(True))
    flows = numbered(told.rename({"client": "subscriber"}).lazy(), recording).group_by(FLOW).agg(
        pl.len(), pl.col("missing").sum())
    return {key_of(ends, recording): StoredCopies(owed=count, missing=missing)
            for *ends, count, missing in flows.collect().rows()}


def _is_told(recording: Recording) -> bool:
    plan: Any = recording.plan
    if "sources" in plan or plan.get("backend") not in ("sim", "live"):
        return False
    publications = [each for group in plan["groups"] for each in group.get("publications") or ()]
    stops = [event for event in plan.get("events") or () if "server" in event and event["change"]["kind"] in STOPS]
    return (any(each.get("retain") for each in publications)
            and not any((each.get("properties") or {}).get("expiry_s") for each in publications)
            and all(event["change"].get("persistence") for event in stops))


def _stored(recording: Recording) -> pl.DataFrame:
    """Messages that were published with RETAIN and acknowledged: once each."""
    return recording.collect(recording.scan("messages").filter(
        pl.col("retain"), pl.col("acknowledged_ns").is_not_null(), pl.col("qos") > 0).select(
        pl.col("publisher").cast(pl.Int64), "sequence", "publication", "qos", "payload_bytes",
        pl.col("topic").cast(pl.String), at=pl.col("acknowledged_ns").cast(pl.Int64)).unique(("publisher", "sequence")))


def _asked(recording: Recording) -> pl.DataFrame:
    """The filters of each SUBSCRIBE that was answered: ``client``, ``at`` (when it was sent) and ``filter``."""
    events = recording.events
    schema = {"client": pl.Int64, "at": pl.Int64, "filter": pl.String}
    if events.is_empty():
        return pl.DataFrame(schema=schema)
    answered = events.filter(pl.col("kind").cast(pl.String) == "suback", pl.col("client").is_not_null()).select(
        pl.col("client").cast(pl.Int64), at=pl.col("at_ns").cast(pl.Int64) - pl.col("took_ns").fill_null(0),
        detail=pl.col("detail").cast(pl.String))
    planned = _planned(recording)
    rows = [(client, at, wanted) for client, at, detail in answered.rows()
            for wanted in ([detail] if detail else planned.get(client, ())) if not wanted.startswith("$share/")]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _planned(recording: Recording) -> dict[int, list[str]]:
    """What each client subscribes to when it connects; without subscriptions that ask for no copies."""
    found: dict[int, list[str]] = {}
    first = 0
    groups: list[Any] = list(recording.plan["groups"])
    for group in groups:
        asked = [each["filter"] for each in group.get("subscriptions") or ()
                 if each.get("retain_handling") in (None, "send")]
        for number in range(group["count"]):
            found[first + number] = [str(each).replace("{group}", str(group["name"])).replace("{client}", str(number))
                                     for each in asked]
        first += group["count"]
    return found
