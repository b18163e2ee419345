"""How many bytes crossed each link at which time, level by level."""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording, RecordingError, named

LEVELS = {
    "frames": "frame_bytes", "IP packets": "ip_bytes", "transport payload": "payload_bytes",
    "message payload": "mqtt_payload_bytes",
}
# The engine makes about 120. A damaged table may claim more than memory holds.
SLICES_MOST = 1_000_000


def throughput(recording: Recording) -> pl.DataFrame:
    """One row per link, direction, level and time slice.

    A frame counts where its last bit went out, lost ones too. Application payload counts once on each link: in the
    first frame with which all bytes up to the message's end had crossed it. The gap between two levels is the cost of
    the one above.

    Columns: ``link``, ``direction``, ``level`` (one of ``LEVELS``), ``at_s`` (the slice's start), ``bytes_per_s``.
    All slices are of one length, 1, 2 or 5 times a power of ten, so that 48 to 120 cover the run, and 1 ms at least;
    those without a frame are there and zero.
    """
    sums = slices(recording).filter(pl.col("frame_bytes") > 0)
    if sums.is_empty():
        return pl.DataFrame(schema={"link": pl.String, "direction": pl.String, "level": pl.String,
                                    "at_s": pl.Float64, "bytes_per_s": pl.Float64})
    width = int(sums["length_ns"][0])
    return (
        _all_slices(sums, width).join(sums, on=["link", "direction", "at_ns"], how="left")
        .select("link", "direction", "at_ns", *(pl.col(column).alias(level) for level, column in LEVELS.items()))
        .unpivot(index=["link", "direction", "at_ns"], variable_name="level", value_name="bytes")
        .select("link", "direction", "level", at_s=pl.col("at_ns") / 1e9,
                bytes_per_s=pl.col("bytes").fill_null(0) * 1e9 / width)
        .sort("link", "direction", "level", "at_s", maintain_order=True)
    )


def slices(recording: Recording) -> pl.DataFrame:
    """What was sent on each link in each slice of time: the table ``slices``, links by name.

    Raises:
        RecordingError: its times are not those of slices that follow each other.
    """
    table = recording.summary("slices")
    if table.is_empty():
        return pl.DataFrame(schema={"link": pl.String, "direction": pl.String, "at_ns": pl.Int64, "length_ns": pl.Int64,
                                    "busy_ns": pl.Int64, "link_bytes": pl.Int64,
                                    **dict.fromkeys(LEVELS.values(), pl.Int64)})
    _refuse_endless(table, recording)
    return table.with_columns(
        named("link", recording.layout["links"]), pl.col("direction").cast(pl.String))


def _refuse_endless(table: pl.DataFrame, recording: Recording) -> None:
    """Whoever draws slices or counts them makes those between the first and the last, too."""
    # A row without a value is found where it is used.
    begins, lengths = table["at_ns"].drop_nulls().to_list(), table["length_ns"].drop_nulls().to_list()
    if not begins or not lengths:
        return
    span, length = max(begins) - min(begins), min(lengths)
    if length < 1 or length != max(lengths) or span > SLICES_MOST * length:
        raise RecordingError(f"{recording.directory / 'slices.parquet'} is damaged: its slices cover {span} ns and are "
                             f"{length} ns long, the longest {max(lengths)} ns, but must be of one length, and "
                             f"{SLICES_MOST} at most")


def _all_slices(sums: pl.DataFrame, width: int) -> pl.DataFrame:
    first, last = int(sums["at_ns"].min()), int(sums["at_ns"].max())  # type: ignore[arg-type]
    times = pl.DataFrame({"at_ns": pl.int_range(first, last + width, width, eager=True)})
    return sums.select("link", "direction").unique().sort("link", "direction").join(times, how="cross")
