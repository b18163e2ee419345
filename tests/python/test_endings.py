"""Why a recording is not complete: a kind with fields, whose words the reader makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqttlab.recording import ENDINGS, Recording
from mqttlab.report.text import verdict

CASES: list[tuple[Any, str]] = [
    ({"kind": "signal", "name": "SIGTERM"}, "the run was stopped by SIGTERM"),
    ({"kind": "stopped_at", "at_ns": 1_500_000_000}, "it was stopped at 1.5 s of simulated time, as asked"),
    ({"kind": "abandoned"}, "the program that started the engine has ended"),
    ({"kind": "server_exit", "server": "north", "status": "signal 9", "log": "north.log"},
     "the server `north` ended during the run (signal 9); see north.log"),
    ({"kind": "server_exit", "server": "0", "status": "", "log": ""}, "a server ended during the run"),
    ({"kind": "killed"}, "the producer ended without finishing the recording"),
    ({"kind": "going_on", "until": "2026-01-01T00:00:00Z"},
     "the run is still in progress; this is what it had written at 2026-01-01T00:00:00Z"),
    ({"kind": "evidence", "problems": ["cut short", "torn"]}, "cut short; torn"),
    ({"kind": "disk", "problem": "no space left"}, "no space left"),
    ({"kind": "of a later version"}, "of a later version"),
    # As it was stored before.
    ("the broker ended during the run", "the broker ended during the run"),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "words"), CASES, ids=lambda value: str(value)[:40])
def test_the_words_are_made_of_what_is_stored(stored: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")
    (tmp_path / "incomplete.json").write_text(json.dumps({"status": "incomplete", "reason": stored}), encoding="utf-8")
    recording = Recording.open(tmp_path)
    assert (recording.run["reason"], recording.run["ending"]) == (words, stored)
    assert verdict(recording) == ("incomplete", [words])


def test_every_kind_is_shown_here() -> None:
    assert set(ENDINGS) <= {stored["kind"] for stored, _ in CASES if isinstance(stored, dict)}
