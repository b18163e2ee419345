"""Wrong scenarios: each is refused in one line that names the place and the remedy, and nothing is started."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqttlab.cli import main
from mqttlab.memory import memory_left
from mqttlab.scenario import ScenarioError, compile_plan, parse, warnings_of
from mqttlab.scenario.load import load
from mqttlab.scenario.topics import may_match
from wrong_input import (
    COMMANDS,
    GOOD,
    PAGE,
    ROOT,
    SCENARIOS,
    UNUSUAL,
    command_message,
    page,
    prepare,
    scenario_message,
)


def test_the_good_scenario_is_good() -> None:
    assert parse(GOOD).name == "good"
    assert warnings_of(parse(GOOD)) == []


def test_the_page_of_messages_is_what_mqttlab_says() -> None:
    committed = PAGE.read_text(encoding="utf-8")
    assert committed == page(), "run: python tests/python/wrong_input.py, and read the difference"


def test_the_page_holds_200_scenarios_and_60_command_lines() -> None:
    assert sum(len(cases) for cases in SCENARIOS.values()) >= 200
    assert len(COMMANDS) >= 60


CASES = [case for cases in SCENARIOS.values() for case in cases]


def test_each_wrong_scenario_is_refused_in_lines_that_name_the_file() -> None:
    for old, new in CASES:
        said = scenario_message(old, new)
        assert said, new
        for line in said:
            assert line.startswith("good.toml"), (new, line)
            assert "\n" not in line
            # A value is shown as TOML has it, and only as far as it can be read.
            assert len(line) < 400, line
            assert "Input should" not in line, line


def test_each_warning_stops_nothing_and_each_has_a_case() -> None:
    for old, new in UNUSUAL:
        said = scenario_message(old, new)
        assert said, new
        assert all(line.startswith("warning: good.toml") for line in said), said


def test_no_wrong_command_line_makes_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    for line in COMMANDS:
        status, said = command_message(line)
        assert status == 2, (line, said)
        if line not in ("", "import"):
            assert len(said) == 1, (line, said)
            assert said[0].startswith("mqttlab: ")
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_every_committed_scenario_is_right_and_usual() -> None:
    for path in sorted((ROOT / "scenarios").rglob("*.toml")):
        # The study's combat net radio is asked for more than it carries, which is one of its findings.
        found = [words for words in warnings_of(load(path)) if "must carry 12.6 kbit/s from the server" not in words]
        assert found == [], path


@pytest.mark.parametrize(("left", "warns"), [(10**12, False), (None, False), (10**9, True)])
@pytest.mark.parametrize("packets", [True, False])
def test_what_summing_up_holds_is_held_against_the_machine(
        left: int | None, warns: bool, packets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqttlab.scenario.unusual.memory_left", lambda: left)
    text = GOOD.replace("[phases]", f"[recording]\npackets = {str(packets).lower()}\n[phases]", 1)
    found = warnings_of(parse(re.sub('duration = ".*?"', 'duration = "1000 h"', text, count=1)))
    assert any("summing up its frames" in str(problem) for problem in found) is (warns and packets)


def test_what_is_left_of_memory_is_less_than_all() -> None:
    left = memory_left()
    assert left is not None and 0 < left < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_the_value_in_a_message_is_the_one_that_was_written() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(GOOD.replace("delay = \"50 ms\"", 'delay = "50 ms", overhead = "1 MB"', 1))
    assert '"1 MB"' in caught.value.problems[0]


def test_what_the_command_line_has_set_is_not_blamed_on_a_line_of_the_file(tmp_path: Path) -> None:
    scenario = tmp_path / "good.toml"
    scenario.write_text(GOOD, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load(scenario, {"phases.duration": 5})
    assert "good.toml, as set on the command line: `phases.duration` is 5" in caught.value.problems[0]


def test_tens_of_thousands_of_hosts_are_compiled_in_seconds() -> None:
    text = GOOD.replace("[hosts.field]", "[hosts.field]\ncount = 65000").replace("count = 3", "count = 65000")
    began = time.process_time()
    plan = compile_plan(parse(text))
    assert len(plan["hosts"]) == 65_001
    # It takes half a second of processor time; a step that is quadratic takes minutes.
    assert time.process_time() - began < 20


def test_only_up_is_given_and_check_says_what_down_is(tmp_path: Path) -> None:
    scenario = tmp_path / "good.toml"
    scenario.write_text(GOOD.replace('down = { rate = "250 kbit/s", delay = "50 ms" }\n', ""), encoding="utf-8")
    result = CliRunner().invoke(main, ["check", str(scenario)])
    assert result.exit_code == 0
    assert "field → broker: 250 kbit/s, 50 ms" in result.stdout
    assert "broker → field: not emulated" in result.stdout


@pytest.mark.parametrize(("pattern", "topic", "matches"), [
    ("a/+", "a/{client}", True), ("a/+/c", "a/{client}", False), ("a/#", "a", True), ("#", "$SYS/x", False),
    ("a/{client}", "a/{client}", True), ("a/3", "a/{client}", True), ("a/x", "a/{client}", False),
    ("$share/p/a/+", "a/b", True), ("a/x{client}", "a/y{topic}", False), ("a/+", "a/b/c", False), ("+/b", "/b", True),
])
def test_a_filter_and_a_topic_with_placeholders_may_match(pattern: str, topic: str, matches: bool) -> None:
    assert may_match(pattern, topic) is matches


def test_the_line_of_a_problem_is_named() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(GOOD.replace("count = 3", "cuont = 3"), "wrong.toml")
    line = GOOD.replace("count = 3", "cuont = 3").splitlines().index("cuont = 3") + 1
    assert caught.value.problems == [f"wrong.toml:{line}: `groups[0].cuont` is an unknown field; did you mean `count`?"]


@pytest.mark.parametrize("command", ["check", "run"])
def test_the_command_exits_with_2_and_starts_nothing(command: str, tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.toml"
    scenario.write_text(GOOD.replace("qos = 1, payload", "qos = 3, payload"), encoding="utf-8")
    arguments = [sys.executable, "-m", "mqttlab", command, str(scenario)]
    result = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wrong.toml"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "mqttlab", "check", str(tmp_path / "none.toml")]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert "none.toml: cannot be read" in result.stderr
