"""A recording that is damaged, or that somebody has made up, is one line; a few of the mutations of ``make soak``."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from commands import Done, mqttlab
from mqttlab import metrics, recorded
from mqttlab.plan.events import TARGETS
from mqttlab.recording import TABLES, Recording, RecordingError
from unchecked import without_checks

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))

import given
import mutations

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "schemas" / "4" / "simulated"
COUNT = 60
# Mutations that were a traceback once: `slices.at_ns` without whole numbers, `messages.phase` without a value.
FOUND = (1747, 2387)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    mutations.make(place)
    return place / "whole"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def worker(whole: Path) -> Iterator[mutations.Worker]:
    made = mutations.Worker(whole, 1)
    yield made
    made.end()


def one_line(done: Done, *words: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("mqttlab: "), done.stderr
    for word in words:
        assert word in done.stderr


def test_mutations_of_a_recording_are_the_same_answer_or_one_line(worker: mutations.Worker) -> None:
    outcomes = [worker.judge(number) for number in (*range(COUNT), *FOUND)]
    faults = [f"{outcome.number}: {outcome.words}: {outcome.fault}" for outcome in outcomes if outcome.fault]
    assert faults == [], "again: python tests/soak/mutations.py --seed 1 --only NUMBER"


def test_no_byte_of_any_file_makes_another_number_with_or_without_the_summary(whole: Path) -> None:
    made = mutations.Worker(whole, 1, of_bytes=True)
    outcomes = [made.judge(number) for number in range(150)]
    made.end()
    assert [(outcome.number, outcome.words, outcome.fault) for outcome in outcomes if outcome.fault] == []
    assert {outcome.verdict for outcome in outcomes} >= {"refused", "same"}


def test_every_file_of_a_recording_is_checked_and_a_changed_byte_in_any_is_said(run: Path) -> None:
    checks = json.loads((run / "summary.json").read_text(encoding="utf-8"))["checks"]
    files = {path.name for path in [*run.glob("*.parquet"), *run.glob("*.json")]}
    assert checks.keys() == files - {"summary.json", "origin.json"}
    for name in sorted(checks):
        path = run / name
        content = path.read_bytes()
        changed = bytearray(content)
        # Where a number may be, and no reader would notice.
        changed[len(content) // 3] ^= 1
        path.write_bytes(changed)
        recording = Recording(run)
        with pytest.raises(RecordingError, match=f"{name} cannot be read: its bytes are not those"):
            _ = (recording.plan, recording.run, recording.layout) if name.endswith(".json") else (
                recording.scan(path.stem) if path.stem in TABLES else recording.scan_summary(path.stem))
        path.write_bytes(content)


@pytest.mark.parametrize("change", [b"byte", b"longer", b"shorter"])
def test_without_the_summary_each_file_of_the_run_is_held_against_what_the_run_said(run: Path, change: bytes) -> None:
    (run / "summary.json").unlink()
    before = metrics.summary(Recording.open(run))
    checks = json.loads((run / "run.json").read_text(encoding="utf-8"))["checks"]
    assert checks.keys() >= {"plan.json", "layout.json", "messages.parquet", "packets.parquet", "events.parquet"}
    for name in sorted(checks):
        path = run / name
        content = path.read_bytes()
        middle = len(content) // 2
        path.write_bytes({b"byte": content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1:],
                          b"longer": content + b" ", b"shorter": content[:-1]}[change])
        if name.endswith(".json"):
            with pytest.raises(RecordingError, match=name):
                _ = Recording.open(run).layout
        else:
            # Of a damaged table no derived one is made either.
            with pytest.raises(RecordingError, match=f"{name} cannot be read: it"):
                Recording.open(run).scan_summary("frame_sums")
        path.write_bytes(content)
    assert metrics.summary(Recording.open(run)).equals(before)


def test_a_file_of_another_length_is_not_excused(run: Path) -> None:
    path = run / "messages.parquet"
    pl.read_parquet(path).head(3).write_parquet(path)
    one_line(mqttlab("report", run), "messages.parquet", "it is not the file that was written: it has")


@pytest.mark.parametrize("command", ["report", "report --json", "explain", "compare", "export", "open"])
def test_a_plan_that_was_edited_is_told_by_every_reader(run: Path, command: str) -> None:
    """Of a recording that has no checks, too: its digest is older."""
    without_checks(run)
    text = (run / "plan.json").read_text(encoding="utf-8")
    changed = re.sub(r'("delay_ns": *|"mean_ns": *)(\d+)', r"\g<1>\g<2>0", text, count=1)
    assert changed != text
    (run / "plan.json").write_text(changed, encoding="utf-8")
    name, *options = command.split()
    if name == "open":
        with pytest.raises(RecordingError, match="plan.json cannot be read: it is not the plan of this run"):
            Recording.open(run)
        return
    more = {"compare": [run], "export": ["--csv", run.parent / "out"]}.get(name, options)
    one_line(mqttlab(name, run, *more), "plan.json", "it is not the plan of this run (`plan_sha256`)")


def test_a_table_that_was_put_in_anothers_place_is_one_line(run: Path) -> None:
    shutil.copyfile(run / "events.parquet", run / "round_trips.parquet")
    one_line(mqttlab("report", run), "round_trips.parquet")


@pytest.mark.parametrize("table", ["round_trips", "link_sums", "packet_sums", "messages", "packets", "clients"])
@pytest.mark.parametrize("kind", [pl.String, pl.List(pl.Int64), pl.Binary])
def test_a_column_of_another_kind_is_named(run: Path, table: str, kind: pl.DataType) -> None:
    path = run / f"{table}.parquet"
    frame = pl.read_parquet(path)
    column = next(name for name in frame.columns if frame.schema[name].is_numeric())
    frame.with_columns(pl.lit(None, dtype=kind).alias(column)).write_parquet(path)
    without_checks(run)
    with pytest.raises(RecordingError, match=f"its column '{column}' is of the kind {re.escape(str(kind))}"):
        Recording(run)._scanned(path)


def test_a_client_that_is_not_there_is_named_and_a_fault_of_ours_stays_a_fault(run: Path) -> None:
    recording = Recording.open(run)
    assert recording.damage() is None
    path = run / "messages.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(subscriber=pl.lit(4_000_000_000, dtype=pl.UInt32)).write_parquet(path)
    without_checks(run)
    (run / "summary.json").unlink()
    assert "its column 'subscriber' goes from 4000000000 to 4000000000, but must be within 0 and 1" in str(
        Recording.open(run).damage())


@pytest.mark.parametrize(("name", "value", "words"), [
    ("layout.json", {"hosts": [], "links": [], "clients": {}}, "`clients` must be an array"),
    ("layout.json", {}, "`hosts` must be an array"),
    ("plan.json", {"name": "x", "groups": [{"name": 1, "count": 1}]}, "`groups[0].name` must be text"),
    ("run.json", {"status": "complete", "schema_version": "four"}, "schema version is no number"),
])
def test_what_is_missing_in_a_file_of_a_recording_is_named(run: Path, name: str, value: object, words: str) -> None:
    (run / name).write_text(json.dumps(value), encoding="utf-8")
    without_checks(run)
    one_line(mqttlab("report", run), words)


@pytest.mark.parametrize(("event", "problem"), [
    ({"medium": "wifi", "change": {"kind": "stations_off", "stations": [0]}}, None),
    ({"server": "broker", "change": {"kind": "stop", "persistence": True}}, None),
    ({"medium": "wifi", "change": {"kind": "down"}}, "`events[0]` has an unknown change"),
    ({"clients": [0], "change": {"kind": "dance"}}, "`events[0]` has an unknown change"),
    ({"change": {"kind": "stop"}}, "`events[0]` acts on nothing"),
])
def test_events_of_every_kind_are_no_damage_and_others_are_named(
    run: Path, event: dict[str, object], problem: str | None,
) -> None:
    path = run / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**plan, "events": [{"at_ns": 0, "name": "x", **event}]}), encoding="utf-8")
    without_checks(run)
    assert Recording.open(run).damage() == (problem and f"{path} is damaged: {problem}")
    assert set(recorded.TARGETS) == set(TARGETS)


def test_the_columns_of_every_table_are_those_that_the_engine_declares(run: Path) -> None:
    written = {path.stem: dict(pl.read_parquet_schema(path)) for path in run.glob("*.parquet")}
    assert len(written) > 15
    assert written == {table: recorded.schema_of(table) for table in written}


@pytest.mark.parametrize("table", ["slices", "messages", "legs", "attribution", "link_sums", "clients"])
def test_a_time_or_a_count_that_is_no_whole_number_is_named(run: Path, table: str) -> None:
    path = run / f"{table}.parquet"
    frame = pl.read_parquet(path)
    column = next(name for name in frame.columns if frame.schema[name].is_integer())
    frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(column)).write_parquet(path)
    without_checks(run)
    with pytest.raises(RecordingError, match=f"its column '{column}' is of the kind Float64, but must hold whole"):
        Recording(run)._scanned(path)


@pytest.mark.parametrize(("table", "column"), [("messages", "phase"), ("slices", "at_ns"), ("clients", "name")])
def test_a_column_that_is_never_empty_and_has_nothing_in_a_row_is_named(run: Path, table: str, column: str) -> None:
    path = run / f"{table}.parquet"
    frame = pl.read_parquet(path)
    first = pl.int_range(pl.len()) == 0
    frame.with_columns(pl.when(~first).then(pl.col(column)).alias(column)).write_parquet(path)
    without_checks(run)
    assert f"{table}.parquet is damaged: its column '{column}' has no value in 1 row," in str(
        Recording.open(run).damage())


@pytest.mark.parametrize(("column", "value"), [
    ("at_ns", 2**62), ("at_ns", -(2**62)), ("length_ns", 0), ("length_ns", -1), ("length_ns", 1)])
def test_slices_that_no_memory_would_hold_are_one_line(run: Path, column: str, value: int) -> None:
    path = run / "slices.parquet"
    frame = pl.read_parquet(path)
    first = pl.int_range(pl.len()) == 0
    frame.with_columns(pl.when(first).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)).write_parquet(path)
    without_checks(run)
    for made in (metrics.slices, metrics.throughput):
        with pytest.raises(RecordingError, match="slices.parquet is damaged: its slices cover "):
            made(Recording.open(run))
    one_line(mqttlab("report", run, "--html", run.parent / "page.html"), "slices.parquet is damaged: ")


def test_no_recording_of_an_earlier_schema_is_taken_for_a_damaged_one(tmp_path: Path) -> None:
    # Those that were killed are repaired when they are opened.
    shutil.copytree(ROOT / "tests" / "schemas", tmp_path / "schemas")
    samples = sorted(path.parent for path in (tmp_path / "schemas").glob("*/*/plan.json"))
    assert len(samples) > 5
    assert {sample: problem for sample in samples if (problem := Recording.open(sample).damage())} == {}


def test_a_damaged_run_is_listed_as_damaged(run: Path) -> None:
    path = run / "run.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'("started_at": *")2', r"\g<1>1", text, count=1), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != text
    assert "  damaged  " in mqttlab("list", "--runs", run.parent).stdout
    path.write_text(text, encoding="utf-8")
    assert "  complete  " in mqttlab("list", "--runs", run.parent).stdout
    (run / "plan.json").write_text("{", encoding="utf-8")
    assert "  damaged  " in mqttlab("list", "--runs", run.parent).stdout


def test_a_column_that_is_missing_is_named_where_it_was_needed(run: Path) -> None:
    path = run / "legs.parquet"
    pl.read_parquet(path).drop("up_frame").write_parquet(path)
    without_checks(run)
    one_line(mqttlab("explain", run), "legs.parquet is damaged: it has no column 'up_frame'")


def test_an_earlier_recording_has_no_checks_and_is_read(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "run")
    assert mqttlab("report", tmp_path / "run").returncode == 0


def test_damaged_traces_and_tables_are_taken_or_refused_in_a_line(tmp_path: Path) -> None:
    # One of them was a line of 2,668 characters once: a header without separators.
    judged = [given.judge(number, 1, tmp_path) for number in (*range(300), 12957)]
    faults = [(number, fault) for number, (_, fault) in enumerate(judged) if fault]
    assert faults == [], "again: python tests/soak/given.py --seed 1 --only NUMBER"
    # Of each file some must be taken and some refused, else the damage would be none, or too much.
    assert {words for words, _ in judged} >= {f"{name} refused" for name in given.WHOLE}
    assert {words for words, _ in judged} >= {"mahimahi.up taken", "messages.csv taken", "sizes.csv taken"}
