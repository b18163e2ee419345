"""A leg as a chain of instants, and the parts between them.

A leg is a message's way from one client over the broker to another; a relayed message has several. Its instants,
from the intended time to the reception, come from different tables and from both ends of links. They are put in
order by moving each to the one before it where it would lie earlier, so that no part is negative and the parts add up
to the latency whatever the tables say. `adjusted_ns` is the sum of what would have been negative: how far the tables
disagree, and no part is wrong by more.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from mqttlab.metrics.attribution.lookup import beside
from mqttlab.metrics.attribution.transport import SLACK_NS, Transport, way
from mqttlab.metrics.definition import PARTS

UNLIMITED = 2**31


def chain(legs: pl.DataFrame, packets: pl.DataFrame, transport: Transport, plan: dict[str, Any]) -> pl.DataFrame:
    """The legs with their instants, evidence and parts: the columns of `PARTS` and ``adjusted_ns``."""
    legs = _with_settings(legs, plan)
    for prefix in ("up_", "down_"):
        legs = _with_flights(legs, transport, prefix)
    legs = _ready_at_sender(legs, packets)
    legs = _with_releases(legs, transport, "up_")
    legs = _ready_at_broker(legs, packets)
    legs = _with_releases(legs, transport, "down_")
    return _with_parts(legs)


def _with_settings(legs: pl.DataFrame, plan: dict[str, Any]) -> pl.DataFrame:
    """Add what the plan says of sender, broker and receiver. Of foreign programs it says nothing: they may use Nagle's
    algorithm, and no window is known."""
    rows = []
    for group in plan["groups"]:
        session = group.get("mqtt") or {}
        row = {"nagle": not group.get("tcp_nodelay", False), "window": session.get("max_inflight") or UNLIMITED,
               "receive_maximum": session.get("receive_maximum") or UNLIMITED,
               "on_release": session.get("deliver_on_release", True)}
        rows += [row] * group["count"]
    schema = {"nagle": pl.Boolean, "window": pl.Int64, "receive_maximum": pl.Int64, "on_release": pl.Boolean}
    clients = pl.DataFrame(rows, schema=schema).with_row_index("client")
    settings = plan["broker"].get("settings") or {}
    # Mosquitto takes no limit for 0.
    most = settings.get("max_inflight") or UNLIMITED
    senders = clients.select("client", up_nagle="nagle", up_window="window")
    window = pl.col("receive_maximum").clip(upper_bound=most)
    receivers = clients.select("client", "on_release", down_window=window)
    legs = beside(beside(legs, senders, {"up_client": "client"}), receivers, {"subscriber": "client"})
    return legs.with_columns(down_nagle=pl.lit(not settings.get("tcp_nodelay", False)))


def _with_flights(legs: pl.DataFrame, transport: Transport, prefix: str) -> pl.DataFrame:
    flights = transport.flights(_unique_packets(legs, prefix, "stream_start", "stream_end", "first_sent_ns",
                                                "complete_ns"))
    return beside(legs, flights.rename(lambda name: f"{prefix}{name}"), {f"{prefix}packet": f"{prefix}packet"})


def _with_releases(legs: pl.DataFrame, transport: Transport, prefix: str) -> pl.DataFrame:
    """Add what the packet's first segment waited for, and after it the one that completed the packet."""
    waiting = _unique_packets(legs, prefix, "ready_ns", "first_sent_ns", "nagle", "segment_bytes", "mss", "went_ns",
                              "frame_bytes")
    several = waiting.filter(pl.col("went_ns") > pl.col("first_sent_ns"))
    tail = several.with_columns(ready_ns="first_sent_ns", first_sent_ns="went_ns", segment_bytes="frame_bytes")
    released = transport.release(waiting).rename(lambda name: f"{prefix}{name}")
    ended = transport.release(tail).select(
        pl.col("packet").alias(f"{prefix}packet"), pl.col("held_by_nagle").alias(f"{prefix}tail_held_by_nagle"),
        pl.col("release_frame").alias(f"{prefix}tail_release_frame"),
    )
    for table in (released, ended):
        legs = beside(legs, table, {f"{prefix}packet": f"{prefix}packet"})
    return legs


def _unique_packets(legs: pl.DataFrame, prefix: str, *columns: str) -> pl.DataFrame:
    named = legs.select(
        *(pl.col(f"{prefix}{name}").alias(name) for name in ("packet", "connection", *columns)),
    ).with_columns(way=way(pl.lit(prefix == "up_")))
    return named.filter(pl.col("packet").is_not_null()).unique("packet", maintain_order=True)


