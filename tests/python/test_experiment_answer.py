"""The report of an experiment: question, answer, thresholds by point, costs; the same on every surface."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import mqttlab
from mqttlab import metrics
from mqttlab.analysed import analysed
from mqttlab.analysis import Analysis, AsGood
from mqttlab.dashboard.pages import experiments
from mqttlab.dashboard.panels import Coloured
from mqttlab.dashboard.store import Store
from mqttlab.experiment_answers import listed
from mqttlab.experiments import ExperimentDirectory
from mqttlab.recording import Recording
from mqttlab.report.experiment.answer import answer, costs, in_words, recommendations, thresholds
from test_comparison_answer import FLEET
from test_console import tables_fit

EXPERIMENT = """
name = "idea"
question = "QoS 0 or QoS 1 for sensors on LTE?"
scenario = "fleet.toml"
repetitions = 3
reference = { qos = 0 }
responses = ["latency_ms_p99", "undelivered_percent"]
[[factors]]
name = "qos"
places = ["groups[0].publish.qos", "groups[1].subscribe[0].qos"]
levels = [0, 1]
[[thresholds]]
metric = "latency_ms_p99"
below = "BOUND"
"""


def performed(place: Path, bound: str, status: int) -> ExperimentDirectory:
    place.mkdir()
    (place / "fleet.toml").write_text(FLEET, encoding="utf-8")
    (place / "idea.toml").write_text(EXPERIMENT.replace("BOUND", bound), encoding="utf-8")
    done = mqttlab("experiment", place / "idea.toml", "--runs", place / "runs")
    assert done.returncode == status, done.stderr
    return ExperimentDirectory.open(place / "runs" / "idea")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> ExperimentDirectory:
    """A p99 below 10 ms, where the way alone takes 35 ms."""
    return performed(tmp_path_factory.mktemp("broken") / "it", "10 ms", 4)


@pytest.fixture(scope="module")
def analysis(broken: ExperimentDirectory) -> Analysis:
    return analysed(broken)


def test_broken_thresholds_are_red_and_said_first(broken: ExperimentDirectory, analysis: Analysis) -> None:
    """The box was green, and no surface said a word of it."""
    told = answer(analysis)
    assert told.state == "broken" and told.sentences[0] == "All 2 threshold checks are broken."
    assert [row[:2] for row in thresholds(analysis)[1]] == [("broken", "qos 0"), ("broken", "qos 1")]
    assert [row[2] for row in thresholds(analysis)[1]] == ["latency p99 below 10 ms"] * 2
    printed = mqttlab("report", broken.path).stdout
    assert "latency_ms_p99" not in printed
    assert printed.index("QoS 0 or QoS 1 for sensors") < printed.index(told.sentences[0]) < printed.index("kB/device/h")
    assert "Methods" not in printed and "Methods" in mqttlab("report", broken.path, "--full").stdout
    shown = repr(experiments.one(Store(broken.path.parent), "idea"))
    places = [shown.index(words) for words in (
        "All 2 threshold checks are broken.", "Thresholds, table", "What it costs, table",
        "Statistics of latency p99", ": points, table", "Design: 2 points", "Design: points and blocks, table",
        "Values, run by run")]
    assert places == sorted(places), "the answer comes first, then figures, then the statistics and the matrix"
    assert shown.count("className='panel folded'") == 4, "statistics, variation, design and values are folded"
    assert shown.count("failed") == 4, "each broken threshold is red, in its table and in the matrix"
    page = (broken.path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<section class="verdict (\w+)">', page) == ["broken"]
    assert page.count('<td class="text broken">') == 2 and 'class="text held"' not in page
    order = [page.index(words) for words in ("All 2 threshold checks", ">Thresholds</h2>", ">What it costs</h2>",
                                             ">Recommendation</h2>", "Statistics of latency p99")]
    assert order == sorted(order)


def test_a_recommendation_says_what_the_other_choice_costs(analysis: Analysis) -> None:
    text = answer(analysis).text
    assert "No choice holds every threshold; qos " in text and "has the lowest latency p99" in text
    head, [row] = recommendations(analysis)
    assert "as good" not in " ".join(head) + text and "bootstrap" not in text
    assert analysis.recommendations is not None and "Holm" not in analysis.recommendations.rule
    assert f": {float(row[2]):.3g} ms" in text or "(certainty" not in text, "the answer has its number"
    assert head[2] == "its latency p99 (ms)"
    if row[1] != "none":
        assert re.search(r"costs \d+ % more bytes|is cheaper: \d+ % fewer bytes|costs the same", row[1])
        assert row[1].split(": ", 1)[1] in text


BEST = "Choose qos 0: it has the lowest latency p99, 98.2 ms"
SAME = "choose qos 0, 98.2 ms (60 % certain). It needs 42 % fewer bytes than qos 1, 97 ms."
OTHER = AsGood(levels={"qos": "1"}, estimate=97.0, word="equivalent")
OPEN = replace(OTHER, word="undecided", runs_needed=249)
RUNS = ("249 more runs of each point would decide latency p99: write repetitions = 252 into its file, then mqttlab "
        "experiment FILE.")


@pytest.mark.parametrize(("certainty", "changes", "dear", "said"), [
    (0.6, {"as_good": (OPEN,)}, 133, [f"{BEST} (60 % certain).", "No difference shown: qos 1, but it costs 33 % more "
                                      "bytes.", RUNS]),
    (0.6, {"as_good": (OTHER,)}, 80, [f"{BEST} (60 % certain).", "Equivalent: qos 1, and it needs 20 % fewer bytes."]),
    (0.6, {"as_good": (OTHER,)}, 101, [f"{BEST} (60 % certain).", "Equivalent: qos 1, and it costs the same."]),
    (1.0, {"as_good": ()}, 133, [f"{BEST} (over 99 % certain)."]),
    (1.0, {"as_good": (), "cheaper": {"qos": "1"}}, 75, [f"{BEST} (over 99 % certain).",
                                                         "It costs 33 % more bytes than qos 1."]),
    (None, {"as_good": ()}, 133, [f"{BEST} (too few runs to say how certain that is)."]),
    # It chose the dear one of two that are equivalent, or whose runs show no difference.
    (0.6, {"as_good": (OTHER,), "best": OTHER}, 172, [f"No difference in latency p99 that matters: {SAME}"]),
    (0.6, {"as_good": (OPEN,), "best": OPEN}, 172, [f"These runs show no difference in latency p99: {SAME}", RUNS]),
])
def test_a_choice_is_said_so_that_it_can_be_decided(
    analysis: Analysis, certainty: float | None, changes: dict[str, Any], dear: int, said: list[str],
) -> None:
    """It said: choose qos 0, which has …; these runs show no difference from qos 1, which costs 33 % more."""
    assert analysis.recommendations is not None
    [row] = analysis.recommendations.rows
    assert row.objective is not None
    choice, keys = {"qos": "0"}, {point.levels["qos"]: point.key for point in analysis.responses[0].points}
    row = replace(row, **({"best": None, "cheaper": None} | changes), choice=choice, certainty=certainty,
                  objective=replace(row.objective, estimate=98.2))
    cost = replace(analysis.costs[0], metric="ip_kb_per_device_hour_up",
                   values={keys["0"]: (100.0,), keys["1"]: (float(dear),)})
    first = replace(analysis.responses[0], compared=())
    made = replace(analysis, thresholds=(), costs=(cost,), responses=(first,),
                   recommendations=replace(analysis.recommendations, rows=(row,)))
    assert list(answer(made).sentences) == said


@pytest.mark.parametrize("columns", ["", "80", "150"])
def test_tables_of_an_experiment_fit_into_a_log(
    broken: ExperimentDirectory, columns: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They were 180 columns wide in a file."""
    monkeypatch.setenv("COLUMNS", columns)
    printed = mqttlab("report", broken.path, "--full").stdout
    tables_fit(printed, int(columns or 100))
    assert "kB/device/h" in printed and "latency p99 below 10 ms" in " ".join(printed.split())


