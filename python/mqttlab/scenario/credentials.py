"""Identifiers, user names and passwords of a group's clients: from a pattern, or from a table of the user's.

::

    client_id = "device-{client:06}"           {client}, {client:04} with four digits at least, {group}, as in payloads
    credentials = "devices.csv"                client_id,username,password     any of these columns
                                               meter-a,alice,hunter22          a row for each client

A table is a secret as a whole: the plan has a mark of it, and the engine gets its rows behind the plan, as
``crates/plan`` (``credentials.rs``) reads them. No message has anything of its passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol

from mqttlab import secrets
from mqttlab.mistaken import UserFileError, closest, readable
from mqttlab.plurals import counted
from mqttlab.quantity import shown
from mqttlab.scenario.separated import separated
from mqttlab.scenario.topics import FILTER_PLACEHOLDERS, MQTT_TEXT_MAX, placeholders

Column = Literal["client_id", "username", "password"]
COLUMNS: tuple[Column, ...] = ("client_id", "username", "password")
# What people call a column.
CALLED: dict[str, Column] = {
    "client_id": "client_id", "clientid": "client_id", "client": "client_id", "id": "client_id", "device": "client_id",
    "device_id": "client_id", "username": "username", "user_name": "username", "user": "username", "login": "username",
    "password": "password", "passwd": "password", "pass": "password",
}
ROWS_MAX = 1_000_000
BYTES_MAX = 50_000_000
PLACE = re.compile(r"\{(?P<doubled>\{(?:group|client(?::\d{1,2})?)\})\}|\{group\}|\{client(?::(?P<width>\d{1,2}))?\}",
                   re.ASCII)
OF_PAYLOADS = re.compile(r"\{(sequence|time|random|identity)(?::[^{}]*)?\}")
MQTT_31_MAX = 23
"""Characters of an identifier in MQTT 3.1 (its section 3.1)."""


class CredentialsError(ValueError):
    """A table that cannot be used; in words that follow its name."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What a table has."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    """In the order of the columns."""

    def of(self, column: Column) -> list[str]:
        """What the clients have there; nothing where there is no such column."""
        if column not in self.columns:
            return []
        place = self.columns.index(column)
        return [row[place] for row in self.rows]

    def mark(self) -> str:
        """What stands for it in a plan."""
        head = "\t".join((secrets.CREDENTIALS, *self.columns))
        return secrets.mark("\n".join((head, *("\t".join(row) for row in self.rows))))


def read_credentials(path: Path) -> Credentials:
    """Read a table.

    Raises:
        CredentialsError: what is wrong, with line and column.
    """
    try:
        with readable(path, BYTES_MAX, "a table") as about:
            return _read(path.resolve(), about.st_size, about.st_mtime_ns)
    except UserFileError as error:
        raise CredentialsError(str(error)) from None


@lru_cache(maxsize=16)
def _read(path: Path, size: int, changed_ns: int) -> Credentials:
    rows = list[tuple[str, ...]]()
    with separated(path, CredentialsError) as (names, _, lines):
        places = _places(names)
        for fields in lines:
            if fields:
                rows.append(_row(fields, places, lines.line_num + 1))
            if len(rows) > ROWS_MAX:
                raise CredentialsError(f"has more than {ROWS_MAX} rows, and a run has at most so many clients")
    return Credentials(columns=tuple(places), rows=tuple(rows))


def _places(header: list[str]) -> dict[Column, int]:
    found: dict[Column, int] = {}
    for place, written in enumerate(header):
        name = re.sub(r"[\s_-]+", "_", written.strip().lower())
        column = CALLED.get(name)
        if column is None:
            if (near := closest(name, CALLED, 0.8)) is not None:
                raise CredentialsError(f"line 1: the column {shown(written)} is not known; did you mean `{near}`?")
        elif column in found:
            raise CredentialsError(f"line 1: the columns {shown(header[found[column]])} and {shown(written)} both say "
                                   f"the {column}; keep one")
        else:
            found[column] = place
    if not found:
        raise CredentialsError(f"has no column {', '.join(f'`{column}`' for column in COLUMNS[:-1])} or `{COLUMNS[-1]}`"
                               "; its first line names the columns")
    return found


def _row(fields: Sequence[str], places: dict[Column, int], line: int) -> tuple[str, ...]:
    for column, place in places.items():
        text = fields[place] if place < len(fields) else ""
        size = len(text.encode("utf-8", "surrogatepass"))
        if not text:
            raise CredentialsError(f"line {line}: column `{column}` is empty")
        # MQTT 5, 1.5.4: receivers may close the connection for control characters in a text.
        if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text):
            raise CredentialsError(f"line {line}: column `{column}` has a control character")
        if size > MQTT_TEXT_MAX:
            raise CredentialsError(f"line {line}: column `{column}` has {size} B, but MQTT allows {MQTT_TEXT_MAX} B")
    return tuple(fields[place] for place in places.values())


def filled(pattern: str, group: str, client: int) -> str:
    """A pattern with its places filled in, as the engine does it. Other braces stand for themselves."""
    def place(found: re.Match[str]) -> str:
        if found["doubled"] is not None:
            return found["doubled"]
        if found[0] == "{group}":
            return group
        width = int(found["width"] or 0)
        return str(client).rjust(width, "0") if found["width"] is None or 1 <= width <= 20 else found[0]

    return PLACE.sub(place, pattern)


def is_numbered(pattern: str) -> bool:
    """Whether clients of a group have different texts from it."""
    return filled(pattern, "group", 1) != filled(pattern, "group", 2)


