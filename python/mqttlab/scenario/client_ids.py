"""Whether clients that a table names have identifiers of their own, among all clients of a broker."""

from __future__ import annotations

from collections.abc import Iterator

from mqttlab.quantity import shown
from mqttlab.scenario.credentials import MQTT_31_MAX, CredentialsError, texts_of
from mqttlab.scenario.location import Location, Problem
from mqttlab.scenario.model import Group, Scenario


def listed_twice(scenario: Scenario) -> Iterator[Problem]:
    """Identifiers of a table that clients of another group have, too: the broker ends the connection of the older one
    (MQTT 3.1.1, [MQTT-3.1.4-2])."""
    served: dict[str, list[tuple[int, Group]]] = {}
    for index, group in enumerate(scenario.groups):
        if group.protocol == "mqtt":
            served.setdefault(scenario.serving(group).name, []).append((index, group))
    for groups in served.values():
        # Patterns alone are compared as such, with a warning (`fit.py`).
        if any(_is_listed(scenario, group) for _, group in groups):
            yield from _twice(scenario, groups)


def _twice(scenario: Scenario, groups: list[tuple[int, Group]]) -> Iterator[Problem]:
    owners: dict[str, Group] = {}
    for index, group in groups:
        mqtt = group.mqtt or scenario.mqtt
        names = set(client_ids(scenario, group))
        both = sorted(name for name in names if name in owners)
        if both and not mqtt.duplicate_ids:
            place: Location = ("mqtt",) if group.mqtt is None else ("groups", index, "mqtt")
            yield (*place, "client_id" if mqtt.credentials is None else "credentials"), (
                f"gives clients of `{owners[both[0]].name}` and `{group.name}` the identifier {shown(both[0])}: they "
                "would take over each other's sessions; give each group a table of its own, or set `duplicate_ids`")
        owners.update(dict.fromkeys(names, group))


def client_ids(scenario: Scenario, group: Group) -> Iterator[str]:
    """The identifiers of a group's clients; nothing where its table cannot be read."""
    mqtt = group.mqtt or scenario.mqtt
    try:
        yield from texts_of(mqtt.client_id, mqtt.table, "client_id", group.name, group.count)
    except CredentialsError:
        return


def long_ids(scenario: Scenario) -> Iterator[Problem]:
    """Identifiers that a broker of MQTT 3.1 need not take."""
    for index, group in enumerate(scenario.groups):
        mqtt = group.mqtt or scenario.mqtt
        if group.protocol != "mqtt" or mqtt.version != "3.1":
            continue
        longest = max(client_ids(scenario, group), key=len, default="")
        if len(longest) > MQTT_31_MAX:
            place: Location = ("mqtt",) if group.mqtt is None else ("groups", index, "mqtt")
            yield (*place, "client_id"), (
                f"gives `{group.name}` the identifier {shown(longest)} of {len(longest)} characters, but MQTT 3.1 has "
                f"at most {MQTT_31_MAX}, and brokers may refuse more")


def _is_listed(scenario: Scenario, group: Group) -> bool:
    return (group.mqtt or scenario.mqtt).credentials is not None
