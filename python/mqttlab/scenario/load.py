"""Reading a scenario. What is wrong with it is said in the words of :mod:`mqttlab.scenario.wording`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mqttlab.errors import MqttlabError
from mqttlab.networks.trace import Trace
from mqttlab.scenario.check import contradictions
from mqttlab.scenario.model import Scenario
from mqttlab.scenario.places import named, put
from mqttlab.scenario.unusual import unusual
from mqttlab.scenario.wording import Source, problems_of, read_text, toml_values


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
        text = read_text(path)
    except ValueError as error:
        raise ScenarioError(str(error)) from error
    return parse(text, str(path), overrides)


def parse(
    text: str, name: str = "scenario", overrides: dict[str, Any] | None = None,
    traces: Mapping[str, Trace] | None = None,
) -> Scenario:
    """Read a scenario from TOML text; ``name`` stands before each problem. ``traces`` are known by their paths, and not
    read from files.

    Raises:
        ScenarioError: as :func:`load`.
    """
    try:
        values = toml_values(text, name)
    except ValueError as error:
        raise ScenarioError(str(error)) from error
    if "scenario" in values and "groups" not in values:
        raise ScenarioError(f"{name}: is an experiment, not a scenario; run it with: mqttlab experiment {name}")
    replaced = [where for place, value in (overrides or {}).items() for where in override(values, place, value, name)]
    return read_values(values, Source(name, text, replaced), traces)


def parse_values(
    values: dict[str, Any], name: str = "scenario", text: str = "", replaced: Collection[str] = (),
    replaced_by: str = "on the command line", directory: Path | None = None,
) -> Scenario:
    """Read a scenario from the values of a file.

    ``text`` is the file's, for the lines of problems; ``replaced`` are the places that the command line has set, or
    whatever ``replaced_by`` says. Files beside the scenario are in ``directory``, by default that of ``name``.

    Raises:
        ScenarioError: as :func:`load`.
    """
    return read_values(values, Source(name, text, replaced, replaced_by), directory=directory)


def read_values(
    values: dict[str, Any], source: Source, traces: Mapping[str, Trace] | None = None, directory: Path | None = None,
) -> Scenario:
    """Read a scenario from values whose problems are placed by ``source``.

    Raises:
        ScenarioError: as :func:`load`.
    """
    try:
        # Traces, tables and payloads lie beside the scenario's file.
        beside = directory or Path(source.name).parent
        scenario = Scenario.model_validate(values, context={"directory": beside, "traces": traces})
    except ValidationError as error:
        raise ScenarioError(problems_of(error, values, source, Scenario)) from error
    problems = [source.at(location) + problem for location, problem in contradictions(scenario)]
    if problems:
        raise ScenarioError(problems)
    return scenario


def override(values: dict[str, Any], place: str, value: Any, name: str) -> list[str]:
    """Replace a value, as ``--set`` does; returns where it stands.

    Raises:
        ScenarioError: there is no such place.
    """
    numbered = re.sub(r"\.([0-9]+)(?=[.\[]|$)", r"[\1]", place)
    try:
        put(values, numbered, value)
        return named(values, numbered)
    except ValueError as error:
        # The place stands before it already.
        words = str(error)
        raise ScenarioError([f"{name}: --set {place}: {words.partition(', but ')[2] or words}"]) from None


def warnings_of(
    scenario: Scenario, name: str = "scenario", text: str = "", replaced: Collection[str] = (),
) -> list[str]:
    """What is unusual in a scenario, one line each, as problems are written."""
    source = Source(name, text, replaced)
    return [source.at(location) + problem for location, problem in unusual(scenario)]
