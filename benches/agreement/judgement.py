"""When a simulated and a live run of one kind of scenario agree.

Runs with the same seed lose the same segments, so that they are compared in pairs: the difference of each pair, their
mean, and its 95 % confidence interval from Student's distribution over the seeds. The pooled difference is relative to
the mean of the live runs. It agrees when the whole interval lies within the metric's bound, not when it merely covers
zero: few or noisy runs cannot pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mqttlab import statistics

SEEDS_MIN = 5


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How far the interval may reach: a part of the live mean, and so many units more."""

    relative: float
    absolute: float = 0.0

    def around(self, live: float) -> float:
        """In the metric's unit."""
        return self.relative * abs(live) + self.absolute


def bounds(*, loss: bool) -> dict[str, Bound]:
    """The bound of each metric."""
    return {
        "latency_ms_mean": Bound(relative=0.05),
        "latency_ms_p95": Bound(relative=0.10 if loss else 0.05),
        "messages_delivered": Bound(relative=0.02),
        "segments_with_payload": Bound(relative=0.02, absolute=3.0),
        "connect_ms_mean": Bound(relative=0.05),
    }


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A metric of two series of runs: means, pooled difference and its 95 % interval in the metric's unit."""

    first: float
    second: float
    low: float
    high: float
    bound: float

    @property
    def agrees(self) -> bool:
        """Whether the whole interval lies within the bound."""
        return -self.bound <= self.low and self.high <= self.bound

    @property
    def is_undecided(self) -> bool:
        """Whether the interval holds zero and reaches beyond the bound: too few runs for what chance does."""
        return not self.agrees and self.low <= 0.0 <= self.high

    def words(self) -> str:
        """As a cell of a table: both means, and the interval in per cent of the first."""
        scale = 100 / abs(self.first) if self.first else math.nan
        interval = f"{self.low * scale:+.1f} … {self.high * scale:+.1f} %"
        return f"{self.first:.4g} / {self.second:.4g} ({interval if self.agrees else f'**{interval}**'})"


def difference(first: Sequence[float], second: Sequence[float], bound: Bound) -> Difference:
    """Compare two series of runs, paired by seed.

    Args:
        first: a value a seed, of the live runs.
        second: the values of the same seeds, simulated (or live once more).
        bound: how far apart they may be.

    Raises:
        ValueError: the series are not of one length, or shorter than two.
    """
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(f"{len(first)} and {len(second)} values cannot be compared in pairs")
    pairs = statistics.difference(first, second, paired=True).interval
    reference, other = (math.fsum(values) / len(values) for values in (first, second))
    return Difference(first=reference, second=other, low=pairs.low, high=pairs.high, bound=bound.around(reference))
