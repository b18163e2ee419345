"""An analysis as CSV or Parquet files, and as a workbook."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import xlsxwriter

from mqttlab import scratch
from mqttlab.analysis import Analysis, methods
from mqttlab.report.experiment.frames import frames

SHEET_NAME_MOST = 31


def write_csv(analysis: Analysis, table: pl.DataFrame, out: Path) -> Path:
    """Write one CSV file per table into the directory ``out``, and the methods paragraph as ``methods.txt``."""
    out.mkdir(parents=True, exist_ok=True)
    for name, frame in frames(analysis, table).items():
        with scratch.unfinished(out / f"{_file(name)}.csv") as made:
            frame.write_csv(made)
    with scratch.unfinished(out / "methods.txt") as made:
        made.write_text(methods(analysis) + "\n", encoding="utf-8")
    return out


def write_parquet(analysis: Analysis, table: pl.DataFrame, out: Path) -> Path:
    """Write one Parquet file per table into the directory ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    for name, frame in frames(analysis, table).items():
        with scratch.unfinished(out / f"{_file(name)}.parquet") as made:
            frame.write_parquet(made)
    return out


def write_xlsx(analysis: Analysis, table: pl.DataFrame, out: Path) -> Path:
    """Write one workbook, a sheet per table, and one for the methods."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with (scratch.directory("workbook") as parts, scratch.unfinished(out) as made,
          xlsxwriter.Workbook(str(made), {"tmpdir": str(parts)}) as book):
        for name, frame in frames(analysis, table).items():
            frame.write_excel(book, worksheet=_file(name)[:SHEET_NAME_MOST], autofit=True, freeze_panes=(1, 0))
        book.add_worksheet("methods").write(0, 0, methods(analysis))
    return out


def _file(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
