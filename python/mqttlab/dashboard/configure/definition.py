"""The form of a scenario: made from the scenario's own definition, and kept in step with its TOML.

Fields, units, defaults and words are those of :mod:`mqttlab.scenario.model`, as its JSON Schema tells them; what a
scenario file may hold and a form may not set from a browser has no field. A field that is set changes its place in the
text and nothing else of it: comments and order stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from mqttlab.dashboard.configure.drafts import REFUSED
from mqttlab.scenario.schema import scenario_schema

# What is in tables of its own, in the order of the page; of the others the top level's fields come first.
SECTIONS = ("phases", "networks", "servers", "groups", "mqtt", "broker", "radio", "trunk", "recording", "live", "sim")
OPEN = ("", "phases", "networks[0]", "groups[0]")
# Tables of programs, which a browser may not start.
HIDDEN = (*REFUSED, "client")
# The address has what a form has; a password is written as a reference, in the text.
PASSWORD = "password"
DEPTH_MAX = 4
PLACE = re.compile(r"[a-z_0-9]+(\[\d{1,4}\])?(\.[a-z_0-9]+(\[\d{1,4}\])?)*")


@dataclass
class Field:
    """One field of the form."""

    place: str
    name: str
    kind: str
    """``text``, ``whole``, ``number`` or ``choice``."""
    value: str
    """As the text has it; empty where it does not."""
    help: str
    default: str
    options: list[str]
    required: bool
    problem: str = ""


@dataclass
class Section:
    """A table of the scenario."""

    place: str
    title: str
    help: str
    open: bool
    fields: list[Field] = field(default_factory=list)


@cache
def schema() -> dict[str, Any]:
    """The scenario's JSON Schema."""
    return scenario_schema()


def form(values: dict[str, Any], problems: list[str]) -> list[dict[str, Any]]:
    """The form of a scenario's values, with each problem at its field.

    Args:
        values: as TOML has them.
        problems: lines that name their places in backquotes.
    """
    root = schema()
    made = [_section("", "Scenario", root, values)]
    for name in SECTIONS:
        node = root["properties"].get(name)
        if node is None:
            continue
        for place, title, inner, given in _tables(name, node, values.get(name)):
            made.append(_section(place, title, inner, given))
            made += _nested(place, inner, given, 1)
    for section in made:
        for one in section.fields:
            one.problem = "; ".join(words for words in problems if f"`{one.place}`" in words)
        section.open = section.open or any(one.problem for one in section.fields)
    shown = [section for section in made if section.fields]
    places = {section.place for section in shown}
    for section in shown:
        above = section.place.rpartition(".")[0]
        # What stands in no other section says whose it is.
        section.title = f"{above}: {section.title}" if above and above not in places else section.title
    return [asdict(section) for section in shown]


