"""What commands print with ``--json`` is what their schemas declare, and what is declared is printed by some run."""

from __future__ import annotations

import copy
import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import outputs
from commands import mqttlab
from mqttlab.cli.main import main
from mqttlab.foreign import json_text
from mqttlab.metrics import CHANGES
from mqttlab.schemas import COMMANDS, FILES, definitions, schema_of_output

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is missing; make setup-test installs it")

Schema = dict[str, Any]
FACTORS = {"qos", "rate", "delay", "loss"}
# By definition and field: what no output of the tests has, and why. Everything else must be in one of them.
NOT_SEEN = dict.fromkeys(
    (f"report_of_experiment.tables.trends[].knee{end}" for end in ("", "_low", "_high")),
    "a line that bends needs more levels and runs than a test makes; test_models has one")


def validator(command: str) -> Any:
    return jsonschema.Draft202012Validator(schema_of_output(command))


def refused(command: str, printed: Any) -> list[str]:
    """What a schema refuses, with the place; of alternatives, what the nearest one does."""
    return [f"{'/'.join(map(str, each.absolute_path))}: {each.message:.200}"
            for error in validator(command).iter_errors(printed) for each in nearest(error)]


def nearest(error: Any) -> list[Any]:
    by_variant: dict[int, list[Any]] = {}
    for each in error.context or ():
        by_variant.setdefault(each.schema_path[0], []).append(each)
    return [inner for each in min(by_variant.values(), key=len) for inner in nearest(each)] if by_variant else [error]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[outputs.Output]]:
    """The outputs of a function of :mod:`outputs`, made when they are asked for."""
    home, kept = tmp_path_factory.mktemp("outputs"), dict[str, list[outputs.Output]]()

    def of(kind: str) -> list[outputs.Output]:
        if kind not in kept:
            kept[kind] = list(getattr(outputs, kind)(home / kind))
        return kept[kind]

    return of


KINDS = ("runs", "imports", "reports", "ended", "trials", "experiments", "comparisons")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_printed_is_what_its_schema_declares(
    kind: str, made: Callable[[str], list[outputs.Output]],
) -> None:
    for number, (command, printed) in enumerate(made(kind)):
        assert refused(command, printed) == [], f"{kind} {number}"


@pytest.mark.live
@pytest.mark.parametrize("words", [("networks", "--probe", "lte-m", "--seconds", "1"), ("doctor", "--measure", "1")])
def test_what_is_measured_here_is_what_its_schema_declares(words: tuple[str, ...], tmp_path: Path) -> None:
    more = ("--runs", str(tmp_path)) if words[0] == "doctor" else ()
    printed = json.loads(mqttlab(*words, *more, "--json").stdout)
    assert refused(words[0], printed) == []


def test_every_field_that_is_declared_is_printed_by_some_command(
    made: Callable[[str], list[outputs.Output]],
) -> None:
    known, seen = definitions(), set[str]()
    for kind in KINDS:
        for command, printed in made(kind):
            seen |= set(found(printed, schema_of_output(command), known, command))
    measured = set(declared({"$ref": "#/$defs/probe"}, known, "")) | set(
        declared({"$ref": "#/$defs/measurement"}, known, ""))
    every = {place for command in COMMANDS for place in declared(schema_of_output(command), known, command)}
    missing = sorted(every - measured - seen)
    assert missing == sorted(NOT_SEEN)


def declared(schema: Schema, known: dict[str, Schema], at: str) -> Iterator[str]:
    """Every field by its definition and its place in it."""
    for schema_, place in parts(schema, known, at):
        for name, field in schema_.get("properties", {}).items():
            yield f"{place}.{name}"
            yield from declared(field, known, f"{place}.{name}")
        items = schema_.get("items")
        if isinstance(items, dict):
            yield from declared(items, known, f"{place}[]")
        for pattern, field in schema_.get("patternProperties", {}).items():
            yield f"{place}.{pattern}"
            yield from declared(field, known, f"{place}.{pattern}")


def found(value: Any, schema: Schema, known: dict[str, Schema], at: str) -> Iterator[str]:
    """The fields that have a value, by the same places."""
    for schema_, place in parts(schema, known, at):
        if isinstance(value, dict):
            by_name = {name: (name, field) for name, field in schema_.get("properties", {}).items()}
            patterns = schema_.get("patternProperties", {})
            for name, inner in value.items():
                of_pattern = next(((pattern, field) for pattern, field in patterns.items()
                                   if name.startswith(pattern.lstrip("^"))), None)
                where = by_name.get(name, of_pattern)
                if where is not None and inner is not None:
                    yield f"{place}.{where[0]}"
                    yield from found(inner, where[1], known, f"{place}.{where[0]}")
        if isinstance(value, list) and isinstance(schema_.get("items"), dict):
            for item in value:
                yield from found(item, schema_["items"], known, f"{place}[]")


