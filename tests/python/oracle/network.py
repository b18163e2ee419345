"""What TCP did on the network: the table that one would otherwise read off Wireshark, and the round trips behind it.

Counted over the whole run, connecting and cooling down included, as a capture would show it. Frames are counted where
they came to their first link, the rows of single links excepted; a frame that the queue refused was sent all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import polars as pl

from mqttlab.metrics.frames import FIN_SYN_RST, marked
from mqttlab.recording import Recording
from oracle.frames import frames
from oracle.sent_again import KINDS, is_counted

NS_PER_MS = 1e6
SCOPES = ("run", "direction", "link", "group")
KEYS = ("scope", "name", "direction")
# RFC 6298 has the lower bound on the whole timeout at 1 s; Linux has 200 ms on its variable part.
RTO_MIN_NS = 200_000_000


def network(recording: Recording, scopes: Sequence[str] = SCOPES) -> pl.DataFrame:
    """One row for everything, for each direction, for each link, for each group and direction of it.

    Columns: ``scope``, ``name`` (of link, group or client), ``direction``, and the metrics of ``NETWORK``. Empty where
    the network was direct, or frames were not recorded.

    Args:
        recording: the recording.
        scopes: which rows; ``connection`` adds one for each direction of each TCP connection.
    """
    if frames(recording).is_empty():
        return pl.DataFrame()
    parts = [recording.derived(f"network by {scope}", functools.partial(_of, scope)) for scope in scopes]
    return pl.concat(parts, how="diagonal")


def _of(scope: str, recording: Recording) -> pl.DataFrame:
    seen, samples = frames(recording), round_trips(recording)
    if scope == "run" and "sources" in recording.plan:
        # Where a capture was made between the ends, round trips towards either side differ in kind: no mean is of both.
        samples = samples.clear()
    counted = seen if scope == "link" else seen.filter(pl.col("hop") == 0)
    return _scope(scope, counted, samples, is_counted(recording))


def connections(recording: Recording) -> pl.DataFrame:
    """One row for each direction of each TCP connection, in the order of their first segments."""
    table = network(recording, ["connection"])
    if table.is_empty():
        return table
    names = [client["name"] for client in recording.layout["clients"]]
    return table.with_columns(
        name=pl.col("client").replace_strict(range(len(names)), names, default=None, return_dtype=pl.String)
    ).drop("client")


def round_trips(recording: Recording) -> pl.DataFrame:
    """Round trips as the senders of data saw them, in the order in which their acknowledgements were sent.

    From a data segment's coming to its first link until its exact acknowledgement has arrived; none for a segment
    that was sent more than once (Karn), nor where the acknowledgement was lost.

    Columns: ``connection``, ``client``, ``group``, ``towards`` (the data's), ``at_s``, ``rtt_ms``, ``rto_ms``.
    """
    return recording.derived("round_trips", _round_trips)


def _round_trips(recording: Recording) -> pl.DataFrame:
    seen = frames(recording)
    if seen.is_empty():
        return pl.DataFrame(schema={"towards": pl.String, "at_s": pl.Float64, "rtt_ms": pl.Float64})
    acknowledgements = seen.filter(pl.col("hop") == 0, pl.col("ack_rtt_ns").is_not_null())
    arrived = (pl.col("hop") + 1 == pl.col("hops")) & (pl.col("fate") == "delivered")
    if seen["hops"].max() == 1:
        acknowledgements = acknowledgements.filter(arrived).with_columns(arrived_ns="delivered_ns")
    else:
        # A frame that a link has doubled arrives twice; it had been counted twice before.
        arrivals = seen.filter(arrived).group_by("frame").agg(arrived_ns=pl.col("delivered_ns").min())
        acknowledgements = acknowledgements.join(arrivals, on="frame", maintain_order="left")
    samples = acknowledgements.filter(pl.col("arrived_ns").is_not_null()).select(
        "connection", "client", "group",
        towards=pl.when(pl.col("towards") == "to_broker").then(pl.lit("to_client")).otherwise(pl.lit("to_broker")),
        at_s=pl.col("arrived_ns") / 1e9,
        rtt_ms=(pl.col("ack_rtt_ns") + pl.col("arrived_ns") - pl.col("entered_ns")) / NS_PER_MS,
        # The host that is acknowledged is the one whose timer it is.
        rto_min_ms=pl.col("to_host").replace_strict(*_least_timeouts(recording), default=RTO_MIN_NS / NS_PER_MS),
    )
    return samples.with_columns(rto_ms=_timeout().over("connection", "towards")).drop("rto_min_ms")


def _least_timeouts(recording: Recording) -> tuple[list[str], list[float]]:
    hosts = [host for host in recording.plan.get("hosts", []) if "rto_min_ns" in host.get("tcp", {})]
    return [str(host["name"]) for host in hosts], [host["tcp"]["rto_min_ns"] / NS_PER_MS for host in hosts]


def _timeout() -> pl.Expr:
    """RFC 6298 §2 over a connection's round trips; Linux bounds four variations, not the whole, from below."""
    rtt = pl.col("rtt_ms")
    smoothed = rtt.ewm_mean(alpha=1 / 8, adjust=False)
    # The first sample sets the variation to half of itself.
    deviation = (smoothed.shift(1) - rtt).abs().fill_null(rtt / 2)
    variation = deviation.ewm_mean(alpha=1 / 4, adjust=False)
    return smoothed + pl.max_horizontal(4 * variation, pl.col("rto_min_ms"))


def _scope(scope: str, seen: pl.DataFrame, samples: pl.DataFrame, counts_repetitions: bool) -> pl.DataFrame:
    """The rows of one scope: what the frames say, beside what the round trips say."""
    by = {
        "run": [], "direction": ["towards"], "link": ["link", "direction"], "group": ["group", "towards"],
        "connection": ["connection", "towards"],
    }[scope]
    if scope in ("direction", "group", "connection"):
        seen = seen.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in by))
    of_whom = [pl.col("client").first()] if scope == "connection" else []
    counts = _counts(counts_repetitions)
    counted = seen.group_by(by, maintain_order=True).agg(*of_whom, **counts) if by else seen.select(**counts)
    # A link has no round trip of its own.
    if scope == "run":
        counted = counted.hstack(samples.select(**_round_trip()))
    elif scope != "link":
        timed = samples.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in by))
        counted = counted.join(timed.group_by(by).agg(**_round_trip()), on=by, how="left", maintain_order="left")
    names = {"towards": "direction", **({scope: "name"} if scope in ("link", "group") else {})}
    table = _derived(counted).rename(names, strict=False).with_columns(scope=pl.lit(scope))
    missing = [pl.lit(None, pl.String).alias(key) for key in KEYS if key not in table.columns]
    table = table.with_columns(missing)
    keys = ["connection", *KEYS] if scope == "connection" else list(KEYS)
    return table.select(*keys, pl.exclude(keys)).sort(keys, nulls_last=False)


