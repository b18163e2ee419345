"""How much a number changes from one side to the other: a judgement, its interval, and its words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqttlab import statistics
from mqttlab.digits import plain

TOLERANCE_PERCENT = 5.0
"""Changes of up to this, over the whole interval, count as none."""
# From this factor on, "3 times as high" reads better than "200 % higher".
TIMES = 2.0


@dataclass(frozen=True, kw_only=True)
class Change:
    """One number of both sides, a value a run."""

    first: tuple[float, ...]
    second: tuple[float, ...]
    word: str
    """``same``, ``differs``, ``undecided`` (too few runs, or too much scatter), ``one run`` (a side has no second one,
    so that there is no interval), or ``missing`` (a side has no value)."""
    ratio: float | None
    """Of the means; ``None`` where the first is zero, or a side has no value."""
    low: float | None = None
    """The 95 % interval of that ratio, where there is one."""
    high: float | None = None

    @property
    def means(self) -> tuple[float | None, float | None]:
        """Of both sides."""
        return _mean(self.first), _mean(self.second)

    @property
    def size(self) -> float:
        """How far apart the means are, whichever is larger; without end where one of them is zero or missing."""
        first, second = self.means
        if first == second:
            return 0.0
        if not first or not second or first * second < 0:
            return math.inf
        return abs(math.log(second / first))

    @property
    def percent(self) -> float | None:
        """Of the means, in per cent of the first."""
        return None if self.ratio is None else 100 * (self.ratio - 1)

    def apart(self, tolerance_percent: float) -> bool:
        """Whether it counts among what differs: a verdict, or one run each further apart than the tolerance."""
        if self.word == "one run":
            return self.size > 0 and (self.percent is None or abs(self.percent) > tolerance_percent)
        return self.word == "differs" or (self.word == "missing" and bool(self.first or self.second))


def change(
    first: Sequence[float], second: Sequence[float], *, paired: bool = False,
    tolerance_percent: float = TOLERANCE_PERCENT,
) -> Change:
    """Judge two series, a value a run; in the same order where ``paired``."""
    a, b = tuple(first), tuple(second)
    if not a or not b:
        return Change(first=a, second=b, word="missing", ratio=None)
    before, after = math.fsum(a) / len(a), math.fsum(b) / len(b)
    ratio = after / before if before else None
    if min(len(a), len(b)) < 2:
        return Change(first=a, second=b, word="one run", ratio=ratio)
    pair = paired and len(a) == len(b)
    if not any(a) and not any(b):
        return Change(first=a, second=b, word="same", ratio=None)
    found = statistics.ratio_interval(a, b, paired=pair)
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        # A mean that cannot be told from zero has no ratio; the difference says whether there is one.
        of = statistics.difference(a, b, paired=pair).interval
        return Change(first=a, second=b, word="differs" if of.low > 0 or of.high < 0 else "undecided", ratio=ratio)
    margin = tolerance_percent / 100
    word = ("same" if max(1 - found.low, found.high - 1) <= margin else
            "undecided" if found.low <= 1 <= found.high else "differs")
    return Change(first=a, second=b, word=word, ratio=ratio, low=found.low, high=found.high)


def words(of: Change, less: str, more: str, figure: Callable[[float | None], str]) -> str:
    """A change in words, such as ``24 % higher (+22 … +26 %)``, ``the same (−2 … +4 %)`` or ``3.1 instead of 0``.

    Args:
        of: which.
        less: what a smaller number is: ``lower``, ``fewer bytes up``.
        more: what a larger one is.
        figure: how the number is written.
    """
    first, second = of.means
    if of.word == "missing" or first is None or second is None or of.ratio is None or not second:
        return "the same" if first == second else f"{figure(second)} instead of {figure(first)}"
    if of.word == "one run":
        return by(of.ratio, less, more)
    if of.word == "undecided":
        # In the order of the sentence, which begins with the second.
        return f"no difference shown ({figure(second)} against {figure(first)}{_and(interval(of))})"
    if of.word == "same":
        return f"the same {interval(of)}".rstrip()
    return f"{by(of.ratio, less, more)} {interval(of)}".rstrip()


def interval(of: Change) -> str:
    """The interval in per cent of the first; empty where there is none, or where it is so wide that a number without
    sign would be negative in it: two runs that scatter may tell no more."""
    if of.low is None or of.high is None or of.low <= 0:
        return ""
    low, high = 100 * (of.low - 1), 100 * (of.high - 1)
    digits = 1 if round(low) == round(high) and low != high else 0
    ends = [_signed(end, digits) for end in (low, high)]
    # Simulations without chance have no width.
    return f"({ends[0]} … {ends[1]} %)" if ends[0] != ends[1] else ""


def by(ratio: float, less: str, more: str) -> str:
    """A ratio of means in words."""
    if ratio >= TIMES:
        return f"{_digits(ratio)} times as {MANY.get(more.split()[0], 'high')}{more.removeprefix(more.split()[0])}"
    percent = abs(100 * (ratio - 1))
    if percent < 0.05:
        return "the same"
    return f"{percent:.0f} % {more if ratio > 1 else less}" if percent >= 1 else (
        f"{percent:.1f} % {more if ratio > 1 else less}")


def _signed(value: float, digits: int) -> str:
    written = f"{value:+.{digits}f}".replace("-", "−")
    return written.lstrip("+−") if not float(written.replace("−", "-")) else written


def _digits(value: float) -> str:
    return plain(value, 3)


def _and(text: str) -> str:
    return f", {text.strip('()')}" if text else ""


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


MANY = {"more": "many", "higher": "high", "longer": "long"}
