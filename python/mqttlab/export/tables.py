"""A run's tables for spreadsheets and for other programs.

The Parquet files in the recording are readable by polars, pandas, DuckDB, R and Spark as they are; CSV and XLSX are for
everything else, and Parquet again for the report's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl

from mqttlab import metrics, scratch
from mqttlab.errors import MqttlabError
from mqttlab.metrics import sums
from mqttlab.recording import SUM_TABLES, TABLES, Recording
from mqttlab.sheets import workbook, write_csv, write_sheet

# Rows that are written together. CSV: of the widest tables some 20 MB, which are held. Parquet: polars reads each part
# in smaller ones, and holds for each what the file says at its end.
PART_ROWS = {"csv": 50_000, "parquet": 500_000}
# A worksheet has 1 048 576 rows (ECMA-376); one is the heading.
XLSX_ROWS_MAX = 1_048_575


Observe = Callable[[str, int, int], None]
"""Told what is being written, how many parts are done, and how many there are."""


class ExportError(MqttlabError):
    """A run cannot be exported in the form asked for; the message says what to do instead."""


def summary_tables(recording: Recording) -> dict[str, pl.DataFrame]:
    """The long form of all metrics and the tables of the report by name, empty ones left out."""
    tables = {
        "summary": metrics.summary(recording),
        "by_qos": metrics.application(recording),
        "by_group": metrics.application(recording, metrics.FLOW),
        **_attribution(recording),
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
        "changes": metrics.changes(recording),
        "energy": metrics.energy(recording),
        "processor": metrics.processor(recording),
    }
    return {name: table for name, table in tables.items() if not table.is_empty()}


def _attribution(recording: Recording) -> dict[str, pl.DataFrame]:
    """Where the time went, in the mean, and of how many messages that is known."""
    if not metrics.has_deliveries(recording):
        return {}
    return {"attribution_coverage": metrics.attribution_coverage(recording).table(),
            "attribution_by_qos": metrics.attribution_by_qos(recording),
            "attribution_by_band": metrics.attribution_by_band(recording)}


def csv(run_dir: Path, out: Path, observe: Observe = lambda name, done, total: None) -> Path:
    """Write one CSV file per table into the directory ``out``: the report's tables and the recording's."""
    return _each(run_dir, out, observe, "csv")


def parquet(run_dir: Path, out: Path, observe: Observe = lambda name, done, total: None) -> Path:
    """Write one Parquet file per table into the directory ``out``: the report's tables, and the recording's with the
    columns of the latest schema."""
    return _each(run_dir, out, observe, "parquet")


def _each(run_dir: Path, out: Path, observe: Observe, ending: str) -> Path:
    recording = Recording.open(run_dir)
    out.mkdir(parents=True, exist_ok=True)
    # Empty ones that came with later schemas, too.
    tables = {name: table for name in (*TABLES, *SUM_TABLES) if (table := recording.scan(name)).collect_schema()}
    # The recording's own tables first: they are written while they are read, whatever their length.
    for done, (name, table) in enumerate(tables.items()):
        observe(name, done, len(tables) + 1)
        parts = (table.slice(*rows) for rows in recording.ranges(table, PART_ROWS[ending]))
        if name == "clients":
            parts = (_with_latencies(recording, part) for part in parts)
        _write(recording, parts, out / f"{_called(recording, name)}.{ending}")
    observe("metrics", len(tables), len(tables) + 1)
    if metrics.attribution_gap(recording) is None:
        _write(recording, metrics.attribution_parts(recording, PART_ROWS[ending]), out / f"attribution.{ending}")
    for name, computed in summary_tables(recording).items():
        _write(recording, [computed.lazy()], out / f"{name}.{ending}")
    return out


def _with_latencies(recording: Recording, clients: pl.LazyFrame) -> pl.LazyFrame:
    """The table of clients, with what became of the messages of each."""
    each = metrics.messages_by_device(recording)
    if each.is_empty():
        return clients
    more = each.lazy().select(pl.col("number").cast(pl.UInt32).alias("client"), *metrics.COLUMNS_OF_CLIENTS)
    return clients.with_columns(pl.col("client").cast(pl.UInt32)).join(
        more, on="client", how="left", maintain_order="left")


def _called(recording: Recording, name: str) -> str:
    """A sample of the messages is not called as all of them are."""
    return "messages_sample" if name == "messages" and sums.is_summed(recording) else name


def _write(recording: Recording, parts: Iterable[pl.LazyFrame], out: Path) -> None:
    """Write a table's parts under its name when it is whole: what is interrupted leaves no half of one."""
    try:
        with scratch.unfinished(out) as made:
            if out.suffix == ".csv":
                with made.open("wb") as file:
                    # One after another: writing while it reads, polars holds parts of both.
                    for number, part in enumerate(parts):
                        write_csv(recording.collect(_flat(part)), file, heading=number == 0)
            else:
                pl.concat(parts).sink_parquet(made)
    except pl.exceptions.PolarsError as error:
        raise ExportError(f"{out} cannot be written: {error}") from error


def xlsx(run_dir: Path, out: Path, observe: Observe = lambda name, done, total: None) -> Path:
    """Write one workbook: a sheet for each of the report's tables, then messages, events and clients.

    Raises:
        ExportError: a table has more rows than a worksheet.
    """
    recording = Recording.open(run_dir)
    scanned = {name: table for name in ("messages", "events", "clients")
               if (table := recording.scan(name)).collect_schema()}
    # Before anything is computed.
    for name, table in scanned.items():
        _fits(name, recording.collect(table.select(pl.len())).item())
    observe("metrics", 0, 2)
    sheets = summary_tables(recording)
    for name, sheet in sheets.items():
        _fits(name, sheet.height)
    if "clients" in scanned:
        scanned["clients"] = _with_latencies(recording, scanned["clients"])
    sheets |= {_called(recording, name): recording.collect(_flat(table)) for name, table in scanned.items()}
    observe("workbook", 1, 2)
    out.parent.mkdir(parents=True, exist_ok=True)
    with workbook(out) as book:
        for name, sheet in sheets.items():
            write_sheet(book, sheet, name)
    return out


def _fits(name: str, rows: int) -> None:
    if rows > XLSX_ROWS_MAX:
        raise ExportError(
            f"{name} has {rows} rows, but a worksheet holds {XLSX_ROWS_MAX}; export with --csv or --parquet")


def _flat(table: pl.LazyFrame) -> pl.LazyFrame:
    """Lists become text: neither CSV nor a worksheet has them."""
    lists = [name for name, kind in table.collect_schema().items() if isinstance(kind, pl.List)]
    return table.with_columns(
        pl.col(name).list.eval(pl.element().cast(pl.String)).list.join(" ") for name in lists
    ) if lists else table
