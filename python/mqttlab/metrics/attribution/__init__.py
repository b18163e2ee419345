"""Where each message's time went: its latency, split into parts that are never negative and add up to it.

```text
  intended ─schedule─ sent ─session─ written ─nagle/socket─ first byte on the link ─(again)─ queue ─ wire ─► broker
     ─ handshake ─ window ─ nagle/socket ─ broker ─ first byte on the link ─(again)─ queue ─ wire ─► client
     ─ release ─ received
```

Where an end speaks MQTT-SN, its hop to the gateway lies before or behind this: sleep, registration, retry, queue, wire,
and the gateway's own time.

The engine's finalising pass follows every delivery and stores its parts (``attribution``) and what they were read from
(``legs``); this module presents them and takes means. Nothing here knows who made the recording; where no packets were
recorded, the parts are null. Where clients have seen their packets and nobody has recorded frames, network and broker
are one part, ``undivided``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from mqttlab.metrics.attribution import means
from mqttlab.metrics.attribution.captured_parts import CAPTURED_WORDS, captured_parts, part_titles
from mqttlab.metrics.attribution.coverage import Coverage
from mqttlab.metrics.attribution.evidence import Evidence, evidence
from mqttlab.metrics.attribution.intervals import intervals
from mqttlab.metrics.attribution.silent import silent_groups
from mqttlab.metrics.catalogue import PARTS
from mqttlab.metrics.flow import FLOW, by_name, numbered
from mqttlab.metrics.window import MEASURED, is_measured
from mqttlab.recording import Recording

__all__ = ["ADDED", "CAPTURED_WORDS", "Coverage", "Evidence", "attribution", "attribution_by_band",
           "attribution_by_qos", "attribution_coverage", "attribution_gap", "attribution_parts", "captured_parts",
           "evidence", "explainable", "has_deliveries", "intervals", "part_titles", "silent_groups"]

WORDS = ("seen_by", "unattributed")
ADDED = (*PARTS, "adjusted_ns", "legs", *WORDS)
NO_PACKETS = ("packets were not recorded, because the scenario did not ask for them, or no frames were captured and "
              "the clients do not say what they know")
# Rows of two tables beside each other: polars reads ahead, and holds what it has read.
SUMMED_AT_ONCE = 500_000
COLUMNS = ("publisher", "sequence", "topic", "subscriber", *FLOW[:-1], "phase", "qos", "intended_ns", "received_ns",
           "latency_ns")
# The deliveries of which the engine stores parts: with a latency, and traced to their message for certain.
ATTRIBUTED = (
    pl.col("fate") == "delivered", pl.col("intended_ns").is_not_null(), pl.col("received_ns").is_not_null(),
    pl.col("identified").ne_missing("ambiguous"))
STORED = (pl.col(*PARTS, "adjusted_ns"), pl.col("legs").cast(pl.Int64), pl.col(*WORDS).cast(pl.String))


def attribution(recording: Recording) -> pl.DataFrame:
    """One row per delivered message and receiver, in the order of the recording.

    Columns: who and when, ``latency_ns``, the parts, which add up to it, ``adjusted_ns`` (by how much in all the
    recorded instants had to be moved for that), ``legs`` (1, and 1 more for each relay), ``seen_by`` (what the parts
    were read from: ``capture``, ``client`` or ``both``), and ``unattributed``: why the parts are null, where they are.
    Wide, and as long as the recording: who writes it down takes :func:`attribution_parts`.
    """
    return recording.derived("attribution", _attribution)


def _attribution(recording: Recording) -> pl.DataFrame:
    if not recording.rows("messages"):
        return pl.DataFrame()
    if attribution_gap(recording) is None:
        stored = recording.scan_summary("attribution")
        return recording.collect(pl.concat([_who(recording), stored.select(STORED)], how="horizontal"))
    nothing = pl.lit(None, pl.Int64)
    empty = [nothing.alias(name) for name in ADDED if name not in WORDS]
    return recording.collect(_who(recording).with_columns(
        *empty, seen_by=pl.lit(None, pl.String), unattributed=pl.lit(NO_PACKETS)))


def attribution_parts(recording: Recording, rows: int) -> Iterator[pl.LazyFrame]:
    """:func:`attribution` in parts of so many rows, each to be collected.

    Of two tables beside each other polars holds what it has read of the one until the other has come as far, which may
    be much of it. Only where :func:`attribution_gap` is ``None``.
    """
    stored, first = recording.scan_summary("attribution"), 0
    for begin, length in recording.ranges(stored, rows):
        last = recording.collect(stored.slice(begin + length - 1, 1).select("row")).item() if length else -1
        part = stored.slice(begin, length).select(STORED)
        yield pl.concat([_who(recording, first, last + 1 - first), part], how="horizontal")
        first = last + 1


def _who(recording: Recording, first: int = 0, length: int | None = None) -> pl.LazyFrame:
    """The deliveries of all messages, or of so many rows of them, and whose they are."""
    told = numbered(_delivered(recording, first, length), recording)
    return told.with_columns(by_name(recording)).select(COLUMNS)


def has_deliveries(recording: Recording) -> bool:
    """Whether :func:`attribution` has a row."""
    return _deliveries(recording) > 0


def _deliveries(recording: Recording) -> int:
    if not recording.rows("messages"):
        return 0
    counted = (recording.scan_summary("attribution") if attribution_gap(recording) is None
               else _delivered(recording)).select(pl.len())
    return int(recording.collect(counted).item())


def explainable(recording: Recording) -> pl.LazyFrame:
    """The rows of :func:`attribution` that frames tell of from end to end, and of them only what chooses some.

    Columns: ``leg`` (the row's number), ``publisher``, ``sequence``, ``subscriber``, ``latency_ns``; nothing is read
    yet. Only where :func:`attribution_gap` is ``None``.
    """
    table = _delivered(recording).select("publisher", "sequence", "subscriber", "latency_ns")
    seen_by = recording.scan_summary("attribution").select(pl.col("seen_by").cast(pl.String))
    both = pl.concat([table, seen_by], how="horizontal").with_row_index("leg")
    return both.filter((pl.col("seen_by") == "capture").fill_null(False)).drop("seen_by")


def _delivered(recording: Recording, first: int = 0, length: int | None = None) -> pl.LazyFrame:
    return recording.scan("messages").slice(first, length).filter(*ATTRIBUTED)


def attribution_coverage(recording: Recording) -> Coverage:
    """How many of the first deliveries of the whole run are attributed, and why the others are not."""
    if not recording.rows("messages"):
        return Coverage(0, 0, {})
    told = (recording.scan_summary("attribution").select(pl.col(*WORDS).cast(pl.String))
            if attribution_gap(recording) is None else
            _delivered(recording).with_columns(
                seen_by=pl.lit(None, pl.String), unattributed=pl.lit(NO_PACKETS)).select(WORDS))
    of_clients = pl.col("seen_by").is_in(["client", "both"]).sum()
    counted = recording.collect(told.group_by("unattributed").agg(pl.len(), of_clients.alias("of_clients"))).sort(
        "len", "unattributed", descending=[True, False])
    reasons = {reason: count for reason, count, _ in counted.iter_rows() if reason is not None}
    height = int(counted["len"].sum())
    arrived = int(recording.collect(
        recording.scan("messages").select((pl.col("fate") == "delivered").sum())).item())
    attributed = height - sum(reasons.values())
    if arrived > height:
        reasons["their intended time is not known"] = arrived - height
    return Coverage(arrived, attributed, reasons, by_clients=int(counted["of_clients"].sum()))


def attribution_gap(recording: Recording) -> str | None:
    """Why nothing can be said about where the time went; ``None`` when it can."""
    if not recording.rows("messages"):
        return "no message was recorded"
    if not recording.rows("control_packets") or not (recording.rows("packets") or recording.has_clients_packets):
        return NO_PACKETS
    return None


def attribution_by_qos(of: Recording | pl.DataFrame) -> pl.DataFrame:
    """Mean of each part over the measurement, for each QoS level: ``part``, ``mean_ms``, ``share_percent``.

    Means are those of ``messages`` deliveries; there were ``delivered``.

    Args:
        of: a recording, of which only what is summed up is read; or rows of :func:`attribution`.
    """
    summed = _summed_up(of)
    return summed if summed.is_empty() else means.by_qos(summed)


def attribution_by_band(of: Recording | pl.DataFrame) -> pl.DataFrame:
    """The same by bands of the latency: ``band`` is ``p0–50``, ``p50–90``, ``p90–99`` or ``p99–100``."""
    summed = _summed_up(of)
    return summed if summed.is_empty() else means.by_band(summed)


def _summed_up(of: Recording | pl.DataFrame) -> pl.DataFrame:
    if isinstance(of, Recording):
        return of.derived("attribution by qos and band", _sums)
    rows = of.with_columns((MEASURED & pl.col("latency_ns").is_not_null()).alias("measured"))
    return means.sums(rows.with_columns(_bands(rows)).lazy().filter("measured")).collect()


def _sums(recording: Recording) -> pl.DataFrame:
    if attribution_gap(recording) is not None:
        return pl.DataFrame()
    # Bands need all latencies at once, and nothing else.
    messages = recording.collect(_delivered(recording).select(
        "qos", is_measured(recording).alias("measured")))
    # Of what is read no second copy is kept.
    messages = messages.with_columns(latency_ns=pl.Series(recording.read_column(
        "messages", lambda first, length: _delivered(recording, first, length).select("latency_ns"))))
    # A delivery before its sending, by clocks that differ, has no latency to divide.
    has_latency = pl.Series(~np.isnan(messages["latency_ns"].to_numpy()))
    messages = messages.with_columns(measured=pl.col("measured") & has_latency)
    messages = messages.with_columns(_bands(messages))
    stored, summed = recording.scan_summary("attribution").select(*PARTS, "adjusted_ns"), []
    for begin, length in recording.ranges(stored, SUMMED_AT_ONCE):
        rows = [messages.lazy().slice(begin, length), stored.slice(begin, length)]
        summed.append(recording.collect(means.sums(pl.concat(rows, how="horizontal").filter("measured"))))
    return pl.concat(summed).group_by("qos", "band").agg(pl.all().sum())


def _bands(table: pl.DataFrame) -> pl.Series:
    """Of each row its ``band`` among the measured ones of its QoS level; of others 0."""
    found, latencies = np.zeros(table.height, np.uint8), table["latency_ns"].to_numpy()
    for qos in table["qos"].unique():
        rows = table["measured"] & table["qos"].eq_missing(qos)
        if rows.all():
            return pl.Series("band", means.bands(latencies))
        which = rows.to_numpy()
        found[which] = means.bands(latencies[which])
    return pl.Series("band", found)
