"""Many simulations at once: each scenario in a process of its own, its recording read and thrown away."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from mqttlab.recording import Recording
from mqttlab.runs import EngineError, perform
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
        EngineError: a simulation did not complete.
    """
    with tempfile.TemporaryDirectory(prefix="mqttlab-study-") as scratch, \
            ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        pending = {
            pool.submit(_one, values, Path(scratch) / str(number), measure): name
            for number, (name, values) in enumerate(scenarios.items())
        }
        results: dict[str, T] = {}
        for done in as_completed(pending):
            name = pending[done]
            results[name] = done.result()
            progress(name)
    return {name: results[name] for name in scenarios}


def _one(values: dict[str, Any], directory: Path, measure: Callable[[Recording], T]) -> T:
    scenario = parse_values({**values, "backend": "sim"}, json.dumps(values.get("name", "scenario")))
    outcome = perform(compile_plan(scenario, directory), lambda event: None)
    if outcome.verdict == "failed":
        raise EngineError(f"{scenario.name} could not be simulated: {outcome.reason}")
    try:
        return measure(Recording.open(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
