"""Whose link it is: how many hosts there are of each name, on which of them a client runs, and what it crosses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mqttlab.digits import whole
from mqttlab.networks.link import LinkDirection
from mqttlab.scenario.location import Location
from mqttlab.scenario.model import Scenario
from mqttlab.scenario.routes import Crossed, placed


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """A network on a client's way to its server."""

    number: int | None
    """Of the scenario's networks; none for the trunk."""
    up: LinkDirection | None
    """Towards the server."""
    down: LinkDirection | None
    each: bool
    """Whether every client has links of its own, or every host that the scenario counts."""
    up_place: Location
    down_place: Location


def host_counts(scenario: Scenario) -> dict[str, int]:
    """How many hosts there are of each name: as is written, else one, or one for each client with links of its own."""
    clients = Counter[str]()
    for group in scenario.groups:
        clients[group.host] += group.count
    each = {name for network in scenario.networks if network.link == "each" for name in network.between}
    never = {server.host for _, server in scenario.all_servers}
    counts = {name: host.count for name, host in scenario.hosts.items()}
    for name in each - never:
        if name in clients and not is_counted(scenario, name):
            counts[name] = clients[name]
    return counts


def is_counted(scenario: Scenario, name: str) -> bool:
    """Whether the scenario says how many hosts there are of a name."""
    return name in scenario.hosts and "count" in scenario.hosts[name].model_fields_set


def first_hosts(scenario: Scenario) -> list[int]:
    """By group, the number of the host of its first client, among those of its name. Hosts that the scenario counts are
    devices on which a client of each group runs; else every client has one of its own."""
    counts, before, found = host_counts(scenario), Counter[str](), []
    for group in scenario.groups:
        shared = is_counted(scenario, group.host) or counts.get(group.host, 1) == 1
        found.append(0 if shared else before[group.host])
        before[group.host] += group.count
    return found


def crossings(scenario: Scenario) -> list[list[Crossing]]:
    """By group, what lies between its clients and their server, from the clients on."""
    if scenario.network != "emulated" or scenario.radio is not None:
        return [[] for _ in scenario.groups]
    ways: dict[str, Crossed] = {}
    found: dict[tuple[str, str], list[Crossing]] = {}
    for group in scenario.groups:
        ends = scenario.server_of(group).host, group.host
        if ends not in found:
            way = ways.get(ends[0]) or ways.setdefault(ends[0], Crossed(scenario, ends[0]))
            found[ends] = [_crossing(scenario, number, first) for number, first in way.of(group.host)]
    return [found[scenario.server_of(group).host, group.host] for group in scenario.groups]


def _crossing(scenario: Scenario, number: int | None, first: bool) -> Crossing:
    """A network, left by the first of its hosts or by the second."""
    if number is None:
        assert scenario.trunk is not None, "the way leads over it"
        return Crossing(number=None, up=scenario.trunk.up, down=scenario.trunk.down, each=False,
                        up_place=("trunk", "up"), down_place=("trunk", "down"))
    network = scenario.networks[number]
    links = placed(network, upwards=first)
    place: Location = ("networks", number)
    names = ("up", "down") if first or network.model is not None else ("down", "up")
    up_place, down_place = ((*place, name) if getattr(network, name) is not None else place for name in names)
    return Crossing(number=number, up=links.up, down=links.down, each=network.link == "each",
                    up_place=up_place, down_place=down_place)


def host_names(scenario: Scenario) -> list[str]:
    """The names of hosts that a plan has, in its order."""
    return list(dict.fromkeys([*(server.host for _, server in scenario.all_servers),
                               *(group.host for group in scenario.groups)]))


def hosts_called(scenario: Scenario, name: str) -> list[int]:
    """The numbers of a plan's hosts of a name, or of the one with that label; none where there is no such."""
    counts, first = host_counts(scenario), 0
    for known in host_names(scenario):
        count = counts.get(known, 1)
        if name == known:
            return list(range(first, first + count))
        number = name.removeprefix(f"{known}-")
        if count > 1 and number != name and (place := whole(number)) is not None and place < count:
            return [first + place]
        first += count
    return []
