"""What the parts of deliveries were read from: their legs, and the packets and frames around them.

The engine has followed every delivery already; who tells the story of a few of them reads their rows of ``legs``, and
the control packets and frames of the connections that carried them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
from numpy.typing import NDArray

from mqttlab.metrics.attribution.lookup import Lookup
from mqttlab.metrics.attribution.transport import Transport, way
from mqttlab.metrics.catalogue import PARTS
from mqttlab.recording import Recording, named

MESSAGE = ("publisher", "sequence")
NEEDED = ("publisher", "sequence", "topic", "subscriber", "publisher_group", "subscriber_group", "phase", "qos",
          "qos_delivered", "intended_ns", "sent_ns", "written_ns", "received_ns", "latency_ns")
# The instants of a leg, which has lengths of time, too.
OF_INSTANTS = ("begins_", "handed_", "up_", "ingress_", "down_", "sn_", "received_")
# What is read before and after them. What a message waited for is in it, or the last of its stream before.
AROUND_NS = 60_000_000_000
# There may be many packets: what nobody asks for is not read.
OF_PACKETS = ("packet", "connection", "direction", "client", "protocol", "kind", "qos", "packet_id", "topic",
              "publisher", "sequence", "stream_start", "stream_end", "first_sent_ns", "complete_ns")


@dataclass(frozen=True)
class Evidence:
    """What the parts were read from."""

    control_packets: pl.DataFrame
    transport: Transport
    legs: pl.DataFrame
    """One row per delivery: the parts of its last leg, and the packets, frames and instants that tell them."""
    holds: pl.DataFrame
    """When something that the recording names held a leg: ``leg``, ``part``, ``from_ns``, ``until_ns``."""

    @cached_property
    def datagrams(self) -> pl.Series:
        """The numbers of conversations of MQTT-SN."""
        known = self.control_packets.select("connection", pl.col("protocol").cast(pl.String))
        return known.filter(pl.col("protocol") == "mqtt-sn")["connection"].unique()

    @cached_property
    def _of_way(self) -> Lookup:
        return Lookup(self.control_packets, way(pl.col("to_broker")))

    @cached_property
    def _bytes(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.control_packets["stream_start"].to_numpy(), self.control_packets["stream_end"].to_numpy()

    def packets_within(self, number: int, start: int, end: int) -> pl.DataFrame:
        """The control packets with a byte of this part of a stream; ``number`` is its :func:`way`."""
        places = self._of_way.places(number)
        starts, ends = self._bytes
        return self.control_packets[places[(starts[places] < end) & (ends[places] > start)]]


def evidence(recording: Recording, deliveries: Collection[int] | None = None) -> Evidence:
    """The legs of deliveries and what is around them; only where :func:`attribution_gap` is ``None``.

    Args:
        recording: the recording.
        deliveries: rows of :func:`attribution`; every one by default. The legs before theirs come with them.
    """
    legs = _legs(recording, deliveries)
    connections = between = None
    if deliveries is not None:
        between = _around(legs)
        # A message that was published again after a reconnect was on other connections of the same clients, too.
        clients = {*legs["up_client"].drop_nulls(), *legs["subscriber"].drop_nulls()}
        theirs = recording.derived("connections of clients", _connections)
        found = theirs.filter(pl.col("client").is_in(sorted(clients)))["connection"]
        # An aggregating gateway's connection is no client's.
        connections = sorted({*found, *legs["up_connection"].drop_nulls(), *legs["down_connection"].drop_nulls()})
    return Evidence(control_packets(recording, connections, between),
                    Transport.of(recording, connections, between), legs, _holds(recording, legs["leg"]))


def _holds(recording: Recording, legs: pl.Series) -> pl.DataFrame:
    """What held these legs."""
    table = recording.scan_summary("holds").filter(pl.col("leg").is_in(legs.cast(pl.Int64).implode()))
    return recording.collect(table.with_columns(pl.col("part").cast(pl.String)))


def _connections(recording: Recording) -> pl.DataFrame:
    """Each client's connections: ``client``, ``connection``, once."""
    return recording.collect(recording.scan("control_packets").select("client", "connection").unique())


def _around(legs: pl.DataFrame) -> tuple[int, int] | None:
    """The time in which these legs, and what they waited for, were on their way: of a long run a small part."""
    instants = legs.select(name for name in legs.columns if name.endswith("_ns") and name.startswith(OF_INSTANTS))
    known = instants.unpivot()["value"].drop_nulls()
    return None if known.is_empty() else (int(known.min()) - AROUND_NS, int(known.max()) + AROUND_NS)  # type: ignore[arg-type]


