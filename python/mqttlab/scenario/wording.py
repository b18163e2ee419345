"""What is wrong with a file that people wrote, in words that help; for scenarios and for experiments.

A problem is one line: the file and line where that is known, the field's place, what is wrong, and what would be
right. Unknown fields come with the nearest known name.
"""

from __future__ import annotations

import re
import tomllib
import typing
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from mqttlab import mistaken, secrets
from mqttlab.digits import plain
from mqttlab.quantity import shown
from mqttlab.scenario.location import Location
from mqttlab.scenario.secret import without_written, written_in
from mqttlab.toml_reader import LENGTH_MAX, TooLarge, read_toml

PROBLEMS_MAX = 100
DETAILS_MAX = 2_000
NAME = "1 to 40 letters, digits, `_`, `.` or `-`, the first a letter or digit"
# What pydantic calls a mistake, and what the field must be instead.
LIMITS = {
    "greater_than_equal": "{} or more", "greater_than": "more than {}", "less_than_equal": "{} or less",
    "less_than": "less than {}", "string_too_long": "at most {} characters long",
    "string_too_short": "at least {} character long",
}
# What other tools call a field.
SYNONYMS = {
    "latency": "delay", "lag": "delay", "bandwidth": "rate", "throughput": "rate", "speed": "rate", "bitrate": "rate",
    "packet_loss": "loss", "loss_rate": "loss", "buffer": "queue", "limit": "queue", "clients": "count",
    "frequency": "rate", "period": "interval", "size": "payload", "message": "payload",
    "topics": "topic", "time": "duration", "uplink": "up", "downlink": "down", "upload": "up", "download": "down",
    "hosts": "between", "shared": "link",
    "duration": "for", "action": "do", "start": "at", "target": "network",
    "max": "below", "maximum": "below", "min": "above", "minimum": "above",
    "identifier": "client_id", "client_identifier": "client_id", "clientid": "client_id", "keepalive": "keep_alive",
}
# What other tools say by a field of its own.
WRITTEN = dict.fromkeys(("simulate", "simulated", "simulation"), 'backend = "sim"')
# What a field may be called only in a table that has it: elsewhere the word means something else.
SYNONYMS_HERE = {"until": "to", "end": "to", "link": "network", "target": "network", "clients": "group", "kind": "do",
                 "type": "do", "event": "do", "every": "interval"}
PACKET_WORDS = {"retain_handling": ("send", "new", "never")}
"""What scenarios call the numbers of an option (MQTT 5, 3.8.3.1)."""
TABLE = "a table, such as { ... }"
FIELDS_MAX = 6
DEPTH_MAX = 3
"""Tables below tables that are looked through for an unknown field."""
HOLDERS_MAX = 5
MUST_BE = {
    "string_pattern_mismatch": NAME, "string_type": "text in quotes", "int_type": "a whole number",
    "int_parsing": "a whole number", "int_from_float": "a whole number", "int_parsing_size": "a smaller number",
    "float_type": "a number", "float_parsing": "a number", "finite_number": "a finite number",
    "bool_type": "true or false", "bool_parsing": "true or false", "list_type": "an array, such as [...]",
    "tuple_type": "an array, such as [...]", "dict_type": "a table, such as { ... }",
    "path_type": "a path in quotes", "string_unicode": "text without lone surrogates",
    "too_short": "an array with more entries", "too_long": "an array with fewer entries",
}

_HEADING = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"'-]+)\s*=")


@dataclass(frozen=True)
class Source:
    """Where a scenario's values come from."""

    name: str
    text: str
    replaced: Collection[str]
    replaced_by: str = "on the command line"

    def at(self, location: Location) -> str:
        """The file and line of a field, or the command line, and the field's place."""
        place = ""
        for part in location:
            place += f"[{part}]" if isinstance(part, int) else (f".{part}" if place else str(part))
        shown_place = f"`{place}` " if place else ""
        if any(f"{place}.".startswith(f"{other}.") or place.startswith(f"{other}[") for other in self.replaced):
            return f"{self.name}, as set {self.replaced_by}: {shown_place}"
        line = self._line(location)
        return f"{self.name}{f':{line}' if line else ''}: {shown_place}"


    def _line(self, location: Location) -> int | None:
        """The line of a field, as far as a look at the tables' headings tells; the heading's own otherwise."""
        wanted = tuple(str(part) for part in location)
        return next((line for depth in range(len(wanted), 0, -1)
                     if (line := self._lines.get(wanted[:depth])) is not None), None)

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        """The first line of each field and each heading, by its place."""
        counts: dict[str, int] = {}
        table: list[str] = []
        found: dict[tuple[str, ...], int] = {}
        for number, line in enumerate(self.text.splitlines(), start=1):
            if heading := _HEADING.match(line):
                table = [part.strip().strip("\"'") for part in heading[2].split(".")]
                if heading[1] == "[[":
                    counts[heading[2]] = counts.get(heading[2], -1) + 1
                table = _indexed(table, counts)
                here = table
            elif key := _KEY.match(line):
                here = table + [part.strip("\"'") for part in key[1].split(".")]
            else:
                continue
            found.setdefault(tuple(here), number)
        return found


