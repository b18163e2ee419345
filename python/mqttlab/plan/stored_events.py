"""The events of stored plans whose events do not say which change they begin and end.

Such plans have names alone. An event is taken for the end of another where its name or what it does fits one change, of
those that go on. Where it fits several, which one it ended is not known, and none of them has an end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from mqttlab.words import phrases

if TYPE_CHECKING:
    from mqttlab.plan.types import Event

# Those of the same kind are told apart by their names.
ENDED_BY = {kind: end for kind, end in phrases("change_kind", "undone_by").items() if kind != end}


def numbered(events: Sequence[Event], kinds: Sequence[str]) -> list[Event]:
    """Events with the changes that each begins and ends. Those that say so stay as they are.

    Args:
        events: in the order in which they took place.
        kinds: of the events, in a word.
    """
    if any("begins" in event or "ends" in event for event in events):
        return list(events)
    found: list[dict[str, Any]] = []
    # What would end a change: the numbers of those that go on.
    going_on: dict[Hashable, set[int]] = {}
    number, before = -1, None
    for event, kind in zip(events, kinds, strict=True):
        name, at_ns = event["name"], event["at_ns"]
        if before is not None and before[:2] == (name, at_ns):
            # Another direction, or other clients, of the one before it.
            found.append({**event, **before[2]})
            continue
        keys = [name, *([(kind, _about(event))] if kind in ENDED_BY.values() or _gives_back(event) else [])]
        fitting = {one for key in keys for one in going_on.get(key, ())}
        turn: dict[str, Any]
        if len(fitting) == 1:
            for ones in going_on.values():
                ones -= fitting
            turn = {"ends": list(fitting)}
        elif fitting:
            turn = {"ends": []}
        else:
            number += 1
            turn = {"begins": number}
            for key in _ends_of(event, kind):
                going_on.setdefault(key, set()).add(number)
        before = name, at_ns, turn
        found.append({**event, **turn})
    return cast("list[Event]", found)


def _ends_of(event: Event, kind: str) -> Iterator[Hashable]:
    """What will end an event: the name of its end, as scenarios gave it, or what undoes it."""
    name = event["name"]
    yield f"end of {name}"
    if kind == "link_change":
        yield f"{name.partition(' ')[0]} as before"
    if kind == "station_moved":
        yield f"{name.partition(' moves to ')[0]} back in its place"
    if kind in ENDED_BY:
        yield ENDED_BY[kind], _about(event)
    if kind == "clients_publish":
        who, _, what = name.partition(" publish")
        yield f"{who} publish{'es' if what.startswith('es ') else ''} as before"
        yield kind, _about(event)


def _gives_back(event: Any) -> bool:
    """Whether an event gives clients their own publications back."""
    change = event.get("change", {})
    return change.get("kind") == "publish" and all(
        one["rate"] is None and one["content"] == one["publication"] for one in change["publications"])


def _about(event: Any) -> Hashable:
    """What an event acts on."""
    if "links" in event:
        return tuple(event["links"])
    if "medium" in event:
        change = event["change"]
        return tuple(change["stations"]) if "stations" in change else change.get("interferer", change.get("station"))
    return event["server"] if "server" in event else (tuple(event["clients"]), event["change"].get("filter"))
