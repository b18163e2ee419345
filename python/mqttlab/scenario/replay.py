"""Tables of messages that are replayed: comma-separated values with a header line, a line for each message.

::

    time,topic,payload,client           time is needed; the others are the publication's where there is no column
    2026-01-01T00:00:00Z,room/1,21.5,a

The table is read here to be checked, and by the engine to be replayed (``crates/plan``, ``replay.rs``), which is told
where its columns are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Literal

from mqttlab.digits import whole
from mqttlab.mistaken import UserFileError, closest, readable
from mqttlab.quantity import shown
from mqttlab.scenario.separated import separated
from mqttlab.scenario.topics import published_topic

ROWS_MAX = 1_000_000
BYTES_MAX = 1_000_000_000
PAYLOAD_MAX = 10_000_000
SPAN_NS_MAX = 366 * 86_400 * 10**9
TimeForm = Literal["s", "ms", "us", "ns", "iso"]
UNITS: dict[str, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# What people call a column. A time's name may end with its unit.
NAMES = {
    "time": ("time", "timestamp", "t", "ts", "date", "datetime", "offset", "elapsed", "seconds", "at", "when"),
    "topic": ("topic", "topic_name", "channel"),
    "payload": ("payload", "message", "data", "value", "body", "content", "msg"),
    "size": ("size", "bytes", "length", "len", "payload_bytes", "payload_size", "size_bytes"),
    "client": ("client", "client_id", "clientid", "device", "device_id", "publisher", "sender", "id"),
    "qos": ("qos",),
    "retain": ("retain", "retained"),
}
COLUMN = {name: column for column, names in NAMES.items() for name in names}
# The messages of a recording as ``export --csv`` writes them, a row for each delivery. Its ``retained`` and
# ``qos_delivered`` are of deliveries.
OWN = {"intended_ns": "time", "topic": "topic", "payload_bytes": "size", "publisher": "client", "qos": "qos",
       "retain": "retain", "sequence": "sequence"}
NUMBER = re.compile(r"(?P<sign>[+-]?)(?P<whole>\d{0,20})(?:\.(?P<part>\d*))?", re.ASCII)
DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2}))?(?:\.(\d+))?"
                  r"(?:[Zz]|([+-])(\d{2}):?(\d{2})?)?", re.ASCII)
TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class ReplayError(ValueError):
    """A table that cannot be replayed; in words that follow its name."""


@dataclass(frozen=True, kw_only=True)
class ReplayTable:
    """What a table has."""

    rows: int
    delimiter: str
    columns: dict[str, int]
    """The place of each column that is used."""
    unused: tuple[str, ...]
    """Columns that say nothing of a message."""
    time: TimeForm
    span_ns: int
    """From its first message to its last."""
    topics: tuple[str, ...]
    """In the order of their first message; the empty one: as the publication has it."""
    owned: frozenset[str]
    """Those of them whose messages are all of one client, where the table names clients."""
    clients: tuple[str, ...]
    """What it calls them, in the order of their first message."""
    sizes: tuple[int, int, int] | None
    """The least, the greatest, and the sum; ``None`` where it says none."""
    unsized: int
    """How many messages have the publication's payload."""
    qos: int | None
    """The highest."""
    left_open: frozenset[str]
    """Columns that some messages have nothing in: there the publication says it."""

    @property
    def is_numbered(self) -> bool:
        """Whether clients are called by whole numbers."""
        return all(name.isascii() and name.isdigit() and len(name) < 8 for name in self.clients)

    def names(self, count: int) -> tuple[str, ...]:
        """What the clients of a group of so many are called; none where they are called by their numbers in it."""
        if not self.is_numbered:
            return self.clients
        # Numbers with gaps: the least one is client 0.
        numbers = all(int(name) < count for name in self.clients)
        return () if numbers else tuple(sorted(self.clients, key=int))

    @property
    def period_ns(self) -> int:
        """From one begin to the next, where it is replayed again and again, with the mean pause between."""
        return self.span_ns + self.span_ns // max(1, self.rows - 1)


def read_table(path: Path, ignored: frozenset[str] = frozenset()) -> ReplayTable:
    """Read a table, without the columns that are ignored.

    Raises:
        ReplayError: what is wrong, with line and column.
    """
    try:
        with readable(path, BYTES_MAX, "a table") as there:
            return _read(path.resolve(), ignored, there.st_size, there.st_mtime_ns)
    except UserFileError as error:
        raise ReplayError(str(error)) from None


