"""One object for programs: what a report says, as JSON has it; ``schemas/report.json`` declares it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqttlab import metrics
from mqttlab.files import json_object
from mqttlab.recording import Recording
from mqttlab.report import facts, headline, stages
from mqttlab.report.text import verdict
from mqttlab.schemas import OUTPUT_SCHEMA


def document(recording: Recording) -> dict[str, Any]:
    """Who, how it ended, whether it may be believed, and every metric that is one number.

    Raises:
        RecordingError: a table cannot be read.
    """
    word, reasons = verdict(recording)
    plan = recording.plan
    return {
        "schema": OUTPUT_SCHEMA,
        "recording": str(recording.source or recording.directory),
        "run_id": recording.run_id,
        "name": recording.name,
        "backend": plan.get("backend"),
        "seed": _seed(plan),
        "started_at": recording.run.get("started_at"),
        "status": str(recording.run.get("status", "complete")),
        "verdict": word,
        "reasons": reasons,
        "not_recorded": [words for _, words in facts.left_out(recording)],
        "headline": headline.document(recording),
        "stages": stages.document(recording),
        "disconnections": metrics.disconnections(recording).to_dicts(),
        "answers": metrics.answers(recording).to_dicts(),
        "members": metrics.members(recording).to_dicts(),
        "metrics": metrics.summary(recording).to_dicts(),
    }


def ended(directory: Path, status: str, reason: str | None) -> dict[str, Any]:
    """The same of a run without tables, because it failed or had no time for them: what is not known is ``None``."""
    plan = json_object(directory / "plan.json")
    return {
        "schema": OUTPUT_SCHEMA, "recording": None if status == "failed" else str(directory),
        "run_id": None, "name": plan.get("name"), "backend": plan.get("backend"),
        "seed": _seed(plan), "started_at": None, "status": status,
        "verdict": "incomplete" if status == "incomplete" else None, "reasons": [reason or ""], "not_recorded": [],
        "headline": None, "stages": [], "disconnections": [], "answers": [], "members": [], "metrics": [],
    }


def _seed(plan: Mapping[str, Any]) -> Any:
    # Nothing of an import is drawn; its plan has the number 0.
    return None if "sources" in plan else plan.get("seed")
