"""Quantities as people write them: a number, a blank, a unit. ``k`` is 1000, ``Ki`` is 1024.

Each type here is the integer that the plan holds, with a validator that reads the text. One rule for all of them: a
number without a unit is refused, and the message says what would be right. A ratio's unit is ``%``, or it is a
fraction (``1/3``): of a bare ``1`` nobody knows whether it is all or a hundredth. Every quantity has bounds, beyond
which no experiment lies, so that the engine's 64 bits hold whatever is computed from them.
"""

import difflib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial, wraps
from typing import Annotated, Any, TypeVar, cast

from pydantic import BeforeValidator, WithJsonSchema

from mqttlab.digits import TIME_UNITS, plain

RATE_UNITS = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9,
              "B/s": 8, "kB/s": 8 * 10**3, "MB/s": 8 * 10**6}
SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "KiB": 2**10, "MiB": 2**20}
LENGTH_UNITS = {"mm": 1, "m": 10**3, "km": 10**6}
SPEED_UNITS = {"mm/s": Fraction(1), "m/s": Fraction(1000), "km/h": Fraction(10**6, 3600)}
CURRENT_UNITS = {"nA": 1, "uA": 10**3, "µA": 10**3, "mA": 10**6, "A": 10**9}
POWER_UNITS = {"dBm": 1000}
GAIN_UNITS = {"dB": 1000}
FREQUENCY_UNITS = {"/s": Fraction(1), "/min": Fraction(1, 60), "/h": Fraction(1, 3600)}
# What people write elsewhere, and what it is called here.
SPELLINGS = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("msec", "msecs", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "usecs", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("bps", "b/s", "bits/s", "bit/sec"), "bit/s"),
    **dict.fromkeys(("kbps", "kb/s", "kbits/s", "kbit"), "kbit/s"),
    **dict.fromkeys(("mbps", "mb/s", "mbits/s", "mbit"), "Mbit/s"),
    **dict.fromkeys(("gbps", "gb/s", "gbits/s", "gbit"), "Gbit/s"),
    **dict.fromkeys(("byte", "bytes"), "B"), **dict.fromkeys(("kb", "k", "kbyte", "kbytes"), "kB"),
    **dict.fromkeys(("hz", "/sec", "per second", "msg/s", "messages/s"), "/s"),
    **dict.fromkeys(("percent", "pct"), "%"),
}
PERCENT = {"%": Fraction(1, 100)}

