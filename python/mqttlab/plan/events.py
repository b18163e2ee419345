"""What the events of a plan are called, and which of them end others.

It asks the plan alone, so that scenarios and recordings tell them alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqttlab.plan.types import Event

# What ends what.
ENDED_BY = {
    "link_down": "link_up", "server_stop": "server_start", "server_kill": "server_start",
    "server_pause": "server_continue", "clients_disconnect": "clients_return", "clients_vanish": "clients_return",
    "clients_stop_reading": "clients_continue_reading", "clients_unsubscribe": "clients_subscribe",
    "clients_subscribe": "clients_unsubscribe", "interferer_on": "interferer_off", "interferer_off": "interferer_on",
    "stations_off": "stations_on",
}


BY_HAND = ", by hand"
"""Behind the name of an event that was fired so."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that changed in a run, and when that ended."""

    name: str
    kind: str
    at_ns: int
    until_ns: int | None = None
    """When the event that ended it took place; none where nothing did."""
    until_name: str = ""
    left: tuple[int, ...] = ()
    """The clients that disconnected or vanished by it."""
    by_hand: bool = False


def kind_of(event: Event) -> str:
    """A plan's event in a word, as the engine calls it: ``link_down``, ``server_kill``, ``clients_vanish``."""
    if "links" in event:
        return {"down": "link_down", "up": "link_up", "spec": "link_change"}[event["change"]["kind"]]
    if "medium" in event:
        return event["change"]["kind"]
    if "server" in event:
        return f"server_{event['change']['kind']}"
    return f"clients_{event['change']['kind']}"


def changes(
    events: Sequence[Event], times: Sequence[int], fired: Sequence[tuple[int, Event]] = (),
) -> list[Change]:
    """What changed, in the order of time: events of a plan with the times at which they took place, of the first ones
    where the run ended early, and those that were fired by hand, with theirs. Events of one name and time are one
    change."""
    found: list[Change] = []
    planned: list[int] = []
    # What has not ended, by what ends it.
    going_on: dict[Hashable, int] = {}
    taken = [(at, False, event) for event, at in zip(events, times, strict=False)]
    taken += [(at, True, event) for at, event in fired]
    for at, by_hand, event in sorted(taken, key=lambda one: one[0]):
        name, kind = event["name"], kind_of(event)
        keys = [name, *([(kind, _about(event))] if kind in ENDED_BY.values() or _gives_back(event) else [])]
        began = next((going_on[key] for key in keys if key in going_on), None)
        # What begins with another one is no end of it.
        if began is not None and planned[began] != event["at_ns"]:
            found[began] = replace(found[began], until_ns=at, until_name=name)
            continue
        if not found or (found[-1].name.removesuffix(BY_HAND), planned[-1]) != (name, event["at_ns"]):
            told = f"{name}{BY_HAND}" if by_hand else name
            found.append(Change(name=told, kind=kind, at_ns=at, left=_left(event, kind), by_hand=by_hand))
            planned.append(event["at_ns"])
        going_on |= dict.fromkeys(_ends_of(event, kind), len(found) - 1)
    return found


def _ends_of(event: Event, kind: str) -> list[Hashable]:
    """What will end an event: the name of its end, as scenarios give it, or what undoes it."""
    keys: list[Hashable] = [f"end of {event['name']}"]
    if kind == "link_change":
        keys.append(f"{event['name'].partition(' ')[0]} as before")
    if kind == "station_moved":
        keys.append(f"{event['name'].partition(' moves to ')[0]} back in its place")
    if kind in ENDED_BY:
        keys.append((ENDED_BY[kind], _about(event)))
    if kind == "clients_publish":
        who, _, what = event["name"].partition(" publish")
        keys += [f"{who} publish{'es' if what.startswith('es ') else ''} as before", (kind, _about(event))]
    return keys


def _gives_back(event: Any) -> bool:
    """Whether an event gives clients their own publications back."""
    change = event.get("change", {})
    return change.get("kind") == "publish" and all(
        one["rate"] is None and one["content"] == one["publication"] for one in change["publications"])


def _left(event: Any, kind: str) -> tuple[int, ...]:
    return tuple(event["clients"]) if kind in ("clients_disconnect", "clients_vanish") else ()


def _about(event: Any) -> Hashable:
    """What an event acts on."""
    if "links" in event:
        return tuple(event["links"])
    if "medium" in event:
        change = event["change"]
        return tuple(change["stations"]) if "stations" in change else change.get("interferer", change.get("station"))
    return event["server"] if "server" in event else (tuple(event["clients"]), event["change"].get("filter"))
