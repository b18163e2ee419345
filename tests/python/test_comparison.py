"""Two sides compared: groups of runs with verdicts, and two runs message by message, down to the frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from mqttlab import comparison
from mqttlab.cli.main import main
from mqttlab.comparison import ByMessage, ComparisonError
from mqttlab.comparison.frames import NAME, named_frames
from mqttlab.comparison.words import head, what_happened
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse
from recordings import Message, write

SCENARIO = """
name = "line"
backend = "sim"
seed = 7
repetitions = 4
[phases]
duration = "2 s"
cool_down = "20 s"
[[networks]]
between = ["field", "broker"]
up = { rate = "1 Mbit/s", delay = "20 ms", loss = "1 %" }
down = { rate = "1 Mbit/s", delay = "20 ms", loss = "1 %" }
[[groups]]
name = "publishers"
host = "field"
count = 3
publish = { topic = "t/{client}", qos = 1, payload = "100 B", rate = "20 /s" }
[[groups]]
name = "subscribers"
host = "field"
subscribe = [{ filter = "#", qos = 1 }]
"""
LOSS = {"networks[0].up.loss": "5 %"}


def run(directory: Path, changes: dict[str, Any] | None = None, repetition: int = 0) -> Path:
    plan = compile_plan(parse(SCENARIO, "line", changes or {}), repetition)
    assert perform(Job(plan, directory), lambda event: None).verdict == "complete"
    return directory


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``few/0`` to ``3`` with 1 % loss on the way up, ``many`` with 5 %, ``again`` as ``few``."""
    place = tmp_path_factory.mktemp("runs")
    for repetition in range(4):
        run(place / "few" / str(repetition), repetition=repetition)
        run(place / "many" / str(repetition), LOSS, repetition)
    run(place / "again", repetition=0)
    return place


def pair(runs: Path, second: str = "many/0") -> ByMessage:
    [found] = comparison.compare(str(runs / "few" / "0"), str(runs / second)).by_message
    return found


def test_two_runs_that_differ_in_one_knob_name_it(runs: Path) -> None:
    found = comparison.compare(str(runs / "few" / "0"), str(runs / "many" / "0"))
    assert found.changed == [("network.links[field/up].loss.probability", "[1, 100]", "[1, 20]")]
    assert "same random streams" in found.design


def test_scenarios_differ_in_what_was_written_and_in_what_replaced_it(tmp_path: Path) -> None:
    texts = (SCENARIO, SCENARIO.replace("seed = 7", "seed = 8").replace('rate = "20 /s"', 'rate = "10 /s"').replace(
        "count = 3\n", ""))
    settings: tuple[dict[str, Any], ...] = (
        {}, {"groups[1].host": "far"}, {"networks[0].up.loss": "5 %", "live.port": 1999})
    sides = []
    for number, (text, replaced) in enumerate(zip((*texts, texts[1]), settings, strict=True)):
        write(tmp_path / str(number), [Message(sequence=1)])
        origin = {"scenario": {"toml": text, "settings": replaced}}
        (tmp_path / str(number) / "origin.json").write_text(json.dumps(origin), encoding="utf-8")
        sides.append(comparison.side(str(number), [tmp_path / str(number)], ""))
    assert comparison.scenario_changes(sides[0], sides[1]) == [
        ("groups[publishers].count", "3", "–"), ("groups[publishers].publish.rate", "20 /s", "10 /s"),
        ("groups[subscribers].host", "field", "far")]
    assert comparison.scenario_changes(sides[1], sides[2]) == [
        ("networks[0].up.loss", "1 %", "5 %"), ("groups[subscribers].host", "far", "field"), ("live.port", "–", "1999")]
    # A side whose runs differ has all values of theirs; an import has no scenario.
    mixed = comparison.side("both", [tmp_path / "1", tmp_path / "2"], "")
    assert ("networks[0].up.loss", "1 %", "1 %, 5 %") in (comparison.scenario_changes(sides[0], mixed) or [])
    assert comparison.scenario_changes(sides[0], sides[0]) == []
    (tmp_path / "2" / "origin.json").write_text("[]", encoding="utf-8")
    assert comparison.scenario_changes(sides[0], sides[2]) is None


def test_what_the_lower_loss_drops_the_higher_one_drops_too(runs: Path) -> None:
    """The dice of a frame are its name's: a frame that is lost with 1 % is lost with 5 %, where both send it."""
    both = pair(runs).frames.filter(pl.col("frame").is_not_null(), pl.col("frame_second").is_not_null())
    lost = both.filter(pl.col("fate") == "dropped")
    assert lost.height and lost["fate_second"].unique().to_list() == ["dropped"]
    parted = pair(runs).parted.filter(pl.col("other_fate").is_not_null())
    assert parted["lost_in"].unique().to_list() == [2] and parted["link"].unique().to_list() == ["field/up"]


