"""What is wrong with a scenario's radio channel, beside the rest of the scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqttlab.quantity import shown

if TYPE_CHECKING:
    from mqttlab.networks.radio import Radio
    from mqttlab.scenario.location import Problem
    from mqttlab.scenario.model import Scenario


def radio_problems(scenario: Scenario, radio: Radio, stations: int) -> Iterator[Problem]:
    """By place and words. `stations` is how many hosts there are."""
    if scenario.networks:
        yield ("networks",), "and `radio` cannot be used together: the radio channel joins all hosts"
    if scenario.network != "emulated":
        yield ("network",), f"is \"{scenario.network}\", but must be \"emulated\" with a `radio` channel"
    if radio.access_point and scenario.trunk is None:
        yield ("radio", "access_point"), "is true, which needs a [trunk] from the access point to the broker"
    if radio.positions is not None and len(radio.positions) != stations:
        given = len(radio.positions)
        yield ("radio", "positions"), f"has {given} entries, but there are {stations} hosts; write {stations}"
    seen: set[str] = set()
    for index, interferer in enumerate(radio.interferers):
        if interferer.name in seen:
            yield ("radio", "interferers", index, "name"), (
                f"is {shown(interferer.name)}, as another interferer's; use another name")
        seen.add(interferer.name)
    stand_still = radio.mobility is None and all(event.position is None for event in scenario.events)
    if radio.shadowing is not None and radio.shadowing.decorrelation is not None and stand_still:
        yield ("radio", "shadowing", "decorrelation"), (
            "changes nothing where stations stand still; leave it out, or add `radio.mobility`")
