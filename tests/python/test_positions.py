"""Where clients and radio stations were: live and simulated alike, and as captures show it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import able, in_both
from mqttlab.imports import import_evidence
from mqttlab.recording import ADDED, Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

PHASES = {"warm_up": "0 s", "duration": "3 s", "cool_down": "5 s"}
WALK = {"standard": "b-11", "area": "80 m x 60 m", "mobility": {"speed": ["4 m/s", "9 m/s"]}}
PLACES = [["1 m", "2 m"], ["10.5 m", "0 m"], ["0 m", "10 m"]]
SCENARIOS: dict[str, dict[str, Any]] = {
    "moving": scenario(0, count=2, radio=WALK, hosts=("field", "far"), phases=PHASES,
                       recording={"tcp_state_interval": "250 ms"}),
    "still": scenario(0, radio={"standard": "b-11", "positions": PLACES}, hosts=("field", "far"), phases=PHASES),
    "reports": scenario(1, count=3, payload="gps", rate="20 /s", phases=PHASES, recording={"pcapng": True}),
    "nothing": scenario(0, phases=PHASES),
}  # fmt: skip
PLACE = ("longitude_deg", "latitude_deg", "altitude_m")


def simulate(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values({**values, "backend": "sim"})), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    """Every scenario in both backends; simulated alone where the kernel does not permit more."""
    directory = tmp_path_factory.mktemp("runs")
    if able() is None:
        return in_both(SCENARIOS, directory, at_once=2)
    return {name: {"sim": simulate(values, directory / name)} for name, values in SCENARIOS.items()}


def both(pairs: dict[str, dict[str, Recording]], name: str) -> list[Recording]:
    return list(pairs[name].values())


def test_stations_walk_alike_in_both(pairs: dict[str, dict[str, Recording]]) -> None:
    tables = [recording.positions for recording in both(pairs, "moving")]
    until = min(table["at_ns"].max() for table in tables)  # type: ignore[type-var]
    assert until is not None and until >= 2_500_000_000  # type: ignore[operator]
    first, *others = [table.filter(pl.col("at_ns") <= until).sort("at_ns", "host", "client") for table in tables]
    assert all(other.equals(first) for other in others)
    # Every quarter of a second; the broker's station has no client, the field's has two.
    assert (first["at_ns"] % 250_000_000 == 0).all() and first["at_ns"].n_unique() >= 11
    assert first["client"].n_unique() == 4 and first.filter(pl.col("client").is_null())["host"].n_unique() == 1
    assert first["source"].unique().to_list() == ["station"] and first.select(PLACE).null_count().row(0) == (
        first.height,) * 3
    assert first["x_m"].is_between(0, 80).all() and first["y_m"].is_between(0, 60).all()
    # As fast as they may be, but for corners.
    steps = first.filter(client=0).select(pl.col("x_m", "y_m").diff() ** 2).drop_nulls().sum_horizontal().sqrt() / 0.25
    assert steps.max() <= 9.001 and steps.median() >= 3  # type: ignore[operator]


def test_a_station_that_stands_still_is_told_once(pairs: dict[str, dict[str, Recording]]) -> None:
    for recording in both(pairs, "still"):
        table = recording.positions.sort("host")
        assert table["at_ns"].to_list() == [0, 0, 0]
        hosts = [recording.layout["hosts"][host] for host in table["host"]]
        places = dict(zip(hosts, table.select("x_m", "y_m").rows(), strict=True))
        assert sorted(places.values()) == sorted([(1, 2), (10.5, 0), (0, 10)])
        assert places["broker"] == (1, 2)
        assert table["link"].n_unique() == 1


def test_clients_are_where_their_messages_say(pairs: dict[str, dict[str, Recording]]) -> None:
    tables = {}
    for backend, recording in pairs["reports"].items():
        table = recording.positions.sort("client", "at_ns")
        sent = recording.messages.unique(["publisher", "sequence"])
        assert table.height == sent.height > 150 and table["source"].unique().to_list() == ["payload"]
        assert table["longitude_deg"].is_between(10, 11).all() and table["latitude_deg"].is_between(59, 60).all()
        assert table["x_m"].null_count() == table["link"].null_count() == table.height
        assert table["host"].null_count() == 0
        tables[backend] = table.group_by("client", maintain_order=True).agg(pl.col(PLACE).head(50))
    if "live" in tables:
        assert tables["live"].equals(tables["sim"])


@pytest.mark.live
def test_a_capture_says_what_its_run_said(pairs: dict[str, dict[str, Recording]], tmp_path: Path) -> None:
    run = pairs["reports"]["live"]
    captures = sorted(run.directory.glob("capture-*.pcapng"))
    assert captures
    outcome = import_evidence("capture", captures, tmp_path / "imported", lambda line: None)
    imported = Recording.open(outcome.directory)
    wanted = run.positions.select(PLACE).sort(PLACE)
    assert imported.positions.select(PLACE).sort(PLACE).equals(wanted)
    assert imported.positions["client"].n_unique() == 3


def test_without_places_there_is_an_empty_table(pairs: dict[str, dict[str, Recording]]) -> None:
    for recording in both(pairs, "nothing"):
        assert recording.positions.is_empty()
        assert dict(recording.positions.schema) == ADDED["positions"]


def test_many_stations_have_rows_for_each_of_their_clients(tmp_path: Path) -> None:
    values = scenario(0, count=1500, rate="0.2 /s", radio={**WALK, "queue": 5}, payload="10 B",
                      phases={**PHASES, "duration": "2 s"})
    table = simulate(values, tmp_path / "run").positions
    assert table["client"].n_unique() == 1502 and table.group_by("client").len()["len"].min() >= 2


PUBLISHER = '''
import json, sys, time
import paho.mqtt.client as mqtt

client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=sys.argv[3])
client.connect(sys.argv[1], int(sys.argv[2]))
client.loop_start()
while not client.is_connected():
    time.sleep(0.01)
print("connected", flush=True)
for number in range(5):
    place = {"type": "Point", "coordinates": [-0.5 - number, 51.25]}
    said = json.dumps({"type": "Feature", "geometry": place, "properties": {}})
    client.publish("places", said, 1).wait_for_publish(10)
client.publish("places", json.dumps({"no": "place"}), 1).wait_for_publish(10)
client.disconnect()
'''


@pytest.mark.live
def test_a_programs_places_are_read_off_its_frames(tmp_path: Path) -> None:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: make setup-test")
    program = {"command": [sys.executable, "{directory}/places.py", "{address}", "{port}", "{client_id}"],
               "files": {"places.py": PUBLISHER}, "ready_line": "connected"}
    line = {"delay": "1 ms"}
    values = {
        "name": "places", "phases": {"duration": "2 s", "cool_down": "2 s"},
        "networks": [{"between": ["field", "broker"], "up": line, "down": line}],
        "groups": [{"name": "paho", "host": "field", "client": program},
                   {"name": "sub", "host": "field", "subscribe": [{"filter": "#", "qos": 1}]}],
    }  # fmt: skip
    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    table = recording.positions.sort("at_ns")
    assert table.select("longitude_deg", "latitude_deg").rows() == [(-0.5 - number, 51.25) for number in range(5)]
    name = recording.layout["clients"][table["client"][0]]["name"]
    assert table["client"].n_unique() == 1 and "paho" in name, json.dumps(name)
