"""A scenario's events as the plan has them: sorted, at absolute times, with whole links and the numbers of clients.

What is changed for a time and what is changed for good lie over each other: a link has the fields of its network, over
these the fields of every change that has begun and not ended, in the order in which they began. So a change that ends
gives back what was there before it, and keeps what another has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def times(scenario: Scenario, event: Event, seen: tuple[int, ...] = ()) -> range | tuple[int, ...]:
    """When an event begins, in ns of the measurement: each of its times. None where it waits for itself, or for what is
    not there."""
    begun = (0,) if event.when is None else _begun(scenario, event, seen)
    if event.every is None:
        return tuple(at + (event.at or 0) for at in begun)
    if not begun:
        return ()
    first = begun[0] + (event.every if event.at is None and event.when is None else event.at or 0)
    if event.count is not None:
        return range(first, first + event.count * event.every, event.every)
    last = scenario.phases.duration - 1 if event.until is None else min(event.until, scenario.phases.duration - 1)
    return range(first, last + 1, event.every)


def waited_for(scenario: Scenario, event: Event) -> list[tuple[Event, bool]]:
    """The events that an event may wait for by their name, and whether for their end. One, where nothing is wrong."""
    for name, for_end in ((event.when, False), ((event.when or "").removeprefix(END_OF), True)):
        found = [(other, for_end) for other in scenario.events if other.name is not None and other.name == name]
        if found:
            return found
    return []


def _begun(scenario: Scenario, event: Event, seen: tuple[int, ...]) -> tuple[int, ...]:
    """When took place what an event waits for."""
    found, stage = waited_for(scenario, event), scenario.phases.instant(event.when or "")
    if stage is not None:
        return (stage,)
    if len(found) != 1 or id(event) in seen:
        return ()
    other, for_end = found[0]
    if for_end and other.lasts is None:
        return ()
    return tuple(at + (other.lasts or 0 if for_end else 0) for at in times(scenario, other, (*seen, id(event))))


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


@dataclass
class _Direction:
    """A link of the scenario, as it is at a time."""

    laid: Laid
    over: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What has been changed and has not ended, by the number of the change."""
    down: set[int] = field(default_factory=set)
    """The changes that keep it down."""

    def link(self) -> LinkDirection:
        fields: dict[str, Any] = {}
        for changed in self.over.values():
            fields = {name: value for name, value in fields.items() if not _replaces(changed, name)} | changed
        return adjusted(self.laid.link, fields)


def _replaces(changed: dict[str, Any], name: str) -> bool:
    """Whether a later change takes the place of a field: of ways of losing frames a link has one."""
    losses = {"loss", "burst_loss", "bit_errors"}
    return name in losses and bool(losses & set(changed))


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
    for turn in sorted(_turns(scenario)):
        if turn.event.publishes:
            group, _ = firsts[str(turn.event.group)]
            members = clients_of(turn.event, group)
            for clients, happening in publishing[group.name].turn(turn.event, turn.number, turn.begins, members):
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
    for turn in sorted(_turns(scenario)):
        event = turn.event
        if event.network is not None:
            numbers = networks_called(scenario, event.network)
            changes = _of_links(
                turn, directions(event, links.get(numbers[0], {}) if numbers else {}), scenario.mtu)
        elif event.server is not None:
            changes = iter([{"server": event.server, "change": _of_server(scenario, turn)}])
        elif event.group is None:
            changes = iter([{"medium": MEDIUM, "change": _on_air(scenario, turn)}])
        else:
            group, first = firsts[str(event.group)]
            changes = _of_clients(turn, group, first, publishing.get(group.name))
        try:
            happened = list(changes)
        except ValueError as error:
            raise WrongLinkError(event, reason(error)) from error
        ended = undone.turn(turn.number, turn.begins, happened)
        if event.do == "continue-publishing" and event.group is not None:
            ended += publishing[event.group].ended
        told = {"at_ns": scenario.phases.warm_up + turn.at, "name": begins(event) if turn.begins else ends(event)}
        # What undoes others and lasts no time of its own is their end, and no change besides.
        if turn.begins and (event.lasts is not None or not ended):
            told["begins"] = turn.number
        if ended:
            told["ends"] = ended
        yield from ((event, cast("types.Event", {**told, **change})) for change in happened)


def _turns(scenario: Scenario) -> Iterator[_Turn]:
    number = 0
    for event in scenario.events:
        for at in times(scenario, event):
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


def _of_links(turn: _Turn, ways: list[_Direction], mtu: int) -> Iterator[dict[str, Any]]:
    """What happens to the links of these directions; directions that change alike, at once."""
    event = turn.event
    if event.down is None:
        for way in ways:
            if turn.begins:
                way.over[turn.number] = event.changed
            else:
                way.over.pop(turn.number, None)
        yield from _specs(ways, mtu)
        return
    if event.down and turn.begins:
        for way in ways:
            way.down.add(turn.number)
        yield {"links": _names(ways), "change": {"kind": "down", "queue": event.queued or "drop"}}
        return
    freed = [way for way in ways if way.down and (turn.begins or way.down == {turn.number})]
    for way in ways:
        way.down = set() if turn.begins else way.down - {turn.number}
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


def _of_clients(turn: _Turn, group: Group, first: int, publishing: Publishing | None) -> Iterator[dict[str, Any]]:
    members = clients_of(turn.event, group)
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
