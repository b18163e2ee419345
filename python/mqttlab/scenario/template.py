"""Templates of payloads: a text with placeholders that every message fills in.

::

    {"id": "{client}", "t": {time}, "v": {random:0..100}}
     └ braces that are no placeholder stay as they are; {{client}} is the text {client}

A template becomes parts, as the plan has them. One part is the message's identity: where the text says ``{identity}``,
else in the first member of a JSON object, else at the begin of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from mqttlab.mistaken import closest
from mqttlab.quantity import shown

if TYPE_CHECKING:
    from mqttlab.plan import types

# As the engine has them (crates/rows, identity.rs; crates/plan, bounds.rs).
IDENTITY_BYTES = 46
IDENTITY_WITHIN = 1_024
PARTS_MAX = 1_000
SEQUENCE_MAX = 2**32 - 1
TEMPLATE_MAX = 1_000_000
IDENTITY_MEMBER = "mqttlab"

KNOWN = ("{client}", "{group}", "{sequence}", "{time}", "{random:…}", "{identity}")
NAMES = ("client", "group", "sequence", "time", "random", "identity")
DOUBLED = r"\{\{(?P<text>(?:" + "|".join(NAMES) + r")(?::[^{}]*)?)\}\}"
PLACE = re.compile(DOUBLED + r"|\{(?P<name>[A-Za-z_]+)(?::(?P<how>[^{}]*))?\}")
RANGE = re.compile(r"(?:int\s+)?(-?[0-9]{1,15}(?:\.[0-9]{1,9})?)\s*\.\.\s*(-?[0-9]{1,15}(?:\.[0-9]{1,9})?)")
RANDOM = "write {random:0..100}, {random:hex 8}, {random:choice a|b} or {random:uuid}"
TIMES = {"s": 10, "ms": 13, "us": 16, "ns": 19, "iso": 24}
"""Bytes of a time, by its format."""


def payload_template(text: str) -> str:
    """A template that can be filled in.

    Raises:
        ValueError: why it cannot.
    """
    if not text:
        raise ValueError("is empty, but a template has at least 1 character; a message without content is \"0 B\"")
    if len(text.encode("utf-8", "surrogatepass")) > TEMPLATE_MAX:
        raise ValueError(f"is longer than {TEMPLATE_MAX} B (1 MB); use `kind = \"file\"`")
    parts = parts_of(text, "group")
    if len(parts) > PARTS_MAX:
        raise ValueError(f"has {len(parts)} parts, but a template may have at most {PARTS_MAX}; use fewer placeholders")
    before = parts[:next(number for number, part in enumerate(parts) if part["kind"] == "identity")]
    if (most := bounds(before, 10**6)[1]) > IDENTITY_WITHIN:
        raise ValueError(f"has its {{identity}} behind up to {most} B, but readers look for it in the first "
                         f"{IDENTITY_WITHIN} B; move it to the front")
    return text


@lru_cache(maxsize=1_000)
def parts_of(template: str, group: str) -> tuple[types.TemplatePart, ...]:
    """The parts of a template, with its identity.

    Raises:
        ValueError: a placeholder is wrong.
    """
    parts = _merged(_read(template, group))
    identities = sum(part["kind"] == "identity" for part in parts)
    if identities > 1:
        raise ValueError(f"has {{identity}} {identities} times, but a message has one; keep one")
    return parts if identities else _merged(_with_identity(parts))


def bounds(
    parts: tuple[types.TemplatePart, ...], last_client: int, last_sequence: int = SEQUENCE_MAX,
) -> tuple[int, int]:
    """The fewest and the most bytes of a text."""
    each = [_part_bounds(part, last_client, last_sequence) for part in parts]
    return sum(least for least, _ in each), sum(most for _, most in each)


def usual_bytes(template: str, size: int | None) -> int:
    """A usual length of a message."""
    return max(size or 0, sum(bounds(parts_of(template, "group"), 100, 1_000)) // 2)


def _read(template: str, group: str) -> Iterator[types.TemplatePart]:
    at = 0
    for found in PLACE.finditer(template):
        yield {"kind": "text", "text": template[at:found.start()]}
        at = found.end()
        name, how = found["name"], found["how"]
        if found["text"] is not None:
            yield {"kind": "text", "text": f"{{{found['text']}}}"}
        elif name in PLACES:
            yield PLACES[name](found[0], how)
        elif name == "group" and how is None:
            yield {"kind": "text", "text": group}
        elif (meant := _meant(name)) is not None:
            raise ValueError(f"has the unknown placeholder {shown(found[0])}; did you mean {{{meant}}}? Known: "
                             f"{', '.join(KNOWN)}")
        else:
            yield {"kind": "text", "text": found[0]}
    yield {"kind": "text", "text": template[at:]}


def _meant(name: str) -> str | None:
    """The placeholder that a name is a slip of."""
    lower = name.lower()
    begun = [known for known in NAMES if len(name) > 2 and (known.startswith(lower) or lower.startswith(known))]
    return begun[0] if begun else closest(lower, NAMES, 0.75)


def _numbered(kind: str) -> Callable[[str, str | None], types.TemplatePart]:
    def read(place: str, how: str | None) -> types.TemplatePart:
        if how is not None and (not re.fullmatch("[0-9]{1,2}", how) or not 1 <= int(how) <= 20):
            raise ValueError(f"has {shown(place)}, but behind the colon stands how many digits it has at least, 1 to "
                             f"20, such as {{{kind}:04}}")
        width = int(how or 0)
        return {"kind": "client", "width": width} if kind == "client" else {"kind": "sequence", "width": width}
    return read


def _time(place: str, how: str | None) -> types.TemplatePart:
    match how or "ms":
        case "s" | "ms" | "us" | "ns" | "iso" as form:
            return {"kind": "time", "format": form}
        case _:
            raise ValueError(f"has {shown(place)}, but a time is {', '.join(f'{{time:{form}}}' for form in TIMES)}")


def _random(place: str, how: str | None) -> types.TemplatePart:
    kind, _, rest = (how or "").partition(" ")
    if how == "uuid":
        return {"kind": "uuid"}
    if kind == "hex" and re.fullmatch("[0-9]{1,6}", rest) and 1 <= int(rest) <= 100_000:
        return {"kind": "hex", "digits": int(rest)}
    if kind == "choice" and rest:
        return {"kind": "choice", "choices": rest.split("|")}
    found = RANGE.fullmatch(how or "")
    if found is None:
        raise ValueError(f"has {shown(place)}; {RANDOM}")
    decimals = max(len(text.partition(".")[2]) for text in found.groups())
    low, high = (_scaled(text, decimals) for text in found.groups())
    if low > high:
        raise ValueError(f"has {shown(place)}, whose range ends before it begins; write the smaller number first")
    if max(abs(low), abs(high)) >= 2**62:
        raise ValueError(f"has {shown(place)}, whose numbers have more than 18 digits; use fewer decimals")
    return {"kind": "number", "low": low, "high": high, "decimals": decimals}


def _scaled(text: str, decimals: int) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole + fraction.ljust(decimals, "0"))


def _identity(place: str, how: str | None) -> types.TemplatePart:
    if how is not None:
        raise ValueError(f"has {shown(place)}; write {{identity}}")
    return {"kind": "identity"}


PLACES: dict[str, Callable[[str, str | None], types.TemplatePart]] = {
    "client": _numbered("client"), "sequence": _numbered("sequence"), "time": _time, "random": _random,
    "identity": _identity,
}


def _with_identity(parts: tuple[types.TemplatePart, ...]) -> Iterator[types.TemplatePart]:
    try:
        members = json.loads("".join(_sample(part) for part in parts))
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict) or parts[0]["kind"] != "text":
        yield {"kind": "identity"}
        yield {"kind": "text", "text": " "}
        yield from parts
        return
    head, _, rest = parts[0]["text"].partition("{")
    yield {"kind": "text", "text": f'{head}{{"{IDENTITY_MEMBER}":"'}
    yield {"kind": "identity"}
    yield {"kind": "text", "text": f'"{"," if members else ""}{rest}'}
    yield from parts[1:]


def _sample(part: types.TemplatePart) -> str:
    """A text that a part may be; of a time, a number with as many digits."""
    match part["kind"]:
        case "text":
            return part["text"]
        case "choice":
            return part["choices"][0]
        case "number":
            return _number(part["high"], part["decimals"])
        case "client" | "sequence":
            return "0".rjust(part["width"], "0")
        case "time":
            return "2026-01-01T00:00:00.000Z" if part["format"] == "iso" else "1" * TIMES[part["format"]]
        case "hex":
            return "a" * part["digits"]
        case _:
            return "00000000-0000-4000-8000-000000000000"


def _merged(parts: Iterator[types.TemplatePart]) -> tuple[types.TemplatePart, ...]:
    """The same with neighbouring texts in one, and no empty ones."""
    merged: list[types.TemplatePart] = []
    for part in parts:
        if part["kind"] == "text":
            before = merged[-1] if merged else None
            if before is not None and before["kind"] == "text":
                merged[-1] = {"kind": "text", "text": before["text"] + part["text"]}
            elif part["text"]:
                merged.append(part)
        else:
            merged.append(part)
    return tuple(merged)


def _part_bounds(part: types.TemplatePart, last_client: int, last_sequence: int) -> tuple[int, int]:
    match part["kind"]:
        case "identity":
            return IDENTITY_BYTES, IDENTITY_BYTES
        case "client" | "sequence":
            last = last_client if part["kind"] == "client" else last_sequence
            return max(1, part["width"]), max(len(str(last)), part["width"])
        case "number":
            values = (part["low"], part["high"], min(max(0, part["low"]), part["high"]))
            lengths = [len(_number(value, part["decimals"])) for value in values]
            return min(lengths), max(lengths)
        case "choice":
            lengths = [len(choice.encode()) for choice in part["choices"]]
            return min(lengths), max(lengths)
        case _:
            length = len(_sample(part).encode())
            return length, length


def _number(value: int, decimals: int) -> str:
    digits = str(abs(value)).rjust(decimals + 1, "0")
    point = f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits
    return f"-{point}" if value < 0 else point
