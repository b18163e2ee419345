"""How much two series of runs differ: effect sizes with intervals, paired by common seeds or independent.

The first series is the reference. A difference is the second's value minus the first's; a ratio is the second's mean
over the first's; Cliff's δ is the probability that a run of the second has the larger value, minus that of the
smaller one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mqttlab.digits import plain
from mqttlab.statistics.distributions import normal_quantile, t_quantile, t_tail
from mqttlab.statistics.interval import CONFIDENCE, Interval, Numbers, Values, sample


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference of two means: its interval, and what a test or a plan for more runs needs."""

    interval: Interval
    error: float
    """Its standard error, in the values' unit."""
    freedom: float
    """Degrees of freedom of its t."""
    paired: bool
    correlation: float | None = None
    """Of the pairs; ``None`` where there are none, or a series does not vary."""

    @property
    def p(self) -> float:
        """Two-sided p value of no difference."""
        return _two_sided(self.interval.estimate, self.error, self.freedom)

    def p_equivalent(self, margin: float) -> float:
        """p value of a difference of at least ``margin`` either way: two one-sided tests (Schuirmann 1987)."""
        estimate = self.interval.estimate
        if self.error == 0:
            return 0.0 if abs(estimate) < margin else 1.0
        return t_tail((margin - abs(estimate)) / self.error, self.freedom)


def difference(first: Numbers, second: Numbers, *, paired: bool = False, confidence: float = CONFIDENCE) -> Difference:
    """Mean difference of two series: Student's t of the pairs' differences, or Welch's of independent series.

    Args:
        first, second: one value a run; in the same order where ``paired``.

    Raises:
        ValueError: fewer than two values in a series, one that is not finite, or pairs that do not match.
    """
    a, b = sample(first, 2), sample(second, 2)
    if paired:
        pairs = _pairs(a, b)
        error, freedom, n = float(pairs.std(ddof=1)) / math.sqrt(pairs.size), float(pairs.size - 1), pairs.size
        # Numbers that differ by rounding alone do not vary.
        error = 0.0 if error <= 1e-12 * float(np.abs(np.concatenate([a, b])).max()) else error
        varies = a.std() > 0 and b.std() > 0
        correlation = float(np.corrcoef(a, b)[0, 1]) if varies else None
    else:
        parts = [float(x.var(ddof=1)) / x.size for x in (a, b)]
        error, n, correlation = math.sqrt(sum(parts)), min(a.size, b.size), None
        squares = sum(part**2 / (x.size - 1) for part, x in zip(parts, (a, b), strict=True))
        freedom = sum(parts) ** 2 / squares if squares else float(a.size + b.size - 2)
    estimate = float(b.mean() - a.mean())
    half = t_quantile((1 + confidence) / 2, freedom) * error
    interval = Interval(estimate=estimate, low=estimate - half, high=estimate + half, n=n, confidence=confidence,
                        method="paired t" if paired else "Welch's t",
                        note="all pairs differ alike" if paired and error == 0 else "")
    return Difference(interval=interval, error=error, freedom=freedom, paired=paired, correlation=correlation)


def ratio_interval(
    first: Numbers, second: Numbers, *, paired: bool = False, confidence: float = CONFIDENCE,
) -> Interval:
    """The second mean over the first, with Fieller's interval (1954).

    All ratios ρ that a t test of ``mean(second) - ρ mean(first)`` does not refuse. Exact for normal pairs; independent
    series take Welch's degrees of freedom at the estimate. Infinite where the first mean cannot be told from zero.

    Raises:
        ValueError: as :func:`difference`.
    """
    a, b = sample(first, 2), sample(second, 2)
    if paired:
        _pairs(a, b)
    top, bottom = float(b.mean()), float(a.mean())
    method = "Fieller, paired" if paired else "Fieller"
    n = min(a.size, b.size)
    if bottom == 0:
        return Interval(estimate=math.nan, low=-math.inf, high=math.inf, n=n, method=method, confidence=confidence,
                        note="the reference is 0")
    va, vb = float(a.var(ddof=1)) / a.size, float(b.var(ddof=1)) / b.size
    cov = float(np.cov(a, b)[0, 1]) / a.size if paired else 0.0
    ratio = top / bottom
    squares = (vb**2 / (b.size - 1) + ratio**4 * va**2 / (a.size - 1))
    welch = (vb + ratio**2 * va) ** 2 / squares if squares else float(a.size + b.size - 2)
    t = t_quantile((1 + confidence) / 2, float(n - 1) if paired else welch) ** 2
    # (b - ρa)² ≤ t² (vb - 2ρ cov + ρ² va), a quadratic in ρ.
    square, linear, constant = bottom**2 - t * va, top * bottom - t * cov, top**2 - t * vb
    if square <= 0:
        return Interval(estimate=ratio, low=-math.inf, high=math.inf, n=n, method=method, confidence=confidence,
                        note="the reference's mean cannot be told from 0")
    root = math.sqrt(max(linear**2 - square * constant, 0.0))
    return Interval(estimate=ratio, low=(linear - root) / square, high=(linear + root) / square, n=n, method=method,
                    confidence=confidence)


