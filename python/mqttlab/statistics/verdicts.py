"""What a difference means, in four words: better, worse, equivalent, undecided; and over many comparisons at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from mqttlab.statistics.distributions import t_quantile
from mqttlab.statistics.effects import Difference
from mqttlab.statistics.planning import RUNS_MOST, fewest

Direction = Literal["lower", "higher", "neither"]
Word = Literal["better", "worse", "equivalent", "undecided", "different"]
WORDS: tuple[Word, ...] = get_args(Word)
ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A word, and for ``undecided`` how many more runs of each series would probably decide."""

    word: Word
    p: float
    """Of no difference, adjusted for all that is compared with it."""
    p_equivalent: float | None
    """Of a difference beyond the margin, adjusted likewise; ``None`` without a margin."""
    runs_needed: int | None = None

    def words(self) -> str:
        """The word, with the runs still needed."""
        if self.word != "undecided":
            return self.word
        if self.runs_needed is None:
            return f"undecided – over {RUNS_MOST} more runs"
        return f"undecided – {self.runs_needed} more run{'' if self.runs_needed == 1 else 's'}"


def holm(p: Sequence[float]) -> list[float]:
    """p values adjusted so that the chance of any wrong refusal among them stays below α (Holm 1979)."""
    order = sorted(range(len(p)), key=lambda place: p[place])
    adjusted = [1.0] * len(p)
    before = 0.0
    for rank, place in enumerate(order):
        before = max(before, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = before
    return adjusted


def judge(
    differences: Sequence[Difference], margins: Sequence[float | None], directions: Sequence[Direction],
    *, alpha: float = ALPHA,
) -> list[Verdict]:
    """A verdict for each of several differences that are reported together.

    *Equivalent*: two one-sided tests refuse a difference of the margin or more; a difference that is shown and is
    smaller than what matters is equivalent, too. *Better*, *worse*: no difference is refused, and its sign is good or
    bad (*different* where the metric has no good side). *Undecided*: neither. Holm's method holds the chance of any
    wrong word among all differences, and among all equivalences, to ``alpha`` each.

    Args:
        differences: second minus first, of one family.
        margins: the largest difference that does not matter, in the values' unit; ``None`` for no margin.
        directions: which side is good.
    """
    # What is the same in every run is no comparison that could go wrong.
    tested_places = [place for place, found in enumerate(differences) if found.error or found.interval.estimate]
    p = dict(zip(tested_places, holm([differences[place].p for place in tested_places]), strict=True))
    bounded = [place for place in tested_places if (margins[place] or 0.0) > 0]
    tested = holm([differences[place].p_equivalent(margins[place] or 0.0) for place in bounded])
    p_equivalent: dict[int, float] = dict(zip(bounded, tested, strict=True))
    verdicts = []
    for place, (found, margin, direction) in enumerate(zip(differences, margins, directions, strict=True)):
        equivalent = p_equivalent.get(place)
        word: Word = "undecided"
        needed = None
        if place not in p or (equivalent is not None and equivalent <= alpha):
            word = "equivalent"
        elif p[place] <= alpha:
            word = _side(found.interval.estimate, direction)
        else:
            needed = runs_needed(found, margin, alpha=alpha / max(len(p), 1))
        verdicts.append(Verdict(word=word, p=p.get(place, 1.0), p_equivalent=equivalent, runs_needed=needed))
    return verdicts


def runs_needed(found: Difference, margin: float | None, *, alpha: float = ALPHA) -> int | None:
    """How many more runs a series would decide, if the difference and the spread stay what they are.

    The smaller of two: until the interval no longer covers zero, and until it lies within the margin. ``None`` where
    more than 1000 would be needed.
    """
    n = found.interval.n
    scale = found.error * math.sqrt(n)
    estimate = abs(found.interval.estimate)
    # Degrees of freedom grow with n from what they are.
    per_run = max(found.freedom / max(n - 1, 1), 1.0)
    # What lies nearer than this to its goal would need for ever.
    targets = [(estimate, alpha / 2)]
    if margin is not None:
        targets.append((margin - estimate, alpha))
    needed = [_until(scale, distance, tail, n, per_run) for distance, tail in targets]
    return min((count for count in needed if count is not None), default=None)


def _until(scale: float, distance: float, tail: float, n: int, per_run: float) -> int | None:
    """How many runs more make the interval narrower than a distance."""
    if distance <= 0:
        return None

    def narrow(count: int) -> bool:
        return t_quantile(1 - tail, per_run * (count - 1)) * scale / math.sqrt(count) < distance

    found = fewest(narrow, n + 1, n + RUNS_MOST)
    return None if found is None else found - n


def _side(estimate: float, direction: Direction) -> Word:
    if direction == "neither":
        return "different"
    return "better" if (estimate < 0) == (direction == "lower") else "worse"
