"""What the reports show of where the time went: messages covered, no rows of zeros, times as people say them."""

from __future__ import annotations

import io
import re
from pathlib import Path

import polars as pl
from rich.console import Console

from mqttlab import export, figures, metrics
from mqttlab.cli.explain import show_explanation
from mqttlab.digits import duration
from mqttlab.recording import Recording
from mqttlab.report import attribution, terminal, write_html
from mqttlab.report.text import moment, unit
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from recordings import Message, write
from short_scenarios import scenario
from unchecked import without_checks

WHY = "their PUBLISH to the subscriber was not recorded (2)"


def two_missing(directory: Path) -> Recording:
    """A run in which of two messages the packets to the subscriber are not recorded."""
    outcome = perform(Job(compile_plan(parse_values(scenario(1))), directory), lambda event: None)
    assert outcome.verdict == "complete"
    path = directory / "control_packets.parquet"
    missing = (pl.col("direction") == "to_client") & pl.col("sequence").is_in([20, 30])
    pl.read_parquet(path).filter(~missing.fill_null(False)).write_parquet(path)
    without_checks(directory)
    (directory / "summary.json").unlink()
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
    words = f"Covers 42 of 44 deliveries of the run. Of the others {WHY}."
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
    assert "Covers 0 of 3 deliveries of the run. Of the others packets were not recorded" in printed(recording)


def test_parts_without_any_time_have_no_row_and_are_named_in_a_line(tmp_path: Path) -> None:
    recording = two_missing(tmp_path / "run")
    parts = attribution.by_qos(metrics.attribution(recording))
    means = parts.select(pl.selectors.ends_with("(ms)")).max_horizontal()
    assert means.min() > 0  # type: ignore[operator]
    missing = attribution.left_out(recording, parts)
    assert missing.startswith("No time went to: ")
    page = write_html(recording, tmp_path / "report.html").read_text(encoding="utf-8")
    assert missing in page
    for title in metrics.part_titles().values():
        named = title in missing.removeprefix("No time went to: ").removesuffix(".").split(", ")
        assert named != bool(re.search(f'<td class="text"[^>]*>{title}</td>', page))


def test_lengths_of_time_are_in_the_unit_in_which_one_says_them() -> None:
    said = [duration(ns) for ns in (0, 7, 60_000, 25_003_000, 1_500_000_000)]
    assert said == ["0 s", "7 ns", "60 µs", "25 ms", "1.5 s"]
    assert moment("2026-11-21T22:02:50.064201Z") == "2026-11-21 22:02:50 UTC"
    assert moment("–") == "–"


def test_heads_have_units_where_their_titles_do_not_tell(tmp_path: Path) -> None:
    page = write_html(two_missing(tmp_path / "run"), tmp_path / "report.html").read_text(encoding="utf-8")
    for head in ("p95<small>ms</small>", "wait<small>ms</small>", "RTT mean<small>ms</small>", "bytes<small>B</small>",
                 "PUBLISH min<small>B</small>", "kbit/s<small></small>", "lost %<small></small>"):
        assert f">{head}</th>" in page
    assert "S, messages" in page
    assert "as Perez 2005 defines it" in page
    assert [unit(column) for column in ("latency_ms_mean", "messages_sent", "no_such_column")] == ["ms", "", ""]


def test_bands_of_the_latency_are_named_apart(tmp_path: Path) -> None:
    table = metrics.attribution(two_missing(tmp_path / "run"))
    figure = figures.attribution_stack(metrics.attribution_by_band(table), metrics.part_titles())
    # One line for each beside lying bars, which cannot overlap.
    assert all(trace.orientation == "h" for trace in figure.data)
    assert list(figure.data[0].y) == ["QoS 1 p0–50", "QoS 1 p50–90", "QoS 1 p90–99"]


def test_a_cumulative_figure_of_two_narrow_bands_is_cut_between_them() -> None:
    near, far = [600 + n / 100 for n in range(100)], [1700 + n / 100 for n in range(100)]
    samples = pl.DataFrame({"qos": [0] * 100 + [2] * 100, "latency_ms": [*near, *far]})
    figure = figures.latency_cdf(samples)
    ranges = [figure.layout.xaxis.range, figure.layout.xaxis2.range]
    assert ranges[0][1] < 610 < 1690 < ranges[1][0]
    # Every curve goes from 0 to 1 over both parts of the axis, and is named once.
    for name in ("QoS 0", "QoS 2"):
        parts = [trace for trace in figure.data if trace.name == name]
        assert [trace.showlegend for trace in parts] == [True, False]
        assert (parts[0].y[0], parts[-1].y[-1]) == (0, 1)
        assert parts[0].y[-1] == parts[1].y[0]
    whole = figures.latency_cdf(pl.DataFrame({"qos": [0] * 100, "latency_ms": [float(n) for n in range(100)]}))
    assert len(whole.data) == 1
    eight = [226.5, 609.0, 989.0, 1371.0, 1390.0, 1395.0, 1399.0, 1400.0]
    few = figures.latency_cdf(pl.DataFrame({"qos": [1] * 8, "latency_ms": eight}))
    assert len(few.data) == 1, "a few values are no band"
    outlier = figures.latency_cdf(pl.DataFrame({"qos": [0] * 101, "latency_ms": [*near, 1700.0]}))
    assert len(outlier.data) == 1
