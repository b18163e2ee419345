"""What clients publish, as events change it.

A publication is what its group says, over that what every change says that has begun and not ended, in the order in
which they began. So a change that ends gives back what was there before it. Clients that changes have made alike stay
alike, so that a group of many clients is a few states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqttlab.scenario.event import Event
from mqttlab.scenario.model import Group
from mqttlab.scenario.publish import Publish

if TYPE_CHECKING:
    from mqttlab.plan import types


@dataclass(frozen=True)
class Held:
    """A change that has begun and not ended, of some publications."""

    number: int
    publications: tuple[int, ...]


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
        self._states: list[tuple[Held, ...]] = [()] * group.count
        # How many clients are in each state.
        self._alike: Counter[tuple[Held, ...]] = Counter({(): group.count})
        self._events: dict[int, Event] = {}
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
        self._events[number] = event
        after: dict[tuple[Held, ...], tuple[Held, ...]] = {}
        members: dict[tuple[Held, ...], list[int]] = {}
        held = {one.number for state in self._alike for one in state}
        for client in clients:
            before = self._states[client]
            if before not in after:
                after[before] = self._after(before, Held(number, those), begins)
            self._states[client] = after[before]
            self._alike.subtract([before])
            self._alike.update([after[before]])
            members.setdefault(after[before], []).append(client)
        self._alike = +self._alike
        self.ended = sorted(held - {one.number for state in self._alike for one in state})
        alike: dict[tuple[Changed, ...], list[int]] = {}
        for state, found in members.items():
            alike.setdefault(tuple(self._changed(state, one) for one in those), []).extend(found)
        yield from ((sorted(found), changes) for changes, found in alike.items())

    def content(self, number: int) -> Publish:
        """What messages are, by number."""
        behind = number - len(self.publications)
        return self.publications[number] if behind < 0 else self.contents[behind][1]

    def _after(self, state: tuple[Held, ...], held: Held, begins: bool) -> tuple[Held, ...]:
        if not begins:
            return tuple(one for one in state if one.number != held.number)
        event = self._events[held.number]
        if event.do != "continue-publishing":
            # What takes place again takes its own place.
            return (*(one for one in state if self._events[one.number] is not event), held)
        left = ((one, one if self._events[one.number].do != "stop-publishing" else Held(
            one.number, tuple(number for number in one.publications if number not in held.publications)))
            for one in state)
        return tuple(now for _, now in left if now.publications)

    def _changed(self, state: tuple[Held, ...], number: int) -> Changed:
        publish, every, stopped = self.publications[number], None, False
        changed: dict[str, Any] = {}
        for held in state:
            if number not in held.publications:
                continue
            event = self._events[held.number]
            stopped |= event.do == "stop-publishing"
            if event.publish is not None:
                every = event.publish.every if event.publish.every is not None else every
                changed |= {name: value for name in ("payload", "qos")
                            if (value := getattr(event.publish, name)) is not None}
        content = self._content(number, publish.model_copy(update=changed)) if changed else number
        return Changed(number, content, 0 if stopped else every)

    def _content(self, number: int, publish: Publish) -> int:
        if publish == self.publications[number]:
            return number
        if (number, publish) not in self.contents:
            self.contents.append((number, publish))
        return len(self.publications) + self.contents.index((number, publish))