def problems_of(error: ValidationError, values: Any, source: Source, model: type[BaseModel]) -> list[str]:
    """What a model has found wrong with the values of a file, one line each."""
    details = _first_details(error, values, model)
    more = error.error_count() - PROBLEMS_MAX
    written = set(written_in(values))
    return [secrets.hidden(_problem(values, source, detail, model), written) for detail in details[:PROBLEMS_MAX]] + (
        [f"{source.name}: and at least {more:,} more problems"] if more > 0 else [])


def _first_details(error: ValidationError, values: Any, model: type[BaseModel]) -> list[Any]:
    """Details of mistakes; of very many those of the first ones, for each takes a kilobyte."""
    if error.error_count() > DETAILS_MAX:
        try:
            model.model_validate(_cut(values))
        except ValidationError as fewer:
            found = [each for each in fewer.errors(include_url=False) if each["type"] != "missing"]
            if found:
                return found
    return error.errors(include_url=False)


def _cut(values: Any) -> Any:
    """The first entries of each list and table."""
    if isinstance(values, dict):
        return {name: _cut(values[name]) for name in islice(values, PROBLEMS_MAX)}
    return [_cut(value) for value in values[:PROBLEMS_MAX]] if isinstance(values, list) else values


def _problem(values: Any, source: Source, detail: Any, model: type[BaseModel]) -> str:
    location: Location = tuple(part for part in detail["loc"] if not str(part).startswith("function-"))
    if location[-1:] == ("[key]",):
        location = location[:-1]
    given = values
    for part in location:
        try:
            given = given[part]
        except (LookupError, TypeError):
            given = detail["input"]
            break
    given = secrets.HIDDEN if location[-1:] == ("password",) else without_written(given)
    return source.at(location) + _words(location, detail, shown(given), model)


def _words(location: Location, detail: Any, given: str, model: type[BaseModel]) -> str:
    """What is wrong at a place: value as written, limit, and the nearest right value."""
    kind, limits = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return f"is an unknown field{_instead(str(location[-1]), _model_at(location[:-1], model), model)}"
    if kind == "missing":
        return "is missing; add it"
    if kind == "literal_error":
        expected = re.findall(r"'([^']*)'", limits["expected"]) or re.findall(r"\d+", limits["expected"])
        near = mistaken.closest(str(detail["input"]), expected) or _in_words(location, detail["input"])
        hint = f"; did you mean \"{near}\"?" if near else ""
        return f"is {given}, but must be one of {', '.join(expected)}{hint}"
    if kind in LIMITS:
        return f"is {given}, but must be {LIMITS[kind].format(_limit(location, next(iter(limits.values())), model))}"
    if kind == "list_type" and isinstance(detail["input"], dict) and len(location) == 1:
        # A heading in single brackets.
        return f"is one table, but must be an array of tables; write the heading `[[{location[0]}]]`"
    if kind in ("model_type", "model_attributes_type"):
        return f"is {given}, but must be {_table_at(location, model)}"
    if kind in MUST_BE:
        return f"is {given}, but must be {MUST_BE[kind]}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    return message if kind == "value_error" else f"is {given}: {message[:1].lower()}{message[1:]}"


def _in_words(location: Location, given: object) -> str | None:
    """The word for a number that a packet has in this place."""
    words = PACKET_WORDS.get(str(location[-1]), ())
    return words[given] if type(given) is int and given in range(len(words)) else None


