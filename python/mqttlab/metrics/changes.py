"""What followed from each event of a scenario: what did not arrive, when messages flowed again, and when clients were
connected again.

An event is told from its begin to its end; what follows from it is counted until the next event that begins after its
end, else until the end of the measurement. Events that overlap share what follows: nobody can tell them apart. Clients
that lost their connection may come back in the cool-down, and a backlog may arrive in it.

A *backlog* is what was due before the event's end, had not come by then, and was later than messages of its flow were
before the events, or did not come at all. So messages that are on their way at any instant are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import EXPECTED, has_messages
from mqttlab.metrics.flow import FLOW, numbered
from mqttlab.metrics.window import TIME_MAX_NS, measurement
from mqttlab.plan.events import Change
from mqttlab.recording import Recording

NS_PER_S = 1e9
# A row each on a page.
CHANGES_MAX = 50
# What a valid live run may add to a latency by itself: senders may be 1 ms late, and each of the two ways of a message
# 2 % of the delay. A message that took longer by no more than that says nothing of the event.
LATE_BY_MIN_NS = 1_000_000
LATE_BY_MIN_PERCENT = 5
COLUMNS: dict[str, type[pl.DataType]] = {
    "event": pl.String, "change_at_s": pl.Float64, "change_lasted_s": pl.Float64,
    "change_connections_lost": pl.Int64, "change_reconnected_s_p50": pl.Float64, "change_reconnected_s_max": pl.Float64,
    "change_not_reconnected": pl.Int64, "change_backlog": pl.Int64, "change_backlog_through_s": pl.Float64,
    "change_backlog_undelivered": pl.Int64, "change_undelivered": pl.Int64, "change_late": pl.Int64,
    "change_silence_s": pl.Float64, "change_flow_back_s_p50": pl.Float64, "change_flow_back_s_max": pl.Float64,
    "change_flows_not_back": pl.Int64, "change_duplicates": pl.Int64, "change_connects_per_s_max": pl.Int64,
    "change_waiting_max": pl.Int64, "change_server_cpu_percent_max": pl.Float64,
    "change_wills": pl.Int64, "change_will_s_p50": pl.Float64, "change_will_s_max": pl.Float64,
    "change_retained_again": pl.Int64,
}
IS_LATE = pl.col("came") - pl.col("due") > pl.col("usual")
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
    messages = _read(recording, taken[0])
    for place, change in enumerate(taken[:CHANGES_MAX]):
        named[change.name] = named.get(change.name, 0) + 1
        name = change.name if named[change.name] == 1 else f"{change.name} ({named[change.name]})"
        following = _following(taken, place)
        until = following or _last(recording, change)
        rows.append({
            "event": name, "change_at_s": (change.at_ns - measurement(recording).from_ns) / NS_PER_S,
            "change_lasted_s": None if change.until_ns is None else (change.until_ns - change.at_ns) / NS_PER_S,
            **_of_change(recording, messages, change, until, following or TIME_MAX_NS)})
    return pl.DataFrame(rows, schema=COLUMNS)


def _of_change(
    recording: Recording, messages: _Messages | None, change: Change, until: int, back_until: int,
) -> dict[str, Any]:
    lost, found = _connections(recording, change, until, back_until)
    found |= {"change_server_cpu_percent_max": _processor(recording, change, until)}
    if messages is not None:
        found |= _flows(messages, change, until) | _backlog(messages, change)
        found |= _wills(recording, messages, lost, change, until)
        found |= {"change_retained_again": _retained(messages, lost, change, until)} if lost.height else {}
    return found


def _ended(change: Change) -> int:
    return change.at_ns if change.until_ns is None else change.until_ns


def _following(taken: Sequence[Change], place: int) -> int | None:
    """When the next change after this one's end took place; ``None`` after the last one."""
    ended = _ended(taken[place])
    return next((change.at_ns for change in taken[place + 1:] if change.at_ns >= ended), None)


def _last(recording: Recording, change: Change) -> int:
    """Until when something follows from a change that none follows: the end of the measurement, not before its own."""
    last = measurement(recording).until_ns
    return max(last, _ended(change)) if last < TIME_MAX_NS else TIME_MAX_NS


@dataclass(frozen=True, kw_only=True)
class _Messages:
    """What is asked of messages for every event, in the order of time."""

    due: pl.DataFrame
    """By the time when they were due; ``usual`` is the latency (ns) up to which one is not late, null where nothing
    came before the first event."""
    came: pl.Series
    """When first deliveries came."""
    has_usual: bool
    """Whether anything was due and came in the measurement before the first event."""
    wills: pl.Series
    """When wills came."""
    retained: pl.DataFrame
    """Copies that the server sent from its store: when, and to whom."""

    def within(self, begin: int, until: int) -> pl.DataFrame:
        """What was due then."""
        return _between(self.due, "due", begin, until)


