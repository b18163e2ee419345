"""Published and simulated values side by side."""

from __future__ import annotations

from dataclasses import dataclass, field

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
