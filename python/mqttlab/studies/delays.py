"""What delays a run has had, as several studies need them: mean with its interval, spread, and what never arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.statistics import batch_means_ci95, mean_interval

NONE = float("nan")


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Latencies of the messages that came to one group, or of round trips; ms."""

    count: int
    mean_ms: float
    half_ms: float | None
    """Half width of the mean's 95 % confidence interval."""
    std_ms: float
    min_ms: float
    p50_ms: float
    max_ms: float
    never_percent: float
    """Of what was expected, what had not arrived when the run ended."""


def delays(recording: Recording, subscribers: str | None = None) -> Delays:
    """The delays of a recording's measurement.

    Args:
        recording: the recording.
        subscribers: only what came to this group; everything when left out.
    """
    delivered = metrics.deliveries(recording)
    by = () if subscribers is None else ("subscriber_group",)
    counts = metrics.application(recording, by)
    if subscribers is not None:
        delivered = delivered.filter(pl.col("subscriber_group") == subscribers)
        counts = counts.filter(pl.col("subscriber_group") == subscribers) if not counts.is_empty() else counts
    expected = 0 if counts.is_empty() else int(counts["deliveries_expected"].sum())
    return of_samples(delivered["latency_ms"].to_numpy(), expected)


def of_samples(latency_ms: np.ndarray, expected: int) -> Delays:
    """The delays of samples in the order of their sending, of ``expected`` messages."""
    if latency_ms.size == 0:
        return Delays(count=0, mean_ms=NONE, half_ms=None, std_ms=NONE, min_ms=NONE, p50_ms=NONE, max_ms=NONE,
                      never_percent=100.0 if expected else NONE)
    return Delays(
        count=int(latency_ms.size), mean_ms=float(latency_ms.mean()), half_ms=batch_means_ci95(latency_ms),
        std_ms=_spread(latency_ms), min_ms=float(latency_ms.min()),
        p50_ms=float(np.median(latency_ms)), max_ms=float(latency_ms.max()),
        never_percent=100 * (1 - latency_ms.size / expected) if expected else NONE)


def _spread(values: np.ndarray) -> float:
    """The standard deviation; what is left of sums of equal numbers is none."""
    if values.size < 2:
        return 0.0
    deviation = float(values.std(ddof=1))
    return 0.0 if deviation <= 1e-9 * abs(values.mean()) else deviation


def over_runs(runs: Sequence[Delays]) -> Delays:
    """Several runs as one: the mean of all samples, and its interval between the runs that have any."""
    counts = np.array([run.count for run in runs])
    some = [run for run in runs if run.count]
    if not some:
        return runs[0]
    weights = [run.count for run in some]
    means = [run.mean_ms for run in some]
    interval = mean_interval(means)
    half = (interval.high - interval.low) / 2 if len(some) > 1 else some[0].half_ms
    expected = sum(run.count / (1 - run.never_percent / 100) for run in some if run.never_percent < 100)
    missing = len(runs) - len(some)
    expected += missing * expected / len(some)
    return Delays(
        count=int(counts.sum()), mean_ms=float(np.average(means, weights=weights)), half_ms=half,
        std_ms=float(np.sqrt(np.average([run.std_ms**2 for run in some], weights=weights))),
        min_ms=min(run.min_ms for run in some), p50_ms=float(np.median([run.p50_ms for run in some])),
        max_ms=max(run.max_ms for run in some), never_percent=100 * (1 - counts.sum() / expected))
