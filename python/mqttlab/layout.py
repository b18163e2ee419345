"""``layout.json``, read: the names behind the indices, and the clients as columns.

Of a million clients an object each is 600 MB, and each question about them a walk through it. The engine writes the
clients without blanks between them; such a list is read as a table. Any other is read entry by entry, which also says
what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import polars as pl

from mqttlab.digits import whole
from mqttlab.recorded import LAYOUT, unlike

COLUMNS = {"name": pl.String, "group": pl.String, "host": pl.Int64}
BEGIN, NEXT, END = b'"clients":[{"name":"', b'},{"name":"', b"}]"
# Half of a character, which JSON in Python keeps and a table cannot hold.
SURROGATE = b"\\ud"
ELSEWHERE = "a client is on a host that is not there"


class Clients(Sequence[dict[str, Any]]):
    """The clients by number: in columns, and one as the file has it, without its session."""

    def __init__(self, table: pl.DataFrame) -> None:
        self.names: pl.Series = table["name"]
        self.groups: pl.Series = table["group"]
        self.hosts: pl.Series = table["host"]
        self._table = table

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            return self._table[place].to_dicts()
        if place >= len(self):
            # Where an iteration ends.
            raise IndexError(f"there is no client {place}")
        return self._table.row(place, named=True)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._table.iter_rows(named=True)

    def __len__(self) -> int:
        return self._table.height

    @cached_property
    def group_names(self) -> list[str]:
        """The names of the groups, in the order of the scenario."""
        return list(self.groups.unique(maintain_order=True))

    @cached_property
    def group_numbers(self) -> pl.Series:
        """Of each client the place of its group among them."""
        return self.groups.cast(pl.Enum(self.group_names)).to_physical().cast(pl.UInt32)

    @cached_property
    def table(self) -> pl.DataFrame:
        """``client`` (its number), ``name``, ``group`` and ``host``."""
        return self._table.with_row_index("client").with_columns(pl.col("client").cast(pl.Int64))

    def of_groups(self, groups: Collection[str]) -> list[int]:
        """The numbers of the clients of these groups."""
        return self.groups.is_in(list(groups)).arg_true().to_list()

    def number(self, word: str) -> int | None:
        """Which client a word means, its name or its number; ``None`` where there is none."""
        if (place := self.names.index_of(word)) is not None:
            return place
        number = whole(word)
        return number if number is not None and number < len(self) else None


def read(content: bytes) -> tuple[dict[str, Any], str | None]:
    """A layout, whose ``clients`` are :class:`Clients`, and what is wrong with it.

    Raises:
        ValueError: it is not JSON.
        RecursionError: neither.
    """
    layout: Any = None
    if (parted := _parted(content)) is not None:
        rest, clients = parted
        layout = json.loads(rest)
    else:
        layout = json.loads(content.decode("utf-8"))
        clients = None
    if problem := unlike(layout, LAYOUT):
        return layout, problem
    if clients is None:
        if any(client["host"] >= len(layout["hosts"]) for client in layout["clients"]):
            return layout, ELSEWHERE
        clients = pl.DataFrame([[client[name] for client in layout["clients"]] for name in COLUMNS], schema=COLUMNS)
    elif (clients["host"] >= len(layout["hosts"])).any():
        return layout, ELSEWHERE
    return layout | {"clients": Clients(clients)}, None


def _parted(content: bytes) -> tuple[bytes, pl.DataFrame] | None:
    """The layout with an empty list of clients, and these as a table; ``None`` where they are not as the engine
    writes them.

    No text of JSON has a quote without a backslash before it, so that what is looked for is not within a name.
    """
    begin = content.find(BEGIN)
    end = content.find(END + b',"', begin)
    if begin < 0 or end < 0 or content.count(BEGIN) > 1 or SURROGATE in content:
        return None
    first = begin + len(BEGIN) - len(b'{"name":"')
    rows = content[first:end + 1]
    count = rows.count(NEXT) + 1
    # A number in the place of a name would be read as its digits.
    if not count == rows.count(b'"name":"') == rows.count(b'"group":"') == rows.count(b'"host":'):
        return None
    try:
        table = pl.read_ndjson(rows.replace(NEXT, b'}\n{"name":"'), schema=COLUMNS)
    except pl.exceptions.PolarsError:
        return None
    whole = table.height == count and not any(table.null_count().row(0)) and (table["host"] >= 0).all()
    return (content[:first] + content[end + 1:], table) if whole else None
