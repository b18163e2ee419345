"""Protocols around a hub in scenarios: what may be said of them, and what is refused with which words. Every protocol
that the engine declares is tried, with the defaults that a user has."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from commands import mqttlab
from mqttlab.engine import engine_path
from mqttlab.plan.declared import HUB_PROTOCOLS
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.hub import written
from mqttlab.scenario.load import parse_values

EVERY = pytest.mark.parametrize("protocol", HUB_PROTOCOLS)
LINK = {"delay": "5 ms", "rate": "1 Mbit/s"}


def scenario(protocol: str = "tell", qos: int = 1, loss: str = "0 %", payload: str = "100 B") -> dict[str, Any]:
    """Three publishers of twenty messages, two subscribers behind the same links and one on the hub's host."""
    link = {**LINK, "loss": loss}
    return {
        "name": "hub", "backend": "sim", "seed": 3,
        "phases": {"duration": "2 s", "cool_down": "3 s"},
        "servers": [{"name": "hub", "role": "hub", "hub": {"protocol": protocol}}],
        "networks": [{"between": ["field", "hub"], "up": link, "down": link}],
        "groups": [
            {"name": "sensors", "host": "field", "count": 3, "protocol": protocol,
             "publish": {"topic": "t/{client}", "qos": qos, "payload": payload, "interval": "100 ms"}},
            {"name": "office", "host": "field", "count": 2, "protocol": protocol, "subscribe": ["t/+"]},
            {"name": "beside", "host": "hub", "protocol": protocol, "subscribe": ["t/1"]},
        ],
    }


