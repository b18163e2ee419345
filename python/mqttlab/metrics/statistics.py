"""Statistics that are not one line of a data frame library."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

BATCHES = 20


def batch_means_ci95(samples: NDArray[np.float64]) -> float | None:
    """Half width of the 95 % confidence interval of the mean, by batch means.

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
        # The first samples are left out where the count is no multiple of 20: they are nearest to the transient.
        samples = samples[samples.size - per_batch * BATCHES :].reshape(BATCHES, per_batch).mean(axis=1)
    spread = float(samples.std(ddof=1)) / np.sqrt(samples.size)
    return float(stats.t.ppf(0.975, samples.size - 1) * spread)
