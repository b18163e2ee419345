"""A run of our own, recorded by the engine and imported from its own captures: the two recordings agree."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.text import verdict
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import load

pytestmark = pytest.mark.live
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
publish = { topic = "small", qos = 1, payload = "0 B", interval = "50 ms" }

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


def captures_of(directory: Path) -> list[Path]:
    """What the run captured, a file for each link."""
    return sorted(directory.glob("capture-*.pcapng"))


def editcap(*arguments: object) -> None:
    subprocess.run(["editcap", *map(str, arguments)], check=True, capture_output=True, timeout=60)


def cut(capture: Path, to: Path) -> None:
    """Frames as a snap length of 96 B leaves them."""
    editcap("-s", 96, capture, to)


def thinned(capture: Path, to: Path) -> None:
    """One frame in twenty is gone."""
    frames = subprocess.run(["tshark", "-r", capture, "-T", "fields", "-e", "frame.number"], check=True, timeout=60,
                            capture_output=True, text=True).stdout.split()
    # editcap takes 512 numbers at a time.
    gone = random.Random(5).sample(frames, min(len(frames) // 20, 500))
    editcap(capture, to, *gone)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Recording]:
    directory = tmp_path_factory.mktemp("agreement")
    scenario = directory / "captured.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    run = perform(Job(compile_plan(load(scenario, {})), directory / "run"), lambda line: None)
    assert run.verdict == "complete", run.reason
    outcome = import_evidence("capture", captures_of(run.directory), directory / "imported", lambda line: None)
    return Recording.open(run.directory), Recording.open(outcome.directory)


def test_every_delivery_of_the_run_is_found_in_its_captures(recordings: tuple[Recording, Recording]) -> None:
    run, imported = (by_name(recording) for recording in recordings)
    assert run.height > 0
    assert imported.select(KEYS).sort(KEYS).equals(run.select(KEYS).sort(KEYS))
    assert imported.filter(qos=2)["identified"].unique().to_list() == ["payload"]
    # Empty ones are all alike: as soon as there are several they are told apart by their order.
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
    # The emulator hands a frame over earlier by what it then takes to get to its reader.
    early_ns = recordings[0].run["details"]["emulator"]["latency_compensation_ns"]
    assert (both["received_ns"] < both["received_ns_run"] + early_ns).all()


def test_the_network_layer_is_the_same(recordings: tuple[Recording, Recording]) -> None:
    values = [
        dict(recording.network_metrics.filter(scope="run").select("metric", "value").rows())
        for recording in recordings
    ]
    for metric in ("frames", "frame_bytes", "segments", "tcp_analysis_retransmissions", "mqtt_packets", "mqtt_publish",
                   "publish_overhead_bytes", "connections"):
        assert values[0][metric] == values[1][metric], metric


@pytest.mark.skipif(shutil.which("editcap") is None or shutil.which("tshark") is None, reason="needs editcap, tshark")
@pytest.mark.parametrize("spoil", [cut, thinned])
def test_a_capture_that_misses_something_says_what_the_clients_counted_or_unknown(
    spoil: Callable[[Path, Path], None], recordings: tuple[Recording, Recording], tmp_path: Path
) -> None:
    run = recordings[0]
    files = [tmp_path / capture.name for capture in captures_of(run.directory)]
    for capture, file in zip(captures_of(run.directory), files, strict=True):
        spoil(capture, file)
    outcome = import_evidence("capture", files, tmp_path / "imported", lambda line: None)
    imported = Recording.open(outcome.directory)
    assert verdict(imported)[0] == "not valid"
    counted, found = (Counter(recording.messages["fate"].to_list()) for recording in (run, imported))
    assert set(counted) == {"delivered"}, counted
    assert set(found) <= {"delivered", "unknown", "foreign"}, found
    assert found["unknown"] > 0
    assert found["delivered"] + found["foreign"] <= counted["delivered"]
    # Clients whose CONNECT is not there are called by their addresses; 4 B have no room for an identity.
    known = by_name(imported).filter(~pl.any_horizontal(pl.col("publisher", "subscriber").str.contains(":")), qos=2)
    assert known.join(by_name(run), on=KEYS, how="anti").is_empty()