def problems(values: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as refused:
        parse_values(values)
    return str(refused.value)


def checked(plan: Any) -> str:
    """What the engine says of a plan."""
    done = subprocess.run([engine_path(), "check"], input=json.dumps(plan), capture_output=True, text=True, timeout=60,
                          check=False)
    assert (done.returncode == 0) == (done.stderr == ""), done.stderr
    return done.stderr


@EVERY
def test_a_scenario_becomes_a_plan_that_the_engine_takes(protocol: str) -> None:
    values = scenario(protocol, qos=0)
    for setting in HUB_PROTOCOLS[protocol].client:
        values["groups"][0].setdefault("hub", {}).setdefault("settings", {})[setting.name.removesuffix("_ns")] = (
            written(setting, setting.max) if setting.name.endswith("_ns") else setting.max)
    plan = compile_plan(parse_values(values))
    assert plan["servers"][0]["role"] == {"hub": {
        "protocol": protocol, "settings": {}, "service": plan["servers"][0]["role"]["hub"]["service"]}}
    assert plan["servers"][0]["endpoints"][0]["transport"] == "udp" and plan["groups"][0]["transport"] == "udp"
    given = {setting.name: setting.max for setting in HUB_PROTOCOLS[protocol].client}
    assert plan["groups"][0]["protocol"] == {"hub": {
        "protocol": protocol, "client_id": "{group}-{client}", "settings": given}}
    assert checked(plan) == ""


@pytest.mark.parametrize(("change", "words"), [
    (lambda values: values["groups"][0].update(hub={"settings": {"repaet": "1 s"}}),
     "`groups[0].hub.settings` has the unknown `repaet`; did you mean `repeat`?"),
    (lambda values: values["groups"][0].update(hub={"settings": {"repeat": "1 ns"}}), "between 1 ms and 3600 s"),
    (lambda values: values["groups"][0].update(hub={"settings": {"repeat": 5}}), "has `repeat`, which"),
    (lambda values: values["groups"][0].update(hub={"client_id": "same"}),
     "hub.client_id` is \"same\" for 3 clients, which cannot be told apart; add {client}"),
    (lambda values: values["groups"][0]["publish"].update(qos=2), "publish.qos` is 2, but tell has 1 at most"),
    (lambda values: values["groups"][0]["publish"].update(retain=True), "a hub of tell keeps nothing"),
    (lambda values: values["groups"][0]["publish"].update(payload="1464 B"), "room for 1456 B behind this topic"),
    (lambda values: values["groups"][1].update(subscribe=["$share/g/t/+"]), "shares no subscriptions"),
    (lambda values: values["groups"][1].update(relay={"suffix": "/r"}), "speaks tell, but has `relay`"),
    (lambda values: values["groups"][1].update(protocol="mqtt"),
     "is the hub `hub`, but the group does not speak tell"),
    (lambda values: values["groups"][1].update(protocol="tel"), "did you mean \"tell\""),
    (lambda values: values["servers"][0].pop("hub"),
     "is a hub, but does not say of what; add `hub = { protocol = \"...\" }`, one of tell"),
    (lambda values: values["servers"][0].update(role="broker", kind="mosquitto"),
     "has a table `hub`, but is a broker"),
    (lambda values: values["servers"][0]["hub"].update(settings={"room": 1}), "unknown `room`; known: none"),
])
def test_what_cannot_be_is_refused_and_the_field_is_named(change: Any, words: str) -> None:
    values = scenario()
    change(values)
    assert words in problems(values), problems(values)


def test_clients_of_a_protocol_that_has_a_hub_connect_to_none_else() -> None:
    values = scenario()
    values["servers"] = [{"name": "hub", "role": "broker", "kind": "mosquitto"}]
    assert "add one: [[servers]] with `role = \"hub\"` and `hub = { protocol = \"tell\" }`" in problems(values)


def test_the_engine_refuses_what_the_scenario_would_have_refused() -> None:
    def wrong(change: Any) -> str:
        plan = json.loads(json.dumps(compile_plan(parse_values(scenario()))))
        change(plan)
        refused = checked(plan)
        assert refused != ""
        return refused

    def of_group(**fields: Any) -> Any:
        return lambda plan: plan["groups"][0]["protocol"]["hub"].update(fields)

    assert "known are tell" in wrong(of_group(protocol="yell"))
    assert "which is no setting of the protocol" in wrong(of_group(settings={"volume": 11}))
    assert "must be between" in wrong(of_group(settings={"repeat_ns": 0}))
    assert "QoS 2" in wrong(lambda plan: plan["groups"][0]["publish"].update(qos=2))
    assert "none is fragmented" in wrong(lambda plan: plan["groups"][0]["publish"]["payload"].update(bytes=1500))
    assert "go over UDP" in wrong(lambda plan: plan["groups"][0].update(
        transport={"tcp": {"nodelay": True, "tls": None, "websocket": None}}))


def test_the_engine_says_which_hubs_there_are_and_what_a_hub_needs(tmp_path: Path) -> None:
    said = json.loads(subprocess.run([engine_path(), "declared"], capture_output=True, check=True, timeout=60).stdout)
    assert [protocol["name"] for protocol in said["hubs"]] == list(HUB_PROTOCOLS)
    settings = tmp_path / "hub.json"
    for text, words in [('{"listen": "127.0.0.1:0", "protocol": "yell", "settings": {}}', "\"yell\" is no protocol"),
                        ('{"listen": "127.0.0.1:0", "protocol": "tell", "settings": {"volume": 11}}', "volume"),
                        ('{"listen": "here", "protocol": "tell", "settings": {}}', "hub.json")]:
        settings.write_text(text, encoding="utf-8")
        done = subprocess.run([engine_path(), "hub", "--settings", settings], capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode != 0 and words in done.stderr, done.stderr


def test_the_manual_of_scenarios_says_what_can_be_set() -> None:
    manual = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenario.md").read_text(encoding="utf-8")
    for protocol, spoken in HUB_PROTOCOLS.items():
        assert f"`{protocol}`" in manual and spoken.words in manual
        assert all(setting.words in manual for setting in (*spoken.client, *spoken.hub))


def test_a_command_line_checks_such_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    file.write_text('name = "hub"\nbackend = "sim"\n[phases]\nduration = "1 s"\n'
                    '[[servers]]\nname = "hub"\nrole = "hub"\n'
                    'hub = { protocol = "tell" }\n[[groups]]\nname = "all"\nhost = "hub"\nprotocol = "tell"\n'
                    'subscribe = ["#"]\npublish = { topic = "t", payload = "9 B", rate = "5/s" }\n', encoding="utf-8")
    done = mqttlab("check", file)
    assert done.returncode == 0 and "hub mqttlab on hub, port 7400" in done.stdout, done.stdout + done.stderr
