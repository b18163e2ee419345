"""No Local of a subscription (MQTT 5, 3.8.3.1): where it cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from mqttlab.scenario.location import Problem
from mqttlab.scenario.model import Group, Scenario


def no_local_problems(scenario: Scenario) -> Iterator[Problem]:
    """Where it is a protocol error, and where nobody knows who should get a message."""
    relays: dict[str, str] = {}
    for group in scenario.groups:
        if group.relay is not None:
            relays.setdefault(scenario.serving(group).name, group.name)
    for index, group in enumerate(scenario.groups):
        for number, subscription in enumerate(group.subscribe):
            if subscription.no_local:
                problem = _problem(scenario, group, subscription.filter, relays)
                if problem is not None:
                    yield ("groups", index, "subscribe", number, "no_local"), problem


def _problem(scenario: Scenario, group: Group, pattern: str, relays: dict[str, str]) -> str | None:
    if pattern.startswith("$share/"):
        return "is set, but for a shared subscription it is a protocol error (MQTT 5, 3.8.3-4); leave it out"
    relay = relays.get(scenario.serving(group).name)
    if relay is not None:
        return (f"is set, but `{relay}` relays, and a copy comes from the relay, whoever published the message; leave "
                "it out, or the `relay`")
    if (group.mqtt or scenario.mqtt).duplicate_ids:
        return ("is set, but clients may have one identifier (`mqtt.duplicate_ids`), and so one of them what another "
                "published; leave one of them out")
    return None
