"""What followed from each event of a scenario: what did not arrive, when messages flowed again, and when clients were
connected again.

An event is told from its begin to its end; what follows from it is counted until the next event that begins after its
end, else until the end of the measurement. Events that overlap share what follows: nobody can tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import EXPECTED, has_messages
from mqttlab.metrics.window import TIME_MAX_NS, measurement
from mqttlab.plan.events import Change
from mqttlab.recording import Recording

NS_PER_S = 1e9
# Each is a look at all messages.
CHANGES_MAX = 50
COLUMNS: dict[str, type[pl.DataType]] = {
    "event": pl.String, "change_at_s": pl.Float64, "change_lasted_s": pl.Float64, "change_silence_s": pl.Float64,
    "change_flow_back_s_p50": pl.Float64, "change_flow_back_s_max": pl.Float64, "change_flows_not_back": pl.Int64,
    "change_undelivered": pl.Int64, "change_late": pl.Int64, "change_duplicates": pl.Int64,
    "change_connections_lost": pl.Int64, "change_connects_per_s_max": pl.Int64,
    "change_reconnected_s_p50": pl.Float64, "change_reconnected_s_max": pl.Float64,
    "change_not_reconnected": pl.Int64,
}
NOT_DELIVERED = (EXPECTED & (pl.col("fate") != "delivered")) | (pl.col("fate") == "unsent")


def changes(recording: Recording) -> pl.DataFrame:
    """One row for each event that took place and ended no other, in the order of time, up to ``CHANGES_MAX``: its name
    in ``event`` (a name's second row has ``(2)``), and the metrics of ``CHANGES``. Empty without events."""
    taken = recording.changes
    if not taken:
        return pl.DataFrame(schema=COLUMNS)
    found: pl.DataFrame = recording.derived("changes", _all)
    return found


def _all(recording: Recording) -> pl.DataFrame:
    taken = recording.changes
    named: dict[str, int] = {}
    rows = []
    usual = _usual(recording, taken[0])
    for place, change in enumerate(taken[:CHANGES_MAX]):
        named[change.name] = named.get(change.name, 0) + 1
        name = change.name if named[change.name] == 1 else f"{change.name} ({named[change.name]})"
        until = _until(recording, taken, place)
        rows.append({
            "event": name, "change_at_s": (change.at_ns - measurement(recording).from_ns) / NS_PER_S,
            "change_lasted_s": None if change.until_ns is None else (change.until_ns - change.at_ns) / NS_PER_S,
            **_messages(recording, change, until, usual), **_connections(recording, change, until)})
    return pl.DataFrame(rows, schema=COLUMNS)


def _ended(change: Change) -> int:
    return change.at_ns if change.until_ns is None else change.until_ns


def _until(recording: Recording, taken: Sequence[Change], place: int) -> int:
    """Until when something follows from a change: the next one after its end, or the end of the measurement."""
    ended = _ended(taken[place])
    following = (change.at_ns for change in taken[place + 1:] if change.at_ns >= ended)
    last = measurement(recording).until_ns
    return next(following, max(last, ended) if last < TIME_MAX_NS else TIME_MAX_NS)


def _rows(recording: Recording) -> pl.LazyFrame:
    return recording.scan("messages").select(
        "publisher", "subscriber", pl.col("fate").cast(pl.String),
        due=pl.col("intended_ns").cast(pl.Int64), came=pl.col("received_ns").cast(pl.Int64))


def _usual(recording: Recording, first: Change) -> int | None:
    """The largest latency, in ns, of what was due and came in the measurement before the first event; none without."""
    if not has_messages(recording) or sums.is_summed(recording):
        return None
    before = (pl.col("due") >= measurement(recording).from_ns) & (pl.col("came") < first.at_ns)
    rows = _rows(recording).filter(before, pl.col("fate") == "delivered")
    found = recording.collect(rows.select((pl.col("came") - pl.col("due")).max()))["came"][0]
    return None if found is None else int(found)


def _messages(
    recording: Recording, change: Change, until: int, usual: int | None,
) -> dict[str, float | int | None]:
    if not has_messages(recording) or sums.is_summed(recording):
        return {}
    rows = _rows(recording)
    ended = _ended(change)
    late = (pl.col("fate") == "delivered") & (pl.col("came") - pl.col("due") > pl.lit(usual, dtype=pl.Int64))
    counts = recording.collect(rows.filter(pl.col("due").is_between(change.at_ns, until, closed="left")).select(
        undelivered=NOT_DELIVERED.sum().cast(pl.Int64), late=late.sum().cast(pl.Int64),
        duplicates=(pl.col("fate") == "duplicate").sum().cast(pl.Int64)))
    flows = recording.collect(
        rows.filter(EXPECTED, pl.col("due").is_between(ended, until, closed="left"))
        .group_by("publisher", "subscriber")
        .agg(back=(pl.col("came").filter(pl.col("fate") == "delivered").min() - ended) / NS_PER_S))
    back = flows["back"]
    return {
        "change_undelivered": counts["undelivered"][0], "change_late": None if usual is None else counts["late"][0],
        "change_duplicates": counts["duplicates"][0],
        "change_silence_s": _silence(recording, rows, change.at_ns, until),
        **_quantiles("change_flow_back_s", back), "change_flows_not_back": back.null_count()}


def _silence(recording: Recording, rows: pl.LazyFrame, at: int, until: int) -> float | None:
    """The longest time without a delivery, from the last one before the event until the end of its window."""
    came = rows.filter(pl.col("fate") == "delivered").select("came")
    before = came.filter(pl.col("came") <= at).max()
    within = came.filter(pl.col("came").is_between(at, until, closed="none"))
    times = recording.collect(pl.concat([before, within])).drop_nulls().sort("came")["came"]
    end = pl.Series("came", [] if until == TIME_MAX_NS else [until], dtype=pl.Int64)
    longest = pl.concat([times, end]).diff().max() if len(times) else None
    return float(longest) / NS_PER_S if isinstance(longest, int) else None


def _quantiles(name: str, times: pl.Series) -> dict[str, float | None]:
    """The median over those that came back, and the last one: none where one did not come back."""
    known = times.drop_nulls()
    last = known.max() if times.null_count() == 0 else None
    return {f"{name}_p50": known.quantile(0.5, "linear"), f"{name}_max": last if isinstance(last, float) else None}


def _connections(recording: Recording, change: Change, until: int) -> dict[str, float | int | None]:
    """Clients whose connection ended, planned or not, and when they were connected again."""
    events = recording.events
    if events.is_empty():
        return {}
    rows = events.filter(pl.col("client").is_not_null()).select(
        "client", kind=pl.col("kind").cast(pl.String), at=pl.col("at_ns").cast(pl.Int64))
    rows = rows.filter(pl.col("at").is_between(change.at_ns, until, closed="left"))
    left = pl.DataFrame({"client": change.left}, schema={"client": rows.schema["client"]}).with_columns(
        at=pl.lit(change.at_ns, dtype=pl.Int64))
    ended = rows.filter(pl.col("kind").is_in(["disconnect", "close"])).select("client", "at")
    lost = pl.concat([left, ended]).group_by("client").agg(lost=pl.col("at").min())
    connected = rows.filter(pl.col("kind") == "connack").select("client", back="at")
    first = lost.join(connected, on="client").filter(pl.col("back") > pl.col("lost")).group_by("client").agg(
        pl.col("back").min())
    times = lost.join(first, on="client", how="left").select(
        ((pl.col("back") - _ended(change)).clip(lower_bound=0) / NS_PER_S).alias("back"))["back"]
    return {"change_connections_lost": lost.height,
            "change_connects_per_s_max": _most_within_a_second(connected["back"]),
            **_quantiles("change_reconnected_s", times), "change_not_reconnected": times.null_count()}


def _most_within_a_second(times: pl.Series) -> int:
    """How many of these instants (ns) lie at most within one second, wherever it begins."""
    sorted_ = times.sort()
    first = sorted_.search_sorted(sorted_ - int(NS_PER_S), side="right")
    most = (pl.int_range(1, len(sorted_) + 1, eager=True) - first).max() if len(sorted_) else 0
    return int(most) if isinstance(most, int) else 0
