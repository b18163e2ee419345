"""The table of what was tried: ``benches/hostile/run.py``."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from test_benches import bench


def asked(**more: object) -> argparse.Namespace:
    return argparse.Namespace(**{"kills": 1, "mutations": 2, "seed": 3, "group": None, **more})


def test_every_kind_is_tried_by_tests_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    run = bench("hostile/run", monkeypatch)
    kinds = [kind for kind in run.KINDS if isinstance(kind.perform, run.Tests)]
    assert len(kinds) > 5
    assert [path for kind in kinds for path in kind.perform.paths() if not path.is_file()] == []
    for kind in kinds:
        assert any(kind.perform.chosen in path.read_text(encoding="utf-8") for path in kind.perform.paths()), kind.name


def test_what_failed_and_what_was_not_tried_is_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = bench("hostile/run", monkeypatch)
    told = tmp_path / "told.xml"
    told.write_text("""<testsuites><testsuite><testcase classname="a" name="one"/>
        <testcase classname="a" name="two"><failure/></testcase><testcase classname="a" name="three"><error/></testcase>
        <testcase classname="a" name="four"><skipped/></testcase></testsuite></testsuites>""", encoding="utf-8")
    found = run.judged(told)
    assert (found.tried, found.faults) == (3, ["a::two", "a::three"])
    group = run.control_group(asked())
    assert (group.tried, group.faults) == (0, [])
    lines = run.table([(run.KINDS[0], found), (run.KINDS[1], group)], asked()).splitlines()
    assert lines[0].startswith("`benches/hostile/run.py --kills 1 --mutations 2 --seed 3`")
    assert lines[4:6] == [f"| {run.KINDS[0].name} | {run.KINDS[0].what} | 3 | 2 |",
                          f"| {run.KINDS[1].name} | {run.KINDS[1].what} | not tried | 0 |"]
    notes = "\n".join(lines[6:])
    assert "1 tests that this machine skips" in notes and "a::two" in notes and "--group" in notes


def test_of_commands_with_little_memory_more_than_a_line_and_a_traceback_are_faults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = bench("hostile/run", monkeypatch)
    monkeypatch.setattr(run, "MEGABYTES", (64,))
    monkeypatch.setattr(run.kills.Place, "recording", Path("made/small"))
    answers = iter([(0, ""), (2, "mqttlab: one line"), (2, "one\ntwo"), (1, "Traceback"), (-9, "")])

    def begin(words: list[str], megabytes: int) -> object:
        status, said = next(answers)
        return run.subprocess.CompletedProcess(words, status, "", said)

    found = run.limited(asked(), begin)
    assert (found.tried, len(found.faults)) == (5, 3)
    assert words_of(found.faults) == ["report", "explain", "list"]


def words_of(faults: list[str]) -> list[str]:
    return [fault.split()[0] for fault in faults]
