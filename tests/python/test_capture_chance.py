"""Captures drawn by chance: the same for ever, and judged right where the importer is."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "benches" / "capture"


def bench(name: str) -> ModuleType:
    """A module of the bench, beside another bench's of the same name."""
    sys.path.insert(0, str(BENCH))
    found = importlib.util.spec_from_file_location(f"captures_{name}", BENCH / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


chance = bench("chance")
passing, streams = sys.modules["passing"], sys.modules["streams"]


@pytest.mark.parametrize(("number", "what"), [
    (6, "sim, broker, constant, event: disconnect"),
    (18, "sim, broker, late, no IP numbers (0), event: vanish"),
])
def test_a_capture_that_is_read_right_is_judged_right(number: int, what: str, tmp_path: Path) -> None:
    row = chance.tried(number, tmp_path)
    assert (row["what"], row["word"], row["problems"]) == (what, "right", {})
    assert row["numbers"]["sent"] == row["numbers"]["sent_right"] > 0


def test_a_wrong_latency_of_a_valid_import_is_a_fault(tmp_path: Path) -> None:
    drawn = chance.draw_capture(27)
    capture = chance.make(drawn, tmp_path)
    later = {key: replace(sent, at_ns=sent.at_ns - 5_000_000) for key, sent in capture.right.sent.items()}
    capture.right.sent.update(later)
    found = chance.judge(capture.files, tmp_path / "import", capture.names, capture.right, capture.expected,
                         capture.never, tolerance_ns=chance.EXACT_NS)
    assert found.word == "wrong and valid"
    assert set(found.problems) == {"time of sending", "latency"}


def test_data_of_a_live_run_is_at_its_receiver_before_the_receiver_acknowledges_it() -> None:
    def frame(number: int, sent_ns: int, arrived_ns: int | None) -> Any:
        passed = passing.Pass(link="l", is_up=True, entered_ns=sent_ns, sent_ns=None, delivered_ns=arrived_ns)
        return passing.Frame(number, b"", 1, [passed])

    segments = [(0, 10, frame(0, 1, 5_020)), (10, 20, frame(1, 2, 90_000)), (10, 20, frame(2, 3, 6_030)),
                (20, 30, frame(3, 4, None))]
    stream = streams.Stream(segments=segments, acks=[(10, frame(4, 5_000, 9_000)), (30, frame(5, 6_000, 9_100))])
    stream.settle_arrivals(50_000)
    assert [each.arrived_ns for _, _, each in segments] == [4_999, 90_000, 5_999, None]
    # A broker may pass a message on before its host acknowledges it.
    stream.settle_arrivals(50_000, [(10, 4_980)])
    assert [each.arrived_ns for _, _, each in segments] == [4_979, 90_000, 5_999, None]
    # None arrives before it is sent, where a loopback interface shows the answer first.
    alone = frame(6, 5_003, 5_003)
    streams.Stream(segments=[(0, 10, alone)], acks=[(10, frame(7, 5_000, 5_000))]).settle_arrivals(50_000)
    assert alone.arrived_ns == 5_003


def test_what_is_unknown_of_a_shared_subscription_is_no_wrong_answer(tmp_path: Path) -> None:
    row = chance.tried(385, tmp_path)
    assert (row["word"], row["problems"]) == ("cannot be told", {})
    assert row["numbers"]["unknown"] == row["numbers"]["sent"] - row["numbers"]["delivered"] > 0


def test_numbers_that_are_kept_for_judging_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["chance.py", "--from", "1000000", "--count", "1"])
    with pytest.raises(SystemExit):
        chance.main()
