"""What no single field can tell: names that must exist, parts that must fit together."""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterable, Iterator

from mqttlab.brokers import ADAPTERS
from mqttlab.networks import MODELS, PROFILES
from mqttlab.scenario.load import Location
from mqttlab.scenario.model import Group, Scenario

Problem = tuple[Location, str]


def contradictions(scenario: Scenario) -> list[Problem]:
    """Everything that is wrong between the fields of a scenario whose fields are right."""
    checks = (_broker, _hosts, _networks, _groups, _names)
    return [problem for check in checks for problem in check(scenario)]


def near(given: str, known: Iterable[str]) -> str:
    """The nearest known name, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    return f"did you mean `{close[0]}`?" if close else f"known: {', '.join(names)}"


def _broker(scenario: Scenario) -> Iterator[Problem]:
    broker = scenario.broker
    if broker.kind not in ADAPTERS:
        yield ("broker", "kind"), f"is {broker.kind!r}, which is no broker here; {near(broker.kind, ADAPTERS)}"
    if broker.kind == "external":
        if broker.address is None:
            yield ("broker", "address"), "is missing; an external broker needs the address it runs at"
        else:
            try:
                ipaddress.ip_address(broker.address)
            except ValueError:
                yield ("broker", "address"), f"is {broker.address!r}, which is no IP address, such as \"192.0.2.1\""
        if scenario.network != "external":
            yield ("network",), "must be \"external\" with an external broker: nothing between it and you is emulated"
    elif broker.address is not None:
        yield ("broker", "address"), "belongs to `kind = \"external\"`; leave it out"
    elif scenario.network == "external":
        yield ("network",), "is \"external\", which needs `kind = \"external\"` and an address in [broker]"


def _hosts(scenario: Scenario) -> Iterator[Problem]:
    used = {scenario.broker.host, *(g.host for g in scenario.groups)}
    used |= {name for network in scenario.networks for name in network.between}
    for name, host in scenario.hosts.items():
        if name not in used:
            yield ("hosts", name), f"is used by nobody; {near(name, used)}"
        if host.tcp.profile not in PROFILES:
            problem = f"is {host.tcp.profile!r}, which is no TCP profile; {near(host.tcp.profile, PROFILES)}"
            yield ("hosts", name, "tcp", "profile"), problem
    if scenario.broker.host in scenario.hosts and scenario.hosts[scenario.broker.host].count > 1:
        yield ("hosts", scenario.broker.host, "count"), "is above 1, but the broker runs on one host"


def _networks(scenario: Scenario) -> Iterator[Problem]:
    broker = scenario.broker.host
    if scenario.network != "emulated" and scenario.networks:
        yield ("networks",), f"has no meaning with `network = \"{scenario.network}\"`; leave one of them out"
    joined: set[frozenset[str]] = set()
    for index, network in enumerate(scenario.networks):
        if network.model is not None and network.model not in MODELS:
            problem = f"is {network.model!r}, which is no network model; {near(network.model, MODELS)}"
            yield ("networks", index, "model"), problem
        if broker not in network.between:
            yield ("networks", index, "between"), f"must name the broker's host `{broker}`: all traffic passes it"
        pair = frozenset(network.between)
        if pair in joined:
            yield ("networks", index, "between"), f"joins {' and '.join(sorted(pair))} again; keep one of the two"
        joined.add(pair)
    if scenario.radio is not None:
        yield from _radio(scenario)
    elif scenario.network == "emulated":
        for index, group in enumerate(scenario.groups):
            if group.host != broker and frozenset((group.host, broker)) not in joined:
                hosts = {name for pair in joined for name in pair}
                yield ("groups", index, "host"), (
                    f"is `{group.host}`, which no network joins to the broker's host `{broker}`; add [[networks]] with "
                    f"between = [\"{group.host}\", \"{broker}\"], or {near(group.host, hosts | {broker})}")


def _radio(scenario: Scenario) -> Iterator[Problem]:
    if scenario.backend == "live":
        yield ("radio",), "can only be simulated; set `backend = \"sim\"`, or use [[networks]]"
    if scenario.networks:
        yield ("networks",), "and `radio` exclude each other: the radio channel joins all hosts"
    if scenario.network != "emulated":
        yield ("network",), f"is \"{scenario.network}\", but a radio channel is an emulated network"
    if scenario.radio is not None and scenario.radio.access_point and scenario.trunk is None:
        yield ("radio", "access_point"), "needs a [trunk] from the access point to the broker"
    names = {scenario.broker.host, *(group.host for group in scenario.groups)}
    stations = sum(scenario.hosts[name].count if name in scenario.hosts else 1 for name in names)
    if scenario.radio is not None and scenario.radio.positions is not None:
        given = len(scenario.radio.positions)
        if given != stations:
            yield ("radio", "positions"), f"has {given} entries, but there are {stations} hosts"


def _groups(scenario: Scenario) -> Iterator[Problem]:
    for index, group in enumerate(scenario.groups):
        hosts = scenario.hosts[group.host].count if group.host in scenario.hosts else 1
        if hosts > 1 and group.count > hosts:
            problem = f"is {group.count}, but there are {hosts} hosts `{group.host}`; use as many or fewer clients"
            yield ("groups", index, "count"), problem
        mqtt = group.mqtt or scenario.mqtt
        if mqtt.version == "3.1" and len(mqtt.client_id) > 23 and "{" not in mqtt.client_id:
            yield ("groups", index, "mqtt", "client_id"), "is longer than the 23 characters that MQTT 3.1 allows"
        if group.count > 1 and "{client}" not in mqtt.client_id:
            yield ("groups", index, "mqtt", "client_id"), (
                f"is {mqtt.client_id!r} for {group.count} clients, which would throw each other out; add {{client}}")
        yield from _payload_file(index, group)
    if scenario.backend == "sim":
        for name, host in scenario.hosts.items():
            profile = PROFILES.get(host.tcp.profile)
            if (host.tcp.congestion_control or (profile and profile.congestion_control)) == "bbr":
                yield ("hosts", name, "tcp"), "has bbr, which only live runs have; use cubic or reno"


def _payload_file(index: int, group: Group) -> Iterator[Problem]:
    payload = group.publish.payload if group.publish else None
    if payload is not None and payload.path is not None:
        place = ("groups", index, "publish", "payload", "path")
        if not payload.path.is_file():
            yield place, f"is {str(payload.path)!r}, which is not a file"
        elif payload.path.stat().st_size > 10_000_000:
            yield place, f"is {payload.path.stat().st_size} B, but a payload has at most 10 MB"


def _names(scenario: Scenario) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, group in enumerate(scenario.groups):
        if group.name in seen:
            yield ("groups", index, "name"), f"is {group.name!r} again; give each group a name of its own"
        seen.add(group.name)
