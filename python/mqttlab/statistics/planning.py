"""How many runs an answer takes, before and while an experiment goes on."""

from __future__ import annotations

import math
from collections.abc import Callable

from mqttlab.digits import plain
from mqttlab.statistics.distributions import noncentral_t_shift, t_quantile
from mqttlab.statistics.interval import CONFIDENCE, Numbers, sample

RUNS_MOST = 1000
"""Where more runs than these would be needed, their number is not told."""


def runs_for_half_width(values: Numbers, half_width: float, *, confidence: float = CONFIDENCE) -> int | None:
    """How many runs in all give the mean a t interval of this half width, if the spread stays what it is.

    A pilot's estimate: stopping as soon as an interval is narrow enough makes intervals somewhat too narrow, so that a
    least number of runs should be done in any case.

    Args:
        values: one value a run so far, at least two.
        half_width: in the values' unit.

    Returns:
        The number of runs, those done included; ``None`` where it is more than 1000.

    Raises:
        ValueError: fewer than two values, one that is not finite, or a half width that is not above zero.
    """
    x = sample(values, 2)
    if not half_width > 0:
        raise ValueError(f"a half width is above 0, not {plain(half_width)}")
    spread = float(x.std(ddof=1))

    def enough(n: int) -> bool:
        return t_quantile((1 + confidence) / 2, n - 1) * spread / math.sqrt(n) <= half_width

    return fewest(enough, 2, RUNS_MOST)


def smallest_difference(
    spread: float, n: int, *, power: float = 0.8, alpha: float = 0.05, paired: bool = False,
) -> float:
    """The smallest difference of two means that n runs of each show with this power (Student's t).

    Args:
        spread: the standard deviation of one run's value; of the pairs' differences where ``paired``.
        n: runs of each.

    Returns:
        In the unit of ``spread``; infinite for fewer than two runs.
    """
    if n < 2:
        return math.inf
    freedom = n - 1 if paired else 2 * (n - 1)
    error = spread * math.sqrt((1 if paired else 2) / n)
    wanted = t_quantile(1 - alpha / 2, freedom)
    # The noncentral t: the shift at which the test refuses with this probability.
    shift = noncentral_t_shift(wanted, freedom, 1 - power)
    return shift * error


def fewest(enough: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number from ``low`` to ``high`` that is enough, where more are enough, too; ``None`` if none is."""
    if not enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
