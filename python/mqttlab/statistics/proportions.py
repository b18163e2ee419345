"""Intervals of proportions: so many of so many."""

from __future__ import annotations

import math

from mqttlab.digits import plain
from mqttlab.statistics.distributions import beta_quantile, normal_quantile
from mqttlab.statistics.interval import CONFIDENCE, Interval


def proportion_interval(count: int, of: int, *, confidence: float = CONFIDENCE) -> Interval:
    """A share of independent trials with Wilson's interval (1927); none, or all, of them as an exact one-sided bound.

    "0 of N" says less than that nothing can happen: the true share is below ``1 - (1 - confidence)^(1/N)``, about
    ``3 / N``. Losses cluster in runs: the share of a run is a value, and its interval over runs is
    :func:`mqttlab.statistics.mean_interval`'s.

    Raises:
        ValueError: no trials, or more counts than trials.
    """
    _check(count, of)
    share = count / of
    bound = 1 - (1 - confidence) ** (1 / of)
    if count == 0:
        return Interval(estimate=0.0, low=0.0, high=bound, n=of, method="exact bound", confidence=confidence,
                        note=f"0 of {of}: below {plain(100 * bound, 2)} %")
    if count == of:
        return Interval(estimate=1.0, low=1 - bound, high=1.0, n=of, method="exact bound", confidence=confidence,
                        note=f"{of} of {of}: above {plain(100 * (1 - bound), 4)} %")
    z = normal_quantile((1 + confidence) / 2)
    centre = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return Interval(estimate=share, low=centre - half, high=centre + half, n=of, method="Wilson", confidence=confidence)


def proportion_exact(count: int, of: int, *, confidence: float = CONFIDENCE) -> Interval:
    """The same with the interval of Clopper and Pearson (1934): never below its confidence, and wider for it.

    Raises:
        ValueError: no trials, or more counts than trials.
    """
    _check(count, of)
    tail = (1 - confidence) / 2
    low = beta_quantile(tail, count, of - count + 1) if count else 0.0
    high = beta_quantile(1 - tail, count + 1, of - count) if count < of else 1.0
    return Interval(estimate=count / of, low=low, high=high, n=of, method="Clopper–Pearson", confidence=confidence)


def _check(count: int, of: int) -> None:
    if not 0 <= count <= of or of < 1:
        raise ValueError(f"{count} of {of} is not a proportion")