def test_the_matrix_has_the_colours_of_the_thresholds(broken: ExperimentDirectory, tmp_path: Path) -> None:
    """Every cell was green, as all runs were done, while every threshold was broken."""
    def words(directory: ExperimentDirectory, state: str) -> list[str]:
        page = experiments.one(Store(directory.path.parent), directory.path.name)
        [matrix] = [each for each in page._traverse() if str(getattr(each, "aria-label", "")).startswith("Design")]
        cells = [cell for row in json.loads(getattr(matrix, "data-rows"))["rows"] for cell in row]
        return [cell.get("words") or cell["title"] for cell in cells
                if isinstance(cell, dict) and cell["state"] == state]

    assert words(broken, "failed") == ["✕ broken"] * 2 and not words(broken, "done")
    held = performed(tmp_path / "held", "10 s", 0)
    assert words(held, "done") == ["✓ held"] * 2 and not words(held, "failed")
    assert [experiments._verdict(each) for each in (["held", "broken"], ["held", "undecided", "undecided"], [])] == [
        Coloured("✕ 1 of 2 broken", "failed"), Coloured("? 2 of 3 undecided", "running"), "none is about this point"]


def test_costs_are_those_of_the_headlines(broken: ExperimentDirectory, analysis: Analysis) -> None:
    """Nobody asked for bytes: they are read of the recordings, and are the mean of what these say."""
    up = next(cost for cost in analysis.costs if cost.metric == "ip_kb_per_device_hour_up")
    for point in broken.design.points:
        runs = [run for run in broken.runs() if run.point_key == point.key]
        said = [metrics.headline(Recording.open(broken.path / run.directory)).bytes[0].ip_up for run in runs]
        assert sorted(up.values[point.key]) == pytest.approx(sorted(value or 0 for value in said))
    head, rows = costs(analysis)
    assert "kB/device/h up of sensors" in head and len(rows) == 2


