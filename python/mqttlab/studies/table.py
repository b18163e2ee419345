"""Published and simulated values side by side."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

INFINITE = float("inf")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One printed value and the one that was simulated."""

    table: str
    place: str
    metric: str
    published: float
    simulated: float
    bound: float | None = None
    """Published values are printed only as "more than" this."""

    @property
    def difference(self) -> float:
        """Simulated less published."""
        return self.simulated - self.published

    @property
    def ratio(self) -> float | None:
        """Simulated over published; none where one of them has no end."""
        if self.published in (0, INFINITE) or self.simulated == INFINITE:
            return None
        return self.simulated / self.published


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Whether a claim holds in the simulation, and the numbers that say so."""

    claim: str
    text: str
    holds: bool | None
    evidence: str
    reason: str = ""
    details: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How well the simulation fits one table."""

    table: str
    cells: int
    """Those with a ratio."""
    median_ratio: float
    within: tuple[float, float]
    """Shares of them that are within 10 and within 25 percent of the published value."""


def fits(cells: Sequence[Cell]) -> list[Fit]:
    """One for each table that has a finite value, in the order of the cells.

    Values are printed with as few digits as one ("0.02"), so that a share below one need not mean that the simulation
    is wrong: half of the last digit printed counts as right, too.
    """
    found: list[Fit] = []
    for table in dict.fromkeys(cell.table for cell in cells):
        here = [(cell, ratio) for cell in cells if cell.table == table
                for ratio in [cell.ratio] if ratio is not None and ratio == ratio]
        if not here:
            continue
        found.append(Fit(
            table=table, cells=len(here), median_ratio=statistics.median(ratio for _, ratio in here),
            within=(_share(here, 0.10), _share(here, 0.25))))
    return found


def _share(cells: Sequence[tuple[Cell, float]], bound: float) -> float:
    near = sum(abs(ratio - 1) <= bound or abs(cell.difference) <= _half_digit(cell.published) for cell, ratio in cells)
    return near / len(cells)


def _half_digit(value: float) -> float:
    """Half a unit of the last digit that ``value`` is printed with."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    return 0.5 * 10.0 ** min(int(exponent), 0)
