"""What `check` accepts, the engine takes: lengths of time at the ends of what they may be, and just beyond."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from mqttlab.engine import engine_path
from mqttlab.errors import MqttlabError
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

Values = dict[str, Any]
GATEWAY = {
    "name": "sn", "backend": "sim", "phases": {"duration": "1 s"},
    "networks": [{"between": [a, b], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}
                 for a, b in (("field", "gw"), ("gw", "broker"), ("desk", "broker"))],
    "broker": {}, "servers": [{"name": "gw", "role": "gateway", "gateway": {}}],
    "groups": [{"name": "g", "host": "field", "connects_to": "gw", "protocol": "mqtt-sn", "mqtt_sn": {},
                "publish": {"topic": "a", "payload": "20 B", "interval": "1 s"}},
               {"name": "desk", "host": "desk", "connects_to": "broker", "subscribe": ["#"]}],
}
SLEEP = {"duration": "65535 s", "wake_every": "1 s"}


def of_gateway(**gateway: str) -> Values:
    return {**GATEWAY, "servers": [{"name": "gw", "role": "gateway", "gateway": gateway}]}


def of_client(**session: Any) -> Values:
    groups = GATEWAY["groups"]
    return {**GATEWAY, "groups": [{**groups[0], "mqtt_sn": session}, groups[1]]}  # type: ignore[index]


def bursts(**burst: Any) -> Values:
    return scenario(publish={"arrival": "burst", "burst": {"every": "8784 h", "size": 2, **burst}})


def mobile(**how: Any) -> Values:
    return scenario(radio={"mobility": {"speed": ["1 m/s", "2 m/s"], **how}})


def codel(**how: Any) -> Values:
    return scenario(up={"discipline": {"kind": "codel", **how}})


# Each with what it is written with, what the engine takes at the end, and what is beyond.
LIMITS: dict[str, tuple[Any, str, str]] = {
    "recording.resource_interval": (lambda text: scenario(recording={"resource_interval": text}), "1 ms", "999 us"),
    "recording.tcp_state_interval": (lambda text: scenario(recording={"tcp_state_interval": text}), "10 ms", "9 ms"),
    "live.latency_compensation": (lambda text: scenario(live={"latency_compensation": text}), "1 h", "3601 s"),
    "sim.client_wake_up": (lambda text: scenario(sim={"client_wake_up": text}), "1 h", "3601 s"),
    "mqtt.retry": (lambda text: scenario(mqtt={"retry": text}), "1 ms", "999 us"),
    "broker.retry": (lambda text: scenario(broker={"retry": text}), "1 ms", "999 us"),
    "gateway.retry": (lambda text: of_gateway(retry=text), "1 ms", "999 us"),
    "gateway.retry, most": (lambda text: of_gateway(retry=text), "1 h", "3601 s"),
    "gateway.advertise": (lambda text: of_gateway(advertise=text), "1 ms", "999 us"),
    "mqtt_sn.retry": (lambda text: of_client(retry=text), "1 ms", "999 us"),
    "mqtt_sn.retry, most": (lambda text: of_client(retry=text), "1 h", "3601 s"),
    "mqtt_sn.wait": (lambda text: of_client(wait=text), "1 ms", "999 us"),
    "sleep.wake_every": (lambda text: of_client(sleep={**SLEEP, "wake_every": text}), "1 ms", "999 us"),
    "sleep.linger": (lambda text: of_client(sleep={**SLEEP, "linger": text}), "1 h", "3601 s"),
    "discipline.interval": (lambda text: codel(interval=text, target="1 us"), "1 us", "999 ns"),
    "discipline.target": (lambda text: codel(target=text), "1 us", "999 ns"),
    "channel.mean_bad": (lambda text: scenario(radio={"channel": {"mean_bad": text}}), "1 us", "999 ns"),
    "mobility.refresh": (lambda text: mobile(refresh=text), "1 us", "999 ns"),
    "burst.every": (lambda text: bursts(every=text), "1 us", "999 ns"),
    "burst": (lambda text: bursts(gap=text), "4392 h", "4393 h"),
    "phases.duration": (lambda text: scenario(phases={"warm_up": text, "duration": text, "cool_down": text}),
                        "8784 h", "8785 h"),
    "publish.interval": (lambda text: scenario(publish={"interval": text}), "8784 h", "8785 h"),
    "up.delay": (lambda text: scenario(up={"delay": text}), "1 h", "3601 s"),
}


@pytest.mark.parametrize("field", LIMITS)
def test_the_end_is_taken_by_both_and_what_is_beyond_is_refused_by_its_field(field: str) -> None:
    written, end, beyond = LIMITS[field]
    plan = json.dumps(compile_plan(parse_values(written(end))))
    done = subprocess.run([engine_path(), "check"], input=plan, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(MqttlabError) as error:
        parse_values(written(beyond))
    assert f"{field.partition(',')[0]}`" in str(error.value), error.value
