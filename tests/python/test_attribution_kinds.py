"""Every delivered message of every kind of scenario is attributed, with the defaults that a user has, simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.explanation import cause, tell
from mqttlab.metrics import PARTS, evidence
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import KINDS, scenario


def run(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


@pytest.mark.parametrize("kind", KINDS)
def test_every_delivered_message_is_attributed(kind: str, tmp_path: Path) -> None:
    recording = run(KINDS[kind], tmp_path / "run")
    arrived = recording.messages.filter(pl.col("fate") == "delivered", pl.col("latency_ns").is_not_null())
    assert arrived.height > 0, "nothing was delivered"
    table = metrics.attribution(recording)
    assert table.height == arrived.height
    assert table["adjusted_ns"].null_count() == 0, "the parts of some messages are not known"
    assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    assert table.select(pl.min_horizontal(PARTS).min()).item() >= 0
    # Both ends of every link have one clock here, and nothing is compensated.
    assert table["adjusted_ns"].max() == 0
    found = evidence(recording)
    assert cause(tell(recording, found, found.legs.sort("latency_ns")["leg"][-1]))


def test_a_packet_is_complete_when_it_arrives_and_not_when_the_client_wakes_up(tmp_path: Path) -> None:
    recording = run(scenario(0, sim={"client_wake_up": "3 ms"}), tmp_path / "run")
    arrivals = set(recording.packets.filter(pl.col("direction") == "down")["delivered_ns"])
    received = recording.control_packets.filter(pl.col("direction") == "to_client", pl.col("complete_ns").is_not_null())
    assert received.height > 40
    assert set(received["complete_ns"]) <= arrivals
    assert metrics.attribution(recording)["delivery_ns"].min() == 3_000_000
