"""Run directories: how they are named, and what is in the place where they are kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run directory, as far as its small files tell."""

    directory: Path
    name: str
    backend: str
    started: str
    status: str


def name_for(scenario: str, repetition: int, repetitions: int, runs: Path) -> Path:
    """A directory that does not exist yet: ``<scenario>-<UTC time>[-r<repetition>]``."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    suffix = f"-r{repetition}" if repetitions > 1 else ""
    candidate = runs / f"{scenario}-{stamp}{suffix}"
    number = 1
    while candidate.exists():
        number += 1
        candidate = runs / f"{scenario}-{stamp}{suffix}-{number}"
    return candidate


def list_runs(runs: Path) -> list[RunSummary]:
    """The runs below a directory, oldest first. Directories that are no recordings are passed over."""
    found = [_summary(plan.parent) for plan in sorted(runs.glob("*/plan.json"), key=lambda p: p.stat().st_mtime)]
    return [summary for summary in found if summary is not None]


def _summary(directory: Path) -> RunSummary | None:
    try:
        plan = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    ended, status = {}, "incomplete"
    for name in ("run.json", "incomplete.json"):
        try:
            ended = json.loads((directory / name).read_text(encoding="utf-8"))
            status = "complete" if name == "run.json" else "incomplete"
            break
        except (OSError, ValueError):
            continue
    started = str(ended.get("started_at", "")) or datetime.fromtimestamp(
        (directory / "plan.json").stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return RunSummary(
        directory=directory, name=str(plan.get("name", "?")), backend=str(plan.get("backend", "?")),
        started=started, status=status,
    )
