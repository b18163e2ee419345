"""MQTT packets in TCP segments: how many share one, and how many it takes to carry one."""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording
from oracle.frames import frames

# Of a signed column.
TIME_MAX_NS = 2**63 - 1


def publish_per_segment(recording: Recording, *, measurement_only: bool = False) -> pl.DataFrame:
    """How many PUBLISH packets became complete in a segment, of the segments with any.

    Columns: ``direction``, ``packets`` (in one segment), ``segments``, ``segments_percent`` (of the direction's).
    Counted where the sender's segments came to their first link; copies that were sent again complete nothing.

    Args:
        recording: the recording.
        measurement_only: leave out what was sent before the measurement and after it.
    """
    seen = frames(recording)
    if seen.is_empty():
        return _nothing("packets")
    if measurement_only:
        layout = recording.layout
        start, end = int(layout["warm_up_end_ns"]), int(layout["measurement_end_ns"])
        seen = seen.filter(pl.col("entered_ns").is_between(start, min(end, TIME_MAX_NS), closed="left"))
    counted = (
        seen.filter(pl.col("hop") == 0, pl.col("publishes") > 0)
        .group_by(direction=pl.col("towards"), packets=pl.col("publishes"))
        .agg(segments=pl.len())
    )
    return _with_share(counted, "packets")


def segments_per_publish(recording: Recording) -> pl.DataFrame:
    """How many segments carried a byte of a PUBLISH packet until it was complete, those that were lost included.

    Columns: ``direction``, ``segments`` (of one packet), ``packets``, ``packets_percent`` (of the direction's).
    """
    packets = recording.control_packets
    if packets.is_empty():
        return _nothing("segments")
    counted = packets.filter(pl.col("kind") == "PUBLISH").group_by("direction", "segments").agg(packets=pl.len())
    return _with_share(counted, "segments")


def _with_share(counted: pl.DataFrame, of: str) -> pl.DataFrame:
    how_many = "segments" if of == "packets" else "packets"
    share = 100 * pl.col(how_many) / pl.col(how_many).sum().over("direction")
    return counted.with_columns(
        pl.col("packets", "segments").cast(pl.Int64), share.alias(f"{how_many}_percent")
    ).sort("direction", of)


def _nothing(of: str) -> pl.DataFrame:
    how_many = "segments" if of == "packets" else "packets"
    return pl.DataFrame(schema={"direction": pl.String, of: pl.Int64, how_many: pl.Int64,
                                f"{how_many}_percent": pl.Float64})
