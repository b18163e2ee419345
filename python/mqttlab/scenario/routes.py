"""What lies between the hosts of a plan: links, radio channels, and which of them each frame crosses.

Networks join hosts two by two. Frames cross hosts that forward (``forwards = true``: routers, switches) on their way,
over as few networks as possible; of ways of the same length, the first in the file. A ``trunk`` is one such switch: it
stands in front of the broker's host, and the networks that lead there lead to it instead. A host that forwards has no
TCP, no clients and no server: nothing of it is in the plan but its links.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mqttlab.networks import place
from mqttlab.networks.link import LinkDirection
from mqttlab.networks.placement import Placed
from mqttlab.networks.trace import Trace
from mqttlab.scenario.model import NetworkBetween, Scenario

KIND_OF_NETWORK = {"emulated": "emulated", "direct": "veth", "loopback": "loopback", "external": "external"}
# The engine's paths have as many stages at most.
STAGES_MAX = 16
# No host has a name with a blank.
SWITCH = "switch of the trunk"
# The number of the first network on the way from each node; none from where the way leads to.
Way = dict[str, int | None]


class Hosts(Protocol):
    """The plan's hosts: the number of each name's first one, and all of them in order."""

    first: dict[str, int]
    entries: list[tuple[str, str]]

    def members(self, name: str) -> range:
        """The numbers of the hosts of a name."""

    def label(self, index: int) -> str:
        """What a host is called."""


@dataclass
class _Joint:
    """Two nodes and the links between them, for each host of the far end, or one for all."""

    far: str
    near: str
    flipped: bool = False
    up: list[list[int]] = field(default_factory=list)
    down: list[list[int]] = field(default_factory=list)

    def crossed_from(self, name: str, member: int) -> list[int]:
        """The links from one of the ends to the other; ``member`` counts the hosts of the far end."""
        links = self.up if name == self.far else self.down
        return links[member if len(links) > 1 else 0]


@dataclass(frozen=True)
class Laid:
    """The links that one direction of a scenario's network has become."""

    link: LinkDirection
    names: tuple[str, ...]
    """In the plan; one for each client where each has links of its own."""
    round_trip_ns: int = 0
    """The delays of a path over it and back; of several paths, the most. 0 where no queue depends on it."""


TRUNK = -1
"""The trunk, among the numbers of the scenario's networks."""
LaidLinks = dict[int, dict[str, Laid]]
"""By a network's number, and by its direction: ``up``, ``down``, or ``both`` where these share one transmitter."""


def network(scenario: Scenario, hosts: Hosts, servers: Sequence[str]) -> tuple[dict[str, Any], LaidLinks]:
    """The plan's network, with paths between each of these servers' hosts and every other host; and which of its links
    are whose."""
    laid: LaidLinks = {}
    links: list[dict[str, Any]] = []
    media: list[dict[str, Any]] = []
    nats: list[dict[str, Any]] = []
    described: list[str] = []
    joints = _joints(scenario, servers[0])
    ways = {server: _towards(server, joints, _forwarding(scenario)) for server in dict.fromkeys(servers)}
    used = _used(hosts, joints, ways)
    paths: list[dict[str, Any]] = []
    if scenario.trunk is not None:
        trunk = Placed(scenario.trunk.up, scenario.trunk.down)
        _lay(joints[0], ["trunk"], trunk, links, scenario.mtu)
        laid[TRUNK] = _laid(joints[0], trunk, links, flipped=False)
    if scenario.radio is not None:
        media.append(scenario.radio.plan(len(hosts.entries)))
        described.append(f"802.11 ({scenario.radio.standard})")
        paths += _radio_paths(hosts, ways, joints[0] if scenario.trunk is not None else None)
    networks_of = Counter(joints[number].far for number in used)
    before = len(joints) - len(scenario.networks)
    for number, between in enumerate(scenario.networks, before):
        if number not in used:
            continue
        joint = joints[number]
        described.append(_described(between))
        members = [hosts.label(member) for member in hosts.members(joint.far)] if joint.far in hosts.first else []
        # Names are what random streams are derived from: two networks of one host need two.
        other = "" if networks_of[joint.far] == 1 else "-" + joint.near.replace(SWITCH, scenario.broker.host)
        labels = members if members and between.link == "each" else [joint.far]
        made = placed(between, upwards=not joint.flipped)
        _lay(joint, [label + other for label in labels], made, links, scenario.mtu)
        # A model's directions are towards the server and away from it, whichever host is named first.
        if between.nat is not None:
            outward, inward = ([links[one]["name"] for ones in way for one in ones] for way in (joint.up, joint.down))
            nats.append({"outward": outward, "inward": inward, "timeout_ns": between.nat.timeout,
                         "forgotten": between.nat.forgotten})
        laid[number - before] = _laid(joint, made, links, flipped=joint.flipped and between.model is None)
    paths += [path for name in dict.fromkeys(joint.far for joint in joints if joint.far in hosts.first)
              for path in _paths_of(name, hosts, joints, ways)]
    if _asks_for_round_trips(scenario, laid):
        trips = round_trips(links, paths)
        laid = {number: {way: replace(one, round_trip_ns=trips[one.names[0]]) for way, one in found.items()}
                for number, found in laid.items()}
        _measure_queues(laid, links, scenario.mtu)
    return {
        "kind": KIND_OF_NETWORK[scenario.network],
        "description": "; ".join(described) or scenario.network,
        "mtu_bytes": scenario.mtu,
        "links": links,
        "media": media,
        "paths": paths,
        "nats": nats,
    }, laid


