"""What each version of MQTT can say: fields of MQTT 5 below version 5, windows, and how long sessions last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

from live import able
from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, compile_plan, warnings_of
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.mqtt import MQTT_5, Mqtt
from mqttlab.scenario.publish import Publish

FIELDS: dict[str, Any] = {
    "session_expiry": "60 s", "receive_maximum": 7, "topic_aliases": 3, "topic_alias_maximum": 5}
PROPERTIES: dict[str, Any] = {
    "user_properties": [["site", "roof"], ["site", "yard"]], "content_type": "text/plain", "payload_format": "bytes",
    "expiry": "30 s",
    "response_topic": "answers/{client}", "correlation_data": "{group}-{client}"}


def scenario(mqtt: dict[str, Any], backend: str = "sim", **changes: Any) -> dict[str, Any]:
    line = {"delay": "50 ms"}
    return {
        "name": "versions", "backend": backend, "phases": {"duration": "5 s", "cool_down": "5 s"}, "mqtt": mqtt,
        "networks": [{"between": ["clients", "broker"], "up": line, "down": line}],
        "groups": [
            {"name": "publisher", "host": "clients",
             "publish": {"topic": "t", "qos": 1, "payload": "100 B", "rate": "50 /s"}},
            {"name": "subscriber", "host": "clients", "subscribe": [{"filter": "t", "qos": 1}]},
        ],
        **changes,
    }


def run(plan: Any, directory: Path) -> Recording:
    perform(Job(plan, directory), lambda event: None)
    return Recording.open(directory)


def test_every_field_that_says_mqtt_5_is_marked_and_tried_here() -> None:
    for part, tried in ((Mqtt, FIELDS), (Publish, PROPERTIES)):
        marked = {name for name, field in part.model_fields.items() if field.json_schema_extra == MQTT_5}
        told = {name for name, field in part.model_fields.items() if "MQTT 5" in (field.description or "")}
        assert marked == told == tried.keys()


@pytest.mark.parametrize("backend", ["sim", "live"])
@pytest.mark.parametrize("version", ["3.1", "3.1.1"])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("place", ["mqtt", "group"])
def test_a_field_of_mqtt_5_is_refused_below_version_5(
    backend: str, version: Literal["3.1", "3.1.1"], field: str, place: str,
) -> None:
    values = scenario({"version": version}, backend)
    where = "mqtt" if place == "mqtt" else "groups[0].mqtt"
    if place == "mqtt":
        values["mqtt"][field] = FIELDS[field]
    else:
        values["groups"][0]["mqtt"] = {"version": version, field: FIELDS[field]}
    with pytest.raises(ScenarioError) as caught:
        parse_values(values)
    assert f"`{where}.{field}` is set, but MQTT {version} cannot say it" in str(caught.value)
    for part in (values["mqtt"], values["groups"][0].get("mqtt", {})):
        if "version" in part:
            part["version"] = "5"
    parse_values(values)


@pytest.mark.parametrize("field", PROPERTIES)
@pytest.mark.parametrize("version", ["3.1", "3.1.1"])
@pytest.mark.parametrize("several", [False, True])
def test_a_property_of_a_message_is_refused_below_version_5(version: str, field: str, several: bool) -> None:
    values = scenario({"version": version})
    one = values["groups"][0]["publish"]
    one[field] = PROPERTIES[field]
    place = "groups[0].publish[1]" if several else "groups[0].publish"
    if several:
        values["groups"][0]["publish"] = [{"topic": "t", "payload": "9 B", "rate": "1 /s"}, one]
    with pytest.raises(ScenarioError) as caught:
        parse_values(values)
    assert f"`{place}.{field}` is set, but MQTT {version} cannot say it" in str(caught.value)
    values["mqtt"]["version"] = "5"
    parse_values(values)


def test_a_simulated_session_of_3_1_1_does_not_obey_a_receive_maximum(tmp_path: Path) -> None:
    # No scenario says so, but a plan may, and the broker must not know what no CONNECT carries.
    tables = []
    for number, receive_maximum in enumerate((65_535, 1)):
        plan = compile_plan(parse_values(scenario({"version": "3.1.1"})))
        for group in plan["groups"]:
            group["protocol"]["mqtt"]["receive_maximum"] = receive_maximum  # type: ignore[typeddict-item]
        recording = run(plan, tmp_path / str(number))
        tables.append(metrics.deliveries(recording)["latency_ms"].to_list())
        # A session of 3.1.1 has no window of its own: nothing waited for one.
        assert metrics.attribution(recording)["broker_window_ns"].to_list() == [0] * 250
    assert tables[0] == tables[1] and len(tables[0]) == 250


def test_a_receive_maximum_of_mqtt_5_is_the_window_of_the_broker(tmp_path: Path) -> None:
    plan = compile_plan(parse_values(scenario({"version": "5", "receive_maximum": 1})))
    recording = run(plan, tmp_path / "run")
    # One message in a round trip of 100 ms.
    assert metrics.deliveries(recording).height < 110


@pytest.mark.parametrize(("mqtt", "seconds"), [
    ({"version": "5"}, 0), ({"version": "5", "clean_session": False}, 3600),
    ({"version": "5", "session_expiry": "60 s"}, 60), ({"version": "5", "session_expiry": "0 s"}, 0),
    ({"version": "5", "clean_session": False, "session_expiry": "60 s"}, 60),
])
def test_a_session_of_mqtt_5_lasts_as_long_as_it_says_also_when_it_begins_clean(
    mqtt: dict[str, Any], seconds: int,
) -> None:
    plan = compile_plan(parse_values(scenario(mqtt)))
    session = plan["groups"][0]["protocol"]["mqtt"]  # type: ignore[typeddict-item]
    assert session["session_expiry_s"] == seconds


def burst(version: str, window: int, broker: int, qos: int = 2) -> dict[str, Any]:
    """Fifteen messages at once each second."""
    return scenario(
        {"version": version, "max_inflight": window}, broker={"max_inflight": broker},
        groups=[
            {"name": "publisher", "host": "clients",
             "publish": {"topic": "t", "qos": qos, "payload": "100 B", "arrival": "burst",
                         "burst": {"size": 15, "every": "1 s"}}},
            {"name": "subscriber", "host": "clients", "subscribe": [{"filter": "t", "qos": 1}]},
        ])


@pytest.mark.parametrize(("version", "window", "broker", "qos", "lost"), [
    ("3.1.1", 20, 10, 2, 25), ("3.1", 20, 10, 2, 25), ("3.1.1", 20, 20, 2, 0), ("3.1.1", 10, 10, 2, 0),
    ("3.1.1", 20, 0, 2, 0), ("5", 20, 10, 2, 0), ("3.1.1", 20, 10, 1, 0),
])
def test_qos_2_messages_beyond_the_brokers_window_are_acknowledged_and_dropped(
    version: str, window: int, broker: int, qos: int, lost: int, tmp_path: Path,
) -> None:
    values = burst(version, window, broker, qos)
    warned = [problem for problem in warnings_of(parse_values(values)) if "acknowledges QoS 2" in str(problem)]
    assert bool(warned) == bool(lost)
    recording = run(compile_plan(parse_values(values)), tmp_path / "run")
    messages = recording.messages
    gone = messages.filter(pl.col("fate") != "delivered")
    assert gone["cause"].to_list() == ["over_inflight"] * lost and messages.height == 75
    # The last five of each fifteen, as live; all of them acknowledged.
    assert {sequence % 15 for sequence in gone["sequence"]} == (set(range(10, 15)) if lost else set())
    assert gone["acknowledged_ns"].null_count() == 0
    if lost:
        said = json.dumps(recording.run["details"])
        assert recording.run["details"]["dropped_by_broker"] == lost, said


@pytest.mark.live
@pytest.mark.skipif(able() is not None, reason=str(able()))
def test_a_live_run_names_what_mosquitto_acknowledged_and_dropped(tmp_path: Path) -> None:
    recording = run(compile_plan(parse_values(burst("3.1.1", 20, 10) | {"backend": "live"})), tmp_path / "run")
    messages = recording.messages.with_columns(pl.col("fate", "cause").cast(pl.String))
    assert messages.height == 75
    lost = messages.filter(fate="lost")
    assert set(lost["cause"]) == {"over_inflight"}
    assert {sequence % 15 for sequence in lost["sequence"]} == set(range(10, 15))
    # Nothing comes behind those of the last burst, so that no client can tell what became of them.
    assert messages.filter(fate="under_way")["sequence"].to_list() == list(range(70, 75))
