"""Intervals of means: over runs, and within one run whose messages are correlated."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mqttlab.statistics.distributions import normal_below, normal_quantile, t_quantile
from mqttlab.statistics.interval import CONFIDENCE, Interval, Numbers, Values, sample

BATCHES = 20
BOOTSTRAP_LEAST = 10
RESAMPLES = 4_000
SKEWED = 2.0
"""A sample is skewed where its skewness is this many times its standard error under the normal distribution."""

Statistic = Callable[[Values], Values]


def mean_interval(values: Numbers, *, confidence: float = CONFIDENCE, seed: int = 1) -> Interval:
    """The mean of independent values, which are runs, with its interval.

    Student's t; the bias-corrected and accelerated bootstrap (Efron 1987) where there are at least 10 values and they
    are skewed (:func:`skewed`).

    Args:
        values: one number a run, in any unit.
        confidence: its confidence.
        seed: of the bootstrap's resampling: the same values give the same interval.

    Raises:
        ValueError: no values, or one that is not finite.
    """
    x = sample(values)
    estimate = float(x.mean())
    if x.size == 1:
        return Interval(estimate=estimate, low=-math.inf, high=math.inf, n=1, method="none", confidence=confidence,
                        note="one run has no interval")
    if np.ptp(x) == 0:
        return Interval(estimate=estimate, low=estimate, high=estimate, n=x.size, method="Student's t",
                        confidence=confidence, note="all runs gave the same value")
    if x.size >= BOOTSTRAP_LEAST and skewed(x):
        low, high = bootstrap(x, lambda samples: samples.mean(axis=-1), confidence=confidence, seed=seed)
        return Interval(estimate=estimate, low=low, high=high, n=x.size, method="BCa bootstrap", confidence=confidence)
    half = t_quantile((1 + confidence) / 2, x.size - 1) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return Interval(estimate=estimate, low=estimate - half, high=estimate + half, n=x.size, method="Student's t",
                    confidence=confidence)


def skewness(values: Numbers) -> float:
    """The sample's adjusted skewness G1 (Joanes and Gill 1998); 0 for fewer than three values or equal ones."""
    x = sample(values)
    centred = x - x.mean()
    variance = float(np.mean(centred**2))
    if x.size < 3 or variance <= (1e-12 * float(np.abs(x).max())) ** 2:
        return 0.0
    return math.sqrt(x.size * (x.size - 1)) / (x.size - 2) * float(np.mean(centred**3)) / math.sqrt(variance) ** 3


def skewed(values: Numbers) -> bool:
    """Whether a sample's skewness is more than twice its standard error under the normal distribution."""
    return abs(skewness(values)) > SKEWED * skewness_error(sample(values).size)


def skewness_error(n: int) -> float:
    """The standard error of the skewness of n normal values; infinite for fewer than three."""
    return math.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3))) if n > 2 else math.inf


def bootstrap(
    values: Values, statistic: Statistic, *, confidence: float = CONFIDENCE, seed: int = 1, resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Ends of the bias-corrected and accelerated bootstrap interval (Efron 1987) of a statistic of one sample.

    Args:
        values: the sample.
        statistic: from samples along the last axis to one number each.
    """
    rng = np.random.default_rng(seed)
    drawn = statistic(values[rng.integers(0, values.size, (resamples, values.size))])
    estimate = float(statistic(values[None, :])[0])
    below = (np.count_nonzero(drawn < estimate) + np.count_nonzero(drawn <= estimate)) / (2 * resamples)
    left_out = statistic(np.array([np.delete(values, place) for place in range(values.size)]))
    pull = left_out.mean() - left_out
    spread = float(np.sum(pull**2)) ** 1.5
    bias = normal_quantile(below)
    if spread == 0 or not math.isfinite(bias):
        return float(drawn.min()), float(drawn.max())
    acceleration = float(np.sum(pull**3)) / (6 * spread)
    ends = []
    for probability in ((1 - confidence) / 2, (1 + confidence) / 2):
        z = bias + normal_quantile(probability)
        ends.append(normal_below(bias + z / (1 - acceleration * z)))
    low, high = np.quantile(drawn, ends)
    return float(low), float(high)


def batch_means_ci95(samples: Values) -> float | None:
    """Half width of the 95 % confidence interval of the mean latency of one run, by batch means.

    Neighbouring latencies share queues and losses, so that the textbook interval is too narrow. The samples, in
    the order of their sending, are cut into 20 batches alike, whose means are nearly independent (Law, Simulation
    Modeling and Analysis, 9.5.3). With fewer than two samples a batch each sample is a batch of its own.

    Args:
        samples: latencies in any unit, in the order of sending.

    Returns:
        The half width in the samples' unit; ``None`` for fewer than two samples.
    """
    if samples.size < 2:
        return None
    per_batch = samples.size // BATCHES
    if per_batch >= 2:
        samples = batched(samples)
    spread = float(samples.std(ddof=1)) / math.sqrt(samples.size)
    return t_quantile(0.975, samples.size - 1) * spread


def batch_correlation(samples: Values) -> float | None:
    """How far the means of neighbouring batches still depend on each other: their correlation at lag 1.

    Batch means are taken to be independent (:func:`batch_means_ci95`). Where a run is short against the time for which
    its queues remember, they are not, and the interval is too narrow: :func:`mqttlab.statistics.batches_coverage` says
    by how much.

    Args:
        samples: latencies in any unit, in the order of sending.

    Returns:
        From -1 to 1; ``None`` where there are fewer than two samples a batch, or the batches are equal.
    """
    if samples.size // BATCHES < 2:
        return None
    left = batched(samples)
    left = left - left.mean()
    spread = float(np.sum(left**2))
    return float(np.sum(left[1:] * left[:-1])) / spread if spread > 0 else None


def batched(samples: Values | NDArray[np.bool_]) -> Values:
    """Means of 20 batches alike, of at least 20 samples. The first samples are left out where the count is no multiple
    of 20: they are nearest to the transient."""
    per_batch = samples.size // BATCHES
    means: Values = samples[samples.size - per_batch * BATCHES :].reshape(BATCHES, per_batch).mean(axis=1)
    return means
