"""What no single field can tell: names that must exist, parts that must fit together, and what a run can hold."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from pydantic import BaseModel

from mqttlab import secrets
from mqttlab.brokers import ADAPTERS
from mqttlab.digits import plain, whole
from mqttlab.mistaken import UserFileError, did_you_mean
from mqttlab.networks import ALSO_CALLED, MODELS, PROFILES, WITHOUT_MODEL
from mqttlab.networks.link import LinkDirection
from mqttlab.quantity import rate_words, shown
from mqttlab.scenario.access import host_counts, is_counted
from mqttlab.scenario.churn_check import churn_problems, unowed_messages
from mqttlab.scenario.client_ids import listed_twice
from mqttlab.scenario.compile import laid_links
from mqttlab.scenario.credentials import credential_problems, is_numbered
from mqttlab.scenario.event_check import event_problems
from mqttlab.scenario.host_slips import host_slips
from mqttlab.scenario.limits_check import limit_problems
from mqttlab.scenario.location import Location, Problem
from mqttlab.scenario.model import Group, Scenario, Server
from mqttlab.scenario.mqtt import MQTT_5, Mqtt
from mqttlab.scenario.mqtt_sn import datagram_room
from mqttlab.scenario.no_local_check import no_local_problems
from mqttlab.scenario.phases import stage_problems
from mqttlab.scenario.publish import PAYLOAD_BYTES_MAX, Publish, file_problem
from mqttlab.scenario.radio_check import radio_problems
from mqttlab.scenario.recording_check import recording_problems
from mqttlab.scenario.replay import ReplayError
from mqttlab.scenario.routes import STAGES_MAX, TRUNK, Crossed, placed
from mqttlab.scenario.template import IDENTITY_BYTES as IDENTITY_TEXT_BYTES
from mqttlab.scenario.template import bounds, parts_of
from mqttlab.scenario.threshold import stages_wrong
from mqttlab.scenario.transport import shows_certificate

# The engine has the same bounds (crates/plan, bounds.rs): recordings number hosts in 16 bits, and each client and each
# topic takes memory before the run starts.
HOSTS_MAX = 65_535
LINKS_MAX = 65_000
CLIENTS_MAX = 1_000_000
TOPICS_MAX = 5_000_000
# Of more problems the first ones are worked out: who mends these starts anew anyway.
PROBLEMS_MAX = 100
# Publisher and sequence in a payload (crates/rows, identity.rs).
IDENTITY_BYTES = 9


def contradictions(scenario: Scenario) -> list[Problem]:
    """What is wrong between the fields of a scenario whose fields are right; of more, the first :data:`PROBLEMS_MAX`
    of each kind."""
    checks = (_servers, _transports, _parts, _programs, _hosts, _networks, _nats, _queues, _groups, listed_twice,
              churn_problems, unowed_messages, no_local_problems, _mqtt_sn, _zeromq, _names, _sizes, recording_problems,
              limit_problems)
    # Of a session that groups share each would say the same.
    found = [*dict.fromkeys(problem for check in checks for problem in islice(check(scenario), PROBLEMS_MAX))]
    found += stages_wrong(scenario.thresholds, [stage.name for stage in scenario.phases.stages])
    found += stage_problems(scenario.phases, detect_transient=scenario.sim.detect_transient,
                            stops=scenario.sim.stop is not None)
    # Only a whole network has round trips. Events are about what is there: where that is wrong, it is mended first.
    found = found or list(islice(_products(scenario), PROBLEMS_MAX))
    return found or list(islice(event_problems(scenario), PROBLEMS_MAX))


def links(scenario: Scenario) -> Iterator[tuple[Location, LinkDirection]]:
    """Every link that the scenario writes out, with its place."""
    for index, network in enumerate(scenario.networks):
        whole = network if (model := network.named) is None else model
        for name in ("up", "down"):
            if getattr(network, name) is not None:
                yield ("networks", index, name), getattr(whole, name)
    if scenario.trunk is not None:
        yield ("trunk", "up"), scenario.trunk.up
        yield ("trunk", "down"), scenario.trunk.down


def _servers(scenario: Scenario) -> Iterator[Problem]:
    names: set[str] = set()
    listening: dict[tuple[str, int], str] = {}
    for place, server in scenario.all_servers:
        yield from _server(scenario, place, server)
        if server.name in names:
            yield (*place, "name"), f"is {shown(server.name)}, which is the name of another server; use another name"
        names.add(server.name)
        ports: list[tuple[Location, int]] = [(("port",), server.port)]
        ports += [(("ports", kind), port) for kind, port in scenario.listeners(server)]
        if server.role == "zeromq":
            ports.append((("zeromq", "subscriber_port"), server.subscriber_port))
        for field, port in ports:
            at = (server.address or server.host, port)
            if at in listening:
                yield (*place, *field), (f"is {port}, but server `{listening[at]}` listens there on the same host "
                                         f"`{server.host}`; use another port, or another host")
            listening.setdefault(at, server.name)
    for index, group in enumerate(scenario.groups):
        if group.connects_to is None and len(names) > 1:
            yield ("groups", index), (f"does not say to which server it connects; add `connects_to`, one of "
                                      f"{', '.join(sorted(names))}")
        if group.connects_to is not None and group.connects_to not in names:
            yield ("groups", index, "connects_to"), (f"is the unknown server {shown(group.connects_to)}; "
                                                     f"{did_you_mean(group.connects_to, names)}")


def _transports(scenario: Scenario) -> Iterator[Problem]:
    """What lies on TCP begins at a client and ends at a broker."""
    for index, group in enumerate(scenario.groups):
        server = scenario.server_of(group)
        if group.layers != "tcp" and server.role != "broker":
            yield ("groups", index, "transport"), (
                f"is \"{group.layers}\", but `{server.name}` is a {server.role}, which passes on MQTT over plain TCP; "
                "connect the group to a broker, or use \"tcp\"")
    yield from _secured(scenario)
    for place, server in scenario.all_servers:
        yield from _trust((*place, "tls"), server)
        if "ports" in server.model_fields_set and server.role != "broker":
            yield (*place, "ports"), f"is only for brokers, but this is a {server.role}; leave it out"


def _secured(scenario: Scenario) -> Iterator[Problem]:
    """Certificates are made for the run, by who starts its brokers; a listener asks all clients for one, or none."""
    firsts: dict[str, Group] = {}
    for index, group in enumerate(scenario.groups):
        place: Location = ("groups", index, "transport", "tls")
        if group.layers not in ("tls", "wss"):
            continue
        server = scenario.server_of(group)
        if server.kind == "external" and scenario.backend == "live":
            if server.tls is None:
                yield place, (f"is set, but `{server.name}` runs elsewhere and has no certificate of this run; name "
                              "the authority that clients trust in its `tls.authority`, or use `transport = \"tcp\"`")
            if shows_certificate(group.transport):
                yield (*place, "client_certificate"), (
                    f"is true, but `{server.name}` runs elsewhere and does not know this run's certificates; use false")
        first = firsts.setdefault(server.name, group)
        shows, wanted = (shows_certificate(one.transport) for one in (group, first))
        if shows != wanted:
            yield (*place, "client_certificate"), (
                f"is {str(shows).lower()}, but group `{first.name}` says the opposite, and `{server.name}` asks all of "
                f"its clients over TLS for a certificate or none; use {str(wanted).lower()}")


def _trust(place: Location, server: Server) -> Iterator[Problem]:
    """Who vouches for a broker that runs elsewhere."""
    if server.tls is None:
        return
    if server.kind != "external" or server.role != "broker":
        yield place, "is only for brokers of `kind = \"external\"`, others have certificates of the run; leave it out"
        return
    try:
        text = server.tls.certificates()
    except UserFileError as error:
        yield (*place, "authority"), f"is {shown(str(server.tls.authority))}, which {error}"
        return
    if "-----BEGIN CERTIFICATE-----" not in text:
        yield (*place, "authority"), (
            f"is {shown(str(server.tls.authority))}, which has no certificate; use a PEM file with the authority's")


def _programs(scenario: Scenario) -> Iterator[Problem]:
    """Clients that are programs are real ones, and are observed by recorded frames."""
    brokers = [server.name for _, server in scenario.all_servers if server.role == "broker"]
    for index, group in enumerate(scenario.groups):
        if group.client is None:
            continue
        place: Location = ("groups", index, "client")
        if scenario.backend == "sim":
            yield place, ("is a program, which cannot be simulated; use `backend = \"live\"`, or let the simulator's "
                          "clients do the same by `publish` and `subscribe`")
        elif scenario.network != "emulated":
            yield place, (f"is a program, which is observed by the emulator's frames, and `network` is "
                          f"\"{scenario.network}\"; use \"emulated\" and `networks`")
        elif not scenario.recording.packets:
            yield place, "is a program, which is observed by recorded frames; use `recording.detail = \"full\"`"
        elif len(brokers) > 1:
            yield place, (f"is a program, which is observed by the topics of its messages; with several brokers "
                          f"({', '.join(brokers)}) they cannot be told apart: use one broker")


def _server(scenario: Scenario, place: Location, server: Server) -> Iterator[Problem]:
    if server.kind not in ADAPTERS:
        yield (*place, "kind"), (f"is an unknown {server.role} {shown(server.kind)}; "
                                   f"{did_you_mean(server.kind, ADAPTERS)}")
    if server.kind == "mqttlab" and server.role not in ("gateway", "zeromq"):
        yield (*place, "kind"), (f"is \"mqttlab\", our MQTT-SN gateway or proxy of ZeroMQ, but the server is a "
                                 f"{server.role}; use `role = \"gateway\"` or `\"zeromq\"` in [[servers]], or "
                                 "another kind")
    if server.role == "gateway":
        yield from _gateway(scenario, place, server)
    yield from _passes_to(scenario, place, server)
    if server.kind == "external":
        if server.address is None:
            yield (*place, "address"), (f"is missing; an external {server.role} needs an address, such as "
                                        "\"192.0.2.1\"")
        else:
            try:
                ipaddress.ip_address(server.address)
            except ValueError:
                yield (*place, "address"), (
                    f"is {shown(server.address)}, but must be an IP address, such as \"192.0.2.1\"")
        if scenario.network != "external":
            yield ("network",), (f"is \"{scenario.network}\", but must be \"external\" with an external {server.role}: "
                                 "its network is not emulated")
        if scenario.backend == "sim":
            yield ("backend",), f"is \"sim\", but an external {server.role} cannot be simulated; use \"live\""
    elif server.address is not None:
        yield (*place, "address"), "is only for `kind = \"external\"`; leave it out"
    elif scenario.network == "external":
        where = "[broker]" if place == ("broker",) else f"[[servers]] `{server.name}`"
        yield ("network",), f"is \"external\", which needs `kind = \"external\"` and an address in {where}"


def _parts(scenario: Scenario) -> Iterator[Problem]:
    """Engines that share a run share a broker, and nothing else."""
    parts = scenario.live.parts
    if parts == 1 or scenario.backend == "sim":
        return
    place = ("live", "parts")
    if scenario.network != "external":
        yield place, (f"is {parts}, but `network` is \"{scenario.network}\", which one machine has for itself; use "
                      "`network = \"external\"` with a broker that all parts reach, or 1")
    for group in scenario.groups:
        if group.client is not None:
            yield place, f"is {parts}, but the clients of `{group.name}` are programs, which are not shared out; use 1"
        sizes = [publish.payload.size for _, publish in group.publications if publish.payload.size is not None]
        size = min(sizes, default=IDENTITY_BYTES)
        if size < IDENTITY_BYTES:
            yield place, (f"is {parts}, but the payloads of `{group.name}` have {size} B, and what tells messages of "
                          f"several parts apart needs {IDENTITY_BYTES} B; use a larger payload, or 1")


def _passes_to(scenario: Scenario, place: Location, server: Server) -> Iterator[Problem]:
    """A proxy passes on to another server, and a simulated one says to which."""
    if server.passes_to is None:
        if server.role == "proxy" and scenario.backend == "sim":
            yield (*place, "passes_to"), "is missing; a simulated proxy must know the server behind it"
        return
    by_name = {other.name: other for _, other in scenario.all_servers}
    if server.passes_to not in by_name:
        yield (*place, "passes_to"), (f"is the unknown server {shown(server.passes_to)}; "
                                      f"{did_you_mean(server.passes_to, set(by_name) - {server.name})}")
        return
    passed, last = [server.name], by_name[server.passes_to]
    while last.name not in passed and last.passes_to in by_name:
        passed.append(last.name)
        last = by_name[last.passes_to]
    if last.name in passed:
        yield (*place, "passes_to"), f"leads in a circle: {', '.join([*passed, last.name])}; end it at a broker"


def _gateway(scenario: Scenario, place: Location, server: Server) -> Iterator[Problem]:
    brokers = [other.name for _, other in scenario.all_servers if other.role == "broker"]
    if not brokers:
        yield (*place, "role"), "is \"gateway\", but there is no broker behind it; add [broker], or one to [[servers]]"
    elif server.gateway.broker is not None and server.gateway.broker not in brokers:
        yield (*place, "gateway", "broker"), (f"is the unknown broker {shown(server.gateway.broker)}; "
                                              f"{did_you_mean(server.gateway.broker, brokers)}")
    elif server.gateway.broker is None and len(brokers) > 1:
        yield (*place, "gateway"), ("does not say which broker it connects to; add `broker`, one of "
                                    f"{', '.join(brokers)}")
    yield from _predefined((*place, "gateway", "predefined_topics"), server.gateway.predefined_topics)


def _predefined(place: Location, topics: dict[str, int]) -> Iterator[Problem]:
    named: dict[int, str] = {}
    for name, number in topics.items():
        if not name or any(letter in name for letter in "+#\0"):
            yield place, f"names {shown(name)}, which is not a topic; leave out `+`, `#` and NUL"
        if number in named:
            yield place, f"gives {number} to {shown(name)} and to {shown(named[number])}; each topic needs its own"
        named.setdefault(number, name)


def _mqtt_sn(scenario: Scenario) -> Iterator[Problem]:
    gateways = [other.name for _, other in scenario.all_servers if other.role == "gateway"]
    for index, group in enumerate(scenario.groups):
        server, place = scenario.server_of(group), ("groups", index)
        if group.protocol == "mqtt" and server.role == "gateway":
            yield (*place, "connects_to"), (f"is the gateway `{server.name}`, but the group speaks MQTT; connect it to "
                                            "the broker, or use `protocol = \"mqtt-sn\"`")
        if group.protocol == "mqtt-sn" and server.role != "gateway":
            none = "and add one: [[servers]] with `role = \"gateway\"`"
            known = f"one of {', '.join(gateways)}" if gateways else none
            yield (*place, "connects_to"), (f"is the {server.role} `{server.name}`, but MQTT-SN clients connect to a "
                                            f"gateway; use {known}")
        if group.protocol == "mqtt-sn":
            for field, problem in _sn_session(scenario, group):
                yield (*place, *field), problem


def _zeromq(scenario: Scenario) -> Iterator[Problem]:
    """A socket of ZeroMQ publishes or subscribes, and knows neither acknowledgements nor wild cards."""
    proxies = [server.name for _, server in scenario.all_servers if server.role == "zeromq"]
    for index, group in enumerate(scenario.groups):
        server, place = scenario.server_of(group), ("groups", index)
        if group.protocol != "zeromq" and server.role == "zeromq":
            yield (*place, "connects_to"), (f"is the proxy of ZeroMQ `{server.name}`, but the group speaks MQTT; "
                                            "connect it to a broker, or use `protocol = \"zeromq\"`")
        if group.protocol != "zeromq":
            continue
        if server.role != "zeromq":
            known = f"one of {', '.join(proxies)}" if proxies else "and add one: [[servers]] with `role = \"zeromq\"`"
            yield (*place, "connects_to"), (f"is the {server.role} `{server.name}`, but ZeroMQ clients connect to a "
                                            f"proxy of ZeroMQ; use {known}")
        if group.publications and group.subscribe:
            yield place, ("publishes and subscribes, but a socket of ZeroMQ does one of these; make it two groups")
        for field, problem in _zeromq_messages(group):
            yield (*place, *field), problem


def _zeromq_messages(group: Group) -> Iterator[tuple[Location, str]]:
    place: Location
    for place, publish in group.publications:
        if publish.qos > 0:
            yield (*place, "qos"), f"is {publish.qos}, but ZeroMQ acknowledges nothing; leave it out, or use MQTT"
        if publish.retain:
            yield (*place, "retain"), "is true, but a proxy of ZeroMQ keeps nothing; leave it out, or use MQTT"
    for number, subscription in enumerate(group.subscribe):
        place = ("subscribe", number)
        if subscription.qos > 0:
            yield (*place, "qos"), f"is {subscription.qos}, but ZeroMQ acknowledges nothing; leave it out, or use MQTT"
        if "+" in subscription.filter or subscription.filter.startswith("$share/"):
            before = subscription.filter.removeprefix("$share/").split("+")[0]
            yield (*place, "filter"), (f"is {shown(subscription.filter)}, but a subscription of ZeroMQ is a prefix: no "
                                       f"`+`, no `$share`, and `#` only at the end; use {shown(before + '#')}, or MQTT")


def _sn_session(scenario: Scenario, group: Group) -> Iterator[tuple[Location, str]]:
    session = group.mqtt_sn
    yield from _predefined(("mqtt_sn", "predefined_topics"), session.predefined_topics)
    if group.count > 1 and not is_numbered(session.client_id):
        yield ("mqtt_sn", "client_id"), (f"is {shown(session.client_id)} for {group.count} clients, which would take "
                                         "over each other's sessions; add {client}")
    if session.without_connection:
        if group.subscribe:
            yield ("mqtt_sn", "without_connection"), ("is true, but only connected clients can subscribe; leave "
                                                      "`subscribe` out, or connect")
        for place, publish in group.publications:
            if publish.qos != 0:
                yield (*place, "qos"), f"is {publish.qos}, but must be 0 with `without_connection`: it becomes QoS -1"
            short = session.short_topics and len(publish.topic.encode()) == 2
            if not short and "{" not in publish.topic and publish.topic not in session.predefined_topics:
                yield (*place, "topic"), (f"is {shown(publish.topic)}, which would have to be registered over a "
                                          "connection; add it to `mqtt_sn.predefined_topics`, or use a topic of two "
                                          "octets")
    yield from _sn_room(scenario, group)


def _sn_room(scenario: Scenario, group: Group) -> Iterator[tuple[Location, str]]:
    """What a datagram has no room for."""
    room = datagram_room(scenario.mtu)
    for place, publish in group.publications:
        size = _most_bytes(group, publish)
        if size is not None and size > room:
            yield (*place, "payload"), (f"has {size} B, but a datagram of {scenario.mtu} B (`mtu`) has room for "
                                        f"{room} B, and MQTT-SN does not fragment; use a smaller payload, or MQTT")
    names: list[tuple[Location, str]] = [
        (("subscribe", number, "filter"), subscription.filter) for number, subscription in enumerate(group.subscribe)]
    names += [((*place, "topic"), publish.topic) for place, publish in group.publications]
    for place, name in names:
        # Placeholders become numbers of a few digits; who is that close is told by the engine.
        if len(name.encode()) > room:
            yield place, (f"has {len(name.encode())} B, but a datagram of {scenario.mtu} B (`mtu`) has room for a "
                          f"topic of {room} B, and MQTT-SN does not fragment; use a shorter one")


def _hosts(scenario: Scenario) -> Iterator[Problem]:
    servers, first = _server_hosts(scenario), {group.host: group.name for group in reversed(scenario.groups)}
    used = {*servers, *first}
    used |= {name for network in scenario.networks for name in network.between}
    for name, host in scenario.hosts.items():
        if name not in used and host.forwards:
            yield ("hosts", name), "is not used; name it in `between` of [[networks]], or leave it out"
        elif name not in used:
            yield ("hosts", name), f"is not used; {did_you_mean(name, used)}"
        profile = PROFILES.get(host.tcp.profile)
        if profile is None:
            problem = f"is an unknown TCP profile {shown(host.tcp.profile)}; {did_you_mean(host.tcp.profile, PROFILES)}"
            yield ("hosts", name, "tcp", "profile"), problem
            continue
        least, most = host.tcp.rto_min or profile.rto_min_ns, host.tcp.rto_max or profile.rto_max_ns
        if least > most:
            yield ("hosts", name, "tcp"), (f"has a minimum retransmission timeout of {plain(least / 1e9)} s, but a "
                                           "maximum "
                                           f"of {plain(most / 1e9)} s; raise `rto_max`, or lower `rto_min`")
        control = host.tcp.congestion_control or profile.congestion_control
        if scenario.backend == "sim" and control == "bbr":
            yield ("hosts", name, "tcp"), "uses bbr, which only live runs have; use cubic or reno"
        if host.forwards:
            yield from _forwards(scenario, name, first.get(name), name in servers)
    for _, server in scenario.all_servers:
        if server.host in scenario.hosts and scenario.hosts[server.host].count > 1:
            count = scenario.hosts[server.host].count
            yield ("hosts", server.host, "count"), f"is {count}, but must be 1: the {server.role} runs on one host"


def _forwards(scenario: Scenario, name: str, clients: str | None, has_server: bool) -> Iterator[Problem]:
    place: Location = ("hosts", name, "forwards")
    if has_server or clients is not None:
        runs = "the broker" if clients is None else f"the clients of group `{clients}`"
        yield place, f"is true, but {runs} cannot run on a router or switch; use another host"
    if scenario.hosts[name].count > 1:
        yield ("hosts", name, "count"), f"is {scenario.hosts[name].count}, but must be 1 for a host that forwards"


def _networks(scenario: Scenario) -> Iterator[Problem]:
    servers = _server_hosts(scenario)
    if scenario.network != "emulated" and scenario.networks:
        yield ("networks",), f"cannot be used with `network = \"{scenario.network}\"`; leave one of them out"
    if scenario.network != "emulated" and scenario.trunk is not None:
        yield ("trunk",), f"cannot be used with `network = \"{scenario.network}\"`; leave one of them out"
    forwarding = {name for name, host in scenario.hosts.items() if host.forwards}
    joined: set[frozenset[str]] = set()
    slips = host_slips(scenario)
    clients = Counter[str]()
    for group in scenario.groups:
        clients[group.host] += group.count
    for index, network in enumerate(scenario.networks):
        if network.model is not None and network.model not in MODELS:
            called = network.model.lower()
            instead = WITHOUT_MODEL.get(called) or did_you_mean(ALSO_CALLED.get(called, network.model), MODELS)
            problem = f"is an unknown network model {shown(network.model)}; {instead}"
            yield ("networks", index, "model"), problem
        if index in slips:
            yield ("networks", index, "between"), slips[index].words
            continue
        if not servers & set(network.between) and not forwarding & set(network.between):
            which = "the broker's host" if len(servers) == 1 else "the host of a server, such as"
            yield ("networks", index, "between"), (
                f"is {shown(list(network.between))}, but must contain {which} `{min(servers)}`, which all traffic "
                f"passes, or a host with `forwards = true`")
        if network.link == "each":
            yield from _links_each(scenario, index, set(network.between) - servers, clients)
        pair = frozenset(network.between)
        if pair in joined:
            yield ("networks", index, "between"), f"joins {' and '.join(sorted(pair))} again; keep one of the two"
        joined.add(pair)
    names = Counter(network.name for network in scenario.networks if network.name is not None)
    for index, network in enumerate(scenario.networks):
        if network.name is not None and names[network.name] > 1:
            yield ("networks", index, "name"), f"is {shown(network.name)}, as another network's; use another name"
    if scenario.radio is not None:
        yield from radio_problems(scenario, scenario.radio, _host_count(scenario))
    elif scenario.network == "emulated":
        ways = {server: Crossed(scenario, server).length for server in servers}
        by_name = {server.name: server for _, server in scenario.all_servers}
        everything = {name for pair in joined for name in pair}
        for place, server in scenario.all_servers:
            behind = scenario.behind(server)
            if behind is not None and server.host not in ways[there := by_name[behind].host]:
                yield (*place, "host"), (
                    f"is `{server.host}`, but no network joins it to `{there}`, the host of `{behind}`, which stands "
                    f"behind it; add [[networks]] with between = [\"{server.host}\", \"{there}\"]")
        for index, group in enumerate(scenario.groups):
            broker = scenario.server_of(group).host
            away = ways[broker]
            if (length := away.get(group.host, 0)) > STAGES_MAX:
                yield ("groups", index, "host"), (
                    f"is `{group.host}`, which is {length} networks away from the broker's host, but at most "
                    f"{STAGES_MAX} are possible; leave some out")
            if group.host not in away and not any(slip.host in (group.host, broker) for slip in slips.values()):
                others = (everything | {broker}) - {group.host}
                yield ("groups", index, "host"), (
                    f"is `{group.host}`, but no network joins it to the broker's host `{broker}`; add [[networks]] "
                    f"with between = [\"{group.host}\", \"{broker}\"]; {did_you_mean(group.host, others)}")


def _links_each(scenario: Scenario, index: int, names: set[str], clients: Counter[str]) -> Iterator[Problem]:
    """Links for each client need clients, each on a host of its own."""
    if not any(clients[name] for name in names):
        yield ("networks", index, "link"), ("is \"each\", but no group runs on its hosts; use \"shared\", and "
                                            "\"each\" in the networks of the groups' hosts")
    for name in sorted(names):
        count = clients[name]
        if count > 1 and is_counted(scenario, name) and scenario.hosts[name].count == 1:
            yield ("hosts", name, "count"), (f"is 1, but its {count} clients are to have links of their own "
                                             f"(`networks[{index}].link`); leave it out")


def _nats(scenario: Scenario) -> Iterator[Problem]:
    """A translator stands between two links, and knows connections of TCP."""
    for index, network in enumerate(scenario.networks):
        if network.nat is None:
            continue
        links_ = placed(network, upwards=True)
        if links_.up is None or links_.down is None or links_.shared:
            yield ("networks", index, "nat"), (
                "needs a link in each direction, which it stands between: add `up = {}` and `down = {}`, or "
                "`placement = \"both\"` to a model")
        for group in scenario.groups:
            if group.protocol == "mqtt-sn" and group.host in network.between:
                yield ("networks", index, "nat"), (
                    f"forgets connections of TCP, but `{group.name}` speaks MQTT-SN, whose datagrams get another port "
                    "from a real one; leave it out")


def _queues(scenario: Scenario) -> Iterator[Problem]:
    for place, link in links(scenario):
        if link.policer is not None and link.policer.burst < (largest := link.largest_frame(scenario.mtu)):
            yield (*place, "policer", "burst"), (f"is {link.policer.burst} B, but must be {largest} B or more: a "
                                                 f"smaller burst drops every packet of {scenario.mtu} B (`mtu`)")
        if link.queue.by_rate and link.rate is None:
            yield (*place, "queue"), (f"is {link.queue.words()}, which needs a `rate`; add one, or write the queue as "
                                      "\"1000 packets\" or \"64 kB\"")
        elif link.discipline.kind != "tail-drop" and link.rate is None:
            yield (*place, "discipline"), (f"is \"{link.discipline.kind}\", which needs a `rate`: without one no frame "
                                           "ever waits; add one, or leave it out")
        elif link.queue.bdp is None:
            yield from _too_short(scenario, link, (*place, "queue"), 0)


def _products(scenario: Scenario) -> Iterator[Problem]:
    """Queues in bandwidth-delay products have room for a packet."""
    if not any(link.queue.bdp is not None for _, link in links(scenario)):
        return
    for number, ways in laid_links(scenario).items():
        place: Location = ("trunk",) if number == TRUNK else ("networks", number)
        for way, one in ways.items():
            if one.link.queue.bdp is not None:
                yield from _too_short(scenario, one.link, (*place, "down" if way == "both" else way, "queue"),
                                      one.round_trip_ns)


def _too_short(scenario: Scenario, link: LinkDirection, place: Location, round_trip_ns: int) -> Iterator[Problem]:
    largest = link.largest_frame(scenario.mtu)
    limit = link.queue.limit_bytes(link.rate, round_trip_ns)
    if limit is None or limit >= largest:
        return
    comes_to = ""
    if link.queue.by_rate and link.rate is not None:
        trip = f" and a round trip of {plain(round_trip_ns / 1e6)} ms" if link.queue.bdp is not None else ""
        comes_to = f", which is {limit} B at {rate_words(link.rate)}{trip}"
    yield place, (f"is {link.queue.words()}{comes_to}, but must be {largest} B or more: a shorter queue drops every "
                  f"packet of {scenario.mtu} B (`mtu`)")


def _groups(scenario: Scenario) -> Iterator[Problem]:
    for index, group in enumerate(scenario.groups):
        mqtt = group.mqtt or scenario.mqtt
        place: Location = ("mqtt",) if group.mqtt is None else ("groups", index, "mqtt")
        if group.protocol == "mqtt":
            for field, problem in _session(mqtt, group):
                yield (*place, field), problem
        for where, publish in group.publications:
            for field, problem in _only_in_5(publish, mqtt, group):
                yield ("groups", index, *where, field), problem
        for number, subscription in enumerate(group.subscribe):
            for field, problem in _only_in_5(subscription, mqtt, group):
                yield ("groups", index, "subscribe", number, field), problem
        yield from _payload_file(index, group)
        yield from _payload_template(index, group)
        yield from _replayed(index, group)


def _session(mqtt: Mqtt, group: Group) -> Iterator[tuple[str, str]]:
    """What is wrong with a group's protocol and session, by field."""
    for field in ("client_id", "username", "password"):
        text = getattr(mqtt, field)
        text = None if text is None else secrets.value_of(text) or text
        if text is not None and "\0" in text:
            yield field, "has the character NUL, which MQTT does not allow"
        if text is not None and len(text.encode("utf-8", "surrogatepass")) > 65_000:
            yield field, f"has {len(text.encode('utf-8', 'surrogatepass'))} B, but may have at most 65000 B"
    yield from credential_problems(mqtt, group.name, group.count)
    yield from _only_in_5(mqtt, mqtt, group)