def control_packets(
    recording: Recording, connections: Collection[int] | None = None, between: tuple[int, int] | None = None,
) -> pl.DataFrame:
    """Control packets with :data:`OF_PACKETS`, each PUBLISH with its message as far as anything tells.

    Their number, in the order of the table, is ``packet``; ``to_broker`` is their direction as a truth value.

    Args:
        recording: the recording.
        connections: only those on these.
        between: only those that were on their way then, or of which that is not known.
    """
    table = recording.scan("control_packets", index="packet")
    if between is not None:
        # In these words: of `fill_null` polars does not know that a whole group of rows may be passed over.
        first_sent, complete = pl.col("first_sent_ns"), pl.col("complete_ns")
        table = table.filter((first_sent <= between[1]) | first_sent.is_null(),
                             (complete >= between[0]) | complete.is_null())
    if connections is not None:
        table = table.filter(pl.col("connection").is_in(list(connections)))
    found = recording.collect(table.select(OF_PACKETS)).with_columns(to_broker=pl.col("direction") == "to_broker")
    # Without a publisher the number is only what a small payload has of it.
    found = found.with_columns(sequence=pl.when(pl.col("publisher").is_not_null()).then(pl.col("sequence")))
    named = recording.summary("named_packets")
    if named.is_empty():
        return found
    named = named.select(pl.col("packet").cast(found.schema["packet"]),
                         *(pl.col(name).alias(f"{name}_named") for name in MESSAGE))
    return found.join(named, on="packet", how="left", maintain_order="left").with_columns(
        pl.coalesce(name, f"{name}_named").alias(name) for name in MESSAGE).drop(f"{name}_named" for name in MESSAGE)


def _legs(recording: Recording, deliveries: Collection[int] | None) -> pl.DataFrame:
    """The legs, numbered in the column ``leg``."""
    stored, whole = (recording.scan_summary(name) for name in ("legs", "attribution"))
    if deliveries is None:
        stored, whole = stored.with_row_index("leg"), whole.with_row_index("leg")
    else:
        wanted = sorted(_with_legs_before(recording, stored, deliveries))
        stored, whole = _rows(stored, "leg", wanted), _rows(whole, "leg", wanted)
    parts = recording.collect(whole.select("leg", "row", "seen_by", "unattributed", "adjusted_ns", *PARTS))
    messages = _messages(recording, parts["row"], every=deliveries is None)
    legs = recording.collect(stored.drop("qos").rename({"topic": "down_topic"}))
    return _own(legs.hstack(messages).hstack(parts.drop("leg", "row")))


def _rows(table: pl.LazyFrame, index: str, numbers: Collection[int]) -> pl.LazyFrame:
    """A few rows of a stored table, in this order, numbered: only the groups of rows that they are in are read."""
    def numbered(rows: pl.LazyFrame, number: int) -> pl.LazyFrame:
        # A table that is numbered first is read whole.
        return rows.select(pl.lit(number, dtype=pl.UInt32).alias(index), pl.all())

    return pl.concat([numbered(table.slice(number, 1), number) for number in numbers] or [numbered(table.head(0), 0)])


def _messages(recording: Recording, rows: pl.Series, *, every: bool) -> pl.DataFrame:
    """These rows of the messages, in this order; a few, or those of every delivery."""
    groups = recording.layout["clients"].groups
    table = recording.scan("messages")
    whole = (table.with_row_index("row").filter(pl.col("row").is_in(rows.implode())) if every
             else _rows(table, "row", rows.to_list()))
    found = recording.collect(whole.select("row", *(name for name in NEEDED if not name.endswith("_group"))))
    found = found.with_columns(publisher_group=named("publisher", groups), subscriber_group=named("subscriber", groups))
    wanted = pl.DataFrame({"row": rows.cast(found.schema["row"])})
    return wanted.join(found, on="row", how="left", maintain_order="left").select(NEEDED)


def _with_legs_before(recording: Recording, legs: pl.LazyFrame, deliveries: Collection[int]) -> set[int]:
    """These legs and those before them: relays make as many looks as a message has legs, and most have one."""
    wanted: set[int] = set()
    further = set(deliveries)
    while further:
        wanted |= further
        before = recording.collect(_rows(legs, "leg", sorted(further)).select("before"))["before"]
        further = set(before.drop_nulls()) - wanted
    return wanted


def _own(legs: pl.DataFrame) -> pl.DataFrame:
    """Each leg's own parts: those of the whole way less those of the legs before."""
    sums = ("adjusted_ns", *PARTS)
    if not legs["before"].count():
        return legs
    earlier = legs.select(pl.col("leg").alias("before"), *(pl.col(name).alias(f"_{name}") for name in sums))
    joined = legs.join(earlier.with_columns(pl.col("before").cast(legs.schema["before"])), on="before", how="left",
                       maintain_order="left")
    relayed = pl.col("before").is_not_null()
    return joined.with_columns(
        pl.when(relayed).then(pl.col(name) - pl.col(f"_{name}")).otherwise(name).alias(name) for name in sums
    ).drop(f"_{name}" for name in sums)
