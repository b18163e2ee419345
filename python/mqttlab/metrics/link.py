"""What the links saw: frames, bytes, drops by cause, how busy they were."""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording, named

NS_PER_MS = 1e6


def links(recording: Recording) -> pl.DataFrame:
    """One row per link and direction. Empty where the network was direct, or frames were not recorded."""
    sums = recording.summary("link_sums")
    if sums.is_empty():
        return pl.DataFrame()
    # Of a recording in which nothing is marked there is no such column.
    marked = ["frames_marked"] if "frames_marked" in sums.columns and sums["frames_marked"].sum() else []
    return sums.select(
        "frames", "bytes", "frames_delivered", "frames_dropped", *marked,
        link=named("link", recording.layout["links"]),
        queue_wait_ms_mean=pl.when(pl.col("frames_waited") > 0).then(
            pl.col("wait_ns") / NS_PER_MS / pl.col("frames_waited")),
        queue_wait_ms_max=pl.col("wait_max_ns") / NS_PER_MS,
        frame_bytes_mean=pl.col("rows_bytes") / pl.col("rows"),
        data_rate_kbit_s=pl.col("sent_bytes") * 8e6 / pl.col("span_ns"),
        utilisation_percent=100 * pl.col("busy_ns") / pl.col("span_ns"),
        drops_by_cause=pl.col("drops_by_cause").cast(pl.String),
    ).select("link", pl.exclude("link")).sort("link")