def _only_in_5(part: BaseModel, mqtt: Mqtt, group: Group) -> Iterator[tuple[str, str]]:
    """The fields that only MQTT 5 can say, where the group does not speak it."""
    if group.protocol == "mqtt" and mqtt.version == "5":
        return
    words, remedy = {"mqtt-sn": ("MQTT-SN", "leave it out"), "zeromq": ("ZeroMQ", "leave it out")}.get(
        group.protocol, (f"MQTT {mqtt.version}", "leave it out, or use version \"5\""))
    for name, field in type(part).model_fields.items():
        if field.json_schema_extra == MQTT_5 and getattr(part, name) is not None:
            yield name, f"is set, but {words} cannot say it; {remedy}"


def _payload_file(index: int, group: Group) -> Iterator[Problem]:
    for where, publish in group.publications:
        problem = file_problem(publish.payload.path)
        if problem is not None:
            yield ("groups", index, *where, "payload", "path"), problem


def _replayed(index: int, group: Group) -> Iterator[Problem]:
    for where, publish in group.publications:
        if publish.replay is None:
            continue
        place, file = ("groups", index, *where, "replay"), shown(str(publish.replay.file))
        try:
            table = publish.replay.table
        except ReplayError as error:
            yield place, f"is {file}, which {error}" if not str(error).startswith("line ") else f"is {file}: {error}"
            continue
        if group.protocol != "mqtt":
            yield place, f"is {file}, but `{group.name}` speaks {group.protocol}; tables are replayed by MQTT alone"
        if len(group.publications) > 1:
            yield place, (f"is {file}, beside another publication of `{group.name}`; use a group of its own: a table "
                          "is all that a client publishes")
        names = table.names(group.count)
        if len(names) > group.count:
            yield place, (f"is {file}, which has {len(names)} clients, but `{group.name}` has `count = {group.count}`; "
                          f"use `count = {len(names)}`")
        if publish.replay.loop and table.span_ns == 0:
            yield (*place, "loop"), "is true, but all messages of the table have one time; leave it out"
        topics = len(publish.topic_patterns) * group.count
        if topics > TOPICS_MAX:
            yield place, (f"is {file}, which has {len(publish.topic_patterns)} topics: with {group.count} clients "
                          f"{topics} pairs of both, but there may be at most {TOPICS_MAX}; use several groups")