@lru_cache(maxsize=16)
def _read(path: Path, ignored: frozenset[str], size: int, changed_ns: int) -> ReplayTable:
    with separated(path, ReplayError) as (names, delimiter, lines):
        return _Reading(names, delimiter, ignored).table(lines)


class _Reading:
    """A table that is being read."""

    def __init__(self, header: list[str], delimiter: str, ignored: frozenset[str]) -> None:
        self._header, self._delimiter = header, delimiter
        self._columns: dict[str, int] = {}
        self._unit: TimeForm | None = None
        self._unused: list[str] = []
        if {"intended_ns", "publisher", "sequence", "subscriber"} <= set(header):
            self._columns = {OWN[name]: place for place, name in enumerate(header) if name in OWN}
            self._unit = "ns"
        else:
            for place, written in enumerate(header):
                self._column(place, written)
        if "client" in ignored and "sequence" in self._columns:
            raise ReplayError("numbers its messages by client, so that `client` cannot be ignored")
        for column in ignored & self._columns.keys():
            del self._columns[column]
        if "time" not in self._columns:
            raise ReplayError("has no column `time`; known columns: " + ", ".join(NAMES))
        # By topic, the client that alone has it; an empty one where several do.
        self._topics, self._clients = dict[str, str](), dict[str, None]()
        self._sizes = [PAYLOAD_MAX + 1, -1, 0]
        self._unsized, self._qos = 0, -1
        self._seen, self._left_open = set[tuple[str, str]](), set[str]()

    def _column(self, place: int, written: str) -> None:
        name = re.sub(r"[\s_-]+", "_", re.sub(r"[()\[\]]", " ", written.strip().lower()).strip())
        stem, _, unit = name.rpartition("_")
        column = COLUMN.get(name)
        if column is None and unit in UNITS and COLUMN.get(stem) == "time":
            column, self._unit = "time", unit  # type: ignore[assignment]
        if column is None:
            near = closest(name, COLUMN, 0.8)
            if near is not None:
                raise ReplayError(f"line 1: the column {shown(written)} is not known; did you mean `{near}`?")
            self._unused.append(written)
        elif column in self._columns:
            raise ReplayError(f"line 1: the columns {shown(self._header[self._columns[column]])} and {shown(written)} "
                              f"both say the {column}; keep one")
        else:
            self._columns[column] = place

    def table(self, lines: Iterator[list[str]]) -> ReplayTable:
        rows, first, last = 0, None, 0
        for fields in lines:
            if not fields:
                continue
            if self._is_left_out(fields):
                continue
            rows += 1
            if rows > ROWS_MAX:
                raise ReplayError(f"has more than {ROWS_MAX} messages; use several tables, a group each")
            try:
                time = self._row(fields)
            except ValueError as error:
                raise ReplayError(f"line {lines.line_num + 1}: {error}") from None  # type: ignore[attr-defined]
            first, last = (time, time) if first is None else (min(first, time), max(last, time))
        if first is None:
            raise ReplayError("has no message behind its header")
        if last - first > SPAN_NS_MAX:
            raise ReplayError("lasts longer than 366 days")
        return ReplayTable(
            rows=rows, delimiter=self._delimiter, columns=self._columns, unused=tuple(self._unused),
            time=self._unit or "s", span_ns=last - first, topics=tuple(self._topics),
            owned=frozenset(topic for topic, client in self._topics.items() if client), clients=tuple(self._clients),
            sizes=None if self._sizes[1] < 0 else (self._sizes[0], self._sizes[1], self._sizes[2]),
            unsized=self._unsized, qos=None if self._qos < 0 else self._qos, left_open=frozenset(self._left_open))

    def _is_left_out(self, fields: list[str]) -> bool:
        """Of a table that numbers messages, further rows of one message, and those without a client or a time."""
        if "sequence" not in self._columns:
            return False
        message = (self._field(fields, "client"), self._field(fields, "sequence"))
        if not message[0] or not self._field(fields, "time") or message in self._seen:
            return True
        self._seen.add(message)
        return False

    def _row(self, fields: list[str]) -> int:
        """Notes a message, and says when it is, in nanoseconds."""
        self._left_open |= {column for column in ("topic", "qos", "retain") if not self._field(fields, column)}
        topic = self._field(fields, "topic")
        if topic not in self._topics:
            self._said("topic", lambda: published_topic(topic) if topic else topic)
        client = ""
        if "client" in self._columns:
            client = self._field(fields, "client")
            if not client:
                raise ValueError(f"column `{self._name('client')}` is empty, but names the client")
            self._clients[client] = None
        if self._topics.setdefault(topic, client) != client:
            self._topics[topic] = ""
        self._size(fields)
        qos = self._field(fields, "qos")
        if qos and qos not in ("0", "1", "2"):
            raise ValueError(f"column `{self._name('qos')}` is {shown(qos)}, but must be 0, 1 or 2")
        self._qos = max(self._qos, int(qos or -1))
        retain = self._field(fields, "retain")
        if retain and retain.lower() not in TRUTHS:
            raise ValueError(f"column `{self._name('retain')}` is {shown(retain)}, but must be true or false")
        return self._time(self._field(fields, "time"))

    def _size(self, fields: list[str]) -> None:
        place, size = self._columns.get("payload"), self._field(fields, "size")
        payload = fields[place] if place is not None and place < len(fields) else None
        if size and ((said := whole(size)) is None or said > PAYLOAD_MAX):
            raise ValueError(f"column `{self._name('size')}` is {shown(size)}, but must be a whole number of bytes up "
                             f"to {PAYLOAD_MAX}")
        if payload or (payload is not None and not size):
            length = len((payload or "").encode())
        elif size:
            length = int(size)
        else:
            self._unsized += 1
            return
        if length > PAYLOAD_MAX:
            raise ValueError(f"column `{self._name('payload')}` has {length} B, but a payload may have at most "
                             f"{PAYLOAD_MAX} B (10 MB)")
        least, most, total = self._sizes
        self._sizes = [min(least, length), max(most, length), total + length]

    def _time(self, text: str) -> int:
        if self._unit is None:
            self._unit = _unit_of(text)
        time = date_ns(text) if self._unit == "iso" else number_ns(text, UNITS[self._unit])
        if time is None:
            what = ("a date such as 2026-01-01T00:00:00Z" if self._unit == "iso" else
                    f"a number of {'seconds' if self._unit == 's' else self._unit}")
            raise ValueError(f"column `{self._name('time')}` is {shown(text)}, but must be {what}")
        return time

    def _said(self, column: str, check: Callable[[], str]) -> None:
        try:
            check()
        except ValueError as error:
            raise ValueError(f"column `{self._name(column)}` {error}") from None

    def _field(self, fields: list[str], column: str) -> str:
        place = self._columns.get(column)
        return "" if place is None or place >= len(fields) else fields[place].strip()

    def _name(self, column: str) -> str:
        return self._header[self._columns[column]].strip()


