"""The engine's pass says what Python said of the same tables: counts and quantiles equal, means within 1e-12."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest

import oracle.attribution
import oracle.efficiency
import oracle.link
import oracle.mqtt
import oracle.network
import oracle.overhead
import oracle.segments
import oracle.sent_again
import oracle.throughput
from mqttlab import metrics
from mqttlab.engine import summarise
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

SAMPLES = sorted(path for path in (Path(__file__).parents[1] / "schemas").glob("*/*") if path.name != "killed")
KILLED = sorted((Path(__file__).parents[1] / "schemas").glob("*/killed"))
SCOPES = ("run", "direction", "link", "group", "connection")
LINK = {"rate": "1 Mbit/s", "delay": "20 ms", "loss": "4 %"}
SCENARIO: dict[str, Any] = {
    "name": "summed", "seed": 7, "backend": "sim", "phases": {"warm_up": "1 s", "duration": "10 s", "cool_down": "9 s"},
    "hosts": {"edge": {"forwards": True}},
    "networks": [{"between": ["field", "edge"], "up": LINK, "down": LINK},
                 {"between": ["edge", "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}],
    "groups": [
        {"name": "meters", "host": "field", "count": 4, "nagle": True,
         "publish": {"topic": "m/{client}", "qos": 2, "payload": "2 kB", "interval": "300 ms"}},
        {"name": "tiny", "host": "field", "count": 2,
         "publish": {"topic": "t/{client}", "qos": 1, "payload": "4 B", "interval": "100 ms"}},
        {"name": "relays", "host": "field", "subscribe": [{"filter": "m/+", "qos": 1}],
         "relay": {"suffix": "/again", "qos": 1}},
        {"name": "readers", "host": "broker", "count": 2,
         "subscribe": [{"filter": "m/+/again", "qos": 0}, {"filter": "t/#", "qos": 2}]},
    ],
}


def same(found: pl.DataFrame, expected: pl.DataFrame, what: str) -> None:
    """Equal, but for the order of columns and the last digits of means."""
    assert set(found.columns) == set(expected.columns), what
    assert found.height == expected.height, what
    expected = expected.select(found.columns)
    floats = cs.by_dtype(pl.Float64)
    for name in found.columns:
        ours, theirs = found[name], expected[name]
        if name in expected.select(floats).columns or name in found.select(floats).columns:
            assert ours.is_null().equals(theirs.is_null()), (what, name)
            apart = (ours.cast(pl.Float64) - theirs.cast(pl.Float64)).abs() / theirs.cast(pl.Float64).abs().clip(1e-300)
            assert (apart.fill_nan(0).max() or 0) <= 1e-12, (what, name, ours, theirs)
        else:
            kind = pl.String if theirs.dtype in (pl.String, pl.Categorical) else pl.Int64
            if theirs.dtype == pl.List(pl.String):
                kind = theirs.dtype
            assert ours.cast(kind).to_list() == theirs.cast(kind).to_list(), (what, name)


def hold(recording: Recording) -> None:
    """Compare everything that is stored with what Python makes of the same tables."""
    order = ["connection", "at_s", "rtt_ms"]
    for scope in SCOPES:
        # Groups stand in the scenario's order, and in the oracle by name.
        ours, theirs = (table.sort([key for key in ("connection", "name", "direction") if key in table.columns])
                        for table in (metrics.network(recording, [scope]), oracle.network.network(recording, [scope])))
        same(ours, theirs, f"network {scope}")
    same(metrics.round_trips(recording).sort(order), oracle.network.round_trips(recording).sort(order), "round trips")
    same(metrics.links(recording), oracle.link.links(recording), "links")
    same(metrics.throughput(recording), oracle.throughput.throughput(recording), "throughput")
    same(metrics.efficiency(recording), oracle.efficiency.efficiency(recording), "efficiency")
    same(metrics.overhead(recording), oracle.overhead.overhead(recording), "overhead")
    same(metrics.packet_types(recording), oracle.mqtt.packet_types(recording), "packet types")
    same(metrics.topics(recording), oracle.mqtt.topics(recording), "topics")
    for measured in (False, True):
        same(metrics.publish_per_segment(recording, measurement_only=measured),
             oracle.segments.publish_per_segment(recording, measurement_only=measured), "publish per segment")
    same(metrics.segments_per_publish(recording), oracle.segments.segments_per_publish(recording), "segments")
    same(metrics.sent_again(recording).sort("frame"), oracle.sent_again.sent_again(recording).sort("frame"), "again")
    same(metrics.attribution(recording).drop("seen_by", "publication"), oracle.attribution.attribution(recording),
         "attribution")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_stored_sums_of_a_sample_are_those_of_its_tables(sample: Path) -> None:
    hold(Recording.open(sample))


@pytest.mark.parametrize("change", [{}, {"seed": 8, "network_again": True}], ids=["lossy", "duplicating"])
def test_stored_sums_of_a_simulation_are_those_of_its_tables(change: dict[str, Any], tmp_path: Path) -> None:
    values = {**SCENARIO, "seed": change.get("seed", 7)}
    if change:
        link = {**LINK, "duplicate": "3 %", "jitter": "10 ms"}
        values["networks"] = [{"between": ["field", "edge"], "up": link, "down": link}, SCENARIO["networks"][1]]
    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    assert (tmp_path / "run" / "summary.json").is_file()
    hold(recording)
    table = metrics.attribution(recording)
    assert table["legs"].max() == 2
    assert table["adjusted_ns"].count() > 0.9 * table.height
    assert metrics.network(recording, ["run"])["retransmissions"][0] > 10


def test_stored_sums_of_a_radio_are_those_of_its_tables(tmp_path: Path) -> None:
    meters, tiny, _, readers = SCENARIO["groups"]
    values = {name: value for name, value in SCENARIO.items() if name not in ("networks", "hosts")}
    values |= {"groups": [meters, tiny, {**readers, "host": "yard", "subscribe": [{"filter": "m/+", "qos": 1}]}],
               "radio": {"standard": "b-11", "positions": [["0 m", "0 m"], ["20 m", "0 m"], ["0 m", "20 m"]]}}
    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    hold(Recording.open(tmp_path / "run"))


@pytest.mark.live
def test_stored_sums_of_a_live_run_and_of_its_captures_are_those_of_their_tables(tmp_path: Path) -> None:
    phases = {"warm_up": "0.5 s", "duration": "3 s", "cool_down": "5 s"}
    values = {**SCENARIO, "backend": "live", "phases": phases, "recording": {"pcapng": True}}
    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    hold(Recording.open(tmp_path / "run"))
    captures = sorted((tmp_path / "run").glob("capture-*.pcapng"))
    imported = import_evidence("capture", captures, tmp_path / "imported", lambda line: None)
    assert imported.verdict == "complete", imported.reason
    hold(Recording.open(tmp_path / "imported"))


@pytest.mark.parametrize("killed", KILLED, ids=lambda path: path.parent.name)
def test_stored_sums_of_a_killed_run_are_those_of_its_tables(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "killed")
    recording = Recording.open(tmp_path / "killed")
    assert (tmp_path / "killed" / "summary.json").is_file()
    hold(recording)


def test_tables_that_have_changed_are_summed_up_anew_and_the_recording_is_left_as_it_is(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SAMPLES[-1], copy)
    summarise(copy, copy)
    said = json.loads((copy / "summary.json").read_text(encoding="utf-8"))
    assert said["packets"] == Recording.open(copy).packets.height
    before = metrics.network(Recording.open(copy), ["run"])["frames"][0]
    pl.read_parquet(copy / "packets.parquet").head(20).write_parquet(copy / "packets.parquet")
    # A table that was changed on purpose: its check is refused otherwise.
    (copy / "summary.json").write_text(json.dumps({**said, "checks": {}}), encoding="utf-8")
    (copy / "frame_sums.parquet").write_bytes(b"of other tables")
    assert metrics.network(Recording.open(copy), ["run"])["frames"][0] < before
    assert (copy / "frame_sums.parquet").read_bytes() == b"of other tables"


def test_what_an_earlier_program_summed_up_is_kept_elsewhere_and_made_once(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, kept = tmp_path / "copy", tmp_path / "kept" / "summaries"
    shutil.copytree(SAMPLES[-1], copy)
    (copy / "summary.json").unlink(missing_ok=True)
    files = {path.name: path.stat().st_mtime_ns for path in copy.iterdir()}
    made: list[Path] = []
    monkeypatch.setattr("mqttlab.recording.summarise", lambda of, out: (made.append(out), summarise(of, out)))
    expected = metrics.network(Recording.open(copy))
    for _ in range(3):
        assert metrics.network(Recording.open(copy, kept)).equals(expected)
    assert len(made) == 2 and len(list(kept.iterdir())) == 1
    assert {path.name: path.stat().st_mtime_ns for path in copy.iterdir()} == files
    # Other tables, an earlier version: made again, in the same place.
    [place] = kept.iterdir()
    said = json.loads((place / "summary.json").read_text(encoding="utf-8"))
    (place / "summary.json").write_text(json.dumps({**said, "version": said["version"] - 1}), encoding="utf-8")
    pl.read_parquet(copy / "packets.parquet").head(20).write_parquet(copy / "packets.parquet")
    for _ in range(2):
        assert metrics.network(Recording.open(copy, kept), ["run"])["frames"][0] < expected["frames"].max()  # type: ignore
    assert len(made) == 3 and list(kept.iterdir()) == [place]


def test_where_nothing_can_be_kept_a_recording_opens_all_the_same(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SAMPLES[-1], copy)
    (copy / "summary.json").unlink(missing_ok=True)
    (tmp_path / "kept").write_text("a file", encoding="utf-8")
    assert metrics.network(Recording.open(copy, tmp_path / "kept" / "summaries")).height
