"""Two-level fractional factorial designs: generators of a wanted resolution, and what is confounded with what.

A factor beyond the first ``q`` is the product of some of these (its generator). Products of generators that give the
identity form the defining relation; its shortest word is the resolution (Box and Hunter 1961). The smallest fraction
is looked for, and in it generators with few short words.

What it does not do: irregular fractions (Plackett-Burman), and blocking by confounding; blocks are repetitions here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

Word = int
"""Factors as bits."""
SEARCHED_MAX = 1_000
"""Sets of generators that are looked at before the best one so far is taken."""


@dataclass(frozen=True, kw_only=True)
class Fraction:
    """A fraction of a two-level design."""

    factors: int
    base: int
    """Factors whose levels are free: the design has ``2 ** base`` points."""
    generators: tuple[Word, ...]
    """For each further factor, the free ones whose product it is."""

    @property
    def relation(self) -> list[Word]:
        """The words of the defining relation, without the identity."""
        return _relation(self.base, self.generators)

    @property
    def resolution(self) -> int | None:
        """Length of the shortest word; ``None`` for the full design, in which nothing is confounded."""
        return min((word.bit_count() for word in self.relation), default=None)

    def rows(self) -> list[tuple[int, ...]]:
        """The points: 0 or 1 for each factor."""
        points = []
        for number in range(2**self.base):
            free = [number >> bit & 1 for bit in range(self.base)]
            # In levels of -1 and 1 a generator is a product; in 0 and 1 the parity, turned for words of even length.
            made = [(word & number).bit_count() + word.bit_count() + 1 & 1 for word in self.generators]
            points.append((*free, *made))
        return points

    def aliases(self, names: Sequence[str]) -> list[str]:
        """Main effects and two-way interactions that cannot be told apart, a line for each set of them."""
        effects = [1 << bit for bit in range(self.factors)]
        effects += [first | second for first, second in combinations(effects, 2)]
        relation = [0, *self.relation]
        sets: dict[Word, list[Word]] = {}
        for effect in effects:
            sets.setdefault(min(effect ^ word for word in relation), []).append(effect)
        return [" = ".join(" × ".join(names[bit] for bit in range(self.factors) if effect >> bit & 1)
                           for effect in members)
                for members in sets.values() if len(members) > 1]


def fraction(factors: int, resolution: int) -> Fraction:
    """The smallest fraction of at least this resolution; the full design where there is none."""
    for base in range(max(1, (factors).bit_length() - 1), factors):
        found = _best(factors, base, resolution)
        if found is not None:
            return found
    return Fraction(factors=factors, base=factors, generators=())


def _best(factors: int, base: int, resolution: int) -> Fraction | None:
    """The fraction with the fewest words of the shortest length, among those that are looked at."""
    candidates = [word for word in range(2**base) if word.bit_count() >= resolution - 1]
    candidates.sort(key=lambda word: (-word.bit_count(), word))
    if len(candidates) < factors - base:
        return None
    best: tuple[tuple[int, ...], Fraction] | None = None
    for looked, generators in enumerate(_sets(base, candidates, factors - base, resolution)):
        found = Fraction(factors=factors, base=base, generators=generators)
        lengths = [word.bit_count() for word in found.relation]
        rank = tuple(lengths.count(length) for length in range(resolution, factors + 1))
        if best is None or rank < best[0]:
            best = rank, found
        if looked >= SEARCHED_MAX:
            break
    return None if best is None else best[1]


def _sets(base: int, candidates: list[Word], count: int, resolution: int) -> Iterator[tuple[Word, ...]]:
    """Sets of generators whose defining relation has no shorter word; parts that have one are not followed."""

    def grow(chosen: tuple[Word, ...], start: int) -> Iterator[tuple[Word, ...]]:
        if len(chosen) == count:
            yield chosen
            return
        for index in range(start, len(candidates) - (count - len(chosen)) + 1):
            more = (*chosen, candidates[index])
            if all(word.bit_count() >= resolution for word in _relation(base, more)):
                yield from grow(more, index + 1)

    yield from grow((), 0)


def _relation(base: int, generators: Sequence[Word]) -> list[Word]:
    words = [0]
    for index, generator in enumerate(generators):
        words += [word ^ generator ^ 1 << base + index for word in words]
    return words[1:]
