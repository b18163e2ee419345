"""Factors and their levels: what is written at which places, and the number behind the text where there is one.

A level keeps the text as written (``"250 kbit/s"``) and, for quantities, the value in the unit without a prefix:
seconds, bit/s, bytes, metres, and ratios as such.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mqttlab.digits import TIME_UNITS, plain
from mqttlab.experiments.model import FactorFile, Range
from mqttlab.quantity import (
    FREQUENCY_UNITS,
    GAIN_UNITS,
    LENGTH_UNITS,
    NUMBER,
    PERCENT,
    POWER_UNITS,
    RATE_UNITS,
    SIZE_UNITS,
    SPEED_UNITS,
    shown,
)

# Each unit's kind (the unit without a prefix), and how many of that it is. A unit in two kinds would be a mistake.
UNITS: dict[str, tuple[str, float]] = {
    unit: (base, float(size) / per)
    for base, per, units in (
        ("s", 1e9, TIME_UNITS), ("bit/s", 1, RATE_UNITS), ("B", 1, SIZE_UNITS), ("m", 1e3, LENGTH_UNITS),
        ("m/s", 1e3, SPEED_UNITS), ("dBm", 1e3, POWER_UNITS), ("dB", 1e3, GAIN_UNITS), ("/s", 1, FREQUENCY_UNITS),
        ("ratio", 1, PERCENT))
    for unit, size in units.items()
}
_QUANTITY = re.compile(rf"\s*({NUMBER})\s*(\S*)\s*")
DIGITS = 4
"""Significant digits of values that a design makes up."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level of a factor."""

    text: str
    """As written in the experiment file, or the name of a patch."""
    value: float | None
    """The number, for quantities without a prefix; ``None`` where there is none."""
    settings: tuple[tuple[str, Any], ...]
    """What the scenario gets: values by place."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """What is varied."""

    name: str
    places: tuple[str, ...]
    """Empty for patches."""
    unit: str
    """Of the levels' values: ``s``, ``bit/s``, ``ratio``, ...; empty for plain numbers and where there are none."""
    kind: Literal["numeric", "categorical"]
    scale: Literal["linear", "logarithmic", "integer"]
    levels: tuple[Level, ...]
    ends: tuple[Number, Number] | None = None
    """Of a range."""

    def find(self, written: Any) -> Level | None:
        """The level that is written so, or is the same number."""
        wanted = number(written)
        for level in self.levels:
            if level.text == text_of(written):
                return level
            if wanted is not None and level.value == wanted.value and (wanted.unit in ("", self.unit)):
                return level
        return None

    def made(self, value: Any) -> Level:
        """A level with this value at the factor's places."""
        found = number(value)
        return Level(text=text_of(value), value=None if found is None else found.value,
                     settings=tuple((place, value) for place in self.places))

    def at(self, share: float) -> Level:
        """The level at this share (0 to 1) of the way: of the range, or of the levels in their order."""
        if self.ends is None:
            return self.levels[min(int(share * len(self.levels)), len(self.levels) - 1)]
        return self.made(between(self.ends, self.scale, share))


@dataclass(frozen=True)
class Number:
    """A number as written, and what it is without a prefix."""

    written: float
    suffix: str
    """The unit as written; empty for a plain number."""
    value: float
    unit: str
    whole: bool
    """Written as a whole number without a unit."""


def number(written: Any) -> Number | None:
    """The number that a value is; ``None`` for names, truth values and tables."""
    if isinstance(written, bool):
        return None
    if isinstance(written, (int, float)):
        return Number(float(written), "", float(written), "", isinstance(written, int))
    match = _QUANTITY.fullmatch(written) if isinstance(written, str) else None
    if match is None or (match[2] and match[2] not in UNITS):
        return None
    amount = float(match[1].replace("_", ""))
    if not match[2]:
        return None
    unit, size = UNITS[match[2]]
    return Number(amount, match[2], amount * size, unit, False)


def text_of(value: Any) -> str:
    """A level's text: as written, without the quotes."""
    return value if isinstance(value, str) else shown(value)


