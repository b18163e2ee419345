"""Tables for CSV files and workbooks. What others wrote stays text in them, and nothing in it is hidden.

A spreadsheet takes a cell of a CSV file for a formula when it begins with one of a few signs, and a formula can start
programs and send what stands beside it elsewhere. In front of such text an apostrophe is written, which spreadsheets do
not show; numbers stay as they are. Cells of a workbook have kinds, and text in them is written as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import polars as pl

from mqttlab import scratch
from mqttlab.foreign import RANGES, visible

HIDDEN = "[" + "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in RANGES) + "]"
# The wide forms too, which some take for the narrow ones. What a cell begins with, blanks included.
FORMULA = r"^\s*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]"
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
TEXT = (pl.String, pl.Categorical, pl.Enum)
SHEET_NAME_MOST = 31
# Text is text, whatever it looks like, and a link is not one that a click follows.
AS_TEXT = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False,
           "nan_inf_to_errors": True}


def legible(table: pl.DataFrame) -> pl.DataFrame:
    """A table whose words and headings have escapes where control characters were."""
    texts = [name for name, kind in table.schema.items() if isinstance(kind, TEXT)]
    table = table.with_columns(pl.col(name).cast(pl.String) for name in texts)
    found = table.select(pl.col(name).str.contains(HIDDEN).any() for name in texts) if texts and table.height else None
    strange = [] if found is None else [name for name in texts if found[name][0]]
    if strange:
        table = table.with_columns(
            pl.col(name).map_elements(visible, return_dtype=pl.String, skip_nulls=True) for name in strange)
    return table.rename({name: visible(name) for name in table.columns if visible(name) != name})


def write_csv(table: pl.DataFrame, file: Path | IO[bytes], *, heading: bool = True) -> None:
    """Write a table as CSV, its heading too if that is asked for."""
    table = legible(table)
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    table = table.with_columns(
        pl.when(pl.col(name).str.contains(FORMULA) & ~pl.col(name).str.contains(NUMBER))
        .then(pl.lit("'") + pl.col(name)).otherwise(pl.col(name)).alias(name) for name in texts)
    heads = pl.Series(table.columns, dtype=pl.String)
    table.columns = [f"'{name}" if formula else name
                     for name, formula in zip(table.columns, heads.str.contains(FORMULA), strict=True)]
    table.write_csv(file, include_header=heading)


def csv_text(table: pl.DataFrame) -> str:
    """The same as text."""
    file = BytesIO()
    write_csv(table, file)
    return file.getvalue().decode()


@contextmanager
def workbook(path: Path) -> Iterator[Any]:
    """A workbook that gets its name when it is whole.

    Raises:
        OSError: it cannot be written.
    """
    import xlsxwriter

    # A ZIP file that could not be written tries it again when it is collected, and Python prints that it fails. In
    # memory it does not fail, and is little beside the sheets.
    packed = BytesIO()
    # The sheets' parts have files of their own meanwhile.
    with scratch.directory("workbook") as parts, scratch.unfinished(path) as made:
        try:
            with xlsxwriter.Workbook(packed, AS_TEXT | {"tmpdir": str(parts)}) as book:
                yield book
        except xlsxwriter.exceptions.FileCreateError as error:
            # The parts are written when it is closed, and what the system has said then is inside.
            inside = error.args[0] if error.args else None
            raise (inside if isinstance(inside, OSError) else OSError(str(error))) from error
        made.write_bytes(packed.getbuffer())


def write_sheet(book: Any, table: pl.DataFrame, name: str) -> None:
    """Write a table as a worksheet."""
    legible(table).write_excel(book, worksheet=sheet_name(name), autofit=True, freeze_panes=(1, 0))


def sheet_name(name: str) -> str:
    """A name that a worksheet can have: without what ECMA-376 keeps for references, and not too long."""
    return visible(name).translate(dict.fromkeys(map(ord, "[]:*?/\\'"), "_"))[:SHEET_NAME_MOST] or "_"
