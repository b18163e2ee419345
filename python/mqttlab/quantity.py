"""Quantities as people write them: a number, a blank, a unit. ``k`` is 1000, ``Ki`` is 1024.

Each type here is the integer that the plan holds, with a validator that reads the text. A number without a unit is
refused, and the message lists the units that would do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

TIME_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
RATE_UNITS = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9,
              "B/s": 8, "kB/s": 8 * 10**3, "MB/s": 8 * 10**6}
SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "KiB": 2**10, "MiB": 2**20}
LENGTH_UNITS = {"mm": 1, "m": 10**3, "km": 10**6}
SPEED_UNITS = {"mm/s": Fraction(1), "m/s": Fraction(1000), "km/h": Fraction(10**6, 3600)}
POWER_UNITS = {"dBm": 1000}
GAIN_UNITS = {"dB": 1000}
FREQUENCY_UNITS = {"/s": Fraction(1), "/min": Fraction(1, 60), "/h": Fraction(1, 3600)}

_QUANTITY = re.compile(r"\s*([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*(.*?)\s*", re.IGNORECASE)
RATIO_DENOMINATOR_MAX = 10**12


def split(text: Any, units: dict[str, Any], example: str) -> tuple[Decimal, Any]:
    """Number and factor of a quantity.

    Raises:
        ValueError: with the accepted units and an example.
    """
    accepted = ", ".join(unit for unit in units if unit != "µs")
    if not isinstance(text, str):
        raise ValueError(f"{text!r} has no unit; write it as text with one of {accepted}, such as \"{example}\"")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity; write a number and one of {accepted}, such as \"{example}\"")
    number, unit = match.groups()
    if unit not in units:
        what = f"the unit {unit!r} is not known here" if unit else f"{text!r} has no unit"
        raise ValueError(f"{what}; use one of {accepted}, such as \"{example}\"")
    try:
        return Decimal(number), units[unit]
    except InvalidOperation as error:
        raise ValueError(f"{number!r} is not a number") from error


def duration_ns(text: Any) -> int:
    """Nanoseconds of a length of time, zero or more."""
    number, factor = split(text, TIME_UNITS, "550 ms")
    return _natural(number * factor, f"{text!r} is negative; a length of time is 0 or more")


def positive_duration_ns(text: Any) -> int:
    """Nanoseconds of a length of time above zero."""
    value = duration_ns(text)
    if value == 0:
        raise ValueError(f"{text!r} must be longer than 0")
    return value


def rate_bit_s(text: Any) -> int:
    """Bits per second, from 1 bit/s to 100 Gbit/s."""
    number, factor = split(text, RATE_UNITS, "250 kbit/s")
    value: Decimal = number * factor
    if not 1 <= value <= 10**11:
        raise ValueError(f"{text!r} is out of range; a rate is between 1 bit/s and 100 Gbit/s (leave it out for none)")
    return round(value)


def size_bytes(text: Any) -> int:
    """Bytes, zero or more."""
    number, factor = split(text, SIZE_UNITS, "200 B")
    return _natural(number * factor, f"{text!r} is negative; a size is 0 B or more")


def interval_ns(text: Any) -> int:
    """Nanoseconds between events, from their rate."""
    number, factor = split(text, FREQUENCY_UNITS, "100 /s")
    if number <= 0:
        raise ValueError(f"{text!r} must be above 0")
    per_second: Fraction = Fraction(number) * factor
    return max(1, round(10**9 / per_second))


def length_mm(text: Any) -> int:
    """Millimetres of a length, zero or more."""
    number, factor = split(text, LENGTH_UNITS, "150 m")
    return _natural(number * factor, f"{text!r} is negative; a length is 0 or more")


def area_mm(text: Any) -> tuple[int, int]:
    """Width and height in millimetres, from ``"150 m x 150 m"``."""
    parts = re.split(r"\s*[x×]\s*", text.strip()) if isinstance(text, str) else []
    if len(parts) != 2:
        raise ValueError(f"{text!r} is not an area; write width and height, such as \"150 m x 150 m\"")
    width, height = (length_mm(part) for part in parts)
    if not width or not height:
        raise ValueError(f"{text!r} must be wider and higher than 0")
    return width, height


def speed_mm_s(text: Any) -> int:
    """Millimetres per second, zero or more."""
    number, factor = split(text, SPEED_UNITS, "1.5 m/s")
    speed: Fraction = Fraction(number) * factor
    if speed < 0:
        raise ValueError(f"{text!r} is negative; a speed is 0 or more")
    return round(speed)


def power_mdbm(text: Any) -> int:
    """Thousandths of a dBm."""
    number, factor = split(text, POWER_UNITS, "20 dBm")
    level: Decimal = number * factor
    return round(level)


def gain_mdb(text: Any) -> int:
    """Thousandths of a dB."""
    number, factor = split(text, GAIN_UNITS, "4 dB")
    level: Decimal = number * factor
    return round(level)


def ratio(value: Any) -> tuple[int, int]:
    """A fraction between 0 and 1, from ``"1 %"``, ``"1/3"`` or a number such as 0.01."""
    try:
        fraction = _fraction(value)
    except (ValueError, ZeroDivisionError, InvalidOperation):
        raise ValueError(f"{value!r} is not a probability; write it as \"1 %\", \"1/100\" or 0.01") from None
    if not 0 <= fraction <= 1:
        raise ValueError(f"{value!r} is not between 0 and 1 (or 0 % and 100 %)")
    fraction = fraction.limit_denominator(RATIO_DENOMINATOR_MAX)
    return fraction.numerator, fraction.denominator


def _fraction(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError
    if isinstance(value, str):
        text = value.strip()
        if text.endswith("%"):
            return Fraction(Decimal(text[:-1].strip())) / 100
        return Fraction(text)
    return Fraction(str(value))


def _natural(value: Decimal, problem: str) -> int:
    if value < 0:
        raise ValueError(problem)
    return round(value)


def _quantity(read: Callable[[Any], Any], example: str) -> Any:
    return (BeforeValidator(read), WithJsonSchema({"type": "string", "examples": [example]}))


DurationNs = Annotated[int, *_quantity(duration_ns, "550 ms")]
PositiveDurationNs = Annotated[int, *_quantity(positive_duration_ns, "10 s")]
RateBitS = Annotated[int, *_quantity(rate_bit_s, "250 kbit/s")]
SizeBytes = Annotated[int, *_quantity(size_bytes, "200 B")]
LengthMm = Annotated[int, *_quantity(length_mm, "150 m")]
AreaMm = Annotated[tuple[int, int], *_quantity(area_mm, "150 m x 150 m")]
SpeedMmS = Annotated[int, *_quantity(speed_mm_s, "1.5 m/s")]
PowerMdbm = Annotated[int, *_quantity(power_mdbm, "20 dBm")]
GainMdb = Annotated[int, *_quantity(gain_mdb, "4 dB")]
IntervalNs = Annotated[int, *_quantity(interval_ns, "100 /s")]
RatioPair = Annotated[tuple[int, int], *_quantity(ratio, "1 %")]
