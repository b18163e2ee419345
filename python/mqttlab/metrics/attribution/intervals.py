"""The parts of a leg as spans of time.

A leg is a message's way from one client over the broker to another; a relayed message has several. Its instants come
from different tables and from both ends of links. They are put in order by moving each to the one before it where it
would lie earlier, so that no part is negative and the parts add up to the latency whatever the tables say.
"""

from __future__ import annotations

import polars as pl

# Each step of the chain: the instant, and the part that ends there. A part may end at several steps.
STEPS: tuple[tuple[str, str], ...] = (
    # To the gateway of a publisher that speaks MQTT-SN.
    ("_sn_handed_ns", "schedule"), ("sn_up_sleep_from_ns", "session"), ("sn_up_sleep_until_ns", "sleep"),
    ("_sn_up_registering_ns", "session"), ("_sn_up_registered_ns", "register"), ("sn_up_ready_ns", "session"),
    ("sn_up_tried_ns", "_sn_rest"), ("_sn_up_registering_anew_ns", "retry"), ("_sn_up_registered_anew_ns", "register"),
    ("sn_up_went_ns", "retry"), ("sn_up_started_ns", "queue_to_broker"), ("sn_up_complete_ns", "wire_to_broker"),
    # To the broker.
    ("_handed_ns", "schedule"), ("up_ready_ns", "_up_before"),
    ("up_nagle_until_ns", "sender_nagle"), ("up_socket_until_ns", "sender_socket"),
    ("up_held_until_ns", "sender_nagle"), ("up_tried_ns", "_up_rest"), ("up_resumed_ns", "retransmission_to_broker"),
    ("up_tail_nagle_until_ns", "sender_nagle"), ("up_tail_socket_until_ns", "sender_socket"),
    ("up_tail_held_until_ns", "sender_nagle"), ("up_went_ns", "_up_later"),
    ("up_started_ns", "queue_to_broker"), ("up_arrived_ns", "wire_to_broker"),
    ("up_complete_ns", "retransmission_to_broker"),
    ("ingress_ns", "handshake"), ("down_window_ns", "broker_window"),
    ("down_nagle_until_ns", "broker_nagle"), ("down_socket_until_ns", "broker_socket"),
    ("down_held_until_ns", "broker_nagle"), ("down_tried_ns", "_down_before"),
    ("down_read_ns", "undivided"),
    ("down_resumed_ns", "retransmission_to_subscriber"),
    ("down_tail_nagle_until_ns", "broker_nagle"), ("down_tail_socket_until_ns", "broker_socket"),
    ("down_tail_held_until_ns", "broker_nagle"), ("down_went_ns", "_down_later"),
    ("down_started_ns", "queue_to_subscriber"), ("down_arrived_ns", "wire_to_subscriber"),
    ("down_complete_ns", "retransmission_to_subscriber"),
    # From the gateway of a subscriber that speaks MQTT-SN.
    ("sn_down_sleep_from_ns", "_sn_down_before"), ("sn_down_sleep_until_ns", "sleep"),
    ("_sn_down_registering_ns", "_sn_down_before"), ("_sn_down_registered_ns", "register"),
    ("sn_down_tried_ns", "_sn_down_before"),
    ("_sn_down_registering_anew_ns", "retry"), ("_sn_down_registered_anew_ns", "register"),
    ("sn_down_went_ns", "retry"), ("sn_down_started_ns", "queue_to_subscriber"),
    ("sn_down_complete_ns", "_sn_down_rest"),
    ("handed_on_ns", "release"), ("received_ns", "delivery"),
)


def _with_instants(legs: pl.DataFrame) -> pl.DataFrame:
    """Add instants that lie at one of two places of the chain."""
    is_passed_on = pl.col("sn_up_packet").is_not_null()
    added = {"_sn_handed_ns": pl.when(is_passed_on).then("handed_ns"),
             "_handed_ns": pl.when(~is_passed_on).then("handed_ns")}
    for side in ("up", "down"):
        is_anew = (pl.col(f"sn_{side}_register_from_ns") > pl.col(f"sn_{side}_tried_ns")).fill_null(False)
        for step, name in (("registering", "register_from_ns"), ("registered", "register_until_ns")):
            added[f"_sn_{side}_{step}_ns"] = pl.when(~is_anew).then(f"sn_{side}_{name}")
            added[f"_sn_{side}_{step}_anew_ns"] = pl.when(is_anew).then(f"sn_{side}_{name}")
    return legs.with_columns(**added)


