"""Text that others wrote, made fit to be shown: scenarios, captures, logs, recordings, brokers and file names hold it.

A terminal obeys control characters: C0 and C1 (ECMA-48) move, clear and rename it. Bidirectional controls (UAX #9) show
text in another order than it has, and what has no width hides in it. Here they become escapes that can be read, as
``\\x1b`` and ``\\u202e``. Each place that shows text asks one function: a terminal ``mqttlab.console`` (which asks
:func:`visible`), pages and SVG :func:`markup`, figures :func:`drawn`, JSON :func:`json_text`, CSV files and
workbooks ``mqttlab.sheets``, databases :func:`stored`, paths :func:`file_name`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from html import escape
from typing import Any

# Of Unicode's classes Cc, Cf, Zl and Zp, and of what is not drawn (Default_Ignorable_Code_Point), all but the signs of
# Arabic numbers and hieroglyphs, which are seen, and the selectors that make pictures of letters.
RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x70F, 0x70F), (0x115F, 0x1160),
    (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x13430, 0x1345F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
# Halves of a pair, which no file can hold. The upper ones stand for bytes of file names that are not UTF-8 (PEP 383).
SURROGATES = (0xD800, 0xDFFF)
HIDDEN = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in (*RANGES, SURROGATES)) + "]")
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
LAID_OUT = "\n\t"
# What Plotly takes for HTML (its `svg_text_utils`), but for the line break and the box of its hover templates.
TAG = re.compile(r"<(?!br>|/?extra>)|&(?=#?\w+;)")
FILE_NAME_MOST = 200


def visible(text: str) -> str:
    """One line of text without anything that is not seen: control characters, the line's end too, as escapes."""
    return HIDDEN.sub(_escaped, text)


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, the last of which tells that there were more."""
    return text if len(text) <= most else f"{text[:most - 1]}…"


def laid_out(text: str) -> str:
    """The same of text that may have lines and columns: line ends and tabs stay."""
    return HIDDEN.sub(lambda found: found[0] if found[0] in LAID_OUT else _escaped(found), text)


def markup(text: str) -> str:
    """Text to stand in HTML, SVG or XML, in an element or in an attribute's quotes."""
    return escape(laid_out(text))


def drawn(text: str) -> str:
    """Text of a figure, in which Plotly would take tags and entities for HTML."""
    return TAG.sub(lambda found: {"<": "&lt;", "&": "&amp;"}[found[0]], laid_out(text))


def json_text(value: Any, *, indent: int | None = None, ascii_only: bool = True) -> str:
    """A value as JSON for a terminal or a file: the same value, with JSON's own escapes for what is not seen.

    JSON has no word for numbers that are not finite: they become null.
    """
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), indent=indent, ensure_ascii=ascii_only)
    # JSON has escaped C0 already; the line ends that are left are those between fields.
    return HIDDEN.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1]
                      if found[0] != "\x7f" else "\\u007f", text)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def stored(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for a database. The directory of a run stays as it is, for it has to be found."""
    return {name: laid_out(value) if isinstance(value, str) and name != "directory" else value
            for name, value in row.items()}


def file_name(text: str, also: str = "") -> str:
    """Text as the name of a file or a directory: letters, digits, ``-`` and ``_``, and what else is asked for, but for
    points in front."""
    kept = "".join(letter if letter.isalnum() or letter in f"-_{also}" else "_" for letter in text)[:FILE_NAME_MOST]
    return f"_{kept[1:]}" if kept[:1] in (".", "") else kept


def _escaped(found: re.Match[str]) -> str:
    letter, code = found[0], ord(found[0])
    if letter in SHORT:
        return SHORT[letter]
    if 0xDC80 <= code <= 0xDCFF:
        # A byte of a file's name.
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