def hodges_lehmann(
    first: Numbers, second: Numbers, *, paired: bool = False, confidence: float = CONFIDENCE,
) -> Interval:
    """The shift between two series, robust against outliers, with its exact interval (Hodges and Lehmann 1963).

    Independent series: the median of all differences, with the order statistics that invert the Mann–Whitney test.
    Pairs: the median of the averages of every two differences (Walsh averages), with those that invert Wilcoxon's
    signed ranks. Ties make the interval wider, never narrower.

    Raises:
        ValueError: an empty series, a value that is not finite, or pairs that do not match.
    """
    a, b = sample(first), sample(second)
    if paired:
        pairs = _pairs(a, b)
        rows, columns = np.triu_indices(pairs.size)
        shifts = np.sort((pairs[rows] + pairs[columns]) / 2)
        counts, n = _signed_rank_counts(pairs.size), pairs.size
    else:
        shifts = np.sort((b[None, :] - a[:, None]).ravel())
        counts, n = _mann_whitney_counts(a.size, b.size), min(a.size, b.size)
    estimate = float(np.median(shifts))
    method = "Hodges–Lehmann, paired" if paired else "Hodges–Lehmann"
    at_most = np.cumsum(counts) / counts.sum()
    outside = int(np.searchsorted(at_most, (1 - confidence) / 2, side="right"))
    if outside == 0:
        return Interval(estimate=estimate, low=-math.inf, high=math.inf, n=n, method=method, confidence=confidence,
                        note=f"n too small for {plain(100 * confidence)} %")
    return Interval(estimate=estimate, low=float(shifts[outside - 1]), high=float(shifts[-outside]), n=n,
                    method=method, confidence=confidence)


def cliffs_delta(first: Numbers, second: Numbers, *, confidence: float = CONFIDENCE) -> Interval:
    """Cliff's δ: how far the second series lies above the first, from -1 to 1, with Cliff's asymmetric interval
    (Feng and Cliff 2004), which needs at least two values in each.

    Raises:
        ValueError: a series of fewer than two values, or one that is not finite.
    """
    a, b = sample(first, 2), sample(second, 2)
    above = np.sign(b[None, :] - a[:, None])
    delta = float(above.mean())
    rows, columns = above.mean(axis=1) - delta, above.mean(axis=0) - delta
    m, n = a.size, b.size
    spread = float(n**2 * np.sum(rows**2) + m**2 * np.sum(columns**2) - np.sum((above - delta) ** 2))
    variance = max(spread / (m * n * (m - 1) * (n - 1)), (1 - delta**2) / (m * n - 1))
    t = t_quantile((1 + confidence) / 2, m + n - 2)
    note = ""
    if abs(delta) == 1:
        # No overlap: the variance is 0, and the bound is that of the shorter series alone (Cliff 1993).
        z = normal_quantile((1 + confidence) / 2) ** 2
        bound = (min(m, n) - z) / (min(m, n) + z)
        low, high, note = (bound, 1.0, "no overlap") if delta > 0 else (-1.0, -bound, "no overlap")
    else:
        root = t * math.sqrt(variance) * math.sqrt((1 - delta**2) ** 2 + t**2 * variance)
        below = 1 - delta**2 + t**2 * variance
        low, high = (delta - delta**3 - root) / below, (delta - delta**3 + root) / below
    return Interval(estimate=delta, low=max(low, -1.0), high=min(high, 1.0), n=min(m, n), method="Cliff's δ",
                    confidence=confidence, note=note)


def with_confidence(interval: Interval, error: float, freedom: float, confidence: float) -> Interval:
    """A t interval of the same estimate at another confidence."""
    half = t_quantile((1 + confidence) / 2, freedom) * error
    return replace(interval, low=interval.estimate - half, high=interval.estimate + half, confidence=confidence)


def _two_sided(estimate: float, error: float, freedom: float) -> float:
    if error == 0:
        return 1.0 if estimate == 0 else 0.0
    return 2 * t_tail(abs(estimate) / error, freedom)


def _pairs(first: Values, second: Values) -> Values:
    if first.size != second.size:
        raise ValueError(f"{first.size} and {second.size} values cannot be compared in pairs")
    return second - first


@cache
def _signed_rank_counts(n: int) -> NDArray[np.float64]:
    """In how many of the 2^n signs the positive ranks of n sum to 0, 1, ... (exact up to about 1000 in proportion)."""
    counts = np.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1
    for rank in range(1, n + 1):
        counts[rank:] += counts[: counts.size - rank].copy()
        counts /= 2
    return counts


@cache
def _mann_whitney_counts(m: int, n: int) -> NDArray[np.float64]:
    """Which share of the orders of m and n values has 0, 1, ... pairs turned round (Mann and Whitney 1947)."""
    shares = [[np.ones(1)] * (n + 1) for _ in range(m + 1)]
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            # The largest of all is of the first series, above j of the second, or of the second.
            counts = np.zeros(i * j + 1)
            counts[j : j + (i - 1) * j + 1] += shares[i - 1][j] * (i / (i + j))
            counts[: i * (j - 1) + 1] += shares[i][j - 1] * (j / (i + j))
            shares[i][j] = counts
    return shares[m][n]
