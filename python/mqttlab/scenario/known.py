"""Known names in a message: the nearest one, or all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

NAMED_MAX = 20
COMPARED_MAX = 1_000


def near(given: str, known: Iterable[str]) -> str:
    """The nearest known name, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.5) if len(names) <= COMPARED_MAX else []
    return f"did you mean `{close[0]}`?" if close else f"known: {some(names)}"


def some(names: Sequence[str]) -> str:
    """Names one after the other, of many the first ones."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f", and {more} more" if more > 0 else "")
