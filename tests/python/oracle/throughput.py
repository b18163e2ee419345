"""How many bytes crossed each link at which time, level by level."""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording
from oracle.frames import frames

LEVELS = {
    "frames": "frame_bytes", "IP packets": "ip_bytes", "transport payload": "payload_bytes",
    "message payload": "mqtt_payload_bytes",
}
BINS_WANTED = 120
WAY = ("link", "connection", "towards")


def throughput(recording: Recording) -> pl.DataFrame:
    """One row per link, direction, level and time slice.

    A frame counts where its last bit went out, lost ones too. Application payload counts once on each link: in the
    first frame with which all bytes up to the message's end had crossed it. The gap between two levels is the cost of
    the one above.

    Columns: ``link``, ``direction``, ``level`` (one of ``LEVELS``), ``at_s`` (the slice's start), ``bytes_per_s``.
    Slices are as long as :func:`slice_ns` says; those without a frame are there and zero.
    """
    seen = frames(recording)
    if not seen.is_empty():
        seen = seen.filter(pl.col("sent_ns").is_not_null())
    if seen.is_empty():
        return pl.DataFrame(schema={"link": pl.String, "direction": pl.String, "level": pl.String,
                                    "at_s": pl.Float64, "bytes_per_s": pl.Float64})
    width = slice_ns(int(seen["sent_ns"].max() - seen["sent_ns"].min()))  # type: ignore[operator, arg-type]
    crossed = _with_payloads(seen, recording.control_packets)
    sums = (
        crossed.group_by("link", "direction", slice=pl.col("sent_ns") // width)
        .agg(pl.col(column).cast(pl.Int64).sum().alias(level) for level, column in LEVELS.items())
    )
    return (
        _all_slices(sums).join(sums, on=["link", "direction", "slice"], how="left")
        .unpivot(index=["link", "direction", "slice"], variable_name="level", value_name="bytes")
        .select("link", "direction", "level", at_s=pl.col("slice") * width / 1e9,
                bytes_per_s=pl.col("bytes").fill_null(0) * 1e9 / width)
        .sort("link", "direction", "level", "at_s", maintain_order=True)
    )


def slice_ns(span_ns: int) -> int:
    """The length of a slice: 1, 2 or 5 times a power of ten, so that 48 to 120 cover the span; 1 ms at least."""
    decade = 1_000_000
    while True:
        for factor in (1, 2, 5):
            if factor * decade * BINS_WANTED >= span_ns:
                return factor * decade
        decade *= 10


def _all_slices(sums: pl.DataFrame) -> pl.DataFrame:
    first, last = sums["slice"].min(), sums["slice"].max()
    slices = pl.DataFrame({"slice": pl.int_range(first, last + 1, eager=True)})  # type: ignore[operator, arg-type]
    return sums.select("link", "direction").unique().sort("link", "direction").join(slices, how="cross")


def _with_payloads(seen: pl.DataFrame, control_packets: pl.DataFrame) -> pl.DataFrame:
    """Adds ``mqtt_payload_bytes``: the application payload that each frame completed on its link."""
    if control_packets.is_empty():
        return seen.with_columns(mqtt_payload_bytes=pl.lit(0))
    seen = seen.with_row_index("row")
    end = pl.col("stream_offset") + pl.col("payload_bytes").cast(pl.Int64)
    # A copy that brings nothing new completes nothing.
    new = (
        seen.filter(pl.col("payload_bytes") > 0, pl.col("stream_offset").is_not_null())
        .sort("sent_ns", maintain_order=True)
        .with_columns(stream_end=end.cum_max().over(WAY))
        .filter((pl.col("stream_end") > pl.col("stream_end").shift(1).over(WAY)).fill_null(True))
        .select("row", *WAY, "stream_end")
    )
    publishes = control_packets.filter(pl.col("kind") == "PUBLISH").select(
        "connection", pl.col("direction").alias("towards"), "stream_end", mqtt_payload_bytes="payload_bytes")
    on_links = publishes.join(new.select(WAY).unique(), on=["connection", "towards"])
    completed = (
        on_links.sort("stream_end")
        .join_asof(new.sort("stream_end"), on="stream_end", by=WAY, strategy="forward", check_sortedness=False)
        .group_by("row").agg(pl.col("mqtt_payload_bytes").sum())
    )
    # A frame that a link has doubled crosses the next one twice, and had completed a message twice there.
    return seen.join(completed, on="row", how="left").with_columns(
        pl.col("mqtt_payload_bytes").fill_null(0))
