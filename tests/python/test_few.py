"""Of few messages no percentile: below 100 deliveries no 99th, below 20 no 95th; nor where publishers are in step."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mqttlab import comparison, metrics
from mqttlab.cli.main import main
from mqttlab.dashboard.pages import overview
from mqttlab.experiments.baselines import baseline_values
from mqttlab.experiments.found import sentences
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.responses import Response, Value, judged_of, supported
from mqttlab.experiments.schedule import Records, found_by, wanted
from mqttlab.experiments.thresholds import Earlier, Judgement, Watch, judge_runs
from mqttlab.recording import Recording
from mqttlab.report import cards, headline, stages
from mqttlab.report.answer import lines
from mqttlab.report.comparison.answer import answer
from mqttlab.report.headline import slowest_in_words
from mqttlab.samples import counted_by, fewest
from mqttlab.scenario.threshold import Threshold
from recordings import Message, write
from test_dashboard_pages import text_of
from test_experiments import SEARCH, UNTIL, changed, loaded, record

PERCENTILES = ("p99", "p95", "p50")


def recorded(directory: Path, latencies: list[float], **more: Any) -> Recording:
    return Recording.open(write(directory, [Message(number, latency) for number, latency in enumerate(latencies)],
                                duration_s=len(latencies) / 10 + 1, **more))


def line_of(recording: Recording) -> str:
    [found] = [line for line in lines(headline.told(recording)) if line.startswith("latency ms")]
    return found.removeprefix("latency ms").strip()


@pytest.mark.parametrize(("count", "told"), [
    (1, "p50 1  worst of 1: 1"), (9, "p50 5  worst of 9: 9"), (19, "p50 10  worst of 19: 19"),
    (20, "p95 19.1  p50 10.5  worst of 20: 20"), (99, "p95 94.1  p50 50  worst of 99: 99"),
    (100, "p99 99  p95 95  p50 50.5  worst 100")])
def test_a_percentile_is_told_of_so_many_deliveries_that_one_lies_beyond_it(
    count: int, told: str, tmp_path: Path,
) -> None:
    found = recorded(tmp_path, [float(number + 1) for number in range(count)])
    [flow] = metrics.headline(found).flows
    # Programs have each value, and of how many it is.
    latency = headline.document(found)["flows"][0]["latency"]
    assert all(latency[name]["value"] is not None and latency[name]["n"] == count for name in PERCENTILES)
    assert [latency[name]["enough"] for name in PERCENTILES] == [count >= 100, count >= 20, True]
    assert line_of(found) == told
    named = [name for name in PERCENTILES if f"{name} " in told]
    made = cards.cards(flow, headline.told(found))
    assert [name for name in ("p99", "p95") if f"{name} latency" in [card.title for card in made]] == [
        name for name in named if name != "p50"]
    assert made[0].title == ("p99 latency" if "p99" in named else "worst latency")
    assert ("p99" in slowest_in_words(flow)) is ("p99" in named)
    row = cards.flow_rows([flow])[0]
    assert [row[place] == "–" for place in (1, 3, 4, 5)] == ["p99" not in named, "p95" not in named, False, False]
    page = text_of(overview.part(found))
    assert [name for name in ("p99", "p95") if f"{name} latency" in page] == [name for name in named if name != "p50"]
    if "p99" not in named:
        assert f"of {count}" in next(card.more for card in made if card.title == "worst latency")


def test_values_that_are_alike_from_a_percentiles_rank_on_tell_no_percentile(tmp_path: Path) -> None:
    """One in ten alarms waits for the same image: before, p99, p95 and worst were one number."""
    found = recorded(tmp_path / "tenth", [2732.0 if number % 10 == 0 else 40.0 + number / 10 for number in range(120)])
    assert line_of(found).endswith("worst of 120: 2,732 (12 took exactly that)") and "p9" not in line_of(found)
    [flow] = metrics.headline(found).flows
    assert flow.latency["p99"].value == 2732 and flow.latency["p99"].alike == 12 and flow.latency["p99"].enough
    # A single largest value is no such case, and a percentile below it is told.
    assert "p99 " in line_of(recorded(tmp_path / "once", [9.0, *(float(number) / 100 for number in range(119))]))
    assert line_of(recorded(tmp_path / "all", [25.0] * 120)) == "p50 25  worst of 120: 25 (all took exactly that)"


def test_stages_with_few_messages_show_their_largest(tmp_path: Path) -> None:
    halves = (("first", 0, 6, True), ("second", 6, 13, True))
    few = recorded(tmp_path / "few", [float(number + 1) for number in range(120)], stages=halves)
    brief = [line.split() for line in stages.brief(few)]
    assert ["worst", "ms", "60", "120"] in brief and not any(line[:1] == ["p99"] for line in brief)
    head, rows = stages.table(few)
    values = {row[0]: row[1:] for row in rows}
    assert head[1] == stages.ALL and values["p99 ms"][1:] == ["–", "–"] and values["p99 ms"][0] != "–"


def test_every_metric_that_is_a_percentile_names_what_counts_its_values_where_something_does() -> None:
    assert [fewest(name) for name in ("latency_ms_p99", "latency_ms_p95", "latency_ms_p50", "latency_ms_max")] == [
        100, 20, 1, 1]
    for family in metrics.FAMILIES:
        for name in family.columns():
            counted = name.endswith(("_p95", "_p99")) and not name.startswith(("rtt_", "gateway_wait_"))
            # In the same table and scope as the percentile.
            assert counted_by(name) in (family.columns() if counted else [None]), name
    kept = [each.metric for each in supported([Response("latency_ms_p99"), Response("acknowledge_ms_p99")])]
    assert "messages_delivered" in kept and "messages_acknowledged" in kept


def judged(counts: list[int], values: list[float], before: list[Earlier] | None = None, **fields: Any) -> Judgement:
    threshold = Threshold.model_validate({"metric": "latency_ms_p99", **fields})
    metric = judged_of(threshold).metric
    made = [RunRecord(
        run=str(place), kind="run", point=0, point_key="", levels={}, block=place, repetition=place, order_no=place,
        seed=1, attempt=1, plan_digest="", backend="sim", directory="", began="", verdict="complete", valid=True,
        responses=(Value(metric=metric, scope="run", scope_name=None, value=value, unit="ms"),
                   Value(metric=counted_by(metric) or "messages_delivered", scope="run", scope_name=None, value=count,
                         unit="")))
        for place, (count, value) in enumerate(zip(counts, values, strict=True))]
    return judge_runs(threshold, "", made, lambda name, response: before or [])


@pytest.mark.parametrize(("metric", "counts", "verdict"), [
    ("latency_ms_p99", [9, 12, 11], "undecided"), ("latency_ms_p99", [99, 400, 400], "undecided"),
    ("latency_ms_p99", [100, 100, 100], "held"), ("latency_ms_p95", [19, 20, 20], "undecided"),
    ("latency_ms_p95", [20, 20, 20], "held"), ("latency_ms_p50", [1, 1, 1], "held"),
    ("latency_ms_max", [9, 9, 9], "held"), ("acknowledge_ms_p99", [9, 9, 9], "undecided"),
    ("connect_ms_p99", [3, 3, 3], "undecided")])
def test_a_threshold_on_a_percentile_of_few_deliveries_is_undecided(
    metric: str, counts: list[int], verdict: str,
) -> None:
    found = judged(counts, [82.5, 83.0, 82.0], metric=metric, below="250 ms")
    assert found.verdict == verdict and found.estimate == pytest.approx(82.5)
    assert ("this percentile needs" in found.words) is (verdict == "undecided")
    # The largest of a few beyond the bound breaks it as little.
    assert judged(counts, [82.5, 83.0, 82.0], metric=metric, below="50 ms").verdict == (
        "broken" if verdict == "held" else "undecided")


def test_a_threshold_says_of_how_many_deliveries_a_run_has_too_few() -> None:
    said = judged([9, 12, 400], [82.5, 83.0, 82.0], below="250 ms").words
    assert "a run has only 9 to 12 deliveries, and this percentile needs 100; lengthen `phases.duration`" in said


@pytest.mark.parametrize(("mine", "theirs"), [([9] * 3, None), ([400] * 3, 9)])
def test_a_baseline_of_few_deliveries_decides_nothing(mine: list[int], theirs: int | None) -> None:
    bound = {"baseline": "v1", "by": "5 %"}
    before = [Earlier(value=value, draw=None, too_few=theirs) for value in (100.0, 101.0, 102.0)]
    found = judged(mine, [120.0, 121.0, 122.0], before, not_worse_than=bound)
    assert found.verdict == "undecided" and "only 9 deliveries" in found.words
    # Equal runs are equal, however few messages they have.
    assert judged(mine, [100.0, 101.0, 102.0], before, not_worse_than=bound).verdict == "held"


def test_the_count_of_a_baselines_recording_is_looked_at(tmp_path: Path) -> None:
    few, many = (recorded(tmp_path / str(count), [float(number + 1) for number in range(count)]).directory
                 for count in (9, 100))
    p99 = Response("latency_ms_p99")
    assert [baseline_values(str(place), p99)[0].too_few for place in (few, many)] == [9, None]


def test_a_search_does_not_judge_by_a_percentile_of_few_deliveries(tmp_path: Path) -> None:
    """Before, it went on with the largest of nine."""
    experiment = loaded(tmp_path, SEARCH)
    search = experiment.file.search
    assert search is not None

    def found(deliveries: int, under_way: float = 0.0) -> str:
        done: list[RunRecord] = []
        while left := [task for task in wanted(experiment, Records(done, 3)) if not Records(done, 3).settled(task)]:
            made = record(left[0], 50.0)
            values = {"messages_delivered": deliveries, "undelivered_percent": under_way, "messages_lost_percent": 0}
            done.append(replace(made, responses=(*made.responses, *(
                Value(metric=name, scope="run", scope_name=None, value=value, unit="")
                for name, value in values.items()))))
        assert all(not each.open for each in found_by(experiment, search, Records(done, 3)).values())
        return sentences(experiment, Records(done, 3))[0]

    assert "holds up to the highest level" in found(100)
    assert "no valid result at the lowest level" in found(99)
    assert "where runs have too few deliveries for this percentile" in found(99)
    # What had not arrived at the end would be later: no percentile is needed for that.
    assert "does not hold at the lowest level" in found(9, under_way=60.0)
    # One of fifty-one is by chance more than one of a hundred.
    assert "where runs have too few deliveries" in found(50, under_way=100 / 51)


def test_repetitions_are_not_ended_by_a_percentile_of_few_deliveries(tmp_path: Path) -> None:
    """Before, three runs whose largest latencies agreed were enough."""
    experiment = loaded(tmp_path, changed(UNTIL, ('control = "every 10 runs"\n', "")))

    def done(deliveries: int) -> list[RunRecord]:
        made: list[RunRecord] = []
        while left := [task for task in wanted(experiment, Records(made, 3)) if not Records(made, 3).settled(task)]:
            one = record(left[0], 50.0 + left[0].block % 2 / 10)
            count = Value(metric="messages_delivered", scope="run", scope_name=None, value=deliveries, unit="")
            made.append(replace(one, responses=(*one.responses, count)))
        return made

    enough, few = done(100), done(99)
    assert (len(enough), len(few)) == (9 * 3, 9 * 12) and sentences(experiment, Records(enough, 3)) == []
    assert sentences(experiment, Records(few, 3)) == [
        "repetitions: undecided by latency_ms_p99 at 9 points, so that the most are made: a run has only 99 "
        "deliveries, and this percentile needs 100; lengthen `phases.duration`"]


def test_no_run_is_ended_by_a_percentile_of_few_deliveries() -> None:
    for delivered, ended in ((99, False), (100, True)):
        watch = Watch([Threshold.model_validate({"metric": "latency_ms_p99", "below": "100 ms", "abort": True})])
        watch.observe("a", {"event": "phase", "phase": "measurement", "at_ns": 0, "length_ns": 0})
        for second in range(5):
            watch.observe("a", {"event": "tick", "at_ns": second * 10**9, "latency_p99_ns": 900 * 10**6,
                                "delivered": delivered})
        assert (watch.ended("a") is not None) == ended


def test_a_comparison_of_few_messages_is_of_their_largest(tmp_path: Path) -> None:
    sides = [recorded(tmp_path / name, [add + number for number in range(9)]).directory
             for name, add in (("a", 1.0), ("b", 11.0))]
    found = answer(comparison.compare(*map(str, sides)))
    assert "worst latency 19 instead of 9 ms" in found.sentence and "p99" not in found.sentence
    shown = {one.measure for one in (*found.differing, *found.undecided, *found.same)}
    assert "latency_ms_max" in shown and not {"latency_ms_p99", "latency_ms_p95"} & shown


def test_try_tells_no_percentile_of_nine_messages(tmp_path: Path) -> None:
    """Before: "9 sent … p99 82.5 p95 77.9"."""
    words = ("try --clients 3 --every 20s --network lte-m --simulate --duration 1min --no-html "
             f"--runs {tmp_path}").split()
    one = CliRunner().invoke(main, [*words, "--qos", "0"]).output
    assert "worst of 9: " in one and "p99" not in one and "p95" not in one and "p50 " in one
    head, row, *_ = CliRunner().invoke(main, ["list", "--runs", str(tmp_path)]).stdout.splitlines()
    assert "p99 ms" in head and " – " in row and " 0 % " in row
    both = CliRunner().invoke(main, [*words, "--qos", "0,1", "--repetitions", "2"]).output
    sentence = " ".join(both.split())
    assert "QoS 1 against QoS 0: p50 " in sentence and "9 deliveries are too few for a p99" in sentence
    [row] = [line.split() for line in both.splitlines() if line.strip().startswith("qos 0")]
    assert row.count("–") == 2
    values = json.loads(CliRunner().invoke(main, [*words, "--qos", "0,1", "--repetitions", "2", "--json"]).stdout)
    assert len(values["points"][0]["values"]["latency_ms_p99"]["values"]) == 2
