"""What the recording names beside packets and frames has its own part of a latency: connections, events, a NAT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.explanation import Story, cause, tell
from mqttlab.metrics import PARTS, evidence
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

WAN = {"name": "wan", "between": ["field", "broker"], "link": "shared", "up": {"delay": "20 ms"},
       "down": {"delay": "20 ms"}}
DEVICE = {"name": "dev", "host": "field", "publish": {"topic": "d", "qos": 0, "payload": "100 B", "interval": "1 s"}}
READER = {"name": "app", "host": "broker", "subscribe": [{"filter": "d", "qos": 1}]}
COMMANDER = DEVICE | {"name": "cmd", "host": "broker", "publish": DEVICE["publish"] | {"qos": 1}}
COMMANDED = READER | {"name": "dev", "host": "field", "mqtt": {"clean_session": False}}


def run(directory: Path, groups: list[dict[str, Any]], events: list[dict[str, Any]], **more: Any) -> Recording:
    values: dict[str, Any] = {"name": "held", "backend": "sim", "phases": {"duration": "30 s", "cool_down": "30 s"},
                              "networks": [WAN], "groups": groups, "events": events, **more}
    perform(Job(compile_plan(parse_values(values)), directory), lambda event: None)
    return Recording.open(directory)


def slowest(recording: Recording) -> dict[str, float]:
    """The parts of the slowest delivery in ms, those below 1 ms left out; and that those of all add up."""
    table = metrics.attribution(recording)
    assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    assert table.select(pl.min_horizontal(PARTS).min()).item() >= 0
    row = table.sort("latency_ns", descending=True).row(0, named=True)
    return {part.removesuffix("_ns"): row[part] / 1e6 for part in PARTS if row[part] >= 1e6}


def story(recording: Recording) -> Story:
    """Of the slowest delivery; its spans and its parts agree."""
    found = evidence(recording)
    told = tell(recording, found, found.legs.sort("latency_ns")["leg"][-1])
    for part in PARTS:
        assert sum(span.length_ns for span in told.spans if span.part == part) == told.parts[part], part
    return told


def test_what_waits_for_an_absent_subscriber_waits_for_its_connection(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", [COMMANDER, COMMANDED],
                    [{"at": "5 s", "for": "10 s", "group": "dev", "do": "disconnect"}])
    parts = slowest(recording)
    assert parts["subscriber_unconnected"] > 9000
    assert "broker_socket" not in parts and "broker_window" not in parts
    assert "had no connection" in cause(story(recording))


def test_more_messages_than_the_window_wait_for_the_connection_too(tmp_path: Path) -> None:
    often = COMMANDER | {"publish": COMMANDER["publish"] | {"interval": "100 ms"}}
    recording = run(tmp_path / "run", [often, COMMANDED],
                    [{"at": "5 s", "for": "10 s", "group": "dev", "do": "disconnect"}])
    table = metrics.attribution(recording).filter(pl.col("latency_ns") > 5e9)
    assert table.height > 40
    assert (table["subscriber_unconnected_ns"] > 0.9 * table["latency_ns"]).all()


def test_a_link_that_is_down_and_keeps_its_frames_loses_none(tmp_path: Path) -> None:
    down = {"at": "5.5 s", "for": "10 s", "network": "wan", "down": True, "queued": "keep"}
    recording = run(tmp_path / "run", [DEVICE, READER], [down])
    parts = slowest(recording)
    assert parts == pytest.approx({"link_down": parts["link_down"], "wire_to_broker": 20}, abs=0.1)
    assert parts["link_down"] > 9000
    told = story(recording)
    assert "an event of the scenario had taken down" in cause(told)
    assert [span.host for span in told.spans if span.part == "link_down_ns"] == ["field"]


def test_an_outage_at_the_publisher_is_the_links_and_then_its_connections(tmp_path: Path) -> None:
    sure = DEVICE | {"mqtt": {"keep_alive": "5 s"}, "publish": DEVICE["publish"] | {"qos": 1}}
    recording = run(tmp_path / "run", [sure, READER], [{"at": "5 s", "for": "20 s", "network": "wan", "down": True}])
    table = metrics.attribution(recording)
    long, waited = (table.filter(pl.col("latency_ns") > over) for over in (15e9, 2e9))
    assert long.height > 5
    held = long["link_down_ns"] + long["sender_unconnected_ns"]
    # The rest is TCP's: until it tries again, and finds that the broker had given the connection up.
    assert (held > 0.8 * long["latency_ns"]).all()
    assert (waited["sender_unconnected_ns"] > 1e9).all()
    assert slowest(recording)["link_down"] > 15_000


def test_a_paused_broker_holds_what_it_has_not_sent(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", [COMMANDER, COMMANDED],
                    [{"at": "10 s", "for": "5 s", "server": "broker", "do": "pause"}])
    parts = slowest(recording)
    assert parts["broker_paused"] > 4000 and "broker" not in parts
    assert "had paused" in cause(story(recording))


def test_a_reader_that_has_stopped_is_no_busy_machine(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", [COMMANDER, COMMANDED],
                    [{"at": "10 s", "for": "10 s", "group": "dev", "do": "stop-reading"}])
    parts = slowest(recording)
    assert parts["reader_stopped"] > 8000 and "delivery" not in parts
    said = cause(story(recording))
    assert "stop reading" in said and "busy" not in said


def test_a_connection_that_a_nat_forgot_is_named(tmp_path: Path) -> None:
    seldom = {"publish": DEVICE["publish"] | {"interval": "20 s", "qos": 1}, "mqtt": {"keep_alive": "60 s"}}
    recording = run(tmp_path / "run", [DEVICE | seldom, READER], [],
                    networks=[WAN | {"nat": {"timeout": "10 s"}}], phases={"duration": "60 s", "cool_down": "600 s"})
    assert (recording.packets["cause"].cast(pl.String) == "nat_forgot").any(), "the NAT dropped nothing"
    parts = slowest(recording)
    assert parts["nat_forgot"] > 0.5 * sum(parts.values())


def test_without_events_nothing_is_held(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", [COMMANDER, COMMANDED], [])
    assert recording.summary("holds").is_empty()
    held = ["sender_unconnected_ns", "link_down_ns", "nat_forgot_ns", "broker_paused_ns", "subscriber_unconnected_ns",
            "reader_stopped_ns"]
    assert metrics.attribution(recording).select(pl.sum_horizontal(held).sum()).item() == 0
