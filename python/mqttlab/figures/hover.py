"""What a figure says of the point under the mouse, where that is a length of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mqttlab.digits import LONG_NS, latency_in_words

LONG_MS = LONG_NS / 1e6
Times = Sequence[float | None]


def hover(milliseconds: Times, shown: str, before: str, after: str = "", *, signed: bool = False) -> dict[str, Any]:
    """Fields of a trace that say a time in ms, or, where one is of 10 s or longer, in the words of everywhere.

    Args:
        milliseconds: of each point.
        shown: what Plotly makes of a point while all are shorter, such as ``%{y:.3f} ms``.
        before: what stands before the time.
        after: what stands behind it.
        signed: whether the sign is told of what is above zero, too.
    """
    if not _is_long(milliseconds):
        return {"hovertemplate": f"{before}{shown}{after}"}
    return _said([_words(value, signed) for value in milliseconds], before, after)


def hover_of_two(first: Times, second: Times, shown: str, after: str) -> dict[str, Any]:
    """Likewise of two times of each point, one after the other."""
    if not (_is_long(first) or _is_long(second)):
        return {"hovertemplate": f"{shown}{after}"}
    return _said([f"{_words(a)} → {_words(b)}" for a, b in zip(first, second, strict=True)], "", after)


def _is_long(milliseconds: Times) -> bool:
    # What is not known is no number then, and not long. A loop in Python would take a call for each point.
    return bool((np.abs(np.array(milliseconds, dtype=float)) >= LONG_MS).any())


def _words(milliseconds: float | None, signed: bool = False) -> str:
    if milliseconds is None:
        return latency_in_words(None)
    sign = "−" if milliseconds < 0 else "+" if signed else ""
    return sign + latency_in_words(abs(milliseconds))


def _said(words: list[str], before: str, after: str) -> dict[str, Any]:
    return {"hovertext": words, "hovertemplate": f"{before}%{{hovertext}}{after}"}
