"""Whether results drifted while an experiment went on: Spearman's rank correlation with the order of the runs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqttlab.digits import plain
from mqttlab.statistics.distributions import t_tail
from mqttlab.statistics.interval import Numbers, Values, sample

EXACT_MOST = 8
"""Up to so many values every order is counted."""
LEAST_SAID = 1e-4
"""A smaller p value is only said to be smaller."""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The rank correlation of results with their order, and the p value of none."""

    rho: float
    p: float
    n: int

    def words(self) -> str:
        """A sentence for a report."""
        p = f"p = {plain(self.p, 2)}" if self.p >= LEAST_SAID else f"p < {plain(LEAST_SAID)}"
        word = "no drift was found" if self.p > 0.05 else "the results drifted"
        return f"Over the order of the runs {word} (Spearman's ρ = {self.rho:+.2f}, {p}, n = {self.n})."


def drift(order: Numbers, values: Numbers) -> Drift | None:
    """Test results against the order in which they were measured.

    Take out first what the design put in: values should be residuals, or those of one point. Exact up to eight values,
    Student's t beyond.

    Returns:
        ``None`` for fewer than four values, or where either does not vary.

    Raises:
        ValueError: the two are not of one length, or a value is not finite.
    """
    x, y = sample(order, 0), sample(values, 0)
    if x.size != y.size:
        raise ValueError(f"{x.size} places, but {y.size} values")
    if x.size < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    a, b = ranks(x), ranks(y)
    rho = float(np.corrcoef(a, b)[0, 1])
    n = x.size
    if n <= EXACT_MOST:
        p = _exact(a, b)
    elif abs(rho) >= 1:
        p = 0.0
    else:
        p = 2 * t_tail(abs(rho) * math.sqrt((n - 2) / (1 - rho**2)), n - 2)
    return Drift(rho=rho, p=p, n=n)


def ranks(values: Values) -> Values:
    """Ranks from 1; equal values share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Values = (last - (counts - 1) / 2)[places]
    return means


def _exact(a: Values, b: Values) -> float:
    orders: NDArray[np.intp] = np.array(list(itertools.permutations(range(a.size))))
    found = (b - b.mean())[orders] @ (a - a.mean())
    return float(np.mean(np.abs(found) >= abs(float((a - a.mean()) @ (b - b.mean()))) - 1e-9))
