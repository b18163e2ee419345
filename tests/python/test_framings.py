"""Framings on TCP: the scenario's words for them, the plan, and simulated runs. Every framing that the engine declares
is tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.metrics import deliveries, setup
from mqttlab.plan.declared import FRAMINGS
from mqttlab.recording import Recording
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_hubs import checked, problems
from test_transports import counted, opened, simulated

EVERY = pytest.mark.parametrize("framing", FRAMINGS)


def scenario(framing: str = "framed", qos: int = 1, payload: str = "100 B", link: dict[str, Any] | None = None,
             **changes: Any) -> dict[str, Any]:
    """Three publishers of twenty messages; two subscribers: behind the links, and on the broker's host. One more there
    is over plain TCP."""
    link = link or {"delay": "5 ms", "rate": "1 Mbit/s"}
    groups = [
        {"name": "sensors", "host": "field", "count": 3, "transport": framing,
         "publish": {"topic": "t/{client}", "qos": qos, "payload": payload, "interval": "100 ms"}},
        {"name": "office", "host": "field", "transport": framing, "subscribe": [{"filter": "t/+", "qos": qos}]},
        {"name": "beside", "host": "broker", "transport": {"framing": framing}, "subscribe": [
            {"filter": "t/+", "qos": qos}]},
        {"name": "plain", "host": "broker", "subscribe": [{"filter": "t/1", "qos": qos}]},
    ]
    return {
        "name": "framing", "backend": "sim", "seed": 3,
        "phases": {"duration": "2 s", "cool_down": "5 s"},
        "networks": [{"between": ["field", "broker"], "up": link, "down": link}],
        "groups": [group | {"nagle": False} | changes for group in groups],
    }


def added(recording: Recording) -> dict[str, float]:
    """What the framing added each way, bytes."""
    return {str(way): row["framing_bytes"] for way, row in counted(recording, "direction").items()}


@EVERY
def test_a_framing_is_a_word_or_a_table_and_becomes_an_endpoint(framing: str) -> None:
    plan = compile_plan(parse_values(scenario(framing)))
    ways = [group["transport"]["tcp"]["framing"] for group in plan["groups"]]  # type: ignore[index]
    assert ways == [framing, framing, framing, None]
    assert [(end["transport"], end["port"]) for end in plan["servers"][0]["endpoints"]] == [
        ("tcp", 1883), ("framed", 8090)]
    values = scenario(framing, transport={"framing": framing})
    plan = compile_plan(parse_values({**values, "broker": {"ports": {"framed": 5555}}}))
    assert plan["servers"][0]["endpoints"][1]["port"] == 5555
    assert checked(plan) == ""


@EVERY
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("payload", ["0 B", "100 B", "70 kB"])
def test_every_message_passes_and_what_is_added_is_known(
    framing: str, qos: int, payload: str, tmp_path: Path
) -> None:
    values = scenario(framing, qos, payload, link={"delay": "5 ms"})
    framed, plain = simulated(values, tmp_path / "framed"), simulated(
        scenario("tcp", qos, payload, link={"delay": "5 ms"}, transport="tcp"), tmp_path / "plain")
    assert deliveries(framed).height == deliveries(plain).height == 140
    everything, without = counted(framed, "run")["None"], counted(plain, "run")["None"]
    assert without["framing_bytes"] == 0
    assert everything["mqtt_bytes"] == without["mqtt_bytes"]
    assert everything["framing_bytes"] == (
        everything["tcp_payload_unique_bytes"] - everything["mqtt_bytes"]) > 0
    took = opened(framed)
    # Four over the links, and one beside the broker.
    assert {part: len(times) for part, times in took.items()} == {"tcp": 5, framing: 5}
    assert [time >= 10 for time in sorted(took[framing])] == [False, True, True, True, True]


def test_framed_adds_a_word_of_each_end_and_four_bytes_to_each_packet(tmp_path: Path) -> None:
    recording = simulated(scenario(), tmp_path / "run")
    packets = recording.control_packets.with_columns(pl.col("direction").cast(pl.String))
    names = dict(recording.clients.select("client", "group").rows())
    framed = packets.filter(pl.col("client").replace_strict(names, return_dtype=pl.String) != "plain")
    counts = dict(framed.group_by("direction").len().rows())
    assert added(recording) == {way: 5 * len("FRAMES?\n") + 4 * count for way, count in counts.items()}


def test_what_a_connection_took_has_a_part_of_the_framing(tmp_path: Path) -> None:
    recording = simulated(scenario(), tmp_path / "run")
    row = setup(recording).row(0, named=True)
    # Four of five are over the links.
    parts = [row[f"connect_{part}_ms_p50"] for part in ("tcp", "framing", "mqtt")]
    assert all(10 < part < 20 for part in parts), parts


@pytest.mark.parametrize(("change", "words"), [
    (lambda values: values["groups"][0].update(transport="framd"), "did you mean \"framed\""),
    (lambda values: values["groups"][0].update(transport={"framing": "fremed"}), "did you mean \"framed\""),
    (lambda values: values["groups"][0].update(transport={"framing": "framed", "tls": {}}),
     "has a `framing` beside `tls` or `websocket`"),
    (lambda values: values["groups"][0].update(transport={"framing": "framed", "websocket": {}}), "leave one out"),
    (lambda values: values.update(backend="live"),
     "`groups[0].transport` is \"framed\", which Mosquitto does not speak; use `kind = \"program\"`"),
    (lambda values: values.update(servers=[{"name": "gate", "role": "gateway"}]) or values["groups"][0].update(
        protocol="mqtt-sn"), "transport"),
    (lambda values: values["groups"][0].update(protocol="zeromq"), "transport"),
])
def test_what_cannot_be_is_refused_and_the_field_is_named(change: Any, words: str) -> None:
    values = scenario()
    change(values)
    assert words in problems(values), problems(values)


def test_the_engine_refuses_what_the_scenario_would_have_refused() -> None:
    def wrong(**tcp: Any) -> str:
        plan = json.loads(json.dumps(compile_plan(parse_values(scenario()))))
        plan["groups"][0]["transport"]["tcp"].update(tcp)
        return checked(plan)

    assert "known are framed" in wrong(framing="fremed")
    assert "a framing is alone on TCP" in wrong(websocket={"path": "/"})
    without = compile_plan(parse_values(scenario()))
    del without["servers"][0]["endpoints"][1]
    assert "`groups[0].transport` asks for an endpoint that `broker` does not have" in checked(without)


def test_plans_without_the_field_are_still_plans() -> None:
    plan = json.loads(json.dumps(compile_plan(parse_values(scenario(transport="tcp")))))
    for group in plan["groups"]:
        del group["transport"]["tcp"]["framing"]
    assert checked(plan) == ""


def test_behind_a_frame_that_was_lost_the_stream_goes_on(tmp_path: Path) -> None:
    recording = simulated(scenario(link={"delay": "5 ms", "loss": "5 %"}), tmp_path / "run")
    assert deliveries(recording).height == 140
    assert counted(recording, "run")["None"]["tcp_analysis_retransmissions"] > 0
    assert recording.control_packets.filter(pl.col("complete_ns").is_null()).is_empty()
