"""An estimate with its interval, and what samples must be to have one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
"""The confidence of every interval where nothing else is said."""

Values = NDArray[np.float64]
Numbers = Sequence[float] | NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate and the range that covers the true value in ``confidence`` of all experiments alike.

    ``low`` and ``high`` are in the estimate's unit; infinite on a side where the data allow no bound. ``n`` is the
    number of independent values behind it: runs, or what a run's messages are worth.
    """

    estimate: float
    low: float
    high: float
    n: int
    method: str
    confidence: float = CONFIDENCE
    note: str = ""
    """What to read before the interval is trusted; empty where there is nothing."""

    @property
    def bounded(self) -> bool:
        """Whether both sides are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def half_width(self) -> float:
        """Half of its width; infinite where a side is not known."""
        return (self.high - self.low) / 2 if self.bounded else math.inf

    def covers(self, value: float) -> bool:
        """Whether the value lies in it, ends included."""
        return self.low <= value <= self.high

    def negated(self) -> Interval:
        """The interval of the estimate with its sign turned."""
        return Interval(estimate=-self.estimate, low=-self.high, high=-self.low, n=self.n, method=self.method,
                        confidence=self.confidence, note=self.note)


def sample(values: Numbers, least: int = 1) -> Values:
    """The values as an array.

    Raises:
        ValueError: there are fewer than ``least``, or one of them is not a number.
    """
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or found.size < least:
        raise ValueError(f"{found.size} values, but at least {least} are needed")
    if not np.isfinite(found).all():
        raise ValueError("a value is not finite")
    return found
