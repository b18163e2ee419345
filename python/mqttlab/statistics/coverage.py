"""What intervals really cover, where data are not as textbooks have them: as measured, for warnings.

``coverage.json`` and ``correlated.json`` are written by ``benches/coverage/run.py``, which holds every interval against
2,000 artificial experiments.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from mqttlab.statistics.distributions import binomial_below
from mqttlab.statistics.proportions import proportion_interval

WARN_BELOW = 0.92
CHANCE = 0.3
"""The 95th percentile of the correlation at lag 1 of 20 independent values: -1/20 + 1.645/sqrt(20)."""


def mean_coverage(n: int, skewness: float) -> float:
    """What share of the intervals of means covers, for runs of this many values that are skewed like this.

    That of the most skewed family of values that was tried whose samples of this size are, on the average, no more
    skewed.

    Args:
        n: runs of a point; the nearest number tried is taken that is not larger.
        skewness: of the runs (:func:`mqttlab.statistics.skewness`), best averaged over the points of an experiment: a
            few runs show little of it.
    """
    rows = _measured()
    size = max([row["n"] for row in rows if row["n"] <= n], default=min(row["n"] for row in rows))
    alike = [row for row in rows if row["n"] == size]
    skewed = [row for row in alike if row["family"] != "normal" and row["skewness"] <= abs(skewness)]
    normal = [row for row in alike if row["family"] == "normal"]
    return float(max(skewed, key=lambda row: float(row["skewness"]), default=normal[0])["coverage"])


def proportion_coverage(count: int, of: int) -> float:
    """What share of the intervals of a proportion would cover, if the true share were the one found: exact."""
    share = count / of
    below = binomial_below(of, share)
    chances = [float(below[0]), *(float(step) for step in below[1:] - below[:-1])]
    # Intervals far from the share found do not cover it, and hardly happen.
    return sum(chance for k, chance in enumerate(chances) if chance > 1e-9
               and proportion_interval(k, of).covers(share))


def batches_coverage(correlation: float) -> float | None:
    """What share of the intervals by batch means covers, for runs whose batches are correlated like this.

    Args:
        correlation: of neighbouring batches (:func:`mqttlab.statistics.batch_correlation`).

    Returns:
        The share; ``None`` where one run in twenty with independent batches shows as much by chance.
    """
    if correlation < CHANCE:
        return None
    return float(next(row["coverage"] for row in _of_batches() if correlation < row["below"]))


@cache
def _of_batches() -> list[dict[str, float]]:
    text = resources.files(__package__).joinpath("correlated.json").read_text(encoding="utf-8")
    rows: list[dict[str, float]] = json.loads(text)
    return rows


@cache
def _measured() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("coverage.json").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = json.loads(text)
    return rows
