"""What `--json` prints: one object on standard output, whatever becomes of the run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mqttlab.cli import main

ROOT = Path(__file__).resolve().parents[2]


def mqttlab(*words: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, words)), prog_name="mqttlab")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    runs = tmp_path_factory.mktemp("runs")
    return mqttlab("run", ROOT / "scenarios" / "demo.toml", "--backend", "sim", "--runs", runs, "--json", "--set",
                   "phases.duration=2 s", "--set", "repetitions=2"), runs


def fields(heading: str) -> set[str]:
    page = (ROOT / "docs" / "reference" / "output.md").read_text(encoding="utf-8")
    text = page.partition(heading)[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))


def test_a_run_prints_one_object_with_the_fields_that_are_documented(run: tuple[Result, Path]) -> None:
    result, runs = run
    told = json.loads(result.stdout)
    assert set(told) == fields("## Runs and imports")
    assert (told["exit_status"], len(told["runs"])) == (result.exit_code, 2)
    for one in told["runs"]:
        assert set(one) == fields("## Report of a run")
        assert Path(one["recording"]).parent == runs
        assert (one["status"], one["verdict"], one["page"]) == ("complete", "valid", None)
        assert not (Path(one["recording"]) / "report.html").exists()
    seeds = {one["seed"] for one in told["runs"]}
    assert len(seeds) == 2


def test_a_report_prints_the_same_object_as_the_run(run: tuple[Result, Path], tmp_path: Path) -> None:
    one = json.loads(run[0].stdout)["runs"][0]
    page = tmp_path / "page.html"
    again = json.loads(mqttlab("report", one["recording"], "--json", "--html", page).stdout)
    assert (again.pop("page"), page.is_file()) == (str(page), True)
    assert again == {name: value for name, value in one.items() if name != "page"}
    sent = [row for row in again["metrics"] if (row["scope"], row["metric"]) == ("run", "messages_sent")]
    assert [(row["name"], row["value"] > 0, row["unit"]) for row in sent] == [(None, True, "messages")]


def test_wrong_input_prints_no_object() -> None:
    result = mqttlab("run", ROOT / "scenarios" / "demo.toml", "--set", "phases.durations=2 s", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    result = mqttlab("report", ROOT, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
