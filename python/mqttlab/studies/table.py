"""Published values and ours side by side."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from mqttlab.studies.means import mean_of_runs

INFINITE = float("inf")
NONE = float("nan")
Missed = Literal["refuted", "not reproduced"]
Judged = Literal["held", "refuted", "not reproduced", "undecided", "not judged yet"]


class AsPrinted(float):
    """A published value that keeps the digits that the study prints: 14157, and 4.0 instead of 4."""

    digits: str

    def __new__(cls, digits: str) -> AsPrinted:
        """The value of ``digits``, as a table of published values has them.

        Raises:
            ValueError: it is no number.
        """
        value = super().__new__(cls, digits)
        value.digits = digits.strip()
        return value


def as_printed(digits: str) -> float:
    """A field of a table of published values; not a number where the study prints none, infinite for ``inf``."""
    value = float(digits or "nan")
    return AsPrinted(digits) if math.isfinite(value) else value


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One printed value and ours."""

    table: str
    place: str
    metric: str
    published: float
    """Not a number where the study prints none; computed from what it prints, it is not :class:`AsPrinted`."""
    ours: float
    """Not a number where there is none; then :attr:`waits` says why."""
    without_end: tuple[int, int] | None = None
    """Where ours has no end: in how many of how many runs; none for a run alone."""
    half: float | None = None
    """Half width of the 95 % confidence interval of ours: within a run when simulated, between runs when live."""
    never: float | None = None
    """Beside a mean: the share of our messages that were never received, in percent."""
    published_never: float | None = None
    """The study's, where it is known."""
    waits: str = ""
    """Why there is no value of ours, and what it waits for."""
    source: str = ""
    """The published row: file and number of the row, from 1."""
    bound: float | None = None
    """Published values are printed only as "more than" this."""
    simulated: float | None = None
    """Beside a live value: what the same scenario comes to when it is simulated."""
    shorter: bool = False
    """Whether this is a count of a run that is shorter than the study's, so that the two cannot be compared."""

    @property
    def difference(self) -> float:
        """Ours less published."""
        return self.ours - self.published

    @property
    def ratio(self) -> float | None:
        """Ours over published; none where one of them has no end, or is not there, and of counts of a shorter run."""
        if self.published in (0, INFINITE) or self.ours == INFINITE or math.isnan(self.published + self.ours):
            return None
        if self.shorter:
            return None
        return self.ours / self.published

    @property
    def deviation_percent(self) -> tuple[float, float | None] | None:
        """Ours less published over published, and half the width of its interval, both in percent."""
        if (ratio := self.ratio) is None:
            return None
        return 100 * (ratio - 1), None if self.half is None else 100 * abs(self.half / self.published)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Whether a claim holds with our numbers, and the numbers that say so."""

    claim: str
    text: str
    holds: bool | None
    evidence: str
    reason: str = ""
    rule: str = ""
    """When it counts as held."""
    written: Literal["before", "after"] = "after"
    """Whether the rule was written before its numbers were looked at, or after."""
    otherwise: Missed = "not reproduced"
    """What it is where the rule is not met: refuted only under the study's own conditions."""

    @property
    def verdict(self) -> Judged:
        """In words: without numbers a claim is not judged yet, and :attr:`reason` says what it waits for."""
        if self.holds is not None:
            return "held" if self.holds else self.otherwise
        return "undecided" if self.evidence else "not judged yet"


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How well ours fit one table."""

    table: str
    cells: int
    """Those with a value on both sides."""
    median_ratio: float
    """Of those with an end on both sides; not a number where there is none."""
    within: tuple[float, float]
    """Shares of them that are within 10 and within 25 percent of the published value."""


def beside_simulated(cells: Sequence[Cell], simulated: Sequence[Cell]) -> list[Cell]:
    """Live cells with the values of simulated ones beside, where there is one of the same place and metric."""
    values = {(cell.table, cell.place, cell.metric): cell.ours for cell in simulated}
    return [replace(cell, simulated=values.get((cell.table, cell.place, cell.metric))) for cell in cells]


def pooled(repetitions: Sequence[Sequence[Cell]]) -> list[Cell]:
    """Cells of several runs as one: the mean over the runs, and its interval between them.

    Args:
        repetitions: for each repetition its cells, all in the same order.
    """
    if len(repetitions) == 1:
        return list(repetitions[0])
    return [_pooled(cells) for cells in zip(*repetitions, strict=True)]


def _pooled(cells: Sequence[Cell]) -> Cell:
    values = [cell.ours for cell in cells]
    shares = [cell.never for cell in cells if cell.never is not None]
    never = statistics.fmean(shares) if shares else None
    mean, half = mean_of_runs(values)
    return replace(cells[0], ours=mean, half=half, never=never,
                   without_end=(values.count(INFINITE), len(values)) if mean == INFINITE else None)


def fits(cells: Sequence[Cell]) -> list[Fit]:
    """One for each table that has a value on both sides, in the order of the cells.

    Values are printed with as few digits as one ("0.02"), so that a share below one need not mean that ours is wrong:
    half of the last digit printed counts as right, too. What grows without bound here or there is right where it does
    on both sides, or where ours is above what it is printed to be more than.
    """
    found: list[Fit] = []
    for table in dict.fromkeys(cell.table for cell in cells):
        here = [cell for cell in cells if cell.table == table and _has_both(cell)]
        if not here:
            continue
        ratios = [cell.ratio for cell in here if cell.ratio is not None]
        found.append(Fit(
            table=table, cells=len(here), median_ratio=statistics.median(ratios) if ratios else NONE,
            within=(_share(here, 0.10), _share(here, 0.25))))
    return found


def _has_both(cell: Cell) -> bool:
    """Whether there is something to compare; of a published zero there is no ratio."""
    unbounded = INFINITE in (cell.published, cell.ours) and not math.isnan(cell.published + cell.ours)
    return cell.ratio is not None or unbounded


def _share(cells: Sequence[Cell], bound: float) -> float:
    return sum(_is_near(cell, bound) for cell in cells) / len(cells)


def _is_near(cell: Cell, bound: float) -> bool:
    if (ratio := cell.ratio) is None:
        return cell.published == INFINITE and cell.ours >= (INFINITE if cell.bound is None else cell.bound)
    return abs(ratio - 1) <= bound or abs(cell.difference) <= _half_digit(cell.published)


def _half_digit(value: float) -> float:
    """Half a unit of the last digit that ``value`` is printed with."""
    printed = Decimal(value.digits) if isinstance(value, AsPrinted) else Decimal(repr(value)).normalize()
    return 0.5 * 10.0 ** min(int(printed.as_tuple().exponent), 0)