def _laid(joint: _Joint, ways: Placed, links: list[dict[str, Any]], *, flipped: bool) -> dict[str, Laid]:
    """A network's links by their directions in the scenario."""
    up, down = (tuple(links[number]["name"] for numbers in way for number in numbers) for way in (joint.up, joint.down))
    if ways.shared and ways.down is not None:
        return {"both": Laid(ways.down, up)}
    found = {"up": (ways.up, up), "down": (ways.down, down)}
    if flipped:
        found = {"up": found["down"], "down": found["up"]}
    return {name: Laid(link, names) for name, (link, names) in found.items() if link is not None}


def _asks_for_round_trips(scenario: Scenario, laid: LaidLinks) -> bool:
    """Whether a queue is as long as bandwidth-delay products are. Large networks have many paths."""
    queues = [one.link.queue for found in laid.values() for one in found.values()]
    queues += [event.queue for event in scenario.events if event.queue is not None]
    return any(queue.bdp is not None for queue in queues)


def round_trips(links: Sequence[dict[str, Any]], paths: Sequence[dict[str, Any]]) -> dict[str, int]:
    """For each link the delays (ns) of a path over it and of the way back; of several paths, the most. Radio channels
    have no delay of their own."""
    crossed = {(path["from"], path["to"]): [hop["link"] for hop in path["hops"] if "link" in hop] for path in paths}
    takes = {ends: sum(links[number]["delay"]["mean_ns"] for number in hops) for ends, hops in crossed.items()}
    longest = [0] * len(links)
    for (start, end), hops in crossed.items():
        trip = takes[start, end] + takes.get((end, start), 0)
        for number in hops:
            longest[number] = max(longest[number], trip)
    return {link["name"]: trip for link, trip in zip(links, longest, strict=True)}


def _measure_queues(laid: LaidLinks, links: list[dict[str, Any]], mtu: int) -> None:
    """Give queues in bandwidth-delay products their bytes: only a path has a round trip."""
    planned = {link["name"]: link for link in links}
    for found in laid.values():
        for one in found.values():
            if one.link.queue.bdp is not None:
                for name in one.names:
                    planned[name].update(one.link.plan(name, mtu, one.round_trip_ns))


def planned_traces(laid: LaidLinks, before_ns: int) -> list[dict[str, Any]]:
    """What the plan's links follow; its place 0 is so long after publishing begins. Links of one trace follow one."""
    following: dict[tuple[Trace, str], list[str]] = {}
    for ways in laid.values():
        for one in ways.values():
            if one.link.trace is not None:
                following.setdefault((one.link.trace, one.link.trace_end or "loop"), []).extend(one.names)
    return [trace.plan(names, before_ns, end) for (trace, end), names in following.items()]


class Crossed:
    """The networks on the way from each host to a server's."""

    def __init__(self, scenario: Scenario, server: str) -> None:
        self._server = server
        self._joints = _joints(scenario, server)
        self._way = _towards(server, self._joints, _forwarding(scenario))
        before = len(self._joints) - len(scenario.networks)
        self._number = {id(joint): place - before if place >= before else None
                        for place, joint in enumerate(self._joints)}
        self.length = _lengths(self._joints, self._way)
        """How many networks a host is away; hosts without a way are left out."""

    def of(self, host: str) -> list[tuple[int | None, bool]]:
        """Their numbers, none for the trunk, and whether the way leaves them by their second host."""
        if host not in self._way:
            return []
        return [(self._number[id(joint)], (node == joint.far) != joint.flipped)
                for node, joint in _steps(host, self._server, self._joints, self._way)]


def _forwarding(scenario: Scenario) -> set[str]:
    return {SWITCH, *(name for name, host in scenario.hosts.items() if host.forwards)}


def _joints(scenario: Scenario, server: str) -> list[_Joint]:
    """The trunk, if there is one, and all networks, each with the end first that is farther from the server."""
    ends = [network.between for network in scenario.networks]
    if scenario.trunk is not None:
        first = scenario.all_servers[0][1].host
        behind = {first: SWITCH}
        ends = [(SWITCH, first), *((behind.get(a, a), behind.get(b, b)) for a, b in ends)]
    joints = [_Joint(*pair) for pair in ends]
    way = _towards(server, joints, _forwarding(scenario))
    depth = _lengths(joints, way)
    for joint in joints:
        # The trunk's directions are the scenario's.
        if joint.far != SWITCH and depth.get(joint.far, len(joints)) < depth.get(joint.near, len(joints)):
            joint.far, joint.near, joint.flipped = joint.near, joint.far, True
    return joints


