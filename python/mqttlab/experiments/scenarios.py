"""The points of an experiment as scenarios of their own, by name, and as files."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from mqttlab.experiments.load import Experiment
from mqttlab.experiments.points import Point
from mqttlab.scenario.secret import without_written

NAME_MAX = 40


def point_name(at: Point) -> str:
    """A point in a word: its levels, joined; numbers and truth values behind their factor's name."""
    words = []
    for factor in at.factors:
        text = re.sub(r"[^A-Za-z0-9_.-]+", "", at.levels[factor.name].text)
        bare = re.fullmatch(r"[\d.e+-]+|true|false", text) is not None
        words.append(factor.name + text if bare else text)
    return "-".join(words)


def scenarios(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """The values of every point's scenario, named after the experiment's scenario and the point."""
    found: dict[str, dict[str, Any]] = {}
    for at in experiment.design.points:
        values = experiment.values_at(at)
        word = point_name(at) or "point"
        name = f"{values['name']}-{word}"
        found[word] = {**values, "name": name if len(name) <= NAME_MAX else f"{values['name']}-{at.number}"[-NAME_MAX:]}
    return found


def write_scenarios(experiment: Experiment, directory: Path) -> list[Path]:
    """Write every point's scenario into a directory, as TOML; returns the files, in the design's order."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for word, values in scenarios(experiment).items():
        path = directory / f"{word}.toml"
        path.write_text(toml(values), encoding="utf-8")
        paths.append(path)
    return paths


def toml(values: dict[str, Any]) -> str:
    """Values of a scenario as TOML: fields, then a section for each table; what is inside these is written inline."""
    given = without_written(copy.deepcopy(values))
    tables = {key: value for key, value in given.items() if isinstance(value, dict)}
    arrays = {key: value for key, value in given.items()
              if isinstance(value, list) and value and all(isinstance(item, dict) for item in value)}
    lines = [f"{_key(key)} = {toml_of(value)}" for key, value in given.items() if key not in tables | arrays]
    for key, table in tables.items():
        lines += ["", f"[{_key(key)}]", *(f"{_key(inner)} = {toml_of(value)}" for inner, value in table.items())]
    for key, items in arrays.items():
        for item in items:
            lines += ["", f"[[{_key(key)}]]", *(f"{_key(inner)} = {toml_of(value)}" for inner, value in item.items())]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_of(key)


def toml_of(value: Any) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml_of(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(toml_of(item) for item in value)}]"
    return repr(value) if isinstance(value, float) else str(value)
