"""Which MQTT packets carried a message: its PUBLISH to the broker, the one to the subscriber, the PUBREL of each.

```text
  message ──► the last PUBLISH that its receiver had before it received it ──► topic
          ──► the first PUBLISH to the broker that was complete, with that topic ──► its sender
                 the publisher itself, or a relay: then the relay's own reception is the leg before this one
```

A message that was published again after a reconnect has several PUBLISHes. What came first to the broker decides
when the broker had it; what was sent first decides since when it has been on its way.

Where a payload has no room for an identity the order tells: the n-th PUBLISH on a topic is the n-th message there, and
the n-th that a relay sends on is the n-th that it has received.

What it does not model: subscribers that receive such messages both from their publisher and from a relay.
"""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording
from oracle.attribution.lookup import beside, latest, next_at
from oracle.attribution.transport import SLACK_NS

# Below this a payload carries no identity; the order tells (`docs/reference/recording.md`).
IDENTITY_BYTES = 9
MESSAGE = ["publisher", "sequence"]
NEEDED = [*MESSAGE, "topic", "subscriber", "publisher_group", "subscriber_group", "phase", "qos", "qos_delivered",
          "intended_ns", "sent_ns", "written_ns", "received_ns", "latency_ns"]


def control_packets(recording: Recording) -> pl.DataFrame:
    """Control packets, numbered in the column ``packet``, each PUBLISH with its message as far as anything tells."""
    table = recording.control_packets.with_row_index("packet").with_columns(
        to_broker=pl.col("direction") == "to_broker")
    orphans = table.filter(pl.col("kind") == "PUBLISH", pl.col("publisher").is_null())
    if orphans.is_empty():
        return table
    origins = _origins(recording, orphans)
    orphans = orphans.with_columns(origin=pl.col("topic").replace_strict(origins, default=None, return_dtype=pl.String))
    copies = pl.col("to_broker") & (pl.col("origin") != pl.col("topic"))
    named = pl.concat([
        _by_order_sent(recording, table, orphans.filter(~copies)),
        _by_order_received(recording, orphans.filter(~pl.col("to_broker"), pl.col("complete_ns").is_not_null())),
        # What a relay sends on it has received before, in the same order.
        _by_order_received(recording, orphans.filter(copies, ~pl.col("dup"))),
    ]).unique("packet", keep="first")
    return (
        table.join(named, on="packet", how="left", suffix="_named", maintain_order="left")
        .with_columns(pl.coalesce(name, f"{name}_named").alias(name) for name in MESSAGE)
        .drop("publisher_named", "sequence_named")
    )


def delivered(recording: Recording) -> pl.DataFrame:
    """The first deliveries of messages whose publisher is known: those that have a latency."""
    return recording.messages.filter(
        pl.col("fate") == "delivered", pl.col("intended_ns").is_not_null(), pl.col("received_ns").is_not_null())


def legs(recording: Recording, packets: pl.DataFrame) -> pl.DataFrame:
    """One row per delivery: its message, and the packets of its last leg, ``up_*`` to the broker and ``down_*``
    from it.

    ``leg`` numbers the rows; ``before`` is the leg by which a relay had received what it sent on in this one. The
    columns of the packets are null where nothing was recorded.
    """
    table = delivered(recording).select(NEEDED).with_row_index("leg")
    table = table.with_columns(_until=pl.col("received_ns") + SLACK_NS)
    publishes = packets.filter(pl.col("kind") == "PUBLISH", pl.col("publisher").is_not_null())
    downwards = _columns(publishes.filter(~pl.col("to_broker")), "down_")
    upwards = _columns(publishes.filter("to_broker"), "up_")
    table = latest(
        table.with_columns(down_client=pl.col("subscriber"), down_publisher=pl.col("publisher"),
                           down_sequence=pl.col("sequence")),
        downwards, ["down_client", "down_publisher", "down_sequence"], at="_until", key="down_complete_ns",
        take={name: name for name in _taken("down_")},
    )
    table = _first_tried(table, downwards, "down_", ["down_client", "down_publisher", "down_sequence", "down_topic"])
    table = beside(table, _first_complete(upwards), {
        "publisher": "up_publisher", "sequence": "up_sequence", "down_topic": "up_topic"})
    table = table.with_columns(up_publisher=pl.col("publisher"), up_sequence=pl.col("sequence"),
                               up_topic=pl.col("down_topic"))
    table = _first_tried(table, upwards, "up_", ["up_client", "up_publisher", "up_sequence", "up_topic"])
    table = _with_releases(table, packets)
    return _with_legs_before(table).drop("_until", "up_publisher", "up_sequence", "up_topic", "down_client",
                                         "down_publisher", "down_sequence")


def _taken(prefix: str) -> list[str]:
    names = ("packet", "connection", "topic", "packet_id", "qos", "stream_start", "stream_end", "segments",
             "first_sent_ns", "complete_ns")
    return [f"{prefix}{name}" for name in names]


def _columns(publishes: pl.DataFrame, prefix: str) -> pl.DataFrame:
    names = [name.removeprefix(prefix) for name in _taken(prefix)]
    return publishes.select(pl.col(name).alias(f"{prefix}{name}") for name in ("client", *MESSAGE, *names))


def _first_complete(upwards: pl.DataFrame) -> pl.DataFrame:
    complete = upwards.filter(pl.col("up_complete_ns").is_not_null()).sort("up_complete_ns", maintain_order=True)
    return complete.unique(["up_publisher", "up_sequence", "up_topic"], keep="first", maintain_order=True)


