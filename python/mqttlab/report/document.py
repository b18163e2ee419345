"""One object for programs: what a report says, as JSON has it; ``docs/reference/output.md`` describes it."""

from __future__ import annotations

from typing import Any

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.report import facts, headline, stages
from mqttlab.report.text import verdict

SCHEMA = 1
"""Grows when a field changes its meaning or goes; new ones may come at any time."""


def document(recording: Recording) -> dict[str, Any]:
    """Who, how it ended, whether it may be believed, and every metric that is one number.

    Raises:
        RecordingError: a table cannot be read.
    """
    word, reasons = verdict(recording)
    plan = recording.plan
    return {
        "schema": SCHEMA,
        "recording": str(recording.source or recording.directory),
        "run_id": recording.run_id,
        "name": recording.name,
        "backend": plan.get("backend"),
        "seed": plan.get("seed"),
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
