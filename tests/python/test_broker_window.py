"""The window of a broker in a plan: Mosquitto's default is not that of another program."""

from __future__ import annotations

from typing import Any

import pytest

from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

PROGRAM = {"kind": "program", "program": {"command": ["a-broker", "{address}", "{port}"]}}
EXTERNAL = {"kind": "external", "address": "192.0.2.1"}


def window(broker: dict[str, Any], backend: str, **more: Any) -> int:
    plan = compile_plan(parse_values({
        "name": "window", "backend": backend, "broker": broker, **more,
        "phases": {"duration": "1 s"}, "groups": [
            {"name": "a", "host": "broker", "publish": {"topic": "t", "payload": "10 B", "interval": "1 s"}},
            {"name": "b", "host": "broker", "subscribe": ["t"]}]}))
    role: Any = plan["servers"][0]["role"]
    found: int = role["broker"]["settings"]["max_inflight"]
    return found


@pytest.mark.parametrize("broker", [PROGRAM, EXTERNAL], ids=["program", "external"])
def test_a_broker_that_the_scenario_does_not_set_up_has_the_window_that_is_said_or_none(broker: dict[str, Any]) -> None:
    more = {"network": "external"} if broker is EXTERNAL else {}
    assert window(broker, "live", **more) == 0
    assert window(broker | {"max_inflight": 20}, "live", **more) == 20


def test_mosquitto_has_its_default_and_a_simulation_of_a_program_is_mosquitto() -> None:
    assert window({}, "live") == window({}, "sim") == window(PROGRAM, "sim") == 20
    assert window({"max_inflight": 5}, "live") == 5