def parts(schema: Schema, known: dict[str, Schema], at: str) -> Iterator[tuple[Schema, str]]:
    """A schema without references and alternatives: all that it is made of, each with the definition's name."""
    yield schema, at
    for inner in (schema, *schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
        if "$ref" in inner:
            name = inner["$ref"].rpartition("/")[2]
            yield from parts(known[name], known, name)


def test_a_field_that_is_not_declared_is_refused_wherever_it_stands(
    made: Callable[[str], list[outputs.Output]],
) -> None:
    tried = 0
    for kind in ("reports", "trials", "comparisons"):
        for command, printed in made(kind)[:1] + made(kind)[-1:]:
            once = set[tuple[str, ...]]()
            for place in objects(printed, ()):
                shape = tuple(step for step in place if isinstance(step, str))
                if shape in once or shape[-1:] == ("levels",):
                    continue
                once.add(shape)
                changed = copy.deepcopy(printed)
                inner = changed
                for step in place:
                    inner = inner[step]
                inner["more"] = []
                assert refused(command, changed), place
                tried += 1
    assert tried > 60


def objects(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        yield at
        for name, inner in value.items():
            yield from objects(inner, (*at, name))
    if isinstance(value, list):
        for number, inner in enumerate(value[:3]):
            yield from objects(inner, (*at, number))


def test_columns_beside_those_declared_are_factors(made: Callable[[str], list[outputs.Output]]) -> None:
    rows = definitions()["report_of_experiment"]["properties"]["tables"]["properties"]
    for _, printed in made("experiments"):
        for name in ("runs", "points", "recommendations"):
            own = set(rows[name]["items"]["properties"])
            for row in printed["tables"][name]:
                assert {column.removesuffix("__value") for column in set(row) - own} <= FACTORS


def test_what_an_event_has_is_in_the_catalogue(made: Callable[[str], list[outputs.Output]]) -> None:
    names = {"event", *(metric.name for metric in CHANGES)}
    events = [event for command, printed in made("runs") if command == "run" for run in printed["runs"]
              for event in run["headline"]["events"]]
    assert events and all(set(event) == names for event in events)


def test_each_command_with_json_has_a_schema() -> None:
    def with_json(command: click.Command) -> bool:
        inner = command.commands.values() if isinstance(command, click.Group) else ()
        return any("--json" in param.opts for param in command.params) or any(map(with_json, inner))

    assert {name for name, command in main.commands.items() if with_json(command)} == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_schema_is_printed_complete_in_itself(command: str) -> None:
    schema = json.loads(mqttlab("schema", command).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)
    assert {name.split('"')[0] for name in text.split('"$ref": "#/$defs/')[1:]} <= set(schema["$defs"])
    assert text.count('"$ref"') == text.count('"$ref": "#/$defs/')


def test_definitions_have_one_name_each_and_all_are_used() -> None:
    names = [name for path in FILES.glob("*.json") for name in json.loads(path.read_text("utf-8")).get("$defs", {})]
    assert sorted(names) == sorted(definitions())


def test_each_field_is_described_and_always_there() -> None:
    checked = 0
    for name, schema in definitions().items():
        for field, at in fields(schema, name):
            own = {**definitions()[field["$ref"].rpartition("/")[2]], **field} if "$ref" in field else field
            assert own.get("description", "").endswith("."), at
            assert {"type", "enum", "const", "anyOf", "$ref"} & set(own), at
            checked += 1
    assert checked > 300


def fields(schema: Schema, at: str) -> Iterator[tuple[Schema, str]]:
    if "properties" in schema:
        assert set(schema["required"]) == set(schema["properties"]), at
    for name, field in {**schema.get("properties", {}), **schema.get("patternProperties", {})}.items():
        yield field, f"{at}.{name}"
        yield from fields(field, f"{at}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from fields(schema["items"], f"{at}[]")


def test_numbers_that_are_not_finite_become_null() -> None:
    """A battery that nothing drains lasts without end: it was `Infinity`, which is no JSON."""
    printed = json_text({"days": [math.inf, 1.5], "share": (math.nan,), "n": 3})
    assert json.loads(printed, parse_constant=pytest.fail) == {"days": [None, 1.5], "share": [None], "n": 3}


STORED = sorted(plan.parent for plan in (outputs.ROOT / "tests" / "schemas").rglob("plan.json"))


@pytest.mark.parametrize("recording", STORED, ids=lambda path: "-".join(path.parts[-2:]))
def test_recordings_of_every_version_are_reported_as_the_schema_declares(recording: Path, tmp_path: Path) -> None:
    shutil.copytree(recording, tmp_path / "run")
    assert refused(*outputs.printed("report", "report", tmp_path / "run")) == []
