"""Exports are whole or not there, and are refused before anything is computed."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

import mqttlab.metrics
from mqttlab import export
from mqttlab.export import tables
from mqttlab.recording import TABLES, Recording
from mqttlab.sheets import workbook

RUN = Path(__file__).resolve().parents[1] / "schemas" / "2" / "simulated"


def test_csv_and_parquet_hold_the_recordings_tables_and_the_reports(tmp_path: Path) -> None:
    seen: list[str] = []
    parquet = export.parquet(RUN, tmp_path / "parquet", lambda *at: seen.append(at[0]))
    for out in (export.csv(RUN, tmp_path / "csv"), parquet):
        names = {path.stem for path in out.iterdir()}
        assert {"messages", "packets", "summary", "attribution", "by_qos"} <= names
        assert {path.suffix for path in out.iterdir()} == {f".{out.name}"}
    recording = Recording.open(RUN)
    for name in TABLES:
        if (RUN / f"{name}.parquet").is_file():
            # What became of each client's messages stands behind its own columns.
            written = pl.read_parquet(tmp_path / "parquet" / f"{name}.parquet")
            assert written.select(recording.table(name).columns).equals(recording.table(name))
            assert written.width == recording.table(name).width or name == "clients"
            assert seen.count(name) == 1
    assert pl.read_csv(tmp_path / "csv" / "packets.csv").height == recording.table("packets").height


def test_a_table_too_high_for_a_sheet_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def computed(*_: object) -> None:
        raise AssertionError("metrics were computed")

    monkeypatch.setattr(mqttlab.metrics, "summary", computed)
    monkeypatch.setattr(mqttlab.metrics, "attribution", computed)
    monkeypatch.setattr(tables, "XLSX_ROWS_MAX", 5)
    with pytest.raises(export.ExportError, match="messages has .* rows, but a worksheet holds 5; export with --csv"):
        export.xlsx(RUN, tmp_path / "run.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_leaves_no_half_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> pl.LazyFrame:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "_flat", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export.csv(RUN, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_workbook_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    with pytest.raises(OSError, match="No such file"), workbook(there / "run.xlsx") as book:
        book.add_worksheet()
        shutil.rmtree(there)
