"""Reading a scenario, and saying what is wrong with it in words that help.

A problem is one line: the file and line where that is known, the field's place, what is wrong, and what would be
right. Unknown fields come with the nearest known name.
"""

from __future__ import annotations

import difflib
import re
import tomllib
import typing
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mqttlab.errors import MqttlabError
from mqttlab.scenario.model import Scenario

Location = tuple[int | str, ...]


class ScenarioError(MqttlabError):
    """The scenario cannot be run. ``problems`` are one line each."""


def load(path: Path, overrides: dict[str, Any] | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        path: a TOML file.
        overrides: values by dotted place (``{"phases.duration": "5 s"}``) that replace the file's.

    Raises:
        ScenarioError: the file cannot be read, or is not a scenario that can be run.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError([f"{path}: cannot be read: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise ScenarioError([f"{path}: is not UTF-8 text (byte {error.start})"]) from error
    return parse(text, str(path), overrides)


def parse(text: str, name: str = "scenario", overrides: dict[str, Any] | None = None) -> Scenario:
    """Read a scenario from TOML text; ``name`` stands before each problem.

    Raises:
        ScenarioError: as :func:`load`.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError([f"{name}: is not TOML: {error}"]) from error
    except RecursionError as error:
        raise ScenarioError([f"{name}: arrays or tables lie too deep in each other; no field needs more than 6 levels"
                             ]) from error
    except ValueError as error:
        raise ScenarioError([f"{name}: is not TOML: a number has too many digits"]) from error
    for place, value in (overrides or {}).items():
        _override(values, place, value, name)
    return parse_values(values, name, text)


def parse_values(values: dict[str, Any], name: str = "scenario", text: str = "") -> Scenario:
    """Read a scenario from the values of a file; ``text`` is the file's, for the lines of problems.

    Raises:
        ScenarioError: as :func:`load`.
    """
    try:
        scenario = Scenario.model_validate(values)
    except ValidationError as error:
        raise ScenarioError([_problem(text, name, detail) for detail in error.errors()]) from error
    problems = [_at(text, name, location) + problem for location, problem in _contradictions(scenario)]
    if problems:
        raise ScenarioError(problems)
    return scenario


def _override(values: dict[str, Any], place: str, value: Any, name: str) -> None:
    *path, last = re.sub(r"\[(\d+)\]", r".\1", place).split(".")
    here: Any = values
    try:
        for key in path:
            here = here[int(key)] if isinstance(here, list) else here.setdefault(key, {})
        if isinstance(here, list):
            here[int(last)] = value
        else:
            here[last] = value
    except (LookupError, ValueError, TypeError, AttributeError):
        raise ScenarioError([f"{name}: --set {place}: there is no such place in the scenario"]) from None


def _problem(text: str, name: str, detail: Any) -> str:
    location: Location = tuple(part for part in detail["loc"] if not str(part).startswith("function-"))
    where = _at(text, name, location)
    kind = detail["type"]
    if kind == "extra_forbidden":
        return where + f"unknown field{_nearest(str(location[-1]), _known(location[:-1]))}"
    if kind == "missing":
        return where + "is missing; add it"
    if kind == "literal_error":
        given = str(detail["input"])
        expected = detail["ctx"]["expected"]
        near = _nearest(given, re.findall(r"'([^']*)'", expected))
        return where + f"is {detail['input']!r}, but must be {expected}{near}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    if kind != "value_error":
        message = f"is {_short(detail['input'])}: {message[:1].lower()}{message[1:]}"
    return where + message


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _at(text: str, name: str, location: Location) -> str:
    line = _line(text, location)
    place = ""
    for part in location:
        place += f"[{part}]" if isinstance(part, int) else (f".{part}" if place else str(part))
    return f"{name}{f':{line}' if line else ''}: {f'`{place}` ' if place else ''}"


def _line(text: str, location: Location) -> int | None:
    """The line of a field, as far as a look at the tables' headings tells; the heading's own otherwise."""
    wanted = [str(part) for part in location]
    counts: dict[str, int] = {}
    table: list[str] = []
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if heading := re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]", line):
            table = [part.strip().strip("\"'") for part in heading[2].split(".")]
            if heading[1] == "[[":
                counts[heading[2]] = counts.get(heading[2], -1) + 1
            table = _indexed(table, counts)
            here = table
        elif key := re.match(r"\s*([A-Za-z0-9_.\"'-]+)\s*=", line):
            here = table + [part.strip("\"'") for part in key[1].split(".")]
        else:
            continue
        depth = len(here)
        if here == wanted[:depth] and depth > 0 and (best is None or depth > best[0]):
            best = (depth, number)
    return best[1] if best else None


def _indexed(table: list[str], counts: dict[str, int]) -> list[str]:
    """A heading's place with the indices of the arrays of tables that it lies in."""
    place: list[str] = []
    for depth, part in enumerate(table):
        place.append(part)
        array = ".".join(table[: depth + 1])
        if array in counts:
            place.append(str(counts[array]))
    return place


def _known(location: Location) -> list[str]:
    """The field names that the model at a place knows."""
    model: Any = Scenario
    for part in location:
        if isinstance(part, int) or not (isinstance(model, type) and issubclass(model, BaseModel)):
            continue
        field = model.model_fields.get(str(part))
        if field is not None:
            model = _model_in(field.annotation) or model
    if isinstance(model, type) and issubclass(model, BaseModel):
        return list(model.model_fields)
    return []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        if (found := _model_in(argument)) is not None:
            return found
    return None


def _nearest(given: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean `{near[0]}`?"
    return f"; known here: {', '.join(known)}" if known else ""


def _contradictions(scenario: Scenario) -> list[tuple[Location, str]]:
    # Imported late: the checks look up named models, which are made of this package's links.
    from mqttlab.scenario.check import contradictions

    return contradictions(scenario)
