"""What clients publish, as events change it.

A publication is what its group says, over that what every change says that has begun and not ended, in the order in
which they began. So a change that ends gives back what was there before it. Clients that changes have made alike stay
alike, so that a group of many clients is a few states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mqttlab.scenario.event import ChangedPublish, Event
from mqttlab.scenario.model import Group
from mqttlab.scenario.publish import Publish

if TYPE_CHECKING:
    from mqttlab.plan import types


class Held(NamedTuple):
    """A change that has begun and not ended, of some publications."""

    number: int
    publications: tuple[int, ...]


class State(NamedTuple):
    """What has begun for a client and not ended, in the order in which it began."""

    publishes: tuple[Held, ...] = ()
    """What says what is published."""
    stops: tuple[Held, ...] = ()
    """What says that nothing is."""


@dataclass(frozen=True)
class Changed:
    """What a publication is from a change on."""

    publication: int
    content: int
    """The number of what its messages are: its own, or behind the group's publications that of one in ``contents``."""
    every: int | None
    """Nanoseconds between messages, 0 for none; none where that is the publication's own."""


@dataclass(frozen=True)
class BurstOf:
    """Messages at once, of each of these publications."""

    publications: tuple[int, ...]
    messages: int


Happening = tuple[Changed, ...] | BurstOf


def planned(happening: Happening) -> types.ClientsChange:
    """What happens to clients, as the plan has it."""
    if isinstance(happening, BurstOf):
        return {"kind": "burst", "publications": list(happening.publications), "messages": happening.messages}
    return {"kind": "publish", "publications": [
        {"publication": one.publication, "content": one.content,
         "rate": None if one.every is None else {"interval_ns": one.every or None}} for one in happening]}


def publications_named(event: Event, group: Group) -> tuple[int, ...]:
    """The numbers of the publications that an event may mean: all of them where it names none."""
    topics = [publish.topic for _, publish in group.publications]
    if event.publication is None:
        return tuple(range(len(topics)))
    if isinstance(event.publication, int):
        return (event.publication,) if event.publication < len(topics) else ()
    return tuple(number for number, topic in enumerate(topics) if topic == event.publication)


class Publishing:
    """What the clients of a group publish, change by change."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.publications = [publish for _, publish in group.publications]
        # Clients that changes have made alike have the same object.
        self._states = [State()] * group.count
        self._events: dict[int, Event] = {}
        self._happened: set[int] = set()
        self.contents: list[tuple[int, Publish]] = []
        """What changes have made of publications, each with the number of its publication."""
        self.ended: list[int] = []
        """The changes of which the last turn left nothing to any client, by number."""

    def turn(
        self, event: Event, number: int, begins: bool, clients: list[int],
    ) -> Iterator[tuple[list[int], Happening]]:
        """A change begins or ends for some clients: what that is to each of them, those alike at once."""
        those, self.ended = publications_named(event, self._group), []
        if event.do == "burst":
            yield clients, BurstOf(those, event.messages or 1)
            return
        again = id(event) in self._happened
        self._happened.add(id(event))
        self._events[number] = event
        held = self._held() if event.do == "continue-publishing" else set()
        after: dict[int, State] = {}
        same: dict[State, State] = {}
        members: dict[int, list[int]] = {}
        before = [self._states[client] for client in clients]
        for client, state in zip(clients, before, strict=True):
            if id(state) not in after:
                made = self._after(state, Held(number, those), begins, again)
                after[id(state)] = same.setdefault(made, made)
            self._states[client] = after[id(state)]
            members.setdefault(id(after[id(state)]), []).append(client)
        self.ended = sorted(held - self._held()) if held else []
        alike: dict[tuple[Changed, ...], list[int]] = {}
        for state in same.values():
            alike.setdefault(tuple(self._changed(state, one) for one in those), []).extend(members[id(state)])
        yield from ((sorted(found), changes) for changes, found in alike.items())

    def _held(self) -> set[int]:
        """The changes of which something is left to any client."""
        different = {id(state): state for state in self._states}.values()
        return {one.number for state in different for one in (*state.publishes, *state.stops)}

    def content(self, number: int) -> Publish:
        """What messages are, by number."""
        behind = number - len(self.publications)
        return self.publications[number] if behind < 0 else self.contents[behind][1]

    def _after(self, state: State, held: Held, begins: bool, again: bool) -> State:
        if not begins:
            return State(tuple(one for one in state.publishes if one.number != held.number),
                         tuple(one for one in state.stops if one.number != held.number))
        event = self._events[held.number]
        if event.do == "continue-publishing":
            left = (Held(one.number, tuple(number for number in one.publications if number not in held.publications))
                    for one in state.stops)
            return State(state.publishes, tuple(now for now in left if now.publications))
        # What takes place again takes its own place, and what does not end covers for ever what it sets.
        if event.do == "stop-publishing":
            stops = tuple(one for one in state.stops if self._events[one.number] is not event) if again else state.stops
            return State(state.publishes, (*stops, held))
        return State((*(one for one in state.publishes if self._events[one.number] is not event
                        and not self._covers(event, held, one)), held), state.stops)

    def _covers(self, event: Event, held: Held, earlier: Held) -> bool:
        """Whether nothing of an earlier change can be seen again."""
        before = self._events[earlier.number].publish
        if event.lasts is not None or event.publish is None or before is None:
            return False
        return _sets(before) <= _sets(event.publish) and set(earlier.publications) <= set(held.publications)

    def _changed(self, state: State, number: int) -> Changed:
        publish, every = self.publications[number], None
        changed: dict[str, Any] = {}
        for held in state.publishes:
            change = self._events[held.number].publish
            if number in held.publications and change is not None:
                every = change.every if change.every is not None else every
                changed |= {name: value for name in ("payload", "qos") if (value := getattr(change, name)) is not None}
        stopped = any(number in held.publications for held in reversed(state.stops))
        content = self._content(number, publish.model_copy(update=changed)) if changed else number
        return Changed(number, content, 0 if stopped else every)

    def _content(self, number: int, publish: Publish) -> int:
        if publish == self.publications[number]:
            return number
        if (number, publish) not in self.contents:
            self.contents.append((number, publish))
        return len(self.publications) + self.contents.index((number, publish))


def _sets(change: ChangedPublish) -> set[str]:
    """What a change sets."""
    every = {"every"} if change.every is not None else set()
    return every | {name for name in ("payload", "qos") if getattr(change, name) is not None}
