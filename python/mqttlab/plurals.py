"""Counts in words: one of a thing, or several."""

from __future__ import annotations


def counted(count: int, one: str, several: str = "") -> str:
    """How many of a thing there are: ``1 run``, ``2 runs``, ``2,400 runs``."""
    written = f"{count:,}"
    return f"{written} {one if count == 1 else several or one + 's'}"
