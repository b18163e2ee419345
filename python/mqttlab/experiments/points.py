"""Designs: from factors to points.

Points are numbered from 0 in the design's own order; :mod:`~mqttlab.experiments.schedule` says in which order they run.
A point's key is made of its levels' texts, so that it stays the same when levels are added beside it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mqttlab.experiments.factors import Factor, Level, labels
from mqttlab.experiments.fractional import fraction
from mqttlab.experiments.model import FRACTIONS_MAX, ExperimentFile
from mqttlab.quantity import shown

POINTS_MAX = 100_000


class DesignError(ValueError):
    """A design that cannot be; ``place`` is the field of the file."""

    def __init__(self, place: tuple[int | str, ...], words: str) -> None:
        self.place = place
        self.words = words
        super().__init__(words)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One combination of levels."""

    number: int
    """From 0, in the design's order. A search numbers its points as it meets them."""
    key: str
    """Of its levels' texts; equal for equal points."""
    levels: dict[str, Level]
    """By factor."""
    factors: tuple[Factor, ...]

    def __str__(self) -> str:
        return labels(self.factors, self.levels)


@dataclass(frozen=True, kw_only=True)
class Design:
    """Factors, and the points that are run."""

    kind: str
    factors: tuple[Factor, ...]
    points: tuple[Point, ...]
    """Of a search, one for each combination of the other factors, at the lowest level of the one that is searched."""
    reference: Point | None
    """What others are compared with; not one of ``points`` where the design does not hold it."""
    resolution: int | None = None
    """Of a fractional design in which something is confounded."""
    aliases: tuple[str, ...] = ()
    """What cannot be told apart in it, a line for each set of effects."""


def point(factors: Sequence[Factor], levels: Mapping[str, Level], number: int = 0) -> Point:
    """A point of these levels."""
    text = json.dumps({name: level.text for name, level in sorted(levels.items())})
    return Point(number=number, key=hashlib.sha256(text.encode()).hexdigest()[:10], levels=dict(levels),
                 factors=tuple(factors))


def design_of(file: ExperimentFile, factors: Sequence[Factor], seed: int) -> Design:
    """The design that a file asks for.

    Raises:
        DesignError: it cannot be, with the field that is wrong.
    """
    kind = file.design.kind
    _check(file, factors)
    reference = _reference(file, factors) if factors else None
    resolution: int | None = None
    aliases: tuple[str, ...] = ()
    rows: list[dict[str, Level]]
    if kind == "fractional":
        found = fraction(len(factors), file.design.resolution or 5)
        rows = [{factor.name: factor.levels[level] for factor, level in zip(factors, row, strict=True)}
                for row in found.rows()]
        resolution, aliases = found.resolution, tuple(found.aliases([factor.name for factor in factors]))
    elif kind == "one-at-a-time":
        assert reference is not None
        rows = [reference.levels, *({**reference.levels, factor.name: level} for factor in factors
                                    for level in factor.levels if level != reference.levels[factor.name])]
    elif kind in ("latin-hypercube", "sobol"):
        rows = _filling(kind, file.design.points or 0, factors, seed)
    elif kind == "list":
        rows = [_listed(index, written, factors) for index, written in enumerate(file.points)]
    else:
        searched = file.search.factor if file.search is not None else None
        choices = [factor.levels if factor.name != searched else (factor.at(0),) for factor in factors]
        rows = [dict(zip((factor.name for factor in factors), levels, strict=True))
                for levels in itertools.product(*choices)]
    points = _numbered(rows, factors)
    if reference is not None:
        reference = next((point for point in points if point.key == reference.key), reference)
    return Design(kind=kind, factors=tuple(factors), points=points, reference=reference, resolution=resolution,
                  aliases=aliases)


def _numbered(rows: Sequence[dict[str, Level]], factors: Sequence[Factor]) -> tuple[Point, ...]:
    distinct = {made.key: made for made in (point(factors, row) for row in rows)}
    return tuple(point(factors, made.levels, number) for number, made in enumerate(distinct.values()))


