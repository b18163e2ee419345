"""Tables of a user's with a header, whose fields are separated by commas, semicolons, tabs or vertical bars."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _csv import Reader

DELIMITERS = (",", ";", "\t", "|")
# The module's own limit of 131,072 letters is less than a payload may have (10 MB). It is one for the whole process.
csv.field_size_limit(10_000_000)


@contextlib.contextmanager
def separated(path: Path, wrong: Callable[[str], ValueError]) -> Iterator[tuple[list[str], str, Reader]]:
    """The names in the header, what separates fields, and the lines below, as far as they are read.

    Raises:
        ValueError: made by ``wrong``: a line that is no line of a table, with its number.
    """
    with path.open(encoding="utf-8-sig", newline="") as text:
        header = text.readline()
        delimiter = max(DELIMITERS, key=header.count)
        lines = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            yield next(csv.reader([header], delimiter=delimiter), []), delimiter, lines
        except csv.Error as error:
            raise wrong(f"line {lines.line_num + 1}: {error}") from None
