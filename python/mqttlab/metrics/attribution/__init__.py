"""Where each message's time went: its latency, split into parts that are never negative and add up to it.

```text
  intended ─schedule─ sent ─session─ written ─nagle/socket─ first byte on the link ─(again)─ queue ─ wire ─► broker
     ─ handshake ─ window ─ nagle/socket ─ broker ─ first byte on the link ─(again)─ queue ─ wire ─► client
     ─ release ─ received
```

The engine's finalising pass follows every delivery and stores its parts (``attribution``) and what they were read from
(``legs``); this module presents them and takes means. Nothing here knows who made the recording; where no packets were
recorded, the parts are null.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.attribution.coverage import Coverage
from mqttlab.metrics.attribution.evidence import Evidence, evidence
from mqttlab.metrics.attribution.intervals import intervals
from mqttlab.metrics.catalogue import PARTS
from mqttlab.recording import Recording

__all__ = ["ADDED", "Coverage", "Evidence", "attribution", "attribution_by_band", "attribution_by_qos",
           "attribution_coverage", "attribution_gap", "evidence", "explainable", "intervals"]

ADDED = (*PARTS, "adjusted_ns", "legs", "unattributed")
NO_PACKETS = "packets were not recorded, because the network was direct or the scenario did not ask for them"
# Percentiles of the latency, within each QoS level.
BANDS = ((0, 50), (50, 90), (90, 99), (99, 100))
COLUMNS = ("publisher", "sequence", "topic", "subscriber", "publisher_group", "subscriber_group", "phase", "qos",
           "intended_ns", "received_ns", "latency_ns")


def attribution(recording: Recording) -> pl.DataFrame:
    """One row per delivered message and receiver, in the order of the recording.

    Columns: who and when, ``latency_ns``, the parts, which add up to it, ``adjusted_ns`` (by how much in all the
    recorded instants had to be moved for that), ``legs`` (1, and 1 more for each relay), and ``unattributed``: why the
    parts are null, where they are.
    """
    return recording.derived("attribution", _attribution)


def _attribution(recording: Recording) -> pl.DataFrame:
    if not recording.rows("messages"):
        return pl.DataFrame()
    table = delivered(recording)
    if attribution_gap(recording) is not None:
        nothing = pl.lit(None, pl.Int64)
        empty = [nothing.alias(name) for name in ADDED if name != "unattributed"]
        return table.with_columns(*empty, unattributed=pl.lit(NO_PACKETS))
    stored = recording.summary("attribution", ("unattributed", "legs", "adjusted_ns", *PARTS))
    return table.hstack(stored.select(
        pl.col(*PARTS, "adjusted_ns"), pl.col("legs").cast(pl.Int64), pl.col("unattributed").cast(pl.String)))


def explainable(recording: Recording) -> pl.DataFrame:
    """The rows of :func:`attribution` that have parts, and of them only what chooses some.

    Columns: ``leg`` (the row's number), ``publisher``, ``sequence``, ``subscriber``, ``latency_ns``. Only where
    :func:`attribution_gap` is ``None``.
    """
    table = recording.collect(_delivered(recording).select("publisher", "sequence", "subscriber", "latency_ns"))
    known = recording.summary("attribution", ("adjusted_ns",))["adjusted_ns"].is_not_null()
    return table.with_row_index("leg").filter(known)


def delivered(recording: Recording) -> pl.DataFrame:
    """The first deliveries of messages whose publisher is known, those that have a latency: ``COLUMNS``."""
    groups = [client["group"] for client in recording.layout["clients"]]

    def group(client: str) -> pl.Expr:
        return pl.col(client).replace_strict(range(len(groups)), groups, default=None, return_dtype=pl.String)

    return recording.collect(
        _delivered(recording)
        .with_columns(publisher_group=group("publisher"), subscriber_group=group("subscriber")).select(COLUMNS))


def _delivered(recording: Recording) -> pl.LazyFrame:
    return recording.scan("messages").filter(
        pl.col("fate") == "delivered", pl.col("intended_ns").is_not_null(), pl.col("received_ns").is_not_null())


def attribution_coverage(recording: Recording) -> Coverage:
    """How many of the first deliveries of the whole run are attributed, and why the others are not."""
    if not recording.rows("messages"):
        return Coverage(0, 0, {})
    if attribution_gap(recording) is None:
        told = recording.scan_summary("attribution").select(pl.col("unattributed").cast(pl.String))
    else:
        told = attribution(recording).lazy().select("unattributed")
    counted = recording.collect(told.group_by("unattributed").len()).sort(
        "len", "unattributed", descending=[True, False])
    reasons = {reason: count for reason, count in counted.iter_rows() if reason is not None}
    height = int(counted["len"].sum())
    arrived = int(recording.collect(
        recording.scan("messages").select((pl.col("fate") == "delivered").sum())).item())
    attributed = height - sum(reasons.values())
    if arrived > height:
        reasons["their intended time is not known"] = arrived - height
    return Coverage(arrived, attributed, reasons)


def attribution_gap(recording: Recording) -> str | None:
    """Why nothing can be said about where the time went; ``None`` when it can."""
    if not recording.rows("messages"):
        return "no message was recorded"
    if not recording.rows("packets") or not recording.rows("control_packets"):
        return NO_PACKETS
    return None


def attribution_by_qos(table: pl.DataFrame) -> pl.DataFrame:
    """Mean of each part over the measurement, for each QoS level: ``part``, ``mean_ms``, ``share_percent``.

    Means are those of ``messages`` deliveries; there were ``delivered``.
    """
    return _means(table.filter(pl.col("phase") == "measurement"), ["qos"])


def attribution_by_band(table: pl.DataFrame) -> pl.DataFrame:
    """The same by bands of the latency: ``band`` is ``p0–50``, ``p50–90``, ``p90–99`` or ``p99–100``."""
    measured = table.filter(pl.col("phase") == "measurement")
    rank = (pl.col("latency_ns").rank("ordinal") - 1) / pl.len()
    band = pl.lit(None, pl.String)
    for low, high in reversed(BANDS):
        band = pl.when(pl.col("_rank") < high / 100).then(pl.lit(f"p{low}–{high}")).otherwise(band)
    ranked = measured.with_columns(_rank=rank.over("qos")).with_columns(band=band)
    order = {f"p{low}–{high}": place for place, (low, high) in enumerate(BANDS)}
    return _means(ranked, ["qos", "band"]).sort(
        "qos", pl.col("band").replace_strict(order, return_dtype=pl.Int64), maintain_order=True)


def _means(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    known = pl.col("adjusted_ns").is_not_null()
    means = table.group_by(keys).agg(
        *(pl.col(part).mean() / 1e6 for part in PARTS), latency_ms=pl.col("latency_ns").filter(known).mean() / 1e6,
        messages=known.sum().cast(pl.Int64), delivered=pl.len().cast(pl.Int64),
    ).filter(pl.col("messages") > 0)
    return (
        means.unpivot(index=[*keys, "latency_ms", "messages", "delivered"], on=list(PARTS), variable_name="part",
                      value_name="mean_ms")
        .with_columns(share_percent=100 * pl.col("mean_ms") / pl.col("latency_ms"))
        .sort(*keys, maintain_order=True)
        .select(*keys, "messages", "delivered", "part", "mean_ms", "share_percent")
    )
