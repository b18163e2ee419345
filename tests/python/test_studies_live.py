"""One live cell of every study: real brokers and real TCP leave what its tables need, and are not run twice."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

from mqttlab.engine import EngineError, held
from mqttlab.errors import UsageError
from mqttlab.recording import Recording
from mqttlab.studies import perform_live
from mqttlab.studies.catalogue import known
from mqttlab.studies.simulate import _held_up

pytestmark = pytest.mark.live
STUDIES = known()
CELLS = {"perez2005": "e2-65B-0-0_8-qos0-536-nots", "andersen2021": "tactical-broadband-gps",
         "varsani2021": "single-1B-100ms", "schuhmacher2018": "trip-10240B-qos0-100ms-1mbps",
         "borsatti2020": "20-20ms-normal-qos0-nagle-off"}
PHASES = {"warm_up": "0 s", "duration": "3 s", "cool_down": "2 s"}


def cell(name: str) -> dict[str, Any]:
    """A study's cell as a scenario, in short."""
    study = STUDIES[name]
    case = next(case for case in study.cases(study.published, ()) if case.name == CELLS[name])
    values = case.scenario(study.quick)
    values["phases"] |= PHASES
    if name == "andersen2021":
        for group in values["groups"]:
            if "publish" in group:
                group["publish"]["interval"] = "1 s"
    return values


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """What each study keeps of its cell, and where the recording is."""
    def run(name: str) -> tuple[Path, Any]:
        directory = tmp_path_factory.mktemp(name)
        results = perform_live({CELLS[name]: cell(name)}, STUDIES[name].measure, directory=directory)
        return directory, results.results[CELLS[name]][0]

    return {name: run(name) for name in CELLS}


def test_every_study_has_its_cell_listed() -> None:
    for name, case in CELLS.items():
        assert case in STUDIES[name].live.cases


def test_what_the_network_imposes_is_in_the_live_numbers(measured: dict[str, tuple[Path, Any]]) -> None:
    # Four cables of 1 ms; 100 ms of latency; two host times of 3.92 ms; two links of 20 ms.
    assert measured["perez2005"][1].delay_mean_ms > 3.9
    assert measured["andersen2021"][1].by_qos[0].delay_s_min > 0.09
    assert measured["varsani2021"][1].delays.min_ms > 7.7
    assert measured["borsatti2020"][1].delays.mean_ms > 38
    # Twice 10 kB at 1 MB/s.
    assert measured["schuhmacher2018"][1].trips.min_ms > 20


def test_nothing_is_lost_where_nothing_loses(measured: dict[str, tuple[Path, Any]]) -> None:
    assert measured["perez2005"][1].never_percent == 0
    assert measured["borsatti2020"][1].delays.never_percent == 0
    assert measured["schuhmacher2018"][1].trips.count > 20


def test_a_pass_that_is_begun_again_runs_nothing_twice(measured: dict[str, tuple[Path, Any]]) -> None:
    directory, before = measured["borsatti2020"]
    written = {path: path.stat().st_mtime_ns for path in directory.rglob("run.json")}
    # What the machine held up would be run again, as the test of a run that was not valid has it.
    in_time = not _held_up(Recording.open(next(iter(written)).parent))
    again = perform_live({CELLS["borsatti2020"]: cell("borsatti2020")}, STUDIES["borsatti2020"].measure,
                         directory=directory, repeat=in_time)
    assert repr(again.results[CELLS["borsatti2020"]]) == repr([before])
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("run.json")} == written


def test_what_is_there_of_another_length_stands_for_nothing_and_stays(measured: dict[str, tuple[Path, Any]]) -> None:
    directory, _ = measured["borsatti2020"]
    longer = cell("borsatti2020")
    longer["phases"] = {**longer["phases"], "duration": "4 s"}
    with pytest.raises(UsageError, match="is of another length than is asked for now"):
        perform_live({CELLS["borsatti2020"]: longer}, STUDIES["borsatti2020"].measure, directory=directory)
    assert list(directory.glob("*/run.json"))


def test_two_passes_do_not_share_a_directory(tmp_path: Path) -> None:
    begun = tmp_path / "single-r1"
    begun.mkdir()
    nobody = AssertionError("nobody else has it")
    with held(tmp_path, nobody), pytest.raises(UsageError, match="another `mqttlab study --backend live` runs there"):
        perform_live({"single": {}}, str, directory=tmp_path)
    assert begun.is_dir(), "what the other one has begun is its own"


def test_a_run_that_was_not_valid_is_run_again_and_what_is_not_valid_is_said(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A rate that no machine offers, a million messages in a tenth of a second: complete, and not what was asked for.
    values: dict[str, Any] = {
        "name": "too-much", "network": "direct", "recording": {"detail": "messages"},
        "phases": {"duration": "100 ms", "cool_down": "100 ms"},
        "groups": [
            {"name": "p", "host": "a", "count": 10,
             "publish": {"topic": "t", "qos": 0, "payload": "8 B", "rate": "1000000 /s"}},
            {"name": "s", "host": "b", "subscribe": [{"filter": "t", "qos": 0}]},
        ],
    }

    def rows(recording: Recording) -> int:
        return recording.messages.height

    first = perform_live({"much": values}, rows, directory=tmp_path)
    assert first.doubts["much-r1"]
    before = (tmp_path / "much-r1" / "run.json").stat().st_mtime_ns
    as_it_is = perform_live({"much": values}, rows, directory=tmp_path, repeat=False)
    assert (as_it_is.doubts, as_it_is.results) == (first.doubts, first.results)
    assert (tmp_path / "much-r1" / "run.json").stat().st_mtime_ns == before
    longer = copy.deepcopy(values)
    longer["phases"]["duration"] = "200 ms"
    with pytest.raises(UsageError, match="is of another length"):
        perform_live({"much": longer}, rows, directory=tmp_path)
    assert (tmp_path / "much-r1" / "run.json").stat().st_mtime_ns == before
    # A repetition that comes to nothing takes nothing away.
    with monkeypatch.context() as broken, pytest.raises(EngineError):
        programs = tmp_path / "bin"
        programs.mkdir()
        (programs / "mqttlab-engine").symlink_to("/bin/false")
        broken.setattr(sys, "executable", str(programs / "python3"))
        perform_live({"much": values}, rows, directory=tmp_path)
    assert (tmp_path / "much-r1" / "run.json").stat().st_mtime_ns == before
    # Beside another one, which is what was asked for.
    little = copy.deepcopy(values)
    little["groups"][0]["publish"]["rate"] = "50 /s"
    again = perform_live({"much": values, "little": little}, rows, directory=tmp_path, jobs=2)
    assert (tmp_path / "much-r1" / "run.json").stat().st_mtime_ns != before
    assert "much-r1" in again.doubts and again.results["little"][0] >= 2
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "bin", "little-r1", "much-r1"]
