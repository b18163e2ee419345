"""A leg as a chain of instants, and the parts between them.

A leg is a message's way from one client over the broker to another; a relayed message has several. Its instants,
from the intended time to the reception, come from different tables and from both ends of links. They are put in
order by moving each to the one before it where it would lie earlier, so that no part is negative and the parts add up
to the latency whatever the tables say. `adjusted_ns` is the sum of what would have been negative: how far the tables
disagree, and no part is wrong by more.
"""

from __future__ import annotations

from typing import Any, cast

import polars as pl

from mqttlab.metrics.catalogue import PARTS
from mqttlab.plan import StoredGroup, StoredPlan, broker_of, server_of
from oracle.attribution.lookup import beside
from oracle.attribution.several import divided
from oracle.attribution.transport import SLACK_NS, Transport, way

UNLIMITED = 2**31


def chain(legs: pl.DataFrame, packets: pl.DataFrame, transport: Transport, plan: StoredPlan) -> pl.DataFrame:
    """The legs with their instants, evidence and parts: the columns of `PARTS` and ``adjusted_ns``."""
    legs = _with_settings(legs, plan)
    for prefix in ("up", "down"):
        legs = _with_flights(legs, transport, prefix)
    legs = _ready_at_sender(legs, packets)
    legs = _with_releases(legs, transport, "up")
    legs = _ready_at_broker(legs, packets)
    legs = _with_releases(legs, transport, "down")
    return _with_parts(legs)


def _with_settings(legs: pl.DataFrame, plan: StoredPlan) -> pl.DataFrame:
    """Add what the plan says of sender, broker and receiver. Of foreign programs it says nothing: they may use Nagle's
    algorithm, and no window is known."""
    rows = []
    for group in plan["groups"]:
        rows += [_settings(plan, group)] * group["count"]
    schema = {"nagle": pl.Boolean, "window": pl.Int64, "window_to_it": pl.Int64, "on_release": pl.Boolean,
              "down_nagle": pl.Boolean}
    clients = pl.DataFrame(rows, schema=schema).with_row_index("client")
    senders = clients.select("client", up_nagle="nagle", up_window="window")
    receivers = clients.select("client", "on_release", "down_nagle", down_window="window_to_it")
    return beside(beside(legs, senders, {"up_client": "client"}), receivers, {"subscriber": "client"})


def _settings(plan: StoredPlan, group: StoredGroup) -> dict[str, Any]:
    """What the plan says of the clients of a group and of their broker."""
    protocol, carrier = cast(dict[str, Any], group.get("protocol", {})), group.get("transport", "udp")
    session = protocol.get("mqtt")
    transport = carrier["tcp"] if not isinstance(carrier, str) else None
    server = server_of(plan, group)
    settings = ((broker_of(server) if server else None) or {}).get("settings")
    own = (session and session["max_inflight"]) or UNLIMITED
    # Mosquitto takes no limit for 0.
    broker = (settings and settings["max_inflight"]) or UNLIMITED
    tells = session is not None and session["version"] == "5"
    # MQTT 5 does not send 65535, the default; Mosquitto takes any other word of the client for its own limit.
    told = session["receive_maximum"] if session is not None and session["receive_maximum"] < 65_535 else broker
    return {
        "nagle": transport is None or not transport["nodelay"],
        "window": min(own, broker) if tells else own,
        "window_to_it": told if tells else broker,
        "on_release": session is None or session["deliver_on_release"],
        "down_nagle": settings is None or not settings["tcp_nodelay"],
    }


def _with_flights(legs: pl.DataFrame, transport: Transport, prefix: str) -> pl.DataFrame:
    packets = _unique_packets(legs, prefix, "stream_start", "stream_end", "first_sent_ns", "complete_ns")
    flights = transport.flights(packets)
    return beside(legs, _prefixed(flights, prefix), {f"{prefix}_packet": f"{prefix}_packet"})


