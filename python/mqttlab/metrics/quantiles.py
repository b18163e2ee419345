"""Quantiles of latencies, with how many there are and whether these tell them.

The 95th and 99th are not told of too few (:mod:`mqttlab.samples`), nor where all values from their rank on are equal,
as of publishers in step: one instant of their schedule decides then, and not chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqttlab.samples import FEWEST, fewest
from mqttlab.statistics import quantile_intervals

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""What headlines have of latencies, by name."""
Bounded = tuple[float | None, float | None, float | None]
"""A value with the bounds of its 95 % interval."""


@dataclass(frozen=True, kw_only=True)
class Latency:
    """A quantile of latencies, or the largest, in ms, with its 95 % interval; a bound that the run cannot tell is
    ``None``."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
    """Of how many latencies."""
    enough: bool = True
    """Whether these are enough for the quantile."""
    alike: int | None = None
    """Of a 95th or 99th percentile that equals the largest latency, how many latencies do; ``None`` of others, and
    where that is not known."""

    @property
    def is_quantile(self) -> bool:
        """Whether the latencies tell it: they are enough, and not all equal from its rank on."""
        return self.enough and self.alike is None


def bounds(samples: NDArray[np.float64]) -> dict[str, tuple[float | None, float | None]]:
    """Of each quantile of some latencies the 95 % interval, by name: order statistics of as many independent latencies
    as these, which share queues and losses with their neighbours, are worth (docs/explanation/statistics.md).

    Args:
        samples: in ms, in the order of sending; at least one.
    """
    told = quantile_intervals(samples, list(QUANTILES.values()), correlated=True)
    return {name: (_finite(one.low), _finite(one.high)) for name, one in zip(QUANTILES, told, strict=True)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def latencies(
    quantiles: Mapping[str, Bounded], largest: float | None, n: int, alike: int | None = None,
) -> dict[str, Latency]:
    """What headlines have of latencies, by ``p50``, ``p95``, ``p99`` and ``max``.

    Args:
        quantiles: by name, in ms.
        largest: in ms.
        n: how many latencies there are.
        alike: how many of them are as large as the largest; ``None`` where that is not known.
    """
    found = {name: Latency(
        value=value, low=low, high=high, n=n, enough=n >= fewest(name),
        alike=alike if name in FEWEST and value is not None and value == largest and (alike or 0) > 1 else None)
        for name, (value, low, high) in quantiles.items()}
    # Of the largest of a sample no bound above is known, whatever its size.
    return found | {"max": Latency(value=largest, n=n)}
