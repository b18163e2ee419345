"""What tells one flow of messages from another: who publishes what for whom, and at which QoS.

A publication counts where its group has several. Its name is its topic as the scenario has it; of several with one
topic the number stands behind it, counted from 0. A recording's rows number the publications of each group; here all
of a run's are numbered, in the order of the scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from mqttlab.plan import publications_of
from mqttlab.recording import Recording, looked_up, named

FLOW = ("publisher_group", "publication", "subscriber_group", "qos")
"""Columns that name a flow, in the order of :class:`Key`."""


class Key(NamedTuple):
    """A flow; ``None`` stands for what is not known, and for the publication of a group that has one."""

    publishers: str | None
    publication: str | None
    subscribers: str | None
    qos: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Key:
        """The flow of a table's row that has it by name."""
        return cls(*(row[name] for name in FLOW))


def shown(table: pl.DataFrame) -> tuple[str, ...]:
    """Those of :data:`FLOW` that a table has something in."""
    return tuple(name for name in FLOW if name != "publication" or table[name].count())


def publisher(group: str, publication: str | None) -> str:
    """Who publishes, and what, where the group has several publications."""
    return group if publication is None else f"{group} ({publication})"


def scope(key: Key) -> str:
    """What tables of metrics call a flow, in the scope ``groups``."""
    publishers, subscribers, qos = ("none" if value is None else value
                                    for value in (key.publishers, key.subscribers, key.qos))
    return f"{publisher(str(publishers), key.publication)} to {subscribers} at QoS {qos}"


def group_names(recording: Recording) -> list[str]:
    """The groups that have clients, in the order of the numbers that rows have for them."""
    names: list[str] = recording.layout["clients"].group_names
    return names


def publications(recording: Recording) -> list[str]:
    """The names of all publications of groups that have several."""
    return _publications(recording)[0]


def numbered(table: pl.LazyFrame, recording: Recording) -> pl.LazyFrame:
    """Rows of messages with the groups of both ends, and ``publication``, as numbers: names would take more room than
    all the rest."""
    of_client = recording.layout["clients"].group_numbers.cast(pl.UInt16)
    words, before = _publications(recording)
    publication = pl.lit(None, pl.UInt16)
    if words:
        publication = looked_up("publisher", before.gather(of_client)) + pl.col("publication").cast(pl.UInt16)
    return table.with_columns(
        publisher_group=looked_up("publisher", of_client), subscriber_group=looked_up("subscriber", of_client),
        publication=publication)


def names(recording: Recording) -> dict[str, list[str]]:
    """By column, what its numbers stand for."""
    groups = group_names(recording)
    return {"publisher_group": groups, "publication": publications(recording), "subscriber_group": groups}


def with_names(table: pl.DataFrame, recording: Recording) -> pl.DataFrame:
    """A small table with the groups and publications of its flows by name."""
    return table.with_columns(by_name(recording, table.columns))


def by_name(recording: Recording, columns: Sequence[str] = FLOW) -> list[pl.Expr]:
    """Those of these columns that have numbers of groups or publications, as names."""
    return [_named(column, words) for column, words in names(recording).items() if column in columns]


def _named(column: str, words: Sequence[str]) -> pl.Expr:
    """A column of numbers as names, of which there may be none."""
    return named(column, words) if words else pl.lit(None, pl.String).alias(column)


def publications_named(table: pl.DataFrame, recording: Recording) -> pl.DataFrame:
    """A table that has groups by name and the publications of each numbered, with these by name."""
    words, before = _publications(recording)
    places = dict(zip(group_names(recording), before, strict=True))
    first = pl.col("publisher_group").cast(pl.String).replace_strict(places, default=None, return_dtype=pl.UInt16)
    return table.with_columns(publication=first + pl.col("publication").cast(pl.UInt16)).with_columns(
        _named("publication", words))


def key_of(row: Sequence[int | None], recording: Recording) -> Key:
    """The flow of numbers as rows have them."""
    publishers, publication, subscribers = (
        None if number is None else words[number]
        for number, words in zip(row, names(recording).values(), strict=False))
    return Key(publishers, publication, subscribers, row[-1])


def _publications(recording: Recording) -> tuple[list[str], pl.Series]:
    """All names, and by the number of a group how many come before its own; null of groups with one publication."""
    if "publications" not in recording.remembered:
        planned = {group["name"]: [str(publish.get("topic") or "") for publish in publications_of(group)]
                   for group in recording.plan.get("groups") or ()}
        words: list[str] = []
        before: list[int | None] = []
        for group in group_names(recording):
            topics = planned.get(group, [])
            before.append(len(words) if len(topics) > 1 else None)
            if len(topics) > 1:
                words += [topic if topics.count(topic) == 1 else f"{topic} #{number}"
                          for number, topic in enumerate(topics)]
        recording.remembered["publications"] = (words, pl.Series(before, dtype=pl.UInt16))
    found: tuple[list[str], pl.Series] = recording.remembered["publications"]
    return found
