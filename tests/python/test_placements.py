"""Clients wherever they may run: on the broker's host, on others, on a direct network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import PLACEMENTS, scenario


def simulated(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def fates(recording: Recording) -> dict[str, int]:
    return dict(recording.messages.group_by("fate").len().iter_rows())


@pytest.mark.parametrize("network", ["emulated", "direct", "loopback"])
@pytest.mark.parametrize("words", PLACEMENTS)
def test_a_simulated_client_reaches_the_broker_wherever_it_runs(words: str, network: str, tmp_path: Path) -> None:
    recording = simulated(scenario(1, hosts=PLACEMENTS[words], network=network), tmp_path / "run")
    assert fates(recording) == {"delivered": 44}
    assert recording.run["warnings"] == []
    latency = recording.messages["latency_ns"]
    crossings = sum(host != "broker" for host in PLACEMENTS[words]) if network == "emulated" else 0
    # What is on the broker's host crosses no link: its latency is that of programs, and of Nagle's algorithm once.
    assert crossings * 5e6 <= latency.median() <= crossings * 5e6 + 1e6  # type: ignore[operator]


def test_frames_within_the_brokers_host_are_on_a_link_of_their_own(tmp_path: Path) -> None:
    recording = simulated(scenario(1, hosts=("field", "broker")), tmp_path / "run")
    assert recording.layout["links"] == ["field/up", "field/down", "loopback"]
    frames = recording.packets.filter(pl.col("link") == "loopback")
    assert set(frames["from_host"]) == set(frames["to_host"]) == {"broker"}
    assert set(frames["direction"]) == {"up", "down"}
    assert (frames["delivered_ns"] == frames["entered_ns"]).all()


def test_a_loopback_device_carries_large_segments(tmp_path: Path) -> None:
    recording = simulated(scenario(0, payload="200 kB", rate="5 /s", hosts=("broker", "field")), tmp_path / "run")
    largest = recording.packets.group_by("link").agg(pl.col("ip_bytes").max())
    sizes = dict(largest.iter_rows())
    # Linux's loopback device has an MTU of 65,536 B, and the length of an IPv4 packet 16 bits.
    assert sizes["loopback"] == 65_535
    assert sizes["field/down"] == 1500


def test_a_client_that_sends_faster_than_the_broker_serves_is_held_by_its_window(tmp_path: Path) -> None:
    # Nothing between them takes time, so that nothing but the broker slows the publisher.
    values = scenario(0, hosts=("broker", "broker"), publish={"arrival": "back-to-back"},
                      phases={"warm_up": "0 s", "duration": "500 ms", "cool_down": "20 s"})
    values["hosts"] = {"broker": {"tcp": {"profile": "linux", "send_buffer": "64 kB", "receive_buffer": "64 kB"}}}
    recording = simulated(values, tmp_path / "run")
    sent = recording.messages["sent_ns"].drop_nulls()
    # 30 us of service for each; 128 kB wait in the sockets.
    assert 10_000 < sent.len() < 30_000
    assert sent.max() - sent.min() > 400_000_000  # type: ignore[operator]


def test_frames_of_the_broker_are_not_those_of_a_client_on_its_host(tmp_path: Path) -> None:
    recording = simulated(scenario(1, hosts=("field", "broker"), phases={"duration": "1 s"}), tmp_path / "run")
    start, end = recording.layout["warm_up_end_ns"], recording.layout["measurement_end_ns"]
    sent = recording.packets.filter(
        pl.col("link") == "loopback", pl.col("direction") == "up",
        pl.col("entered_ns").is_between(start, end, closed="left"))
    of_groups = dict(metrics.efficiency(recording).select("group", "frames_sent").iter_rows())
    assert of_groups["subscribers"] == sent.height