def factor_of(file: FactorFile) -> Factor:
    """A factor from the experiment file.

    Raises:
        ValueError: its levels or its range cannot be; the first argument is the field, the second what is wrong.
    """
    name = file.name or _named_after(file)
    if file.patches is not None:
        patched = tuple(Level(text=label, value=None, settings=tuple(values.items()))
                        for label, values in file.patches.items())
        return Factor(name=name, places=(), unit="", kind="categorical", scale="linear", levels=patched)
    places = tuple(file.places or [file.place or ""])
    bare = Factor(name=name, places=places, unit="", kind="categorical", scale="linear", levels=())
    if file.range is not None:
        return _ranged(bare, file.range)
    levels = tuple(bare.made(value) for value in file.levels or ())
    for index, level in enumerate(levels):
        if level.text in [other.text for other in levels[:index]]:
            raise ValueError(f"levels[{index}]", f"is {shown(level.text)} for the second time; keep one")
    units = {found.unit for value in file.levels or () if (found := number(value)) is not None}
    numeric = bool(levels) and all(level.value is not None for level in levels) and len(units) == 1
    if not numeric:
        levels = tuple(Level(text=level.text, value=None, settings=level.settings) for level in levels)
    return Factor(name=name, places=places, unit=next(iter(units)) if numeric else "",
                  kind="numeric" if numeric else "categorical", scale="linear", levels=levels)


def _named_after(file: FactorFile) -> str:
    place = file.place or (file.places or ["factor"])[0]
    return re.sub(r"\[[^\]]*\]", "", place).rpartition(".")[2]


def _ranged(bare: Factor, written: Range) -> Factor:
    first, last = number(written.from_), number(written.to)
    for field, given, found in (("from", written.from_, first), ("to", written.to, last)):
        if found is None:
            raise ValueError(f"range.{field}", f"is {shown(given)}, but must be a number, or text with a unit, such as "
                                               "\"10 ms\"")
    assert first is not None
    assert last is not None
    if first.unit != last.unit:
        raise ValueError("range.to", f"is {shown(written.to)}, but `from` is {shown(written.from_)}; write both in one "
                                     "unit")
    if not first.value < last.value:
        raise ValueError("range.to", f"is {shown(written.to)}, but must be more than `from`, which is "
                                     f"{shown(written.from_)}")
    if written.scale == "logarithmic" and first.value <= 0:
        raise ValueError("range.from", f"is {shown(written.from_)}, but a logarithmic scale begins above 0; raise it, "
                                       "or use scale = \"linear\"")
    ends = (first, last)
    count = written.levels or 0
    values = [between(ends, written.scale, index / (count - 1)) for index in range(count)]
    distinct = list(dict.fromkeys(values))
    if len(distinct) < len(values):
        raise ValueError("range.levels", f"is {count}, but only {len(distinct)} of them differ; write {len(distinct)}")
    made = tuple(bare.made(value) for value in values)
    return Factor(name=bare.name, places=bare.places, unit=first.unit, kind="numeric", scale=written.scale,
                  levels=made, ends=ends)


def between(ends: tuple[Number, Number], scale: str, share: float) -> Any:
    """The value at a share of the way, as a scenario writes it: rounded to four digits, in the unit of the first end.

    Sizes are whole bytes, and between whole numbers lie whole numbers.
    """
    first, last = ends
    size = UNITS[first.suffix][1] if first.suffix else 1.0
    low, high = first.value / size, last.value / size
    amount = math.exp(math.log(low) + share * (math.log(high) - math.log(low))) if scale == "logarithmic" else (
        low + share * (high - low))
    if share in (0, 1):
        amount = low if share == 0 else high
    if not first.suffix:
        return round(amount) if scale == "integer" or (first.whole and last.whole) else rounded(amount)
    amount = float(round(amount)) if scale == "integer" else rounded(amount)
    if first.unit == "B" and not (amount * size).is_integer():
        return f"{round(amount * size)} B"
    return f"{plain(amount, 12, grouped=False)} {first.suffix}"


def rounded(amount: float) -> float:
    """To four significant digits."""
    return float(f"{amount:.{DIGITS}g}")


def labels(factors: Sequence[Factor], levels: dict[str, Level]) -> str:
    """A point in words: ``loss 1 %, qos 2``."""
    return ", ".join(f"{factor.name} {levels[factor.name].text}" for factor in factors) or "the only point"
