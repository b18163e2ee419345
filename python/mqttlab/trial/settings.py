"""What ``--set`` gives, in a scenario's text: changed lines, and new ones."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from mqttlab.experiments.scenarios import toml_of
from mqttlab.scenario.load import override

_HEADING = re.compile(r"(\[\[?)(\w+)\]\]?$")
_COMMENT = re.compile(r"\s+# [^\"']*$")


def with_settings(text: str, settings: Mapping[str, Any]) -> str:
    """A text of ``scenario_text`` with values in their places. Comments and all other lines stay.

    Args:
        text: sections of one level, with a field on each line.
        settings: values by place.

    Raises:
        ScenarioError: the scenario has no such place.
    """
    values = tomllib.loads(text)
    for place, value in settings.items():
        override(values, place, copy.deepcopy(value), "the scenario")
    left = {name: _tables(value) for name, value in values.items()}
    lines: list[str] = []
    for name, section in _sections(text):
        if not name:
            lines += _with_fields(section, {key: value for key, value in values.items() if not left[key]})
        elif left.get(name) and (section[0].startswith("[[") == isinstance(values[name], list)):
            lines += _with_fields(section, left[name].pop(0))
    for name, tables in left.items():
        heading = f"[[{name}]]" if isinstance(values[name], list) else f"[{name}]"
        for table in tables:
            lines += _with_fields([heading, ""], table)
    return "\n".join(lines)


def _tables(value: Any) -> list[dict[str, Any]]:
    """The tables that stand under headings of a field's name; none where it is written on a line."""
    tables = value if isinstance(value, list) else [value]
    return list(tables) if all(isinstance(table, dict) for table in tables) else []


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """The lines of each section with its name; those before the first heading have none."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        if (heading := _HEADING.match(line)) is not None:
            sections.append((heading[2], []))
        sections[-1][1].append(line)
    return sections


def _with_fields(lines: list[str], values: Mapping[str, Any]) -> list[str]:
    """A section with these values: lines of others are changed, and new ones stand at its end."""
    made, written = list[str](), set[str]()
    for line in lines:
        for name, before in ({} if _HEADING.match(line) else tomllib.loads(line)).items():
            written.add(name)
            if name in values and values[name] != before:
                comment = _COMMENT.search(line)
                line = f"{name} = {toml_of(values[name])}{comment[0] if comment else ''}"
        made.append(line)
    end = next((place for place in range(len(made), 0, -1) if made[place - 1]), 0)
    made[end:end] = [f"{name} = {toml_of(value)}" for name, value in values.items() if name not in written]
    return made