def _counts(counts_repetitions: bool) -> dict[str, pl.Expr]:
    size = pl.col("frame_bytes").cast(pl.Int64)
    sent = pl.col("sent_ns").is_not_null()
    end_ns = pl.max_horizontal(pl.col("sent_ns").max(), pl.col("entered_ns").max())
    with_publish = size.filter(pl.col("publishes") > 0)
    return {
        "frames": pl.len().cast(pl.Int64),
        "bytes": size.sum(),
        "ip_bytes": pl.col("ip_bytes").cast(pl.Int64).sum(),
        "tcp_payload_bytes": pl.col("payload_bytes").cast(pl.Int64).sum(),
        "data_rate_kbit_s": size.filter(sent).sum() * 8e6 / (end_ns - pl.col("entered_ns").min()),
        "frame_bytes_min": size.min(),
        "frame_bytes_mean": size.mean(),
        "frame_bytes_max": size.max(),
        "publish_frame_bytes_min": with_publish.min(),
        "publish_frame_bytes_mean": with_publish.mean(),
        "publish_frame_bytes_max": with_publish.max(),
        "connections": pl.col("connection").drop_nulls().n_unique().cast(pl.Int64),
        "resets": (pl.col("flags") & FIN_SYN_RST["rst"] != 0).sum().cast(pl.Int64),
        "segments_with_payload": (pl.col("connection").is_not_null() & (pl.col("payload_bytes") > 0)).sum(),
        **(_sent_again() if counts_repetitions else {}),
        **_marks(),
        "mqtt_packets": pl.col("control_packets").sum().cast(pl.Int64),
        "publish_packets": pl.col("publishes").sum().cast(pl.Int64),
        "publish_segments": (pl.col("publishes") > 0).sum().cast(pl.Int64),
    }


def _sent_again() -> dict[str, pl.Expr]:
    """What the sender sent again. There is no such thing in a recording that does not say so."""
    kind, takes_room = pl.col("sent_again"), pl.col("repetition").is_not_null()
    count = kind.is_not_null().sum()
    return {
        "retransmissions": count.cast(pl.Int64),
        "retransmissions_percent": pl.when(takes_room.any()).then(100 * count / takes_room.sum()),
        **{f"retransmissions_{name}": (kind == name).sum().cast(pl.Int64) for name in KINDS},
    }


def _marks() -> dict[str, pl.Expr]:
    """Wireshark's opinion of the same frames."""
    names = {
        "retransmission": "retransmissions", "fast_retransmission": "fast_retransmissions",
        "spurious_retransmission": "spurious_retransmissions", "out_of_order": "out_of_order",
        "duplicate_ack": "duplicate_acks", "zero_window": "zero_windows",
    }
    return {f"tcp_analysis_{name}": marked(mark).sum().cast(pl.Int64) for mark, name in names.items()}


def _round_trip() -> dict[str, pl.Expr]:
    rtt = pl.col("rtt_ms")
    return {
        "rtt_ms_min": rtt.min(), "rtt_ms_mean": rtt.mean(), "rtt_ms_p95": rtt.quantile(0.95, "linear"),
        "rtt_ms_max": rtt.max(), "rto_ms_mean": pl.col("rto_ms").mean(),
    }


def _derived(counted: pl.DataFrame) -> pl.DataFrame:
    """What follows from the sums."""
    carriers = pl.col("publish_segments")
    return counted.with_columns(
        publish_per_segment_mean=pl.when(carriers > 0).then(pl.col("publish_packets") / carriers),
    ).drop("publish_segments")
