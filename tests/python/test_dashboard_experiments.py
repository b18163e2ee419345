"""Experiments in the dashboard: the design as a matrix of states that lead to the runs."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from dashboards import queue_below
from mqttlab.dashboard.configure import drafts, experiment_drafts
from mqttlab.dashboard.configure.drafts import Draft
from mqttlab.dashboard.configure.experiment_drafts import TEMPLATE
from mqttlab.dashboard.experiment_figures import Analyses
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import configure, experiments, live
from mqttlab.dashboard.panels import answer, twin
from mqttlab.dashboard.store import Store, UnknownRun
from mqttlab.dashboard.watch import Watch
from mqttlab.errors import MqttlabError
from mqttlab.experiments import ExperimentDirectory, find_experiments
from test_dashboard_pages import text_of
from test_experiment_runs import run, write
from wrong_experiments import CONTROL, GOOD, LEVELS, REPETITIONS


def test_a_matrix_shows_what_is_done_and_leads_to_the_runs(tmp_path: Path) -> None:
    # One run of each of two points, and no control.
    write(tmp_path, GOOD.replace(REPETITIONS, "repetitions = 1").replace(f"{CONTROL}\n", "").replace(
        LEVELS, 'levels = ["0 %"]').replace("levels = [0, 1, 2]", "levels = [0, 1]").partition("[[thresholds]]")[0])
    run(tmp_path, "loss.toml", "--runs", "runs")
    store = Store(tmp_path / "runs")
    (place,) = find_experiments(store.directory)
    directory = ExperimentDirectory.open(place)
    listed = text_of(experiments.page(store))
    assert f"/experiment/{place.name}" in listed
    shown = text_of(experiments.one(store, place.name))
    done = [record for record in directory.runs() if record.state == "done" and record.kind == "run"]
    assert done and not directory.pending()
    for record in done:
        assert f"/run/{place.name}/{record.directory}" in shown
        assert store.recording(f"{place.name}/{record.directory}").complete
    assert shown.count("done: ") == len({(record.point, record.block) for record in done})


SCENARIO = drafts.written(replace(Draft(), backend="sim", duration="1 s", delay="100 ms", nodes=1, qos="1"))
TWO = TEMPLATE.replace('levels = ["1 s", "2 s"]', 'levels = ["100 ms", "200 ms"]').replace(
    "repetitions = 3", "repetitions = 2")


def test_an_experiment_from_the_browser_fills_its_matrix(tmp_path: Path) -> None:
    with queue_below(tmp_path) as queue:
        jobs = Jobs(tmp_path / "runs", queue.directory)
        jobs.runs.mkdir()
        assert experiment_drafts.start(TWO, SCENARIO, jobs) == "from-the-dashboard"
        with pytest.raises(MqttlabError, match="in the queue already"):
            experiment_drafts.start(TWO, SCENARIO, jobs)
        store, watch = Store(jobs.runs), Watch(jobs)
        assert "from-the-dashboard: experiment" in text_of(live.frame(store, jobs, watch))
        deadline = time.monotonic() + 120
        while jobs.queue.drivers():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        [driver] = jobs.queue.drivers(all_=True)
        assert driver.status == 0, driver.log.read_text(encoding="utf-8")
        shown = text_of(experiments.one(store, "from-the-dashboard"))
        # An interval and a network are given: nothing in it can be chosen.
        assert shown.count("done: ") == 8 and "to be done" in shown and "Recommendation" not in shown
        analyses = Analyses(store)
        _, drawn = analyses.of("from-the-dashboard")
        assert "variation" in drawn and len([name for name in drawn if name.startswith("response-0-")]) >= 3
        for name, figure in drawn.items():
            assert f"/figure/{name}.json" in shown and twin(figure).height > 0, name
            json.loads(answer(figure, "dark"))
        assert analyses.of("from-the-dashboard")[1] is drawn
        # The experiment's own files stand beside the others of the dashboard, not among the runs.
        assert {path.name for path in jobs.runs.iterdir()} <= {"from-the-dashboard", ".dashboard", "catalog.db"}


@pytest.mark.parametrize(("before", "after"), [
    ('scenario = "scenario.toml"', 'scenario = "/etc/passwd"'),
    ('scenario = "scenario.toml"', 'scenario = "../scenario.toml"'),
    ('place = "groups[*].publish.interval"\nlevels = ["100 ms", "200 ms"]',
     'place = "broker.program"\nlevels = [{ command = ["id"] }]'),
    ('place = "groups[*].publish.interval"\nlevels = ["100 ms", "200 ms"]',
     'patches = { a = { "broker.kind" = "program", "broker.program" = { command = ["id"] } } }'),
    ('place = "groups[*].publish.interval"\nlevels = ["100 ms", "200 ms"]',
     'place = "groups[0].publish.payload"\nlevels = [{ kind = "file", path = "/etc/hostname" }]'),
    ('design = "full"', 'design = "full"\nset = { "broker.kind" = "external", "broker.address" = "192.0.2.1" }'),
    ('design = "full"', 'design = "full"\n[[thresholds]]\nmetric = "latency_ms_p99"\nnot_worse_than = { baseline = '
     '"/etc" , margin = "5 %" }\n'),
    ('name = "from-the-dashboard"', 'name = "../elsewhere"'),
    ("repetitions = 2", "repetitions = 10000"),
])
def test_what_a_scenario_may_not_ask_an_experiment_may_not(before: str, after: str, tmp_path: Path) -> None:
    text = TWO.replace(before, after)
    assert text != TWO
    jobs = Jobs(tmp_path / "runs", tmp_path / "queue")
    jobs.runs.mkdir()
    if "10000" in after:
        # Many runs are no secret; they must only be said.
        assert "40000" in text_of(configure.design(text, SCENARIO)).replace(",", "")
        return
    assert "cannot be run" in text_of(configure.design(text, SCENARIO))
    with pytest.raises(MqttlabError):
        experiment_drafts.start(text, SCENARIO, jobs)
    assert list(jobs.runs.iterdir()) == [] and jobs.queue.drivers() == []


def test_a_design_is_shown_before_it_is_run_and_what_is_wrong_at_its_line() -> None:
    shown = text_of(configure.design(TWO, SCENARIO))
    assert "This experiment can be run" in shown and "at most 8" in shown and "200 ms" in shown
    for text in ("not [ toml", TWO.replace("groups[*]", "groups[7]"), TWO.replace("latency_ms_p99", "latency_p99"), ""):
        said = text_of(configure.design(text, SCENARIO))
        assert "cannot be run" in said and "/tmp/" not in said


def test_no_experiment_and_none_of_a_name_are_said(tmp_path: Path) -> None:
    assert "no experiments" in text_of(experiments.page(Store(tmp_path)))
    for name in ("none", "..", "", "a/b"):
        with pytest.raises(UnknownRun):
            experiments.one(Store(tmp_path), name)
