"""ZeroMQ in a scenario: its plan, and what is refused with its remedy."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values


def scenario(messages: int = 20, **changes: Any) -> dict[str, Any]:
    """Three sensors and two offices at a proxy, 5 ms from it each way."""
    link = {"rate": "1 Mbit/s", "delay": "5 ms"}
    return {
        "name": "zeromq", "backend": "sim", "seed": 3,
        "phases": {"duration": "2 s", "cool_down": "1 s"},
        "servers": [{"name": "proxy", "role": "zeromq"}],
        "networks": [
            {"between": ["field", "proxy"], "up": dict(link), "down": dict(link)},
            {"between": ["desk", "proxy"], "up": dict(link), "down": dict(link)}],
        "groups": [
            {"name": "sensor", "host": "field", "count": 3, "protocol": "zeromq",
             "publish": {"topic": "t/{client}", "payload": "100 B", "interval": "100 ms", "messages": messages}},
            {"name": "office", "host": "desk", "count": 2, "protocol": "zeromq", "subscribe": ["t/#"]}],
        **changes,
    }


def test_publishers_and_subscribers_have_an_endpoint_each() -> None:
    values = scenario()
    values["groups"][0]["zeromq"] = {"high_water_mark": 7}
    plan = compile_plan(parse_values(values))
    (server,) = plan["servers"]
    assert [endpoint["port"] for endpoint in server["endpoints"]] == [5559, 5560]
    assert cast(Any, server["role"])["zeromq"]["high_water_mark"] == 1000
    sensor, office = plan["groups"]
    assert sensor["protocol"] == {"zeromq": {"client_id": "{group}-{client}", "high_water_mark": 7}}
    assert sensor["transport"] == office["transport"] == {
        "tcp": {"nodelay": True, "tls": None, "websocket": None}}


def wrong(place: list[Any], value: Any) -> dict[str, Any]:
    values = copy.deepcopy(scenario())
    at: Any = values
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    return values


@pytest.mark.parametrize(("place", "value", "words"), [
    (["groups", 0, "publish", "qos"], 1, ["publish.qos", "is 1", "leave it out, or use MQTT"]),
    (["groups", 0, "publish", "retain"], True, ["publish.retain", "keeps nothing", "leave it out"]),
    (["groups", 1, "subscribe"], [{"filter": "t/#", "qos": 2}], ["qos", "is 2", "leave it out"]),
    (["groups", 1, "subscribe"], ["t/+/x"], ["filter", "`+`", '"t/#"']),
    (["groups", 1, "subscribe"], ["$share/g/t"], ["filter", "no `$share`"]),
    (["groups", 0, "subscribe"], ["t/#"], ["publishes and subscribes", "two groups"]),
    (["groups", 0, "mqtt"], {"keep_alive": "5 s"}, ["speaks ZeroMQ", "`mqtt`", "leave it out"]),
    (["groups", 0, "nagle"], False, ["speaks ZeroMQ", "`nagle`", "leave it out"]),
    (["groups", 0, "protocol"], "mqtt", ["connects_to", "proxy of ZeroMQ `proxy`", "protocol = \"zeromq\""]),
    (["servers"], [], ["connects_to", "role = \"zeromq\""]),
    (["servers", 0, "zeromq"], {"subscriber_port": 5559}, ["port", "5559", "use another port"]),
    (["servers", 0, "zeromq"], {"high_water_mark": -1}, ["high_water_mark", "-1"]),
    (["servers", 0, "gateway"], {}, ["table `gateway`", "zeromq"]),
    (["groups", 0, "mqtt_sn"], {}, ["table `mqtt_sn`", "speaks ZeroMQ"]),
])
def test_what_zeromq_does_not_know_is_refused_with_its_remedy(
        place: list[Any], value: Any, words: list[str]) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_values(wrong(place, value))
    for word in words:
        assert word in str(refused.value)
