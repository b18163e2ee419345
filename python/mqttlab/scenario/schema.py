"""The JSON Schema of a scenario's TOML, for editors: ``mqttlab schema`` prints it.

It says what may be written, not what is read: a payload may be a size, a queue's limit a text. What no single field can
tell is not in it; ``mqttlab check`` finds that.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from mqttlab.scenario.model import Scenario

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# What a default is, by what a field may be written as.
KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float)}


def scenario_schema() -> dict[str, Any]:
    """The schema, as a JSON object."""
    return schema_of(Scenario, "mqttlab scenario")


def schema_of(model: type[BaseModel], title: str) -> dict[str, Any]:
    """The schema of a file that a model reads."""
    schema = model.model_json_schema(mode="validation")
    _tidy(schema)
    return {"$schema": DIALECT, **schema, "title": title}


def _tidy(node: Any) -> None:
    """Leave out what is read of a field instead of what is written: defaults in nanoseconds, fields that are null."""
    if isinstance(node, list):
        for item in node:
            _tidy(item)
    if not isinstance(node, dict):
        return
    for inner in node.values():
        _tidy(inner)
    # Bounds of quantities, which are texts here, and names that only repeat the field's.
    for name in ("ge", "le", "gt", "lt", "title"):
        if isinstance(node.get(name), (str, int)):
            del node[name]
    # A table or an array of tables: what is one is not the other.
    if "oneOf" in node:
        node["anyOf"] = node.pop("oneOf")
    # TOML has no null: a field that may be left out is left out.
    variants = node.get("anyOf")
    if isinstance(variants, list) and {"type": "null"} in variants:
        written = [variant for variant in variants if variant != {"type": "null"}]
        del node["anyOf"]
        node.update(written[0] if len(written) == 1 else {"anyOf": written})
    if "default" in node and not _is_written_so(node, node["default"]):
        del node["default"]


def _is_written_so(node: dict[str, Any], default: Any) -> bool:
    kinds = KINDS.get(str(node.get("type")), ())
    return isinstance(default, kinds) and (isinstance(default, bool) == (node.get("type") == "boolean"))
