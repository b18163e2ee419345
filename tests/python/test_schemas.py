"""Recordings of every schema that ever landed open, for ever; a small sample of each is in tests/schemas."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import commands
from mqttlab.recording import ADDED, SCHEMA_VERSION, SUM_TABLES, TABLES, Recording, RecordingError

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(path for path in (ROOT / "tests" / "schemas").glob("*/*") if path.name != "killed")
KILLED = sorted((ROOT / "tests" / "schemas").glob("*/killed"))


@pytest.fixture(params=SAMPLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy, for reports are written beside the tables."""
    copy = tmp_path / request.param.name
    shutil.copytree(request.param, copy)
    return copy


def mqttlab(*words: str | Path) -> str:
    done = commands.mqttlab(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_older_recording_has_its_report(sample: Path) -> None:
    words = mqttlab("report", sample, "--full")
    assert "sample: latency in ms, by QoS" in words
    assert "Network layer" in words
    assert (sample / "report.html").stat().st_size > 10_000


def test_an_older_recording_is_explained_compared_and_exported(sample: Path, tmp_path: Path) -> None:
    mqttlab("explain", sample)
    assert list(sample.glob("explain-*.html"))
    assert "sample" in mqttlab("compare", "--full", sample, SAMPLES[0])
    mqttlab("export", sample, "--csv", tmp_path / "csv", "--xlsx", tmp_path / "run.xlsx")
    assert {path.stem for path in (tmp_path / "csv").iterdir()} >= set(TABLES)


def test_there_is_a_sample_of_every_schema_that_landed() -> None:
    known = {path.parent.name for path in SAMPLES}
    assert known == {path.parent.name for path in KILLED} == {str(version) for version in range(1, SCHEMA_VERSION + 1)}


def test_columns_that_came_later_are_empty_in_older_recordings(sample: Path) -> None:
    recording = Recording.open(sample)
    for name, columns in ADDED.items():
        table = recording.table(name)
        if name in SUM_TABLES and table.is_empty():
            # A recording with all its messages has no sums.
            continue
        for column, kind in columns.items():
            assert table.schema[column] == kind, (name, column)
            if recording.run["schema_version"] == 1:
                assert table[column].null_count() == table.height


def test_every_column_of_the_reference_is_there_in_an_older_recording(sample: Path) -> None:
    page = (ROOT / "docs" / "reference" / "recording.md").read_text(encoding="utf-8")
    recording = Recording.open(sample)
    for name in TABLES:
        section = page.split(f"\n### {name}\n")[1].split("\n### ")[0]
        described = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
        assert described
        missing = set(described) - set(recording.table(name).columns)
        assert not missing, f"name them, with their types, in ADDED[{name!r}] of mqttlab/recording.py"


@pytest.mark.parametrize("killed", KILLED, ids=lambda path: path.parent.name)
def test_an_older_killed_run_is_recovered(killed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "killed"
    shutil.copytree(killed, copy)
    spool = (killed / "received.spool").read_bytes()
    record_bytes = int.from_bytes(spool[12:16], "little")
    recording = Recording.open(copy)
    assert not recording.complete
    # Records of one size, which stands in the header of 32 bytes.
    assert recording.messages.filter(recording.messages["sent_ns"].is_not_null())["sequence"].len() >= 1
    assert recording.table("messages")["received_ns"].count() == (len(spool) - 32) // record_bytes
    assert recording.packets.height > 50


def test_a_recording_of_a_later_schema_is_refused_in_words(sample: Path) -> None:
    path = sample / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**run, "schema_version": SCHEMA_VERSION + 1}), encoding="utf-8")
    with pytest.raises(RecordingError, match=f"schema version {SCHEMA_VERSION + 1}, but this program knows"):
        Recording.open(sample)