def _with_releases(legs: pl.DataFrame, transport: Transport, prefix: str) -> pl.DataFrame:
    """Add what the packet's first segment waited for, and after it the one that completed the packet."""
    lost = (pl.col(f"{prefix}_again") | (pl.col(f"{prefix}_tried_ns") < pl.col(f"{prefix}_first_sent_ns")))
    went, first = pl.col(f"{prefix}_went_ns"), pl.col(f"{prefix}_first_sent_ns")
    # Data sent again between a message's segments: what came after it had waited for it.
    repeated = pl.when(pl.col(f"{prefix}_repeated_ns") > first).then(f"{prefix}_repeated_ns").otherwise(first)
    legs = legs.with_columns(pl.when(lost).then(went).otherwise(repeated).alias(f"{prefix}_resumed_ns"))
    waiting = _unique_packets(legs, prefix, "ready_ns", "first_sent_ns", "nagle", "segment_bytes", "mss")
    tail = _unique_packets(legs, prefix, "resumed_ns", "went_ns", "nagle", "frame_bytes", "mss").rename(
        {"resumed_ns": "ready_ns", "went_ns": "first_sent_ns", "frame_bytes": "segment_bytes"})
    tail = tail.filter(pl.col("first_sent_ns") > pl.col("ready_ns"))
    for table, kind in ((waiting, ""), (tail, "_tail")):
        released = _prefixed(transport.release(table), f"{prefix}{kind}")
        legs = beside(legs, released, {f"{prefix}_packet": f"{prefix}{kind}_packet"})
    return divided(legs, transport.packets, prefix)


def _prefixed(table: pl.DataFrame, prefix: str) -> pl.DataFrame:
    return table.select(pl.all().name.prefix(f"{prefix}_"))


def _unique_packets(legs: pl.DataFrame, prefix: str, *columns: str) -> pl.DataFrame:
    named = legs.select(
        *(pl.col(f"{prefix}_{name}").alias(name) for name in ("packet", "connection", *columns)),
    ).with_columns(way=way(pl.lit(prefix == "up")))
    return named.filter(pl.col("packet").is_not_null()).unique("packet", maintain_order=True)


