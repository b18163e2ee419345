"""Studies whose scenarios are files and experiments, and of which no table is held against the simulations yet.

What can be rerun are the scenarios; their delays stand where a published value would have ours beside it. Every claim
is listed, and not decided.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqttlab import metrics
from mqttlab.experiments import load
from mqttlab.experiments.scenarios import scenarios
from mqttlab.recording import Recording
from mqttlab.studies.claims import judged
from mqttlab.studies.study import Study
from mqttlab.studies.table import Cell, Comparison

TABLE = "scenarios"
SHOWN = {
    "latency_ms_mean": "mean delay, ms", "latency_ms_p99": "p99 of the delay, ms",
    "messages_lost_percent": "messages lost, %",
}
NONE = float("nan")


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to simulate."""

    part: float
    """Of the length that the file has."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A scenario of the study."""

    name: str
    """Unique among the study's scenarios: of its file, and of its point in an experiment."""
    values: dict[str, Any]
    """As its file has them."""

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        values = copy.deepcopy(self.values)
        length = str(values["phases"]["duration"]).split()
        values["phases"]["duration"] = f"{float(length[0]) * effort.part:g} {length[1]}"
        return values


Measured = Mapping[int, Mapping[str, float | None]]
"""The metrics of :data:`SHOWN` by QoS."""


def study(directory: Path, title: str) -> Study:
    """The study of the package in ``directory``."""
    return Study(title=title, directory=directory, thorough=Effort(part=1.0), quick=Effort(part=0.25), cases=cases,
                 measure=measure, compare=compare, claims=claims)


def cases(published: Path, tables: Sequence[str]) -> list[Case]:
    """Every point of its experiments, and every scenario that none of these varies; unless other tables are wanted."""
    if tables and TABLE not in tables:
        return []
    found, varied = [], set()
    for path in sorted((published.parent / "experiments").glob("*.toml")):
        experiment = load(path)
        varied.add(experiment.scenario_path.name)
        found += [Case(name=f"{path.stem}-{point}", values=values) for point, values in scenarios(experiment).items()]
    files = [path for path in (published.parent / "scenarios").glob("*.toml") if path.name not in varied]
    found += [Case(name=path.stem, values=tomllib.loads(path.read_text(encoding="utf-8"))) for path in files]
    return sorted(found, key=lambda case: case.name)


def measure(recording: Recording) -> Measured:
    """Delays and losses by QoS."""
    return {row["qos"]: {name: row[name] for name in SHOWN}
            for row in metrics.application(recording).iter_rows(named=True)}


def compare(published: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """What was simulated; nothing published stands beside it."""
    return [
        Cell(table=TABLE, place=f"{name}, QoS {qos}", metric=words, published=NONE,
             simulated=NONE if (value := row[metric]) is None else value)
        for name, measured in results.items() for qos, row in measured.items() for metric, words in SHOWN.items()
    ]


def claims(published: Path, results: Mapping[str, Measured]) -> list[Comparison]:
    """Every claim, none of them decided."""
    return judged(published, results, {})
