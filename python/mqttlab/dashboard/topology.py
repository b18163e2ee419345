"""Which links join which hosts, read off the paths of a plan; and where to draw them where nobody knows their places.

A plan has paths, host to host, each a row of links. What lies between two links of a path is a junction: a router, a
switch, or the point where hosts share a link.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Port = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A line between two nodes: a link, a station's place on a radio channel, or nothing of its own."""

    first: int
    second: int
    link: str
    """The link's name; empty where hosts share one further on."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Hosts first, in the plan's order, then junctions and radio channels."""

    names: tuple[str, ...]
    hosts: int
    edges: tuple[Edge, ...]

    def places(self, centre: Iterable[int]) -> list[tuple[float, float]]:
        """A place for each node, by its distance from these: rings around the centre, each node near its neighbour."""
        return _rings(len(self.names), self.edges, [*centre])


def servers_of(plan: Mapping[str, Any]) -> dict[int, str]:
    """The servers by the numbers of their hosts; without those of imports, which are on no host of the plan."""
    return {int(server["host"]): str(server["name"]) for server in plan.get("servers") or ()
            if server.get("host") is not None}


def topology(plan: Mapping[str, Any]) -> Topology:
    """The topology of a plan's network."""
    network = plan.get("network") or {}
    names = [str(host["name"]) for host in plan.get("hosts") or ()]
    links = [str(link["name"]) for link in network.get("links") or ()]
    media = [str(medium.get("name") or f"radio {number}") for number, medium in enumerate(network.get("media") or ())]
    hosts = len(names)
    edges: list[Edge] = []
    joined, at, stations = _Joined(), dict[Port, set[int]](), dict[int, set[int]]()
    used: set[int] = set()
    known: dict[tuple[int, int], list[Port]] = {}
    for path in network.get("paths") or ():
        ends = _crossed(path, stations)
        known[int(path["from"]), int(path["to"])] = ends
        used |= {number for kind, number in ends if kind == "start"}
        if ends:
            at.setdefault(ends[0], set()).add(int(path["from"]))
            at.setdefault(ends[-1], set()).add(int(path["to"]))
        for before, after in zip(ends[1::2], ends[2::2], strict=False):
            joined.join(before, after)
    for (first, second), ends in known.items():
        back = known.get((second, first), [])
        # The way back leads through the same places.
        if len(back) == len(ends):
            for port, same in zip(ends, reversed(back), strict=True):
                joined.join(port, same)
    there: dict[Port, set[int]] = {}
    for port, found in at.items():
        there.setdefault(joined.of(port), set()).update(found)
    junctions: dict[Port, int] = {}

    def node(port: Port) -> int:
        root = joined.of(port)
        found = there.get(root, set())
        if len(found) == 1:
            return next(iter(found))
        if root not in junctions:
            junctions[root] = len(names)
            names.append("shared link" if found else "router or switch")
            edges.extend(Edge(first=host, second=junctions[root], link="") for host in sorted(found))
        return junctions[root]

    for number in sorted(used):
        first, second = node(("start", number)), node(("end", number))
        edges.append(Edge(first=first, second=second, link=links[number] if number < len(links) else ""))
    for medium, found in stations.items():
        names.append(media[medium] if medium < len(media) else "radio")
        edges.extend(Edge(first=host, second=len(names) - 1, link=names[-1]) for host in sorted(found))
    return Topology(names=tuple(names), hosts=hosts, edges=tuple(edges))


def _crossed(path: Mapping[str, Any], stations: dict[int, set[int]]) -> list[Port]:
    """Both ends of each link of a path, in order; notes which hosts are on a radio channel."""
    ends: list[Port] = []
    for hop in path.get("hops") or ():
        if "link" in hop:
            ends += [("start", int(hop["link"])), ("end", int(hop["link"]))]
        elif "radio" in hop:
            stations.setdefault(int(hop["radio"]["medium"]), set()).update({int(path["from"]), int(path["to"])})
    return ends


class _Joined:
    """Ports that are the same place."""

    def __init__(self) -> None:
        self._root: dict[Port, Port] = {}

    def of(self, port: Port) -> Port:
        while (up := self._root.get(port, port)) != port:
            port = up
        return port

    def join(self, first: Port, second: Port) -> None:
        self._root[self.of(first)] = self.of(second)


def _rings(count: int, edges: Iterable[Edge], centre: list[int]) -> list[tuple[float, float]]:
    near: dict[int, list[int]] = {}
    for edge in edges:
        near.setdefault(edge.first, []).append(edge.second)
        near.setdefault(edge.second, []).append(edge.first)
    seen = dict.fromkeys(centre or ([0] if count else []), 0)
    order = [*seen]
    for one in order:
        for other in near.get(one, ()):
            if other not in seen:
                seen[other] = seen[one] + 1
                order.append(other)
    # What nothing joins stands outside.
    far = max(seen.values(), default=0) + 1
    order += [one for one in range(count) if one not in seen]
    places = [(0.0, 0.0)] * count
    for ring in range(far + 1):
        there = [one for one in order if seen.get(one, far) == ring]
        radius = ring if ring or len(there) < 2 else 0.35
        for number, one in enumerate(there):
            # A half turn first: two nodes stand left and right, as people draw them.
            angle = math.pi + 2 * math.pi * number / max(len(there), 1)
            places[one] = (radius * math.cos(angle), radius * math.sin(angle))
    return places
