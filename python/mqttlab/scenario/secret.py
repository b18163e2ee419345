"""What a text field of a scenario may hold: each has a class, and secrets are read as marks (:mod:`mqttlab.secrets`).

``SECRET``: always a secret, written as a reference, or as text with a warning. ``PERSONAL``: may name a person or a
device; shown. ``PLAIN``: shown. Where programs are told anything, a text may be secret: a reference is, and so is what
looks like one.
"""

import re
import tomllib
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from mqttlab import secrets
from mqttlab.networks.link import Part
from mqttlab.quantity import shown
from mqttlab.secrets import MAY_BE_SECRET, PERSONAL, SECRET, PlainPath, PlainText, TextClass


class Reference(Part):
    """Where a secret is: in an environment variable of mqttlab, or in a file."""

    env: PlainText | None = Field(None, min_length=1, description="Name of an environment variable.")
    file: PlainPath | None = Field(
        None, description="Path of a file with the secret alone; the end of its last line does not count.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("must be a table with `env` or `file`, such as { env = \"NAME\" }")
        return self


def _of_reference(reference: dict[str, Any]) -> str:
    read = Reference.model_validate(reference)
    try:
        value = secrets.from_file(read.file) if read.file is not None else secrets.from_environment(read.env or "")
    except secrets.MissingSecret as missing:
        # Who only reads a report of an experiment needs no password; a run that does says why.
        return secrets.mark_of_absent(str(missing))
    return secrets.mark(value)


def read_secret(value: Any) -> Any:
    """The mark of a secret, from a reference or as written."""
    if isinstance(value, dict):
        return _of_reference(value)
    return secrets.mark(value, written=True) if isinstance(value, str) else value


def file_path(value: str) -> str:
    """A path below a server's directory."""
    parts = value.split("/")
    if not value or any(part in ("", ".", "..") for part in parts) or "\0" in value:
        raise ValueError(f"is {shown(value)}, but must be a path below the server's directory, such as \"etc/a.conf\"")
    return value


def read_name(value: Any) -> Any:
    """A name, which is a secret where it is a reference."""
    return _of_reference(value) if isinstance(value, dict) else value


def read_texts(looks_secret: Callable[[str, str], bool]) -> Callable[[Any], Any]:
    """Texts by name, of which some are secrets: references, and those that look like one."""

    def read(value: Any) -> Any:
        return {name: _read(name, text, looks_secret) for name, text in value.items()} if isinstance(
            value, dict) else value

    return read


def read_command(value: Any) -> Any:
    """Arguments, of which some are secrets."""
    if not isinstance(value, list):
        return value
    before = ["", *value[:-1]]
    return [_read(str(last), argument, secrets.is_secret_argument) for last, argument in zip(before, value, strict=True)
            ] if value else value


def read_resource(value: Any) -> Any:
    """A resource of HTTP, whose query may have a token."""
    return _read("", value, lambda _, path: secrets.is_secret_path(path))


def _read(name: str, value: Any, looks_secret: Callable[[str, str], bool]) -> Any:
    if isinstance(value, dict):
        return _of_reference(value)
    return secrets.mark(value, written=True) if isinstance(value, str) and looks_secret(name, value) else value


def is_secret_file(_path: str, text: str) -> bool:
    """Whether a file's text looks like a secret."""
    return secrets.is_secret_text(text)


Password = Annotated[str, SECRET, BeforeValidator(read_secret, json_schema_input_type=str | Reference)]
UserName = Annotated[str, PERSONAL, MAY_BE_SECRET, BeforeValidator(read_name, json_schema_input_type=str | Reference)]
Told = Annotated[str, MAY_BE_SECRET]
Command = Annotated[list[Told], BeforeValidator(read_command, json_schema_input_type=list[str | Reference])]
Environment = Annotated[dict[PlainText, Told], BeforeValidator(
    read_texts(secrets.is_secret_variable), json_schema_input_type=dict[str, str | Reference])]
Files = Annotated[
    dict[Annotated[PlainText, AfterValidator(file_path)], Told],
    BeforeValidator(read_texts(is_secret_file), json_schema_input_type=dict[str, str | Reference])]


Step = str | int


def written_in(values: Any) -> Iterator[str]:
    """The secrets that stand in the values of a scenario or an experiment themselves, also where these are wrong."""
    yield from (value for _, value in written_at(values))


def written_at(values: Any, place: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], str]]:
    """:func:`written_in`, with the places; of a plan, too."""
    if isinstance(values, list):
        for index, item in enumerate(values):
            yield from written_at(item, (*place, index))
    if not isinstance(values, dict):
        return
    varied = [values.get("place"), *(values["places"] if isinstance(values.get("places"), list) else ())]
    of_password = any(_last(word) == "password" for word in varied)
    for key, value in values.items():
        at, last = (*place, str(key)), _last(key)
        if last == "password" or (key == "levels" and of_password):
            yield from _texts(at, value)
        elif last == "environment" and isinstance(value, dict):
            yield from _looking(at, value, secrets.is_secret_variable)
        elif ".environment." in f".{key}" and isinstance(value, str):
            yield from _found(at, value, secrets.is_secret_variable(last, value))
        elif last == "files" and isinstance(value, dict):
            yield from _looking(at, value, is_secret_file)
        elif last == "files" and isinstance(value, list):
            for index, file in enumerate(value):
                told = {"text": file.get("text")} if isinstance(file, dict) else {}
                yield from _looking((*at, index), told, is_secret_file)
        elif last == "command" and isinstance(value, list):
            for index, (before, argument) in enumerate(zip(["", *value[:-1]], value, strict=False)):
                if isinstance(argument, str):
                    yield from _found((*at, index), argument, secrets.is_secret_argument(str(before), argument))
        elif last == "path" and isinstance(value, str):
            yield from _found(at, value, secrets.is_secret_path(value))
        elif last == "authorities" and isinstance(value, str) and "PRIVATE KEY-----" in value:
            yield at, value
        else:
            yield from written_at(value, at)


