"""A translator of addresses that forgets silent connections: live and simulated, told and counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

LIVE_AND_SIMULATED = [pytest.param("live", marks=pytest.mark.live), "sim"]


def values(forgotten: str, backend: str = "sim", **more: Any) -> dict[str, Any]:
    """A device behind a translator that forgets after 2 s gets a command every 4 s, and pings after 7 s."""
    link = {"delay": "20 ms"}
    return {
        "name": "nat", "backend": backend, "phases": {"warm_up": "0 s", "duration": "13 s", "cool_down": "10 s"},
        "mqtt": {"clean_session": False, "keep_alive": "7 s"},
        "networks": [{"between": ["home", "broker"], "up": link, "down": link,
                      "nat": {"timeout": "2 s", "forgotten": forgotten}}],
        "groups": [
            {"name": "commands", "host": "broker", "publish": {
                "topic": "c", "qos": 1, "payload": "50 B", "interval": "4 s", "start_phase": "synchronised"}},
            {"name": "device", "host": "home", "subscribe": [{"filter": "c", "qos": 1}],
             "reconnect": {"initial": "500 ms", "jitter": "0 %"}}], **more}


def recorded(directory: Path, forgotten: str, backend: str) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values(forgotten, backend))), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def latencies_s(recording: Recording) -> list[float]:
    rows = recording.messages.filter(fate="delivered").sort("intended_ns")
    return [round(latency / 1e9, 1) for latency in rows["latency_ns"]]


def refused(recording: Recording) -> dict[str, int]:
    rows = recording.packets.filter(cause="nat_forgot")
    assert rows["fate"].unique().to_list() == ["dropped"] and rows["start_ns"].null_count() == rows.height
    return dict(rows.group_by("direction").len().rows())


@pytest.mark.parametrize("backend", LIVE_AND_SIMULATED)
def test_where_segments_from_inside_are_dropped_a_client_learns_of_it_by_its_keep_alive(
    backend: str, tmp_path: Path,
) -> None:
    recording = recorded(tmp_path / "run", "drop", backend)
    # Forgotten at 2 s; the ping of 7 s is not answered until 14 s, when the client connects anew after 0.5 s.
    lost = recording.events.filter(kind="disconnect")["detail"].to_list()
    assert lost[0] == "no PINGRESP in time"
    first, *waited, _ = latencies_s(recording)
    assert first < 0.5 and waited[0] > 8, "sent at 4 s"
    counts = refused(recording)
    assert counts["down"] >= 5 and counts["up"] >= 5, "both ends repeat what they sent"


@pytest.mark.parametrize("backend", LIVE_AND_SIMULATED)
def test_where_they_revive_the_connection_a_ping_lets_repetitions_in(backend: str, tmp_path: Path) -> None:
    recording = recorded(tmp_path / "run", "revive", backend)
    assert recording.events.filter(kind="disconnect").is_empty()
    first, second, *_ = latencies_s(recording)
    # The ping comes 3 s after the command that was dropped; TCP's next repetition is that of 4 s.
    assert first < 0.5 and 3 < second < 6
    counts = refused(recording)
    assert set(counts) == {"down"}


def test_a_keep_alive_below_the_timeout_loses_nothing_and_each_host_has_its_own_connection(tmp_path: Path) -> None:
    scenario = values("drop", mqtt={"keep_alive": "1500 ms"})
    scenario["mqtt"] = {"keep_alive": "1 s"}
    scenario["networks"][0]["link"] = "each"
    scenario["groups"][1]["count"] = 3
    plan = compile_plan(parse_values(scenario))
    [nat] = plan["network"]["nats"]
    assert len(nat["outward"]) == len(nat["inward"]) == 3 and not {*nat["outward"]} & {*nat["inward"]}
    assert nat["timeout_ns"] == 2_000_000_000 and nat["forgotten"] == "drop"
    perform(Job(plan, tmp_path / "run"), lambda line: None)
    recording = Recording.open(tmp_path / "run")
    assert recording.packets.filter(pl.col("fate") == "dropped").is_empty()
    assert {*latencies_s(recording)} == {0.0}


def test_whichever_way_a_network_is_written_the_far_host_is_inside() -> None:
    one, other = values("drop"), values("drop")
    other["networks"][0]["between"] = ["broker", "home"]
    nats = [compile_plan(parse_values(each))["network"]["nats"][0] for each in (one, other)]
    paths = [compile_plan(parse_values(each))["network"] for each in (one, other)]
    for nat, network in zip(nats, paths, strict=True):
        names = {tuple(network["links"][hop["link"]]["name"] for hop in path["hops"]): (path["from"], path["to"])
                 for path in network["paths"] if path["hops"]}
        assert names[tuple(nat["outward"])][1] == 0, "towards the broker's host"


def test_check_tells_it_and_refuses_what_it_cannot_be(tmp_path: Path) -> None:
    from mqttlab.scenario import ScenarioError

    scenario = values("revive")
    scenario["groups"] = [{"name": "sensors", "host": "home", "protocol": "mqtt-sn", "connects_to": "gateway",
                           "publish": {"topic": "t", "payload": "50 B", "interval": "1 s"}}]
    scenario["servers"] = [{"name": "broker"}, {"name": "gateway", "role": "gateway"}]
    with pytest.raises(ScenarioError, match="speaks MQTT-SN, whose datagrams get another port"):
        parse_values(scenario)
    path = tmp_path / "nat.toml"
    path.write_text(
        'name = "nat"\nbackend = "sim"\nphases = { duration = "1 s" }\n[[networks]]\nbetween = ["home", "broker"]\n'
        'model = "lte"\nnat = "5 min"\n[[groups]]\nname = "a"\nhost = "home"\n'
        'publish = { topic = "t", payload = "9 B", rate = "1 /s" }\nsubscribe = ["t"]\n', encoding="utf-8")
    said = mqttlab("check", path)
    assert said.returncode == 0, said.stderr
    assert ("home – broker: NAT, which drops what comes for a TCP connection after 300 s of silence, until a client "
            "connects anew") in said.stdout
