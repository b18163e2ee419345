"""What a change of one of the fields makes of a text: the places of the field change, and nothing else of it.

The text is the state, and the fields show what it says. A text that has no place for a field, such as a protocol of
groups that somebody has named and shaped otherwise, stays as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mqttlab.dashboard.configure.definition import put
from mqttlab.dashboard.configure.drafts import Draft, ways, written
from mqttlab.toml_reader import read_toml

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

PROTOCOLS = ("each", "0", "1", "2", "mqtt-sn", "zeromq")
# The groups and servers that `written` makes: those of any protocol can take the place of those of another.
OURS = re.compile(r"(publishers|subscribers)-(qos[012]|mqtt-sn|zeromq)|gateway|proxy")


def is_toml(text: str) -> bool:
    """Whether fields can follow a text, and change it."""
    try:
        read_toml(text)
    except ValueError:
        return False
    return True


def changed(toml: str, name: str, draft: Draft) -> str:
    """A text after one of the fields has changed.

    Args:
        toml: the text.
        name: of the field.
        draft: all fields, the changed one among them.
    """
    if not is_toml(toml):
        return toml
    values = read_toml(toml)
    if name == "qos":
        return _protocol(toml, values, draft)
    try:
        if name == "network":
            toml = _without(toml, "networks", [0] if values.get("networks") else [], ("up", "down", "both"))
        if name == "delay":
            toml = _without_rate(toml)
        for place, value in _places(values, name, draft):
            toml = put(toml, place, value)
        # The other network has the same loss, if one was asked for.
        if name == "network" and draft.loss and values.get("networks"):
            toml = changed(toml, "loss", draft)
        if name == "loss" and not draft.loss:
            toml = _without(toml, "networks", [0], tuple(
                way for way in ("up", "down") if read_toml(toml)["networks"][0].get(way) == {}))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        # What is wrong with its shape is said by the scenario's check, at its place.
        pass
    return toml


def _places(values: dict[str, Any], name: str, draft: Draft) -> list[tuple[str, str]]:
    """Where a text has a field, and what is to stand there."""
    publishing = _publishing(values)
    # Subscribers that follow one publisher each are as many as publishers.
    counts = {group.get("count", 1) for group in values.get("groups", ())}
    counted = range(len(values.get("groups", ()))) if len(counts) == 1 else publishing
    return {
        "network": [("networks[0].model", draft.network)] if values.get("networks") else [],
        "loss": [(f"networks[0].{way}.loss", draft.loss) for way in ways(draft)] if values.get("networks") else [],
        "duration": [("phases.duration", draft.duration)], "backend": [("backend", draft.backend)],
        "delay": [(f"{place}.interval", draft.delay) for place in _publications(values)],
        "data": [(f"{place}.payload", draft.data) for place in _publications(values)],
        "nodes": [(f"groups[{number}].count", str(draft.nodes)) for number in counted],
    }.get(name, [])


def _publishing(values: dict[str, Any]) -> list[int]:
    return [number for number, group in enumerate(values.get("groups", ())) if "publish" in group]


def _publications(values: dict[str, Any]) -> list[str]:
    """The places of the publications of all groups."""
    places = []
    for number in _publishing(values):
        here, place = values["groups"][number]["publish"], f"groups[{number}].publish"
        places += [f"{place}[{index}]" for index in range(len(here))] if isinstance(here, list) else [place]
    return places


def _protocol(toml: str, values: dict[str, Any], draft: Draft) -> str:
    """The groups of another protocol in place of those that this page has written; those of others get a QoS."""
    import tomlkit

    groups, servers = values.get("groups", []), values.get("servers", [])
    names = [str(one.get("name")) for one in [*groups, *servers] if isinstance(one, dict)]
    if draft.qos in PROTOCOLS and all(OURS.fullmatch(name) for name in names):
        document, other = tomlkit.parse(toml), tomlkit.parse(written(draft))
        # A broker of which something is said stays.
        for table in (*(() if values.get("broker") else ("broker",)), "servers", "groups"):
            document.pop(table, None)
            if table in other:
                document[table] = other[table]
        return tomlkit.dumps(document)
    if draft.qos in ("0", "1", "2") and all(group.get("protocol", "mqtt") == "mqtt" for group in groups):
        for place in _publications(values):
            toml = put(toml, f"{place}.qos", draft.qos)
        return _subscribed(toml, int(draft.qos))
    return toml


def _subscribed(toml: str, qos: int) -> str:
    """The same with the QoS of every subscription."""
    import tomlkit

    document = tomlkit.parse(toml)
    for group in document.get("groups", []):
        filters = [one if isinstance(one, dict) else {"filter": one} for one in group.get("subscribe", [])]
        if filters:
            made = tomlkit.array()
            for one in filters:
                table = tomlkit.inline_table()
                table.update({**one, "qos": qos})
                made.append(table)
            group["subscribe"] = made
    return tomlkit.dumps(document)


def _without_rate(toml: str) -> str:
    """A text without the rates of publications, which their intervals say otherwise."""
    import tomlkit

    document: TOMLDocument = tomlkit.parse(toml)
    groups: Any = document["groups"]
    for group in groups:
        here = group.get("publish", [])
        for publish in here if isinstance(here, list) else [here]:
            publish.pop("rate", None)
    return tomlkit.dumps(document)


def _without(toml: str, table: str, numbers: list[int], keys: tuple[str, ...]) -> str:
    """A text without what a field's own place is said by otherwise."""
    import tomlkit

    document: TOMLDocument = tomlkit.parse(toml)
    for number in numbers:
        here: Any = document[table][number]
        for key in keys:
            here.pop(key, None)
    return tomlkit.dumps(document)
