"""What TCP did on the network: the table that one would otherwise read off Wireshark, and the round trips behind it.

Counted over the whole run, connecting and cooling down included, as a capture would show it. Frames are counted where
they came to their first link, the rows of single links excepted; a frame that the queue refused was sent all the same.
The sums are the engine's (``frame_sums``, ``round_trips``); what follows from them is taken here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab.metrics.application import in_order
from mqttlab.metrics.frames import is_opening
from mqttlab.recording import READ_AT_ONCE, Recording, looked_up, named
from mqttlab.statistics import Selection

NS_PER_MS = 1e6
SCOPES = ("run", "direction", "link", "group")
KEYS = ("scope", "name", "direction")
# Why a sender sent a segment again; `sent_again` in docs/reference/recording.md says how that is judged.
KINDS = ("fast", "timer_or_probe", "spurious", "unknown")
# As they stand in the stored sums.
SUMMED = (
    "connections", "resets", "segments_with_payload", "retransmissions",
    *(f"retransmissions_{kind}" for kind in KINDS),
    *(f"tcp_analysis_{mark}" for mark in ("retransmissions", "fast_retransmissions", "spurious_retransmissions",
                                          "out_of_order", "duplicate_acks", "zero_windows")),
    "mqtt_packets", "publish_packets",
)
ROUND_TRIP = ("rtt_ms_min", "rtt_ms_mean", "rtt_ms_p95", "rtt_ms_max", "rto_ms_mean")
# Above so many round trips those that differ by less than a hundred-thousandth are counted together.
COUNTED_EXACTLY = 1_000_000
# There may be as many as segments: words are numbers.
TOWARDS = pl.Enum(["to_broker", "to_client"])


def network(recording: Recording, scopes: Sequence[str] = SCOPES) -> pl.DataFrame:
    """One row for everything, for each direction, for each link, for each group and direction of it.

    Columns: ``scope``, ``name`` (of link, group or client), ``direction``, and the metrics of ``NETWORK``. Empty where
    the network was direct, or frames were not recorded.

    Args:
        recording: the recording.
        scopes: which rows; ``connection`` adds one for each direction of each TCP connection.
    """
    sums = recording.summary("frame_sums")
    if sums.is_empty():
        return pl.DataFrame()
    table = _derived(recording, sums.filter(pl.col("scope").is_in(list(scopes))))
    if "window_reductions" in sums.columns and sums["window_reductions"].sum():
        reduced = sums.filter(pl.col("scope").is_in(list(scopes)))["window_reductions"]
        table = table.insert_column(table.get_column_index("retransmissions") + 1, reduced)
    if sums["retransmissions"].null_count() == sums.height:
        # There is no such thing in a recording that does not say what was sent again.
        table = table.drop("retransmissions", "retransmissions_percent", *(f"retransmissions_{kind}" for kind in KINDS))
    if set(scopes) <= {"link"}:
        table = table.drop(ROUND_TRIP)
    keys = ["connection", *KEYS] if "connection" in scopes else list(KEYS)
    table = table.select(*keys, pl.exclude(keys)) if "connection" in scopes else table.drop("connection", "client")
    # As they were asked for, each scope in the order of its keys, groups in that of the scenario.
    parts = [table.filter(pl.col("scope") == scope) for scope in scopes]
    return pl.concat(in_order(recording, part, keys) if scope == "group" else part.sort(keys, nulls_last=False)
                     for scope, part in zip(scopes, parts, strict=True))


def connections(recording: Recording) -> pl.DataFrame:
    """One row for each direction of each TCP connection, in the order of their first segments.

    One that no client has opened, such as a gateway's, has the name of the host that did, where its SYN was recorded.
    """
    table = network(recording, ["connection"])
    if table.is_empty():
        return table
    names = recording.layout["clients"].names
    table = table.with_columns(name=named("client", names)).drop("client")
    unnamed = table.filter(pl.col("name").is_null())["connection"].unique()
    if unnamed.is_empty():
        return table
    opened = recording.collect(
        recording.scan("packets")
        .filter(pl.col("connection").is_in(unnamed.implode()), is_opening())
        .group_by("connection").agg(pl.col("from_host").first()))
    opener = pl.format("host {}", named("from_host", recording.layout["hosts"]))
    return table.join(opened.select("connection", opener=opener), on="connection", how="left", maintain_order="left") \
        .with_columns(name=pl.coalesce("name", "opener")).drop("opener")


def round_trips(recording: Recording, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Round trips as the senders of data saw them, in the order in which their acknowledgements were sent.

    From a data segment's coming to its first link until its exact acknowledgement has arrived; none for a segment
    that was sent more than once (Karn), nor where the acknowledgement was lost.

    Columns: ``connection``, ``client``, ``group``, ``towards`` (the data's), ``at_s``, ``rtt_ms``, ``rto_ms``; or only
    those of them that are asked for.
    """
    clients = recording.layout["clients"]
    names = pl.Enum(clients.group_names)
    table = recording.scan_summary("round_trips")
    if not table.collect_schema():
        empty = pl.DataFrame(schema={"connection": pl.UInt32, "client": pl.UInt32, "group": names, "towards": TOWARDS,
                                     "at_s": pl.Float64, "rtt_ms": pl.Float64, "rto_ms": pl.Float64})
        return empty if columns is None else empty.select(columns)
    found = table.select(
        "connection", "client",
        group=looked_up("client", clients.groups.cast(names)),
        towards=pl.col("towards").cast(pl.String).cast(TOWARDS), at_s=pl.col("at_ns") / 1e9,
        rtt_ms=pl.col("rtt_ns") / NS_PER_MS, rto_ms="rto_ms",
    )
    return recording.collect(found if columns is None else found.select(columns))


