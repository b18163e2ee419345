"""Round trips and the timeout that follows from them: one value each, whoever is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse

SCENARIO = """
name = "round-trips"
backend = "sim"
[phases]
duration = "4 s"
[hosts.field.tcp]
profile = "{profile}"
[hosts.broker.tcp]
profile = "{profile}"
[[networks]]
between = ["field", "broker"]
up = {{ delay = "5 ms" }}
down = {{ delay = "15 ms" }}
[[groups]]
name = "publishers"
host = "field"
count = 2
publish = {{ topic = "t", qos = 0, payload = "100 B", rate = "20 /s" }}
[[groups]]
name = "subscribers"
host = "field"
subscribe = [{{ filter = "t" }}]
"""


def run(profile: str, directory: Path) -> Recording:
    plan = compile_plan(parse(SCENARIO.format(profile=profile), "round trips"))
    assert perform(Job(plan, directory), lambda event: None).verdict == "complete"
    return Recording.open(directory)


@pytest.mark.parametrize(("profile", "rto_min_ms"), [("linux", 200), ("netbsd-2005", 30)])
def test_the_timeout_honours_the_least_one_of_its_host(profile: str, rto_min_ms: float, tmp_path: Path) -> None:
    recording = run(profile, tmp_path / "run")
    trips = metrics.round_trips(recording)
    assert trips["rto_ms"].min() >= trips["rtt_ms"].min() + rto_min_ms
    # Four variations of the later, even round trips are less than the bound.
    even = trips.filter(trips["at_s"] > 2)
    assert (even["rto_ms"] - even["rtt_ms"]).min() < rto_min_ms + 120
    # There is no second opinion.
    assert not [name for name in recording.network_metrics["metric"].unique() if name.startswith("rto")]


def test_a_round_trip_has_the_same_direction_in_both_tables(tmp_path: Path) -> None:
    recording = run("linux", tmp_path / "run")
    trips = metrics.round_trips(recording)
    # Both ways are in the reports' round trip, the way of the data alone in what an observer of both ends sees.
    assert trips["rtt_ms"].min() >= 20
    seen = {
        row["direction"]: row["value"] for row in recording.network_metrics.to_dicts()
        if row["scope"] == "direction" and row["metric"] == "tcp_analysis_ack_rtt_s_min"}
    assert seen == {"to_broker": pytest.approx(0.005, abs=1e-3), "to_client": pytest.approx(0.015, abs=1e-3)}