def places_problem(pattern: str) -> str | None:
    """What is wrong with the places of a client identifier, in words that follow the field's name."""
    return _width_problem(pattern) or _foreign_problem(pattern) or placeholders(
        PLACE.sub(lambda found: "" if found["doubled"] else "{client}", pattern), FILTER_PLACEHOLDERS)


def user_places_problem(pattern: str) -> str | None:
    """Likewise of a user name, in which other braces stand for themselves."""
    if (problem := _width_problem(pattern) or _foreign_problem(pattern)) is not None:
        return problem
    for found in re.findall(r"\{[A-Za-z_]+\}", PLACE.sub("", pattern)):
        if (near := closest(found, FILTER_PLACEHOLDERS)) is not None:
            return f"has the unknown placeholder {shown(found)}; did you mean {near}?"
    return None


def _width_problem(pattern: str) -> str | None:
    for place, width in re.findall(r"(\{client:([^{}]*)\})", pattern):
        if not re.fullmatch("[0-9]{1,2}", width) or not 1 <= int(width) <= 20:
            return (f"has {shown(place)}, but behind the colon stands how many digits it has at least, 1 to 20, such "
                    "as {client:04}")
    return None


def _foreign_problem(pattern: str) -> str | None:
    if (found := OF_PAYLOADS.search(pattern)) is None:
        return None
    return (f"has {shown(found[0])}, which only messages have; known: {{group}}, {{client}}, and {{client:04}} with "
            "four digits at least")


def texts_of(
    pattern: str | None, table: Credentials | None, column: Column, group: str, clients: int,
) -> Iterator[str]:
    """The identifiers, user names or passwords of a group's clients; nothing where they have none."""
    if table is not None and column in table.columns:
        yield from table.of(column)[:clients]
    elif pattern is not None:
        yield from (filled(pattern, group, client) for client in range(clients))


def listed_credentials(session: Session, group: str, clients: int) -> Credentials | None:
    """What a plan lists for a group's clients: the rows of a table, and secrets with places, filled in, so that what
    hides secrets knows each of them.

    Raises:
        CredentialsError: the table cannot be read.
    """
    table = session.table
    columns: dict[Column, list[str]] = {}
    columns |= {} if table is None else {column: table.of(column)[:clients] for column in table.columns}
    secret: dict[Column, str | None] = {"username": session.username, "password": session.password}
    for column, text in secret.items():
        value = secrets.value_of(text or "")
        if value is not None and column not in columns and filled(value, group, 0) != value:
            columns[column] = [filled(value, group, client) for client in range(clients)]
    rows = tuple(zip(*columns.values(), strict=True))
    return Credentials(columns=tuple(columns), rows=rows) if columns else None


class Session(Protocol):
    """What a session says of its clients' names: ``Mqtt``."""

    @property
    def version(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def duplicate_ids(self) -> bool: ...
    @property
    def username(self) -> str | None: ...
    @property
    def password(self) -> str | None: ...
    @property
    def credentials(self) -> Path | None: ...
    @property
    def table(self) -> Credentials | None: ...
    @property
    def model_fields_set(self) -> set[str]: ...


def credential_problems(session: Session, group: str, clients: int) -> Iterator[tuple[str, str]]:
    """What is wrong with the names of a group's clients, by field."""
    if (problem := places_problem(session.client_id)) is not None:
        yield "client_id", problem
    user = session.username or ""
    if not secrets.is_mark(user) and (problem := user_places_problem(user)) is not None:
        yield "username", problem
    try:
        table = session.table
    except CredentialsError as error:
        joint = ": " if str(error).startswith("line") else ", which "
        yield "credentials", f"is {shown(str(session.credentials))}{joint}{error}"
        return
    columns = () if table is None else table.columns
    for column in columns:
        if column in session.model_fields_set and getattr(session, column) is not None:
            yield column, (f"is set, and {shown(str(session.credentials))} has a column `{column}`, too; leave one out")
    if table is not None and (missing := clients - len(table.rows)) > 0:
        yield "credentials", (f"is {shown(str(session.credentials))}, which has {counted(len(table.rows), 'row')}, but "
                              f"`{group}` has {counted(clients, 'client')}; add {missing}, or lower `count`")
    if session.version != "5" and (session.password is not None or "password" in columns) and (
            session.username is None and "username" not in columns):
        yield "password" if "password" not in columns else "credentials", (
            f"needs a `username` in MQTT {session.version} (3.1.1, §3.1.2.9); add one, or use version \"5\"")
    yield from _alike(session, table, clients)


def _alike(session: Session, table: Credentials | None, clients: int) -> Iterator[tuple[str, str]]:
    """Clients of a group with one identifier: the broker ends the connection of the older one."""
    if session.duplicate_ids:
        return
    if table is None or "client_id" not in table.columns:
        if clients > 1 and not is_numbered(session.client_id) and places_problem(session.client_id) is None:
            yield "client_id", (f"is {shown(session.client_id)} for {clients} clients, which would take over each "
                                "other's sessions; add {client}")
        return
    first: dict[str, int] = {}
    for number, name in enumerate(table.of("client_id")[:clients], 1):
        if name in first:
            yield "credentials", (f"is {shown(str(session.credentials))}, whose rows {first[name]} and {number} have "
                                  f"the identifier {shown(name)}: the clients would take over each other's sessions; "
                                  "give each its own, or set `duplicate_ids`")
            return
        first[name] = number