def _last(key: Any) -> str:
    return str(key).rpartition(".")[2]


def _texts(place: tuple[Step, ...], value: Any) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Texts of a place of secrets; a reference has none."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts((*place, index), item)
    elif isinstance(value, (str, int, float)) and str(value) and not secrets.is_mark(str(value)):
        yield place, str(value)


def _looking(
    place: tuple[Step, ...], told: Mapping[Any, Any], looks_secret: Callable[[str, str], bool],
) -> Iterator[tuple[tuple[Step, ...], str]]:
    for name, value in told.items():
        if isinstance(value, str):
            yield from _found((*place, name), value, looks_secret(str(name), value))


def _found(place: tuple[Step, ...], value: str, is_secret: bool) -> Iterator[tuple[tuple[Step, ...], str]]:
    if is_secret and not secrets.is_mark(value):
        yield place, value


def without_written(values: Any) -> Any:
    """The same values with a mark in the place of each secret that stands in them."""
    places = dict(written_at(values))
    return _marked(values, (), places) if places else values


def _marked(values: Any, place: tuple[Step, ...], places: Mapping[tuple[Step, ...], str]) -> Any:
    if isinstance(values, dict):
        return {key: _marked(value, (*place, str(key)), places) for key, value in values.items()}
    if isinstance(values, list):
        return [_marked(value, (*place, index), places) for index, value in enumerate(values)]
    return secrets.mark_or_hidden(places[place]) if place in places else values


# A text of TOML, or a comment.
_TOML = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL)
_COMMENTED = re.compile(
    r"((?:pass(?:word|wd|phrase)|token|secret|psk)\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s{]+)",
    re.IGNORECASE)
# What stands before a secret that is shorter than other texts are.
_NAMED = re.compile(
    r"[\w\"'-]*(?:pass|pw|token|secret|key|psk|credential|levels)[\w\"'-]*\s*=\s*\[?[^=\n]*$",
    re.IGNORECASE)
_LONG = 8


def without_secrets(toml: str, known: dict[str, str] | None = None) -> str:
    """A TOML text with a mark in the place of each secret that stands in it; nothing else of it is changed.

    Args:
        toml: a scenario or an experiment.
        known: takes the secrets that were found, with their marks.
    """
    try:
        found = set(written_in(tomllib.loads(toml)))
    except (ValueError, RecursionError):
        found = set[str]()
    if known is not None:
        known |= {value: secrets.mark_or_hidden(value) for value in found}

    def replaced(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("#"):
            return _COMMENTED.sub(lambda inner: inner[1] + secrets.HIDDEN, token)
        try:
            value = tomllib.loads(f"x = {token}")["x"]
        except ValueError:
            return token
        line = toml[toml.rfind("\n", 0, match.start()) + 1:match.start()]
        if value not in found or (len(value) < _LONG and _NAMED.search(line) is None):
            return token
        return f'"{secrets.mark_or_hidden(value)}"'

    text = _TOML.sub(replaced, toml)
    # In a comment, or as a part of another text.
    for value in sorted((value for value in found if len(value) >= _LONG), key=len, reverse=True):
        text = text.replace(value, secrets.mark_or_hidden(value))
    return text


def classes_of(model: type[BaseModel]) -> Iterator[tuple[str, frozenset[str]]]:
    """Every text that a model may hold, by its place in the definition, with its classes; none where it has none."""
    yield from _classes(model, set())


def _classes(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[tuple[str, frozenset[str]]]:
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        marks: set[str] = {each.name for each in field.metadata if isinstance(each, TextClass)}
        for place, found, inner in _annotated(field.annotation, marks):
            if inner is not None:
                yield from _classes(inner, seen)
            else:
                yield f"{model.__name__}.{name}{place}", frozenset(found)


def _annotated(kind: Any, marks: set[str]) -> Iterator[tuple[str, set[str], type[BaseModel] | None]]:
    """The texts and the models in an annotation."""
    marks = marks | {each.name for each in getattr(kind, "__metadata__", ()) if isinstance(each, TextClass)}
    if typing.get_origin(kind) is Annotated:
        yield from _annotated(typing.get_args(kind)[0], marks)
    elif kind in (str, Path, Any):
        yield "", marks, None
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield "", marks, kind
    elif typing.get_origin(kind) is dict:
        key, value = typing.get_args(kind)
        yield from ((f"{{key}}{place}", found, inner) for place, found, inner in _annotated(key, set()))
        yield from _annotated(value, marks)
    elif typing.get_origin(kind) is not Literal:
        for argument in typing.get_args(kind):
            yield from _annotated(argument, marks)

