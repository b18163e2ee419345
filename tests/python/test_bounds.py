"""What is too deep or too long is refused before it is read, in a line, and takes no more memory than others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commands import mqttlab
from mqttlab.dashboard.configure import draft_edits, drafts
from mqttlab.dashboard.pages import configure
from mqttlab.experiments import ExperimentError
from mqttlab.experiments import load as load_experiment
from mqttlab.scenario import ScenarioError, parse
from mqttlab.toml_reader import LEVELS_MAX, TooLarge, check_size, read_toml

MEGABYTE = 1_000_000
SMALL = """
name = "small"
phases = { duration = "1 s" }
networks = [{ between = ["field", "broker"], up = { delay = "1 ms" }, down = { delay = "1 ms" } }]
groups = [{ name = "g", host = "field", subscribe = ["a"] }]
"""
DEEP = {
    "dotted keys": "a." * 500 + "b = 1",
    "dotted keys in quotes": "\"a\"." * 500 + "b = 1",
    "a heading": "[" + "a." * 500 + "b]",
    "a dotted key in a table": "a = {" + "a." * 500 + "b = 1}",
    "arrays": "a = " + "[" * 500,
    "tables": "a = " + "{b = " * 500,
}


@pytest.mark.parametrize("what", DEEP)
def test_what_is_too_deep_is_one_line_wherever_a_scenario_is_read(what: str, tmp_path: Path) -> None:
    text = SMALL + DEEP[what]
    path = tmp_path / "deep.toml"
    path.write_text(text, encoding="utf-8")
    done = mqttlab("check", path)
    assert done.returncode == 2
    assert done.stderr == (f"mqttlab: {path}: arrays, tables or dotted keys are nested too deeply; no field needs more "
                           "than 6 levels\n")
    with pytest.raises(ScenarioError, match="nested too deeply"):
        drafts.check(text)
    # The form is that of nothing; what is wrong stands beside the text.
    assert configure.form(text)
    assert not draft_edits.is_toml(text)
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(f'name = "e"\nscenario = "{path.name}"\n', encoding="utf-8")
    with pytest.raises(ExperimentError, match="nested too deeply"):
        load_experiment(experiment)
    experiment.write_text(text, encoding="utf-8")
    with pytest.raises(ExperimentError, match="nested too deeply"):
        load_experiment(experiment)


def test_what_only_looks_deep_is_read() -> None:
    dots, brackets = "1.2.3." * 100, "[{" * 100
    text = f"""a = "{dots}{brackets}"
b = '{dots}{brackets}'  # {dots}{brackets}
c = '''
{brackets} "{dots}'''
d = \"\"\"
{dots} \\" {brackets} ""\"\"\"
e = [{", ".join(["1.5"] * 1000)}]
f.g.h = 1
"""
    assert set(read_toml(text)) == set("abcdef")
    check_size(".".join("a" * LEVELS_MAX) + " = 1")
    with pytest.raises(TooLarge):
        check_size(".".join("a" * (LEVELS_MAX + 1)) + " = 1")


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse("\ufeff" + SMALL).name == "small"


LONG = {
    "unknown keys": "".join(f"a{number}=1\n" for number in range(MEGABYTE // 9)),
    "groups without fields": "[[groups]]\n" * (MEGABYTE // 11),
    "groups in a line": "groups=[" + "{}," * (MEGABYTE // 3) + "]",
    "dotted keys": "".join(f"a{number}" + ".b" * 28 + "=1\n" for number in range(MEGABYTE // 66)),
    "short dotted keys": "".join(f"a{number}.b.c=1\n" for number in range(MEGABYTE // 13)),
    "numbers": "a=[" + "1," * (MEGABYTE // 2) + "]",
    "wrong filters": SMALL.replace('["a"]', "[" + "1," * (MEGABYTE // 2) + "]"),
    "a text": "description=\"" + "x\\n" * (MEGABYTE // 3) + "\"",
}
CHECK = """
import os, sys
from mqttlab.scenario import ScenarioError, parse
for text in sys.stdin.read().split("\\0"):
    child = os.fork()
    if child == 0:
        try:
            parse(text)
        except ScenarioError as error:
            os._exit(len(error.problems))
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_maxrss)
"""


def test_a_megabyte_is_refused_within_200_mb_whatever_is_in_it() -> None:
    done = subprocess.run([sys.executable, "-c", CHECK], input="\0".join(LONG.values()), capture_output=True, text=True,
                          check=True)
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(found) == len(LONG)
    for what, (problems, kilobytes) in zip(LONG, found, strict=True):
        assert 1 <= problems <= 101 and kilobytes < 200_000, (what, problems, kilobytes)
