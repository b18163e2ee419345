"""Run directories: how they are named, and what is in the place where they are kept."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mqttlab.engine import is_being_written


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run directory, as far as its small files tell."""

    directory: Path
    name: str
    backend: str
    started: str
    status: str


def take_directory(scenario: str, repetition: int, repetitions: int, runs: Path) -> Path:
    """Make a new directory: ``<scenario>-<UTC time>[-r<repetition>][-<number>]``.

    It is taken by making it, so that of two runs that start in the same second each has its own.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    suffix = f"-r{repetition}" if repetitions > 1 else ""
    runs.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        candidate = runs / (f"{scenario}-{stamp}{suffix}" + (f"-{number}" if number > 1 else ""))
        try:
            candidate.mkdir()
        except FileExistsError:
            continue
        return candidate
    raise AssertionError("counting does not end")


def list_runs(runs: Path, *, but: Collection[Path] = ()) -> list[RunSummary]:
    """The runs below a directory, oldest first, those of experiments too. What is no recording is passed over.

    Args:
        runs: the directory.
        but: directories that are left out, as absolute paths.
    """
    base = runs.resolve()
    plans = [plan for pattern in ("*/plan.json", "*/runs/*/plan.json") for plan in runs.glob(pattern)
             if base / plan.parent.relative_to(runs) not in but]
    found = [_summary(plan.parent) for plan in sorted(plans, key=lambda p: p.stat().st_mtime)]
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
    if not ended and is_being_written(directory):
        status = "running"
    started = str(ended.get("started_at") or "")
    if not started or started.startswith("1970-01-01T00:00:00."):
        # Nobody knew; simulations of schema version 1 say 1970.
        written = (directory / "plan.json").stat().st_mtime
        started = datetime.fromtimestamp(written, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return RunSummary(
        directory=directory, name=str(plan.get("name", "?")), backend=str(plan.get("backend", "?")),
        started=started, status=status,
    )
