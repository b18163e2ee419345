"""Protocols around a hub and framings, as ``crates/protocol`` and ``crates/layers`` declare them. Written by
``scripts/plan-types``; not to be edited."""

from __future__ import annotations

from typing import Literal, NamedTuple


class HubSetting(NamedTuple):
    """Something that can be set: a number, or nanoseconds where its name ends in ``_ns``."""

    name: str
    default: int
    min: int
    max: int
    words: str


class HubProtocol(NamedTuple):
    """A protocol, and what can be set of its clients and of its hub; ``head_bytes`` stand before topic and payload."""

    words: str
    qos_max: int
    head_bytes: int
    client: tuple[HubSetting, ...]
    hub: tuple[HubSetting, ...]


HubProtocolName = Literal["tell"]

HUB_PROTOCOLS: dict[str, HubProtocol] = {
    "tell": HubProtocol(
        "Made up, as the least that passes messages on: a floor to compare protocols with.",
        qos_max=1,
        head_bytes=6,
        client=(
            HubSetting(
                "repeat_ns", 1000000000, 1000000, 3600000000000,
                "Time until what was not answered is sent again."),
        ),
        hub=(),
    ),
}

FramingName = Literal["framed"]

FRAMINGS: dict[str, str] = {
    "framed": (
        "Made up, as the least that a framing is: a word of each end, then four bytes of length before each packet."),
}
