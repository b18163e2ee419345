"""From when to when the measurement went: one place says it to every metric.

A complete run's layout has both ends. With ``sim.detect_transient`` the measurement begins where the engine found the
flow steady, which is later than where the warm-up was planned to end. An import's evidence has no end of its own: the
window is as long as the evidence. A run that was cut short was measured from when its first message was due until the
last instant of its messages, and at most for as long as was planned.

Stages that are not measured are gaps in the window. A recording of which one stage is looked at alone
(:meth:`~mqttlab.recording.Recording.of_stage`) has that one for its window.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mqttlab.metrics import sums
from mqttlab.recording import Recording

# Of a signed column.
TIME_MAX_NS = 2**63 - 1
NS_PER_S = 1e9
MEASURED = pl.col("phase") == "measurement"
"""Rows of messages of the measurement and all its stages."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """A stretch of run time, its end not in it."""

    from_ns: int
    until_ns: int
    """After everything that was recorded, where nothing says when it ended."""
    seconds: float
    """Its length without its gaps, by which rates are divided."""
    gaps: tuple[tuple[int, int], ...] = ()
    """Stages in it that are not measured, from and until."""

    def holds(self, instant: pl.Expr) -> pl.Expr:
        """Whether something happened within it."""
        held = instant.is_between(self.from_ns, self.until_ns, closed="left")
        for begin, end in self.gaps:
            held &= ~instant.is_between(begin, end, closed="left")
        return held


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of the measurement, in run time."""

    name: str
    from_ns: int
    until_ns: int
    measured: bool


def measurement(recording: Recording) -> Window:
    """The measurement's window: all its stages that count, or the one that is looked at alone."""
    if "measurement" not in recording.remembered:
        recording.remembered["measurement"] = _measurement(recording)
    found: Window = recording.remembered["measurement"]
    return found


def is_measured(recording: Recording) -> pl.Expr:
    """Whether a row of ``messages`` is one of the measurement: by when it was due, else by when it came."""
    if not recording.plan.get("stages"):
        return MEASURED
    return MEASURED & measurement(recording).holds(pl.coalesce("intended_ns", "received_ns"))


def stages(recording: Recording) -> tuple[Stage, ...]:
    """The stages that were planned, in order; none where the measurement is one whole."""
    planned = recording.plan.get("stages")
    if not planned:
        return ()
    # In a plan times count from when publishing begins.
    began = _warm_up_end(recording) - recording.plan["phases"]["warm_up_ns"]
    return tuple(Stage(name=stage["name"], from_ns=began + stage["from_ns"], until_ns=began + stage["until_ns"],
                       measured=stage["measured"]) for stage in planned)


def _warm_up_end(recording: Recording) -> int:
    """As the layout says; of a simulation that was killed, which wrote that last, as its events say."""
    began = int(recording.layout["warm_up_end_ns"])
    if began or recording.events.is_empty():
        return began
    phases = recording.events.filter(pl.col("kind") == "phase", pl.col("detail").cast(pl.String) == "measurement")
    return int(phases["at_ns"][0]) if phases.height else began


def _measurement(recording: Recording) -> Window:
    whole = _whole(recording)
    planned = stages(recording)
    wanted = [stage for stage in planned if (
        stage.measured if recording.stage is None else stage.name == recording.stage)]
    if not wanted:
        return whole
    begin, end = wanted[0].from_ns, wanted[-1].until_ns
    gaps = tuple((stage.from_ns, stage.until_ns) for stage in planned
                 if stage not in wanted and begin <= stage.from_ns < end)
    # A run that was cut short has measured as long as it went on.
    ended = end if recording.complete else min(end, _span(recording)[1] or begin)
    length = sum(max(0, min(stage.until_ns, ended) - stage.from_ns) for stage in wanted)
    # A stage that it did not reach has no length, but rates of the whole need one.
    if recording.stage is None and not length:
        length = sum(stage.until_ns - stage.from_ns for stage in wanted)
    return Window(from_ns=begin, until_ns=end, seconds=length / NS_PER_S, gaps=gaps)


def _whole(recording: Recording) -> Window:
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
    first, *last = recording.collect(messages.filter(MEASURED).select(
        first=due.min(), due=due.max(), received=received.max())).row(0)
    known = [instant for instant in last if instant is not None]
    return first, max(known, default=None)
