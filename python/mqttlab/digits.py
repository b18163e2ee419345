"""Numbers in words: as many digits as are read, and never in scientific notation. And whole numbers in users' texts."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

LONG_NS = 10**10
"""From this length on no time is written in milliseconds."""
TIME_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
"""Nanoseconds of each unit of time."""
# From which length (ns) on a length of time has this unit.
SCALE = {"h": 7200 * 10**9, "min": 600 * 10**9, "s": 10**9, "ms": 10**6, "µs": 10**3}
WHOLE = re.compile("[0-9]{1,18}")


def whole(text: str) -> int | None:
    """The whole number, zero or more, that a text of 1 to 18 digits is; ``None`` for any other text.

    ``str.isdigit`` also knows the digits of other scripts and exponents, which ``int`` takes in part, and ``int`` fails
    for more than 4,300 digits. A number of 18 digits is one of every table's.
    """
    return int(text) if WHOLE.fullmatch(text) else None


def plain(value: float, digits: int = 6, *, grouped: bool = True) -> str:
    """A number to so many significant digits, without zeros at its end: ``0.25``, ``2,643``, ``0.0000088``.

    Args:
        value: any; what is not finite is ``inf`` or ``nan``.
        digits: how many; before the point all are shown.
        grouped: thousands are parted by commas in numbers of so many digits before the point, or more.
    """
    if not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}" if grouped else f"{value:.0f}"
    text = f"{value:.{digits}g}"
    return text if "e" not in text else f"{Decimal(text):f}"


def duration(nanoseconds: Any) -> str:
    """A length of time to three digits, in the unit in which people would say it: seconds up to 10 minutes, minutes up
    to 2 hours; a dash for what is no number."""
    if not isinstance(nanoseconds, (int, float)):
        return "–"
    for unit, least in SCALE.items():
        # What would be written as the least of the larger unit is written in it.
        if float(f"{abs(nanoseconds):.3g}") >= least:
            return f"{plain(nanoseconds / TIME_UNITS[unit], 3)} {unit}"
    return f"{int(nanoseconds):,} ns" if nanoseconds else "0 s"


def latency_in_words(milliseconds: float | None) -> str:
    """A latency to three digits, in ms, and from 10 s on as :func:`duration`; a dash where there is none."""
    if milliseconds is None:
        return "–"
    return duration(milliseconds * 1e6) if milliseconds * 1e6 >= LONG_NS else f"{plain(milliseconds, 3)} ms"
