"""The network layer in reports and exports."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from mqttlab import export, figures, metrics
from mqttlab.recording import Recording
from mqttlab.report import network, terminal, write_html
from recordings import MS, Message, control_packet, segment, write

SIMULATED = Path(__file__).resolve().parents[1] / "schemas" / "4" / "simulated"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    packets = [
        segment(0, frame=0, flags=2),
        segment(20, frame=1, up=False, flags=18, ack_rtt_ns=20 * MS),
        segment(40, frame=2, payload=100, offset=0, mqtt="PUBLISH(1,1)", lost=True),
        segment(300, frame=3, payload=100, offset=0, marks="retransmission"),
        segment(320, frame=4, up=False, payload=4, offset=0, mqtt="PUBACK(1)"),
    ]
    packets_of_mqtt = [
        control_packet("PUBLISH", up=True, start=0, topic=6, identifier=2, payload=90, qos=1, segments=2),
        control_packet("PUBACK", up=False, start=0, identifier=2),
    ]
    return write(tmp_path / "run", [Message(0, qos=1)], packets=packets, control_packets=packets_of_mqtt)


def test_the_page_shows_tables_and_figures_of_the_network_layer(run: Path, tmp_path: Path) -> None:
    page = write_html(Recording.open(run), tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("Network layer", "publishers, to the broker", "Overhead", "QoS 1 to the broker",
                  "PUBLISH packets that a segment completes", "Segments that a PUBLISH packet takes",
                  "TCP round trips, cumulative", "What MQTT adds to a message", "Throughput of up",
                  "The connections one by one (1)", "5 frames, 1 connection, 2 MQTT packets"):
        assert words in page, words


def test_figures_of_the_two_directions_of_one_link_have_titles_of_their_own(run: Path) -> None:
    table = metrics.throughput(Recording.open(run)).with_columns(link=pl.lit("office"))
    titles = [
        figures.throughput(table.filter(direction=direction)).layout.title.text for direction in ("up", "down")]
    assert titles == ["Throughput of office, up", "Throughput of office, down"]


def test_a_column_without_a_value_is_not_shown(run: Path) -> None:
    table = metrics.network(Recording.open(run))
    assert table["rto_ms_mean"].null_count() < table.height
    shown = network.columns(table.with_columns(rto_ms_mean=None), network.COLUMNS)
    assert "rtt_ms_mean" in shown and not {"rto_ms_mean", "retransmissions"} & set(shown)


@pytest.mark.parametrize("width", [60, 90, 100, 200])
def test_the_terminal_shows_every_column_in_tables_that_fit(run: Path, width: int) -> None:
    """Below 140 columns the time to a repetition and others were left out without a word."""
    text = io.StringIO()
    terminal(Recording.open(run), Console(file=text, width=width, force_terminal=True, color_system=None))
    lines = text.getvalue().splitlines()
    table = lines[next(i for i, line in enumerate(lines) if "Network layer" in line):]
    for words in ("retrans.", "RTT", "RTO", "everything", "broker", "clients"):
        assert any(words in line for line in table), words
    assert ("(part 2 of " in "".join(table)) == (width < 140)
    assert max(map(len, table)) <= width


def test_the_exports_hold_the_tables(run: Path, tmp_path: Path) -> None:
    out = export.csv(run, tmp_path / "csv")
    recording = Recording.open(run)
    for name in ("network", "connections", "throughput", "publish_per_segment", "segments_per_publish", "overhead"):
        assert pl.read_csv(out / f"{name}.csv").height == getattr(metrics, name)(recording).height > 0


def test_levels_are_drawn_in_their_order(run: Path) -> None:
    figure = figures.throughput(metrics.throughput(Recording.open(run)).filter(link="up"))
    assert [trace.name for trace in figure.data] == ["frames", "IP packets", "transport payload", "message payload"]
    peaks = [max(trace.y) for trace in figure.data]
    assert peaks == sorted(peaks, reverse=True)


def test_the_parts_of_the_overhead_stack_up_to_the_whole(run: Path) -> None:
    table = metrics.overhead(Recording.open(run))
    figure = figures.overhead(table)
    assert sum(trace.x[0] for trace in figure.data) == table["overhead_bytes"][0] == 2 + 6 + 2 + 4
    assert figure.layout.barmode == "stack"


def test_every_figure_of_the_network_layer_is_drawn_from_an_empty_frame(tmp_path: Path) -> None:
    nothing = Recording.open(write(tmp_path / "empty", [Message(0)]))
    assert len(figures.publish_per_segment(metrics.publish_per_segment(nothing)).data) == 0
    assert len(figures.segments_per_publish(metrics.segments_per_publish(nothing)).data) == 0
    assert len(figures.round_trips_over_time(metrics.round_trips(nothing)).data) == 0
    assert len(figures.round_trips_over_time(
        metrics.round_trips_thinned(nothing, 10), counts=metrics.round_trip_counts(nothing)).data) == 0
    assert len(figures.round_trip_cdf(metrics.round_trip_counts(nothing)).data) == 0
    assert all(len(trace.x) == 0 for trace in figures.throughput(metrics.throughput(nothing)).data)


@pytest.mark.parametrize("most", [4, 40, 10_000])
def test_round_trips_chosen_while_they_are_read_are_those_chosen_of_all(
    most: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    recording = Recording.open(SIMULATED)
    of_all = figures.round_trips_over_time(metrics.round_trips(recording), most)
    monkeypatch.setattr(sys.modules[metrics.network.__module__], "READ_AT_ONCE", 7)
    counts = metrics.round_trip_counts(recording)
    in_parts = figures.round_trips_over_time(metrics.round_trips_thinned(recording, most), most, counts)
    assert counts["round_trips"].sum() == metrics.round_trips(recording).height > 40
    assert in_parts.layout == of_all.layout
    for chosen, expected in zip(in_parts.data, of_all.data, strict=True):
        assert chosen.name == expected.name
        assert chosen.x == pytest.approx(expected.x)
        assert chosen.y == pytest.approx(expected.y)


def test_the_curves_of_counted_round_trips_are_those_of_the_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording.open(SIMULATED)
    samples = metrics.round_trips(recording)
    exact = figures.round_trip_cdf(metrics.round_trip_counts(recording))
    for trace, towards in zip(exact.data, ("to_broker", "to_client"), strict=True):
        those = samples.filter(pl.col("towards").cast(pl.String) == towards)["rtt_ms"].to_numpy()
        assert trace.x == pytest.approx(np.quantile(those, trace.y))
    # Of many, those that differ in their sixth digit are counted together.
    monkeypatch.setattr(sys.modules[metrics.network.__module__], "COUNTED_EXACTLY", 1)
    rounded = metrics.round_trip_counts(Recording.open(SIMULATED))
    assert rounded["round_trips"].sum() == samples.height
    for trace, known in zip(figures.round_trip_cdf(rounded).data, exact.data, strict=True):
        assert trace.x == pytest.approx(known.x, rel=1e-4)
