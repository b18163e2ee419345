"""The tables of a comparison, as both reports show them: every cell is text."""

from __future__ import annotations

from collections.abc import Sequence

from mqttlab.comparison import ByMessage, Comparison, Row, Shift, scenario_changes
from mqttlab.digits import plain
from mqttlab.report.text import heading, number
from mqttlab.statistics import Interval

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Headings and rows."""
KNOBS_SHOWN = 12


def metrics(comparison: Comparison, shown: Sequence[Row] | None = None) -> Table:
    """Metric by metric: means, difference with its interval, effect sizes and verdict, where there are several runs.

    Args:
        comparison: of which.
        shown: some of its rows; all when left out.
    """
    several = any(row.difference is not None for row in comparison.rows)
    labels = comparison.first.label, comparison.second.label
    if labels[0] == labels[1]:
        labels = f"{labels[0]} (first)", f"{labels[1]} (second)"
    head = ["scope", "metric", *labels, "difference %"]
    if several:
        head += ["verdict", "difference, 95 %", "ratio, 95 %", "Hodges–Lehmann shift", "Cliff's δ"]
    rows = []
    for row in comparison.rows if shown is None else shown:
        first, second = row.means
        cells = [row.scope, heading(row.metric), number(first), number(second), percent(row.percent)]
        if several:
            cells += [verdict(row), interval(row.difference.interval if row.difference else None), interval(row.ratio),
                      interval(row.shift), interval(row.overlap, 2)]
        rows.append(tuple(cells))
    return tuple(head), rows


def scenarios(comparison: Comparison) -> Table | None:
    """In what the scenarios differ, as written; ``None`` where a recording does not have its own."""
    changes = scenario_changes(comparison.first, comparison.second)
    return None if changes is None else (("field", "first", "second"), list(changes))


def quantiles(shifts: Sequence[Shift]) -> Table:
    """Quantile by quantile; with intervals of the shift over runs, or of each run's quantile."""
    within = any(shift.within for shift in shifts)
    head = ("flow", "quantile", "first ms", "second ms", "shift ms",
            *(("first, 95 % within the run", "second, 95 % within the run") if within else ("shift, 95 %",)))
    rows = []
    for shift in shifts:
        cells = [shift.flow, quantile(shift.q), number(shift.first_ms), number(shift.second_ms),
                 f"{'+' if shift.shift_ms >= 0 else ''}{plain(shift.shift_ms, 4)}"]
        cells += [interval(side) for side in shift.within] if shift.within else [interval(shift.interval)]
        rows.append(tuple(cells))
    return head, rows


def fates(pair: ByMessage) -> Table:
    """Which fates the messages met."""
    return ("first", "second", "messages"), [
        (first.replace("_", " "), second.replace("_", " "), number(count))
        for first, second, count in pair.fates.iter_rows()]


def reasons(pair: ByMessage) -> Table:
    """What made the difference, and to how many messages."""
    return ("what made the difference", "other fate", "slower", "faster"), [
        (str(reason), *(number(count) for count in counts)) for reason, *counts in pair.reasons.iter_rows()]


def frame_fates(fates_of_frames: Sequence[tuple[str, str, str, int]]) -> Table:
    """Which fates the frames met."""
    return ("link", "first", "second", "frames"), [
        (link, first, second, number(count)) for link, first, second, count in fates_of_frames]


def verdict(row: Row) -> str:
    """A row's verdict in words."""
    return "–" if row.verdict is None else row.verdict.words()


def percent(value: float | None) -> str:
    """A relative difference."""
    return "–" if value is None else f"{value:+.1f}"


def interval(found: Interval | None, digits: int = 3) -> str:
    """An interval's ends; its note where it has none."""
    if found is None:
        return "–"
    if not found.bounded:
        return "n too small" if found.note.startswith("n too small") else found.note or "unbounded"
    return f"{number(found.low, digits)} … {number(found.high, digits)}"


def quantile(q: float) -> str:
    """A quantile's name: p50, p99.9."""
    return f"p{plain(100 * q)}"


def knobs(comparison: Comparison) -> list[str]:
    """Where the plans differ, one line each."""
    lines = [f"{place}: {first} → {second}" for place, first, second in comparison.changed[:KNOBS_SHOWN]]
    more = len(comparison.changed) - KNOBS_SHOWN
    return [*lines, f"and {more} more"] if more > 0 else lines or ["nothing: the plans are the same"]
