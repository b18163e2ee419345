"""Experiments in the dashboard: the design as a matrix of states that lead to the runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from mqttlab.dashboard.pages import experiments
from mqttlab.dashboard.store import Store, UnknownRun
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


def test_no_experiment_and_none_of_a_name_are_said(tmp_path: Path) -> None:
    assert "no experiments" in text_of(experiments.page(Store(tmp_path)))
    for name in ("none", "..", "", "a/b"):
        with pytest.raises(UnknownRun):
            experiments.one(Store(tmp_path), name)