def _ready_at_sender(legs: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """Add when the sender's stack had the message, and when a window of its session let it through.

    Of a relay nothing but its packets is known: it could send when it had received, and its window had room.
    """
    legs = _with_window(legs, packets, "up")
    begins = pl.when("relayed").then("before_received_ns").otherwise("intended_ns")
    handed = pl.when("relayed").then("before_received_ns").otherwise("sent_ns")
    # A message of several segments is being sent while the socket still takes the rest.
    earlier = pl.min_horizontal("written_ns", "up_tried_ns")
    written = pl.when(pl.col("up_segments") > 1).then(earlier).otherwise("written_ns")
    through = pl.max_horizontal("before_received_ns", "up_window_ns")
    return legs.with_columns(
        begins_ns=begins, handed_ns=handed, up_ready_ns=pl.when("relayed").then(through).otherwise(written))


def _ready_at_broker(legs: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """Add when the broker could hand the message on, and when its window towards the subscriber had room."""
    # Either time is allowed (MQTT 5 §4.3.3): a broker that had sent before the PUBREL came did not wait for it.
    waited = pl.col("up_release_ns") <= pl.col("down_tried_ns") + SLACK_NS
    ingress = pl.when(waited.fill_null(False)).then("up_release_ns").otherwise("up_complete_ns")
    legs = _with_window(legs.with_columns(ingress_ns=ingress), packets, "down")
    legs = legs.with_columns(pl.when(pl.col("down_window_ns") > pl.col("ingress_ns")).then("down_window_ns")
                             .alias("down_window_ns"))
    return legs.with_columns(down_ready_ns=pl.max_horizontal("ingress_ns", "down_window_ns"))


def _with_window(legs: pl.DataFrame, packets: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Add when the in-flight window of the packet's sender let it through (MQTT 5 §4.9).

    With n packets of QoS 1 and 2 before it on its connection and a window of w, that was when the acknowledgement
    number n - w + 1 had come. A packet that was sent earlier was held by no window: the time is null.
    """
    to_broker = prefix == "up"
    publishes = packets.filter(pl.col("kind") == "PUBLISH", pl.col("qos") > 0, pl.col("to_broker") == to_broker)
    order = publishes.sort("connection", "stream_start").select(
        "packet", pl.int_range(pl.len(), dtype=pl.Int64).over("connection").alias("_before"),
    )
    refused = (pl.col("kind") == "PUBREC") & (pl.col("reason").fill_null(0) >= 0x80)
    over = pl.col("kind").is_in(["PUBACK", "PUBCOMP"]) | refused
    done = packets.filter(over, pl.col("to_broker") != to_broker, pl.col("complete_ns").is_not_null())
    done = done.sort("complete_ns", maintain_order=True).select(
        "connection", pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("connection").alias("nth"),
        pl.col("complete_ns").alias("_window_ns"), pl.col("packet").alias(f"{prefix}_window_packet"),
    )
    legs = beside(legs, order, {f"{prefix}_packet": "packet"})
    legs = legs.with_columns(_nth=pl.col("_before") - pl.col(f"{prefix}_window") + 1)
    legs = beside(legs, done, {f"{prefix}_connection": "connection", "_nth": "nth"})
    in_force = (pl.col("_window_ns") <= pl.col(f"{prefix}_first_sent_ns") + SLACK_NS).fill_null(False)
    return legs.with_columns(
        pl.when(in_force).then(pl.min_horizontal("_window_ns", f"{prefix}_first_sent_ns")).alias(f"{prefix}_window_ns"),
        pl.when(in_force).then(f"{prefix}_window_packet").alias(f"{prefix}_window_packet"),
    ).drop("_before", "_nth", "_window_ns")


# Each step of the chain: the instant, and the part that ends there. A part may end at several steps.
STEPS: tuple[tuple[str, str], ...] = (
    ("handed_ns", "schedule"), ("up_ready_ns", "session"),
    ("up_nagle_until_ns", "sender_nagle"), ("up_socket_until_ns", "sender_socket"),
    ("up_held_until_ns", "sender_nagle"), ("up_tried_ns", "_up_rest"), ("up_resumed_ns", "retransmission_to_broker"),
    ("up_tail_nagle_until_ns", "sender_nagle"), ("up_tail_socket_until_ns", "sender_socket"),
    ("up_tail_held_until_ns", "sender_nagle"), ("up_went_ns", "sender_socket"),
    ("up_started_ns", "queue_to_broker"), ("up_arrived_ns", "wire_to_broker"),
    ("up_complete_ns", "retransmission_to_broker"),
    ("ingress_ns", "handshake"), ("down_window_ns", "broker_window"),
    ("down_nagle_until_ns", "broker_nagle"), ("down_socket_until_ns", "broker_socket"),
    ("down_held_until_ns", "broker_nagle"), ("down_tried_ns", "broker"),
    ("down_resumed_ns", "retransmission_to_subscriber"),
    ("down_tail_nagle_until_ns", "broker_nagle"), ("down_tail_socket_until_ns", "broker_socket"),
    ("down_tail_held_until_ns", "broker_nagle"), ("down_went_ns", "broker_socket"),
    ("down_started_ns", "queue_to_subscriber"), ("down_arrived_ns", "wire_to_subscriber"),
    ("down_complete_ns", "retransmission_to_subscriber"),
    ("handed_on_ns", "release"), ("received_ns", "delivery"),
)
WAITS = ("nagle_until_ns", "socket_until_ns", "held_until_ns")


def _with_parts(legs: pl.DataFrame) -> pl.DataFrame:
    on_release = pl.col("on_release") & (pl.col("qos_delivered") == 2)
    legs = legs.with_columns(
        # What is known of waits is of the copy that came through; an earlier copy had been sent before.
        *(pl.when(pl.col(f"{way}_tried_ns") == pl.col(f"{way}_first_sent_ns")).then(f"{way}_{wait}")
          .alias(f"{way}_{wait}") for way in ("up", "down") for wait in (*WAITS, "window_ns")),
        up_started_ns=pl.col("up_went_ns") + pl.col("up_queue_ns"),
        down_started_ns=pl.col("down_went_ns") + pl.col("down_queue_ns"),
        handed_on_ns=pl.when(on_release).then(
            pl.when(pl.col("down_release_ns") <= pl.col("received_ns") + SLACK_NS).then("down_release_ns")),
    )
    legs = _with_steps(legs)
    known = pl.col("begins_ns").is_not_null() & pl.col("up_frame").is_not_null() & pl.col("down_frame").is_not_null()
    lengths = _lengths()
    legs = legs.with_columns(
        *(pl.when(known).then(lengths[part]).alias(part) for part in PARTS),
        adjusted_ns=pl.when(known).then("adjusted_ns"), unattributed=pl.when(~known).then(_missing()),
    )
    return legs.drop(f"at_{step}" for step in range(len(STEPS) + 1))


def _missing() -> pl.Expr:
    """What a leg without parts lacks: the first thing, looked at from the receiver."""
    return (
        pl.when(pl.col("down_packet").is_null()).then(pl.lit("their PUBLISH to the subscriber was not recorded"))
        .when(pl.col("up_packet").is_null()).then(pl.lit("their PUBLISH to the broker was not recorded"))
        .when(pl.col("down_frame").is_null() | pl.col("up_frame").is_null())
        .then(pl.lit("the frame that completed their PUBLISH was not recorded"))
        .otherwise(pl.lit("the time at which their relay received them is not known"))
    )


def _with_steps(legs: pl.DataFrame) -> pl.DataFrame:
    """Add the instants in order, ``at_0`` and one for each step, and what that took: ``adjusted_ns``."""
    legs = legs.with_columns(at_0=pl.col("begins_ns"), adjusted_ns=pl.lit(0, pl.Int64), _before=pl.col("begins_ns"))
    for step, (instant, _) in enumerate(STEPS, start=1):
        last = pl.col(f"at_{step - 1}")
        moved = pl.min_horizontal(pl.max_horizontal(instant, last), pl.max_horizontal("received_ns", last))
        backwards = (pl.col("_before") - pl.col(instant)).clip(0).fill_null(0)
        legs = legs.with_columns(
            pl.coalesce(moved, last).alias(f"at_{step}"), adjusted_ns=pl.col("adjusted_ns") + backwards,
            _before=pl.coalesce(instant, "_before"),
        )
    return legs.drop("_before")


def _shares() -> list[tuple[int, str, pl.Expr]]:
    """The part that ends at each step, and when: a relay's own time is its session's, a stack's is its socket's."""
    relayed = pl.col("relayed")
    shares = []
    for step, (_, part) in enumerate(STEPS, start=1):
        if part == "_up_rest":
            shares += [(step, "session_ns", relayed), (step, "sender_socket_ns", ~relayed)]
        else:
            shares.append((step, f"{part}_ns", pl.lit(True)))
    return shares


def _lengths() -> dict[str, pl.Expr]:
    """The length of each part: the sum of its shares of the steps."""
    lengths: dict[str, pl.Expr] = {}
    for step, part, when in _shares():
        share = pl.when(when).then(pl.col(f"at_{step}") - pl.col(f"at_{step - 1}")).otherwise(0)
        lengths[part] = lengths[part] + share if part in lengths else share
    # Without gateways nothing waits for them.
    return {part: lengths.get(part, pl.lit(0, pl.Int64)) for part in PARTS}
