"""Run directories: how they are named, and what is in the place where they are kept."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mqttlab import scratch
from mqttlab.checks import Checks
from mqttlab.engine import is_being_written
from mqttlab.files import as_open_as, json_object, make_private


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run directory, as far as its small files tell."""

    directory: Path
    name: str
    backend: str
    started: str
    status: str


@contextlib.contextmanager
def taken_directory(
    scenario: str, repetition: int, repetitions: int, runs: Path,
) -> Iterator[tuple[Path, scratch.Promise]]:
    """A new directory: ``<scenario>-<UTC time>[-r<repetition>][-<number>]``, and the promise that a run will be in it.

    It is taken by making it, so that of two runs that start in the same second each has its own. It goes again where no
    run has begun in it, unless it is promised by somebody else.
    """
    with scratch.promised() as promise:
        yield _take(scenario, repetition, repetitions, runs, promise), promise


def _take(scenario: str, repetition: int, repetitions: int, runs: Path, promise: scratch.Promise) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    suffix = f"-r{repetition}" if repetitions > 1 else ""
    make_private(runs)
    mode = as_open_as(runs)
    for number in itertools.count(1):
        candidate = (runs / (f"{scenario}-{stamp}{suffix}" + (f"-{number}" if number > 1 else ""))).absolute()
        promise.of(candidate)
        try:
            candidate.mkdir(mode=mode)
        except FileExistsError:
            promise.of(None)
            continue
        return candidate
    raise AssertionError("counting does not end")


def list_runs(runs: Path, *, but: Collection[Path] = ()) -> list[RunSummary]:
    """The runs below a directory, oldest first, those of experiments too. Directories without a plan are passed over.

    Args:
        runs: the directory.
        but: directories that are left out, as absolute paths.
    """
    base = runs.resolve()
    places = [place for place in run_places(runs) if base / place.relative_to(runs) not in but]
    return [_seen(place) for place in places]


def _seen(place: Path) -> RunSummary:
    found, checks = summary_of(place), Checks()
    there = [path for name in ("plan.json", "run.json", "incomplete.json") if (path := place / name).is_file()]
    if found is not None and all(json_object(path) and not checks.problem(path) for path in there):
        return found[0]
    return RunSummary(directory=place, name="?", backend="?", started="", status="damaged")


def run_places(runs: Path) -> list[Path]:
    """The directories with a plan in them, those of experiments too, by when it was written."""
    found = []
    # A glob of ten thousand directories takes ten times as long.
    for above in (runs, *(place / "runs" for place in _directories(runs))):
        for place in _directories(above):
            try:
                found.append(((place / "plan.json").stat().st_mtime_ns, place))
            except OSError:
                continue
    return [place for _, place in sorted(found)]


def _directories(above: Path) -> list[Path]:
    try:
        with os.scandir(above) as entries:
            return [above / entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []


def summary_of(directory: Path) -> tuple[RunSummary, dict[str, Any], dict[str, Any]] | None:
    """A run directory's summary, with its plan and with what its ``run.json`` or ``incomplete.json`` says; None where
    there is no plan that can be read."""
    plan = json_object(directory / "plan.json")
    if not plan:
        return None
    ended = json_object(directory / "run.json")
    status = "complete" if ended else "incomplete"
    ended = ended or json_object(directory / "incomplete.json")
    if not ended and is_being_written(directory):
        status = "running"
    started = str(ended.get("started_at") or "")
    if not started or started.startswith("1970-01-01T00:00:00."):
        # Nobody knew; simulations of schema version 1 say 1970.
        written = (directory / "plan.json").stat().st_mtime
        started = datetime.fromtimestamp(written, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    summary = RunSummary(
        directory=directory, name=str(plan.get("name", "?")), backend=str(plan.get("backend", "?")),
        started=started, status=status)
    return summary, plan, ended
