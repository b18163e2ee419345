"""Each bug and defect that was found before has a test that holds it, and a fault that still applies to the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

import mutants  # noqa: E402

DEFECTS = mutants.defects()


def test_every_bug_of_the_review_and_every_section_of_the_defects_has_rows() -> None:
    numbers = [defect.number for defect in DEFECTS]
    assert len(set(numbers)) == len(numbers)
    assert {f"B{number}" for number in range(1, 19)} <= set(numbers)
    rows = {1: 16, 2: 14, 3: 15, 4: 9, 5: 8}
    assert {f"{section}.{row}" for section, last in rows.items() for row in range(1, last + 1)} <= set(numbers)
    assert all(defect.faults or defect.remark for defect in DEFECTS)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.number)
def test_a_fault_can_be_put_back_and_its_tests_are_there(defect: mutants.Defect) -> None:
    for name, old, new in defect.faults:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has this text {text.count(old)} times:\n{old}"
        assert old != new
    for test in defect.tests:
        if ".py::" in test:
            file, _, name = test.partition("::")
            source, heading = ROOT / "tests" / "python" / file, rf"def {name.partition('[')[0]}\("
            assert re.search(heading, source.read_text(encoding="utf-8")), test
        else:
            crate, target, name = test.split()
            folder = ROOT / "crates" / crate / ("src" if target in ("lib", "bins") else "tests")
            assert any(f"fn {name}(" in path.read_text(encoding="utf-8") for path in folder.rglob("*.rs")), test


def test_the_table_is_of_these_defects() -> None:
    assert mutants.TABLE.read_text(encoding="utf-8") == mutants.table(DEFECTS, mutants.results())


def test_what_was_tried_was_seen() -> None:
    tried = mutants.results()
    keys = {defect.key: defect.number for defect in DEFECTS if defect.faults}
    assert {keys[key]: row["result"] for key, row in tried.items() if key in keys} == {
        keys[key]: mutants.SEEN for key in tried if key in keys}
