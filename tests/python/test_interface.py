"""The package for programs and notebooks: what docs/how-to/notebook.md promises."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import polars as pl
import pytest

import mqttlab
from commands import mqttlab as command
from mqttlab import interface
from recordings import Message, write
from test_publications import ALARM, STATE, scenario, simulated

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "notebook.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")


def test_a_run_has_what_the_page_names(tmp_path: Path) -> None:
    recording = simulated(scenario([STATE, ALARM]), tmp_path / "run")
    run = mqttlab.open(tmp_path / "run")
    assert (run.name, run.verdict, run.reasons, run.directory) == ("publications", "valid", [], tmp_path / "run")
    assert run.headline["flows"][1]["publication"] == "alarm/{client}"
    messages = run.messages
    assert messages.height == recording.messages.height and tuple(messages.columns) == interface.MESSAGES
    first = messages.row(0, named=True)
    stored = recording.messages.row(0, named=True)
    assert (first["publisher"], first["subscriber"], first["publisher_group"]) == ("devices-0", "desk-0", "devices")
    assert first["latency_ms"] == pytest.approx(stored["latency_ns"] / 1e6)
    assert first["sent_s"] == pytest.approx(stored["sent_ns"] / 1e9)
    assert run.flows()["publication"].to_list() == ["state/{client}", "alarm/{client}"]
    assert set(run.clients()["client"]) == {"devices-0", "devices-1", "desk-0"}
    assert run.summary("run")["scope"].unique().to_list() == ["run"]
    assert run.table("packets").height and repr(run) == f"Run(directory={run.directory!r})"
    with pytest.raises(mqttlab.MqttlabError, match="no table 'paquets'; it has messages, packets"):
        run.table("paquets")
    with pytest.raises(mqttlab.MqttlabError, match="no stage 'busy'"):
        run.stage("busy")


def test_a_run_without_a_message_and_a_directory_without_a_run(tmp_path: Path) -> None:
    write(tmp_path / "none", [])
    run = mqttlab.open(str(tmp_path / "none"))
    assert run.messages.is_empty() and tuple(run.messages.columns) == interface.MESSAGES
    assert run.flows().is_empty() and run.clients().is_empty()
    with pytest.raises(mqttlab.MqttlabError, match="is not a recording"):
        mqttlab.open(tmp_path)


def test_messages_of_unknown_publishers_have_nothing_there(tmp_path: Path) -> None:
    write(tmp_path / "run", [Message(0, 10.0), Message(1, None, fate="lost")])
    messages = mqttlab.open(tmp_path / "run").messages
    assert messages["latency_ms"].to_list() == [10.0, None] and messages["fate"].to_list() == ["delivered", "lost"]
    assert messages["publication"].to_list() == [None, None]


def test_runs_are_compared_as_the_command_compares_them(tmp_path: Path) -> None:
    simulated(scenario(STATE), tmp_path / "first")
    simulated(scenario(STATE, networks=[{"between": ["field", "broker"], "up": {"delay": "40 ms"},
                                         "down": {"delay": "40 ms"}, "link": "shared"}]), tmp_path / "second")
    run = mqttlab.open(tmp_path / "first")
    found = [run.compare(mqttlab.open(tmp_path / "second")), run.compare(str(tmp_path / "second")),
             mqttlab.compare(tmp_path / "first", tmp_path / "second")]
    assert found[0].answer == found[1].answer == found[2].answer
    said = command("compare", tmp_path / "first", tmp_path / "second", "--json").stdout
    assert found[0].answer in said.replace("\\u2192", "→")
    p50 = found[0].quantiles.filter(quantile=0.5).row(0, named=True)
    # Each way is 35 ms longer; Nagle's algorithm lets a message wait for the acknowledgement of the one before.
    assert 35 <= p50["shift_ms"] <= 75
    differs = found[0].headlines.filter(state="differs")["measure"].to_list()
    assert "latency_ms_p50" in differs and found[0].metrics.height > 10
    with pytest.raises(mqttlab.MqttlabError):
        run.compare(tmp_path / "nowhere")


def test_a_stage_of_one_run_is_compared_with_that_stage_of_the_other(tmp_path: Path) -> None:
    halves = {"warm_up": "200 ms", "stages": [{"name": "calm", "for": "1 s"}, {"name": "busy", "for": "2 s"}],
              "cool_down": "10 s"}
    for name, seed in (("first", 1), ("second", 2)):
        simulated(scenario(STATE, phases=halves, seed=seed), tmp_path / name)
    first, second = (mqttlab.open(tmp_path / name) for name in ("first", "second"))
    said = json.loads(command("compare", tmp_path / "first", tmp_path / "second", "--stage", "busy", "--json").stdout)
    for other in (second, second.stage("busy"), tmp_path / "second"):
        found = first.stage("busy").compare(other)
        assert found.answer == said["answer"] and found.metrics.height == len(said["metrics"])
    assert first.compare(second.stage("busy")).answer == said["answer"]
    with pytest.raises(mqttlab.MqttlabError, match="two stages, .* take one stage of both runs"):
        first.stage("busy").compare(second.stage("calm"))


def test_an_experiment_has_its_tables(tmp_path: Path) -> None:
    done = command("try", "--simulate", "--clients", "3", "--rate", "5 /s", "--duration", "5s", "--qos", "0,1",
                   "--runs", tmp_path / "runs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [directory] = (each.parent for each in (tmp_path / "runs").glob("*/experiment.toml"))
    found = mqttlab.experiment(directory)
    assert found.answer and found.runs["metric"].n_unique() > 2 and {"runs", "points"} <= set(found.tables)
    assert isinstance(found.tables["points"], pl.DataFrame)
    with pytest.raises(mqttlab.MqttlabError):
        mqttlab.experiment(tmp_path)


def test_the_page_names_all_that_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    public = {name for name in vars(mqttlab.Run) if not name.startswith("_")} | {"directory"}
    assert {name for name in public if f"run.{name}" not in page} == set()
    assert {name for name in mqttlab.__all__ if f"mqttlab.{name}" not in page} == {
        "Comparison", "Experiment", "Run", "__version__"}
    for name in re.findall(r"`run\.(\w+)", page):
        assert name in public, name
    for holder, names in ((mqttlab.Comparison, ("answer", "basis", "cautions", "headlines", "metrics", "quantiles")),
                          (mqttlab.Experiment, ("answer", "runs", "tables"))):
        assert all(name in holder.__dataclass_fields__ or hasattr(holder, name) for name in names)


@pytest.mark.slow
def test_the_notebook_gives_what_it_shows(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    committed = nbformat.read(NOTEBOOK, as_version=4)
    again = nbformat.read(NOTEBOOK, as_version=4)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    client.NotebookClient(again, timeout=200, kernel_name="python3", resources={
        "metadata": {"path": str(tmp_path)}}).execute(env=environment)
    for before, after in zip(committed.cells, again.cells, strict=True):
        if before.cell_type == "code":
            assert [_shown(one) for one in before.outputs] == [_shown(one) for one in after.outputs], before.source


def _shown(output: dict[str, object]) -> str:
    data = output.get("data")
    text = data.get("text/plain", "") if isinstance(data, dict) else output.get("text", "")
    # An object's address is another one each time; a figure says no more.
    return "Figure" if str(text).startswith("Figure(") else re.sub(r"0x[0-9a-f]+", "0x", str(text))
