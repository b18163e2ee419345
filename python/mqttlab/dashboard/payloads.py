"""What messages carried, as people read it: JSON in lines, pictures small, text as text, other bytes as digits.

Whoever published may have written anything: what is shown is text and nothing else, and a picture is one only where its
first bytes say which kind of picture it is; those that may hold scripts (SVG) are none.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

import polars as pl

from mqttlab.digits import whole
from mqttlab.recording import Recording
from mqttlab.report.text import number

TEXT_SHOWN = 2000
"""Characters of a payload on a page; the download has all of it."""
VALUE_SHOWN = 120
"""Characters of a text within JSON."""
BYTES_SHOWN = 256
PICTURES = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png"), (b"GIF8", "image/gif"))


@dataclass(frozen=True)
class Picture:
    """A picture that a payload is, or holds."""

    kind: str
    """Its media type."""
    content: bytes


@dataclass(frozen=True)
class Shown:
    """A payload as a page has it."""

    kind: str
    """What it is, in words."""
    text: str
    picture: bool


def found(recording: Recording, messages: pl.DataFrame) -> pl.DataFrame:
    """The same rows of ``messages`` with ``payload`` (its row in ``payloads``), ``start_bytes``, ``kept_bytes``; empty
    where none was kept."""
    kept = recording.scan("payloads").with_row_index("payload").filter(
        pl.col("received_ns").is_in(messages["received_ns"].drop_nulls().to_list()))
    known = recording.collect(kept.select(
        "received_ns", "subscriber", "publisher", "sequence", "payload", "start_bytes", "kept_bytes"))
    keys = ["received_ns", "subscriber", "publisher", "sequence"]
    known = known.with_columns(pl.col("sequence").cast(messages.schema["sequence"])).unique(keys, keep="first")
    return messages.join(known, on=keys, how="left", nulls_equal=True, maintain_order="left")


def one(recording: Recording, row: str) -> bytes | None:
    """The bytes of a row of ``payloads``, by its number as an address has it; ``None`` where there is no such row."""
    if (number := whole(row)) is None:
        return None
    place = recording.collect(recording.scan("payloads").select("start_bytes", "kept_bytes").slice(number, 1))
    return recording.payload(*place.row(0)) if place.height else None


def shown(content: bytes, whole_bytes: int) -> Shown:
    """A payload as text.

    Args:
        content: what was kept of it.
        whole_bytes: how many bytes the message had.
    """
    cut = f", the first {number(len(content))} B" if len(content) < whole_bytes else ""
    value = _json(content)
    has_picture = _picture(content, value) is not None
    if value is not None:
        return Shown(f"JSON{', a picture' if has_picture else ''}{cut}", _short(_lines(value)), has_picture)
    if not content:
        return Shown("empty", "", False)
    if has_picture:
        return Shown(f"a picture{cut}", "", True)
    text = _text(content)
    if text is not None:
        return Shown(f"text{cut}", _short(text), False)
    return Shown(f"bytes{cut}", _digits(content), False)


def picture(content: bytes) -> Picture | None:
    """The picture that a payload is, or that a text of its JSON is in base64."""
    return _picture(content, _json(content))


def _picture(content: bytes, value: Any) -> Picture | None:
    for candidate in (content, *_encoded(value)):
        for start, kind in PICTURES:
            if candidate.startswith(start):
                return Picture(kind, candidate)
    return None


def _encoded(value: Any) -> list[bytes]:
    """What the texts of an object say in base64."""
    texts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = []
    for text in texts:
        # Shorter ones are no pictures; a data: address says its type before a comma.
        if isinstance(text, str) and len(text) > 40:
            try:
                found.append(base64.b64decode(text.rpartition(",")[2], validate=True))
            except (binascii.Error, ValueError):
                continue
    return found


def _json(content: bytes) -> Any:
    """The object or list that a payload is; ``None`` where it is neither: a bare number is text to people."""
    if content.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _lines(value: Any) -> str:
    def cut(part: Any, depth: int) -> Any:
        if isinstance(part, str) and len(part) > VALUE_SHOWN:
            return f"{part[:VALUE_SHOWN]}… ({number(len(part))} characters)"
        if depth > 20:
            return "…"
        if isinstance(part, dict):
            return {key: cut(inner, depth + 1) for key, inner in part.items()}
        return [cut(inner, depth + 1) for inner in part] if isinstance(part, list) else part

    return json.dumps(cut(value, 0), indent=2, ensure_ascii=False)


def _text(content: bytes) -> str | None:
    """The text that a payload is; ``None`` where some of it is no character that people see."""
    try:
        text = content.decode()
    except UnicodeDecodeError as problem:
        # What was kept may end amid a character.
        if problem.start < len(content) - 3:
            return None
        text = content[:problem.start].decode()
    return text if all(sign.isprintable() or sign in "\r\n\t" for sign in text) else None


def _digits(content: bytes) -> str:
    """Bytes as `xxd` shows them."""
    lines = []
    for at in range(0, min(len(content), BYTES_SHOWN), 16):
        part = content[at:at + 16]
        signs = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):47}  {signs}")
    more = [f"… {number(len(content) - BYTES_SHOWN)} B more"] if len(content) > BYTES_SHOWN else []
    return "\n".join([*lines, *more])


def _short(text: str) -> str:
    more = len(text) - TEXT_SHOWN
    return text if more <= 0 else f"{text[:TEXT_SHOWN]}\n… {number(more)} characters more"
