"""Baselines for thresholds: the values of earlier runs, named by their directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mqttlab.experiments.directory import ExperimentDirectory
from mqttlab.experiments.journal import NAME, RunRecord
from mqttlab.experiments.load import ExperimentError
from mqttlab.experiments.responses import Response, Value, chosen, supported, too_few, values_of
from mqttlab.experiments.thresholds import Draw, Earlier
from mqttlab.quantity import shown
from mqttlab.recording import Recording

Named = Callable[[str], Sequence[Path] | None]
"""The recordings of a baseline of the catalog; ``None`` where it has none of this name."""


def baseline_values(name: str, response: Response, named: Named = lambda name: None) -> list[Earlier]:
    """A baseline's runs: the value of each, and what its random streams depend on.

    Args:
        name: a recording, an experiment's directory (``DIRECTORY#3`` for its point 3), or a name in the catalog.
        response: of what.
        named: looks a name up.

    Raises:
        ExperimentError: there is no such baseline.
    """
    place, _, number = name.partition("#")
    path = Path(place)
    if (path / NAME).is_file():
        return _of_experiment(path, number, name, response)
    if (path / "plan.json").is_file():
        return _of_recordings([path], response)
    found = named(name)
    if not found:
        raise ExperimentError(f"the baseline {shown(name)} is no recording, no experiment's directory and no name "
                              "in the catalog")
    return _of_recordings(found, response)


def _of_recordings(places: Sequence[Path], response: Response) -> list[Earlier]:
    found = []
    for place in places:
        recording = Recording.open(place)
        values = values_of(recording, supported([response]))
        value = chosen(values, response)
        if value is not None:
            found.append(Earlier(value=value, draw=_draw_of(recording.plan), too_few=too_few(values, response)))
    return found


def _draw_of(plan: Mapping[str, Any]) -> Draw | None:
    seed = plan.get("seed")
    return None if seed is None else (int(seed), int(plan.get("repetition") or 0))


def _of_experiment(path: Path, number: str, name: str, response: Response) -> list[Earlier]:
    runs = [run for run in ExperimentDirectory.open(path).runs() if run.state == "done" and run.kind == "run"]
    points = sorted({run.point for run in runs})
    if not number and len(points) > 1:
        raise ExperimentError(f"the baseline {shown(name)} has {len(points)} points; write "
                              f"{place_of(path, points[0])}, or another of them")
    chosen_runs = [run for run in runs if not number or str(run.point) == number]
    if not chosen_runs:
        raise ExperimentError(f"the baseline {shown(name)} has no finished run" + (
            f" of a point {number}; its points: {', '.join(map(str, points))}" if number else ""))
    return [Earlier(value=value, draw=(run.seed, run.repetition), too_few=too_few(values, response))
            for run in chosen_runs if (value := chosen(values := _values(path, run, response), response)) is not None]


def place_of(path: Path, point: int) -> str:
    """A point of an experiment, as a baseline is written."""
    return f"{path}#{point}"


def _values(path: Path, run: RunRecord, response: Response) -> Sequence[Value]:
    if chosen(run.responses, response) is not None or not (path / run.directory).is_dir():
        return run.responses
    return values_of(Recording.open(path / run.directory), supported([response]))
