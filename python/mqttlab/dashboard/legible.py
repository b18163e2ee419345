"""Every answer of the dashboard in JSON or as plain text passes here: what is not seen in it becomes an escape.

Pages are made in the browser from JSON, by React as text and never as HTML. That leaves control characters, which a
page obeys as a terminal does: text runs from right to left, or is not seen. No page can forget this, for none is asked.
"""

from __future__ import annotations

import json
import re

import flask

from mqttlab.foreign import HIDDEN, laid_out

# An escape of JSON's, a pair of them for what is beyond 16 bits, or a character as it is.
PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
ESCAPE = re.compile(rf"{PAIR}|\\u[0-9a-fA-F]{{4}}|\\.|{HIDDEN.pattern}")


def legible(answer: flask.Response) -> flask.Response:
    """An answer without hidden characters, where it is text that a page is made of."""
    kind = answer.mimetype
    if kind not in ("application/json", "text/plain") or answer.direct_passthrough or answer.is_streamed:
        return answer
    text = answer.get_data(as_text=True)
    shown = legible_json(text) if kind == "application/json" else laid_out(text)
    if shown != text:
        answer.set_data(shown)
    return answer


def legible_json(text: str) -> str:
    """JSON whose strings have no hidden characters but line ends and tabs; all else of it stays."""
    return ESCAPE.sub(_legible, text)


def _legible(found: re.Match[str]) -> str:
    written = found[0]
    if written in "\n\t\r":
        # Between fields, for in a string JSON has them as escapes.
        return written
    letter = json.loads(f'"{written}"', strict=False) if written.startswith("\\") else written
    shown = laid_out(letter)
    return written if shown == letter else json.dumps(shown)[1:-1]
