"""Many simulations at once: each scenario in a process of its own, its recording read and thrown away."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from mqttlab.recording import Recording
from mqttlab.runs import EngineError, Interrupted, Interruption, perform
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
    interruption = Interruption()
    results: dict[str, T] = {}
    with tempfile.TemporaryDirectory(prefix="mqttlab-study-") as scratch, interruption.heard(), \
            ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        pending = {
            pool.submit(_one, values, Path(scratch) / str(number), measure, interruption): name
            for number, (name, values) in enumerate(scenarios.items())
        }
        try:
            for done in as_completed(pending):
                name = pending[done]
                results[name] = done.result()
                progress(name)
        except BaseException:
            # Leaving the pool waits for its threads, and they wait for their engines, whose recordings nobody wants.
            asked = interruption.asked
            pool.shutdown(wait=False, cancel_futures=True)
            interruption.end(signal.SIGTERM)
            if asked is not None:
                raise Interrupted(f"the study was stopped by {asked.name} when {len(results)} of {len(scenarios)} "
                                  "simulations were done") from None
            raise
    return {name: results[name] for name in scenarios}


def _one(
    values: dict[str, Any], directory: Path, measure: Callable[[Recording], T], interruption: Interruption
) -> T:
    scenario = parse_values({**values, "backend": "sim"}, json.dumps(values.get("name", "scenario")))
    outcome = perform(compile_plan(scenario, directory), lambda event: None, interruption)
    if outcome.verdict != "complete":
        raise EngineError(f"{scenario.name} could not be simulated to its end: {outcome.reason}")
    try:
        return measure(Recording.open(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