def _first_tried(table: pl.DataFrame, publishes: pl.DataFrame, prefix: str, key: list[str]) -> pl.DataFrame:
    """Add when the first byte of the first copy was sent, complete or not."""
    tried = publishes.group_by(key).agg(pl.col(f"{prefix}first_sent_ns").min().alias(f"{prefix}tried_ns"))
    return beside(table, tried, {name: name for name in key})


def _with_releases(table: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """Add the PUBREL that lets the receiver of a QoS 2 PUBLISH hand it on: the next one with its identifier."""
    releases = packets.filter(pl.col("kind") == "PUBREL")
    for prefix, to_broker, client in (("up_", True, "up_client"), ("down_", False, "subscriber")):
        take = {"packet": f"{prefix}release_packet", "complete_ns": f"{prefix}release_ns"}
        at = pl.when(pl.col(f"{prefix}qos") == 2).then(f"{prefix}complete_ns")
        keyed = table.with_columns(_at=at, client=pl.col(client), packet_id=pl.col(f"{prefix}packet_id"))
        side = releases.filter(pl.col("to_broker") == to_broker)
        table = next_at(keyed, side, ["client", "packet_id"], at="_at", key="complete_ns", take=take)
        table = table.drop("_at", "client", "packet_id")
    return table


def _with_legs_before(table: pl.DataFrame) -> pl.DataFrame:
    received = table.select(*MESSAGE, "subscriber", before="leg", before_received_ns="received_ns")
    relayed = pl.col("up_client") != pl.col("publisher")
    table = beside(table, received, {**{name: name for name in MESSAGE}, "up_client": "subscriber"})
    return table.with_columns(
        relayed=relayed, before=pl.when(relayed).then("before"),
        before_received_ns=pl.when(relayed).then("before_received_ns"),
    )


def _origins(recording: Recording, orphans: pl.DataFrame) -> dict[str, str]:
    """For each topic the one that its messages were first published to: relays append something to it."""
    published = set(recording.messages["topic"].drop_nulls().unique())
    relays = (group.get("relay") for group in recording.plan.get("groups", []))
    suffixes = {relay["topic_suffix"] for relay in relays if relay}

    def origin(topic: str) -> str:
        shorter = [topic.removesuffix(suffix) for suffix in suffixes if topic.endswith(suffix)]
        return next((origin(name) for name in shorter), topic) if topic not in published else topic

    return {topic: origin(topic) for topic in orphans["topic"].drop_nulls().unique()}


def _by_order_sent(recording: Recording, packets: pl.DataFrame, orphans: pl.DataFrame) -> pl.DataFrame:
    """The n-th message that a client began to send on a topic is its n-th message there."""
    sent = (
        recording.messages.filter(pl.col("sent_ns").is_not_null(), pl.col("payload_bytes") < IDENTITY_BYTES)
        .unique(MESSAGE)
        .sort("sent_ns", "sequence")
        .select("topic", *MESSAGE, n=pl.int_range(pl.len()).over("publisher", "topic"))
    )
    publishes = _with_copies(orphans.filter("to_broker"), packets)
    original = pl.col("copy_of").is_null()
    order = pl.int_range(pl.len()).over("client", "topic")
    firsts = beside(publishes.filter(original).with_columns(n=order).drop(MESSAGE), sent.rename({"publisher": "by"}),
                    {"client": "by", "topic": "topic", "n": "n"})
    firsts = firsts.select("packet", publisher="client", sequence="sequence")
    copies = beside(publishes.filter(~original).drop(MESSAGE), firsts, {"copy_of": "packet"})
    return pl.concat([part.select("packet", *MESSAGE) for part in (firsts, copies)])


def _with_copies(publishes: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """The PUBLISHes of clients in their order, with the packet that each one with DUP repeats: the last one with its
    identifier, unless that had been acknowledged. One that had never left its socket repeats nothing seen."""
    sender = ["client", "packet_id"]
    over = packets.filter(pl.col("kind").is_in(["PUBACK", "PUBCOMP"]), ~pl.col("to_broker"))
    first = publishes.filter(~pl.col("dup"))
    ordered = publishes.sort("first_sent_ns", "connection", "stream_start").with_columns(
        _before=pl.when("dup").then(pl.col("first_sent_ns") - 1))
    ordered = latest(ordered, first, sender, at="_before", key="first_sent_ns",
                     take={"first_sent_ns": "_first_ns", "packet": "copy_of"})
    ordered = latest(ordered, over, sender, at="_before", key="complete_ns", take={"complete_ns": "_over_ns"})
    repeats = pl.col("_over_ns").is_null() | (pl.col("_over_ns") < pl.col("_first_ns"))
    return ordered.with_columns(copy_of=pl.when(repeats).then("copy_of")).drop("_before", "_first_ns", "_over_ns")


def _by_order_received(recording: Recording, publishes: pl.DataFrame) -> pl.DataFrame:
    """The n-th of a client's PUBLISHes on a topic is the n-th message of that origin that it received."""
    received = (
        recording.messages.filter(pl.col("received_ns").is_not_null(), pl.col("identified") == "order")
        .sort("received_ns", "sequence")
        .with_columns(client=pl.col("subscriber"), n=pl.int_range(pl.len()).over("subscriber", "topic"))
        .select("client", "n", *MESSAGE, origin="topic")
    )
    return (
        publishes.sort(pl.coalesce("complete_ns", "first_sent_ns"), "connection", "stream_start")
        .with_columns(n=pl.int_range(pl.len()).over("client", "topic"))
        .drop(MESSAGE)
        .join(received, on=["client", "origin", "n"], how="inner")
        .select("packet", *MESSAGE)
    )