def _ready_at_sender(legs: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """Add when the sender's stack had the message, and when a window of its session let it through.

    Of a relay nothing but its packets is known: it could send when it had received, and its window had room.
    """
    legs = _with_window(legs, packets, "up_")
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
    legs = _with_window(legs.with_columns(ingress_ns=ingress), packets, "down_")
    legs = legs.with_columns(pl.when(pl.col("down_window_ns") > pl.col("ingress_ns")).then("down_window_ns")
                             .alias("down_window_ns"))
    return legs.with_columns(down_ready_ns=pl.max_horizontal("ingress_ns", "down_window_ns"))


def _with_window(legs: pl.DataFrame, packets: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """Add when the in-flight window of the packet's sender let it through (MQTT 5 §4.9).

    With n packets of QoS 1 and 2 before it on its connection and a window of w, that was when the acknowledgement
    number n - w + 1 had come. A packet that was sent earlier was held by no window: the time is null.
    """
    to_broker = prefix == "up_"
    publishes = packets.filter(pl.col("kind") == "PUBLISH", pl.col("qos") > 0, pl.col("to_broker") == to_broker)
    order = publishes.sort("connection", "stream_start").select(
        "packet", pl.int_range(pl.len(), dtype=pl.Int64).over("connection").alias("_before"),
    )
    refused = (pl.col("kind") == "PUBREC") & (pl.col("reason").fill_null(0) >= 0x80)
    over = pl.col("kind").is_in(["PUBACK", "PUBCOMP"]) | refused
    done = packets.filter(over, pl.col("to_broker") != to_broker, pl.col("complete_ns").is_not_null())
    done = done.sort("complete_ns", maintain_order=True).select(
        "connection", pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("connection").alias("nth"),
        pl.col("complete_ns").alias("_window_ns"), pl.col("packet").alias(f"{prefix}window_packet"),
    )
    legs = beside(legs, order, {f"{prefix}packet": "packet"})
    legs = legs.with_columns(_nth=pl.col("_before") - pl.col(f"{prefix}window") + 1)
    legs = beside(legs, done, {f"{prefix}connection": "connection", "_nth": "nth"})
    in_force = (pl.col("_window_ns") <= pl.col(f"{prefix}first_sent_ns") + SLACK_NS).fill_null(False)
    return legs.with_columns(
        pl.when(in_force).then(pl.min_horizontal("_window_ns", f"{prefix}first_sent_ns")).alias(f"{prefix}window_ns"),
        pl.when(in_force).then(f"{prefix}window_packet").alias(f"{prefix}window_packet"),
    ).drop("_before", "_nth", "_window_ns")


# Each step of the chain: the instant, and the part that ends there. A part may end at several steps.
STEPS: tuple[tuple[str, str], ...] = (
    ("handed_ns", "schedule"), ("up_ready_ns", "session"), ("up_held_until_ns", "_up_held"),
    ("up_tried_ns", "_up_rest"), ("up_went_ns", "_up_gap"), ("up_started_ns", "queue_to_broker"),
    ("up_arrived_ns", "wire_to_broker"), ("up_complete_ns", "retransmission_to_broker"),
    ("ingress_ns", "handshake"), ("down_window_ns", "broker_window"), ("down_held_until_ns", "_down_held"),
    ("down_tried_ns", "broker"), ("down_went_ns", "_down_gap"), ("down_started_ns", "queue_to_subscriber"),
    ("down_arrived_ns", "wire_to_subscriber"), ("down_complete_ns", "retransmission_to_subscriber"),
    ("handed_on_ns", "release"), ("received_ns", "delivery"),
)


def _with_parts(legs: pl.DataFrame) -> pl.DataFrame:
    on_release = pl.col("on_release") & (pl.col("qos_delivered") == 2)
    legs = legs.with_columns(
        # What is known of waits is of the copy that came through; an earlier copy had been sent before.
        *(pl.when(pl.col(f"{way}_tried_ns") == pl.col(f"{way}_first_sent_ns")).then(f"{way}_{wait}_ns")
          .alias(f"{way}_{wait}_ns") for way, wait in (("up", "held_until"), ("down", "held_until"),
                                                       ("down", "window"))),
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
        adjusted_ns=pl.when(known).then("adjusted_ns"),
    )
    return legs.drop(f"at_{step}" for step in range(len(STEPS) + 1))


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


def intervals(legs: pl.DataFrame) -> pl.DataFrame:
    """The parts of a few legs as spans of time: ``leg``, ``part``, ``from_ns``, ``to_ns``, in order; none empty."""
    stepped = _with_steps(legs)
    place = {word: step for step, (_, word) in enumerate(STEPS, start=1)}
    spans = [
        stepped.filter(when).select("leg", part=pl.lit(f"{part}_ns"), step=pl.lit(place[word]),
                                    from_ns=f"at_{place[word] - 1}", to_ns=f"at_{place[word]}")
        for word, part, when in _shares()
    ]
    return pl.concat(spans).filter(pl.col("to_ns") > pl.col("from_ns")).sort("leg", "step").drop("step")


def _shares() -> list[tuple[str, str, pl.Expr]]:
    """Which step's time goes to which part, and when: the evidence decides where a step has several parts."""
    shares = [(word, word, pl.lit(True)) for _, word in STEPS if not word.startswith("_")]
    nagle, relayed = pl.col("up_held_by_nagle"), pl.col("relayed")
    shares += [("_up_held", "sender_nagle", nagle), ("_up_held", "sender_socket", ~nagle)]
    shares += [("_up_rest", "session", relayed), ("_up_rest", "sender_socket", ~relayed)]
    nagle = pl.col("down_held_by_nagle")
    shares += [("_down_held", "broker_nagle", nagle), ("_down_held", "broker_socket", ~nagle)]
    for prefix, side, to in (("up", "sender", "broker"), ("down", "broker", "subscriber")):
        earlier = pl.col(f"{prefix}_tried_ns") < pl.col(f"{prefix}_first_sent_ns")
        lost = (pl.col(f"{prefix}_again") | earlier).fill_null(False)
        # The packet fills several segments, and the last of them was sent later than the first.
        nagle = pl.col(f"{prefix}_tail_held_by_nagle").fill_null(False)
        gap = f"_{prefix}_gap"
        shares += [(gap, f"retransmission_to_{to}", lost), (gap, f"{side}_nagle", ~lost & nagle),
                   (gap, f"{side}_socket", ~lost & ~nagle)]
    return shares


def _lengths() -> dict[str, pl.Expr]:
    """The length of each part: the sum of its shares of the steps."""
    took = {word: pl.col(f"at_{step}") - pl.col(f"at_{step - 1}") for step, (_, word) in enumerate(STEPS, start=1)}
    lengths: dict[str, pl.Expr] = {}
    for word, part, when in _shares():
        share = pl.when(when).then(took[word]).otherwise(0)
        name = f"{part}_ns"
        lengths[name] = lengths[name] + share if name in lengths else share
    return lengths
