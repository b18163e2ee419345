"""Numbers in words: as many digits as are read, and never in scientific notation."""

from __future__ import annotations

import math
from decimal import Decimal


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
