"""Many simulations at once: each scenario in a process of its own, its recording read and thrown away."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from mqttlab.engine import EngineError, Interrupted
from mqttlab.plan import Plan
from mqttlab.recording import Recording
from mqttlab.runs import Job, LocalPool, Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

T = TypeVar("T")
Simulations = Mapping[str, T]


def simulate(
    scenarios: Mapping[str, dict[str, Any]],
    measure: Callable[[Recording], T],
    *,
    jobs: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> dict[str, T]:
    """Simulate scenarios and measure what they left.

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
            if outcome.verdict != "complete":
                raise EngineError(f"{job.plan['name']} could not be simulated to its end: {outcome.reason}")
            return measure(Recording.open(outcome.directory))
        finally:
            shutil.rmtree(outcome.directory, ignore_errors=True)

    results: dict[str, T] = {}
    names: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mqttlab-study-") as scratch, LocalPool(keep, jobs=jobs) as pool:
        for name, values in scenarios.items():
            job = Job(_plan(values), Path(scratch, str(len(names))))
            names[job.identifier] = name
            pool.submit(job)
        try:
            for finished in pool.results():
                name = names[finished.job.identifier]
                results[name] = finished.result()
                progress(name)
        except Exception:
            if pool.asked is not None:
                raise Interrupted(f"the study was stopped by {pool.asked.name} when {len(results)} of {len(scenarios)} "
                                  "simulations were done") from None
            raise
    return {name: results[name] for name in scenarios}


def _plan(values: dict[str, Any]) -> Plan:
    return compile_plan(parse_values({**values, "backend": "sim"}, json.dumps(values.get("name", "scenario"))))
