"""What is read of a recording, and what of it is held, counted: columns, rows and bytes, not seconds."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from mqttlab import export, metrics
from mqttlab.cli.explain import show_explanation
from mqttlab.recording import Recording
from mqttlab.report import terminal, write_html
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse

GROUPS = ("publisher_group", "subscriber_group", "qos")
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
    # One table where its rows are one another's: of one group at one QoS level.
    (lambda recording: [metrics.application(recording, by) for by in (GROUPS, ("qos",), ())], 8, 10),
    (lambda recording: (metrics.attribution_by_qos(recording), metrics.attribution_by_band(recording)), 2, 6),
    (metrics.setup, 6, 4),
    (lambda recording: metrics.summary(recording, tables=["application"], scopes=["groups"]), 8, 10),
])
def test_metrics_of_messages_read_the_columns_that_they_need(
    reads: Reads, metric: Callable[[Recording], object], readings: int, columns: int,
) -> None:
    metric(Recording.open(RUN))
    # How many rows there are needs no column.
    taken = [columns for columns in of(reads, "messages") if columns]
    assert taken
    assert len(taken) <= readings
    assert max(taken) <= columns
    assert max(of(reads, "packets"), default=0) == 0


def test_a_capture_of_a_message_reads_no_whole_table(reads: Reads, tmp_path: Path) -> None:
    recording = Recording.open(RUN)
    export.pcapng(recording, tmp_path / "cut.pcapng", export.cut_of_message(recording, 0, 0))
    assert max(of(reads, "control_packets")) < len(pl.read_parquet_schema(RUN / "control_packets.parquet"))
    assert max(of(reads, "packets")) < len(pl.read_parquet_schema(RUN / "packets.parquet"))


MANY = """
name = "many"
backend = "sim"
phases = { duration = "5 s", cool_down = "1 s" }
hosts.clients = { count = 20 }
[[networks]]
between = ["clients", "broker"]
link = "each"
up = { rate = "10 Mbit/s", delay = "5 ms" }
down = { rate = "10 Mbit/s", delay = "5 ms", loss = "0.1 %" }
[[groups]]
name = "both"
host = "clients"
count = 20
connect_over = "0 s"
publish = { topic = "t/{client}", payload = "64 B", rate = "50 /s", qos = 1 }
subscribe = ["t/{client}"]
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of so many messages that what grows with them is more than all the rest."""
    directory = tmp_path_factory.mktemp("many") / "run"
    outcome = perform(Job(compile_plan(parse(MANY)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome
    return directory


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and bytes of every table that was read into memory since."""
    sizes: list[tuple[int, int]] = []
    collect: Callable[[Recording, pl.LazyFrame], pl.DataFrame] = Recording.collect

    def weighed(recording: Recording, scanned: pl.LazyFrame) -> pl.DataFrame:
        table = collect(recording, scanned)
        sizes.append((table.height, table.estimated_size()))
        return table

    monkeypatch.setattr(Recording, "collect", weighed)
    return sizes


def ladder_of(run: Path, out: Path) -> None:
    """The dashboard's page of one message."""
    message = pytest.importorskip("mqttlab.dashboard.pages.message", reason="`make setup-dashboard` installs Dash")
    page = message.part(Recording.open(run), "run", {"message": "7:100@7"})
    assert "Ladder" in str(page)


def messages_of(run: Path, out: Path) -> None:
    """The dashboard's page of messages, and of those of a client."""
    messages = pytest.importorskip("mqttlab.dashboard.pages.messages", reason="`make setup-dashboard` installs Dash")
    recording = Recording.open(run)
    for query in ({}, {"client": "both-7"}):
        assert "The latest messages" in str(messages.part(recording, "run", query))


def test_a_few_rows_of_many_are_read_without_the_others(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[str] = []
    collect: Callable[[Recording, pl.LazyFrame], pl.DataFrame] = Recording.collect

    def told(recording: Recording, scanned: pl.LazyFrame) -> pl.DataFrame:
        plans.append(scanned.explain())
        return collect(recording, scanned)

    monkeypatch.setattr(Recording, "collect", told)
    show_explanation(many, None, 3, Console(file=io.StringIO()))
    ladder_of(many, many)
    of_a_slice = [step for plan in plans for step in re.findall(r"SLICE\[.*\n(?:\s*CACHE.*\n)?\s*(\w+)", plan)]
    # A step between a file and the rows that are wanted of it, such as their numbers, makes polars read the file whole.
    assert "ROW" not in of_a_slice, of_a_slice
    in_files = sum(len(re.findall(r"Parquet SCAN.*\n.*PROJECT.*\n\s*SLICE: Positive { offset: \d+, len: 1 }", plan))
                   for plan in plans)
    assert in_files + of_a_slice.count("Parquet") >= 16


def report_of(run: Path, out: Path) -> None:
    recording = Recording.open(run)
    terminal(recording, Console(file=io.StringIO(), width=200))
    write_html(recording, out / "page.html")


@pytest.mark.parametrize(("command", "largest", "all_of_it"), [
    # A whole row of attribution is some 400 bytes, one of messages 200, and there are two round trips of 17.
    (report_of, 40, 110),
    # Three of them are told of, and no column of the others is held.
    (lambda run, out: show_explanation(run, None, 3, Console(file=io.StringIO())), 0, 0),
    (ladder_of, 0, 0),
    (messages_of, 0, 0),
    (lambda run, out: export.parquet(run, out / "parquet"), 40, 120),
])
def test_what_a_command_holds_of_each_delivery_is_a_few_numbers(
    many: Path, held: list[tuple[int, int]], tmp_path: Path, command: Callable[[Path, Path], None], largest: int,
    all_of_it: int,
) -> None:
    deliveries = int(pl.scan_parquet(many / "messages.parquet").select(pl.len()).collect().item())
    assert deliveries >= 5000
    command(many, tmp_path)
    tall = [size / deliveries for rows, size in held if rows >= 0.9 * deliveries]
    assert max(tall, default=0) <= largest
    assert sum(tall) <= all_of_it
