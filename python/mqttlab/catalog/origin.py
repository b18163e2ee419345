"""Where a run comes from: the experiment that it is of, or the scenario that it was started with.

An experiment's directory has its file, its design and a journal with a line for each run that began
(:mod:`mqttlab.experiments`); a run that was started by itself has ``origin.json`` with its scenario as written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mqttlab.files import json_lines, json_object, written_scenario

JOURNAL = "journal.jsonl"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment, as its directory tells."""

    directory: Path
    name: str
    kind: str
    toml: str
    scenario: str
    design: dict[str, Any]
    created_at: str | None
    began: dict[str, dict[str, Any]]
    """The journal's lines of runs that began, by their identifier."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where one run comes from."""

    scenario: str | None = None
    """The scenario's text, as written."""
    experiment: Experiment | None = None
    point: int | None = None
    levels: dict[str, str] | None = None
    """By factor, as written."""
    kind: str | None = None
    repetition: int | None = None
    block: int | None = None
    order_no: int | None = None
    attempt: int | None = None


def origin_of(directory: Path, run_id: str | None) -> Origin:
    """Where a recording comes from, as far as files beside and above it tell."""
    for above in (directory.parent, directory.parent.parent):
        if (above / JOURNAL).is_file():
            experiment = experiment_in(above)
            began = experiment.began.get(run_id or "")
            if began is not None:
                return Origin(
                    scenario=experiment.scenario or None, experiment=experiment, point=began.get("point"),
                    levels=began.get("levels") or {}, kind=began.get("kind"), repetition=began.get("repetition"),
                    block=began.get("block"), order_no=began.get("order_no"), attempt=began.get("attempt"))
    written = written_scenario(directory)
    return Origin(scenario=written[0]) if written else Origin()


def experiment_in(directory: Path) -> Experiment:
    """The experiment of a directory with a journal."""
    journal = directory / JOURNAL
    status = journal.stat()
    return _experiment(directory, status.st_mtime_ns, status.st_size)


# Of thousands of runs each asks for its experiment; the key changes when the journal does.
@lru_cache(maxsize=8)
def _experiment(directory: Path, _mtime_ns: int, _size: int) -> Experiment:
    lines = json_lines(directory / JOURNAL)
    created = next((line for line in lines if line.get("event") == "created"), {})
    design = json_object(directory / "design.json")
    return Experiment(
        directory=directory, name=str(created.get("name") or design.get("name") or directory.name),
        kind=str(design.get("kind") or "unknown"), toml=_text(directory / "experiment.toml"),
        scenario=_text(directory / "scenario.toml"), design=design, created_at=created.get("at"),
        began={str(line["run"]): line for line in lines if line.get("event") == "began" and "run" in line})


def read_again() -> None:
    """Forget what was read of experiments: their files have changed, and their journals have not."""
    _experiment.cache_clear()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
