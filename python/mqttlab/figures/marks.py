"""Marks of events in figures over time: a line where each began, a shade until it ended, and its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqttlab.figures.drawing import Figure
from mqttlab.foreign import shortened

COLOUR = "#8A63B8"
SHADE = 0.1
# Names of more of them would cover each other.
NAMED_MAX = 12
DRAWN_MAX = 200
NAME_MAX = 32
# Names stand below one another, so that neighbours can be read.
ROWS = 3
ROW_HEIGHT = 0.075


@dataclass(frozen=True, kw_only=True)
class Mark:
    """An event in a figure's own time."""

    name: str
    at_s: float
    until_s: float | None
    """Its end; none where nothing ended it."""
    colour: str = COLOUR
    below: bool = False
    """Whether its name stands at the lower edge of the figure, where it covers none of the others' names."""


def mark(figure: Figure, marks: Sequence[Mark]) -> Figure:
    """Draw events into a figure whose horizontal axis is time; of very many the first ones. Behind the traces."""
    drawn = marks[:DRAWN_MAX]
    for place, one in enumerate(drawn):
        if one.until_s is not None:
            figure.add_band("x", one.at_s, one.until_s, {"color": one.colour, "opacity": SHADE})
        named = len(drawn) <= NAMED_MAX
        label = {"text": shortened(one.name, NAME_MAX), "font": {"size": 11, "color": one.colour},
                 "hovertext": one.name, "xshift": 2, "y": _height(one, place)} if named else None
        figure.add_line("x", one.at_s, {"color": one.colour, "width": 1, "dash": "dot"}, label)
    return figure


def _height(one: Mark, place: int) -> float:
    """Where a name stands, as a share of the figure's height."""
    row = ROW_HEIGHT * (place % ROWS)
    return ROW_HEIGHT * ROWS - row if one.below else 1 - row
