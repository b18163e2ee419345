"""The journal: what was begun and how it ended, one JSON object a line, appended and never changed.

::

    created {name, digest, version}
    began   {run, kind, point, point_key, levels, block, repetition, order_no, seed, attempt, plan_digest, backend,
             directory}
    ended   {run, verdict, valid, reason, responses, seconds, bytes, worker, interrupted, warnings}
    stale   {runs, why}
    note    {text}

A line is written at once and synchronised before a run begins, so that what the engine does is never unknown here. The
last line may be torn by the death of the writer; it is passed over, and the next one begins on a line of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mqttlab.experiments.responses import Value
from mqttlab.files import json_lines

NAME = "journal.jsonl"


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run of an experiment, as far as the journal tells."""

    run: str
    """A ULID."""
    kind: str
    """``run``, ``control`` or ``pilot``."""
    point: int
    point_key: str
    levels: dict[str, str]
    """By factor, as written."""
    block: int
    repetition: int
    order_no: int
    """Place in the order in which runs were begun, from 0."""
    seed: int
    attempt: int
    """From 1."""
    plan_digest: str
    backend: str
    directory: str
    """Below the experiment's directory, or a URL."""
    began: str
    ended: str | None = None
    verdict: str | None = None
    valid: bool | None = None
    reason: str | None = None
    interrupted: bool = False
    """Ended by somebody who asked for it, or by the death of what performed it; not by what it measured."""
    aborted: bool = False
    """Ended by a threshold."""
    stale: bool = False
    """Made by another version of the experiment: not counted any more."""
    seconds: float = 0.0
    bytes: int = 0
    worker: str = ""
    responses: tuple[Value, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """``running``, ``done``, ``invalid``, ``incomplete``, ``failed``, ``aborted`` or ``stale``."""
        if self.stale:
            return "stale"
        if self.verdict is None:
            return "running"
        if self.aborted:
            return "aborted"
        if self.verdict != "complete":
            return self.verdict
        return "invalid" if self.valid is False else "done"

    @property
    def task(self) -> str:
        """What it is a run of: :attr:`mqttlab.experiments.schedule.Task.key`."""
        return f"{self.kind}/{self.point_key}/{self.block}"


@dataclass
class Journal:
    """An experiment's journal, open for appending."""

    path: Path
    _torn: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.path.is_file():
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    self._torn = file.read(1) != b"\n"

    def append(self, event: str, **values: Any) -> dict[str, Any]:
        """Write an event; it is on the disk when this returns."""
        line = {"event": event, "at": now(), **values}
        text = ("\n" if self._torn else "") + json.dumps(line, ensure_ascii=False) + "\n"
        with self.path.open("ab", buffering=0) as file:
            file.write(text.encode())
            os.fsync(file.fileno())
        self._torn = False
        return line


def now() -> str:
    """The time, as journals have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read(path: Path) -> list[dict[str, Any]]:
    """The events of a journal; lines that were torn are passed over."""
    if not path.is_file():
        return []
    return [event for event in json_lines(path) if "event" in event]


def runs(events: Iterable[dict[str, Any]]) -> dict[str, RunRecord]:
    """The runs of a journal by identifier, in the order in which they were begun."""
    found: dict[str, RunRecord] = {}
    for event in events:
        kind = event["event"]
        if kind == "began":
            record = began(event)
            found[record.run] = record
        elif kind == "ended" and event["run"] in found:
            found[event["run"]] = ended(found[event["run"]], event)
        elif kind == "stale":
            for run in event["runs"]:
                if run in found:
                    found[run] = replace(found[run], stale=True)
    return found


def began(event: dict[str, Any]) -> RunRecord:
    """A run that was begun."""
    names = ("run", "kind", "point", "point_key", "levels", "block", "repetition", "order_no", "seed", "attempt",
             "plan_digest", "backend", "directory")
    return RunRecord(**{name: event[name] for name in names}, began=event["at"])


def ended(record: RunRecord, event: dict[str, Any]) -> RunRecord:
    """The same run, ended."""
    names = ("verdict", "valid", "reason", "seconds", "bytes", "worker", "interrupted", "aborted")
    given = {name: event[name] for name in names if event.get(name) is not None}
    return replace(record, ended=event["at"], responses=tuple(Value(**value) for value in event.get("responses", ())),
                   warnings=tuple(event.get("warnings", ())), **given)
