"""A whole comparison: what reports show and programs read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mqttlab.comparison.headlines import Compared, compared
from mqttlab.comparison.messages import ByMessage
from mqttlab.comparison.quantiles import Shift, shifts
from mqttlab.comparison.roles import Roles, line_up
from mqttlab.comparison.sides import ComparisonError, Side, changed, gather, of_stage, pairs, runs_of
from mqttlab.comparison.values import Row, rows
from mqttlab.comparison.words import what_happened
from mqttlab.metrics import sums
from mqttlab.statistics import Interval

MESSAGES_MOST = 100_000
DIFFERENT = ("better", "worse", "different")


@dataclass(frozen=True)
class Comparison:
    """Two sides, and what is said of them; each part is worked out when it is asked for."""

    first: Side
    second: Side
    tolerance_percent: float
    metrics: tuple[str, ...] = ()

    @property
    def stage(self) -> str | None:
        """The stage of the measurement that is compared; ``None`` for all that are measured."""
        return self.first.recordings[0].stage

    @cached_property
    def changed(self) -> list[tuple[str, str, str]]:
        """Where the plans differ."""
        return changed(self.first, self.second)

    @cached_property
    def roles(self) -> Roles:
        """Which flow of the first side is which of the second."""
        return line_up(self.first.recordings, self.second.recordings)

    @cached_property
    def headlines(self) -> list[Compared]:
        """The numbers of both sides' headlines."""
        first, second, paired = runs_of(self.first, self.second)
        return compared(first, second, self.roles, paired=paired, tolerance_percent=self.tolerance_percent)

    @cached_property
    def rows(self) -> list[Row]:
        """Metric by metric."""
        return rows(self.first, self.second, self.roles, tolerance_percent=self.tolerance_percent, metrics=self.metrics)

    @cached_property
    def differing(self) -> list[Row]:
        """The rows that differ, by how much they do: those whose verdict says so; of one run each, which have no
        verdicts, those whose values are further apart than the tolerance."""
        found = [row for row in self.rows if (
            row.verdict.word in DIFFERENT if row.verdict else _apart(row) > self.tolerance_percent)]
        return sorted(found, key=_apart, reverse=True)

    @cached_property
    def shifts(self) -> list[Shift]:
        """Quantile by quantile."""
        return shifts(self.first, self.second, self.roles)

    @cached_property
    def by_message(self) -> list[ByMessage]:
        """Message by message, for each pair of runs with the same random streams.

        Raises:
            ComparisonError: there is no such pair.
        """
        matched = pairs(self.first, self.second)
        if not matched:
            seeds = [sorted({str(run.plan.get("seed", "none")) for run in side.recordings})
                     for side in (self.first, self.second)]
            raise ComparisonError(
                f"{self.first.label} and {self.second.label} cannot be compared message by message: no two runs have "
                f"the same seed and repetition (seeds {', '.join(seeds[0])} and {', '.join(seeds[1])})")
        sides = (self.first, self.second)
        if sampled := [side.label for side in sides if any(map(sums.is_summed, side.recordings))]:
            raise ComparisonError(
                f"{sampled[0]} cannot be compared message by message: `recording.detail` was \"summary\", which keeps "
                "a sample of the messages; record with \"messages\" or \"full\"")
        return [ByMessage(a, b, self.tolerance_percent) for a, b in matched]

    @property
    def title(self) -> str:
        """What is compared: the scenario's name, or both where they differ, and the sides."""
        names = dict.fromkeys(side.recordings[0].name for side in (self.first, self.second))
        stage = f", stage {self.stage}" if self.stage else ""
        return f"{' and '.join(names)}: {self.first.label} → {self.second.label}{stage}"

    @property
    def design(self) -> str:
        """How the runs are compared, as a sentence."""
        counts = len(self.first.recordings), len(self.second.recordings)
        matched = len(pairs(self.first, self.second))
        if counts == (1, 1):
            streams = "the same random streams" if matched else "random streams of their own"
            return (f"One run each, with {streams}: differences have no interval between runs. Compare groups of at "
                    "least 3 runs for verdicts.")
        if matched == counts[0] == counts[1]:
            return f"{matched} runs each, compared in pairs: both runs of a pair have the same random streams."
        some = f" Only {matched} have partners with the same random streams, so that none is paired." if matched else ""
        return f"{counts[0]} and {counts[1]} runs, compared as independent series.{some}"

    def data(self, *, by_message: bool, limit: int = MESSAGES_MOST) -> dict[str, Any]:
        """Everything as JSON has it; numbers that are not finite become null."""
        return {
            "first": _side(self.first), "second": _side(self.second), "stage": self.stage,
            "design": self.design,
            "tolerance_percent": self.tolerance_percent,
            "changed": [{"place": place, "first": a, "second": b} for place, a, b in self.changed],
            "metrics": [_row(row) for row in self.rows], "quantiles": [_shift(shift) for shift in self.shifts],
            "messages": [_pair(pair, limit) for pair in self.by_message] if by_message else None,
        }


