"""What is read of a recording, counted: columns and rows, not seconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from mqttlab import export, metrics
from mqttlab.recording import Recording

RUN = Path(__file__).resolve().parents[1] / "schemas" / "3" / "simulated"
Reads = list[tuple[str, int]]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Every reading of a table since: its name, and how many columns were taken from the file."""
    found: Reads = []
    collect: Callable[[Recording, pl.LazyFrame], pl.DataFrame] = Recording.collect

    def counted(recording: Recording, scanned: pl.LazyFrame) -> pl.DataFrame:
        plan = scanned.explain()
        for name, taken, of in re.findall(r"SCAN \[[^\]]*/(\w+)\.parquet\]\s*PROJECT (\*|\d+)/(\d+) COLUMNS", plan):
            found.append((name, int(of if taken == "*" else taken)))
        return collect(recording, scanned)

    monkeypatch.setattr(Recording, "collect", counted)
    return found


def of(reads: Reads, table: str) -> list[int]:
    return [columns for name, columns in reads if name == table]


def test_readings_are_counted(reads: Reads) -> None:
    recording = Recording.open(RUN)
    whole = recording.table("messages")
    recording.collect(recording.scan("messages").select("publisher"))
    assert of(reads, "messages") == [len(pl.read_parquet_schema(RUN / "messages.parquet")), 1]
    assert whole.width >= 20


@pytest.mark.parametrize(("metric", "readings", "columns"), [
    # The deliveries once, however many tables are made of them; counts and what was written for each of these.
    (lambda recording: (metrics.application(recording), metrics.application(recording, ())), 7, 9),
    (metrics.setup, 3, 4),
    (lambda recording: metrics.summary(recording, tables=["application"], scopes=["groups"]), 5, 9),
])
def test_metrics_of_messages_read_the_columns_that_they_need(
    reads: Reads, metric: Callable[[Recording], object], readings: int, columns: int,
) -> None:
    metric(Recording.open(RUN))
    taken = of(reads, "messages")
    assert taken
    assert len(taken) <= readings
    assert max(taken) <= columns
    assert of(reads, "packets") == []


def test_a_capture_of_a_message_reads_no_whole_table(reads: Reads, tmp_path: Path) -> None:
    recording = Recording.open(RUN)
    export.pcapng(recording, tmp_path / "cut.pcapng", export.cut_of_message(recording, 0, 0))
    assert max(of(reads, "control_packets")) < len(pl.read_parquet_schema(RUN / "control_packets.parquet"))
    assert max(of(reads, "packets")) < len(pl.read_parquet_schema(RUN / "packets.parquet"))
