"""How shared subscriptions divide their messages among their members (MQTT 5 §4.8.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import FIRST_DELIVERY, has_messages, measured
from mqttlab.recording import Recording

COLUMNS = ("share", "client", "messages_delivered", "of_share_percent")
NAMES = {"share": pl.String, "client": pl.String, "messages_delivered": pl.Int64, "of_share_percent": pl.Float64}


def members(recording: Recording) -> pl.DataFrame:
    """One row for each member of a shared subscription: :data:`COLUMNS` of the messages of the measurement.

    Empty where there is no share, in recordings that do not name the members of shares, and where messages were
    added up. Topics of which a member may get copies by another subscription, too, are left out: nobody knows which
    copy is whose.
    """
    return recording.derived("members of shares", _members)


def _members(recording: Recording) -> pl.DataFrame:
    shares = recording.layout.get("shares") or []
    if not shares or not has_messages(recording) or sums.is_summed(recording):
        return pl.DataFrame(schema=NAMES)
    names = recording.layout["clients"].names
    delivered = recording.collect(measured(recording).filter(FIRST_DELIVERY).group_by("topic", "subscriber").agg(
        messages=pl.len())).with_columns(pl.col("topic").cast(pl.String))
    counts = {(topic, client): count for topic, client, count in delivered.rows()}
    unclear = _unclear(recording.layout)
    rows = []
    for share in shares:
        topics = {recording.layout["topics"][topic]["name"] for topic in share["topics"] if topic not in unclear}
        if not topics:
            continue
        got = [sum(counts.get((topic, member["client"]), 0) for topic in topics) for member in share["members"]]
        whole = sum(got)
        rows += [(share["filter"], names[member["client"]], count, 100 * count / whole if whole else None)
                 for member, count in zip(share["members"], got, strict=True)]
    return pl.DataFrame(rows, schema=NAMES, orient="row")


def _unclear(layout: dict[str, Any]) -> set[int]:
    """Topics of which somebody may get several copies, by number."""
    takers: dict[int, list[int]] = {}
    for share in layout["shares"]:
        for topic in share["topics"]:
            takers.setdefault(topic, []).extend(member["client"] for member in share["members"])
    found = set()
    for topic, clients in takers.items():
        everyone: Iterable[int] = [*clients, *layout["receivers"][layout["topics"][topic]["receivers"]]]
        if max(Counter(everyone).values(), default=0) > 1 or layout["topics"][topic].get("relayed"):
            found.add(topic)
    return found
