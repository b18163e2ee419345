"""What the reports show of where the time went: messages covered, no rows of zeros, times as people say them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import polars as pl
from rich.console import Console

from mqttlab import export, metrics
from mqttlab.cli.explain import show_explanation
from mqttlab.recording import Recording
from mqttlab.report import attribution, terminal, write_html
from mqttlab.report.text import duration, moment
from mqttlab.runs import perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from recordings import Message, write
from short_scenarios import scenario

WHY = "of 2 their PUBLISH to the subscriber was not recorded"


def two_missing(directory: Path) -> Recording:
    """A run in which of two messages the packets to the subscriber are not recorded."""
    outcome = perform(compile_plan(parse_values(scenario(1)), directory), lambda event: None)
    assert outcome.verdict == "complete"
    path = directory / "control_packets.parquet"
    missing = (pl.col("direction") == "to_client") & pl.col("sequence").is_in([20, 30])
    pl.read_parquet(path).filter(~missing.fill_null(False)).write_parquet(path)
    return Recording.open(directory)


def printed(recording: Recording) -> str:
    text = io.StringIO()
    terminal(recording, Console(file=text, width=200))
    return text.getvalue()


def test_every_table_says_how_many_messages_it_covers(tmp_path: Path) -> None:
    recording = two_missing(tmp_path / "run")
    covered = metrics.attribution_coverage(recording)
    assert (covered.delivered, covered.attributed, sum(covered.reasons.values())) == (44, 42, 2)
    assert WHY in attribution.coverage(recording)
    words = f"Covers 42 of 44 deliveries of the run: {WHY}."
    assert words in printed(recording)
    assert words in write_html(recording, tmp_path / "report.html").read_text(encoding="utf-8")
    text = io.StringIO()
    show_explanation(recording.directory, None, 1, Console(file=text, width=200))
    assert words in text.getvalue()
    out = export.csv(recording.directory, tmp_path / "csv")
    by_qos = pl.read_csv(out / "attribution_by_qos.csv")
    assert by_qos.select("messages", "delivered").unique().rows() == [(38, 40)]
    shown = dict(pl.read_csv(out / "attribution_coverage.csv").rows())
    assert (shown["delivered"], shown["attributed"]) == (44, 42)
    assert pl.read_csv(out / "attribution.csv")["unattributed"].null_count() == 42


def test_without_packets_all_are_uncovered_for_one_reason(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path, [Message(sequence=n) for n in range(3)]))
    covered = metrics.attribution_coverage(recording)
    assert (covered.delivered, covered.attributed, list(covered.reasons.values())) == (3, 0, [3])
    assert "packets were not recorded" in printed(recording)


def test_parts_without_any_time_have_no_row_and_are_named_in_a_line(tmp_path: Path) -> None:
    recording = two_missing(tmp_path / "run")
    parts = attribution.by_qos(metrics.attribution(recording))
    means = parts.select(pl.selectors.ends_with("(ms)")).max_horizontal()
    assert means.min() > 0  # type: ignore[operator]
    missing = attribution.left_out(parts)
    assert missing.startswith("No time went to: ")
    page = write_html(recording, tmp_path / "report.html").read_text(encoding="utf-8")
    assert missing in page
    for title in attribution.TITLES.values():
        named = title in missing.removeprefix("No time went to: ").removesuffix(".").split(", ")
        assert named != bool(re.search(f'<td class="text"[^>]*>{title}</td>', page))


def test_lengths_of_time_are_in_the_unit_in_which_one_says_them() -> None:
    said = [duration(ns) for ns in (0, 7, 60_000, 25_003_000, 1_500_000_000)]
    assert said == ["0 s", "7 ns", "60 µs", "25 ms", "1.5 s"]
    assert moment("2026-11-21T22:02:50.064201Z") == "2026-11-21 22:02:50 UTC"
    assert moment("–") == "–"
