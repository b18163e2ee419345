"""The parts of a leg as spans of time.

A leg is a message's way from one client over the broker to another; a relayed message has several. Its instants come
from different tables and from both ends of links. They are put in order by moving each to the one before it where it
would lie earlier, so that no part is negative and the parts add up to the latency whatever the tables say.
"""

from __future__ import annotations

import polars as pl

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
    spans = [
        stepped.filter(when).select("leg", part=pl.lit(part), step=pl.lit(step), from_ns=f"at_{step - 1}",
                                    to_ns=f"at_{step}")
        for step, part, when in _shares()
    ]
    table = pl.concat(spans).filter(pl.col("to_ns") > pl.col("from_ns")).sort("leg", "step")
    # Neighbouring steps of one part are one span.
    return table.group_by("leg", "part", pl.col("part").rle_id().over("leg").alias("run"), maintain_order=True).agg(
        pl.col("from_ns").first(), pl.col("to_ns").last()).drop("run")


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
