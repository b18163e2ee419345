"""Studies as packages: one shape for all, and usable wherever the package is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from mqttlab.cli.main import main
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies import Cell, Comparison
from mqttlab.studies.catalogue import known
from mqttlab.studies.chart import Chart, Series, svg
from mqttlab.studies.claims import claims_of, decides
from mqttlab.studies.study import printed_sources
from mqttlab.studies.table import pooled

ROOT = Path(__file__).resolve().parents[2]
STUDIES = known()


def test_all_five_are_there() -> None:
    assert list(STUDIES) == ["andersen2021", "borsatti2020", "perez2005", "schuhmacher2018", "varsani2021"]


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_the_same_shape(name: str) -> None:
    study = STUDIES[name]
    assert study.name == name
    assert (study.directory / "README.md").is_file()
    claims = claims_of(study.published)
    assert claims and all(claim["id"] and claim["text"] for claim in claims)
    assert list(study.published.glob("*.csv")) or name == "borsatti2020"
    cases = study.cases(study.published, ())
    names = {case.name for case in cases}
    assert names
    for effort in (study.quick, study.thorough):
        assert all(case.scenario(effort)["phases"]["duration"] for case in cases)
    # What decides a claim, and what is run live, is there.
    for claim in claims:
        assert any(decides(claim, case) for case in names), claim["id"]
    assert study.live.repetitions >= 5
    assert study.live.cases and set(study.live.cases) <= names


@pytest.mark.parametrize("name", STUDIES)
def test_every_scenario_of_a_study_compiles(name: str) -> None:
    study = STUDIES[name]
    cases = {case.name: case for case in study.cases(study.published, ())}
    # Of a family of hundreds every seventh, and all that are run live.
    for number, (label, case) in enumerate(cases.items()):
        if number % 7 == 0 or label in study.live.cases:
            compile_plan(parse_values(case.scenario(study.quick), label))


@pytest.mark.parametrize("name", STUDIES)
def test_every_table_has_its_cases(name: str) -> None:
    study = STUDIES[name]
    for table in study.tables(study.published):
        assert study.cases(study.published, [table]), table


def test_the_published_rows_are_counted() -> None:
    assert sum(len(printed_sources(study.published)) for study in STUDIES.values()) == 1020


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel holds it, far from the checkout: what is tracked, and nothing beside it."""
    site = tmp_path_factory.mktemp("site")
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "python/mqttlab"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            target = site / Path(name).relative_to("python")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    return site


def mqttlab(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = ("import sys, mqttlab; assert mqttlab.__file__.startswith(sys.argv.pop(1)); "
            "from mqttlab.cli import main; main()")
    return subprocess.run([sys.executable, "-c", code, str(site), *words], cwd=site.parent, capture_output=True,
                          text=True, check=False, timeout=200, env={**os.environ, "PYTHONPATH": str(site)})


def test_an_installed_package_lists_its_studies_from_anywhere(installed: Path) -> None:
    ran = mqttlab(installed, "study", "list")
    assert ran.returncode == 0, ran.stderr
    for name, study in STUDIES.items():
        assert name in ran.stdout
        assert study.title.split(",")[0] in ran.stdout


@pytest.mark.parametrize(("name", "table", "runs"), [
    ("andersen2021", "5.4", 2), ("borsatti2020", "laws", 36), ("perez2005", "5.2", 3), ("schuhmacher2018", "6", 18),
    ("varsani2021", "retained", 4)])
def test_an_installed_package_reruns_a_study_from_anywhere(installed: Path, name: str, table: str, runs: int) -> None:
    ran = mqttlab(installed, "study", name, "--quick", "--table", table)
    assert ran.returncode == 0, ran.stderr
    assert f"Table {table}" in ran.stdout
    assert f"{runs} simulations in" in ran.stdout


def test_a_claim_is_judged_with_its_own_cases_and_drawn(tmp_path: Path) -> None:
    out = tmp_path / "out.md"
    ran = CliRunner().invoke(main, ["study", "borsatti2020", "--quick", "--claim", "qos2-at-least-four",
                                    "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    text = out.read_text(encoding="utf-8")
    assert "| `qos2-at-least-four`" in text and text.count("| held |") == 1
    drawn = (tmp_path / "figures" / "figure-3b.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg") and "said: 4 to 7 (QoS 2)" in drawn
    ElementTree.fromstring(drawn)


def test_every_committed_result_is_of_every_claim() -> None:
    for name, study in STUDIES.items():
        text = (study.directory / "results.md").read_text(encoding="utf-8")
        for claim in claims_of(study.published):
            assert claim["text"] in text, f"{name}: {claim['id']}"


def test_an_unknown_claim_is_refused_with_those_that_are_known() -> None:
    ran = CliRunner().invoke(main, ["study", "borsatti2020", "--claim", "nothing"])
    assert ran.exit_code == 2
    assert "--claim nothing: borsatti2020 has no such claim; known: one-delay-then-round-trip" in ran.output


def test_what_is_not_run_live_is_said() -> None:
    ran = CliRunner().invoke(main, ["study", "borsatti2020", "--backend", "live", "--table", "placements"])
    assert ran.exit_code == 2
    assert "none of these is run live" in ran.output and "live.toml" in ran.output


def test_repetitions_have_an_interval_between_them() -> None:
    cells = [[Cell(table="1", place="here", metric="mean", published=2.0, ours=value, never=0.0)]
             for value in (1.9, 2.0, 2.1, 2.0, 2.0)]
    (cell,) = pooled(cells)
    assert cell.ours == pytest.approx(2.0)
    # Student's t with 4 degrees of freedom: 2.776 standard errors.
    assert cell.half == pytest.approx(2.776 * 0.0707107 / 5**0.5, rel=1e-3)
    assert cell.deviation_percent == (pytest.approx(0.0), pytest.approx(100 * cell.half / 2))
    (endless,) = pooled([*cells, [replace(cells[0][0], ours=float("inf"))]])
    assert endless.ours == float("inf") and endless.half is None


def test_a_verdict_has_numbers_or_says_what_it_waits_for() -> None:
    words = [Comparison(claim="a", text="", holds=holds, evidence=evidence).verdict
             for holds, evidence in ((True, "1"), (False, "1"), (None, "1"), (None, ""))]
    assert words == ["held", "refuted", "undecided", "not judged yet"]


def test_a_chart_without_points_is_refused_and_logarithms_pass_over_zero() -> None:
    with pytest.raises(ValueError, match="no point"):
        svg(Chart(name="nothing", title="", x="", y="", series=[Series(name="a", points=[(0.0, 1.0)])], log_x=True))
    drawn = svg(Chart(name="one", title="<&>", x="x", y="y", series=[
        Series(name="a", points=[(0.0, 1.0), (10.0, 5.0)], halves=[None, 6.0])], log_x=True, log_y=True))
    assert drawn.count("<circle") == 2 and "&lt;&amp;&gt;" in drawn
    ElementTree.fromstring(drawn)


def test_a_study_is_found_as_a_directory_too() -> None:
    ran = CliRunner().invoke(main, ["study", "studies/perez2005", "--table", "99.9"])
    assert ran.exit_code == 2
    assert "perez2005 has no such table; known: 5.2; 5.3" in ran.output


@pytest.mark.parametrize("name", ["perez", "perez205", "nowhere", "."])
def test_an_unknown_study_is_refused(name: str) -> None:
    ran = CliRunner().invoke(main, ["study", name])
    assert ran.exit_code == 2
    assert f"unknown study '{name}'" in ran.output


