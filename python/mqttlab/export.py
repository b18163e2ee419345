"""Exports: a run's tables for spreadsheets and for other programs.

The Parquet files in the recording are already readable by polars, pandas, DuckDB, R and Spark; CSV and XLSX are for
everything else.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import xlsxwriter

from mqttlab import metrics
from mqttlab.errors import MqttlabError
from mqttlab.recording import TABLES, Recording

# A worksheet has 1 048 576 rows (ECMA-376); one is the heading.
XLSX_ROWS_MAX = 1_048_575


class ExportError(MqttlabError):
    """A run cannot be exported in the form asked for; the message says what to do instead."""


def summary_tables(recording: Recording, attributed: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The long form of all metrics and the tables of the report by name, empty ones left out.

    Args:
        recording: the recording.
        attributed: :func:`metrics.attribution`'s.
    """
    tables = {
        "summary": metrics.summary(recording),
        "by_qos": metrics.application(recording),
        "by_group": metrics.application(recording, ("publisher_group", "subscriber_group", "qos")),
        **_attribution(recording, attributed),
        "links": metrics.links(recording),
        "setup": metrics.setup(recording),
        "network": metrics.network(recording),
        "connections": metrics.connections(recording),
        "throughput": metrics.throughput(recording),
        "publish_per_segment": metrics.publish_per_segment(recording),
        "segments_per_publish": metrics.segments_per_publish(recording),
        "overhead": metrics.overhead(recording),
        "efficiency": metrics.efficiency(recording),
        "bursts": metrics.bursts(recording),
        "energy": metrics.energy(recording),
    }
    return {name: table for name, table in tables.items() if not table.is_empty()}


def _attribution(recording: Recording, table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Where the time went, in the mean, and of how many messages that is known."""
    if table.is_empty():
        return {}
    return {"attribution_coverage": metrics.attribution_coverage(recording).table(),
            "attribution_by_qos": metrics.attribution_by_qos(table),
            "attribution_by_band": metrics.attribution_by_band(table)}


def csv(run_dir: Path, out: Path) -> Path:
    """Write one CSV file per table into the directory ``out``: the report's tables and the recording's."""
    recording = Recording.open(run_dir)
    out.mkdir(parents=True, exist_ok=True)
    attributed = metrics.attribution(recording)
    for name, table in summary_tables(recording, attributed).items():
        table.write_csv(out / f"{name}.csv")
    if metrics.attribution_gap(recording) is None:
        attributed.write_csv(out / "attribution.csv")
    for name in TABLES:
        table = recording.table(name)
        if table.columns:
            _flat(table).write_csv(out / f"{name}.csv")
    return out


def xlsx(run_dir: Path, out: Path) -> Path:
    """Write one workbook: a sheet for each of the report's tables, then messages, events and clients.

    Raises:
        ExportError: a table has more rows than a worksheet.
    """
    recording = Recording.open(run_dir)
    sheets = summary_tables(recording, metrics.attribution(recording))
    for name in ("messages", "events", "clients"):
        table = recording.table(name)
        if table.height > XLSX_ROWS_MAX:
            raise ExportError(
                f"{name} has {table.height} rows, but a worksheet holds {XLSX_ROWS_MAX}; export with --csv"
            )
        if table.columns:
            sheets[name] = _flat(table)
    out.parent.mkdir(parents=True, exist_ok=True)
    with xlsxwriter.Workbook(str(out)) as book:
        for name, table in sheets.items():
            table.write_excel(book, worksheet=name, autofit=True, freeze_panes=(1, 0))
    return out


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Lists become text: neither CSV nor a worksheet has them."""
    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    return table.with_columns(
        pl.col(name).list.eval(pl.element().cast(pl.String)).list.join(" ") for name in lists
    )
