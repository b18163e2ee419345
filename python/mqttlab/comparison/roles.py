"""Which flow of one side is which of the other: who publishes for whom, whatever groups are called.

Groups of the same name that both publish, or both subscribe, are the same. Of the others, those that publish (or
subscribe, or both) are lined up in the order of their clients, where both sides have as many of them. Flows of one
publication between the same groups are the same flow; where publications or QoS differ, in the order of the scenario,
or of QoS. What has no partner is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqttlab import metrics
from mqttlab.foreign import visible
from mqttlab.metrics.flow import Key, publisher, scope
from mqttlab.metrics.headline import UNKNOWN_ENDS
from mqttlab.plan import publications_of
from mqttlab.recording import Recording

Paired = tuple[Key | None, Key | None]
"""A flow of each side; ``None`` where a side does not have it."""


@dataclass(frozen=True, kw_only=True)
class Role:
    """One flow as both sides have it; a side that does not has ``None``."""

    first: Key | None
    second: Key | None
    never_sent: bool
    """Whether it has nothing but messages that were never sent, on both sides."""

    @property
    def title(self) -> str:
        """Who publishes for whom at which QoS; where the sides differ, both."""
        known = [key for key in (self.first, self.second) if key is not None]
        # An end that one side knows needs no word for the side that does not.
        named = [dict.fromkeys(publisher(key.publishers, key.publication) for key in known if key.publishers),
                 dict.fromkeys(key.subscribers for key in known if key.subscribers is not None)]
        ends = [visible(" or ".join(names or (unknown,))) for names, unknown in zip(named, UNKNOWN_ENDS, strict=True)]
        qos = " and ".join(dict.fromkeys(str(key.qos) for key in known))
        if self.never_sent:
            return f"messages of {ends[0]} that were never sent, QoS {qos}"
        return f"{ends[0]} → {ends[1]}, QoS {qos}"


@dataclass(frozen=True, kw_only=True)
class Roles:
    """How two sides are lined up."""

    groups: Mapping[str, str]
    """By the second side's names, the first's."""
    flows: tuple[Role, ...]

    @property
    def matched(self) -> tuple[Role, ...]:
        """Those that both sides have."""
        return tuple(role for role in self.flows if role.first is not None and role.second is not None)

    def scopes(self, side: int) -> dict[str, str]:
        """By what a table of metrics calls a flow of one side (0 or 1), what it is called in comparisons."""
        return {scope(key): role.title.replace(" → ", " to ").replace(", QoS ", " at QoS ")
                for role in self.matched if (key := (role.first, role.second)[side]) is not None}


def line_up(first: Sequence[Recording], second: Sequence[Recording]) -> Roles:
    """Line up the flows of two sides' runs.

    Raises:
        RecordingError: a table cannot be read.
    """
    sides = [_Side(runs) for runs in (first, second)]
    groups = _groups(sides[0].roles, sides[1].roles)
    flows = [Role(first=one, second=other, never_sent=all(
        key not in side.sent for side, key in zip(sides, (one, other), strict=True) if key is not None))
        for one, other in _flows(sides[0].flows, sides[1].flows, groups)]
    return Roles(groups=groups, flows=tuple(flows))


class _Side:
    """The groups of a side's runs with what they do, and their flows."""

    def __init__(self, runs: Sequence[Recording]) -> None:
        self.flows: list[Key] = []
        self.sent: set[Key] = set()
        """Those of which at least one run has sent a message, or expected one."""
        self.roles: dict[str, tuple[bool, bool]] = {}
        for run in runs:
            flows = {flow.key: flow for flow in metrics.headline(run).flows}
            found = list(flows)
            self.sent |= {key for key, flow in flows.items() if not flow.never_sent}
            self.flows += [key for key in found if key not in self.flows]
            planned: dict[str, Any] = {group["name"]: group for group in run.plan.get("groups", []) if "name" in group}
            names = run.layout["clients"].group_names if found or planned else []
            for name in dict.fromkeys([*planned, *names]):
                group, known = planned.get(name, {}), self.roles.get(name, (False, False))
                self.roles[name] = (
                    known[0] or bool(publications_of(group)) or any(key.publishers == name for key in found),
                    known[1] or bool(group.get("subscriptions")) or any(key.subscribers == name for key in found))


def _groups(first: Mapping[str, tuple[bool, bool]], second: Mapping[str, tuple[bool, bool]]) -> dict[str, str]:
    same = {name: name for name, (publishes, subscribes) in second.items() if name in first and (
        (publishes and first[name][0]) or (subscribes and first[name][1]) or first[name] == (publishes, subscribes))}
    for role in dict.fromkeys(second.values()):
        left = [[name for name, of in side.items() if of == role and name not in same] for side in (first, second)]
        if len(left[0]) == len(left[1]):
            same |= dict(zip(left[1], left[0], strict=True))
    return same


def _flows(first: Sequence[Key], second: Sequence[Key], groups: Mapping[str, str]) -> list[Paired]:
    def as_first(key: Key) -> Key:
        """As the first side calls its groups."""
        publishers, subscribers = (None if end is None else groups.get(end, f"\0{end}")
                                   for end in (key.publishers, key.subscribers))
        return key._replace(publishers=publishers, subscribers=subscribers)

    partner = {of: key for key in second if (of := as_first(key)) in first}
    taken = set(partner.values())
    for pair in dict.fromkeys(_ends(as_first(key)) for key in second):
        left = [sorted((key for key in first if _ends(key) == pair and key not in partner), key=_qos),
                sorted((key for key in second if _ends(as_first(key)) == pair and key not in taken), key=_qos)]
        if len(left[0]) == len(left[1]):
            partner |= dict(zip(left[0], left[1], strict=True))
            taken |= set(left[1])
    alone = [[key for key in first if key not in partner], [key for key in second if key not in taken]]
    if len(alone[0]) == len(alone[1]) == 1:
        # One end of it is not known, where nothing was delivered to anybody.
        partner[alone[0][0]] = alone[1][0]
        alone[1] = []
    return [*((key, partner.get(key)) for key in first), *((None, key) for key in alone[1])]


def _ends(key: Key) -> tuple[str | None, str | None]:
    return key.publishers, key.subscribers


def _qos(key: Key) -> int:
    return -1 if key.qos is None else key.qos
