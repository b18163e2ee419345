"""A run of our own, recorded by the engine and imported from its own captures: the two recordings agree."""

from __future__ import annotations

import polars as pl
import pytest

from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.runs import perform
from mqttlab.scenario import compile_plan, load
from test_runs import REASON

pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")
SCENARIO = """
name = "captured"

[phases]
warm_up = "500 ms"
duration = "2 s"
cool_down = "5 s"

[recording]
pcapng = true

[[networks]]
between = ["field", "broker"]
model = "dsl"

[[groups]]
name = "publishers"
host = "field"
count = 2
publish = { topic = "gps/{client}", qos = 2, payload = "gps", interval = "100 ms" }

[[groups]]
name = "small"
host = "field"
publish = { topic = "small", qos = 1, payload = "4 B", interval = "50 ms" }

[[groups]]
name = "subscribers"
host = "field"
count = 2
subscribe = [{ filter = "gps/#", qos = 2 }, { filter = "small", qos = 1 }]
"""
KEYS = ["publisher", "sequence", "subscriber"]


def by_name(recording: Recording) -> pl.DataFrame:
    """First deliveries with the names of their clients, and times since 1970."""
    names = [client["name"] for client in recording.layout["clients"]]
    start_ns = recording.layout["started_unix_ns"]
    named = [
        pl.col(column).replace_strict(range(len(names)), names, return_dtype=pl.String)
        for column in ("publisher", "subscriber")
    ]
    times = [pl.col(f"{name}_ns") + start_ns for name in ("intended", "sent", "received")]
    return recording.messages.filter(fate="delivered").with_columns(*named, *times).select(
        *KEYS, "qos", "identified", "intended_ns", "sent_ns", "received_ns")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Recording]:
    directory = tmp_path_factory.mktemp("agreement")
    scenario = directory / "captured.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    run = perform(compile_plan(load(scenario, {}), directory / "run"), lambda line: None)
    assert run.verdict == "complete", run.reason
    captures = sorted(run.directory.glob("capture-*.pcapng"))
    outcome = import_evidence("capture", captures, directory / "imported", lambda line: None)
    return Recording.open(run.directory), Recording.open(outcome.directory)


def test_every_delivery_of_the_run_is_found_in_its_captures(recordings: tuple[Recording, Recording]) -> None:
    run, imported = (by_name(recording) for recording in recordings)
    assert run.height > 0
    assert imported.select(KEYS).sort(KEYS).equals(run.select(KEYS).sort(KEYS))
    # 4 B have no room for an identity; as soon as there are equal ones they are told apart by their order.
    assert imported.filter(qos=2)["identified"].unique().to_list() == ["payload"]
    assert imported.filter(qos=1, sequence=5)["identified"].unique().to_list() == ["order"]


def test_intended_times_are_recovered_from_the_payloads(recordings: tuple[Recording, Recording]) -> None:
    run, imported = (by_name(recording) for recording in recordings)
    both = imported.filter(identified="payload").join(run, on=KEYS, suffix="_run")
    # The start of the run is not in its messages; the most prompt of them tells it, and none is sent too early.
    assert (both["intended_ns"] >= both["intended_ns_run"]).all()
    assert (both["intended_ns"] <= both["sent_ns"]).all()
    lateness = run.filter(qos=2).select(late=pl.col("sent_ns") - pl.col("intended_ns"))["late"]
    assert (both["intended_ns"] - both["intended_ns_run"]).min() <= lateness.max() + 1_000_000


def test_a_delivery_is_captured_before_it_arrives(recordings: tuple[Recording, Recording]) -> None:
    run, imported = (by_name(recording) for recording in recordings)
    both = imported.join(run, on=KEYS, suffix="_run")
    assert (both["received_ns"] < both["received_ns_run"]).all()


def test_the_network_layer_is_the_same(recordings: tuple[Recording, Recording]) -> None:
    values = [
        dict(recording.network_metrics.filter(scope="run").select("metric", "value").rows())
        for recording in recordings
    ]
    for metric in ("frames", "frame_bytes", "segments", "tcp_analysis_retransmissions", "mqtt_packets", "mqtt_publish",
                   "publish_overhead_bytes", "connections"):
        assert values[0][metric] == values[1][metric], metric
