"""The JSON Schemas of what commands print with ``--json``, one file for each command: ``mqttlab schema`` prints them.

They are the declaration of that output. Tests hold every command to them, and the tables of
``docs/reference/output.md`` are made of them. A file may refer to definitions of another one.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILES = Path(__file__).parent
COMMANDS = ("report", "run", "import", "try", "compare", "networks", "doctor")
"""Those that have ``--json``; each has a file of its name."""
OUTPUT_SCHEMA = 1
"""The number ``schema`` of all outputs. It grows when a field changes its meaning or is removed."""


def schema_of_output(command: str) -> dict[str, Any]:
    """The schema of a command's output, complete in itself: what it refers to is in its ``$defs``."""
    own = copy.deepcopy(_read(command))
    own.pop("$defs", None)
    needed: dict[str, Any] = {}
    _gather(own, command, needed)
    return {"$schema": DIALECT, **own, "$defs": dict(sorted(needed.items()))}


def definitions() -> dict[str, dict[str, Any]]:
    """What the schemas of all commands are made of, by name; references are within it."""
    found: dict[str, dict[str, Any]] = {}
    for command in COMMANDS:
        found |= schema_of_output(command)["$defs"]
    return found


@cache
def _read(name: str) -> dict[str, Any]:
    """A file as it is. Not to be changed."""
    read: dict[str, Any] = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))
    return read


def _gather(node: Any, file: str, needed: dict[str, Any]) -> None:
    """Make references those within one schema, and collect what they refer to by name."""
    if isinstance(node, list):
        for item in node:
            _gather(item, file, needed)
    if not isinstance(node, dict):
        return
    for value in node.values():
        _gather(value, file, needed)
    reference = node.get("$ref")
    if not isinstance(reference, str):
        return
    other, _, name = reference.partition("#/$defs/")
    where = other.removesuffix(".json") or file
    node["$ref"] = f"#/$defs/{name}"
    if name not in needed:
        needed[name] = copy.deepcopy(_read(where)["$defs"][name])
        _gather(needed[name], where, needed)
