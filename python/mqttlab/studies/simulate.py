"""The cases of a study, performed: many simulations at once, or live runs, few at once and kept to go on with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mqttlab import scratch
from mqttlab.engine import EngineError, Interrupted, held
from mqttlab.errors import UsageError
from mqttlab.recording import Recording
from mqttlab.runs import Job, LocalPool, Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies.cached_results import CachedResults

if TYPE_CHECKING:
    from mqttlab.plan import Plan

T = TypeVar("T")
Simulations = Mapping[str, T]
NEW = ".new"
"""Behind the name of a run that will replace another one."""
SENDERS_NS = 1_000_000
"""How late senders may be on any network."""


@dataclass(frozen=True, kw_only=True)
class LiveRuns(Generic[T]):
    """What was measured of live runs, and what stands against some of them."""

    results: dict[str, list[T]]
    """By scenario, one of each repetition."""
    doubts: dict[str, str]
    """Why a run is not valid, by name and repetition; a valid one is not here."""


def simulate(
    scenarios: Mapping[str, dict[str, Any]],
    measure: Callable[[Recording], T],
    *,
    jobs: int | None = None,
    keep: Path | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> dict[str, T]:
    """Simulate scenarios and measure what they left; the recordings are thrown away.

    Args:
        scenarios: by name, as a scenario file's values.
        measure: what is kept of each recording.
        jobs: processes at once; as many as there are processors when left out.
        keep: a directory for what is measured; what is there is not simulated again.
        progress: told each name when its simulation is done.

    Raises:
        EngineError: a simulation did not complete; those that run are ended, those that wait are not begun.
        Interrupted: Ctrl-C, SIGTERM or SIGHUP; likewise.
        UsageError: what is kept cannot be read.
    """
    kept = None if keep is None else CachedResults(keep, measure)
    plans = {name: _plan(values, "sim") for name, values in scenarios.items()}
    done: dict[str, T] = {}
    for name, plan in plans.items():
        if kept is not None and (found := kept.find(plan)) is not None:
            done[name] = found
            progress(name)

    def measured(job: Job, outcome: Outcome) -> T:
        try:
            value = measure(_recording(job, outcome))
        finally:
            shutil.rmtree(outcome.directory, ignore_errors=True)
        if kept is not None:
            kept.put(job.plan, value)
        return value

    with scratch.directory("study") as place, LocalPool(measured, jobs=jobs) as pool:
        jobs_by_name = {name: Job(plan, Path(place, str(number)))
                        for number, (name, plan) in enumerate(plans.items()) if name not in done}
        done |= _performed(pool, jobs_by_name, progress, "simulations")
    return {name: done[name] for name in scenarios}


def perform_live(
    scenarios: Mapping[str, dict[str, Any]],
    measure: Callable[[Recording], T],
    *,
    directory: Path,
    repetitions: int = 1,
    jobs: int = 1,
    repeat: bool = True,
    progress: Callable[[str], None] = lambda name: None,
) -> LiveRuns[T]:
    """Run scenarios live, ``jobs`` of them at once, and measure what they left.

    The recordings stay in ``directory``, by name and repetition; what is there, complete and in time is not run again,
    so that a pass that was stopped goes on where it was, and one that is started again repeats what the machine held
    up, unless ``repeat`` is false. What is repeated is replaced when the new run is there, and not before. Each
    repetition has a seed of its own. One run at a time waits for the runs of other programs; several do not.

    Raises:
        EngineError: a run did not complete; the recordings before it stay.
        Interrupted: Ctrl-C, SIGTERM or SIGHUP; likewise.
        UsageError: another pass has this directory.
    """
    directory.mkdir(parents=True, exist_ok=True)
    # What another pass has begun there looks like what was stopped in the middle.
    with held(directory, UsageError(f"{directory}: another `mqttlab study --backend live` runs there; wait for it, "
                                    "stop it, or give --runs another directory")):
        return _perform_live(scenarios, measure, directory, repetitions, jobs, repeat, progress)


def _perform_live(
    scenarios: Mapping[str, dict[str, Any]], measure: Callable[[Recording], T], directory: Path, repetitions: int,
    jobs: int, repeat: bool, progress: Callable[[str], None],
) -> LiveRuns[T]:
    doubts: dict[str, str] = {}

    def keep(job: Job, outcome: Outcome) -> T:
        _recording(job, outcome)
        place = directory / job.directory.name.removesuffix(NEW)
        if job.directory != place:
            shutil.rmtree(place)
            job.directory.rename(place)
        recording = Recording.open(place)
        if doubt := _doubt(recording):
            doubts[place.name] = doubt
        return measure(recording)

    results: dict[str, T] = {}
    wanted: dict[str, Job] = {}
    for repetition in range(1, repetitions + 1):
        for name, values in scenarios.items():
            label = f"{name}-r{repetition}"
            place = directory / label
            plan = _plan({**values, "seed": repetition}, "live")
            fresh = directory / f"{label}{NEW}"
            shutil.rmtree(fresh, ignore_errors=True)
            complete = False
            if (place / "run.json").is_file():
                recording = Recording.open(place)
                complete = recording.complete
                if complete:
                    # Held up or not: nothing is replaced by what answers another question.
                    _must_answer(recording, plan)
                if complete and not (repeat and _held_up(recording)):
                    if doubt := _doubt(recording):
                        doubts[label] = doubt
                    results[label] = measure(recording)
                    progress(label)
                    continue
            # What was stopped in the middle is of no use; what was held up may be the best there will be.
            if not complete:
                shutil.rmtree(place, ignore_errors=True)
            wanted[label] = Job(plan, fresh if complete else place)
    with LocalPool(keep, jobs=jobs, live_alone=jobs == 1) as pool:
        results |= _performed(pool, wanted, progress, "live runs")
    found = {name: [results[f"{name}-r{repetition}"] for repetition in range(1, repetitions + 1)] for name in scenarios}
    return LiveRuns(results=found, doubts=doubts)


def _held_up(recording: Recording) -> bool:
    """Whether the machine was late, so that the run is not what was asked for.

    The engine's limits. That a network left no client connected makes a run not valid, too; it is what the network
    does, and repeating it until it comes out otherwise would choose among results.
    """
    validity = recording.run.get("validity") or {}
    limit_ns = validity.get("lateness_limit_ns") or 0

    def late(who: str, bound_ns: int) -> bool:
        return ((validity.get(who) or {}).get("p99_ns") or 0) > bound_ns

    # Recordings of before have one limit for all paths.
    paths = validity.get("paths") or [{**(validity.get("emulator") or {}), "limit_ns": limit_ns}]
    frames_late = any((path.get("p99_ns") or 0) > path["limit_ns"] for path in paths)
    is_late = frames_late or late("senders", max(limit_ns, SENDERS_NS))
    return not validity.get("valid", True) and (is_late or bool(validity.get("ring_drops")))


def _must_answer(recording: Recording, plan: Plan) -> None:
    """What was run before stands for what is asked for now only where it is as long and keeps as much."""
    if recording.plan["phases"] != plan["phases"] or recording.plan["recording"] != plan["recording"]:
        raise UsageError(f"{recording.directory} is of another length than is asked for now, or keeps something else: "
                         "move it away, or give --runs another directory")


def _doubt(recording: Recording) -> str | None:
    """Why a complete run is not valid; None where it is."""
    validity = recording.run.get("validity") or {}
    if validity.get("valid", True):
        return None
    return "; ".join(str(reason) for reason in validity.get("reasons") or ()) or "not valid"


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