# Single underscores stand between digits, as in TOML's numbers. No more digits than this: a quantity needs fewer, and a
# number of a million digits takes minutes.
NUMBER = r"[+-]?[0-9](?:_?[0-9]){0,29}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?"
_QUANTITY = re.compile(rf"\s*({NUMBER})\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
_FRACTION = re.compile(r"\s*([0-9]{1,18})\s*/\s*([0-9]{1,18})\s*")
RATIO_DENOMINATOR_MAX = 10**12
HOUR_NS = 3600 * 10**9
DURATION_NS_MAX = 8784 * HOUR_NS
"""The longest time: 366 days."""
TEXTS_REMEMBERED = 1_000

Read = TypeVar("Read", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of quantity."""

    name: str
    units: dict[str, Any]
    usual: str
    """The unit that a bare number is proposed with."""
    example: str
    least: Fraction | int | None = None
    least_text: str = ""
    beyond: str = ""
    """How it is said that the least is no value itself: ``longer than``; empty where it is one."""
    most: Fraction | int | None = None
    most_text: str = ""

    def read(self, value: Any) -> Fraction:
        """The quantity in its smallest unit.

        Raises:
            ValueError: with what is wrong, the accepted units or the bounds, and an example.
        """
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"is {shown(value)}, which is not {self.name}; write a number and {self._units()}, "
                             f"such as \"{self.example}\"")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise ValueError(f"is {shown(value)}, which has no unit; {self._with_unit(shown(value))}")
        if not isinstance(value, str):
            raise ValueError(f"is {shown(value)}, but must be {self.name} as text, such as \"{self.example}\"")
        match = _QUANTITY.fullmatch(value)
        if match is None:
            raise ValueError(f"is {shown(value)}, which is not {self.name}; write a number and {self._units()}, "
                             f"such as \"{self.example}\"")
        number, unit = match.groups()
        if not unit:
            raise ValueError(f"is {shown(value)}, which has no unit; {self._with_unit(number)}")
        if unit[0].isdigit():
            raise ValueError(f"is {shown(value)}, which has too many digits for {self.name}")
        if unit[0] in ",.":
            raise ValueError(f"is {shown(value)}, which is not a number; write it with a decimal point, such as \"1.5 "
                             f"{self.usual}\"")
        if unit not in self.units:
            raise ValueError(f"is {shown(value)}, but {shown(unit)} is not a unit of {self.name}; "
                             f"{self._near(number, unit)}")
        result: Fraction = Fraction(number.replace("_", "")) * self.units[unit]
        if self.least is not None and (result < self.least or (self.beyond and result == self.least)):
            bound = f"{self.beyond} {self.least_text}" if self.beyond else f"{self.least_text} or more"
            raise ValueError(f"is {shown(value)}, but must be {bound}")
        if self.most is not None and result > self.most:
            raise ValueError(f"is {shown(value)}, but must be {self.most_text} or less")
        return result

    def _units(self) -> str:
        accepted = [unit for unit in self.units if unit != "µs"]
        return accepted[0] if len(accepted) == 1 else f"one of {', '.join(accepted)}"

    def _with_unit(self, number: str) -> str:
        positive = number.lstrip("+-") if self.least is None or self.least >= 0 else number
        others = "" if len(self.units) == 1 else f" (or another unit: {self._units()})"
        if len(number) >= 20:
            return f"write {self._units()} behind it"
        return f"write \"{positive} {self._unit_for(positive)}\"{others}"

    def _unit_for(self, number: str) -> str:
        """The usual unit, or the first one with which a number lies within the bounds."""
        try:
            amount = Fraction(number.replace("_", ""))
        except ValueError:
            return self.usual
        for unit in (self.usual, *self.units):
            result = amount * self.units[unit]
            if (self.least is None or result >= self.least) and (self.most is None or result <= self.most):
                return unit
        return self.usual

    def _near(self, number: str, unit: str) -> str:
        spelled = SPELLINGS.get(unit.lower())
        if spelled in self.units and len(number) < 20:
            return f"did you mean \"{number} {spelled}\"?"
        for other in self.units:
            if other.lower() == unit.lower() and len(number) < 20:
                return f"did you mean \"{number} {other}\"?"
        close = difflib.get_close_matches(unit, list(self.units), n=1, cutoff=0.7)
        if close and len(number) < 20:
            return f"did you mean \"{number} {close[0]}\"?"
        return f"use {self._units()}, such as \"{self.example}\""


def shown(value: Any) -> str:
    """A value in a message: as it is written, shortened where it is long."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    elif isinstance(value, str):
        # Quoted as TOML does, with what cannot be printed escaped.
        text = '"' + repr(value)[1:-1].replace("\\'", "'") + '"'
    elif isinstance(value, (list, tuple)):
        text = f"[{', '.join(shown(item) for item in value[:20])}]" if len(repr(value)) < 1000 else "a long array"
    elif isinstance(value, dict):
        text = "{ " + ", ".join(f"{key} = {shown(item)}" for key, item in list(value.items())[:20]) + " }"
    elif isinstance(value, float):
        text = f"{value:.15g}"
    else:
        text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def rate_words(bit_s: float) -> str:
    """A data rate as people say it."""
    for factor, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s")):
        if bit_s >= factor:
            return f"{plain(bit_s / factor, 3)} {unit}"
    return f"{plain(bit_s, 3)} bit/s"


DURATION = Kind(name="a length of time", units=TIME_UNITS, usual="s", example="550 ms", least=0, least_text="0 s",
                most=DURATION_NS_MAX, most_text="8784 h (366 days)")
MOMENT = replace(DURATION, name="a time", example="30 s", least=-DURATION_NS_MAX, least_text="-8784 h (366 days)")
DELAY = Kind(name="a delay", units=TIME_UNITS, usual="ms", example="50 ms", least=0, least_text="0 s", most=HOUR_NS,
             most_text="1 h")
RATE = Kind(name="a data rate", units=RATE_UNITS, usual="bit/s", example="250 kbit/s", least=1, least_text="1 bit/s",
            most=10**11, most_text="100 Gbit/s")
SIZE = Kind(name="a size", units=SIZE_UNITS, usual="B", example="200 B", least=0, least_text="0 B", most=2**40,
            most_text="1 TiB")
FREQUENCY = Kind(name="a rate", units=FREQUENCY_UNITS, usual="/s", example="100 /s",
                 least=0, least_text="0 /s", most=10**6, most_text="1000000 /s")
LENGTH = Kind(name="a length", units=LENGTH_UNITS, usual="m", example="150 m", least=0, least_text="0 m", most=10**9,
              most_text="1000 km")
SPEED = Kind(name="a speed", units=SPEED_UNITS, usual="m/s", example="1.5 m/s", least=0, least_text="0 m/s",
             most=10**6, most_text="1000 m/s")
CURRENT = Kind(name="a current", units=CURRENT_UNITS, usual="uA", example="10 uA", least=0, least_text="0 A",
               most=4 * 10**9, most_text="4 A")
POWER = Kind(name="a power", units=POWER_UNITS, usual="dBm", example="20 dBm", least=-200_000, least_text="-200 dBm",
             most=100_000, most_text="100 dBm")
GAIN = Kind(name="a level", units=GAIN_UNITS, usual="dB", example="4 dB", least=-100_000, least_text="-100 dB",
            most=100_000, most_text="100 dB")
PRODUCTS = Kind(name="a number of bandwidth-delay products", units={"BDP": 1000}, usual="BDP", example="1 BDP",
                least=1, least_text="0.001 BDP", most=10**6, most_text="1000 BDP")
RATIO = Kind(name="a ratio", units=PERCENT, usual="%", example="1 %", least=0, least_text="0 %", most=1,
             most_text="100 %")


def remembered(read: Read) -> Read:
    """The same reading, with the results of the last texts kept: tens of thousands of groups write few different ones.

    What is refused is read again each time, for its message. What is no text may have no hash, and ``True`` is equal to
    1.
    """
    known = lru_cache(maxsize=TEXTS_REMEMBERED)(read)

    @wraps(read)
    def read_once(value: Any, *rest: Any, **named: Any) -> Any:
        return (known if isinstance(value, str) else read)(value, *rest, **named)

    return cast("Read", read_once)


@remembered
def duration_ns(value: Any, usual: str = "s") -> int:
    """Nanoseconds of a length of time, zero or more; ``usual`` is the unit that a bare number is proposed with."""
    return round(replace(DURATION, usual=usual).read(value))


@remembered
def positive_duration_ns(value: Any, usual: str = "s") -> int:
    """Nanoseconds of a length of time above zero."""
    result = round(replace(DURATION, usual=usual, beyond="longer than").read(value))
    if result == 0:
        raise ValueError(f"is {shown(value)}, but must be longer than 0 s")
    return result


@remembered
def moment_ns(value: Any) -> int:
    """Nanoseconds from the beginning of the measurement; below zero before it."""
    return round(MOMENT.read(value))


@remembered
def delay_ns(value: Any) -> int:
    """Nanoseconds of a delay, up to an hour."""
    return round(DELAY.read(value))


@remembered
def seconds_ns(value: Any) -> int:
    """Nanoseconds of a length of time that the protocol carries in whole seconds."""
    result = duration_ns(value)
    if result % 10**9:
        whole = max(1, round(result / 10**9))
        raise ValueError(f"is {shown(value)}, but MQTT carries whole seconds; the nearest is \"{whole} s\"")
    return result


@remembered
def rate_bit_s(value: Any) -> int:
    """Bits per second, from 1 bit/s to 100 Gbit/s."""
    return round(RATE.read(value))


@remembered
def size_bytes(value: Any) -> int:
    """Whole bytes, zero or more."""
    result = SIZE.read(value)
    if result.denominator != 1:
        raise ValueError(
            f"is {shown(value)}, which is not a whole number of bytes; the nearest is \"{round(result)} B\"")
    return int(result)


@remembered
def interval_ns(value: Any) -> int:
    """Nanoseconds between events, from their rate."""
    per_second = replace(FREQUENCY, beyond="above").read(value)
    return max(1, min(DURATION_NS_MAX, round(10**9 / per_second)))


@remembered
def interval_or_none_ns(value: Any) -> int:
    """The same, and 0 for a rate of none at all."""
    return 0 if FREQUENCY.read(value) == 0 else interval_ns(value)


@remembered
def products_thousandths(value: Any) -> int:
    """Thousandths of a bandwidth-delay product, above zero."""
    return round(PRODUCTS.read(value))


@remembered
def length_mm(value: Any) -> int:
    """Millimetres of a length, zero or more."""
    return round(LENGTH.read(value))


@remembered
def area_mm(value: Any) -> tuple[int, int]:
    """Width and height in millimetres, from ``"150 m x 150 m"``."""
    parts = re.split(r"\s*[x×]\s*", value.strip()) if isinstance(value, str) else []
    if len(parts) != 2:
        raise ValueError(f"is {shown(value)}, which is not an area; write width and height, such as \"150 m x 150 m\"")
    width, height = (length_mm(part) for part in parts)
    if not width or not height:
        raise ValueError(f"is {shown(value)}, but must be wider and higher than 0 m")
    return width, height


@remembered
def speed_mm_s(value: Any) -> int:
    """Millimetres per second, zero or more."""
    return round(SPEED.read(value))


@remembered
def current_na(value: Any) -> int:
    """Nanoamperes, zero or more."""
    return round(CURRENT.read(value))


@remembered
def power_mdbm(value: Any) -> int:
    """Thousandths of a dBm."""
    return round(POWER.read(value))


@remembered
def gain_mdb(value: Any) -> int:
    """Thousandths of a dB."""
    return round(GAIN.read(value))


@remembered
def ratio(value: Any) -> tuple[int, int]:
    """A fraction between 0 and 1, from ``"1 %"`` or ``"1/3"``."""
    if isinstance(value, str) and (match := _FRACTION.fullmatch(value)):
        numerator, denominator = int(match[1]), int(match[2])
        if denominator == 0 or numerator > denominator:
            raise ValueError(f"is {shown(value)}, but must be 100 % (1/1) or less")
        fraction = Fraction(numerator, denominator)
    else:
        if bare := _bare_ratio(value):
            raise ValueError(f"is {shown(value)}, which has no unit; {bare}")
        fraction = RATIO.read(value)
    fraction = fraction.limit_denominator(RATIO_DENOMINATOR_MAX)
    return fraction.numerator, fraction.denominator


def _bare_ratio(value: Any) -> str | None:
    """What a number without a unit may mean; ``None`` for what is no such number."""
    try:
        number = None if isinstance(value, bool) else Fraction(float(value)).limit_denominator(10**9)
    except (TypeError, ValueError, OverflowError):
        return None
    if number is None or not 0 <= number <= 100:
        return None
    percent, share = (
        f"\"{plain(value, 12, grouped=False)} %\"" for value in (float(number), 100 * float(number)))
    return f"write {share} or {percent}" if 0 < number <= 1 else f"write {percent}"


def _quantity(read: Callable[[Any], Any], example: str) -> Any:
    return (BeforeValidator(read), WithJsonSchema({"type": "string", "examples": [example]}))


DurationNs = Annotated[int, *_quantity(duration_ns, "550 ms")]
PositiveDurationNs = Annotated[int, *_quantity(positive_duration_ns, "10 s")]
MomentNs = Annotated[int, *_quantity(moment_ns, "30 s")]
ShortDurationNs = Annotated[int, *_quantity(partial(duration_ns, usual="ms"), "50 ms")]
PositiveShortDurationNs = Annotated[int, *_quantity(partial(positive_duration_ns, usual="ms"), "50 ms")]
MicroDurationNs = Annotated[int, *_quantity(partial(duration_ns, usual="us"), "50 us")]
SecondsNs = Annotated[int, *_quantity(seconds_ns, "60 s")]
DelayNs = Annotated[int, *_quantity(delay_ns, "50 ms")]
RateBitS = Annotated[int, *_quantity(rate_bit_s, "250 kbit/s")]
SizeBytes = Annotated[int, *_quantity(size_bytes, "200 B")]
ProductsThousandths = Annotated[int, *_quantity(products_thousandths, "1 BDP")]
LengthMm = Annotated[int, *_quantity(length_mm, "150 m")]
AreaMm = Annotated[tuple[int, int], *_quantity(area_mm, "150 m x 150 m")]
SpeedMmS = Annotated[int, *_quantity(speed_mm_s, "1.5 m/s")]
CurrentNa = Annotated[int, *_quantity(current_na, "10 uA")]
PowerMdbm = Annotated[int, *_quantity(power_mdbm, "20 dBm")]
GainMdb = Annotated[int, *_quantity(gain_mdb, "4 dB")]
IntervalNs = Annotated[int, *_quantity(interval_ns, "100 /s")]
IntervalOrNoneNs = Annotated[int, *_quantity(interval_or_none_ns, "100 /s")]
RatioPair = Annotated[tuple[int, int], *_quantity(ratio, "1 %")]