def compare(
    first: str | Side, second: str | Side, *, tolerance_percent: float = 5.0, metrics: Sequence[str] = (),
    stage: str | None = None,
) -> Comparison:
    """Compare two sides, or what two words name (:func:`mqttlab.comparison.gather`).

    Raises:
        ComparisonError: one of them names nothing that can be used, or has no such stage.
        RecordingError: one of them is no recording.
    """
    sides = [gather(word) if isinstance(word, str) else word for word in (first, second)]
    if stage is not None:
        sides = of_stage(sides, stage)
    return Comparison(sides[0], sides[1], tolerance_percent, tuple(metrics))


def _apart(row: Row) -> float:
    """How far apart the means are, in per cent of the first; without end where that is zero and the other is not, and 0
    where a side has no value."""
    if None in row.means:
        return 0.0
    return math.inf if row.percent is None else abs(row.percent)


def _side(side: Side) -> dict[str, Any]:
    runs = [str(recording.source or recording.directory) for recording in side.recordings]
    return {"label": side.label, "runs": runs,
            "left_out": [{"run": str(path), "reason": reason} for path, reason in side.left_out]}


def _row(row: Row) -> dict[str, Any]:
    verdict = row.verdict
    return {
        "scope": row.scope, "metric": row.metric, "unit": row.unit, "first": list(row.first),
        "second": list(row.second), "paired": row.paired, "percent": row.percent,
        "difference": interval(row.difference.interval if row.difference else None), "ratio": interval(row.ratio),
        "shift": interval(row.shift), "cliffs_delta": interval(row.overlap),
        "verdict": verdict and {"word": verdict.word, "p": verdict.p, "p_equivalent": verdict.p_equivalent,
                                "runs_needed": verdict.runs_needed},
    }


def _shift(shift: Shift) -> dict[str, Any]:
    return {"flow": shift.flow, "quantile": shift.q, "first_ms": shift.first_ms, "second_ms": shift.second_ms,
            "shift_ms": shift.shift_ms, "interval": interval(shift.interval),
            "within": None if shift.within is None else [interval(side) for side in shift.within]}


def _pair(pair: ByMessage, limit: int) -> dict[str, Any]:
    shown = pair.different.head(limit)
    return {
        "first": str(pair.first.directory), "second": str(pair.second.directory),
        "fates": pair.fates.to_dicts(), "reasons": pair.reasons.to_dicts(),
        "different": pair.different.height,
        "messages": [{**record, "why": what_happened(pair, record)} for record in shown.iter_rows(named=True)],
        "frames": pair.parted.to_dicts(),
    }


def interval(found: Interval | None) -> dict[str, Any] | None:
    """An interval as JSON has it."""
    if found is None:
        return None
    return {"estimate": _finite(found.estimate), "low": _finite(found.low), "high": _finite(found.high), "n": found.n,
            "method": found.method, "confidence": found.confidence, "note": found.note}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
