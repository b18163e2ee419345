"""ZeroMQ in a scenario: its plan, and what is refused with its remedy."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from mqttlab.plan import StoredPlan
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.one_sentence import one_sentence
from mqttlab.scenario.topics import Prefixes


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


@pytest.mark.parametrize(("wanted", "published", "matches"), [
    ("d/", "d/{client}", True), ("d/#", "d/{client}", True), ("#", "d/1", True), ("d/1", "d/{client}", True),
    ("d/x", "d/{client}", False), ("d/x", "d/{group}", True), ("d/12", "d/1", False), ("d/1", "d/12", True),
    ("e", "d/{client}", False), ("d/{client}", "d/{client}/a", True), ("d", "dog/1", True),
])
def test_a_subscription_is_a_beginning_of_topics(wanted: str, published: str, matches: bool) -> None:
    assert Prefixes([wanted]).matching(published) == ([wanted] if matches else [])


def test_the_sentence_of_a_scenario_names_the_subscribers_of_a_prefix() -> None:
    values = scenario()
    values["groups"][1]["subscribe"] = ["t/"]
    told = one_sentence(cast(StoredPlan, compile_plan(parse_values(values))))
    assert "to 2 subscribers" in told and "without a subscriber" not in told
