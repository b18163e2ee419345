"""A scenario's events as the plan has them: sorted, at absolute times, with whole links and the numbers of clients.

What is changed for a time and what is changed for good lie over each other: a link has the fields of its network, over
these the fields of every change that has begun and not ended, in the order in which they began. So a change that ends
gives back what was there before it, and keeps what another has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from mqttlab.networks.link import LinkDirection
from mqttlab.networks.models import adjusted
from mqttlab.networks.radio import MEDIUM
from mqttlab.scenario.access import hosts_called
from mqttlab.scenario.event import ENDS, Event
from mqttlab.scenario.event_ends import Undone
from mqttlab.scenario.event_publish import Happening, Publishing, planned
from mqttlab.scenario.event_words import begins, ends
from mqttlab.scenario.model import Group, Scenario, reason
from mqttlab.scenario.phases import END_OF
from mqttlab.scenario.routes import TRUNK, Laid, LaidLinks

if TYPE_CHECKING:
    from mqttlab.plan import types

EVENTS_MAX = 100_000
"""As in the engine (``crates/plan/src/events.rs``)."""


class WrongLinkError(ValueError):
    """An event sets fields of a link that do not go with its others."""

    def __init__(self, event: Event, words: str) -> None:
        super().__init__(words)
        self.event = event


class EventTimes:
    """When the events of a scenario begin; each is found once, however many events wait for each other in a row."""

    def __init__(self, scenario: Scenario) -> None:
        self._phases = scenario.phases
        self._named: dict[str, list[Event]] = {}
        for event in scenario.events:
            if event.name is not None:
                self._named.setdefault(event.name, []).append(event)
        self._known: dict[int, range] = {}
        self._circles: dict[int, int] = {}

    @property
    def names(self) -> list[str]:
        """What events are called that others may wait for."""
        return list(self._named)

    def of(self, event: Event) -> range:
        """When an event begins, in ns of the measurement: each of its times. None where it waits for itself, or for
        what is not there."""
        # Events may wait for each other in a row of any length, and in a circle: no call waits for another one.
        row, inside = [event], {id(event)}
        while (before := self._before(row[-1])) is not None and id(before[0]) not in self._known:
            if id(before[0]) in inside:
                circle = row[next(place for place, one in enumerate(row) if one is before[0]):]
                self._known |= {id(one): range(0) for one in circle}
                self._circles[id(before[0])] = len(circle)
                break
            row.append(before[0])
            inside.add(id(before[0]))
        for waiting in reversed(row):
            if id(waiting) not in self._known:
                self._known[id(waiting)] = self._times(waiting)
        return self._known[id(event)]

    def in_turn(self, event: Event) -> int:
        """How many events wait for each other in a circle, where this is the first of them that was asked for; else 0.
        """
        self.of(event)
        return self._circles.get(id(event), 0)

    def waited_for(self, event: Event) -> list[tuple[Event, bool]]:
        """The events that an event may wait for by their name, and whether for their end. One, where nothing is
        wrong."""
        for name, for_end in ((event.when, False), ((event.when or "").removeprefix(END_OF), True)):
            if found := self._named.get(name or ""):
                return [(other, for_end) for other in found]
        return []

    def _before(self, event: Event) -> tuple[Event, bool] | None:
        """The event whose times have to be known first."""
        if event.when is None or self._phases.instant(event.when) is not None:
            return None
        found = self.waited_for(event)
        return found[0] if len(found) == 1 else None

    def _begun(self, event: Event) -> range:
        """When took place what an event waits for."""
        stage = self._phases.instant(event.when or "")
        if stage is not None:
            return _once(stage)
        before = self._before(event)
        if before is None or (before[1] and before[0].lasts is None):
            return range(0)
        return _later(self._known[id(before[0])], before[0].lasts or 0 if before[1] else 0)

    def _times(self, event: Event) -> range:
        begun = _once(0) if event.when is None else self._begun(event)
        if event.every is None or not begun:
            return _later(begun, event.at or 0)
        first = begun[0] + (event.every if event.at is None and event.when is None else event.at or 0)
        if event.count is not None:
            return range(first, first + event.count * event.every, event.every)
        last = self._phases.duration - 1 if event.until is None else min(event.until, self._phases.duration - 1)
        return range(first, last + 1, event.every)


def _once(at: int) -> range:
    return range(at, at + 1)


def _later(times: range, by: int) -> range:
    return range(times.start + by, times.stop + by, times.step)


def networks_called(scenario: Scenario, name: str) -> list[int]:
    """The numbers of the networks that an event may mean by a name: of that name, else those that join such a host."""
    if name == "trunk" and scenario.trunk is not None:
        return [TRUNK]
    named = [number for number, network in enumerate(scenario.networks) if network.name == name]
    return named or [number for number, network in enumerate(scenario.networks) if name in network.between]


def clients_of(event: Event, group: Group) -> list[int]:
    """The clients of a group that an event is about, by their numbers in the group."""
    if event.client is not None:
        return [event.client]
    above, below = event.share or (1, 1)
    return [number for number in range(group.count) if (number + 1) * above // below > number * above // below]


LOSSES = {"loss", "burst_loss", "bit_errors"}
"""Of ways of losing frames a link has one: a later change of any takes the place of all."""
Fields = dict[str, Any]


@dataclass
class _Direction:
    """A link of the scenario, as it is at a time."""

    laid: Laid
    over: dict[str, dict[int, Fields]] = field(default_factory=dict)
    """What has been changed and has not ended, by what it takes the place of, and by the number of the change."""
    down: set[int] = field(default_factory=set)
    """The changes that keep it down."""
    _made: dict[tuple[int, ...], LinkDirection] = field(default_factory=dict)
    """Links by the changes that made them: they come again as often as events do."""

    def change(self, number: int, prepared: _Prepared) -> None:
        """A change begins."""
        for name, fields in prepared.fields.items():
            held = self.over.setdefault(name, {})
            if prepared.event.lasts is None:
                # What does not end covers for ever what was there.
                held.clear()
            held[number] = fields

    def restore(self, number: int, prepared: _Prepared) -> None:
        """A change ends."""
        for name in prepared.fields:
            self.over[name].pop(number, None)

    def link(self) -> LinkDirection:
        latest = [next(reversed(held.values())) for held in self.over.values() if held]
        key = tuple(id(fields) for fields in latest)
        if key not in self._made:
            self._made[key] = adjusted(
                self.laid.link, {name: value for fields in latest for name, value in fields.items()})
        return self._made[key]


@dataclass(frozen=True)
class _Prepared:
    """An event with what is the same each time that it takes place."""

    event: Event
    begins: str
    ends: str
    fields: dict[str, Fields]
    """What it sets of links, by what that takes the place of."""
    ways: list[_Direction]
    """The links' directions that it changes."""
    members: list[int]
    """The clients that it is about, by their numbers in their group."""


