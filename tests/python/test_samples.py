"""What is sampled while a run goes on: TCP's state at both ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.recording import Recording
from mqttlab.report import write_html
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

LINK = {"rate": "1 Mbit/s", "delay": "20 ms", "loss": "2 %"}
SCENARIO: dict[str, Any] = {
    "name": "sampled", "seed": 3, "phases": {"warm_up": "0.5 s", "duration": "6 s", "cool_down": "6 s"},
    "recording": {"resource_interval": "1 s"},
    "networks": [{"between": ["field", "broker"], "up": LINK, "down": LINK}],
    "groups": [
        {"name": "publishers", "host": "field", "count": 3,
         "publish": {"topic": "t/{client}", "qos": 1, "payload": "4 kB", "interval": "150 ms"}},
        {"name": "subscribers", "host": "broker", "subscribe": [{"filter": "t/#", "qos": 1}]},
    ],
}


def run(values: dict[str, Any], directory: Path, backend: str) -> Recording:
    plan = compile_plan(parse_values({**values, "backend": backend}, values["name"]))
    outcome = perform(Job(plan, directory / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(outcome.directory)




@pytest.mark.parametrize("backend", ["sim", pytest.param("live", marks=pytest.mark.live)])
def test_both_ends_of_every_connection_say_what_they_know(backend: str, tmp_path: Path) -> None:
    recording = run(SCENARIO, tmp_path, backend)
    table = recording.tcp_state
    publishers = [number for number, client in enumerate(recording.layout["clients"])
                  if client["group"] == "publishers"]
    assert set(table.select("client", "end").unique().rows()) >= {
        (client, end) for client in publishers for end in ("client", "server")}
    senders = table.filter(pl.col("client").is_in(publishers), end="client")
    # A busy machine takes fewer; those of virtual time are all there.
    samples = senders.group_by("client").len()["len"].min()
    assert samples >= (4 if backend == "sim" else 1)
    # Linux' least time-out, and a round trip of 40 ms and what 4 kB take at 1 Mbit/s.
    assert senders["rto_ns"].min() >= 200_000_000
    assert senders["srtt_ns"].drop_nulls().is_between(40_000_000, 1_500_000_000).all()
    assert senders["congestion_window_bytes"].min() >= 1448
    # 2 % of the segments are lost: somebody has a threshold by now, and something is under way at some sample.
    if samples >= 4:
        assert senders["slow_start_threshold_bytes"].is_not_null().any()
        assert senders["unacknowledged_bytes"].max() > 0
    # An end of which nothing has changed has no new row.
    repeated = senders.sort("client", "at_ns").drop("at_ns")
    assert (repeated.rows()[1:] != repeated.rows()[:-1]) and len(repeated.unique()) >= min(4, samples)
    page = write_html(recording, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "TCP: congestion windows" in page
    packets = recording.control_packets
    assert packets.select("transport", "protocol").unique().rows() == [("tcp", "mqtt")]


@pytest.mark.live
def test_both_backends_say_alike_what_tcp_knows(tmp_path: Path) -> None:
    medians = {}
    for backend in ("live", "sim"):
        table = run(SCENARIO, tmp_path / backend, backend).tcp_state.filter(pl.col("end") == "client")
        busy = table.filter(pl.col("srtt_ns").is_not_null(), pl.col("unacknowledged_bytes") > 0)
        medians[backend] = busy.select(pl.col("rto_ns", "srtt_ns", "congestion_window_bytes").median()).row(0)
    for live, simulated in zip(medians["live"], medians["sim"], strict=True):
        # Samples of a few seconds with losses; a busy machine is late, which makes round trips longer.
        assert 0.4 * simulated <= live <= 3 * simulated, medians


def test_the_interval_says_how_many_samples_there_are(tmp_path: Path) -> None:
    counts = {}
    for interval in ("100 ms", "2 s"):
        values = {**SCENARIO, "recording": {"tcp_state_interval": interval}}
        counts[interval] = run(values, tmp_path / interval.replace(" ", ""), "sim").tcp_state.height
    assert counts["100 ms"] > 5 * counts["2 s"] > 0
