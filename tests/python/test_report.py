"""Figures, reports and exports of a recording."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from mqttlab import export, figures, metrics
from mqttlab.recording import Recording
from mqttlab.report import terminal, write_html
from recordings import Message, packet, segment, write


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [Message(i, 5.0 + i % 7, qos=i % 3) for i in range(90)] + [Message(90, None, fate="lost")]
    return write(tmp_path / "run", rows, packets=[packet(20 * i) for i in range(50)])


def test_the_page_holds_every_section_and_needs_no_network(run: Path, tmp_path: Path) -> None:
    page = write_html(Recording.open(run), tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("Messages by QoS", "Latency, cumulative", "Links: data rate", "The plan, as run", "Valid"):
        assert words in page
    head = page[: page.index("<style>")]
    assert "http" not in head
    assert "<script src" not in page


def test_a_page_is_small_and_lists_its_contents_below_the_answer(run: Path, tmp_path: Path) -> None:
    page = write_html(Recording.open(run), tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 2_000_000
    links = re.findall(r'<a href="#(part-\d+)">(.*?)</a>', page)
    assert ("Messages by QoS" in [title for _, title in links]) and len(links) >= 4
    for name, title in links:
        assert page.count(f'<h2 id="{name}">{title}</h2>') == 1
    assert page.index("p99 ms") < page.index('<nav class="contents"') < page.index('id="part-1"')
    # WebGL is not in the bundle.
    assert '"type":"scattergl"' not in page and '"type":"scatter"' in page


def test_a_page_of_many_connections_and_a_long_plan_has_the_worst_alone(tmp_path: Path) -> None:
    packets = [segment(20 * i, frame=i, connection=i, payload=10, marks="retransmission" if i == 77 else None)
               for i in range(300)]
    directory = write(tmp_path / "run", [Message(0)], packets=packets)
    recording = Recording.open(directory)
    recording.plan["sources"] = [{"number": i} for i in range(10_000)]
    page = write_html(recording, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Of 300 connections the 10 directions that sent most again" in page
    assert page.count("<tr>") < 100 and "9,980 more; run.json has all" in page


def test_each_device_of_a_fleet_has_its_own_numbers(tmp_path: Path) -> None:
    rows = [Message(0, 10.0, publisher=0), Message(1, 30.0, publisher=0), Message(2, None, publisher=0, fate="lost"),
            Message(3, None, publisher=0, fate="unsent", subscriber=None)]
    table = metrics.messages_by_device(Recording.open(write(tmp_path / "run", rows)))
    [publisher, subscriber] = table.rows(named=True)
    # Who receives is judged by what was sent to it.
    assert (publisher["client"], subscriber["client"]) == ("p", "s")
    for row in (publisher, subscriber):
        assert (row["deliveries_expected"], row["messages_delivered"]) == (3, 2)
        assert (row["latency_ms_mean"], row["latency_ms_max"]) == (20, 30)
    assert subscriber["undelivered_percent"] == pytest.approx(100 / 3)
    assert metrics.messages_by_device(Recording.open(write(tmp_path / "none", []))).is_empty()


def test_a_box_has_numbers_on_its_axis_whatever_lies_beyond_its_whiskers() -> None:
    latency = np.concatenate([np.linspace(30, 40, 999), [2_000.0]])
    samples = pl.DataFrame({"qos": 0, "intended_s": np.arange(1000) / 100, "latency_ms": latency})
    assert figures.latency_box(samples).layout.yaxis.type == "linear"
    # Two decades have more than one power of ten.
    assert figures.latency_over_time(samples).layout.yaxis.dtick == "D2"


def test_an_incomplete_run_says_so_on_terminal_and_page(tmp_path: Path) -> None:
    run = write(tmp_path / "run", [Message(0)], complete=False)
    text = io.StringIO()
    terminal(Recording.open(run), Console(file=text, width=200))
    assert "incomplete" in text.getvalue()
    page = write_html(Recording.open(run), tmp_path / "r.html").read_text(encoding="utf-8")
    assert '<section class="verdict incomplete">' in page


def test_a_late_run_is_not_valid_and_its_report_begins_with_the_reason(tmp_path: Path) -> None:
    validity = {"valid": False, "reasons": ["the emulator was 157.286399 ms late at p99, above 700 us", "late"]}
    run = write(tmp_path / "run", [Message(0)], validity=validity)
    text = io.StringIO()
    terminal(Recording.open(run), Console(file=text, width=200))
    assert text.getvalue().startswith("not valid")
    assert "the emulator was 157 ms late at p99, above 700 us" in text.getvalue(), "a time is rounded to three digits"
    page = write_html(Recording.open(run), tmp_path / "r.html").read_text(encoding="utf-8")
    assert "157 ms late" in page and "157.286" not in page.partition("validity")[0]


def test_the_terminal_table_shows_counts_and_latencies(run: Path) -> None:
    text = io.StringIO()
    terminal(Recording.open(run), Console(file=text, width=240))
    assert "delivered" in text.getvalue()
    assert "up" in text.getvalue()


def test_a_page_that_cannot_be_written_leaves_the_old_one(run: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old", encoding="utf-8")
    blocked = tmp_path / "report.html" / "below.html"
    with pytest.raises(OSError):
        write_html(Recording.open(run), blocked)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "old"


def test_csv_and_xlsx_hold_the_reports_tables(run: Path, tmp_path: Path) -> None:
    out = export.csv(run, tmp_path / "csv")
    by_qos = pl.read_csv(out / "by_qos.csv")
    expected = metrics.application(Recording.open(run))
    assert by_qos["messages_delivered"].to_list() == expected["messages_delivered"].to_list()
    assert pl.read_csv(out / "messages.csv").height == 91
    with zipfile.ZipFile(export.xlsx(run, tmp_path / "run.xlsx")) as book:
        assert "by_qos" in book.read("xl/workbook.xml").decode()


def busy(tmp_path: Path, *spans: tuple[float, float]) -> tuple[float, ...]:
    """How busy the only link is drawn that sends for these times, in seconds."""
    sent = [packet(1000 * begin, send_ms=1000 * (end - begin)) for begin, end in spans]
    recording = Recording.open(write(tmp_path / "busy", [Message(0)], packets=sent))
    return tuple(figures.link_utilisation(metrics.slices(recording)).data[0].y)


def test_utilisation_counts_busy_time_within_each_slice(tmp_path: Path) -> None:
    # From 0 s to 60 s: slices of half a second.
    drawn = busy(tmp_path, (0, 1), (59, 60))
    assert drawn == pytest.approx((100, 100, *[0] * 116, 100, 100, 0))


def test_utilisation_of_a_frame_over_several_slices_is_spread(tmp_path: Path) -> None:
    drawn = busy(tmp_path, (0, 0.75), (2, 62))
    assert drawn == pytest.approx((75, 0, *[100] * 60, 0))


def test_the_cdf_ends_at_the_slowest_delivery(run: Path) -> None:
    samples = metrics.deliveries(Recording.open(run))
    for trace in figures.latency_cdf(samples).data:
        assert trace.y[-1] == 1
        assert max(trace.x) <= samples["latency_ms"].max()


@pytest.mark.parametrize("most", [6_000, 1_000])
def test_thousands_of_deliveries_are_thinned_but_the_slowest_stays(most: int) -> None:
    latency = np.full(50_000, 10.0)
    latency[12_345] = 999.0
    samples = pl.DataFrame({"qos": 0, "intended_s": np.arange(50_000) / 100, "latency_ms": latency})
    figure = figures.latency_over_time(samples, most)
    assert 999.0 in figure.data[0].y
    assert most / 2 < len(figure.data[0].y) <= most
    assert "drawn" in figure.layout.title.text


def test_every_figure_is_drawn_from_an_empty_frame() -> None:
    nothing = pl.DataFrame(schema={"qos": pl.Int64, "intended_s": pl.Float64, "latency_ms": pl.Float64})
    for draw in (figures.latency_over_time, figures.latency_cdf, figures.latency_box):
        assert len(draw(nothing).data) == 0
