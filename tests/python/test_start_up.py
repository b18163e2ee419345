"""What a command loads before it answers: a new import at the top of a module does not go unnoticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mqttlab.catalog import Catalog

ROOT = Path(__file__).resolve().parents[2]
# Each takes longer to load than these commands may take in all.
SLOW = {"polars", "numpy", "scipy", "plotly", "pydantic", "rich", "xlsxwriter", "sqlalchemy", "dash", "distributed"}


def loaded(*words: str) -> set[str]:
    """The packages that a command has loaded when it ends, this one's modules by their full names."""
    code = ("import sys\n"
            "from mqttlab.__main__ import main\n"
            f"sys.argv = ['mqttlab', *{words!r}]\n"
            "try:\n    main()\n"
            "finally:\n"
            "    names = {n if n.startswith('mqttlab') else n.partition('.')[0] for n in sys.modules}\n"
            "    print('loaded', *names, file=sys.stderr)\n")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
                            cwd=ROOT)
    assert result.returncode == 0, result.stderr
    return set(result.stderr.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("import", "capture", "--help"), ("--version",)])
def test_help_loads_nothing_that_takes_long(words: tuple[str, ...]) -> None:
    names = loaded(*words)
    assert names & SLOW == set()
    # The commands' own words, and nothing of what they do.
    assert {name for name in names if name.startswith("mqttlab.")} <= {
        "mqttlab.__main__", "mqttlab.errors", "mqttlab.files", "mqttlab.cli", "mqttlab.cli.main", "mqttlab.cli.imports",
        "mqttlab.cli.catalogs",
        "mqttlab.cli.problems", *(name for name in names if name.startswith("mqttlab.cli.commands"))}


def test_a_list_of_recordings_loads_nothing_that_takes_long(tmp_path: Path) -> None:
    assert loaded("list", "--runs", str(tmp_path)) & SLOW == set()


def test_a_question_to_the_catalog_loads_no_data_frames(tmp_path: Path) -> None:
    with Catalog.open(str(tmp_path / "catalog.db")):
        pass
    names = loaded("list", "--runs", str(tmp_path), "--where", "backend = sim", "--sort", "-started")
    assert names & SLOW == {"pydantic", "sqlalchemy"}


def test_a_check_loads_what_reads_scenarios_and_no_tables() -> None:
    assert loaded("check", "scenarios/demo.toml") & SLOW == {"pydantic"}


def test_a_run_and_its_report_load_no_package_for_a_single_function(tmp_path: Path) -> None:
    names = loaded("run", "scenarios/demo.toml", "--backend", "sim", "--runs", str(tmp_path), "--set",
                   "phases.duration=1 s")
    # The catalog, which a run goes into, needs SQLAlchemy.
    assert names & {"xlsxwriter", "alembic", "psycopg", "pymysql", "plotly", "scipy"} == set()