def test_every_segment_has_a_name_of_its_own(runs: Path) -> None:
    frames = named_frames(pair(runs).first)
    assert frames.height == pair(runs).first.packets.height
    assert frames.select(NAME).is_unique().all()
    assert frames.select(pl.col(NAME).null_count()).sum_horizontal().item() == 0


def test_each_message_that_differs_says_why(runs: Path) -> None:
    found = pair(runs)
    own = found.different.filter(pl.col("reason") == "its own segment")
    assert own.height
    told = []
    for record in own.iter_rows(named=True):
        for row in record["lost_frames"]:
            lost = found.parted.row(row, named=True)
            recording = (found.first, found.second)[lost["lost_in"] - 1]
            names = [client["name"] for client in recording.layout["clients"]]
            publishes = recording.control_packets.filter(
                pl.col("kind") == "PUBLISH", pl.col("publisher") == names.index(record["publisher"]),
                pl.col("sequence") == record["sequence"], pl.col("connection") == lost["connection"],
                pl.col("direction") == lost["direction"])
            # The frame carried a byte of the message.
            assert (publishes["stream_start"] < lost["end"]).all() and (publishes["stream_end"] > lost["start"]).all()
        words = " ".join(what_happened(found, record))
        assert "It was in frame" in words and " lost on field/" in words and "random loss" in words
        told.append(words)
    assert any("which run 2 lost on field/up" in words and "; in run 1 it is frame" in words for words in told)
    behind = found.different.filter(pl.col("reason") == "a segment before it")
    assert behind.height and "It waited for frame" in what_happened(found, behind.row(0, named=True))[0]
    assert " ms → " in head(own.row(0, named=True))
    assert set(found.different["reason"]) <= {"its own segment", "a segment before it", "waiting"}


def test_the_same_run_twice_differs_in_nothing(runs: Path) -> None:
    found = pair(runs, "again")
    assert found.different.is_empty() and found.parted.is_empty()
    assert found.fates.rows() == [("delivered", "delivered", 120)]
    whole = comparison.compare(str(runs / "few" / "0"), str(runs / "again"))
    assert whole.changed == [] and all(row.percent == 0 for row in whole.rows)


def test_another_fate_is_told_with_its_cause(tmp_path: Path) -> None:
    """A broker that queues three messages drops what does not fit while the subscriber's link is slow."""
    slow = {"networks[0].down.rate": "20 kbit/s", "broker.max_inflight": 1, "groups[0].publish.rate": "60 /s"}
    run(tmp_path / "long", slow)
    run(tmp_path / "short", {**slow, "broker.max_queued": 3})
    [found] = comparison.compare(str(tmp_path / "long"), str(tmp_path / "short")).by_message
    fates = {(first, second): count for first, second, count in found.fates.iter_rows()}
    assert fates["delivered", "lost"] > 0
    lost = found.different.filter(pl.col("fate_second") == "lost").row(0, named=True)
    assert "→ lost (the broker's queue was full)" in head(lost)
    assert "In run 2 the broker's queue was full." in what_happened(found, lost)
    # Other fates come first.
    assert found.different["fate_second"][0] != "delivered"


def test_groups_are_compared_in_pairs_by_their_seeds(runs: Path) -> None:
    found = comparison.compare(str(runs / "few"), str(runs / "many"))
    assert "4 runs each, compared in pairs" in found.design
    rows = {row.metric: row for row in found.rows}
    again = rows["retransmissions"]
    assert again.paired and again.difference is not None and again.difference.interval.n == 4
    assert again.difference.interval.estimate == pytest.approx(
        sum(b - a for a, b in zip(again.first, again.second, strict=True)) / 4)
    assert rows["messages_sent"].verdict is not None and rows["messages_sent"].verdict.word == "equivalent"
    assert len(found.by_message) == 4
    assert all(shift.interval is not None for shift in found.shifts)


