"""What the events of a plan are called, and what changed by them until when.

It asks the plan alone, so that scenarios and recordings tell them alike. The plan says by number which event ends what.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from mqttlab.plan.stored_events import numbered
from mqttlab.words import words_of

if TYPE_CHECKING:
    from mqttlab.plan.types import Event

TARGETS = tuple(dict.fromkeys(said["target"] for said in words_of("change_kind").values()))
"""The fields of an event one of which says what it acts on."""
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


@cache
def kinds() -> dict[tuple[str, str], str]:
    """The kinds of a plan's events, by what they act on and the kind of their change."""
    return {(said["target"], said["change"]): kind for kind, said in words_of("change_kind").items()}


def kind_of(event: Event) -> str:
    """A plan's event in a word, as the engine calls it: ``link_down``, ``server_kill``, ``clients_vanish``."""
    target = next(name for name in TARGETS if name in event)
    return kinds()[target, event["change"]["kind"]]


@dataclass(frozen=True)
class Taken:
    """What an event was to the changes of a run: their places in :attr:`Course.changes`."""

    began: int | None
    """The change that begins by it, or has it as a part; none where it only ends others."""
    ended: tuple[int, ...]
    """The changes that last until then."""


class Course:
    """What changes in a run, as one event after another takes place.

    The plan says which change begins with an event, and which ones it ends.
    """

    def __init__(self) -> None:
        self.changes: list[Change] = []
        """What changed so far, in the order of time."""
        # By the number of a change, with the time that the plan has for it.
        self._places: dict[int, tuple[int, int]] = {}

    def take(self, at_ns: int, event: Event, *, by_hand: bool = False) -> Taken:
        """Take the next event."""
        begun = (self._places[number][0] for number in event.get("ends", ()) if number in self._places)
        ended = tuple(place for place in begun if self.changes[place].until_ns is None)
        for place in ended:
            self.changes[place] = replace(self.changes[place], until_ns=at_ns, until_name=event["name"])
        number = event.get("begins")
        if number is None and "ends" in event:
            return Taken(None, ended)
        if number is not None and number in self._places and self._places[number][1] == event["at_ns"]:
            return Taken(self._places[number][0], ended)
        place, kind = len(self.changes), kind_of(event)
        name = f"{event['name']}{BY_HAND if by_hand else ''}"
        self.changes.append(Change(name=name, kind=kind, at_ns=at_ns, left=_left(event, kind), by_hand=by_hand))
        if number is not None:
            self._places[number] = place, event["at_ns"]
        return Taken(place, ended)


def changes(
    events: Sequence[Event], times: Sequence[int], fired: Sequence[tuple[int, Event]] = (),
) -> list[Change]:
    """What changed, in the order of time: events of a plan with the times at which they took place, of the first ones
    where the run ended early, and those that were fired by hand, with theirs."""
    course = Course()
    taken = [(at, False, event) for event, at in zip(events, times, strict=False)]
    taken += [(at, True, event) for at, event in fired]
    taken.sort(key=lambda one: one[0])
    those = [event for _, _, event in taken]
    for (at, by_hand, _), event in zip(taken, numbered(those, [*map(kind_of, those)]), strict=True):
        course.take(at, event, by_hand=by_hand)
    return course.changes


def lasts(kind: str) -> bool:
    """Whether what a change of this kind does has an end: nothing ends a burst or the return of clients."""
    return "undone_by" in words_of("change_kind")[kind]


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


def _left(event: Any, kind: str) -> tuple[int, ...]:
    return tuple(event["clients"]) if kind in ("clients_disconnect", "clients_vanish") else ()