def _table_at(location: Location, top: type[BaseModel]) -> str:
    """A table in the words of a message, by the fields that it needs, or else by those that it may have."""
    above, name = _model_at(location[:-1], top), str(location[-1])
    table = _model_in(fields_of(above)[name].annotation) if name in fields_of(above) else None
    fields = fields_of(table) if table is not None else {}
    if needed := [field for field, each in fields.items() if each.is_required()]:
        return f"a table, such as {{ {', '.join(f'{field} = ...' for field in needed)} }}"
    return f"a table of {', '.join(f'`{field}`' for field in fields)}" if 0 < len(fields) <= FIELDS_MAX else TABLE


def _limit(location: Location, limit: Any, top: type[BaseModel]) -> str:
    """A limit as a scenario writes it: in the plan it has no unit."""
    model: Any = top
    field = None
    for part in location:
        if isinstance(part, str):
            field = fields_of(model).get(part)
            # A key of a table by name is no field.
            model = model if field is None else _model_in(field.annotation) or model
    example = field and (_example(field.metadata) or _example([field.annotation]))
    if not isinstance(limit, int) or not example:
        return str(limit)
    if example.endswith(" B"):
        for factor, unit in ((2**20, "MiB"), (10**6, "MB")):
            if limit % factor == 0:
                return f"{limit // factor} {unit}"
        return f"{limit} B"
    for factor, unit in ((3600 * 10**9, "h"), (10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if limit >= factor and limit % factor == 0:
            return f"{plain(limit / factor)} {unit}"
    return str(limit)


def _example(parts: typing.Iterable[Any]) -> str | None:
    """How a quantity is written, from its annotation."""
    for part in parts:
        schema = getattr(part, "json_schema", None)
        if isinstance(schema, dict):
            return str(schema["examples"][0])
        if (found := _example((*getattr(part, "__metadata__", ()), *typing.get_args(part)))) is not None:
            return found
    return None


def _indexed(table: list[str], counts: dict[str, int]) -> list[str]:
    """A heading's place with the indices of the arrays of tables that it lies in."""
    place: list[str] = []
    for depth, part in enumerate(table):
        place.append(part)
        array = ".".join(table[: depth + 1])
        if array in counts:
            place.append(str(counts[array]))
    return place


def _model_at(location: Location, top: type[BaseModel]) -> type[BaseModel]:
    """The model of a place in a file."""
    model = top
    for part in location:
        field = None if isinstance(part, int) else fields_of(model).get(str(part))
        if field is not None:
            model = _model_in(field.annotation) or model
    return model


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a table, by the names that files have: `for` is no name in Python."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _instead(given: str, model: type[BaseModel], top: type[BaseModel]) -> str:
    """What stands behind an unknown field: the tables that have a field of this name, or the nearest name here."""
    here = fields_of(model)
    known = SYNONYMS_HERE.get(given.lower())
    if known in here:
        return f"; did you mean `{known}`?"
    if holders := _holders(given, model):
        return f"; `{given}` is a field of {holders}"
    known = SYNONYMS.get(given.lower())
    if known in here:
        return f"; did you mean `{known}`?"
    if (written := WRITTEN.get(given.lower())) and written.split(" = ")[0] in here:
        return f"; write `{written}`"
    if field := next((name for name, each in here.items() if given in _literals(each.annotation)), None):
        return f"; write `{field} = \"{given}\"`"
    if known is not None and (holders := _holders(known, model)):
        return f"; did you mean `{known}`, a field of {holders}?"
    if model is not top and (holders := _holders(given, top)):
        return f"; `{given}` is a field of {holders}"
    return f"; {mistaken.did_you_mean(given, here, 0.6)}" if here else ""


def _literals(annotation: Any) -> set[str]:
    """The words that a field may be."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return {part for part in parts if isinstance(part, str)}
    return set().union(*map(_literals, parts))


def _holders(field: str, model: type[BaseModel]) -> str:
    """The tables below a table that have a field of this name, in words."""
    found = [f"`{place}`" for place in holders(field, model)]
    return " and ".join(part for part in (", ".join(found[:-1]), *found[-1:]) if part)


def holders(field: str, model: type[BaseModel]) -> list[str]:
    """The tables below a table that have a field of this name: those of the least depth, two of a kind."""
    level: list[tuple[str, type[BaseModel]]] = [("", model)]
    for _ in range(DEPTH_MAX):
        level = [(f"{place}.{name}".lstrip("."), table) for place, above in level
                 for name, each in fields_of(above).items() if (table := _model_in(each.annotation)) is not None]
        kinds: dict[type[BaseModel], list[str]] = {}
        for place, table in level:
            if field in fields_of(table):
                kinds.setdefault(table, []).append(place)
        if found := [place for places in kinds.values() for place in places[:2]][:HOLDERS_MAX]:
            return found
    return []


def example_of(place: str, top: type[BaseModel]) -> str:
    """A value of a field as TOML has it, for a message: another one than its default where there are two.

    Args:
        place: names with dots between them, without indices.
        top: the model that the place begins in.
    """
    *above, name = place.split(".")
    field = fields_of(_model_at(tuple(above), top))[name]
    table, literals = _model_in(field.annotation), [*_literals(field.annotation)]
    if _has(field.annotation, bool):
        return "false" if field.default is True else "true"
    if literals:
        return f'"{min((word for word in literals if word != field.default), default=literals[0])}"'
    if found := _example(field.metadata) or _example([field.annotation]):
        return f'"{found}"'
    if table is not None:
        needed = [inner for inner, each in fields_of(table).items() if each.is_required()]
        return f"{{ {', '.join(f'{inner} = ...' for inner in needed)} }}" if needed else "{ ... }"
    return str(field.default or 1) if _has(field.annotation, int) else '"TEXT"'


def _has(annotation: Any, kind: type) -> bool:
    """Whether a field may be of a kind."""
    return annotation is kind or any(_has(part, kind) for part in typing.get_args(annotation))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        if (found := _model_in(argument)) is not None:
            return found
    return None


def read_text(path: Path) -> str:
    """A file's text, without the mark that editors of Windows put in front of it (U+FEFF).

    Raises:
        ValueError: it cannot be read, or is no text; in one line with its path.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(LENGTH_MAX + 1)
    except UnicodeDecodeError as error:
        what = mistaken.what_it_is(path) or f"is not UTF-8 text (byte {error.start})"
        raise ValueError(f"{path}: {what}") from error
    except FileNotFoundError as error:
        near = mistaken.nearest_path(path)
        raise ValueError(f"{path}: cannot be read: {error.strerror}"
                         + (f"; did you mean {near}?" if near else "")) from error
    except OSError as error:
        what = mistaken.what_it_is(path) or f"cannot be read: {error.strerror or error}"
        raise ValueError(f"{path}: {what}") from error
    # No text has zero bytes, although they are UTF-8.
    if "\0" in text and (other := mistaken.what_it_is(path)) is not None:
        raise ValueError(f"{path}: {other}")
    if len(text) > LENGTH_MAX:
        raise ValueError(f"{path}: is longer than {LENGTH_MAX:,} characters, which are read at most")
    return text


def toml_values(text: str, name: str) -> dict[str, Any]:
    """The values of a TOML text.

    Raises:
        ValueError: it is not TOML; in one line that begins with ``name``.
    """
    try:
        return read_toml(text)
    except tomllib.TOMLDecodeError as error:
        what = mistaken.text_is(text, Path(name))
        hint = "; scenarios and experiments are TOML; mqttlab new writes one" if what in ("is JSON", "is YAML") else ""
        raise ValueError(_not_toml(name, str(error), text) if what is None else f"{name}: {what}{hint}") from error
    except TooLarge as error:
        raise ValueError(f"{name}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{name}: is not TOML: a number has too many digits") from error


def _not_toml(name: str, problem: str, text: str) -> str:
    """What the reader of TOML has found, with the line where a problem has one."""
    place = re.search(r" \(at line (\d+), column (\d+)\)", problem)
    words = problem if place is None else problem.replace(place[0], "")
    line = "" if place is None else text.splitlines()[int(place[1]) - 1 :][:1]
    if words.startswith("Illegal character '\\n'") and line and (line[0].count('"') % 2 or line[0].count("'") % 2):
        words = "a text is not closed; put a quote behind it"
    heading = re.match(r"\s*\[\[\s*([^\]]+?)\s*\]\]", line[0] if line else "")
    if heading is not None and re.search(rf"^\s*\[\s*{re.escape(heading[1])}\s*\]", text, re.MULTILINE):
        words = f"`[{heading[1]}]` stands above it, for one table; write `[[{heading[1]}]]` everywhere"
    elif words.startswith(("Cannot overwrite", "Cannot declare", "Cannot redefine")):
        words = "a field or table is written twice; keep one"
    where = name if place is None else f"{name}:{place[1]}"
    return f"{where}: is not TOML: {words[:1].lower()}{words[1:]}" + (f" (column {place[2]})" if place else "")
