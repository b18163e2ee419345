"""How long it takes to connect, to subscribe, and to have a message acknowledged or delivered."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab.metrics import sums
from mqttlab.metrics.application import FIRST_DELIVERY, MESSAGE, NS_PER_MS, has_messages, is_once
from mqttlab.metrics.window import measurement
from mqttlab.recording import Recording

ROWS_AT_ONCE = 1_000_000
"""Of messages, where those of all connections are looked at: a long run needs no more memory than a short one."""
ENDS = ("close", "disconnect")


def setup(recording: Recording) -> pl.DataFrame:
    """How long it takes to connect, to subscribe and to have a message acknowledged: one row."""
    took = {
        "connect": ("connects", _took_ms(recording.events, "connack")),
        "subscribe": ("subscriptions", _took_ms(recording.events, "suback")),
        "unsubscribe": ("unsubscriptions", _took_ms(recording.events, "unsuback")),
        "acknowledge": ("messages_acknowledged", _acknowledge_ms(recording)),
    }
    row: dict[str, float | None] = {}
    for name, (count, samples) in took.items():
        row |= {count: samples.size, **(_connects(recording) if name == "connect" else {}),
                **_two_percentiles(name, samples)}
        if name == "connect":
            for part, times in _connect_parts_ms(recording.events).items():
                row |= _two_percentiles(f"connect_{part}", times)
            for until, times in first_message_ms(recording).items():
                row |= _two_percentiles(until, times)
    if sums.is_summed(recording):
        row |= sums.acknowledgements(recording)
    kinds = {name: pl.Float64 if "_ms_" in name or name.endswith("_per_s") else pl.Int64 for name in row}
    return pl.DataFrame([row], schema=kinds)


def _connects(recording: Recording) -> dict[str, float | None]:
    """How often clients were accepted in the measurement, and how many attempts were refused."""
    window, kind = measurement(recording), pl.col("kind").cast(pl.String)
    if recording.events.is_empty():
        return {"connects_per_s": None, "connects_refused": 0}
    accepted, refused = recording.events.select(
        ((kind == "connack") & window.holds(pl.col("at_ns"))).sum().alias("accepted"),
        ((kind == "refused") & pl.col("detail").cast(pl.String).str.starts_with("CONNECT")).sum().alias("refused"),
    ).row(0)
    return {"connects_per_s": accepted / window.seconds if window.seconds else None, "connects_refused": refused}


def _took_ms(events: pl.DataFrame, kind: str) -> NDArray[np.float64]:
    if events.is_empty():
        return np.empty(0)
    return (events.filter(pl.col("kind") == kind)["took_ns"].drop_nulls() / NS_PER_MS).to_numpy(writable=True)


def _connect_parts_ms(events: pl.DataFrame) -> dict[str, NDArray[np.float64]]:
    """How long each part of connections took that have layers above TCP: those, and from the last one to CONNACK."""
    parts = dict.fromkeys(("tcp", "tls", "tls_resumed", "websocket", "mqtt"), np.empty(0))
    if events.is_empty():
        return parts
    kind = pl.col("kind").cast(pl.String)
    opened = events.filter(kind == "layer_open")
    if opened.is_empty():
        return parts
    words = pl.col("detail").cast(pl.String).str.split(" ")
    # `tls TLSv1.3 resumed …`: what is asked of a handshake with certificates is not mixed with those without.
    is_resumed = words.list.get(2, null_on_oob=True) == "resumed"
    named = words.list.first()
    part = pl.when(is_resumed).then(named + "_resumed").otherwise(named)
    for name in parts:
        parts[name] = (opened.filter(part == name)["took_ns"] / NS_PER_MS).to_numpy(writable=True)
    accepted = events.filter(kind == "connack").select("at_ns", "client").sort("at_ns")
    since = opened.select("at_ns", "client", opened_ns=pl.col("at_ns")).sort("at_ns")
    took = accepted.join_asof(since, on="at_ns", by="client", check_sortedness=False).drop_nulls("opened_ns")
    since_opened = took.select((pl.col("at_ns") - pl.col("opened_ns")) / NS_PER_MS).to_series()
    return {**parts, "mqtt": since_opened.to_numpy(writable=True)}


def first_message_ms(recording: Recording) -> dict[str, NDArray[np.float64]]:
    """How long it took from opening a connection until its first message had come, in ms, a value a connection.

    ``connect_to_delivered`` is until the first delivery to any subscriber, ``connect_to_acknowledged`` until the last
    acknowledgement to the publisher (QoS 1 and 2). A connection without such a message has no value. Both are empty of
    recordings that keep a sample of the messages, and where frames have no time.

    The time in which the connection was open and its client had nothing to send is left out: it is the schedule's.
    """
    connections = _connections(recording.events)
    known = has_messages(recording) and not (sums.is_summed(recording) or recording.layout.get("is_untimed"))
    rows = recording.rows("messages") if known and connections.height else 0
    found = [_first(recording, connections, start) for start in range(0, rows, ROWS_AT_ONCE)]
    if not found:
        return {"connect_to_delivered": np.empty(0), "connect_to_acknowledged": np.empty(0)}
    first = _earliest(pl.concat(found).lazy()).collect()
    return {"connect_to_delivered": _until(recording, first, "received_ns", FIRST_DELIVERY),
            "connect_to_acknowledged": _until(recording, first, "acknowledged_ns", pl.lit(value=True))}


def _connections(events: pl.DataFrame) -> pl.DataFrame:
    """When connections that were accepted began, and when they ended, which has no ``began_ns``."""
    if events.is_empty():
        return pl.DataFrame()
    kind, at, took = pl.col("kind").cast(pl.String), pl.col("at_ns").cast(pl.Int64), pl.col("took_ns").cast(pl.Int64)
    client = pl.col("client").cast(pl.Int64)
    accepted = events.filter(kind == "connack").select(
        since_ns=at - took, publisher=client, began_ns=at - took, accepted_ns=at)
    ended = events.filter(kind.is_in(ENDS)).select(
        since_ns=at, publisher=client, began_ns=pl.lit(None, pl.Int64), accepted_ns=pl.lit(None, pl.Int64))
    return pl.concat([accepted, ended]).drop_nulls(["since_ns", "publisher"]).sort("since_ns", maintain_order=True)


def _first(recording: Recording, connections: pl.DataFrame, start: int) -> pl.DataFrame:
    """When the first message of each connection was sent, of these rows; they are read and gone."""
    sent = recording.scan("messages").slice(start, ROWS_AT_ONCE).filter(
        pl.col("sent_ns").is_not_null(), pl.col("publisher").is_not_null()).select(
        pl.col("sent_ns").cast(pl.Int64), pl.col("publisher").cast(pl.Int64)).sort("sent_ns")
    whose = sent.join_asof(connections.lazy(), left_on="sent_ns", right_on="since_ns", by="publisher",
                           check_sortedness=False, coalesce=False)
    # What was handed over between two connections is of neither.
    return recording.collect(_earliest(whose.drop_nulls("began_ns")))


def _earliest(sent: pl.LazyFrame) -> pl.LazyFrame:
    return sent.group_by("publisher", "began_ns", "accepted_ns").agg(pl.col("sent_ns").min())


def _until(recording: Recording, first: pl.DataFrame, end: str, which: pl.Expr) -> NDArray[np.float64]:
    """From opening each connection until its first message had come to this end, in ms, without idle time."""
    rows = recording.scan("messages").filter(which, pl.col(end).is_not_null()).select(
        pl.col("sent_ns").cast(pl.Int64), pl.col("publisher").cast(pl.Int64), ended_ns=pl.col(end).cast(pl.Int64))
    idle = (pl.col("sent_ns") - pl.col("accepted_ns")).clip(lower_bound=0)
    # Several rows are deliveries of one message.
    took = rows.join(first.lazy(), on=["publisher", "sent_ns"]).group_by("publisher", "began_ns").agg(
        ms=(pl.col("ended_ns") - pl.col("began_ns") - idle).min() / NS_PER_MS)
    return recording.collect(took)["ms"].to_numpy(writable=True)


def _acknowledge_ms(recording: Recording) -> NDArray[np.float64]:
    # Where frames have no time, an acknowledgement after nothing at all says nothing.
    if not has_messages(recording) or sums.is_summed(recording) or recording.layout.get("is_untimed"):
        return np.empty(0)

    def took(first: int = 0, length: int | None = None, *more: pl.Expr) -> pl.LazyFrame:
        acknowledged = recording.scan("messages").slice(first, length).filter(pl.col("acknowledged_ns").is_not_null())
        return acknowledged.select(((pl.col("acknowledged_ns") - pl.col("sent_ns")) / NS_PER_MS).alias("ms"), *more)

    if is_once(recording):
        return recording.read_column("messages", took)
    once = took(0, None, MESSAGE.alias("message")).unique("message").select("ms")
    return recording.collect(once).to_series().to_numpy(writable=True)


def _two_percentiles(name: str, samples: NDArray[np.float64]) -> dict[str, float | None]:
    """Of the samples that are numbers. Their order is lost: of all acknowledgements a copy would be large."""
    unknown = np.isnan(samples)
    known = samples[~unknown] if unknown.any() else samples
    p50, p99 = np.quantile(known, [0.5, 0.99], overwrite_input=True).tolist() if known.size else (None, None)
    return {f"{name}_ms_p50": p50, f"{name}_ms_p99": p99}