def _tables(name: str, node: dict[str, Any], given: Any) -> list[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """The tables under a name: one, or one for each item that is there."""
    if node.get("type") == "array":
        inner = _resolved(node["items"])
        items = given if isinstance(given, list) else []
        return [(f"{name}[{number}]", f"{name.removesuffix('s')} {number + 1}{_named(item)}", inner, item)
                for number, item in enumerate(items) if isinstance(item, dict)]
    return [(name, name.replace("_", " "), _resolved(node), given if isinstance(given, dict) else {})]


def _named(item: dict[str, Any]) -> str:
    between = item.get("between")
    name = item.get("name") or (" – ".join(map(str, between)) if isinstance(between, list) else "")
    return f": {name}" if name else ""


def _section(place: str, title: str, node: dict[str, Any], given: dict[str, Any]) -> Section:
    made = Section(place=place, title=title, help=str(node.get("description", "")) if place else "",
                   open=place in OPEN)
    for name, inner in node.get("properties", {}).items():
        kind, options = _kind(inner, given.get(name))
        if kind is None or name in (*REFUSED, PASSWORD):
            continue
        made.fields.append(Field(
            place=f"{place}.{name}" if place else name, name=name, kind=kind, value=_written(given.get(name)),
            help=str(inner.get("description", "")), default=_default(inner), options=options,
            required=name in _required(node, given)))
    return made


def _required(node: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """What a table must have: of alternatives those that it has, else the first ones."""
    alternatives: list[list[str]] = [each["required"] for each in node.get("anyOf", ()) if "required" in each]
    chosen = next((names for names in alternatives if {*names} <= {*given}), [*alternatives, []][0])
    return [*node.get("required", ()), *chosen]


def _nested(place: str, node: dict[str, Any], given: dict[str, Any], depth: int) -> list[Section]:
    """The tables within a table; those of which nothing is set stay in sight, closed."""
    made = []
    for name, inner in node.get("properties", {}).items():
        table = _resolved(_table_of(inner)) if depth < DEPTH_MAX else {}
        if name in HIDDEN or "properties" not in table or _kind(inner, given.get(name))[0] is not None:
            continue
        for index, below in _there(given.get(name)):
            at, number = f"{place}.{name}{index}", f" {index[1:-1]}" if index else ""
            section = _section(at, name.replace("_", " ") + number, table, below)
            section.open = False
            # What must be said where the table is there need not be said where it is not.
            for one in section.fields:
                one.required = one.required and bool(below)
            made += [section, *(_nested(at, table, below, depth + 1) if below else [])]
    return made


def _there(given: Any) -> list[tuple[str, dict[str, Any]]]:
    """The tables at a place that may have one or an array of them, with the index of each."""
    if isinstance(given, list):
        return [(f"[{number}]", item) for number, item in enumerate(given) if isinstance(item, dict)]
    return [("", given if isinstance(given, dict) else {})]


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    """What a reference stands for."""
    if "$ref" in node:
        found: dict[str, Any] = schema()["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        return found
    return node


def _table_of(node: dict[str, Any]) -> dict[str, Any]:
    """Of what may be a table or something short for it, the table."""
    variants = [variant for variant in node.get("anyOf", ()) if "$ref" in variant]
    return variants[0] if variants else node


def _kind(node: dict[str, Any], given: Any) -> tuple[str | None, list[str]]:
    """How a field is written: nothing where it is a table or a list."""
    if isinstance(given, (dict, list)):
        return None, []
    if "enum" in node:
        return "choice", [str(option) for option in node["enum"]]
    if node.get("type") == "boolean":
        return "choice", ["true", "false"]
    kinds = {"integer": "whole", "number": "number", "string": "text"}
    if node.get("type") in kinds:
        return kinds[str(node["type"])], []
    variants = node.get("anyOf", ())
    if any(variant.get("type") == "string" for variant in variants):
        return "text", []
    resolved = _resolved(node)
    return _kind(resolved, given) if resolved is not node and "properties" not in resolved else (None, [])


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or isinstance(value, (dict, list)) else str(value)


def _default(node: dict[str, Any]) -> str:
    """The default as it would be written; an example where that is not known."""
    if "default" in node:
        return _written(node["default"])
    examples = node.get("examples") or ()
    return f"such as {examples[0]}" if examples else ""


def put(text: str, place: str, written: str) -> str:
    """The text with a field set to what was written; without it where that is empty.

    Raises:
        ValueError: the text is no TOML, or has no such place, or the form does not.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    path = [part for word in place.split(".") for part in _steps(word)]
    if not PLACE.fullmatch(place) or any(part in REFUSED for part in path):
        raise ValueError(f"{place} is no field of the form")
    node = node_at(path)
    kind = _kind(node, None)[0] if node else None
    if node is None or kind is None:
        raise ValueError(f"{place} is no field of the form")
    try:
        document = tomlkit.parse(text)
        here: Any = document
        for part, after in pairwise(path):
            if isinstance(part, str) and part not in here:
                if not written:
                    return text
                here[part] = tomlkit.table() if here is document and isinstance(after, str) else tomlkit.inline_table()
            here = here[part]
        last = path[-1]
        if written:
            here[last] = _value(kind, node.get("enum", ()), written)
        elif last in here:
            del here[last]
        return tomlkit.dumps(document)
    except (TOMLKitError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{place} cannot be set: {error}") from error


def _steps(word: str) -> list[str | int]:
    name, _, number = word.partition("[")
    return [name, int(number.rstrip("]"))] if number else [name]


def node_at(path: list[str | int]) -> dict[str, Any] | None:
    """What the definition says of the field at a place; nothing where there is no such field."""
    node: dict[str, Any] = schema()
    for part in path:
        node = _resolved(node)
        if isinstance(part, int):
            node = next((each["items"] for each in (node, *node.get("anyOf", ())) if "items" in each), {})
        else:
            node = _resolved(_table_of(node)).get("properties", {}).get(part, {})
        if not node:
            return None
    return node


def _value(kind: str, options: Iterable[Any], written: str) -> Any:
    """What is written, as the value that it says; what is no number stays text, and is refused at its place."""
    for option in options:
        if str(option) == written:
            return option
    if kind == "choice" and written in ("true", "false"):
        return written == "true"
    if kind == "whole" and re.fullmatch(r"-?\d{1,19}", written):
        return int(written)
    if kind == "number":
        try:
            return float(written)
        except ValueError:
            return written
    return written
