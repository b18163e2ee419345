"""Whatever a user can type ends in a line for each problem, and never in a traceback."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import polars as pl
import pytest
from click.testing import CliRunner, Result

from mqttlab import __main__, errors
from mqttlab.calibration import CalibrationError
from mqttlab.cli import main
from mqttlab.cli.status import WITHOUT_RUNS
from mqttlab.engine import EngineError
from mqttlab.errors import MqttlabError, UsageError
from mqttlab.export import ExportError
from mqttlab.recording import RecordingError
from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parent / "data"
SCENARIO = """
name = "short"
backend = "sim"
description = "[/] [bold"
phases = { duration = "1 s" }
networks = [{ between = ["field", "broker"], model = "satcom" }]

[[groups]]
name = "publishers"
host = "field"
publish = { topic = "a", payload = "20 B", interval = "1 s" }

[[groups]]
name = "subscribers"
host = "field"
subscribe = ["a"]
"""


def mqttlab(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "short.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def one_line(result: Result, status: int, *words: str) -> None:
    """The command has said one line on standard error, with these words, and nothing else."""
    assert result.exit_code == status, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("mqttlab: ")
    for word in words:
        assert word in result.stderr


def test_every_error_is_in_one_tree_and_the_tree_is_drawn() -> None:
    for kind in (UsageError, ScenarioError, EngineError, RecordingError, ExportError, CalibrationError):
        assert issubclass(kind, MqttlabError)
        assert kind.__name__ in (errors.__doc__ or "")


def test_a_run_below_a_file_is_refused_before_anything_is_made(scenario: Path) -> None:
    before = sorted(path.name for path in scenario.parent.iterdir())
    one_line(mqttlab("run", scenario, "--runs", scenario), 2, "is not a directory")
    one_line(mqttlab("run", scenario, "--runs", scenario / "deeper"), 2, "short.toml is not a directory")
    one_line(mqttlab("run", scenario, "--runs", "/proc/x"), 2, "nothing can be written to /proc")
    one_line(mqttlab("run", scenario, "--runs", "/dev/full"), 2, "is not a directory")
    one_line(mqttlab("import", "log", scenario, "--output", "/dev/full"), 2, "--output /dev/full")
    assert sorted(path.name for path in scenario.parent.iterdir()) == before


def test_without_a_temporary_directory_the_remedy_is_named(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(scenario / "not-a-directory"))
    one_line(mqttlab("run", scenario, "--runs", "r", "--set", "backend=live"), 1, "set TMPDIR to a directory")


@pytest.mark.parametrize("deep", ["a = " + "[" * 100_000, "a = " + "{b=" * 100_000, "a = [" + "9" * 5000 + "]"])
def test_a_scenario_that_is_too_deep_or_too_long_is_not_toml(scenario: Path, deep: str) -> None:
    scenario.write_text(deep, encoding="utf-8")
    one_line(mqttlab("check", scenario), 2, "short.toml")


def test_a_deep_value_on_the_command_line_is_a_wrong_value(scenario: Path) -> None:
    result = mqttlab("check", scenario, "--set", "seed=" + "[" * 100_000)
    one_line(result, 2, "`seed`")
    assert len(result.stderr) < 300


def test_what_is_no_text_file_is_named(scenario: Path) -> None:
    one_line(mqttlab("check", scenario.parent), 2, "is a directory; name a file in it, such as ")
    one_line(mqttlab("check", "none.toml"), 2, "none.toml: cannot be read: No such file or directory")
    one_line(mqttlab("check", sys.executable), 2, "is not UTF-8 text")
    one_line(mqttlab("check", scenario / "a"), 2, "Not a directory")
    one_line(mqttlab("check", "a" * 300), 2, "File name too long")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(scenario: Path) -> None:
    scenario.chmod(0)
    one_line(mqttlab("check", scenario), 2, "Permission denied")


def test_brackets_in_a_description_are_printed_as_they_are(scenario: Path) -> None:
    result = mqttlab("check", scenario)
    assert result.exit_code == 0, result.output
    assert "[/] [bold" in result.stdout


def test_one_place_is_set_once(scenario: Path) -> None:
    twice = mqttlab("check", scenario, "--set", "seed=1", "--set", "seed=2")
    one_line(twice, 2, "`seed` already has a value from --set")
    twice = mqttlab("check", scenario, "--set", "groups[0].count=1", "--set", "groups.0.count=2")
    one_line(twice, 2, "`groups[0].count`")
    twice = mqttlab("check", scenario, "--backend", "sim", "--set", "backend=live")
    one_line(twice, 2, "already has a value from --backend")


def test_a_setting_may_be_a_table_as_a_scenario_writes_it(scenario: Path) -> None:
    payload = "groups[0].publish.payload="
    for written in ("{size = '1.5 kB'}", '{"size": "1.5 kB"}', "1.5 kB"):
        checked = mqttlab("check", scenario, "--set", payload + written)
        assert checked.exit_code == 0, checked.output
        assert "1.5 kB" in checked.stdout or "1500 B" in checked.stdout, checked.stdout
    one_line(mqttlab("check", scenario, "--set", payload + "{sice = '1 kB'}"), 2,
             "`groups[0].publish.payload.sice`", "size")
    # What is neither is text, whatever it begins with.
    one_line(mqttlab("check", scenario, "--set", payload + "{size"), 2, "{size")
    one_line(mqttlab("check", scenario, "--set", payload + "{}\nseed = 2"), 2, "is not a payload")


@pytest.mark.parametrize("tolerance", ["-5", "nan", "inf", "much"])
def test_a_tolerance_is_a_percentage(scenario: Path, tolerance: str) -> None:
    one_line(mqttlab("compare", ".", ".", "--tolerance", tolerance), 2, f"'{tolerance}' is not a percentage")


def test_a_table_that_a_study_does_not_have_is_named_with_those_that_it_has() -> None:
    one_line(mqttlab("study", "perez2005", "--table", "99.9"), 2, "99.9", "known: 5.2; 5.3")
    one_line(mqttlab("study", "andersen2021", "--table", "9.9"), 2, "9.9", "known: 4.1; 5.1; 5.2")


def test_list_needs_a_directory(scenario: Path) -> None:
    one_line(mqttlab("list", "--runs", "nowhere"), 2, "does not exist")
    one_line(mqttlab("list", "--runs", scenario), 2, "is not a directory")
    # Nobody has said that there are runs: where none was made there are none.
    assert mqttlab("list").exit_code == 0


def test_outputs_do_not_make_directories_that_nobody_asked_for(scenario: Path) -> None:
    (scenario.parent / "plan.json").write_text("{}", encoding="utf-8")
    for command in (["report", ".", "--html", "none/x.html"], ["export", ".", "--xlsx", "none/x.xlsx"],
                    ["export", ".", "--csv", "none/x"], ["study", "perez2005", "--out", "none/x"]):
        one_line(mqttlab(*command), 2, "there is no directory none")
    assert not (scenario.parent / "none").exists()


def test_a_word_that_is_no_command_or_option_comes_with_the_nearest() -> None:
    one_line(mqttlab("rnu"), 2, "there is no command 'rnu'; did you mean `run`? (see mqttlab --help)")
    one_line(mqttlab("import", "captur"), 2, "did you mean `capture`?")
    one_line(mqttlab("run", "--backnd", "sim"), 2, "there is no option --backnd; did you mean `--backend`?")
    one_line(mqttlab("run"), 2, "SCENARIO is missing (see mqttlab run --help)")
    one_line(mqttlab("explain", ".", "--slowest", "0"), 2, "--slowest: 0 must be 1 or more")


def test_recordings_that_are_damaged_are_named(scenario: Path) -> None:
    run = scenario.parent / "run"
    run.mkdir()
    for plan in ("", "[]", "{", "[" * 100_000):
        (run / "plan.json").write_text(plan, encoding="utf-8")
        one_line(mqttlab("report", run), 2, "plan.json cannot be read")
    (run / "plan.json").write_text(json.dumps({"name": "x"}), encoding="utf-8")
    one_line(mqttlab("compare", run, run), 2, "layout.json cannot be read")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def renamed(path: Path, old: str, new: str) -> None:
    pl.read_parquet(path).rename({old: new}).write_parquet(path)


@pytest.mark.parametrize(("table", "damage"), [
    ("round_trips", cut), ("link_sums", cut), ("packet_sums", cut), ("attribution", cut),
    ("packet_sums", lambda path: renamed(path, "fixed_header_bytes", "fixed_header_\0ytes")),
    ("packet_sums", lambda path: renamed(path, "fixed_header_bytes", "fixed_header_cytes")),
    ("link_sums", lambda path: renamed(path, "link", "lino")),
    # Polars panics.
    ("link_sums", lambda path: shutil.copy(DATA / "link_sums-one-byte.parquet", path)),
])
def test_a_derived_table_that_is_damaged_is_one_line(
    table: str, damage: Callable[[Path], None], summed: Path, tmp_path: Path,
) -> None:
    run = shutil.copytree(summed, tmp_path / "run")
    damage(run / f"{table}.parquet")
    done = mqttlab("report", run)
    assert done.exit_code == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("mqttlab: ") and "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def summed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with every derived table."""
    root = tmp_path_factory.mktemp("summed")
    values = {
        "name": "summed", "backend": "sim", "phases": {"duration": "2 s"},
        "networks": [{"between": ["field", "broker"], "up": {"rate": "1 Mbit/s", "delay": "20 ms", "loss": "2 %"}}],
        "groups": [{"name": "pub", "host": "field", "count": 2, "publish": {
            "topic": "gps/{client}", "qos": 1, "payload": "30 B", "interval": "100 ms"}},
            {"name": "sub", "host": "field", "subscribe": [{"filter": "gps/+", "qos": 1}]}]}
    outcome = perform(Job(compile_plan(parse_values(values)), root / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return root / "run"


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run([sys.executable, "-m", "mqttlab", "networks"], cwd=tmp_path, stdout=writing,
                            stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writing)
    assert result.stderr == ""


def test_a_full_disk_behind_the_output_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([sys.executable, "-m", "mqttlab", "networks"], cwd=tmp_path, stdout=full,
                                stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines() == ["mqttlab: the output cannot be written: No space left on device"]


def test_ctrl_c_where_no_run_goes_on_is_one_line(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mqttlab.cli.check.load", interrupted)
    result = mqttlab("check", scenario)
    # The terminal has echoed ^C: the line begins below it.
    assert (result.exit_code, result.stderr) == (1, "\nmqttlab: interrupted\n")


def test_ctrl_c_while_modules_are_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mqttlab.cli.main", interrupted)
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert (ended.value.code, capsys.readouterr().err) == (1, "mqttlab: interrupted\n")


def test_the_list_of_commands_has_whole_sentences() -> None:
    listed = mqttlab("--help").stdout.partition("Commands:")[2]
    assert "..." not in listed


def commands() -> list[list[str]]:
    imports = main.commands["import"]
    assert isinstance(imports, click.Group)
    return [[], *([name] for name in main.commands), *(["import", name] for name in imports.commands)]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_help_teaches_by_example_and_says_the_exit_statuses(words: list[str]) -> None:
    result = mqttlab(*words, "--help")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    # Once: of commands that make recordings all of theirs, else those of a command that makes none.
    makes = words[:1] in (["run"], ["try"], ["experiment"], ["import"])
    said = "Exit status, of several" if makes else "Exit status: mqttlab COMMAND" if not words else WITHOUT_RUNS
    assert text.count("Exit status") == text.count(said) == 1
    told = {int(number) for number in re.findall(r"^ +(\d)  \S", result.stdout, flags=re.MULTILINE)}
    assert told == (set() if not makes else set(range(7)) if words[0] in ("run", "experiment") else {0, 1, 2, 3, 6})
    # The use, and an example besides.
    assert text.count(" ".join(["mqttlab", *words])) >= 2, text


def test_a_scenario_with_a_byte_order_mark_is_read(scenario: Path) -> None:
    plain = mqttlab("check", scenario, "--plan")
    scenario.write_bytes(b"\xef\xbb\xbf" + scenario.read_bytes())
    marked = mqttlab("check", scenario, "--plan")
    assert marked.exit_code == 0 and marked.stdout == plain.stdout and marked.stderr == plain.stderr
    scenario.write_bytes(b"\xef\xbb\xbf" + b"name = ")
    one_line(mqttlab("check", scenario), 2, "short.toml: is not TOML")
    experiment = scenario.with_name("experiment.toml")
    experiment.write_text('\ufeffname = "e"\nscenario = "nowhere.toml"\n', encoding="utf-8")
    assert "is not TOML" not in mqttlab("experiment", experiment, "--dry-run").stderr


def test_a_report_in_a_folder_that_cannot_be_written_to_says_how_to_have_it(tmp_path: Path) -> None:
    sample = shutil.copytree(ROOT / "tests" / "schemas" / "4" / "simulated", tmp_path / "run")
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", "-o", "ro", sample, sample], capture_output=True,
                                           check=False).returncode != 0:
        pytest.skip("a read-only file system can only be mounted by root")
    try:
        result = mqttlab("report", sample)
        assert result.exit_code == 2
        assert result.stderr == (f"mqttlab: {sample}/report.html: Read-only file system; write the report elsewhere "
                                 "with --html FILE\n")
        assert mqttlab("report", sample, "--html", tmp_path / "report.html").exit_code == 0
        one = mqttlab("report", sample, "--html", sample / "other.html")
        assert one.stderr == f"mqttlab: {sample}/other.html: Read-only file system\n"
    finally:
        subprocess.run(["umount", "-l", sample], check=False)
