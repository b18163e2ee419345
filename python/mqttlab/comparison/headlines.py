"""The headlines of two sides, number by number: what a comparison says first.

Every number is one of :func:`mqttlab.metrics.headline`, a value a run, or of :func:`mqttlab.metrics.setup`; nothing is
computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mqttlab import metrics
from mqttlab.comparison.changes import Change, change
from mqttlab.comparison.roles import Role, Roles
from mqttlab.metrics.flow import Key
from mqttlab.recording import Recording


def _acknowledged(flow: metrics.Flow, name: str) -> float | None:
    """Of a flow without a subscriber in the evidence, the time to acknowledge in ms."""
    found = flow.acknowledged
    return found.latency[name].value if found is not None and name in found.latency else None


OF_FLOW: dict[str, Callable[[metrics.Flow], float | None]] = {
    "latency_ms_p99": lambda flow: flow.latency["p99"].value, "latency_ms_p95": lambda flow: flow.latency["p95"].value,
    "latency_ms_p50": lambda flow: flow.latency["p50"].value, "latency_ms_max": lambda flow: flow.latency["max"].value,
    "undelivered_percent": lambda flow: flow.undelivered_percent, "messages_sent": lambda flow: flow.sent,
    "acknowledge_ms_p99": lambda flow: _acknowledged(flow, "p99"),
    "acknowledge_ms_p50": lambda flow: _acknowledged(flow, "p50"),
    "not_acknowledged": lambda flow: flow.acknowledged.missing if flow.acknowledged and flow.acknowledged.packet else
    None,
    "throughput_per_s": lambda flow: flow.per_s if flow.acknowledged is None else None,
    "disconnects": lambda flow: flow.disconnects,
}
OF_GROUP: dict[str, Callable[[metrics.Bytes], float | None]] = {
    "ip_kb_per_device_hour_up": lambda group: group.ip_up, "ip_kb_per_device_hour_down": lambda group: group.ip_down,
}
CONNECTING = ("connect_ms_p50", "connect_to_delivered_ms_p50", "connect_to_acknowledged_ms_p50")
"""Of the connections of all clients; the last one where no delivery is in the evidence of either side."""
POWER = "mean_mw"
"""What one radio of a group draws, in mW: of a headline's ``energy``."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One number of the headlines, on both sides."""

    of: str
    """The flow or the group; where the sides call it differently, both names."""
    measure: str
    """A metric's name, or :data:`POWER`."""
    role: Role | None
    """``None`` where it is of a group's devices, or of all clients."""
    group: str | None
    """The first side's name of the group whose devices it is of."""
    change: Change


def compared(
    first: Sequence[Recording], second: Sequence[Recording], roles: Roles, *, paired: bool, tolerance_percent: float,
) -> list[Compared]:
    """Every number that both sides could have: of the flows that both have, of the groups, then of connecting.

    Raises:
        RecordingError: a table cannot be read.
    """
    sides = [[metrics.headline(run) for run in runs] for runs in (first, second)]

    def of(values: tuple[list[float], list[float]]) -> Change:
        return change(*values, paired=paired, tolerance_percent=tolerance_percent)

    found = []
    for role in roles.matched:
        flows = [list(_flows(side, key)) for side, key in zip(sides, (role.first, role.second), strict=True)]
        for measure, read in OF_FLOW.items():
            # Of the largest of a few messages no run of either side is compared.
            told = all(_is_told(flow, measure) for side in flows for flow in side)
            known = [[value for flow in side if told and (value := read(flow)) is not None] for side in flows]
            found.append(Compared(of=role.title, measure=measure, role=role, group=None,
                                  change=of((known[0], known[1]))))
    for name, titles in _groups(sides, roles).items():
        for measure, values in _of_group(sides, roles, name).items():
            if values[0] or values[1]:
                found.append(Compared(of=" or ".join(titles), measure=measure, role=None, group=name,
                                      change=of(values)))
    connecting = _of_connecting(first), _of_connecting(second)
    if any(side["connect_to_delivered_ms_p50"] for side in connecting):
        for side in connecting:
            side["connect_to_acknowledged_ms_p50"].clear()
    return found + [Compared(of="all clients", measure=measure, role=None, group=None,
                             change=of((connecting[0][measure], connecting[1][measure])))
                    for measure in CONNECTING if connecting[0][measure] or connecting[1][measure]]


def _of_connecting(runs: Sequence[Recording]) -> dict[str, list[float]]:
    """A value a run that has one; none of a stage, for connections are counted over the whole run."""
    rows = [metrics.setup(run).row(0, named=True) for run in runs if run.stage is None]
    return {measure: [row[measure] for row in rows if row[measure] is not None] for measure in CONNECTING}


def _is_told(flow: metrics.Flow, measure: str) -> bool:
    """Whether a measure is no percentile of too few messages."""
    what, _, name = measure.rpartition("_")
    found = flow.acknowledged.latency if flow.acknowledged and what.startswith("acknowledge") else flow.latency
    return name not in found or found[name].value is None or found[name].enough


def _flows(side: Sequence[metrics.Headline], key: Key | None) -> Iterator[metrics.Flow]:
    return (flow for one in side for flow in one.flows if flow.key == key)


def _groups(sides: Sequence[Sequence[metrics.Headline]], roles: Roles) -> dict[str, dict[str, None]]:
    """By the first side's name of a group, what both call it; the groups that both sides have."""
    found: dict[str, dict[str, None]] = {}
    for side in sides:
        for one in side:
            for name in (*(group.group for group in one.bytes), *(group.group for group in one.energy)):
                known = name if side is sides[0] else roles.groups.get(name)
                if known is not None and known in roles.groups.values():
                    found.setdefault(known, {})[name] = None
    return found


def _of_group(
    sides: Sequence[Sequence[metrics.Headline]], roles: Roles, name: str,
) -> dict[str, tuple[list[float], list[float]]]:
    found: dict[str, tuple[list[float], list[float]]] = {measure: ([], []) for measure in (*OF_GROUP, POWER)}
    for place, side in enumerate(sides):
        for one in side:
            for group in one.bytes:
                if (roles.groups.get(group.group) if place else group.group) == name:
                    for measure, read in OF_GROUP.items():
                        if (value := read(group)) is not None:
                            found[measure][place].append(value)
            found[POWER][place].extend(radio.mean_mw for radio in one.energy if (
                roles.groups.get(radio.group) if place else radio.group) == name)
    return found
