"""What experiments say, as a list shows it: question, state, answer, date. The answer is that of the report.

An answer is kept beside the journal (``answer.json``) until the journal changes: working it out takes a second.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mqttlab import scratch
from mqttlab.errors import MqttlabError
from mqttlab.experiments import ExperimentDirectory, find_experiments
from mqttlab.files import json_object

if TYPE_CHECKING:
    from mqttlab.experiments import RunRecord

FILE = "answer.json"
WORDS = {"broken": "thresholds broken", "undecided": "thresholds undecided", "held": "thresholds held"}


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One experiment."""

    name: str
    question: str
    state: str
    """How many runs are done, and what became of its thresholds."""
    answer: str
    verdict: str
    """Of its thresholds together: ``broken``, ``undecided``, ``held`` or ``none``."""
    date: str
    """When its last run began, in ISO 8601; empty before the first one."""


def listed(runs: Path) -> list[Listed]:
    """The experiments below a directory of runs, the latest first."""
    found = [one(path) for path in find_experiments(runs)]
    return sorted(found, key=lambda each: each.date, reverse=True)


def one(path: Path) -> Listed:
    """One experiment; what cannot be read says why in the place of its answer."""
    try:
        directory = ExperimentDirectory.open(path)
        records = directory.runs()
        answer, verdict = _answer(directory)
        return Listed(name=path.name, question=directory.experiment.file.question, answer=answer, verdict=verdict,
                      state=_state(directory, records, verdict), date=max((run.began for run in records), default=""))
    except MqttlabError as error:
        return Listed(name=path.name, question="", state="cannot be read", answer=str(error).splitlines()[0],
                      verdict="none", date="")


def _state(directory: ExperimentDirectory, records: list[RunRecord], verdict: str) -> str:
    done = sum(record.state in ("done", "aborted") for record in records if record.kind == "run")
    left = len(directory.pending())
    words = f"{done} of {done + left} runs" if left else f"complete, {done} runs"
    return f"{words}; {WORDS[verdict]}" if verdict in WORDS else words


def _answer(directory: ExperimentDirectory) -> tuple[str, str]:
    """The answer and the verdict, from the file or worked out anew."""
    stamp = [(directory.path / name).stat().st_mtime_ns for name in ("journal.jsonl", "experiment.toml")]
    with contextlib.suppress(MqttlabError, OSError):
        kept = json_object(directory.path / FILE)
        if kept.get("stamp") == stamp:
            return str(kept["answer"]), str(kept["state"])
    from mqttlab.analysed import analysed
    from mqttlab.report.experiment.answer import answer

    try:
        told = answer(analysed(directory))
    except MqttlabError as error:
        return f"no answer yet: {str(error).splitlines()[0]}", "none"
    # Who may only read asks again the next time.
    with contextlib.suppress(OSError), scratch.unfinished(directory.path / FILE) as made:
        made.write_text(json.dumps({"stamp": stamp, "answer": told.text, "state": told.state}), encoding="utf-8")
    return told.text, told.state
