"""What is kept of a run: how it ended and its responses, worked out where the recording is."""

from __future__ import annotations

import functools
import shutil
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from mqttlab import secrets
from mqttlab.errors import MqttlabError
from mqttlab.experiments.responses import Response, Value, values_of
from mqttlab.recording import Recording
from mqttlab.runs import Job, Outcome
from mqttlab.runs.storage import store


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What the journal gets of a run."""

    verdict: str
    valid: bool | None
    """Whether what the recording says may be believed; ``None`` where it is not complete."""
    reason: str | None
    responses: tuple[Value, ...]
    seconds: float
    """From the plan's writing to the end of the recording."""
    bytes: int
    worker: str
    warnings: tuple[str, ...] = ()


def keep(job: Job, outcome: Outcome, wanted: Iterable[Response] = ()) -> Kept:
    """Work out what is kept of a run. At the level of a module, so that it can be sent to workers.

    A run whose responses cannot be computed is kept as failed, with the reason: one bad recording ends no experiment.
    """
    directory = outcome.directory
    valid: bool | None = None
    responses: tuple[Value, ...] = ()
    reason, verdict = outcome.reason, outcome.verdict
    if verdict == "complete":
        try:
            recording = Recording.open(directory)
            validity = recording.run.get("validity") or {}
            valid = bool(validity.get("valid", True))
            reason = reason or "; ".join(str(words) for words in validity.get("reasons") or ()) or None
            responses = tuple(values_of(recording, wanted))
        except MqttlabError as error:
            verdict, reason = "failed", f"its responses cannot be computed: {error}"
    seconds, size = _written(directory)
    return Kept(verdict=verdict, valid=valid, reason=reason, responses=responses, seconds=seconds, bytes=size,
                worker=socket.gethostname(), warnings=tuple(outcome.warnings))


def keep_at(job: Job, outcome: Outcome, wanted: Iterable[Response], to: str) -> Kept:
    """The same, with the recording moved to a place by URL, below its own name."""
    kept = keep(job, outcome, wanted)
    if outcome.directory.is_dir():
        store(outcome.directory, f"{to.rstrip('/')}/{job.directory.name}")
        shutil.rmtree(outcome.directory)
    return kept


def keeping(wanted: Iterable[Response], to: str | None = None) -> Callable[[Job, Outcome], Kept]:
    """An executor's ``keep`` for these responses; with the URL that recordings are moved to, if they are."""
    if to is not None:
        # The queue writes it down.
        return functools.partial(keep_at, wanted=tuple(wanted), to=secrets.safe_url(to))
    return functools.partial(keep, wanted=tuple(wanted))


def adopted(directory: Path, wanted: Iterable[Response]) -> Kept | None:
    """What is kept of a recording that is complete, though nobody was there to see its end."""
    if not (directory / "run.json").is_file():
        return None
    return keep(Job({}, directory), Outcome(verdict="complete", directory=directory), wanted)  # type: ignore[typeddict-item]


def _written(directory: Path) -> tuple[float, int]:
    """Seconds that a run took, and the bytes of its files."""
    if not directory.is_dir():
        return 0.0, 0
    times, size = [], 0
    for path in directory.rglob("*"):
        if path.is_file():
            found = path.stat()
            size += found.st_size
            times.append(found.st_mtime)
    return (max(times) - min(times), size) if times else (0.0, 0)
