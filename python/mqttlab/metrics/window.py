"""From when to when the measurement went: one place says it to every metric.

A complete run's layout has both ends. With ``sim.detect_transient`` the measurement begins where the engine found the
flow steady, which is later than where the warm-up was planned to end. An import's evidence has no end of its own: the
window is as long as the evidence. A run that was cut short was measured from when its first message was due until the
last instant of its messages, and at most for as long as was planned.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mqttlab.metrics import sums
from mqttlab.recording import Recording

# Of a signed column.
TIME_MAX_NS = 2**63 - 1
NS_PER_S = 1e9


@dataclass(frozen=True, kw_only=True)
class Window:
    """A stretch of run time, its end not in it."""

    from_ns: int
    until_ns: int
    """After everything that was recorded, where nothing says when it ended."""
    seconds: float
    """Its length, by which rates are divided."""

    def holds(self, instant: pl.Expr) -> pl.Expr:
        """Whether something happened within it."""
        return instant.is_between(self.from_ns, self.until_ns, closed="left")


def measurement(recording: Recording) -> Window:
    """The measurement's window."""
    if "measurement" not in recording.remembered:
        recording.remembered["measurement"] = _measurement(recording)
    found: Window = recording.remembered["measurement"]
    return found


def _measurement(recording: Recording) -> Window:
    layout = recording.layout
    begin, end = int(layout["warm_up_end_ns"]), min(int(layout["measurement_end_ns"]), TIME_MAX_NS)
    planned = float(recording.plan["phases"]["duration_ns"]) / NS_PER_S
    if recording.complete:
        seconds = planned if end == TIME_MAX_NS else (end - begin) / NS_PER_S
        return Window(from_ns=begin, until_ns=end, seconds=seconds or planned)
    first, last = _span(recording)
    if first is None or last is None:
        return Window(from_ns=begin, until_ns=end, seconds=planned)
    seconds = (min(last, end) - max(first, begin)) / NS_PER_S
    return Window(from_ns=begin, until_ns=end, seconds=min(planned, seconds) if seconds > 0 else planned)


def _span(recording: Recording) -> tuple[int | None, int | None]:
    """When the first message of the measurement was due, and the last instant of any of them."""
    if sums.is_summed(recording):
        return sums.span(recording)
    messages = recording.scan("messages")
    if "fate" not in messages.collect_schema():
        return None, None
    due, received = pl.col("intended_ns"), pl.col("received_ns")
    first, *last = recording.collect(messages.filter(pl.col("phase") == "measurement").select(
        first=due.min(), due=due.max(), received=received.max())).row(0)
    known = [instant for instant in last if instant is not None]
    return first, max(known, default=None)
