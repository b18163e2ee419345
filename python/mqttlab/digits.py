"""Numbers in words: as many digits as are read, and never in scientific notation. And whole numbers in users' texts."""

from __future__ import annotations

import math
import re
from decimal import Decimal

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
