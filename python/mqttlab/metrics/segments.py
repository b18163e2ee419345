"""MQTT packets in TCP segments: how many share one, and how many it takes to carry one."""

from __future__ import annotations

import polars as pl

from mqttlab.recording import CARRIERS, Recording


def publish_per_segment(recording: Recording, *, measurement_only: bool = False) -> pl.DataFrame:
    """How many PUBLISH packets became complete in a segment, of the segments with any.

    Columns: ``direction``, ``packets`` (in one segment), ``segments``, ``segments_percent`` (of the direction's).
    Counted where the sender's segments came to their first link; copies that were sent again complete nothing.

    Args:
        recording: the recording.
        measurement_only: leave out what was sent before the measurement and after it.
    """
    counted = recording.summary("carriers")
    if counted.is_empty():
        return _nothing("packets")
    segments = pl.col("segments_measured" if measurement_only else "segments")
    counted = counted.select(pl.col("direction").cast(pl.String), "packets", segments=segments)
    return _with_share(counted.filter(pl.col("segments") > 0), "packets")


def segments_per_publish(recording: Recording) -> pl.DataFrame:
    """How many segments carried a byte of a PUBLISH packet until it was complete, those that were lost included.

    Columns: ``direction``, ``segments`` (of one packet), ``packets``, ``packets_percent`` (of the direction's).
    """
    sums = recording.summary("packet_sums")
    if sums.is_empty():
        return _nothing("segments")
    # Packets that only clients have seen have none.
    carried = sums.filter(pl.col("kind").is_in(CARRIERS), pl.col("segments") > 0)
    counted = carried.group_by(pl.col("direction").cast(pl.String), "segments").agg(
        pl.col("packets").sum())
    return _with_share(counted, "segments")


def _with_share(counted: pl.DataFrame, of: str) -> pl.DataFrame:
    how_many = "segments" if of == "packets" else "packets"
    share = 100.0 * pl.col(how_many) / pl.col(how_many).cast(pl.Int64).sum().over("direction")
    return counted.with_columns(
        pl.col("packets", "segments").cast(pl.Int64), share.alias(f"{how_many}_percent")
    ).sort("direction", of)


def _nothing(of: str) -> pl.DataFrame:
    how_many = "segments" if of == "packets" else "packets"
    return pl.DataFrame(schema={"direction": pl.String, of: pl.Int64, how_many: pl.Int64,
                                f"{how_many}_percent": pl.Float64})
