"""Places in a scenario: ``phases.duration``, ``groups[0].publish.qos``, ``groups[*].publish.qos``, ``groups[map]``.

A place is looked up in the values of a scenario file, before they are checked; what is written there may be wrong, and
the scenario's own check says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mqttlab.digits import whole
from mqttlab.mistaken import closest
from mqttlab.quantity import shown

EVERY = "*"
_WHOLE = re.compile(r"[A-Za-z0-9_-]+(?:\[[^\[\]]+\])*(?:\.[A-Za-z0-9_-]+(?:\[[^\[\]]+\])*)*")
_PART = re.compile(r"\[([^\[\]]+)\]|([A-Za-z0-9_-]+)")

Step = tuple[bool, str]
"""Whether it is an index, and the key, number, name or ``*``."""


def steps(place: str) -> list[Step]:
    """A place in steps.

    Raises:
        ValueError: it is not written as a place.
    """
    if not _WHOLE.fullmatch(place):
        raise ValueError(f"is {shown(place)}, which is not a place; write it as in \"groups[0].publish.qos\"")
    return [(match[1] is not None, match[1] if match[1] is not None else match[2]) for match in _PART.finditer(place)]


def put(values: dict[str, Any], place: str, value: Any) -> int:
    """Write a value at a place, in all places that it stands for; returns how many.

    Raises:
        ValueError: there is no such place.
    """
    path = steps(place)
    owners = list(_owners(values, path[:-1], place, under_every=False))
    is_index, last = path[-1]
    count = 0
    for owner in owners:
        for key in _keys(owner, is_index, last, place):
            owner[key] = value
            count += 1
    if count == 0:
        raise ValueError(f"is {shown(place)}, but nothing in the scenario has it")
    return count


def named(values: Any, place: str) -> list[str]:
    """The places that a place stands for, with numbers for names; of values that have it."""
    found = [("", values)]
    for is_index, step in steps(place):
        found = [(f"{words}[{key}]" if is_index else f"{words}.{key}".lstrip("."), here[key])
                 for words, here in found for key in _keys(here, is_index, step, place)]
    return [words for words, _ in found]


def _owners(here: Any, path: list[Step], place: str, *, under_every: bool) -> Iterator[Any]:
    """The tables and arrays that hold the last step."""
    if not path:
        if isinstance(here, (dict, list)):
            yield here
        elif not under_every:
            raise ValueError(f"is {shown(place)}, but the scenario has {shown(here)} there, not a table")
        return
    (is_index, step), rest = path[0], path[1:]
    under_every = under_every or step == EVERY
    if not is_index and isinstance(here, dict) and step not in here:
        if under_every:
            return
        here[step] = {}
    for key in _keys(here, is_index, step, place):
        # `subscribe = ["a/+"]` is short for a table.
        if isinstance(here[key], str) and isinstance(here, list) and rest == [] and is_index:
            here[key] = {"filter": here[key]}
        yield from _owners(here[key], rest, place, under_every=under_every)


def _keys(here: Any, is_index: bool, step: str, place: str) -> list[Any]:
    if not is_index:
        if not isinstance(here, dict):
            raise ValueError(f"is {shown(place)}, but `{step}` stands behind an array; write an index, as in "
                             "\"groups[0].publish.qos\"")
        return [step]
    if not isinstance(here, list):
        raise ValueError(f"is {shown(place)}, but [{step}] does not stand behind an array")
    if step == EVERY:
        return list(range(len(here)))
    if (index := whole(step)) is not None:
        if index >= len(here):
            most = f"has {len(here)}, counted from 0" if here else "has none"
            raise ValueError(f"is {shown(place)}, but the scenario {most}: there is no [{step}]")
        return [index]
    return _named(here, step, place)


def _named(entries: list[Any], name: str, place: str) -> list[int]:
    """Entries of this name; networks that join a host of this name."""
    found = [index for index, entry in enumerate(entries)
             if isinstance(entry, dict) and (entry.get("name") == name or name in (entry.get("between") or ()))]
    if not found:
        known = [str(entry.get("name")) for entry in entries if isinstance(entry, dict) and "name" in entry]
        near = closest(name, known)
        hint = f"did you mean [{near}]?" if near else f"known: {', '.join(known) or 'none has a name'}"
        raise ValueError(f"is {shown(place)}, but nothing there is named {shown(name)}; {hint}")
    return found