def _prepared(
    scenario: Scenario, event: Event, links: Mapping[int, dict[str, _Direction]],
    firsts: Mapping[str, tuple[Group, int]],
) -> _Prepared:
    fields: dict[str, Fields] = {}
    for name, value in event.changed.items():
        fields.setdefault("loss" if name in LOSSES else name, {})[name] = value
    numbers = networks_called(scenario, event.network) if event.network is not None else []
    ways = directions(event, links.get(numbers[0], {})) if numbers else []
    members = clients_of(event, firsts[event.group][0]) if event.group is not None else []
    return _Prepared(event, begins(event), ends(event) if event.lasts is not None else "", fields, ways, members)


@dataclass(frozen=True, order=True)
class _Turn:
    """A change begins or ends. What ends at an instant does so before others begin."""

    at: int
    begins: bool
    number: int
    event: Event = field(compare=False)


def planned_events(scenario: Scenario, laid: LaidLinks, publishing: dict[str, Publishing]) -> list[types.Event]:
    """The plan's events, of a scenario that was checked. They change what groups publish."""
    return [event for _, event in planned_and_written(scenario, laid, publishing)]


def publishing_of(scenario: Scenario) -> dict[str, Publishing]:
    """What groups publish whose publications events change, by name, before any of them."""
    changed = {event.group for event in scenario.events if event.publishes}
    return {group.name: Publishing(group) for group in scenario.groups if group.name in changed}


def changed_publishing(
    scenario: Scenario, publishing: dict[str, Publishing],
) -> Iterator[tuple[int, Group, list[int], Happening]]:
    """When what clients of a group publish changes, since publishing began: for which of them, and how."""
    firsts = _first_clients(scenario)
    members: dict[int, list[int]] = {}
    for turn in sorted(_turns(scenario)):
        event = turn.event
        if event.publishes:
            group, _ = firsts[str(event.group)]
            if id(event) not in members:
                members[id(event)] = clients_of(event, group)
            for clients, happening in publishing[group.name].turn(
                    event, turn.number, turn.begins, members[id(event)]):
                yield scenario.phases.warm_up + turn.at, group, clients, happening


def planned_and_written(
    scenario: Scenario, laid: LaidLinks, publishing: dict[str, Publishing],
) -> Iterator[tuple[Event, types.Event]]:
    """The plan's events, each with the scenario's event that it comes from.

    Raises:
        WrongLinkError: fields of a link do not go with those that it has at that time.
    """
    links = {number: {name: _Direction(one) for name, one in ways.items()} for number, ways in laid.items()}
    firsts, undone = _first_clients(scenario), Undone()
    known: dict[int, _Prepared] = {}
    for turn in sorted(_turns(scenario)):
        event = turn.event
        if id(event) not in known:
            known[id(event)] = _prepared(scenario, event, links, firsts)
        prepared = known[id(event)]
        if event.network is not None:
            changes = _of_links(turn, prepared, scenario.mtu)
        elif event.server is not None:
            changes = iter([{"server": event.server, "change": _of_server(scenario, turn)}])
        elif event.group is None:
            changes = iter([{"medium": MEDIUM, "change": _on_air(scenario, turn)}])
        else:
            group, first = firsts[event.group]
            changes = _of_clients(turn, group, first, (publishing.get(group.name), prepared.members))
        try:
            happened = list(changes)
        except ValueError as error:
            raise WrongLinkError(event, reason(error)) from error
        ended = undone.turn(turn.number, turn.begins, happened)
        if event.do == "continue-publishing" and event.group is not None:
            ended += publishing[event.group].ended
        told = {"at_ns": scenario.phases.warm_up + turn.at, "name": prepared.begins if turn.begins else prepared.ends}
        # What undoes others and lasts no time of its own is their end, and no change besides.
        if turn.begins and (event.lasts is not None or not ended):
            told["begins"] = turn.number
        if ended:
            told["ends"] = ended
        yield from ((event, cast("types.Event", {**told, **change})) for change in happened)


