"""What the events of a plan are called, and which of them end others.

It asks the plan alone, so that scenarios and recordings tell them alike.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
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


NAMES_TOLD = 3
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


class Course:
    """What changes in a run, as one event after another takes place: events of one name and time are one change."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        """What changed so far, in the order of time."""
        self._planned: list[int] = []
        # What has not ended, by what ends it.
        self._going_on: dict[Hashable, int] = {}

    def take(self, at_ns: int, event: Event, *, by_hand: bool = False) -> int:
        """Take the next event; returns the place of the change that begins by it, ends by it, or has it as a part."""
        name, kind = event["name"], kind_of(event)
        keys = [name, *([(kind, _about(event))] if kind in ENDED_BY.values() or _gives_back(event) else [])]
        began = next((self._going_on[key] for key in keys if key in self._going_on), None)
        # What begins with another one is no end of it.
        if began is not None and self._planned[began] != event["at_ns"]:
            self.changes[began] = replace(self.changes[began], until_ns=at_ns, until_name=name)
            return began
        if not self.changes or (self.changes[-1].name.removesuffix(BY_HAND), self._planned[-1]) != (
                name, event["at_ns"]):
            told = f"{name}{BY_HAND}" if by_hand else name
            self.changes.append(Change(name=told, kind=kind, at_ns=at_ns, left=_left(event, kind), by_hand=by_hand))
            self._planned.append(event["at_ns"])
        self._going_on |= dict.fromkeys(_ends_of(event, kind), len(self.changes) - 1)
        return len(self.changes) - 1


def changes(
    events: Sequence[Event], times: Sequence[int], fired: Sequence[tuple[int, Event]] = (),
) -> list[Change]:
    """What changed, in the order of time: events of a plan with the times at which they took place, of the first ones
    where the run ended early, and those that were fired by hand, with theirs."""
    course = Course()
    taken = [(at, False, event) for event, at in zip(events, times, strict=False)]
    taken += [(at, True, event) for at, event in fired]
    for at, by_hand, event in sorted(taken, key=lambda one: one[0]):
        course.take(at, event, by_hand=by_hand)
    return course.changes


def lasts(kind: str) -> bool:
    """Whether what a change of this kind does has an end: nothing ends a burst or the return of clients."""
    return kind in ENDED_BY or kind not in {"clients_burst", *ENDED_BY.values()}


def target(event: Event, groups: Sequence[Mapping[str, Any]]) -> str:
    """What an event changes, in names of the plan: links, a server, groups, an interferer or stations.

    Args:
        event: of a plan.
        groups: the plan's.
    """
    found: Any = event
    if "links" in found:
        return _listed(found["links"])
    if "medium" in found:
        change = found["change"]
        stations = change.get("stations", [change.get("station")])
        return str(change["interferer"]) if "interferer" in change else _listed([f"station {n}" for n in stations])
    if "server" in found:
        return str(found["server"])
    ends = list(accumulate(group["count"] for group in groups))
    return _listed([groups[place]["name"] for place in sorted({bisect_right(ends, n) for n in found["clients"]})])


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:NAMES_TOLD], *([f"{len(names) - NAMES_TOLD} more"] if len(names) > NAMES_TOLD else [])])


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
