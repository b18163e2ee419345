"""Where things stand in a ladder diagram: a vertical scale on which no two labels meet.

Time runs downwards. A message's time has flights of 0.1 ms beside waits of seconds, so that no linear scale shows
both: the distance between neighbouring instants grows with the logarithm of the time between them, and with the room
that their labels need. The order is true, and so are the times that are written beside it.

A label stands above its instant (of a frame that sets out) or below it (of a wait that begins), in the column of its
slot: one side of one host's line. Labels of different slots do not meet, because each slot has its own half of a lane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST = 13.0
GROWTH = 14.0
UNIT_NS = 20_000
LINE = 14.0
CLEAR = 4.0


@dataclass(frozen=True, kw_only=True)
class Place:
    """The room that a label needs."""

    slot: tuple[str, str]
    at_ns: int
    lines: int
    above: bool


def scale(instants: list[int], labels: list[Place]) -> dict[int, float]:
    """The pixel of each instant: 0 for the first, or lower where labels stand above it."""
    upper: dict[int, list[Place]] = {}
    lower: dict[int, list[Place]] = {}
    for label in labels:
        (upper if label.above else lower).setdefault(label.at_ns, []).append(label)
    filled: dict[tuple[str, str], float] = {}
    pixels: dict[int, float] = {}
    before: int | None = None
    for instant in sorted(set(instants)):
        y = 0.0 if before is None else pixels[before] + LEAST + GROWTH * math.log10(1 + (instant - before) / UNIT_NS)
        needed: dict[tuple[str, str], float] = {}
        for label in upper.get(instant, []):
            needed[label.slot] = needed.get(label.slot, CLEAR) + label.lines * LINE
        y = max([y, *(filled.get(slot, 0.0) + height for slot, height in needed.items())])
        filled.update(dict.fromkeys(needed, y))
        for label in lower.get(instant, []):
            filled[label.slot] = max(filled.get(label.slot, 0.0), y) + label.lines * LINE + CLEAR
        pixels[instant] = y
        before = instant
    return pixels