def _unit_of(text: str) -> TimeForm:
    """What a time is that says no unit: a date, or seconds. Numbers that would be dates behind the year 5000 are of
    smaller units, since 1970."""
    if date_ns(text) is not None:
        return "iso"
    number = number_ns(text, 1) or 0
    return "s" if number < 10**11 else "ms" if number < 10**14 else "us" if number < 10**17 else "ns"


def number_ns(text: str, unit_ns: int) -> int | None:
    """A number of a unit in nanoseconds; what is below one is left out."""
    found = NUMBER.fullmatch(text)
    if found is None or not (found["whole"] or found["part"]):
        return None
    part = (found["part"] or "")[:18]
    divisor: int = 10**len(part)
    ns = int(found["whole"] or 0) * unit_ns + int(part or 0) * unit_ns // divisor
    return -ns if found["sign"] == "-" else ns


def date_ns(text: str) -> int | None:
    """A date as ISO 8601 writes it, in nanoseconds since 1970; without an offset it is UTC."""
    found = DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute = (int(found[group]) for group in range(1, 6))
    second, fraction = int(found[6] or 0), (found[7] or "")[:9].ljust(9, "0")
    hours, minutes = int(found[9] or 0), int(found[10] or 0)
    try:
        days = (date(year, month, day) - date(1970, 1, 1)).days
    except ValueError:
        return None
    if days < 0 or hour > 23 or minute > 59 or second > 60 or hours > 23 or minutes > 59:
        return None
    offset = (hours * 3600 + minutes * 60) * (-1 if found[8] == "-" else 1)
    return (days * 86_400 + hour * 3600 + minute * 60 + second - offset) * 10**9 + int(fraction)
