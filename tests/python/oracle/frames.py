"""Frames with their connection's direction, client and group: what every table of the network layer starts from."""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.frames import NOT_KEPT, TOWARDS, connection_ends
from mqttlab.plan import ports
from mqttlab.recording import Recording
from oracle.sent_again import sent_again


def frames(recording: Recording) -> pl.DataFrame:
    """Every frame of the broker's connections on every link of its path, without the copies that links make.

    Columns of ``packets``, without ``NOT_KEPT``; with ``towards`` (``to_broker`` or ``to_client``; null without TCP),
    ``client`` and ``group`` (null where they are not known), ``marks`` as a list and ``sent_again`` (of what the sender
    sent again, why; else null), both on every link of the path,
    ``publishes`` and ``control_packets`` (how many became complete in the segment).
    """
    return recording.derived("oracle frames", _frames)


def _frames(recording: Recording) -> pl.DataFrame:
    packets = recording.packets
    if packets.is_empty():
        return packets
    packets = _broker_s(recording, packets.filter(pl.col("fate") != "duplicated"))
    marks = packets.filter(pl.col("hop") == 0, pl.col("marks").is_not_null()).select("frame", "marks")
    return (
        packets.drop(NOT_KEPT)
        .join(marks.unique("frame"), on="frame", how="left", maintain_order="left")
        .join(sent_again(recording), on="frame", how="left", maintain_order="left")
        .join(connection_ends(recording, packets), on="connection", how="left", maintain_order="left")
        .with_columns(
            pl.col("marks").str.split(","),
            towards=TOWARDS,
            publishes=pl.col("mqtt").str.count_matches("PUBLISH(", literal=True).fill_null(0),
            control_packets=(pl.col("mqtt").str.count_matches(" ", literal=True) + 1).fill_null(0),
        )
        .drop("client_port")
    )


def _broker_s(recording: Recording, packets: pl.DataFrame) -> pl.DataFrame:
    """Somebody's capture may hold anything; then the plan says which ports are brokers'."""
    listening = ports(recording.plan) if "sources" in recording.plan else []
    if not listening:
        return packets
    return packets.filter(pl.col("source_port").is_in(listening) | pl.col("destination_port").is_in(listening))
