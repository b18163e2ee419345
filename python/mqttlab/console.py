"""The terminal for tables and styled words. Text that others wrote cannot steer it, whichever command prints it.

A table never loses a number: a number is not broken, and columns without room go into a further part of the table,
whose title says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import rich.console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from mqttlab.foreign import HIDDEN, laid_out, visible
from mqttlab.terminal import width_of_output

# A longer word without a digit may be broken, as may a longer name that has one: else one path takes a table's room.
WORD_MOST, NAME_MOST = 20, 30
NUMBER = re.compile(r"[^\w\s]*\d\S*")
UNIT = re.compile(r" \([^()]*\)$")
# Of a column with its padding, and of the table's edge (Rich's default box).
BESIDE, EDGE = 3, 1


class Console(rich.console.Console):
    """Rich's console, which shows control characters as escapes, a string's line ends too: a string is one line."""

    def __init__(self, *, width: int | None = None, **options: Any) -> None:
        """As Rich's; ``width`` is for callers that know better than :func:`mqttlab.terminal.width_of_output`."""
        super().__init__(width=width, **options)
        if width is None and (found := width_of_output(os.environ, is_terminal=self.is_terminal)) is not None:
            self.width = found

    def render_str(self, text: str, **options: Any) -> Text:
        """A string as it is printed or stands in a cell: with its escapes, so that columns have the width of these."""
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None,
    ) -> Iterable[Segment]:
        """What reaches the terminal. Words that were made into a text elsewhere pass here, too."""
        for segment in super().render(renderable, options):
            # Control segments are Rich's own: where the cursor goes while a bar is drawn.
            if segment.control:
                yield segment
                continue
            text, style = segment.text, segment.style
            # Markup of others could make a link of any words (OSC 8).
            style = style.update_link(None) if style is not None and style.link else style
            yield Segment(laid_out(text) if HIDDEN.search(text) else text, style)


def sentence(console: rich.console.Console, words: str, style: str = "") -> None:
    """Print a sentence as it is, without markup: wrapped on a terminal, one line in a file."""
    console.print(words, style=style or None, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def print_table(
    console: rich.console.Console, title: str, heads: Sequence[str], rows: Sequence[Sequence[str | Text]], *,
    left: Collection[int] = (0,), keys: int = 1, lines: bool = False,
) -> None:
    """Print a table that fits: words wrap in their cells, and what has no room beside them follows in further parts.

    Args:
        console: where.
        title: above it, and above each part.
        heads: of the columns.
        rows: cells as they are, without markup; a styled one as a text.
        left: the columns of words, by their place; the others stand at the right.
        keys: how many columns say what a row is of. Each part begins with them.
        lines: whether a line stands between rows, as cells of several lines need it.
    """
    cells = [[cell if isinstance(cell, Text) else Text(visible(cell)) for cell in row] for row in (heads, *rows)]
    columns = list(zip(*cells, strict=True))
    least = [max(map(_least, column)) for column in columns]
    parts = _parts(least, keys, console.width - EDGE)
    for number, part in enumerate(parts, 1):
        # What each begins with, the keys, all of them have. A unit stands in the head.
        ends = [UNIT.sub("", " ".join(cells[0][place].plain.split())) for place in (*part[keys:][:1], part[-1])]
        of = f" (part {number} of {len(parts)}: {' to '.join(dict.fromkeys(ends))})" if len(parts) > 1 else ""
        shown = Table(title=Text(visible(title) + of), title_justify="left", title_style="bold",
                      show_lines=lines)
        widths = _widths([max(map(_wanted, columns[place])) for place in part],
                         [least[place] for place in part], console.width - EDGE)
        for place, width in zip(part, widths, strict=True):
            shown.add_column(cells[0][place], justify="left" if place in left else "right", width=width,
                             overflow="fold")
        for row in cells[1:]:
            shown.add_row(*(row[place] for place in part))
        before = console.width
        # Where one column has no room beside the keys, the table is wider than the lines are: a number is not cut.
        console.width = max(before, sum(widths) + BESIDE * len(widths) + EDGE)
        console.print(shown)
        console.width = before


def _wanted(cell: Text) -> int:
    """The columns of a cell's longest line."""
    return max((Text(line).cell_len for line in cell.plain.split("\n")), default=0)


def _least(cell: Text) -> int:
    """The columns that a cell needs, if it is broken at blanks."""
    return max((_unbroken(word) for word in cell.plain.split()), default=1)


def _unbroken(word: str) -> int:
    long = Text(word).cell_len
    if NUMBER.match(word):
        return long
    return min(long, NAME_MOST if any(map(str.isdigit, word)) else WORD_MOST)


def _parts(least: Sequence[int], keys: int, room: int) -> list[list[int]]:
    """Which columns stand side by side: as many as have room, after the keys."""
    first = list(range(min(keys, len(least))))
    taken = sum(least[place] + BESIDE for place in first)
    parts, free = [first.copy()], room - taken
    for place in range(len(first), len(least)):
        need = least[place] + BESIDE
        if need > free and len(parts[-1]) > len(first):
            parts.append(first.copy())
            free = room - taken
        parts[-1].append(place)
        free -= need
    return parts


def _widths(wanted: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """What each column gets: the widest give first, down to what they need."""
    widths = list(wanted)
    excess = sum(widths) + BESIDE * len(widths) - room
    while excess > 0:
        able = [place for place, width in enumerate(widths) if width > least[place]]
        if not able:
            break
        widths[max(able, key=lambda place: widths[place])] -= 1
        excess -= 1
    return widths