def round_trip_counts(recording: Recording) -> pl.DataFrame:
    """How often each round trip was seen: ``towards``, ``rtt_ms``, ``round_trips``, in order.

    Of more than :data:`COUNTED_EXACTLY` the first five digits are counted, so that the table stays small however many
    there are.
    """
    return recording.derived("round trip counts", _round_trip_counts)


def _round_trip_counts(recording: Recording) -> pl.DataFrame:
    table = recording.scan_summary("round_trips")
    if not table.collect_schema():
        return pl.DataFrame(schema={"towards": TOWARDS, "rtt_ms": pl.Float64, "round_trips": pl.Int64})
    is_many = recording.collect(table.select(pl.len())).item() > COUNTED_EXACTLY
    rtt_ns = pl.col("rtt_ns").cast(pl.Float64)
    counted = table.group_by("towards", rtt_ns.round_sig_figs(5) if is_many else rtt_ns).agg(round_trips=pl.len())
    return recording.collect(counted).select(
        pl.col("towards").cast(pl.String).cast(TOWARDS), rtt_ms=pl.col("rtt_ns") / NS_PER_MS,
        round_trips=pl.col("round_trips").cast(pl.Int64)).sort("towards", "rtt_ms")


def round_trips_thinned(recording: Recording, most: int) -> pl.DataFrame:
    """Of the :func:`round_trips` of each direction so many, as :class:`Selection` chooses them.

    Columns: ``towards``, ``at_s``, ``rtt_ms``. They are chosen while the table is read, in parts: there may be as many
    as segments.
    """
    counts = round_trip_counts(recording).group_by("towards", maintain_order=True).agg(pl.col("round_trips").sum())
    chosen = [part for towards, height in counts.iter_rows() for part in _thinned(recording, towards, height, most)]
    empty = pl.DataFrame(schema={"towards": TOWARDS, "at_s": pl.Float64, "rtt_ms": pl.Float64})
    return pl.concat([empty, *chosen])


def _thinned(recording: Recording, towards: str, height: int, most: int) -> Iterator[pl.DataFrame]:
    table, is_its = recording.scan_summary("round_trips"), pl.col("towards").cast(pl.String) == towards

    def longest(count: int) -> NDArray[np.int64]:
        its = table.filter(is_its).select("rtt_ns").top_k(count, by="rtt_ns")
        return recording.collect(its).to_series().to_numpy()

    selection = Selection(height, most, longest)
    for begin, length in recording.ranges(table, READ_AT_ONCE):
        part = recording.collect(table.slice(begin, length).filter(is_its).select("at_ns", "rtt_ns"))
        yield part[selection.places(part["rtt_ns"].to_numpy())].select(
            towards=pl.lit(towards, TOWARDS), at_s=pl.col("at_ns") / 1e9, rtt_ms=pl.col("rtt_ns") / NS_PER_MS)


def _derived(recording: Recording, sums: pl.DataFrame) -> pl.DataFrame:
    """What follows from the sums, under the names of the metrics."""
    link = named("link", recording.layout["links"])
    carriers = pl.col("publish_segments")
    with_data = pl.col("segments_with_data")
    return sums.select(
        "connection", "client", pl.col("scope", "direction").cast(pl.String),
        name=pl.when(pl.col("scope") == "link").then(link).otherwise(pl.col("group").cast(pl.String)),
        frames="frames", bytes="bytes", ip_bytes="ip_bytes", tcp_payload_bytes="tcp_payload_bytes",
        data_rate_kbit_s=pl.col("sent_bytes") * 8e6 / (pl.col("last_ns") - pl.col("first_ns")),
        frame_bytes_min=pl.col("frame_bytes_min").cast(pl.Int64), frame_bytes_mean=pl.col("bytes") / pl.col("frames"),
        frame_bytes_max=pl.col("frame_bytes_max").cast(pl.Int64),
        publish_frame_bytes_min=pl.col("publish_frame_bytes_min").cast(pl.Int64),
        publish_frame_bytes_mean=pl.when(carriers > 0).then(pl.col("publish_frame_bytes") / carriers),
        publish_frame_bytes_max=pl.col("publish_frame_bytes_max").cast(pl.Int64),
        retransmissions_percent=pl.when(with_data > 0).then(100 * pl.col("retransmissions") / with_data),
        **{name: pl.col(name) for name in (*SUMMED, *ROUND_TRIP)},
        publish_per_segment_mean=pl.when(carriers > 0).then(pl.col("publish_packets") / carriers),
    )
