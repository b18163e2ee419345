"""What a command loads before it answers: a new import at the top of a module does not go unnoticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqttlab.catalog import Catalog
from mqttlab.networks.link import Part
from mqttlab.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "fuzz" / "corpus" / "capture" / "pcapng-le"
# Each takes longer to load than these commands may take in all.
SLOW = {"polars", "numpy", "scipy", "plotly", "pydantic", "rich", "xlsxwriter", "sqlalchemy", "dash", "distributed"}


def modules(*words: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = ("import sys\n"
            "from mqttlab.__main__ import main\n"
            f"sys.argv = ['mqttlab', *{words!r}]\n"
            "try:\n    main()\n"
            "finally:\n"
            "    print('loaded', *sys.modules, file=sys.stderr)\n")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
                            cwd=ROOT)
    assert result.returncode == 0, result.stderr
    return set(result.stderr.splitlines()[-1].split()[1:])


def loaded(*words: str) -> set[str]:
    """The packages that a command has loaded when it ends, this one's modules by their full names."""
    return {name if name.startswith("mqttlab") else name.partition(".")[0] for name in modules(*words)}


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("import", "capture", "--help"), ("--version",)])
def test_help_loads_nothing_that_takes_long(words: tuple[str, ...]) -> None:
    names = loaded(*words)
    assert names & SLOW == set()
    # The commands' own words, and nothing of what they do.
    assert {name for name in names if name.startswith("mqttlab.")} <= {
        "mqttlab.__main__", "mqttlab.errors", "mqttlab.files", "mqttlab.control_groups", "mqttlab.scratch",
        "mqttlab.digits", "mqttlab.cli", "mqttlab.cli.main",
        "mqttlab.cli.imports", "mqttlab.cli.catalogs", "mqttlab.foreign", "mqttlab.terminal",
        "mqttlab.cli.problems", "mqttlab.cli.status", "mqttlab.version",
        *(name for name in names if name.startswith("mqttlab.cli.commands"))}


def test_a_list_of_recordings_loads_nothing_that_takes_long(tmp_path: Path) -> None:
    assert loaded("list", "--runs", str(tmp_path)) & SLOW == set()


def test_a_question_to_the_catalog_loads_no_data_frames(tmp_path: Path) -> None:
    with Catalog.open(str(tmp_path / "catalog.db")):
        pass
    names = loaded("list", "--runs", str(tmp_path), "--where", "backend = sim", "--sort", "-started")
    assert names & SLOW == {"pydantic", "sqlalchemy"}


def test_a_check_loads_what_reads_scenarios_and_no_tables() -> None:
    names = loaded("check", "scenarios/demo.toml")
    assert names & SLOW == {"pydantic"}
    # A hundred types, for type checkers alone.
    assert "mqttlab.plan.types" not in names


def parts(part: type[Part]) -> list[type[Part]]:
    return [part, *(below for subclass in part.__subclasses__() for below in parts(subclass))]


def test_annotations_of_fields_are_compiled_once_and_not_by_every_command() -> None:
    declared = [part for part in parts(Part) if part.__module__.startswith(("mqttlab.scenario.", "mqttlab.networks."))]
    assert Scenario in declared and len(declared) > 40
    # As text, pydantic compiles and evaluates each when its class is made.
    texts = {f"{part.__name__}.{name}" for part in declared
             for name, annotation in part.__annotations__.items() if isinstance(annotation, str)}
    assert texts == set()


def test_a_run_and_its_report_load_no_package_for_a_single_function(tmp_path: Path) -> None:
    names = loaded("run", "scenarios/demo.toml", "--backend", "sim", "--runs", str(tmp_path), "--set",
                   "phases.duration=1 s")
    # It makes a catalog of the directory, and goes into it.
    assert (tmp_path / "catalog.db").is_file()
    assert names & {"sqlalchemy", "xlsxwriter", "alembic", "psycopg", "pymysql", "plotly", "scipy"} == set()


def test_a_comparison_of_two_runs_loads_no_package_for_a_single_function() -> None:
    run = str(ROOT / "tests" / "schemas" / "3" / "simulated")
    assert loaded("compare", run, run) & {"scipy", "plotly", "pydantic", "sqlalchemy"} == set()


def test_how_many_modules_small_commands_load(tmp_path: Path) -> None:
    # Some more than today, so that another Python has room; each takes a third of a millisecond.
    assert len(modules("--help")) < 165
    assert len(modules("list", "--runs", str(tmp_path))) < 200
    assert len(modules("check", "scenarios/demo.toml")) < 360


def test_an_import_without_its_page_loads_what_reads_it(tmp_path: Path) -> None:
    names = loaded("import", "capture", str(CAPTURE), "--no-html", "--output", str(tmp_path / "run"), "--catalog",
                   "none")
    assert names & (SLOW | {"alembic"}) == {"polars", "numpy", "pydantic", "rich"}
    assert "mqttlab.scenario.model" not in names


@pytest.mark.parametrize("words", [("report", "{run}", "--html", "{page}"), ("explain", "{run}")])
def test_who_reads_a_recording_loads_no_reader_of_scenarios(tmp_path: Path, words: tuple[str, ...]) -> None:
    # Its classes are a third of what such a command loads, and the plan of a recording is not checked again.
    run = tmp_path / "run"
    # An explanation is written into the recording.
    shutil.copytree(ROOT / "tests" / "schemas" / "3" / "simulated", run)
    places = {"run": run, "page": tmp_path / "page.html"}
    names = loaded(*(word.format(**places) for word in words))
    assert "mqttlab.report" in names and "mqttlab.scenario.model" not in names


def test_a_check_does_not_look_through_what_is_installed() -> None:
    code = ("import sys\n"
            "opened = []\n"
            "sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == 'open' else None)\n"
            "from mqttlab.__main__ import main\n"
            "sys.argv = ['mqttlab', 'check', 'scenarios/demo.toml']\n"
            "try:\n    main()\n"
            "finally:\n    print(sum(name.endswith('entry_points.txt') for name in opened), file=sys.stderr)\n")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
                            cwd=ROOT)
    assert result.stderr.splitlines()[-1] == "0"