def test_groups_of_other_sizes_are_independent(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    for number in ("0", "1"):
        (tmp_path / "two" / number).symlink_to(runs / "many" / number)
    found = comparison.compare(str(runs / "few"), str(tmp_path / "two"))
    assert "4 and 2 runs, compared as independent series. Only 2 have partners" in found.design
    assert not any(row.paired for row in found.rows)


def test_a_pattern_names_a_group_and_unfit_runs_are_left_out_with_the_reason(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"a-{number}", [Message(i, 10 + number) for i in range(20)])
    write(tmp_path / "a-3", [Message(i) for i in range(20)], complete=False)
    write(tmp_path / "a-4", [Message(i) for i in range(20)], validity={"valid": False, "reasons": ["late"]})
    write(tmp_path / "b", [Message(i, 30) for i in range(20)])
    found = comparison.compare(str(tmp_path / "a-*"), str(tmp_path / "b"))
    assert len(found.first.recordings) == 3
    assert [(path.name, reason) for path, reason in found.first.left_out] == [
        ("a-3", "incomplete: it ended early"), ("a-4", "not valid: late")]
    printed = CliRunner().invoke(main, ["compare", str(tmp_path / "a-*"), str(tmp_path / "b")])
    assert printed.exit_code == 0 and "left out" in printed.output and "not valid: late" in printed.output
    with pytest.raises(ComparisonError, match="none of its 2 runs can be used"):
        comparison.compare(str(tmp_path / "a-[34]"), str(tmp_path / "b"))
    with pytest.raises(ComparisonError, match="pattern that matches one"):
        comparison.compare(str(tmp_path / "c-*"), str(tmp_path / "b"))


def test_a_point_of_an_experiment_and_what_the_catalog_has_are_sides_too(runs: Path, tmp_path: Path) -> None:
    experiment = tmp_path / "small"
    (experiment / "runs").mkdir(parents=True)
    (experiment / "journal.jsonl").touch()
    for point, side in enumerate(("few", "many")):
        for number in range(3):
            (experiment / "runs" / f"p{point:03d}-b{number:03d}-ABCDEF").symlink_to(runs / side / str(number))
    found = comparison.compare(f"{experiment}#0", f"{experiment}#1")
    assert found.title == "line: small#0 → small#1" and "3 runs each, compared in pairs" in found.design
    with pytest.raises(ComparisonError, match="small#7"):
        comparison.compare(f"{experiment}#0", f"{experiment}#7")
    url = str(tmp_path / "catalog.db")
    scanned = CliRunner().invoke(main, ["catalog", "scan", str(runs / "few"), "--catalog", url])
    assert scanned.exit_code == 0, scanned.output

    def said(first: str, second: str, status: int) -> str:
        done = CliRunner().invoke(main, ["compare", first, second, "--catalog", url])
        assert done.exit_code == status, done.output
        return done.output

    assert "4 runs each, compared in pairs" in said("catalog: name = line; backend = sim", str(runs / "many"), 0)
    assert "no run of the catalog is such" in said("catalog: name = other", str(runs / "many"), 2)
    assert "name conditions" in said("catalog:", str(runs / "many"), 2)


def test_runs_of_other_seeds_have_no_messages_in_common(runs: Path) -> None:
    result = CliRunner().invoke(main, ["compare", str(runs / "few" / "0"), str(runs / "few" / "1"), "--by", "message"])
    assert result.exit_code == 2 and "cannot be compared message by message" in result.output


def test_recordings_without_packets_are_compared_by_message_without_frames(tmp_path: Path) -> None:
    write(tmp_path / "a", [Message(0, 10), Message(1, 10), Message(2, 10)])
    write(tmp_path / "b", [Message(0, 10), Message(1, None, fate="lost", cause="overtaken"), Message(2, 40)])
    [found] = comparison.compare(str(tmp_path / "a"), str(tmp_path / "b")).by_message
    told = [what_happened(found, record) for record in found.different.iter_rows(named=True)]
    assert told == [["In run 2 a later message arrived before it."], ["The recordings do not show why."]]


def test_the_command_prints_writes_and_speaks_json(runs: Path, tmp_path: Path) -> None:
    few, many = str(runs / "few" / "0"), str(runs / "many" / "0")
    page = tmp_path / "page.html"
    printed = CliRunner().invoke(main, ["compare", few, many, "--by", "message", "--limit", "2", "--html", str(page)])
    assert printed.exit_code == 0, printed.output
    assert "field/up" in printed.output and "more messages differ" in printed.output
    text = page.read_text(encoding="utf-8")
    assert "Message by message" in text and "It was in frame" in text and "http" not in text.split("</style>")[0]
    said = CliRunner().invoke(main, ["compare", few, many, "--by", "message", "--json", "--metric", "rtt_ms_mean"])
    data = json.loads(said.output)
    assert {row["metric"] for row in data["metrics"]} == {"rtt_ms_mean"}
    assert data["messages"][0]["different"] == len(data["messages"][0]["messages"]) > 0
    assert all(message["why"] for message in data["messages"][0]["messages"])
    wrong = CliRunner().invoke(main, ["compare", few, many, "--metric", "rtt_ms_maen"])
    assert wrong.exit_code == 2 and "did you mean `rtt_ms_mean`?" in wrong.output
