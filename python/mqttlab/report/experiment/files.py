"""An analysis as CSV or Parquet files, and as a workbook."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from mqttlab import scratch, sheets
from mqttlab.analysis import Analysis, methods
from mqttlab.foreign import file_name, laid_out
from mqttlab.report.experiment.frames import frames


def write_csv(analysis: Analysis, table: pl.DataFrame, out: Path) -> Path:
    """Write one CSV file per table into the directory ``out``, and the methods paragraph as ``methods.txt``."""
    out.mkdir(parents=True, exist_ok=True)
    for name, frame in frames(analysis, table).items():
        with scratch.unfinished(out / f"{file_name(name)}.csv") as made:
            sheets.write_csv(frame, made)
    with scratch.unfinished(out / "methods.txt") as made:
        made.write_text(laid_out(methods(analysis)) + "\n", encoding="utf-8")
    return out


def write_parquet(analysis: Analysis, table: pl.DataFrame, out: Path) -> Path:
    """Write one Parquet file per table into the directory ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    for name, frame in frames(analysis, table).items():
        with scratch.unfinished(out / f"{file_name(name)}.parquet") as made:
            frame.write_parquet(made)
    return out


def write_xlsx(analysis: Analysis, table: pl.DataFrame, out: Path) -> Path:
    """Write one workbook, a sheet per table, and one for the methods."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with sheets.workbook(out) as book:
        for name, frame in frames(analysis, table).items():
            sheets.write_sheet(book, frame, file_name(name))
        book.add_worksheet("methods").write_string(0, 0, laid_out(methods(analysis)))
    return out
