"""What subscribers had to get and did not, whatever the cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import polars as pl

from mqttlab.recording import Recording

Key = tuple[object, ...]


def with_undelivered(
    recording: Recording, messages: pl.LazyFrame, table: pl.DataFrame, keys: Sequence[str],
) -> pl.DataFrame:
    """Adds ``undelivered_percent`` to a table with ``deliveries_expected`` and ``messages_delivered``.

    A message that was never sent has no row for each of its subscribers: the layout says who they were.

    Args:
        recording: with its layout.
        messages: the measurement's, with groups as numbers.
        table: a row for each value of ``keys``.
        keys: what rows are about.
    """
    unsent = _of_unsent(recording, messages, table, keys)
    rows = [unsent[key] for key in table.select(keys).rows()]
    wanted = pl.col("deliveries_expected") + pl.Series(rows, dtype=pl.Int64)
    return table.with_columns(undelivered_percent=share_of(wanted))


def share_of(wanted: pl.Expr) -> pl.Expr:
    """How many percent of the deliveries that were wanted ``messages_delivered`` leaves out; null where none was."""
    return pl.when(wanted > 0).then(100.0 * (wanted - pl.col("messages_delivered")) / wanted)


def _of_unsent(
    recording: Recording, messages: pl.LazyFrame, table: pl.DataFrame, keys: Sequence[str],
) -> Counter[Key]:
    """Deliveries that the unsent messages would have had, by the row that they belong to."""
    parts = [key for key in keys if key not in ("subscriber_group", "topic")]
    # With No Local it matters whose a message is.
    own = _left_out(recording)
    who = [pl.col("publisher").alias("_publisher")] if own else [pl.lit(None, dtype=pl.UInt32).alias("_publisher")]
    counted = recording.collect(
        messages.filter(pl.col("fate") == "unsent").group_by("topic", *who, *parts).agg(messages=pl.len()))
    found: Counter[Key] = Counter()
    if counted.is_empty():
        return found
    receivers = _receivers(recording)
    known = set(table.select(keys).rows())
    for topic, publisher, *values, count in counted.rows():
        told = {**dict(zip(parts, values, strict=True)), "topic": topic}
        mine = own.get((topic, publisher))
        for group, many in receivers.get(topic, {}).items():
            many -= group == mine and mine is not None
            key = tuple(group if name == "subscriber_group" else told[name] for name in keys)
            # A group that got no message has no row: the unsent ones have one, of nobody.
            nobody = tuple(None if name == "subscriber_group" else told[name] for name in keys)
            found[key if key in known else nobody] += many * count
    return found


def _left_out(recording: Recording) -> dict[tuple[str, int], int]:
    """The groups, by number, of clients that do not get what they publish to a topic (MQTT 5, 3.8.3.1), by topic and
    client."""
    layout, groups = recording.layout, _groups(recording)
    return {(layout["topics"][row["topic"]]["name"], row["client"]): groups[row["client"]]
            for row in layout.get("own_receivers") or () if not row["at_first"] and not row["flips"]}


def _groups(recording: Recording) -> list[int]:
    """The number of each client's group."""
    numbers: list[int] = recording.layout["clients"].group_numbers.to_list()
    return numbers


def _receivers(recording: Recording) -> dict[str, Counter[int | None]]:
    """By topic, how many clients of each group, by its number, should get a message; of shared subscriptions nobody
    knows whose client it would have been. Who subscribes for a time, by events, is left aside."""
    layout, groups = recording.layout, _groups(recording)
    found: dict[str, Counter[int | None]] = {}
    changing = {(row["topic"], row["client"]) for row in layout.get("changed_receivers") or ()}
    for number, topic in enumerate(layout.get("topics") or ()):
        if not isinstance(topic, dict) or topic.get("receivers") is None:
            continue
        counted: Counter[int | None] = Counter(
            groups[client] for client in layout["receivers"][topic["receivers"]] if (number, client) not in changing)
        counted[None] += topic.get("shares", 0)
        found[topic["name"]] = counted
    return found
