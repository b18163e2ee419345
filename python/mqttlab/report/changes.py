"""The events of a run's scenario: told in words, and marked in figures over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mqttlab import metrics
from mqttlab.digits import duration
from mqttlab.figures.drawing import Figure
from mqttlab.figures.marks import Mark, mark
from mqttlab.foreign import visible
from mqttlab.metrics.changes import CHANGES_MAX
from mqttlab.plan.events import Change
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report import stage_marks

NS_PER_S = 1e9
TOLD_MAX = 3
# What figures over time call their horizontal axis, and whether it begins with the run or with the measurement.
RUN_TIME = "run time"
MEASURED_TIME = "time of intended sending"


def marked(recording: Recording, figures: Sequence[Figure]) -> list[Figure]:
    """The same figures, those over time with the events that took place and the borders of stages."""
    if not recording.changes and not metrics.stages(recording):
        return list(figures)
    return [_marked(recording, figure) for figure in figures]


def _marked(recording: Recording, figure: Figure) -> Figure:
    title = str(figure.layout["xaxis"].get("title", {}).get("text", ""))
    if title.startswith(RUN_TIME):
        begin = 0.0
    elif title.startswith(MEASURED_TIME):
        begin = metrics.measurement_began_ns(recording) / NS_PER_S
    else:
        return figure
    return mark(mark(figure, stage_marks.marks(recording, begin)), marks(recording.changes, begin))


def marks(taken: Sequence[Change], begin_s: float = 0.0) -> list[Mark]:
    """Events for a figure whose time begins so long after the run's."""
    return [Mark(name=visible(change.name), at_s=change.at_ns / NS_PER_S - begin_s,
                 until_s=None if change.until_ns is None else change.until_ns / NS_PER_S - begin_s)
            for change in taken]


def sentence(recording: Recording) -> str:
    """The events in a line: when, what, for how long, and how long after its end clients and messages were back; empty
    without any."""
    taken = recording.changes
    if not taken:
        return ""
    rows: Iterable[dict[str, Any]] = metrics.changes(recording).head(TOLD_MAX).rows(named=True)
    told = [_told(recording, change, row) for change, row in zip(taken, rows, strict=False)]
    more = len(taken) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more > 0 else "")


def _told(recording: Recording, change: Change, row: dict[str, Any]) -> str:
    at = (change.at_ns - metrics.measurement(recording).from_ns) / NS_PER_S
    words = f"at {_seconds(at)} {visible(change.name)}"
    if change.until_ns is not None:
        words += f" for {_seconds((change.until_ns - change.at_ns) / NS_PER_S)}"
    end = "it" if change.until_ns is None else "its end"
    return ", ".join([words, *_connections(row, end), *_backlog(row, end)])


def _connections(row: Mapping[str, Any], end: str) -> list[str]:
    """When all were connected again that lost their connection, or how many were; nothing where none did."""
    lost, last = row["change_connections_lost"], row["change_reconnected_s_max"]
    if not lost:
        return []
    if last is None:
        return [f"{lost - row['change_not_reconnected']:,} of {lost:,} connected again"]
    return [f"{f'all {lost:,}' if lost > 1 else '1 client'} connected again {_after(last, end)}"]


def _backlog(row: Mapping[str, Any], end: str) -> list[str]:
    """When the last came of what had waited, or how much never came; nothing where nothing waited."""
    backlog, missing, through = (
        row[name] for name in ("change_backlog", "change_backlog_undelivered", "change_backlog_through_s"))
    if not backlog:
        return []
    if not missing:
        return [f"the backlog was through {_after(through, end)}"]
    if missing == backlog:
        # Whether they waited, or were lost before the end, is not known.
        return [f"{counted(missing, 'message')} due before {end} not delivered"]
    return [f"{missing:,} of {counted(backlog, 'backlog message')} not delivered"]


def _after(seconds: float, end: str) -> str:
    if not seconds:
        return f"by {end}"
    return f"within 1 ms of {end}" if seconds < 0.001 else f"{_seconds(seconds)} after {end}"


def _seconds(value: float) -> str:
    """A time of a run: to a tenth of a second, to a millisecond below one."""
    return duration(round(value, 1 if abs(value) >= 1 else 3) * NS_PER_S)


def left_out(recording: Recording) -> str:
    """What is said of events that the table does not have."""
    more = len(recording.changes) - CHANGES_MAX
    return f"The table has the first {CHANGES_MAX} of {len(recording.changes):,} events." if more > 0 else ""


def document(recording: Recording) -> list[dict[str, Any]]:
    """The events as JSON has them: the table's rows."""
    return metrics.changes(recording).to_dicts()