def _read(recording: Recording, first: Change) -> _Messages | None:
    if not has_messages(recording) or sums.is_summed(recording):
        return None
    rows = recording.collect(numbered(recording.scan("messages"), recording).select(
        "publisher", "subscriber", *FLOW, "retained", pl.col("fate").cast(pl.String).cast(pl.Categorical),
        due=pl.col("intended_ns").cast(pl.Int64), came=pl.col("received_ns").cast(pl.Int64)))
    delivered = rows.filter(pl.col("fate") == "delivered")
    usual = _usual(delivered.filter(pl.col("due") >= measurement(recording).from_ns, pl.col("came") < first.at_ns))
    rows = rows.join(usual, on=FLOW, how="left", nulls_equal=True).with_columns(
        pl.col("usual").fill_null(pl.lit(usual["usual"].max(), dtype=pl.Int64)))
    return _Messages(
        due=rows.filter(pl.col("due").is_not_null()).sort("due"), came=delivered["came"].drop_nulls().sort(),
        has_usual=usual.height > 0,
        wills=rows.filter(pl.col("fate") == "will", ~pl.col("retained"))["came"].drop_nulls().sort(),
        retained=rows.filter(pl.col("fate") == "retained").select("came", "subscriber").drop_nulls().sort("came"))


def _usual(before: pl.DataFrame) -> pl.DataFrame:
    """Of each flow the latency (ns) up to which a message is not late, by what came of it before the first event."""
    longest = before.group_by(FLOW).agg(usual=(pl.col("came") - pl.col("due")).max()).drop_nulls("usual")
    grace = pl.max_horizontal(pl.lit(LATE_BY_MIN_NS), pl.col("usual") * LATE_BY_MIN_PERCENT // 100)
    return longest.with_columns(pl.col("usual") + grace)


def _between(rows: pl.DataFrame, time: str, begin: int, until: int) -> pl.DataFrame:
    """The rows of this time, without its end; they are in its order."""
    low, high = (_place(rows[time], at, "left") for at in (begin, until))
    return rows[low:high]


def _place(times: pl.Series, at: int, side: Literal["left", "right"]) -> int:
    return int(times.search_sorted(at, side))


def _flows(messages: _Messages, change: Change, until: int) -> dict[str, float | int | None]:
    rows, ended = messages.within(change.at_ns, until), _ended(change)
    late = (pl.col("fate") == "delivered") & IS_LATE
    counts = rows.select(
        undelivered=NOT_DELIVERED.sum().cast(pl.Int64), late=late.sum().cast(pl.Int64),
        duplicates=(pl.col("fate") == "duplicate").sum().cast(pl.Int64))
    back = _between(rows, "due", ended, until).filter(EXPECTED).group_by("publisher", "subscriber").agg(
        back=(pl.col("came").filter(pl.col("fate") == "delivered").min() - ended) / NS_PER_S)["back"]
    return {
        "change_undelivered": counts["undelivered"][0],
        "change_late": counts["late"][0] if messages.has_usual else None,
        "change_duplicates": counts["duplicates"][0],
        "change_waiting_max": _most_waiting(messages, change.at_ns, until),
        "change_silence_s": _silence(messages.came, change.at_ns, until),
        **_quantiles("change_flow_back_s", back), "change_flows_not_back": back.null_count()}


def _backlog(messages: _Messages, change: Change) -> dict[str, float | int | None]:
    """What was due before the event's end and had not come by then, later than its flow usually is, and when the last
    of it came."""
    ended = _ended(change)
    came = messages.within(0, ended).filter(
        pl.col("fate") == "delivered", pl.col("came") > ended, IS_LATE | pl.col("usual").is_null())["came"]
    missing = messages.within(change.at_ns, ended).filter(NOT_DELIVERED).height
    last = came.max()
    return {"change_backlog": len(came) + missing, "change_backlog_undelivered": missing,
            "change_backlog_through_s": (last - ended) / NS_PER_S if isinstance(last, int) and not missing else None}


def _silence(came: pl.Series, at: int, until: int) -> float | None:
    """The longest time without a delivery, from the last one before the event until the end of its window."""
    before, end = _place(came, at, "right"), _place(came, until, "left")
    times = came[max(0, before - 1):max(before, end)]
    last = pl.Series("came", [] if until == TIME_MAX_NS else [until], dtype=pl.Int64)
    longest = pl.concat([times, last]).diff().max() if len(times) else None
    return float(longest) / NS_PER_S if isinstance(longest, int) else None


def _most_waiting(messages: _Messages, at: int, until: int) -> int:
    """How many deliveries that came in the end were due at most and had not come, at an instant of the window."""
    due = messages.due.filter(pl.col("fate") == "delivered")["due"]
    begun = _place(due, at, "right")
    # It grows only when messages are due.
    times = pl.concat([pl.Series("due", [at], dtype=pl.Int64), due[begun:max(begun, _place(due, until, "left"))]])
    begun_by, come_by = (all_.search_sorted(times, "right").cast(pl.Int64) for all_ in (due, messages.came))
    most = (begun_by - come_by).max()
    return int(most) if isinstance(most, int) else 0


def _wills(recording: Recording, messages: _Messages, lost: pl.DataFrame, change: Change, until: int) -> dict[str, Any]:
    """The wills that came, where one of those whose connection ended has a will."""
    first, with_will = 0, set[int]()
    for group in recording.plan["groups"]:
        protocol = cast("dict[str, Any]", group).get("protocol") or {}
        if any(spoken.get("will") is not None for spoken in protocol.values()):
            with_will |= set(range(first, first + group["count"]))
        first += group["count"]
    if with_will.isdisjoint(lost["client"]):
        return {}
    low, high = (_place(messages.wills, time, "left") for time in (change.at_ns, until))
    times = (messages.wills[low:high] - change.at_ns) / NS_PER_S
    return {"change_wills": len(times), **_quantiles("change_will_s", times)}


def _retained(messages: _Messages, lost: pl.DataFrame, change: Change, until: int) -> int:
    """What the server sent from its store to those whose connection had ended, and who subscribed again."""
    copies = _between(messages.retained, "came", change.at_ns, until)
    return copies.filter(pl.col("subscriber").is_in(lost["client"].to_list())).height


def _processor(recording: Recording, change: Change, until: int) -> float | None:
    """The busiest time between two samples of a server that overlaps the window, in percent of one processor."""
    samples = recording.resources
    if samples.is_empty():
        return None
    used = (pl.col("cpu_user_s") + pl.col("cpu_system_s")).diff().over("name")
    length = pl.col("at_ns").cast(pl.Int64).diff().over("name")
    steps = samples.filter(pl.col("process") == "server").sort("name", "at_ns").select(
        at=pl.col("at_ns").cast(pl.Int64), used=used, length=length).drop_nulls()
    # A server that started again counts anew.
    steps = steps.filter(pl.col("used") >= 0, pl.col("at") > change.at_ns, pl.col("at") - pl.col("length") < until)
    most = steps.select((100 * NS_PER_S * pl.col("used") / pl.col("length")).max()).item() if steps.height else None
    return None if most is None else float(most)


def _quantiles(name: str, times: pl.Series) -> dict[str, float | None]:
    """The median over those that came back, and the last one: none where one did not come back."""
    known = times.drop_nulls()
    last = known.max() if times.null_count() == 0 else None
    return {f"{name}_p50": known.quantile(0.5, "linear"), f"{name}_max": last if isinstance(last, float) else None}


def _connections(
    recording: Recording, change: Change, until: int, back_until: int,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Clients whose connection ended unplanned, or by the event, and when they were connected again."""
    events = recording.events
    if events.is_empty():
        return pl.DataFrame(schema={"client": pl.UInt32}), {}
    rows = events.filter(pl.col("client").is_not_null()).select(
        "client", kind=pl.col("kind").cast(pl.String), at=pl.col("at_ns").cast(pl.Int64))
    rows = rows.filter(pl.col("at").is_between(change.at_ns, back_until, closed="left"))
    left = pl.DataFrame({"client": change.left}, schema={"client": rows.schema["client"]}).with_columns(
        at=pl.lit(change.at_ns, dtype=pl.Int64))
    ended = rows.filter(pl.col("kind") == "disconnect", pl.col("at") < until).select("client", "at")
    lost = pl.concat([left, ended]).group_by("client").agg(lost=pl.col("at").min())
    connected = rows.filter(pl.col("kind") == "connack").select("client", back="at")
    first = lost.join(connected, on="client").filter(pl.col("back") > pl.col("lost")).group_by("client").agg(
        pl.col("back").min())
    times = lost.join(first, on="client", how="left").select(
        ((pl.col("back") - _ended(change)).clip(lower_bound=0) / NS_PER_S).alias("back"))["back"]
    within = connected.filter(pl.col("back") < until)["back"]
    return lost, {
        "change_connections_lost": lost.height,
        "change_connects_per_s_max": _most_within_a_second(within),
        **_quantiles("change_reconnected_s", times), "change_not_reconnected": times.null_count()}


def _most_within_a_second(times: pl.Series) -> int:
    """How many of these instants (ns) lie at most within one second, wherever it begins."""
    sorted_ = times.sort()
    first = sorted_.search_sorted(sorted_ - int(NS_PER_S), side="right")
    most = (pl.int_range(1, len(sorted_) + 1, eager=True) - first).max() if len(sorted_) else 0
    return int(most) if isinstance(most, int) else 0