def _payload_template(index: int, group: Group) -> Iterator[Problem]:
    for where, publish in group.publications:
        text, place = publish.payload.text, ("groups", index, *where, "payload")
        if text is None:
            continue
        (template, size), last = text, group.count - 1
        most = bounds(parts_of(template, group.name), last)[1]
        if size is not None and most > size:
            yield (*place, "size"), (
                f"is {size} B, but the text has up to {most} B with its placeholders filled in, of which "
                f"{IDENTITY_TEXT_BYTES} B are the message's identity; use {most} B or more")
        elif most > PAYLOAD_BYTES_MAX:
            yield (*place, "template"), (f"has up to {most} B with its placeholders filled in, but a payload may have "
                                         f"at most {PAYLOAD_BYTES_MAX} B (10 MB)")


def _most_bytes(group: Group, publish: Publish) -> int | None:
    """The greatest size of a message, where the scenario says it."""
    text = publish.payload.text
    if text is None:
        return publish.payload.usual_bytes
    return max(text[1] or 0, bounds(parts_of(text[0], group.name), group.count - 1)[1])


def _names(scenario: Scenario) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, group in enumerate(scenario.groups):
        if group.name in seen:
            yield ("groups", index, "name"), (
                f"is {shown(group.name)}, which is the name of another group; use another name")
        seen.add(group.name)
    counts = host_counts(scenario)
    for name in scenario.hosts:
        stem, _, number = name.rpartition("-")
        other = scenario.hosts.get(stem)
        if other is not None and (place := whole(number)) is not None and place < counts[stem] and counts[name] == 1:
            yield ("hosts", name), f"is also the name of one of the {counts[stem]} hosts `{stem}`; use another name"


