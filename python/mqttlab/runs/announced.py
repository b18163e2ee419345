"""Which runs of this user go on, whoever started them, and what their engines say.

A run is announced while it is performed: a directory of :mod:`mqttlab.scratch` has what it is, and the engine's
progress lines. Who watches reads them; to write them takes a run no more than four lines a second. Nothing of it is
part of the recording, and a run whose announcement cannot be written goes on without one.

Of a long run the lines become rarer, so that a day of them is some ten thousand.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqttlab import scratch, secrets
from mqttlab.engine import is_locked
from mqttlab.files import json_object
from mqttlab.runs.job import Job

PURPOSE = "run"
RUN, LINES = "run.json", "lines.jsonl"
# So many ticks are written one by one, then every second of as many, every fourth, ...; one in ten seconds at least.
TICKS_OF_A_KIND = 2400
EVERY_MOST = 40
Observe = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Announced:
    """A run that goes on."""

    identifier: str
    """The recording's."""
    name: str
    backend: str
    directory: Path
    """Where its recording will be."""
    lines: Path
    """The engine's progress lines so far, the last perhaps cut."""


@contextlib.contextmanager
def announced(job: Job, observe: Observe) -> Iterator[Observe]:
    """Announce a run for as long as the block takes; what it yields is to be given the engine's lines."""
    held = None
    try:
        with contextlib.suppress(scratch.ScratchError, OSError):
            held = scratch.take(PURPOSE)
            told = {"identifier": job.identifier, "name": job.plan["name"], "backend": job.plan["backend"],
                    "directory": str(job.directory.absolute())}
            (held.path / RUN).write_text(json.dumps(told), encoding="utf-8")
        yield observe if held is None else _writing(held.path / LINES, observe)
    finally:
        if held is not None:
            held.release()


def going_on() -> list[Announced]:
    """The runs that are announced now; none where the place cannot be read."""
    found = []
    with contextlib.suppress(scratch.ScratchError, OSError):
        for place in sorted(scratch.own().glob(f"{scratch.PREFIX}{PURPOSE}-*")):
            # Whoever announced it may have been killed, or end in this moment.
            with contextlib.suppress(OSError, KeyError):
                told = json_object(place / RUN)
                if told and is_locked(place):
                    found.append(Announced(
                        identifier=str(told["identifier"]), name=str(told["name"]), backend=str(told["backend"]),
                        directory=Path(told["directory"]), lines=place / LINES))
    return found


def _writing(path: Path, observe: Observe) -> Observe:
    seen = 0

    def both(line: dict[str, Any]) -> None:
        nonlocal seen
        seen += line.get("event") == "tick"
        if line.get("event") != "tick" or seen % min(EVERY_MOST, 1 << (seen // TICKS_OF_A_KIND)) == 0:
            text = json.dumps(line)
            with contextlib.suppress(OSError), path.open("a", encoding="utf-8") as file:
                file.write((secrets.hidden(text) if line.get("event") == "warning" else text) + "\n")
        observe(line)

    return both
