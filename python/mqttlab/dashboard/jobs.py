"""Runs that were started from the browser: a process of its own performs each, so that they outlive the dashboard.

```text
  dashboard ──► python -m mqttlab.dashboard.jobs JOB ──► engine ──► recording below the runs
                     │ job.json, progress.jsonl (below RUNS/.dashboard)
  dashboard ◄────────┘ read again and again, by whichever dashboard is there
```

A job's directory has ``scenario.toml``, ``job.json`` (what it is and how it stands, replaced as a whole) and
``progress.jsonl``, the engine's progress lines as they came. Whether a job still runs is told by a lock on its
directory, which ends with its process, whatever ends that.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqttlab.engine import Interruption
from mqttlab.errors import MqttlabError
from mqttlab.runs import Job, perform, take_directory
from mqttlab.runs.job import ulid
from mqttlab.runs.machine import live_alone
from mqttlab.scenario import compile_plan, load

PLACE = ".dashboard"
BEGINS_WITHIN_S = 20.0
# Of a long run: as much as its last minutes take.
TAIL_BYTES = 4_000_000
WAITING, RUNNING, ENDED = "waiting", "running", "ended"


@dataclass(frozen=True, kw_only=True)
class JobState:
    """How a job stands."""

    identifier: str
    name: str
    state: str
    """``waiting`` for the machine, ``running`` or ``ended``."""
    run: str | None
    """Its recording's name below the runs, once it has one."""
    verdict: str | None
    reason: str | None
    started: float
    process: int | None


class Jobs:
    """The jobs of one directory of runs."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._place = runs / PLACE

    def start(self, toml: str) -> str:
        """Begin a run of a scenario that was checked, and return the job's identifier.

        Raises:
            OSError: nothing can be written below the runs, or no process can be started.
        """
        identifier = ulid()
        place = self._place / identifier
        place.mkdir(parents=True)
        (place / "scenario.toml").write_text(toml, encoding="utf-8")
        _write(place, {"state": WAITING, "started": time.time()})
        with (place / "log.txt").open("wb") as log:
            subprocess.Popen([sys.executable, "-m", "mqttlab.dashboard.jobs", str(place), str(self._runs)],
                             stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        return identifier

    def all(self) -> list[JobState]:
        """Every job, the latest first."""
        places = sorted(self._place.glob("*/job.json"), reverse=True)
        return [state for place in places if (state := self.state(place.parent.name)) is not None]

    def state(self, identifier: str) -> JobState | None:
        """How a job stands; nothing where there is none of this name."""
        place = self._place / identifier
        if not identifier.isalnum():
            return None
        try:
            told = json.loads((place / "job.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        state, reason = str(told["state"]), told.get("reason")
        if state != ENDED and time.time() - told["started"] > BEGINS_WITHIN_S and not _held(place):
            state, reason = ENDED, "the process that performed it is gone"
        return JobState(identifier=identifier, name=str(told.get("name", "")), state=state, run=told.get("run"),
                        verdict=told.get("verdict"), reason=reason, started=float(told["started"]),
                        process=told.get("process"))

    def progress(self, identifier: str) -> list[dict[str, Any]]:
        """The engine's progress lines so far, of a long run the last of them."""
        lines = []
        with contextlib.suppress(OSError), (self._place / identifier / "progress.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            for line in file:
                with contextlib.suppress(ValueError):
                    # The first may have lost its beginning, the last its end.
                    lines.append(json.loads(line))
        return [line for line in lines if isinstance(line, dict)]

    def stop(self, identifier: str) -> bool:
        """Ask a job to end; what it has recorded is kept. False where none of this name runs."""
        state = self.state(identifier)
        if state is None or state.state == ENDED or state.process is None or not _held(self._place / identifier):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.process, signal.SIGTERM)
        return True


def _held(place: Path) -> bool:
    """Whether the job's process is there."""
    try:
        descriptor = os.open(place, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _write(place: Path, told: dict[str, Any]) -> None:
    """Replace what a job says of itself: nobody reads half of it."""
    made = place / "job.json.new"
    made.write_text(json.dumps(told), encoding="utf-8")
    made.replace(place / "job.json")


def main(place: Path, runs: Path) -> None:
    """Perform a job, in a process of its own."""
    held = os.open(place, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    told = {**json.loads((place / "job.json").read_text(encoding="utf-8")), "process": os.getpid()}
    _write(place, told)
    try:
        told |= _perform(place, runs, told)
    except MqttlabError as error:
        told |= {"verdict": "failed", "reason": " ".join(error.problems)}
    except Exception as error:
        told |= {"verdict": "failed", "reason": f"{type(error).__name__}: {error}"}
        raise
    finally:
        _write(place, {**told, "state": ENDED})


def _perform(place: Path, runs: Path, told: dict[str, Any]) -> dict[str, Any]:
    file = place / "scenario.toml"
    scenario = load(file)
    told["name"] = scenario.name
    _write(place, told)
    interruption = Interruption()
    with contextlib.ExitStack() as held, (place / "progress.jsonl").open("a", encoding="utf-8") as progress:
        held.enter_context(interruption.heard())
        lock = held.enter_context(live_alone(lambda: interruption.asked is not None)) if (
            scenario.backend == "live") else None
        directory = take_directory(scenario.name, 0, 1, runs).absolute()
        told |= {"state": RUNNING, "run": directory.name}
        _write(place, told)

        def observe(line: dict[str, Any]) -> None:
            progress.write(json.dumps(line) + "\n")
            progress.flush()

        try:
            job = Job(compile_plan(scenario), directory, identifier=place.name,
                      origin={"scenario": {"toml": file.read_text(encoding="utf-8"), "settings": {}}})
            outcome = perform(job, observe, interruption, () if lock is None else (lock,))
        finally:
            # A run that failed before it started leaves nothing.
            with contextlib.suppress(OSError):
                directory.rmdir()
    _remember(directory, runs)
    return {"verdict": outcome.verdict, "reason": outcome.reason}


def _remember(directory: Path, runs: Path) -> None:
    """Take the recording into the runs' catalog; the recording is what matters."""
    from mqttlab.catalog import Catalog, url_for

    try:
        with Catalog.open(url_for(runs)) as catalog:
            catalog.add(directory)
    except (MqttlabError, OSError) as error:
        sys.stderr.write(f"not in the catalog: {error}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
