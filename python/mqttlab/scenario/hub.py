"""Protocols around a hub in a scenario: a group's session, and the server that it connects to. Which there are, and
what can be set of them, the engine declares (``mqttlab-engine declared``)."""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from mqttlab.networks.link import Part
from mqttlab.plan.declared import HUB_PROTOCOLS, HubProtocolName, HubSetting
from mqttlab.quantity import duration_ns, shown
from mqttlab.scenario.topics import MQTT_TEXT_MAX
from mqttlab.secrets import PLAIN, PersonalText, PlainText

End = Literal["client", "hub"]


def declared(protocol: str, end: End) -> tuple[HubSetting, ...]:
    """What can be set of one end of a protocol."""
    spoken = HUB_PROTOCOLS[protocol]
    return spoken.client if end == "client" else spoken.hub


def settings_of(protocol: str, end: End, given: Mapping[str, Any]) -> dict[str, int]:
    """Settings as the plan has them, those that are given; lengths of time in nanoseconds.

    Raises:
        ValueError: there is no such setting, or it cannot have this value.
    """
    known = {setting.name.removesuffix("_ns"): setting for setting in declared(protocol, end)}
    values = {}
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(known)) or 'none'}"
            raise ValueError(f"has the unknown `{name}`; {hint}")
        values[known[name].name] = _value(known[name], name, value)
    return values


def _value(setting: HubSetting, name: str, value: Any) -> int:
    is_time = setting.name.endswith("_ns")
    if is_time:
        try:
            number = duration_ns(value)
        except ValueError as error:
            raise ValueError(f"has `{name}`, which {error}") from error
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise ValueError(f"has `{name}` = {shown(value)}, but it must be a whole number")
    if not setting.min <= number <= setting.max:
        least, most = (written(setting, bound) for bound in (setting.min, setting.max))
        raise ValueError(f"has `{name}` = {shown(value)}, but it must be between {least} and {most}")
    return number


def written(setting: HubSetting, value: int) -> str:
    """A value as scenarios have it."""
    if not setting.name.endswith("_ns"):
        return str(value)
    unit, size = next((unit, size) for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
                      if value % size == 0)
    return f"{value // size} {unit}"


def _manual(end: End) -> str:
    """What can be set, for the manual."""
    parts = []
    for protocol in HUB_PROTOCOLS:
        settings = [f"`{setting.name.removesuffix('_ns')}` ({written(setting, setting.default)}): {setting.words}"
                    for setting in declared(protocol, end)]
        parts.append(f"Of `{protocol}`: " + (" ".join(settings) or "nothing."))
    return " ".join(parts)


class HubSession(Part):
    """A session of a protocol around a hub, over UDP: each message is a datagram, and nothing is fragmented."""

    client_id: PersonalText = Field(
        "{group}-{client}", min_length=1, max_length=MQTT_TEXT_MAX, description="What a client calls itself.")
    settings: dict[PlainText, Annotated[Any, PLAIN]] = Field(
        default_factory=dict, description="What is set of the protocol; what is not named has its default. "
        + _manual("client"))


class Hub(Part):
    """The server of a protocol around a hub: our own obeys all of this, for another program it says what that one is
    told."""

    protocol: HubProtocolName = Field(description="What it speaks. " + " ".join(
        f"`{name}`: {spoken.words}" for name, spoken in HUB_PROTOCOLS.items()))
    settings: dict[PlainText, Annotated[Any, PLAIN]] = Field(
        default_factory=dict, description="What is set of it; what is not named has its default. " + _manual("hub"))