def _turns(scenario: Scenario) -> Iterator[_Turn]:
    number, times = 0, EventTimes(scenario)
    for event in scenario.events:
        for at in times.of(event):
            yield _Turn(at, True, number, event)
            if event.lasts is not None:
                yield _Turn(at + event.lasts, False, number, event)
            number += 1


def _first_clients(scenario: Scenario) -> dict[str, tuple[Group, int]]:
    found, first = {}, 0
    for group in scenario.groups:
        found[group.name] = group, first
        first += group.count
    return found


def directions(event: Event, ways: dict[str, Any]) -> list[Any]:
    """Which of a network's directions an event changes."""
    asked = event.direction or "both"
    return [way for name, way in ways.items() if asked in ("both", name)]


def _of_links(turn: _Turn, prepared: _Prepared, mtu: int) -> Iterator[dict[str, Any]]:
    """What happens to the links of these directions; directions that change alike, at once."""
    event, ways = turn.event, prepared.ways
    if event.down is None:
        for way in ways:
            if turn.begins:
                way.change(turn.number, prepared)
            else:
                way.restore(turn.number, prepared)
        yield from _specs(ways, mtu)
        return
    if event.down and turn.begins:
        for way in ways:
            way.down.add(turn.number)
        yield {"links": _names(ways), "change": {"kind": "down", "queue": event.queued or "drop"}}
        return
    freed = [way for way in ways if way.down and (turn.begins or way.down == {turn.number})]
    for way in ways:
        if turn.begins:
            way.down.clear()
        else:
            way.down.discard(turn.number)
    if freed or turn.begins:
        yield {"links": _names(freed or ways), "change": {"kind": "up"}}


def _specs(ways: list[_Direction], mtu: int) -> Iterator[dict[str, Any]]:
    alike: dict[tuple[LinkDirection, int], list[_Direction]] = {}
    for way in ways:
        alike.setdefault((way.link(), way.laid.round_trip_ns), []).append(way)
    for (link, round_trip_ns), those in alike.items():
        names = _names(those)
        yield {"links": names, "change": {"kind": "spec", "spec": link.plan(names[0], mtu, round_trip_ns)}}


def _names(ways: list[_Direction]) -> list[str]:
    return [name for way in ways for name in way.laid.names]


def _of_server(scenario: Scenario, turn: _Turn) -> dict[str, Any]:
    event = turn.event
    kept = event.persistence
    if kept is None:
        kept = scenario.server_named(str(event.server)).persistence
    return {"kind": _action(turn), "persistence": kept}


def _on_air(scenario: Scenario, turn: _Turn) -> dict[str, Any]:
    """What happens on the radio channel."""
    event = turn.event
    stations = [] if event.station is None else hosts_called(scenario, event.station)
    if event.position is not None:
        there = event.position if turn.begins else _position(scenario, stations[0])
        return {"kind": "station_moved", "station": stations[0], "position": {"x_mm": there[0], "y_mm": there[1]}}
    action = _action(turn)
    if event.interferer is not None:
        return {"kind": f"interferer_{action.removeprefix('switch_')}", "interferer": event.interferer}
    return {"kind": f"stations_{action.removeprefix('radio_')}", "stations": stations}


def _position(scenario: Scenario, station: int) -> tuple[int, int]:
    """Where a station stands by the scenario."""
    positions = scenario.radio.positions if scenario.radio is not None else None
    return (0, 0) if positions is None else positions[station]


def _action(turn: _Turn) -> str:
    do = str(turn.event.do)
    return (do if turn.begins else ENDS[do]).replace("-", "_")


def _of_clients(
    turn: _Turn, group: Group, first: int, about: tuple[Publishing | None, list[int]],
) -> Iterator[dict[str, Any]]:
    publishing, members = about
    if turn.event.publishes and publishing is not None:
        for clients, happening in publishing.turn(turn.event, turn.number, turn.begins, members):
            yield {"clients": [first + number for number in clients], "change": planned(happening)}
        return
    yield {"clients": [first + number for number in members], "change": _of_all_clients(turn, group)}


def _of_all_clients(turn: _Turn, group: Group) -> dict[str, Any]:
    event, kind = turn.event, _action(turn)
    change: dict[str, Any] = {"kind": kind}
    if event.filter is not None:
        change["filter"] = event.filter
    if kind == "subscribe":
        had = next((one.qos for one in group.subscribe if one.filter == event.filter), 0)
        change["qos"] = had if event.qos is None else event.qos
    return change
