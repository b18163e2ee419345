"""The catalogue of metrics, the long form of a recording, and the metrics of bursts, radios and publishers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.metrics.catalogue import COUNTED
from mqttlab.recording import Recording
from mqttlab.report.html import page
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from recordings import MS, Message, write

BURST = 10
LINK = {"rate": "64 kbit/s", "delay": "5 ms"}
VALUES: dict[str, Any] = {
    "name": "bursts", "backend": "sim", "phases": {"duration": "10 s", "cool_down": "3 s"},
    "networks": [{"between": ["field", "broker"], "up": LINK, "down": LINK}],
    "groups": [
        {"name": "p", "host": "field", "publish": {
            "topic": "t/{topic}", "topics": BURST, "payload": "100 B", "qos": 1, "arrival": "burst",
            "burst": {"size": BURST, "every": "1 s"}}},
        {"name": "s", "host": "broker", "subscribe": [{"filter": "t/#", "qos": 1}]},
    ],
}
RADIO: dict[str, Any] = {
    "name": "radio", "backend": "sim", "phases": {"duration": "5 s", "cool_down": "1 s"},
    "radio": {"standard": "b-11"},
    "groups": [
        {"name": "p", "host": "field", "publish": {"topic": "t", "payload": "100 B", "rate": "10 /s"}},
        {"name": "s", "host": "hall", "subscribe": ["t"]},
    ],
}
LOSSY: dict[str, Any] = {
    "name": "lossy", "backend": "sim", "phases": {"duration": "10 s", "cool_down": "30 s"},
    "networks": [{"between": [host, "broker"], "up": {**LINK, "loss": "5 %"}, "down": {**LINK, "loss": "5 %"}}
                 for host in ("field", "hall")],
    "groups": [
        {"name": "p", "host": "field", "count": 2,
         "publish": {"topic": "t", "payload": "300 B", "qos": 2, "rate": "5 /s"}},
        {"name": "s", "host": "hall", "subscribe": [{"filter": "t", "qos": 2}]},
    ],
}
ALL_VALUES = (VALUES, RADIO, LOSSY)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    directory = tmp_path_factory.mktemp("runs")
    for values in ALL_VALUES:
        outcome = perform(Job(compile_plan(parse_values(values)), directory / values["name"]), lambda line: None)
        assert outcome.verdict == "complete", outcome.reason
    return {values["name"]: Recording.open(directory / values["name"]) for values in ALL_VALUES}


@pytest.mark.parametrize("family", metrics.FAMILIES, ids=lambda family: family.table)
def test_every_family_names_its_scopes_and_what_computes_it(family: metrics.Family) -> None:
    assert family.scopes and family.metrics
    package, _, functions = family.implementation.rpartition(".")
    assert package == "mqttlab.metrics"
    assert all(callable(getattr(metrics, name)) for name in functions.split(", "))


def test_a_wider_place_shows_what_a_narrow_one_shows() -> None:
    for family in metrics.FAMILIES:
        narrow, wide, on_page, data = (family.columns(place) for place in ("narrow", "wide", "page", "data"))
        assert set(narrow) <= set(wide) <= set(on_page) <= set(data)
        assert data == tuple(metric.name for metric in family.metrics)


@pytest.mark.parametrize("name", ["bursts", "radio", "lossy"])
def test_the_long_form_has_declared_metrics_with_their_units(name: str, recordings: dict[str, Recording]) -> None:
    table = metrics.summary(recordings[name])
    assert table.columns == ["scope", "name", "metric", "value", "unit"]
    assert table["value"].null_count() == 0
    assert set(table["metric"]) <= set(metrics.ALL)
    assert all(metrics.ALL[metric].unit == unit for metric, unit in table.select("metric", "unit").unique().rows())
    assert table.filter(pl.col("scope") == "run")["name"].null_count() == table.filter(pl.col("scope") == "run").height
    assert table.filter(pl.col("scope") != "run")["name"].null_count() == 0
    assert table.select("scope", "name", "metric").is_duplicated().sum() == 0


def test_every_number_of_the_tables_is_in_the_long_form(recordings: dict[str, Recording]) -> None:
    recording = recordings["bursts"]
    found = {tuple(row[:3]): row[3] for row in metrics.summary(recording).rows()}
    for row in metrics.application(recording).iter_rows(named=True):
        for metric, value in row.items():
            if metric != "qos" and value is not None:
                assert found["qos", str(row["qos"]), metric] == value
    for row in metrics.network(recording).iter_rows(named=True):
        named = [row["name"], row["direction"]]
        name = ", ".join(part for part in named if part) or None
        for metric, value in row.items():
            if metric in metrics.ALL and value is not None:
                assert found[row["scope"], name, metric] == value
    [energy] = [metric for metric in metrics.summary(recordings["radio"], tables=["energy"], scopes=["run"]).rows()
                if metric[2] == "energy_j"]
    assert energy[3] == metrics.energy(recordings["radio"])["energy_j"][0]


def test_tables_and_scopes_are_chosen(recordings: dict[str, Recording]) -> None:
    recording = recordings["bursts"]
    chosen = metrics.summary(recording, tables=["network", "application"], scopes=["run"])
    assert set(chosen["scope"]) == {"run"}
    assert {"messages_sent", "frames"} <= set(chosen["metric"])
    assert "connect_ms_p50" not in set(chosen["metric"])


@pytest.mark.parametrize("name", ["bursts", "lossy"])
def test_what_engine_and_package_both_count_is_equal(name: str, recordings: dict[str, Recording]) -> None:
    recording = recordings[name]
    own = {metric.name for family in metrics.FAMILIES for metric in family.metrics}
    shared = [metric.name for metric in COUNTED if metric.name in own]
    assert {"frames", "ip_bytes", "tcp_analysis_retransmissions", "mqtt_packets"} <= set(shared)
    counted = {(row["scope"], row["direction"], row["metric"]): row["value"]
               for row in recording.network_metrics.iter_rows(named=True) if row["connection"] is None}
    compared = 0
    for row in metrics.network(recording, ["run", "direction"]).iter_rows(named=True):
        for metric in shared:
            # The engine has a connection in the direction to the broker only.
            if row.get(metric) is None or (metric == "connections" and row["direction"] == "to_client"):
                continue
            assert counted[row["scope"], row["direction"], metric] == pytest.approx(row[metric], rel=1e-12), metric
            compared += 1
    assert compared > 30
    if name == "lossy":
        assert counted["run", None, "tcp_analysis_retransmissions"] > 0, "something was sent again"


def test_a_burst_takes_at_least_what_its_frames_take_on_the_link(recordings: dict[str, Recording]) -> None:
    [row] = metrics.bursts(recordings["bursts"]).to_dicts()
    assert (row["publisher_group"], row["subscriber_group"], row["qos"]) == ("p", "s", 1)
    assert (row["bursts"], row["bursts_complete"]) == (10, 10)
    # Payload, topic and at least 2 + 2 + 2 bytes of MQTT for each message, at 64 kbit/s, and 5 ms of propagation.
    least_ms = BURST * (100 + 3 + 6) * 8 / 64
    assert row["burst_completion_ms_mean"] >= least_ms + 5
    assert row["burst_spread_ms_mean"] <= row["burst_completion_ms_mean"]
    assert row["burst_completion_ms_p50"] <= row["burst_completion_ms_p99"] <= row["burst_completion_ms_max"] < 1000
    latest = metrics.application(recordings["bursts"])["latency_ms_max"][0]
    assert row["burst_completion_ms_max"] == pytest.approx(latest), "all of a burst are due at once"


def in_bursts(directory: Path, rows: list[Message], size: int) -> Recording:
    run = write(directory / "run", rows)
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    plan["groups"][0]["publish"] = {"arrival": {"kind": "burst", "size": size, "interval_ns": MS, "gap_ns": 0}}
    (run / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return Recording.open(run)


def test_completion_is_from_the_first_due_time_to_the_last_arrival(tmp_path: Path) -> None:
    # Due every 100 ms, in bursts of two.
    rows = [Message(0, 10), Message(1, 30), Message(2, 500), Message(3, 20)]
    [row] = metrics.bursts(in_bursts(tmp_path, rows, 2)).to_dicts()
    # 0 → 130 and 200 → 700; arrivals at 10 and 130, 700 and 320.
    assert row["burst_completion_ms_mean"] == pytest.approx((130 + 500) / 2)
    assert row["burst_spread_ms_max"] == pytest.approx(380)


def test_a_burst_that_lost_a_message_is_not_complete_and_one_of_the_warm_up_does_not_count(tmp_path: Path) -> None:
    rows = [Message(0, 10, phase="warm_up"), Message(1, 10), Message(2, 10), Message(3, None, fate="lost"),
            Message(4, 10), Message(5, 10), Message(5, 50, fate="duplicate")]
    [row] = metrics.bursts(in_bursts(tmp_path, rows, 2)).to_dicts()
    assert (row["bursts"], row["bursts_complete"]) == (2, 1)
    assert row["burst_completion_ms_max"] == pytest.approx(110)


def test_without_bursts_there_is_no_table(tmp_path: Path) -> None:
    assert metrics.bursts(Recording.open(write(tmp_path / "run", [Message(0)]))).is_empty()


def test_effective_throughput_counts_topic_payload_and_one_byte_of_each_message_once(tmp_path: Path) -> None:
    rows = [Message(i) for i in range(8)] + [Message(0, subscriber=0), Message(9, None, fate="unsent", subscriber=None)]
    table = metrics.application(Recording.open(write(tmp_path / "run", rows)))
    assert table["effective_throughput_kbit_s"].to_list() == [pytest.approx(8 * (1 + 100 + 1) * 8 / 1000 / 10)]


def test_energy_is_that_of_the_stations_by_run_group_and_station(recordings: dict[str, Recording]) -> None:
    recording = recordings["radio"]
    rows = {(row["scope"], row["name"]): row for row in metrics.energy(recording).to_dicts()}
    told = recording.run["details"]["stations"]
    whole = rows["run", None]
    assert whole["stations"] == 3
    assert whole["energy_j"] == pytest.approx(sum(station["energy_j"] for station in told))
    assert {name for scope, name in rows if scope == "station"} == {"field", "hall", "broker"}
    assert rows["group", "p"]["energy_j"] == rows["station", "field"]["energy_j"]
    delivered = recording.messages.filter(pl.col("fate") == "delivered").height
    assert delivered >= 45
    subscribers = rows["group", "s"]
    assert subscribers["energy_mj_per_delivery"] == pytest.approx(1e3 * subscribers["energy_j"] / delivered)
    assert rows["station", "broker"]["energy_mj_per_delivery"] is None, "no client is there"
    for row in rows.values():
        assert 0 < row["radio_active_percent"] < 100
        # Every message is at least one frame and its acknowledgement in the air.
        assert row["wake_ups"] >= delivered


def test_energy_of_a_group_that_shares_its_stations_is_not_told(tmp_path: Path) -> None:
    run = write(tmp_path / "run", [Message(0)], hosts=(0, 0))
    told = json.loads((run / "run.json").read_text(encoding="utf-8"))
    told["details"] = {"stations": [
        {"host": host, "transmit_s": 1.0, "receive_s": 2.0, "idle_s": 7.0, "energy_j": 5.0} for host in (0, 1)]}
    (run / "run.json").write_text(json.dumps(told), encoding="utf-8")
    table = metrics.energy(Recording.open(run))
    assert table["scope"].to_list() == ["run", "station", "station"]
    assert table["radio_active_s"].to_list() == [6, 3, 3]
    assert table["radio_active_percent"].to_list() == [30, 30, 30]
    assert table["energy_mj_per_delivery"].to_list() == [10_000, 5_000, None]
    assert table["wake_ups"].null_count() == 3, "recordings from before they were counted"


def test_the_tables_of_the_report_say_how_many_messages_they_cover(recordings: dict[str, Recording]) -> None:
    text = page(recordings["bursts"])
    assert "Covers the messages of the measurement: 100 sent, 100 deliveries expected" in text
    assert "Covers the whole run: 2 connects, 1 subscription, 100 acknowledged messages." in text
    assert "PUBLISH packets.</p>" in text
    assert ">Bursts</h2>" in text
    radio = page(recordings["radio"])
    assert ">Energy</h2>" in radio and "first deliveries." in radio
