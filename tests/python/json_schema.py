"""As much of JSON Schema as our two schemas use, for tests: what is wrong with a value, by place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list, tuple), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float), "null": (type(None),),
}


def mistakes(value: Any, schema: dict[str, Any]) -> list[str]:
    """Everything that a schema refuses, one line each."""
    return list(_mistakes(value, schema, schema, "$"))


def _mistakes(value: Any, schema: Any, root: dict[str, Any], at: str) -> Iterator[str]:
    if schema is True:
        return
    if "$ref" in schema:
        yield from _mistakes(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    for word, needed in (("anyOf", 1), ("oneOf", 1)):
        if word in schema:
            each = [list(_mistakes(value, variant, root, at)) for variant in schema[word]]
            fitting = sum(not found for found in each)
            if fitting < needed or (word == "oneOf" and fitting > 1):
                yield f"{at}: {value!r:.60} fits {fitting} of {len(each)}: {each[0][:1]}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is_a(value, kind) for kind in kinds):
        yield f"{at}: {value!r:.60} is no {' or '.join(kinds)}"
        return
    if isinstance(value, dict):
        yield from _object(value, schema, root, at)
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            first = schema.get("prefixItems", [])
            inner = first[index] if index < len(first) else schema.get("items", True)
            yield from _mistakes(item, inner, root, f"{at}[{index}]")


def _is_a(value: Any, kind: str) -> bool:
    return isinstance(value, TYPES[kind]) and (not isinstance(value, bool) or kind == "boolean")


def _object(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], at: str) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{at}: {name} is missing"
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, inner in value.items():
        if name in known:
            yield from _mistakes(inner, known[name], root, f"{at}.{name}")
        elif others is False:
            yield f"{at}: {name} is unknown"
        elif isinstance(others, dict):
            yield from _mistakes(inner, others, root, f"{at}.{name}")
