"""What the links saw: frames, bytes, drops by cause, how busy they were."""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording

NS_PER_MS = 1e6


def links(recording: Recording) -> pl.DataFrame:
    """One row per link and direction. Empty where the network was direct, or frames were not recorded."""
    packets = recording.packets
    if packets.is_empty():
        return pl.DataFrame()
    busy_ns = pl.col("sent_ns") - pl.col("start_ns")
    wait_ms = (pl.col("start_ns") - pl.col("entered_ns")) / NS_PER_MS
    original = pl.col("fate") != "duplicated"
    span_ns = pl.max_horizontal(pl.col("sent_ns").max(), pl.col("entered_ns").max()) - pl.col("entered_ns").min()
    table = packets.group_by("link", maintain_order=True).agg(
        frames=original.sum(),
        bytes=pl.col("frame_bytes").filter(original).sum(),
        frames_delivered=pl.col("delivered_ns").is_not_null().sum(),
        frames_dropped=(pl.col("fate") == "dropped").sum(),
        sent_bytes=pl.col("frame_bytes").filter(pl.col("sent_ns").is_not_null() & original).sum(),
        # A capture does not tell when a transmission began, and so not how long the transmitter was busy.
        busy_ns=pl.when(busy_ns.is_not_null().any()).then(busy_ns.filter(original).sum()),
        span_ns=span_ns,
        queue_wait_ms_mean=wait_ms.mean(),
        queue_wait_ms_max=wait_ms.max(),
        frame_bytes_mean=pl.col("frame_bytes").mean(),
    )
    return (
        table.with_columns(
            data_rate_kbit_s=pl.col("sent_bytes") * 8e6 / pl.col("span_ns"),
            utilisation_percent=100 * pl.col("busy_ns") / pl.col("span_ns"),
        )
        .drop("sent_bytes", "busy_ns", "span_ns")
        .join(_causes(packets), on="link", how="left")
        .sort("link")
    )


def _causes(packets: pl.DataFrame) -> pl.DataFrame:
    counted = (
        packets.filter(pl.col("cause").is_not_null() & (pl.col("cause") != ""))
        .group_by("link", "cause")
        .len()
        .sort("link", "len", descending=[False, True])
    )
    return counted.group_by("link", maintain_order=True).agg(
        drops_by_cause=pl.format("{} {}", "len", "cause").str.join(", ")
    )
