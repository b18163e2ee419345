"""Segment by segment: the frames of two runs under names that both share.

A link's dice are thrown for a frame's name (``crates/net/src/name.rs``): whose connection it is, which end sends,
which place of the stream it carries (or acknowledges), and which time. The same names are worked out here from the
tables, so that it can be said what became of the *same* frame in the other run. Sequence numbers count from each
end's SYN.

What it does not name: frames that are no TCP segments, and those of connections whose SYN was not recorded.
"""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording

NAME = ("host", "ordinal", "forth", "acknowledges", "position", "times", "link")
"""What two runs have in common of a frame on a link: the host that opened the connection and which of its connections
it is; whether the frame goes forth from there; whether it is a bare acknowledgement; the position in the stream that
it carries or acknowledges; how often that was sent before."""
SYN, FIN, ACK = 2, 1, 16
LOST = ("dropped", "corrupted")
_WRAP = 2**32


def named_frames(recording: Recording) -> pl.DataFrame:
    """One row per TCP segment and link, link's copies left out.

    Columns: :data:`NAME`, ``connection``, ``direction`` (``to_broker`` or ``to_client``), ``frame``, ``hop``, ``hops``,
    ``entered_ns``, ``delivered_ns``, ``fate``, ``cause``, ``payload_bytes``, ``start``, ``end`` (of its data in the
    stream).
    """
    return recording.derived("named_frames", _named_frames)


def _named_frames(recording: Recording) -> pl.DataFrame:
    packets = recording.packets
    if packets.is_empty() or "repetition" not in packets.columns:
        return pl.DataFrame(schema=SCHEMA)
    tcp = packets.filter(pl.col("protocol") == 6, pl.col("connection").is_not_null(), pl.col("seq").is_not_null(),
                         pl.col("fate") != "duplicated")
    first_hop = tcp.filter(pl.col("hop") == 0).sort("entered_ns", "frame")
    connections = _connections(first_hop)
    placed = first_hop.join(connections, on="connection", maintain_order="left").with_columns(
        forth=pl.col("source_port") == pl.col("client_port"))
    takes = pl.col("payload_bytes").cast(pl.Int64) + (pl.col("flags") & (SYN | FIN)).cast(pl.Int64)
    own, other = (pl.when(pl.col("forth") == way).then("isn_forth").otherwise("isn_back") for way in (True, False))
    named = placed.with_columns(acknowledges=takes == 0).with_columns(
        position=pl.when("acknowledges").then(pl.col("ack").cast(pl.Int64) - other)
        .otherwise(pl.col("seq").cast(pl.Int64) - own) % _WRAP)
    bare = named.filter("acknowledges").with_columns(
        spell=(pl.col("position") != pl.col("position").shift()).fill_null(True).cum_sum().over("connection", "forth"))
    bare = bare.with_columns(times=pl.int_range(pl.len(), dtype=pl.Int64).over("connection", "forth", "spell"))
    data = named.filter(~pl.col("acknowledges")).with_columns(times=pl.col("repetition").cast(pl.Int64))
    names = pl.concat([bare.drop("spell"), data]).select(
        "frame", "ordinal", "forth", "acknowledges", "position", "times", host="client_host")
    return tcp.join(names, on="frame", maintain_order="left").select(
        *NAME, "connection", "frame", "hop", "hops", "entered_ns", "delivered_ns", "fate", "cause", "payload_bytes",
        direction=pl.when("forth").then(pl.lit("to_broker")).otherwise(pl.lit("to_client")),
        start=pl.col("stream_offset"), end=pl.col("stream_offset") + pl.col("payload_bytes").cast(pl.Int64))


def _connections(frames: pl.DataFrame) -> pl.DataFrame:
    """Who opened each connection, from which port, which of the host's connections it is, and where both streams
    begin."""
    syns = frames.filter((pl.col("flags") & SYN) != 0)
    opening = syns.filter((pl.col("flags") & ACK) == 0).group_by("connection", maintain_order=True).agg(
        client_port=pl.col("source_port").first(), client_host=pl.col("from_host").first(),
        isn_forth=pl.col("seq").first().cast(pl.Int64))
    answering = syns.filter((pl.col("flags") & ACK) != 0).group_by("connection").agg(
        isn_back=pl.col("seq").first().cast(pl.Int64))
    return opening.sort("connection").with_columns(
        ordinal=pl.int_range(pl.len(), dtype=pl.Int64).over("client_host"),
    ).join(answering, on="connection", how="left").with_columns(pl.col("isn_back").fill_null(0))


def side_by_side(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Every named frame of both runs: the columns of :func:`named_frames`, those of the second with ``_second``; empty
    where a run did not send it."""
    # A name that a run used twice (a stream of more than 4 GiB) is left to its first user.
    unique = [frames.unique(NAME, keep="first", maintain_order=True) for frames in (first, second)]
    return unique[0].join(unique[1], on=NAME, how="full", coalesce=True, suffix="_second",
                          maintain_order="left_right")


def fates(together: pl.DataFrame) -> pl.DataFrame:
    """How many frames met which fates: ``link``, ``first``, ``second`` (with the cause), ``frames``, most frequent
    first."""
    return (
        together.select("link", first=_fate(""), second=_fate("_second"))
        .group_by("link", "first", "second").agg(frames=pl.len())
        .sort("frames", "link", "first", "second", descending=[True, False, False, False])
    )


def decisive(together: pl.DataFrame, *, second: bool) -> pl.DataFrame:
    """Frames that one run lost and the other did not, in the order of time.

    Columns: :data:`NAME`, ``connection``, ``direction``, ``frame``, ``entered_ns``, ``fate``, ``cause``, ``start``,
    ``end``, of the run that lost it, and ``other_fate`` and ``other_frame`` in the other; empty where that did not
    send it.
    """
    here, there = ("_second", "") if second else ("", "_second")
    lost, kept = pl.col(f"fate{here}").is_in(LOST), pl.col(f"fate{there}").is_in(LOST).fill_null(False)
    columns = ("connection", "direction", "frame", "entered_ns", "fate", "cause", "start", "end")
    return together.filter(lost & ~kept).select(
        *NAME, *(pl.col(f"{column}{here}").alias(column) for column in columns),
        other_fate=f"fate{there}", other_frame=f"frame{there}").sort("entered_ns", "frame")


def _fate(side: str) -> pl.Expr:
    fate, cause = pl.col(f"fate{side}"), pl.col(f"cause{side}")
    return (pl.when(fate.is_null()).then(pl.lit("not sent")).when(cause.is_null()).then(fate)
            .otherwise(pl.format("{} ({})", fate, cause)))


SCHEMA: dict[str, pl.DataType] = {
    "host": pl.String(), "ordinal": pl.Int64(), "forth": pl.Boolean(), "acknowledges": pl.Boolean(),
    "position": pl.Int64(), "times": pl.Int64(), "link": pl.String(), "connection": pl.UInt32(), "frame": pl.Int64(),
    "hop": pl.UInt8(), "hops": pl.UInt8(), "entered_ns": pl.Int64(), "delivered_ns": pl.Int64(), "fate": pl.String(),
    "cause": pl.String(), "payload_bytes": pl.UInt32(), "direction": pl.String(), "start": pl.Int64(),
    "end": pl.Int64(),
}
