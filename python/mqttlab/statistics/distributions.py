"""Quantiles and probabilities of the distributions in use.

Student's and the normal quantile are worked out here, and the binomial distribution, so that a run's report and a
comparison, which need no more, do not wait for scipy to load; scipy is asked for the rest, when it is wanted. A test
holds them equal.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

NORMAL = NormalDist()
STEPS_MOST = 200


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    """The value below which Student's t with this many degrees of freedom lies with this probability.

    Newton's method on the tail, from below: the distribution function bends so that no step can overshoot.
    """
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    tail = 1 - probability
    z = NORMAL.inv_cdf(probability)
    # Cornish and Fisher's first terms, all positive: they too stay below the quantile.
    t = z + (z**3 + z) / (4 * freedom)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    for _ in range(STEPS_MOST):
        density = scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
        step = (t_tail(t, freedom) - tail) / density
        t += step
        # Each step squares what is wrong: behind this one nothing is left.
        if step <= 1e-9 * t:
            break
    return t


def t_tail(t: float, freedom: float) -> float:
    """The probability of a larger t than this one."""
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    tail = 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return tail if t >= 0 else 1 - tail


def normal_quantile(probability: float) -> float:
    """The value below which the standard normal lies with this probability; infinite for 0 and 1."""
    if probability in (0, 1):
        return math.inf if probability else -math.inf
    return NORMAL.inv_cdf(probability)


def normal_below(z: float) -> float:
    """The probability that the standard normal is smaller."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def f_tail(f: float, freedom: int, freedom_below: int) -> float:
    """The probability of a larger F."""
    return float(_special().fdtrc(freedom, freedom_below, f))


def f_quantile(probability: float, freedom: int, freedom_below: int) -> float:
    """The value below which F lies with this probability."""
    return float(_special().fdtri(freedom, freedom_below, probability))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """The value below which the beta distribution lies with this probability."""
    return float(_special().betaincinv(a, b, probability))


def binomial_below(n: int, share: float, successes: range | None = None) -> NDArray[np.float64]:
    """The probability of at most 0, 1, ..., n successes of n, or of at most so many ``successes``."""
    among = range(n + 1) if successes is None else successes
    wanted = np.arange(among.start, among.stop)
    if share in (0, 1):
        return np.where(wanted >= n * share, 1.0, 0.0)
    # Ten standard deviations away, and where these are few fifty successes, no tail is left.
    away = math.ceil(10 * math.sqrt(n * share * (1 - share))) + 50
    first, last = max(math.floor(n * share) - away, 0), min(math.ceil(n * share) + away, n)
    # Each probability by the one before it, and all of them by their sum: no factorial of n, whose digits would not do.
    before = np.arange(first, last, dtype=np.float64)
    logarithms = np.concatenate([[0.0], np.cumsum(np.log((n - before) / (before + 1) * (share / (1 - share))))])
    sums = np.cumsum(np.exp(logarithms - logarithms.max()))
    found: NDArray[np.float64] = np.concatenate([[0.0], sums / sums[-1]])[np.clip(wanted, first - 1, last) - first + 1]
    return found


def noncentral_t_shift(t: float, freedom: float, below: float) -> float:
    """The noncentrality with which t is smaller than this one with the probability ``below``."""
    return float(_special().nctdtrinc(freedom, below, t))


def _special() -> Any:
    from scipy import special

    return special


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    # Lentz's method, both halves of a step at once.
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, STEPS_MOST):
        for term in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction
