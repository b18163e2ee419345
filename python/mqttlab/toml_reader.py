"""TOML of users, whose depth and length are bounded before it is parsed.

The reader of Python's library takes memory and time that grow with the square of a dotted key's length (``a.a.a = 1``),
and whoever walks the values calls itself once a level. A look at the text's tokens tells how deep it would become:
strings and comments are passed over.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

LEVELS_MAX = 32
"""No field needs more than 6; places of experiments and settings of servers have texts as keys."""
TABLES_MAX = 200_000
LENGTH_MAX = 16_000_000
# Strings, closed or up to where the line or the text ends, and comments. Nothing is tried twice (`++`).
_TEXTS = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\Z)' r"|'''(?:[^']++|'(?!''))*+(?:'''|\Z)"
    r'|"(?:[^"\\\n]++|\\.)*+"?' r"|'[^'\n]*+'?" r"|#[^\n]*+", re.DOTALL)
_SEPARATORS = re.compile(r"[=,\[\]{}\n]")
_BRACKETS = re.compile(r"[\[\]{}]")


class TooLarge(ValueError):
    """A text is deeper or longer than it may be; in words."""


def read_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text; a byte order mark, which editors of Windows write, is passed over.

    Raises:
        TooLarge: before anything is parsed.
        ValueError: it is not TOML.
    """
    text = text.removeprefix("\ufeff")
    check_size(text)
    return tomllib.loads(text)


def check_size(text: str) -> None:
    """Refuse what is too deep or too long.

    Raises:
        TooLarge: in words.
    """
    if len(text) > LENGTH_MAX:
        raise TooLarge(f"has {len(text):,} characters; at most {LENGTH_MAX:,} are read")
    told = _TEXTS.sub("", text)
    depth, deepest, opened = 0, 0, 0
    for bracket in _BRACKETS.findall(told):
        if bracket in "[{":
            depth, opened = depth + 1, opened + 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    # A number has one point.
    dots = [count for part in _SEPARATORS.split(told) if (count := part.count(".")) > 1]
    if deepest > LEVELS_MAX or max(dots, default=0) >= LEVELS_MAX:
        raise TooLarge("arrays, tables or dotted keys are nested too deeply; no field needs more than 6 levels")
    if opened + sum(dots) > TABLES_MAX:
        raise TooLarge(f"has {opened + sum(dots):,} arrays and tables; at most {TABLES_MAX:,} are read")
