"""The terminal for tables and styled words. Text that others wrote cannot steer it, whichever command prints it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment
from rich.text import Text

from mqttlab.foreign import HIDDEN, laid_out, visible


class Console(rich.console.Console):
    """Rich's console, which shows control characters as escapes, a string's line ends too: a string is one line."""

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
