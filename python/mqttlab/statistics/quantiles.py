"""Intervals of quantiles within one sample, by order statistics: no distribution is assumed.

Between runs a quantile is one number a run, and its interval is :func:`mqttlab.statistics.mean_interval`'s. Quantiles
are never averaged over parts of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mqttlab.digits import plain
from mqttlab.statistics.distributions import binomial_below, normal_quantile, t_quantile
from mqttlab.statistics.interval import CONFIDENCE, Interval, Numbers, Values, sample
from mqttlab.statistics.means import BATCHES, batched


def quantile_interval(
    values: Numbers, q: float, *, confidence: float = CONFIDENCE, correlated: bool = False,
) -> Interval:
    """The ``q`` quantile of one sample (linear interpolation), between two of its order statistics.

    With ``n`` independent samples the number below the true quantile is binomial, so that the probability that it lies
    between the sample's ``l``-th and ``u``-th smallest value is known exactly whatever the distribution (David and
    Nagaraja 2003, 7.1). The ranks are the narrowest with at most ``(1 - confidence) / 2`` outside on each side; where
    there is none, that side is infinite and the note says how many samples are needed.

    Args:
        values: the sample, in the order of sending where it is ``correlated``.
        q: between 0 and 1.
        confidence: its confidence.
        correlated: whether neighbours may depend on each other: the ranks are then those of as many independent samples
            as these are worth (:func:`worth`), which takes 20 samples on either side of the quantile to tell.

    Raises:
        ValueError: no values, one that is not finite, or ``q`` outside of 0 to 1.
    """
    return quantile_intervals(values, [q], confidence=confidence, correlated=correlated)[0]


def quantile_intervals(
    values: Numbers, quantiles: Sequence[float], *, confidence: float = CONFIDENCE, correlated: bool = False,
) -> list[Interval]:
    """The same for several quantiles of one sample, which is put in order once."""
    for q in quantiles:
        if not 0 < q < 1:
            raise ValueError(f"a quantile lies between 0 and 1, not at {plain(q)}")
    x = sample(values)
    ordered = np.sort(x)
    return [_interval(x, ordered, q, confidence, correlated) for q in quantiles]


def _interval(x: Values, ordered: Values, q: float, confidence: float, correlated: bool) -> Interval:
    """Of samples as they came and in order."""
    estimate = quantile_of_ordered(ordered, q)
    least = math.ceil(BATCHES / min(q, 1 - q) - 1e-9)
    if correlated and x.size < least:
        return Interval(estimate=estimate, low=-math.inf, high=math.inf, n=x.size, method="order statistics",
                        confidence=confidence, note=f"n too small: this quantile of correlated samples needs {least}")
    n = worth(x, q, estimate) if correlated else x.size
    low_rank, high_rank = ranks(n, q, confidence)
    stretch = x.size / n
    low_at = None if low_rank is None else max(math.floor((low_rank - 1) * stretch), 0)
    high_at = None if high_rank is None else min(math.ceil(high_rank * stretch), x.size) - 1
    low = -math.inf if low_at is None else float(ordered[low_at])
    high = math.inf if high_at is None else float(ordered[high_at])
    note = ""
    if low_rank is None or high_rank is None:
        least = math.ceil(samples_needed(q, confidence) * stretch)
        note = f"n too small: {plain(100 * confidence)} % of this quantile need {least} samples"
    return Interval(estimate=estimate, low=low, high=high, n=n, method="order statistics", confidence=confidence,
                    note=note)


def median_interval(values: Numbers, *, confidence: float = CONFIDENCE) -> Interval:
    """The median of independent values between two of their order statistics; six of them are needed for 95 %."""
    return quantile_interval(values, 0.5, confidence=confidence)


def ranks(n: int, q: float, confidence: float = CONFIDENCE) -> tuple[int | None, int | None]:
    """Ranks, from 1, between which the ``q`` quantile lies with at least this probability; ``None`` where no sample is
    far enough out."""
    tail = (1 - confidence) / 2
    # P(fewer than rank samples lie below the quantile) for the rank 1, 2, ...; of millions only for those about the
    # mean: ten standard deviations away, and where these are few fifty samples, no tail is left.
    away = math.ceil(10 * math.sqrt(n * q * (1 - q))) + 50
    first = max(math.floor(n * q) - away, 0)
    below = binomial_below(n, q, range(first, min(math.ceil(n * q) + away, n)))
    lows = np.flatnonzero(below <= tail)
    highs = np.flatnonzero(1 - below <= tail)
    return (first + int(lows[-1]) + 1 if lows.size else None), (first + int(highs[0]) + 1 if highs.size else None)


def samples_needed(q: float, confidence: float = CONFIDENCE) -> int:
    """The fewest independent samples whose extremes lie on both sides of the quantile with this probability."""
    tail = (1 - confidence) / 2
    return math.ceil(math.log(tail) / math.log(max(q, 1 - q)) - 1e-9)


def quantile_of_ordered(ordered: Values, q: float) -> float:
    """The ``q`` quantile of samples in order, as :func:`numpy.quantile` has it, which would put them in order again."""
    place = (ordered.size - 1) * q
    at = math.floor(place)
    return float(np.quantile(ordered[at : at + 2], place - at))


def worth(samples: Values, q: float, quantile: float) -> int:
    """How many independent samples these, in the order of sending, are worth for their ``q`` quantile.

    Whether a sample lies below the quantile is averaged over 20 batches; the variance of these means against that of
    independent samples says by how much neighbours repeat each other. At least one a batch, at most their number.
    """
    below = samples <= quantile
    share = np.count_nonzero(below) / below.size
    expected = share * (1 - share) / (samples.size // BATCHES)
    if expected == 0:
        return samples.size
    inflation = max(float(batched(below).var(ddof=1)) / expected, 1.0)
    # The variance of so few means is itself not known well: what Student's t is wider by than the normal distribution.
    doubt = (t_quantile(0.975, BATCHES - 1) / normal_quantile(0.975)) ** 2
    return max(int(samples.size / (inflation * doubt)), BATCHES)
