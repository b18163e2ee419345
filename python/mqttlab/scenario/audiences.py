"""Who receives what: groups that subscribe alike are an audience, and messages that are alike are counted together.

A scenario may have tens of thousands of groups. Those with the same filters receive the same, and of publishers whose
messages look the same the sums count: so that no two groups need be looked at together, unless their filters differ
and match the same by wildcards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from mqttlab.scenario.model import Group, Scenario
from mqttlab.scenario.publish import Publish
from mqttlab.scenario.topics import Filters, Prefixes

How = Literal["shared", "all", "own"]
"""A message comes to one client of a group, to each of them, or to that whose number it has in its topic."""


@dataclass
class Audience:
    """Groups of a server with the same filters."""

    filters: tuple[str, ...]
    counts: Counter[int] = field(default_factory=Counter)
    """How many groups there are with so many clients."""
    heard: dict[tuple[object, ...], Heard] = field(default_factory=dict)
    """What they receive, by what it looks like."""


@dataclass
class Heard:
    """Messages of publishing groups that are alike."""

    publish: Publish
    publisher: Group
    """One of the groups: of those alike, the farthest from its server."""
    how: How
    per_s: float = 0.0
    """Messages a second of one client of such a group."""
    groups: int = 0
    takes_s: float = 0.0
    """How long one is on its way to the server on empty links, from that group."""

    def clients(self, count: int) -> float:
        """How many of so many clients of a group receive one of these messages."""
        if self.how == "own":
            return min(1.0, count / self.publisher.count)
        return float(count) if self.how == "all" else 1.0


class Audiences:
    """The audiences of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._of: dict[tuple[str, tuple[str, ...]], Audience] = {}
        # Names are unique, as is checked.
        self._of_group: dict[str, Audience] = {}
        with_filter: dict[str, dict[str, list[Audience]]] = {}
        for group in scenario.groups:
            if not group.subscribe:
                continue
            server, filters = self._key(group)
            audience = self._of.get((server, filters))
            if audience is None:
                audience = self._of[server, filters] = Audience(filters)
                for pattern in filters:
                    with_filter.setdefault(server, {}).setdefault(pattern, []).append(audience)
            audience.counts[group.count] += 1
            self._of_group[group.name] = audience
        self._with_filter = with_filter
        proxies = {server.name for _, server in scenario.all_servers if server.role == "zeromq"}
        self._index = {server: Prefixes(patterns) if server in proxies else Filters(patterns)
                       for server, patterns in with_filter.items()}
        self._matched: dict[tuple[str, str], list[tuple[Audience, How]]] = {}

    def __iter__(self) -> Iterator[Audience]:
        return iter(self._of.values())

    def of(self, group: Group) -> Audience | None:
        """The one that a group belongs to, if it subscribes to anything."""
        return self._of_group.get(group.name)

    def receiving(self, group: Group, publish: Publish) -> list[tuple[Audience, How]]:
        """Those that receive a publication of a group."""
        server = self._scenario.server_of(group).name
        topics = [topic.replace("{group}", group.name) for topic in publish.topic_patterns[:REPLAYED_MAX]]
        if len(topics) == 1:
            return self._receiving(server, topics[0])
        # Of a table each message may have another topic: who wants one of them is counted for all.
        found = {id(audience): (audience, how) for topic in topics for audience, how in self._receiving(server, topic)}
        return [*found.values()]

    def leaves_out(self, group: Group, publish: Publish) -> bool:
        """Whether a client of a group gets a publication of others of the group, but not its own (MQTT 5, 3.8.3.1)."""
        silent = {each.filter for each in group.subscribe if each.no_local}
        if not silent:
            return False
        topics = [topic.replace("{group}", group.name) for topic in publish.topic_patterns[:REPLAYED_MAX]]

        def bring(patterns: Iterable[str]) -> bool:
            filters = Filters(pattern.replace("{group}", group.name) for pattern in patterns)
            return any(filters.matching(topic) for topic in topics)

        others = {each.filter for each in group.subscribe if not each.filter.startswith("$share/")} - silent
        return bring(silent) and not bring(others)

    def _receiving(self, server: str, topic: str) -> list[tuple[Audience, How]]:
        if (server, topic) not in self._matched:
            index, found = self._index.get(server), dict[int, tuple[Audience, How]]()
            for pattern in [] if index is None else index.matching(topic):
                how = _how(pattern)
                for audience in self._with_filter[server][pattern]:
                    before = found.get(id(audience))
                    if before is None or ORDER[how] < ORDER[before[1]]:
                        found[id(audience)] = audience, how
            self._matched[server, topic] = [*found.values()]
        return self._matched[server, topic]

    def _key(self, group: Group) -> tuple[str, tuple[str, ...]]:
        filters = {each.filter.replace("{group}", group.name) for each in group.subscribe}
        return self._scenario.server_of(group).name, tuple(sorted(filters))


def _how(pattern: str) -> How:
    if pattern.startswith("$share/"):
        return "shared"
    return "own" if "{client}" in pattern else "all"


REPLAYED_MAX = 10_000
"""Topics of a table that are looked at."""
ORDER = {"shared": 0, "all": 1, "own": 2}
"""Which of several matching filters of a group decides."""