def _with_steps(legs: pl.DataFrame) -> pl.DataFrame:
    """Add the instants in order, ``at_0`` and one for each step, and what that took: ``adjusted_ns``."""
    legs = _with_instants(legs).with_columns(
        at_0=pl.col("begins_ns"), adjusted_ns=pl.lit(0, pl.Int64), _before=pl.col("begins_ns"))
    for step, (instant, _) in enumerate(STEPS, start=1):
        last = pl.col(f"at_{step - 1}")
        moved = pl.min_horizontal(pl.max_horizontal(instant, last), pl.max_horizontal("received_ns", last))
        backwards = (pl.col("_before") - pl.col(instant)).clip(0).fill_null(0)
        legs = legs.with_columns(
            pl.coalesce(moved, last).alias(f"at_{step}"), adjusted_ns=pl.col("adjusted_ns") + backwards,
            _before=pl.coalesce(instant, "_before"),
        )
    return legs.drop("_before")


def intervals(legs: pl.DataFrame, holds: pl.DataFrame | None = None) -> pl.DataFrame:
    """The parts of a few legs as spans of time: ``leg``, ``part``, ``from_ns``, ``to_ns``, in order; none empty.

    Args:
        legs: rows of the legs.
        holds: the times that the engine has found something named to have held them: ``leg``, ``part``, ``from_ns``,
            ``until_ns``. They take the place of other parts; without them those are whole.
    """
    stepped = _with_steps(legs)
    spans = [
        stepped.filter(when).select("leg", part=pl.lit(part), step=pl.lit(step), from_ns=f"at_{step - 1}",
                                    to_ns=f"at_{step}")
        for step, part, when in _shares()
    ]
    table = pl.concat(spans).filter(pl.col("to_ns") > pl.col("from_ns")).sort("leg", "step")
    if holds is not None:
        table = _with_holds(table.select("leg", "part", "from_ns", "to_ns"), holds)
    # Neighbouring steps of one part are one span.
    return table.group_by("leg", "part", pl.col("part").rle_id().over("leg").alias("run"), maintain_order=True).agg(
        pl.col("from_ns").first(), pl.col("to_ns").last()).drop("run")


def _with_holds(spans: pl.DataFrame, holds: pl.DataFrame) -> pl.DataFrame:
    """The spans with what was held cut out of them, and in its place what held it."""
    rows = []
    for span in spans.iter_rows(named=True):
        at = span["from_ns"]
        within = holds.filter(pl.col("leg") == span["leg"], pl.col("from_ns") < span["to_ns"],
                              pl.col("until_ns") > span["from_ns"]).sort("from_ns")
        for hold in within.iter_rows(named=True):
            begins, ends = max(hold["from_ns"], at), min(hold["until_ns"], span["to_ns"])
            rows += [span | {"from_ns": at, "to_ns": begins},
                     span | {"part": hold["part"], "from_ns": begins, "to_ns": ends}]
            at = ends
        rows.append(span | {"from_ns": at})
    return pl.DataFrame(rows, spans.schema).filter(pl.col("to_ns") > pl.col("from_ns"))


def _shares() -> list[tuple[int, str, pl.Expr]]:
    """The part that ends at each step, and when: a relay's own time is its session's, a gateway's its own, a stack's is
    its socket's, and none of them can be told from the way to it where no frame shows that, or frames were captured
    elsewhere."""
    relayed, passed_on = pl.col("relayed").fill_null(False), pl.col("sn_up_packet").is_not_null()
    is_clients = {side: pl.col(f"sn_{side}_packet").is_not_null() & pl.col(f"sn_{side}_first_sent_ns").is_null()
                  for side in ("up", "down")}
    there, at_broker = pl.col("at_sender"), pl.col("at_broker")
    is_seen = passed_on & ~is_clients["up"] & there
    is_unknown = is_clients["up"] | (passed_on & ~there)
    is_away, is_own = ~passed_on & ~there, ~passed_on & there
    is_unseen = pl.col("up_written_ns").is_not_null() | (is_clients["up"] & pl.col("up_packet").is_null())
    is_all_unseen = (is_unseen & pl.col("down_packet").is_null()) | ~there
    either = {
        "_up_before": {"undivided": is_unknown, "gateway": is_seen, "schedule": is_away, "session": is_own},
        "_up_rest": {"undivided": is_unknown, "gateway": is_seen, "schedule": is_away, "session": is_own & relayed,
                     "sender_socket": is_own & ~relayed},
        "_up_later": {"sender_socket": there, "schedule": is_away, "undivided": passed_on & ~there},
        "_down_before": {"undivided": is_unseen | ~at_broker, "broker": ~is_unseen & at_broker},
        "_down_later": {"undivided": ~at_broker, "broker_socket": at_broker},
        "_sn_rest": {"session": relayed, "sender_socket": ~relayed},
        "_sn_down_before": {"undivided": is_all_unseen, "gateway": ~is_all_unseen},
        "_sn_down_rest": {"undivided": is_clients["down"], "wire_to_subscriber": ~is_clients["down"]},
    }
    return [
        (step, f"{name}_ns", when)
        for step, (_, part) in enumerate(STEPS, start=1)
        for name, when in either.get(part, {part: pl.lit(True)}).items()
    ]