def _sizes(scenario: Scenario) -> Iterator[Problem]:
    hosts = _host_count(scenario)
    if hosts > HOSTS_MAX:
        most = Counter(host_counts(scenario)).most_common(1)
        place: Location = ("hosts", most[0][0], "count") if most and is_counted(scenario, most[0][0]) else ("networks",)
        fewer = "" if place == ("networks",) else f"; use {max(1, most[0][1] - hosts + HOSTS_MAX)} or fewer"
        yield place, f"makes {hosts} hosts in all, but a run has at most {HOSTS_MAX}{fewer}"
    counts = host_counts(scenario)
    links_ = sum(2 * (max(counts.get(name, 1) for name in network.between) if network.link == "each" else 1)
                 for network in scenario.networks)
    if links_ > LINKS_MAX:
        yield ("networks",), (f"have {links_} links in all, but a run has at most {LINKS_MAX}; use fewer hosts, or "
                              "`link = \"shared\"`")
    clients = sum(group.count for group in scenario.groups)
    if clients > CLIENTS_MAX:
        yield ("groups",), f"have {clients} clients in all, but a run has at most {CLIENTS_MAX}"
    topics = sum(group.count * publish.topics for group in scenario.groups for _, publish in group.publications)
    if topics > TOPICS_MAX:
        yield ("groups",), (f"publish to {topics} topics in all (clients × `topics`), but a run has at most "
                            f"{TOPICS_MAX}")


def _server_hosts(scenario: Scenario) -> set[str]:
    return {server.host for _, server in scenario.all_servers}


def _host_count(scenario: Scenario) -> int:
    names = {*_server_hosts(scenario), *(group.host for group in scenario.groups)}
    counts = host_counts(scenario)
    return sum(counts.get(name, 1) for name in names)
