"""What each factor does: main effects, two-way interactions, allocation of variation (Jain 1991, chapters 18 to 22).

The model is linear, with effects that sum to zero over a factor's levels, and, where runs come in blocks, the blocks as
one more factor without interactions. Sums of squares are of type II: what a term explains beyond all terms that do not
contain it; in a balanced design they add up and do not depend on the order. What a fraction of a design cannot tell
apart is confounded: main effects go before interactions, and interactions in the order of the factors; the later one
has no number, and the earlier one says whose effect it may be as well.

What it does not model: interactions of three and more factors, which stay in the residuals, and other than normal
errors, for which residuals are given to look at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from mqttlab.statistics.distributions import f_tail, t_quantile
from mqttlab.statistics.interval import CONFIDENCE, Interval, Numbers, Values, sample

BLOCK = "block"


@dataclass(frozen=True, kw_only=True)
class Term:
    """A factor, an interaction of two, the block, or what is left: its share of the variation."""

    factors: tuple[str, ...]
    """Empty for the residuals."""
    freedom: int
    squares: float
    percent: float
    """Of the total variation about the mean."""
    f: float | None
    p: float | None
    aliases: tuple[str, ...] = ()
    """Terms that the design cannot tell from this one."""

    @property
    def confounded(self) -> bool:
        """Whether the design cannot tell it from other terms."""
        return self.freedom == 0 and bool(self.factors)

    @property
    def name(self) -> str:
        """As people write it."""
        return " × ".join(self.factors) if self.factors else "residuals"


@dataclass(frozen=True, kw_only=True)
class Effect:
    """How far a level, or a pair of levels, lies from what the terms below it make expect."""

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class Factorial:
    """The model of one response."""

    mean: float
    terms: tuple[Term, ...]
    effects: tuple[Effect, ...]
    fitted: Values
    residuals: Values
    freedom: int
    """Of the residuals."""
    r_squared: float
    balanced: bool
    blocked: bool

    def term(self, *factors: str) -> Term:
        """The term of these factors.

        Raises:
            KeyError: the model has none.
        """
        for term in self.terms:
            if term.factors == factors:
                return term
        raise KeyError(factors)


def factorial(
    levels: Mapping[str, Sequence[str]], values: Numbers, *, blocks: Sequence[int] | None = None,
    confidence: float = CONFIDENCE,
) -> Factorial | None:
    """Fit the model of main effects and two-way interactions.

    Args:
        levels: for each factor its level in every run, as text.
        values: the response of each run, in the same order.
        blocks: the block of each run, where runs were done in blocks.
        confidence: of the effects' intervals.

    Returns:
        ``None`` where no factor varies, or nothing is left to judge by: no more runs than the design has points.

    Raises:
        ValueError: lengths that differ, or a value that is not finite.
    """
    y = sample(values)
    if any(len(column) != y.size for column in levels.values()) or (blocks is not None and len(blocks) != y.size):
        raise ValueError("factors, blocks and values are not of one length")
    coded: dict[tuple[str, ...], Values] = {
        (name,): _coded(column) for name, column in levels.items() if len(set(column)) > 1
    }
    if not coded or y.size < 3:
        return None
    for pair in combinations([name for name, *_ in coded], 2):
        left, right = coded[pair[:1]], coded[pair[1:]]
        coded[pair] = np.einsum("ni,nj->nij", left, right).reshape(y.size, -1)
    blocked = blocks is not None and len(set(blocks)) > 1
    if blocks is not None and blocked:
        coded[(BLOCK,)] = _coded([str(block) for block in blocks])
    design = _Design(coded, y)
    freedom = y.size - design.rank(list(coded))
    if freedom < 1:
        return None
    rss = design.rss(list(coded))
    total = float(np.sum((y - y.mean()) ** 2))
    aliases = design.drop_confounded()
    terms = [_term(design, factors, rss, freedom, total, aliases) for factors in coded]
    terms.append(Term(factors=(), freedom=freedom, squares=rss, percent=_percent(rss, total), f=None, p=None))
    kept = [term.factors for term in terms if term.factors and not term.confounded]
    fitted = design.fit(kept)
    effects = _effects(design, kept, {name: list(column) for name, column in levels.items()},
                       math.sqrt(rss / freedom), freedom, confidence)
    return Factorial(
        mean=float(y.mean()), terms=tuple(terms), effects=tuple(effects), fitted=fitted, residuals=y - fitted,
        freedom=freedom, r_squared=1 - rss / total if total > 0 else 0.0,
        balanced=_balanced([levels[key[0]] for key in coded if len(key) == 1 and key != (BLOCK,)]),
        blocked=blocked,
    )


class _Design:
    """Columns by term, and least squares on any choice of them."""

    def __init__(self, coded: Mapping[tuple[str, ...], Values], y: Values) -> None:
        self.coded, self.y = dict(coded), y
        # Blocks come last among the columns, but before interactions in what they may explain.
        self.order = sorted(self.coded, key=len)

    def matrix(self, chosen: Sequence[tuple[str, ...]]) -> Values:
        """The mean's column and those of the terms."""
        return np.hstack([np.ones((self.y.size, 1)), *(self.coded[factors] for factors in chosen)])

    def rank(self, chosen: Sequence[tuple[str, ...]]) -> int:
        """How many parameters these terms can tell apart."""
        return int(np.linalg.matrix_rank(self.matrix(chosen)))

    def drop_confounded(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Leave out what adds nothing to the terms before it; which terms cannot be told from which."""
        kept: list[tuple[str, ...]] = []
        aliases: dict[tuple[str, ...], tuple[str, ...]] = {}
        for factors in self.order:
            if self.rank([*kept, factors]) > self.rank(kept):
                kept.append(factors)
                continue
            for other in kept:
                if self.rank([other, factors]) == self.rank([other]):
                    aliases[other] = (*aliases.get(other, ()), " × ".join(factors))
                    aliases[factors] = (*aliases.get(factors, ()), " × ".join(other))
        self.coded = {factors: self.coded[factors] for factors in self.coded if factors in kept}
        return aliases

    def fit(self, chosen: Sequence[tuple[str, ...]]) -> Values:
        """Fitted values."""
        matrix = self.matrix(chosen)
        fitted: Values = matrix @ np.linalg.lstsq(matrix, self.y, rcond=None)[0]
        return fitted

    def rss(self, chosen: Sequence[tuple[str, ...]]) -> float:
        """Residual sum of squares; what is rounding counts as nothing."""
        squares = float(np.sum((self.y - self.fit(chosen)) ** 2))
        scale = float(np.sum(self.y**2))
        return 0.0 if squares <= 1e-24 * scale else squares


def _term(
    design: _Design, factors: tuple[str, ...], rss: float, freedom: int, total: float,
    aliases: Mapping[tuple[str, ...], tuple[str, ...]],
) -> Term:
    """What a term explains beyond those that do not contain it."""
    known = aliases.get(factors, ())
    if factors not in design.coded:
        return Term(factors=factors, freedom=0, squares=0.0, percent=0.0, f=None, p=None, aliases=known)
    others = [other for other in design.coded if not set(factors) <= set(other)]
    gained = design.rank([*others, factors]) - design.rank(others)
    squares = max(design.rss(others) - design.rss([*others, factors]), 0.0)
    if rss == 0:
        f, p = (math.inf, 0.0) if squares > 0 else (0.0, 1.0)
    else:
        f = squares / gained / (rss / freedom)
        p = f_tail(f, gained, freedom)
    return Term(factors=factors, freedom=gained, squares=squares, percent=_percent(squares, total), f=f, p=p,
                aliases=known)


def _effects(
    design: _Design, kept: Sequence[tuple[str, ...]], levels: Mapping[str, Sequence[str]], spread: float, freedom: int,
    confidence: float,
) -> list[Effect]:
    """The effect of each level and of each pair of levels that was measured, with its interval."""
    matrix = design.matrix(kept)
    inverse = np.linalg.pinv(matrix.T @ matrix)
    parameters = inverse @ matrix.T @ design.y
    t = t_quantile((1 + confidence) / 2, freedom)
    found = []
    start = 1
    for factors in kept:
        width = design.coded[factors].shape[1]
        known = [list(dict.fromkeys(levels[name])) for name in factors if name != BLOCK]
        if factors == (BLOCK,):
            start += width
            continue
        measured = set(zip(*(levels[name] for name in factors), strict=True))
        for combination in product(*known):
            if combination not in measured:
                continue
            row = np.ones(1)
            for options, level in zip(known, combination, strict=True):
                row = np.outer(row, _codes(len(options))[options.index(level)]).ravel()
            contrast = np.zeros(matrix.shape[1])
            contrast[start : start + width] = row
            estimate = float(contrast @ parameters)
            half = t * spread * math.sqrt(max(float(contrast @ inverse @ contrast), 0.0))
            found.append(Effect(factors=factors, levels=combination, interval=Interval(
                estimate=estimate, low=estimate - half, high=estimate + half, n=design.y.size, confidence=confidence,
                method="linear model")))
        start += width
    return found


def _coded(column: Sequence[str]) -> Values:
    """A factor's columns: effects that sum to zero over its levels."""
    options = list(dict.fromkeys(column))
    coded: Values = _codes(len(options))[[options.index(level) for level in column]]
    return coded


def _codes(count: int) -> Values:
    return np.vstack([np.eye(count - 1), -np.ones((1, count - 1))])


def _percent(squares: float, total: float) -> float:
    return 100 * squares / total if total > 0 else 0.0


def _balanced(columns: Sequence[Sequence[str]]) -> bool:
    """Whether every combination of levels was measured equally often."""
    cells = list(zip(*columns, strict=True))
    counts = {cells.count(cell) for cell in set(cells)}
    return len(counts) == 1 and len(set(cells)) == math.prod(len(set(column)) for column in columns)
