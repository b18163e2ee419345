"""Studies as packages: one shape for all, and usable wherever the package is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqttlab.cli.main import main
from mqttlab.studies.catalogue import known
from mqttlab.studies.claims import claims_of

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
    assert cases or name == "varsani2021"
    for effort in (study.quick, study.thorough):
        assert all(case.scenario(effort)["phases"]["duration"] for case in cases)


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


def test_an_installed_package_reruns_a_study_from_anywhere(installed: Path) -> None:
    ran = mqttlab(installed, "study", "andersen2021", "--quick", "--table", "5.4")
    assert ran.returncode == 0, ran.stderr
    assert "2 simulations in" in ran.stdout


def test_a_study_of_files_shows_what_was_simulated(tmp_path: Path) -> None:
    out = tmp_path / "out.md"
    ran = CliRunner().invoke(main, ["study", "schuhmacher2018", "--quick", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    text = out.read_text(encoding="utf-8")
    assert "| relay-nagle-off, QoS 1 | mean delay, ms | – |" in text
    assert text.count("not decided") == len(claims_of(STUDIES["schuhmacher2018"].published))


def test_a_study_is_found_as_a_directory_too() -> None:
    ran = CliRunner().invoke(main, ["study", "studies/perez2005", "--table", "99.9"])
    assert ran.exit_code == 2
    assert "perez2005 has no such table; known: 5.2" in ran.output


@pytest.mark.parametrize("name", ["perez", "perez205", "nowhere", "."])
def test_an_unknown_study_is_refused(name: str) -> None:
    ran = CliRunner().invoke(main, ["study", name])
    assert ran.exit_code == 2
    assert f"unknown study '{name}'" in ran.output


def test_a_study_without_scenarios_says_where_its_values_are() -> None:
    ran = CliRunner().invoke(main, ["study", "varsani2021"])
    assert ran.exit_code == 2
    assert "has no scenarios yet" in ran.output and "published" in ran.output