def test_a_cost_that_nobody_knows_is_no_zero(broken: ExperimentDirectory, analysis: Analysis) -> None:
    """Simulated servers take no processor time: a sentence says it, on every surface."""
    assert not any(cost.metric.startswith("server_cpu") for cost in analysis.costs)
    [words] = analysis.costs_unknown
    assert words == "Processor time of the servers is not known: nothing is known of simulated servers."
    assert json.loads(mqttlab("report", broken.path, "--json").stdout)["costs_unknown"] == [words]
    assert words in " ".join(mqttlab("report", broken.path).stdout.split())
    assert words in (broken.path / "report.html").read_text(encoding="utf-8")
    assert words in repr(experiments.one(Store(broken.path.parent), "idea"))


def test_json_has_the_same(broken: ExperimentDirectory, analysis: Analysis) -> None:
    data = json.loads(mqttlab("report", broken.path, "--json").stdout)
    assert data["answer"] == answer(analysis).text and data["state"] == "broken"
    assert data["question"] == "QoS 0 or QoS 1 for sensors on LTE?"
    assert {each["verdict"] for each in data["thresholds"]} == {"broken"} and data["costs"]


def test_a_threshold_in_words_has_no_name_of_a_metric() -> None:
    assert in_words("latency_ms_p99 of group field_1 below 250 ms") == "latency p99 of group field_1 below 250 ms"
    assert in_words("messages_lost_percent (judged by undelivered_percent) below 1 %") == (
        "lost (judged by undelivered) below 1 %")
    # The unit stands beside the value, and once.
    assert in_words("undelivered_percent of run below 1 %") == "undelivered of run below 1 %"
    assert in_words("utilisation_percent above 80 %") == "used above 80 %"
    assert in_words("latency_ms_mean_ci95 below 5 ms") == "latency ± 95 % below 5 ms"
    assert in_words("thresholds") == "thresholds"


def test_held_thresholds_are_green(tmp_path: Path) -> None:
    directory = performed(tmp_path / "held", "10 s", 0)
    told = answer(analysed(directory))
    assert told.state == "held" and told.sentences[0] == "All 2 threshold checks are held."
    mqttlab("report", directory.path)
    page = (directory.path / "report.html").read_text(encoding="utf-8")
    assert '<section class="verdict valid">' in page and page.count('<td class="text held">') == 2


def test_the_list_of_experiments_has_question_state_answer_and_date(
    broken: ExperimentDirectory, analysis: Analysis, tmp_path: Path,
) -> None:
    runs = broken.path.parent
    [found] = listed(runs)
    assert found.question == "QoS 0 or QoS 1 for sensors on LTE?" and found.answer == answer(analysis).text
    assert found.state == "complete, 6 runs; thresholds broken" and re.match(r"\d{4}-\d\d-\d\dT", found.date)
    printed = mqttlab("list", "--runs", runs, "--experiments").stdout
    assert found.state in printed and found.question in printed and "threshold checks are broken." in printed
    shown = repr(experiments.page(Store(runs)))
    assert found.question in shown and found.state in shown
    # Kept until the journal changes: then it is worked out anew.
    kept = broken.path / "answer.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"answer": "kept"}), encoding="utf-8")
    assert listed(runs)[0].answer == "kept"
    os.utime(broken.path / "journal.jsonl")
    assert listed(runs)[0].answer == found.answer
    assert "no experiments" in mqttlab("list", "--runs", tmp_path, "--experiments").stdout


def test_an_experiment_that_has_no_run_or_cannot_be_read_is_listed(broken: ExperimentDirectory, tmp_path: Path) -> None:
    shutil.copytree(broken.path, tmp_path / "none", ignore=shutil.ignore_patterns("runs", "answer.json"))
    journal = tmp_path / "none" / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines()[0] + "\n", encoding="utf-8")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "journal.jsonl").touch()
    by_name = {each.name: each for each in listed(tmp_path)}
    assert by_name["none"].state == "0 of 6 runs" and by_name["none"].answer.startswith("no answer yet")
    assert by_name["torn"].state == "cannot be read" and by_name["torn"].answer