def _towards(server: str, joints: list[_Joint], forwarding: set[str]) -> Way:
    """For each node with a way to the server: the number of the first network on it."""
    joined = defaultdict(list)
    for number, joint in enumerate(joints):
        joined[joint.far].append((number, joint.near))
        joined[joint.near].append((number, joint.far))
    found: Way = {server: None}
    queue = deque([server])
    while queue:
        name = queue.popleft()
        if name != server and name not in forwarding:
            continue
        for number, other in joined[name]:
            if other not in found:
                found[other] = number
                queue.append(other)
    return found


def _lengths(joints: list[_Joint], way: Way) -> dict[str, int]:
    """How many networks each node is away; the way was found from the nearest to the farthest."""
    lengths: dict[str, int] = {}
    for name, number in way.items():
        joint = None if number is None else joints[number]
        lengths[name] = 0 if joint is None else 1 + lengths[joint.near if name == joint.far else joint.far]
    return lengths


def _steps(name: str, server: str, joints: list[_Joint], way: Way) -> Iterator[tuple[str, _Joint]]:
    """The nodes on the way from a node to the server, each with the network that it leaves by."""
    while name != server and (number := way[name]) is not None:
        joint = joints[number]
        yield name, joint
        name = joint.near if name == joint.far else joint.far


def _used(hosts: Hosts, joints: list[_Joint], ways: dict[str, Way]) -> set[int]:
    """The numbers of the networks that frames cross."""
    place = {id(joint): number for number, joint in enumerate(joints)}
    return {place[id(joint)] for server, way in ways.items() for name in hosts.first if name in way
            for _, joint in _steps(name, server, joints, way)}


def _paths_of(name: str, hosts: Hosts, joints: list[_Joint], ways: dict[str, Way]) -> Iterator[dict[str, Any]]:
    """From every host of this name to each server and back; between two servers only once."""
    there: list[tuple[str, list[tuple[str, _Joint]], list[tuple[str, _Joint]]]] = []
    for server, way in ways.items():
        if name == server:
            # Those behind it have the paths between them and this one.
            break
        if name in way:
            steps = list(_steps(name, server, joints, way))
            back = [(joint.far if node == joint.near else joint.near, joint) for node, joint in reversed(steps)]
            there.append((server, steps, back))
    for number, member in enumerate(hosts.members(name)):
        for server, steps, back in there:
            for nodes, ends in ((steps, (member, hosts.first[server])), (back, (hosts.first[server], member))):
                hops = [{"link": link} for node, joint in nodes for link in joint.crossed_from(node, number)]
                yield {"from": ends[0], "to": ends[1], "hops": hops}


def _radio_paths(hosts: Hosts, ways: dict[str, Way], trunk: _Joint | None) -> list[dict[str, Any]]:
    """Between every station and the servers', and over the trunk behind the broker's where there is one."""
    stations = len(hosts.entries)
    servers = [hosts.first[server] for server in ways]
    paths: list[dict[str, Any]] = []
    passed: set[int] = set()
    for server in servers:
        passed.add(server)
        for station in range(stations):
            if station in passed:
                continue
            for start, end in ((station, server), (server, station)):
                air: dict[str, Any] = {"radio": {"medium": 0, "from": start, "to": end}}
                behind = None if trunk is None else hosts.first[trunk.near]
                before = trunk.down[0] if trunk is not None and start == behind else []
                after = trunk.up[0] if trunk is not None and end == behind else []
                hops = [*({"link": link} for link in before), air, *({"link": link} for link in after)]
                paths.append({"from": start, "to": end, "hops": hops})
    return paths


def placed(network: NetworkBetween, *, upwards: bool) -> Placed:
    """Links towards the server (``up``) and away from it (``down``)."""
    if (model := network.named) is not None:
        return place(model, network.placement or model.placement)
    up, down = (network.up, network.down) if upwards else (network.down, network.up)
    return Placed(up, down)


def _described(network: NetworkBetween) -> str:
    """A network in words, for the report."""
    if (model := network.named) is None:
        return " – ".join(network.between)
    adjusted = ", adjusted" if network.up is not None or network.down is not None else ""
    return f"{model.title}, {network.placement or model.placement}{adjusted}"


def _lay(joint: _Joint, labels: list[str], placed: Placed, links: list[dict[str, Any]], mtu: int) -> None:
    """Makes the links of a network, once for each of these names."""

    def add(label: str, link: LinkDirection | None) -> list[int]:
        if link is None:
            return []
        links.append(link.plan(label, mtu))
        return [len(links) - 1]

    for label in labels:
        if placed.shared and placed.down is not None:
            joint.up.append(add(label, placed.down))
            joint.down.append(joint.up[-1])
            continue
        joint.up.append(add(f"{label}/up", placed.up))
        joint.down.append(add(f"{label}/down", placed.down))