def _check(file: ExperimentFile, factors: Sequence[Factor]) -> None:
    kind = file.design.kind
    for index, factor in enumerate(factors):
        if not factor.levels and factor.ends is None and kind != "list":
            raise DesignError(("factors", index), "has no levels; add `levels`, or a `range`")
        spread = kind in ("latin-hypercube", "sobol") or (file.search is not None and file.search.factor == factor.name)
        if not factor.levels and factor.ends is not None and not spread and kind != "list":
            raise DesignError(("factors", index, "range"), f"has no `levels`, which a design {shown(kind)} needs; "
                                                           "write how many, such as levels = 5")
        if kind == "fractional" and len(factor.levels) != 2:
            raise DesignError(("factors", index), f"has {len(factor.levels)} levels, but a fractional design has two "
                                                  "of each factor; keep two, or use design = \"full\"")
    if not factors and (kind != "full" or file.points):
        raise DesignError(("factors",), f"is missing, but a design {shown(kind)} varies something; add [[factors]]")
    if kind == "fractional" and len(factors) > FRACTIONS_MAX:
        raise DesignError(("factors",), f"are {len(factors)}, but a fractional design has at most {FRACTIONS_MAX}")
    if (kind == "list") != bool(file.points):
        raise DesignError(("points",), "is missing; a design \"list\" needs [[points]]" if kind == "list" else
                          f"are listed, but the design is {shown(kind)}; write design = \"list\", or leave them out")
    if (kind == "search") != (file.search is not None):
        raise DesignError(("search",), "is missing; a design \"search\" needs the table [search]" if kind == "search"
                          else f"is given, but the design is {shown(kind)}; write design = \"search\", or leave it out")
    size = np.prod([max(1, len(factor.levels)) for factor in factors], dtype=float)
    if kind in ("full", "search") and size > POINTS_MAX:
        raise DesignError(("factors",), f"make {size:,.0f} points, but an experiment has at most {POINTS_MAX:,}; use "
                                        "fewer levels, or a Latin hypercube")


def _reference(file: ExperimentFile, factors: Sequence[Factor]) -> Point | None:
    """The reference point: as written, with first levels for what is left out."""
    known = [factor.name for factor in factors]
    for name in file.reference:
        if name not in known:
            raise DesignError(("reference", name), f"is no factor; known: {', '.join(known)}")
    if file.design.kind == "list" and not file.reference:
        return point(factors, _listed(0, file.points[0], factors)) if file.points else None
    levels = {}
    for factor in factors:
        if factor.name not in file.reference:
            levels[factor.name] = factor.at(0)
            continue
        levels[factor.name] = _level(factor, file.reference[factor.name], ("reference", factor.name))
    return point(factors, levels)


def _level(factor: Factor, written: Any, place: tuple[int | str, ...]) -> Level:
    found = factor.find(written)
    if found is not None:
        return found
    if factor.levels or not factor.places:
        known = ", ".join(shown(level.text) for level in factor.levels[:10])
        raise DesignError(place, f"is {shown(written)}, which is no level of {factor.name}; its levels: {known}")
    return factor.made(written)


def _listed(index: int, written: Mapping[str, Any], factors: Sequence[Factor]) -> dict[str, Level]:
    known = [factor.name for factor in factors]
    for name in written:
        if name not in known:
            raise DesignError(("points", index, name), f"is no factor; known: {', '.join(known)}")
    missing = [name for name in known if name not in written]
    if missing:
        raise DesignError(("points", index), f"has no level of {', '.join(missing)}; a point has one of every factor")
    return {factor.name: _level(factor, written[factor.name], ("points", index, factor.name)) for factor in factors}


def _filling(kind: str, count: int, factors: Sequence[Factor], seed: int) -> list[dict[str, Level]]:
    """Points that fill the space: each factor's range, or its levels, in shares of equal size."""
    # Only these two designs need it, and it takes half a second to import.
    from scipy.stats import qmc

    stream = np.random.default_rng(random.Random(f"{seed}/design").getrandbits(64))
    if kind == "sobol":
        shares = qmc.Sobol(len(factors), rng=stream).random_base2(count.bit_length() - 1)
    else:
        shares = qmc.LatinHypercube(len(factors), rng=stream).random(count)
    return [{factor.name: factor.at(float(share)) for factor, share in zip(factors, row, strict=True)}
            for row in shares]
