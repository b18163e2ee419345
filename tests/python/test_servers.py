"""Servers of a scenario: `[broker]` for short, several brokers, programs, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values

LINE = {"up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}


def scenario(servers: list[dict[str, Any]], *connects_to: str | None, **changes: Any) -> dict[str, Any]:
    """A publisher and a subscriber for each of these servers, all on one host."""
    groups = []
    for number, server in enumerate(connects_to):
        joined = {} if server is None else {"connects_to": server}
        groups += [
            {"name": f"p{number}", "host": "field", **joined,
             "publish": {"topic": "t/{client}", "qos": 1, "payload": "100 B", "rate": "20 /s"}},
            {"name": f"s{number}", "host": "field", **joined, "subscribe": [{"filter": "t/#", "qos": 1}]},
        ]
    hosts = [server.get("host", server["name"]) for server in servers] or ["broker"]
    return {
        "name": "servers", "phases": {"duration": "1 s", "cool_down": "5 s"}, "servers": servers,
        "networks": [{"between": ["field", host], **LINE} for host in dict.fromkeys(hosts)], "groups": groups,
        **changes,
    }


def problems(values: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        parse_values(values)
    return "\n".join(caught.value.problems)


def test_a_broker_is_short_for_a_server_of_that_name() -> None:
    short = scenario([], None, broker={"port": 1884, "max_inflight": 5})
    long = scenario([{"name": "broker", "port": 1884, "max_inflight": 5}], "broker")
    assert compile_plan(parse_values(short)) == compile_plan(parse_values(long))


def test_nagle_is_short_for_the_tcp_table_of_a_transport() -> None:
    short, long = scenario([], None), scenario([], None)
    short["groups"][0]["nagle"] = False
    long["groups"][0]["transport"] = {"tcp": {"nagle": False}}
    plan = compile_plan(parse_values(short))
    assert plan == compile_plan(parse_values(long))
    assert [group["transport"]["tcp"]["nodelay"] for group in plan["groups"]] == [True, False]
    long["groups"][0]["nagle"] = False
    assert "has both `transport.tcp` and `nagle`" in problems(long)


def test_each_server_has_host_endpoint_process_and_links_of_its_own() -> None:
    servers = [{"name": "east"}, {"name": "west", "port": 1884, "ready": "connack", "when_it_dies": "go-on"}]
    plan = compile_plan(parse_values(scenario(servers, "east", "west")))
    east, west = plan["servers"]
    assert [plan["hosts"][server["host"]]["name"] for server in (east, west)] == ["east", "west"]
    assert east["process"]["ready"] == {"log_line": " running"} and west["process"]["ready"] == "connack"
    assert (east["when_it_dies"], west["when_it_dies"]) == ("end_run", "go_on")
    assert "listener 1884" in west["process"]["files"][0]["text"]
    assert [group["connects_to"] for group in plan["groups"]] == [0, 0, 1, 1]
    names = [link["name"] for link in plan["network"]["links"]]
    assert len(names) == len(set(names)) == 4, "random streams are derived from the names"
    joined = {(path["from"], path["to"]) for path in plan["network"]["paths"]}
    field = [host["name"] for host in plan["hosts"]].index("field")
    assert joined == {(field, 0), (0, field), (field, 1), (1, field)}


def test_a_program_is_given_its_endpoint_environment_and_files() -> None:
    program = {"command": ["serve", "{address}:{port}"], "environment": {"HOME": "{directory}"},
               "files": {"etc/a.conf": "port {port}"}}
    values = scenario([{"name": "own", "kind": "program", "program": program,
                        "ready": {"kind": "log-line", "line": "serving"}}], "own")
    process = compile_plan(parse_values(values))["servers"][0]["process"]
    assert process["command"] == ["serve", "10.77.0.1:1883"]
    assert process["environment"] == {"HOME": "{directory}"}, "filled in by the engine"
    assert process["files"] == [{"path": "etc/a.conf", "text": "port 1883"}]
    assert process["ready"] == {"log_line": "serving"}


def test_what_is_wrong_with_servers_is_said_with_place_value_and_nearest_right_value() -> None:
    east, west = {"name": "east"}, {"name": "west"}
    assert "`groups[2].connects_to` is the unknown server \"wets\"; did you mean `west`?" in problems(
        scenario([east, west], "east", "wets"))
    assert "`groups[0]` does not say to which server it connects; add `connects_to`, one of east, west" in problems(
        scenario([east, west], None, "west"))
    assert "`servers[1].name` is \"east\", which is the name of another server" in problems(
        scenario([east, east], "east", "east"))
    assert "`servers[1].port` is 1883, but server `east` listens there on the same host `one`" in problems(
        scenario([{**east, "host": "one"}, {**west, "host": "one"}], "east", "west"))
    assert "is an unknown broker \"mosquito\"; did you mean `mosquitto`?" in problems(
        scenario([{**east, "kind": "mosquito"}], "east"))
    assert "needs a `program`" in problems(scenario([{**east, "kind": "program"}], "east"))
    outside = {**east, "kind": "program", "program": {"command": ["x"], "files": {"../a": ""}}}
    assert "must be a path below the server's directory" in problems(scenario([outside], "east"))
    proxy = {**east, "role": "proxy", "kind": "program", "program": {"command": ["x"]}}
    assert "`servers[0].passes_to` is missing; a simulated proxy must know the server behind it" in problems(
        scenario([proxy], "east", backend="sim"))
    assert "`servers[0].role` is \"gateway\", but there is no broker behind it; add [broker]" in problems(
        scenario([{**proxy, "role": "gateway"}], "east", backend="sim"))
    assert "`servers[0].passes_to` is the unknown server \"wset\"; did you mean `west`?" in problems(
        scenario([{**proxy, "passes_to": "wset"}, {"name": "west"}], "east"))
    west = {**proxy, "name": "west", "passes_to": "east"}
    assert "`servers[0].passes_to` leads in a circle: east, west, east; end it at a broker" in problems(
        scenario([{**proxy, "passes_to": "west"}, west], "east"))
    passing = {"name": "east", "passes_to": "west"}
    assert "is a broker, which has no `passes_to`" in problems(scenario([passing], "east"))
