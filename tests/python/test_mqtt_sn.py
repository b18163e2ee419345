"""MQTT-SN in scenarios: what a plan is made of them, and what is wrong with them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

from mqttlab.experiments import load
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values


def scenario(*, mode: str = "transparent", qos: int = 1) -> dict[str, Any]:
    """Three sensors behind a gateway, a subscriber at the broker, and one behind the gateway, too."""
    session = {"retry": "300 ms", "retries": 20}
    ends = (["field", "gateway"], ["gateway", "broker"], ["desk", "broker"])
    return {
        "name": "sensors", "phases": {"duration": "2 s", "cool_down": "20 s"},
        "broker": {},
        "servers": [
            {"name": "gateway", "role": "gateway",
             "gateway": {"mode": mode, "retry": "300 ms", "retries": 20, "keep_alive": "10 s"}},
        ],
        "networks": [{"between": pair, "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}} for pair in ends],
        "groups": [
            {"name": "sensors", "host": "field", "count": 3, "connects_to": "gateway", "protocol": "mqtt-sn",
             "mqtt_sn": dict(session),
             "publish": {"topic": "s/{client}", "qos": qos, "payload": "50 B", "interval": "100 ms"}},
            {"name": "office", "host": "desk", "connects_to": "broker", "subscribe": [{"filter": "s/#", "qos": qos}]},
            {"name": "back", "host": "field", "connects_to": "gateway", "protocol": "mqtt-sn",
             "mqtt_sn": dict(session), "subscribe": [{"filter": "s/+", "qos": qos}]},
        ],
    }


def beside_the_gateway(what: str, mode: str) -> dict[str, Any]:
    """Sensors and gateway on one host, or gateway and broker; and the subscriber at the broker."""
    values = scenario(mode=mode)
    sensors, office, _ = values["groups"]
    if what == "sensors":
        sensors["host"] = "gateway"
        values["networks"] = values["networks"][1:]
    else:
        values["servers"][0]["host"] = "broker"
        values["networks"] = [{**values["networks"][0], "between": ["field", "broker"]}, values["networks"][2]]
    return {**values, "groups": [sensors, office]}


def problems(values: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        parse_values(values)
    return "\n".join(caught.value.problems)


def test_a_gateway_is_our_own_unless_the_scenario_says_otherwise_and_knows_its_broker() -> None:
    plan = compile_plan(parse_values(scenario(mode="aggregating")))
    broker, gateway = plan["servers"]
    assert (gateway["kind"], gateway["endpoints"][0]["transport"], gateway["endpoints"][0]["port"]) == (
        "mqttlab", "udp", 1884)
    role = cast(dict[str, Any], gateway["role"])["gateway"]
    assert (role["broker"], role["mode"], role["retry_ns"]) == (0, "aggregating", 300_000_000)
    process = gateway["process"]
    assert process is not None and process["command"][:2] == ["{engine}", "gateway"]
    assert f"{broker['endpoints'][0]['address']}:1883" in process["files"][0]["text"]
    group = plan["groups"][0]
    assert group["transport"] == "udp" and "mqtt_sn" in group["protocol"]
    # Hosts of servers reach each other, too.
    assert {(1, 0), (0, 1)} <= {(path["from"], path["to"]) for path in plan["network"]["paths"]}


@pytest.mark.parametrize(("change", "said"), [
    ({"connects_to": "broker"}, "MQTT-SN clients connect to a gateway; use one of gateway"),
    ({"protocol": "mqtt", "mqtt_sn": ...}, "is the gateway `gateway`, but the group speaks MQTT"),
    ({"protocol": "mqtt"}, "has a table `mqtt_sn`, but speaks MQTT"),
    ({"nagle": False}, "speaks MQTT-SN, but has `nagle`"),
    ({"mqtt_sn": {"sleep": {"duration": "5 s", "wake_every": "6 s"}}}, "raise `duration`, or lower `wake_every`"),
    ({"mqtt_sn": {"predefined_topics": {"a": 1, "b": 1}}}, "each topic needs its own"),
    ({"mqtt_sn": {"predefined_topics": {"a/+": 1}}}, "which is not a topic"),
    ({"mqtt_sn": {"without_connection": True}}, "is 1, but must be 0 with `without_connection`"),
    ({"mqtt_sn": {"client_id": "one"}}, "add {client}"),
    ({"publish": {"topic": "s/0", "payload": "1466 B", "interval": "1 s"}}, "has room for 1463 B, and MQTT-SN does"),
    ({"publish": {"topic": "s/" + 1500 * "x", "payload": "1 B", "interval": "1 s"}}, "has room for a topic of 1463 B"),
])
def test_what_does_not_fit_is_refused_with_its_place_and_a_remedy(change: dict[str, Any], said: str) -> None:
    values = scenario()
    group = {name: value for name, value in {**values["groups"][0], **change}.items() if value is not ...}
    values["groups"][0] = group
    found = problems(values)
    assert said in found, found
    assert "groups[0]" in found or "sensors" in found or "groups" in found


def test_a_payload_that_just_fits_into_a_datagram_is_taken() -> None:
    values = scenario()
    values["groups"][0]["publish"]["payload"] = "1463 B"
    parse_values(values)


def test_a_gateway_needs_a_broker() -> None:
    values = scenario()
    values["servers"][0]["gateway"]["broker"] = "brokr"
    assert "is the unknown broker 'brokr'" in problems(values).replace('"', "'")


def test_a_gateway_needs_a_network_to_its_broker() -> None:
    values = scenario()
    before, _, office = values["networks"]
    said = problems({**values, "networks": [before, office]})
    assert "servers[0].host` is `gateway`, but no network joins it to `broker`" in said
    assert 'between = ["gateway", "broker"]' in said
    # Through a host that forwards, or on the broker's own host, it has one.
    way = [{**before, "between": pair} for pair in (["gateway", "router"], ["router", "broker"])]
    parse_values({**values, "networks": [before, office, *way], "hosts": {"router": {"forwards": True}}})
    parse_values(beside_the_gateway("broker", "transparent"))


def test_the_first_example_of_the_docs_can_be_run() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "mqtt-sn.md"
    example = page.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    plan = compile_plan(parse_values({"name": "example", "phases": {"duration": "5 s"}, **tomllib.loads(example)}))
    assert [server["name"] for server in plan["servers"]] == ["broker", "gateway"]


def test_a_gateway_can_be_simulated() -> None:
    assert compile_plan(parse_values({**scenario(), "backend": "sim"}))["servers"][1]["process"] is None


@pytest.mark.parametrize("name", ["retry", "gateways", "register", "without-connection", "sleep"])
def test_the_experiments_with_mqtt_sn_are_whole_and_their_results_are_theirs(name: str) -> None:
    directory = Path(__file__).resolve().parents[2] / "experiments" / "mqtt-sn"
    experiment = load(directory / f"{name}.toml")
    journal = (directory / "results" / f"{name}.journal.jsonl").read_text(encoding="utf-8").splitlines()
    created, *events = [json.loads(line) for line in journal]
    assert created["name"] == f"mqtt-sn-{name}" == experiment.name
    ended = [event for event in events if event["event"] == "ended"]
    assert len(ended) >= 20 and all(event["verdict"] == "complete" for event in ended)
