"""The cases of a study, performed: many simulations at once, or live runs one after the other, kept to go on with."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mqttlab.engine import EngineError, Interrupted
from mqttlab.recording import Recording
from mqttlab.runs import Job, LocalPool, Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

if TYPE_CHECKING:
    from mqttlab.plan import Plan

T = TypeVar("T")
Simulations = Mapping[str, T]


def simulate(
    scenarios: Mapping[str, dict[str, Any]],
    measure: Callable[[Recording], T],
    *,
    jobs: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> dict[str, T]:
    """Simulate scenarios and measure what they left; the recordings are thrown away.

    Args:
        scenarios: by name, as a scenario file's values.
        measure: what is kept of each recording.
        jobs: processes at once; as many as there are processors when left out.
        progress: told each name when its simulation is done.

    Raises:
        EngineError: a simulation did not complete; those that run are ended, those that wait are not begun.
        Interrupted: Ctrl-C, SIGTERM or SIGHUP; likewise.
    """

    def keep(job: Job, outcome: Outcome) -> T:
        try:
            return measure(_recording(job, outcome))
        finally:
            shutil.rmtree(outcome.directory, ignore_errors=True)

    with tempfile.TemporaryDirectory(prefix="mqttlab-study-") as scratch, LocalPool(keep, jobs=jobs) as pool:
        jobs_by_name = {name: Job(_plan(values, "sim"), Path(scratch, str(number)))
                        for number, (name, values) in enumerate(scenarios.items())}
        return _performed(pool, jobs_by_name, progress, "simulations")


def perform_live(
    scenarios: Mapping[str, dict[str, Any]],
    measure: Callable[[Recording], T],
    *,
    directory: Path,
    repetitions: int = 1,
    progress: Callable[[str], None] = lambda name: None,
) -> dict[str, list[T]]:
    """Run scenarios live, one after the other, and measure what they left.

    The recordings stay in ``directory``, by name and repetition; what is there and complete is not run again, so that
    a pass that was stopped goes on where it was. Each repetition has a seed of its own.

    Raises:
        EngineError: a run did not complete; the recordings before it stay.
        Interrupted: Ctrl-C, SIGTERM or SIGHUP; likewise.
    """

    def keep(job: Job, outcome: Outcome) -> T:
        return measure(_recording(job, outcome))

    results: dict[str, T] = {}
    wanted: dict[str, Job] = {}
    for repetition in range(1, repetitions + 1):
        for name, values in scenarios.items():
            label = f"{name}-r{repetition}"
            place = directory / label
            if (place / "run.json").is_file() and (recording := Recording.open(place)).complete:
                results[label] = measure(recording)
                progress(label)
                continue
            # What was stopped in the middle is of no use.
            shutil.rmtree(place, ignore_errors=True)
            wanted[label] = Job(_plan({**values, "seed": repetition}, "live"), place)
    with LocalPool(keep, jobs=1, live_alone=True) as pool:
        results |= _performed(pool, wanted, progress, "live runs")
    return {name: [results[f"{name}-r{repetition}"] for repetition in range(1, repetitions + 1)] for name in scenarios}


def _performed(
    pool: LocalPool[T], wanted: Mapping[str, Job], progress: Callable[[str], None], what: str,
) -> dict[str, T]:
    names = {job.identifier: name for name, job in wanted.items()}
    for job in wanted.values():
        pool.submit(job)
    results: dict[str, T] = {}
    try:
        for finished in pool.results():
            name = names[finished.job.identifier]
            results[name] = finished.result()
            progress(name)
    except Exception:
        if pool.asked is not None:
            raise Interrupted(f"the study was stopped by {pool.asked.name} when {len(results)} of {len(wanted)} "
                              f"{what} were done") from None
        raise
    return {name: results[name] for name in wanted}


def _recording(job: Job, outcome: Outcome) -> Recording:
    if outcome.verdict != "complete":
        raise EngineError(f"{job.plan['name']} could not be run to its end: {outcome.reason}")
    return Recording.open(outcome.directory)


def _plan(values: dict[str, Any], backend: str) -> Plan:
    return compile_plan(parse_values({**values, "backend": backend}, json.dumps(values.get("name", "scenario"))))
