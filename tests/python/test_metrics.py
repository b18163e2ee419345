"""Metrics against answers that can be worked out by hand."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.metrics.application import is_once
from mqttlab.metrics.connecting import first_message_ms
from mqttlab.metrics.flow import FLOW
from mqttlab.recording import Recording, RecordingError
from mqttlab.report import coverage
from mqttlab.statistics import batch_means_ci95
from recordings import MS, Message, packet, write


def test_counts_keep_sent_lost_unsent_and_duplicates_apart(tmp_path: Path) -> None:
    rows = [Message(i) for i in range(6)]
    rows += [Message(6, None, fate="lost"), Message(7, None, fate="unsent", subscriber=None)]
    rows += [Message(5, 30, fate="duplicate"), Message(8, phase="warm_up")]
    rows += [Message(9, None, fate="no_receiver", subscriber=None)]
    table = metrics.application(Recording.open(write(tmp_path / "run", rows)))
    row = table.row(0, named=True)
    assert table.height == 1
    assert (row["messages_offered"], row["messages_sent"], row["messages_unsent"]) == (9, 8, 1)
    assert (row["deliveries_expected"], row["messages_delivered"], row["messages_lost"]) == (7, 6, 1)
    assert row["duplicates"] == 1
    assert row["messages_lost_percent"] == pytest.approx(100 / 7)


def test_lost_under_way_and_unknown_are_counted_apart_and_percentages_are_of_what_was_to_be_delivered(
    tmp_path: Path,
) -> None:
    rows = [Message(i) for i in range(4)]
    rows += [Message(4, None, fate="lost", cause="queue_full"), Message(5, None, fate="under_way")]
    # Of a shared subscription's member that nobody knows.
    rows += [Message(6, None, fate="under_way", subscriber=None), Message(7, None, fate="unknown")]
    row = metrics.application(Recording.open(write(tmp_path / "run", rows))).row(0, named=True)
    fates = ("delivered", "lost", "under_way", "unknown")
    assert [row[f"messages_{fate}"] for fate in fates] == [4, 1, 2, 1]
    assert row["deliveries_expected"] == 8
    assert row["messages_lost_percent"] == pytest.approx(12.5)


def test_latency_statistics_are_those_of_first_deliveries(tmp_path: Path) -> None:
    rows = [Message(i, float(i + 1)) for i in range(100)] + [Message(0, 5000, fate="duplicate")]
    row = metrics.application(Recording.open(write(tmp_path / "run", rows))).row(0, named=True)
    assert row["latency_ms_min"] == 1
    assert row["latency_ms_max"] == 100
    assert row["latency_ms_mean"] == pytest.approx(50.5)
    assert row["latency_ms_p50"] == pytest.approx(50.5)
    assert row["latency_ms_p95"] == pytest.approx(95.05)
    # The last one was due at 9.9 s and came at 10 s, when the measurement had ended.
    assert row["throughput_per_s"] == pytest.approx(9.9)
    assert row["goodput_kbit_s"] == pytest.approx(99 * 100 * 8 / 1000 / 10)


def test_what_did_not_arrive_is_counted_by_its_cause_in_words(tmp_path: Path) -> None:
    absent = [("lost", "queue_full"), ("lost", "queue_full"), ("unknown", "queue_full"), ("unknown", "queue_full"),
              ("unknown", "queue_full"), ("under_way", None)]
    rows = [Message(i, None, fate=fate, cause=cause) for i, (fate, cause) in enumerate(absent)]
    others = [Message(8, fate="duplicate"), Message(9, None, fate="lost", cause="overtaken", phase="warm_up")]
    recording = Recording.open(write(tmp_path / "run", [*rows, Message(7), *others]))
    assert coverage.absent(recording, metrics.application(recording)) == (
        "Of the expected deliveries that did not happen: 3 of unknown fate (the broker dropped messages and does not "
        "say which), 2 lost (the broker's queue was full), 1 still under way.")
    whole = Recording.open(write(tmp_path / "whole", [Message(0)]))
    assert coverage.absent(whole, metrics.application(whole)) == ""
    assert coverage.absent(whole, metrics.application(Recording.open(write(tmp_path / "none", [])))) == ""


def test_payloads_of_more_than_four_gigabytes_are_summed_up_whole(tmp_path: Path) -> None:
    run = write(tmp_path / "run", [Message(i) for i in range(100)])
    table = pl.read_parquet(run / "messages.parquet").with_columns(payload_bytes=pl.lit(200_000_000, dtype=pl.UInt32))
    table.write_parquet(run / "messages.parquet")
    recording = Recording.open(run)
    row = metrics.application(recording).row(0, named=True)
    # 20 GB in 10 s. Both count what was sent in the measurement, one of them with a topic and a byte of each message.
    assert row["goodput_kbit_s"] == pytest.approx(16e6)
    assert row["effective_throughput_kbit_s"] == pytest.approx(16e6, rel=1e-6)


def test_each_qos_and_group_has_its_own_row(tmp_path: Path) -> None:
    rows = [Message(i, 10.0 * (1 + i % 3), qos=i % 3) for i in range(9)]
    recording = Recording.open(write(tmp_path / "run", rows))
    assert metrics.application(recording)["latency_ms_mean"].to_list() == [10, 20, 30]
    by_group = metrics.application(recording, ("publisher_group", "subscriber_group", "qos"))
    assert by_group["publisher_group"].unique().to_list() == ["publishers"]
    assert by_group["subscriber_group"].unique().to_list() == ["subscribers"]


def test_a_disconnect_counts_for_the_rows_its_client_takes_part_in(tmp_path: Path) -> None:
    events = [{"at_ns": 1, "kind": "disconnect", "client": 1, "took_ns": None, "detail": "reset"},
              {"at_ns": 2, "kind": "connack", "client": 0, "took_ns": 7 * MS, "detail": None}]
    recording = Recording.open(write(tmp_path / "run", [Message(0), Message(1, qos=1)], events=events))
    assert metrics.application(recording)["disconnects"].to_list() == [1, 1]
    assert metrics.setup(recording)["connect_ms_p50"].to_list() == [7]
    assert metrics.setup(recording)["acknowledge_ms_p50"].to_list() == [2]


def test_the_time_from_connecting_to_the_first_message_leaves_out_the_schedule(tmp_path: Path) -> None:
    def event(at_ms: float, kind: str, took_ms: float | None = None, client: int = 0) -> dict[str, Any]:
        return {"at_ns": int(at_ms * MS), "kind": kind, "client": client, "detail": None,
                "took_ns": None if took_ms is None else int(took_ms * MS)}

    # Messages are sent every 100 ms and acknowledged after 2 ms.
    events = [event(50, "connack", 30), event(180, "close"),
              # The message at 200 ms was handed over between two connections; that at 300 ms before the CONNACK.
              event(320, "connack", 40), event(380, "disconnect"),
              # Nothing was sent over this one, and the next one's first message was lost.
              event(390, "connack", 5), event(392, "close"), event(450, "connack", 20), event(460, "connack", 7, 1)]
    sent = [Message(n, latency, qos=1) for n, latency in enumerate((3, 8, 9, 50))] + [
        Message(5, None, fate="lost", qos=1), Message(5, None, fate="lost", subscriber=2, qos=1), Message(6, qos=1)]
    recording = Recording.open(write(tmp_path / "run", sent, events=events))
    found = first_message_ms(recording)
    assert sorted(found["connect_to_delivered"]) == [30 + 8, 20 + 50]
    assert sorted(found["connect_to_acknowledged"]) == [20 + 2, 20 + 2, 30 + 2]
    row = metrics.setup(recording).row(0, named=True)
    assert row["connect_to_delivered_ms_p50"] == (38 + 70) / 2
    nothing = Recording.open(write(tmp_path / "none", sent))
    assert metrics.setup(nothing)["connect_to_delivered_ms_p50"].item() is None


def test_batch_means_cover_the_mean_of_correlated_samples() -> None:
    generator = np.random.default_rng(20051)
    hits = 0
    for _ in range(300):
        noise = generator.normal(size=2000)
        samples = np.empty_like(noise)
        samples[0] = noise[0]
        for i in range(1, noise.size):
            samples[i] = 0.8 * samples[i - 1] + noise[i]
        half = batch_means_ci95(samples)
        assert half is not None
        hits += abs(samples.mean()) <= half
    # 95 % nominal; batches of 100 with a correlation of 0.8 leave a little to be desired. The textbook interval
    # covers about half.
    assert hits >= 0.88 * 300


def test_fewer_than_two_samples_have_no_interval() -> None:
    assert batch_means_ci95(np.array([1.0])) is None


def test_link_figures_follow_from_its_frames(tmp_path: Path) -> None:
    packets = [packet(0), packet(10, wait_ms=4), packet(90),
               packet(95, fate="dropped", cause="queue_full"), packet(96, fate="dropped", cause="queue_full")]
    recording = Recording.open(write(tmp_path / "run", [Message(0)], packets=packets))
    row = metrics.links(recording).row(0, named=True)
    assert row["link"] == "up"
    assert (row["frames"], row["frames_delivered"], row["frames_dropped"]) == (5, 3, 2)
    assert row["drops_by_cause"] == "2 queue_full"
    # Three frames of 10 ms in the 100 ms from the first frame's arrival to the last one's last bit.
    assert row["utilisation_percent"] == pytest.approx(30)
    assert row["data_rate_kbit_s"] == pytest.approx(3 * 8000 / 0.1 / 1000)
    assert row["queue_wait_ms_max"] == 4


def test_every_column_is_a_declared_metric(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(0)], packets=[packet(0)]))
    keys = {"qos", "link"}
    for table in (metrics.application(recording), metrics.links(recording), metrics.setup(recording)):
        assert set(table.columns) - keys <= set(metrics.ALL)


def test_declared_metrics_have_a_unit_and_a_sentence() -> None:
    for metric in metrics.ALL.values():
        assert metric.meaning.endswith("."), metric.name
        assert metric.unit or metric.name == "drops_by_cause"


def test_a_directory_without_a_plan_is_not_a_recording(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="has no plan.json"):
        Recording.open(tmp_path)


def test_a_broken_table_names_its_path(tmp_path: Path) -> None:
    run = write(tmp_path / "run", [Message(0)])
    (run / "messages.parquet").write_bytes(b"not parquet")
    with pytest.raises(RecordingError, match=r"messages\.parquet"):
        _ = Recording.open(run).messages


def test_a_run_without_deliveries_yields_counts_and_no_latency(tmp_path: Path) -> None:
    rows = [Message(i, None, fate="lost") for i in range(3)]
    row = metrics.application(Recording.open(write(tmp_path / "run", rows))).row(0, named=True)
    assert row["messages_lost"] == 3
    assert row["latency_ms_mean"] is None


@pytest.mark.parametrize(("rows", "once"), [
    ([(0, 1), (0, 2), (1, 1)], True), ([(0, 1), (0, 2), (0, 2)], False), ([(0, 2), (0, 1), (1, 1)], True),
    ([(0, 1), (0, 2), (0, 1)], False), ([(0, 1)], True),
])
def test_messages_are_told_apart_in_whatever_order_they_come(
        rows: list[tuple[int, int]], once: bool, tmp_path: Path) -> None:
    written = [Message(publisher=publisher, sequence=sequence) for publisher, sequence in rows]
    recording = Recording.open(write(tmp_path / "run", written))
    assert is_once(recording) is once
    # Whichever way they are told apart, each is counted once.
    assert metrics.application(recording)["messages_sent"].sum() == len(set(rows))


def test_deliveries_are_in_the_order_of_sending(tmp_path: Path) -> None:
    rows = [Message(2), Message(0), Message(1)]
    samples = metrics.deliveries(Recording.open(write(tmp_path / "run", rows)))
    assert samples["intended_s"].to_list() == pytest.approx([0, 0.1, 0.2])
    assert samples.schema["latency_ms"] == pl.Float64


def test_what_many_threads_ask_for_at_once_is_derived_once(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(1)]))
    asked, calls = threading.Barrier(4, timeout=20), []

    def derive(_: Recording) -> pl.DataFrame:
        calls.append(1)
        # Whoever else derives it does so now.
        hold.wait(0.2)
        return pl.DataFrame({"derived": [1]})

    def ask(_: int) -> pl.DataFrame:
        asked.wait()
        return recording.derived("of the test", derive)

    hold = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len(calls) == 1
    assert all(table is found[0] for table in found)


def test_what_could_not_be_derived_is_tried_again(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(1)]))

    def fails(_: Recording) -> pl.DataFrame:
        raise RecordingError("not now")

    with pytest.raises(RecordingError):
        recording.derived("of the test", fails)
    assert recording.derived("of the test", lambda _: pl.DataFrame({"derived": [1]})).height == 1


@pytest.mark.parametrize("by", [(), ("qos",), ("publisher_group", "qos"), FLOW])
def test_a_run_that_ended_before_its_measurement_has_an_empty_table(tmp_path: Path, by: tuple[str, ...]) -> None:
    recording = Recording.open(write(tmp_path, [Message(number, phase="warm_up") for number in range(3)]))
    assert metrics.application(recording, by).is_empty()
    assert metrics.deliveries(recording).is_empty()
    assert metrics.summary(recording).filter(pl.col("metric").str.starts_with("latency")).is_empty()


def test_a_table_whose_rows_are_anothers_says_the_same_as_one_of_its_own(tmp_path: Path) -> None:
    """Of two QoS levels and one pair of groups; with what has no receiver rows are no more the same."""
    rows = [Message(number, 10 + number, qos=number % 2) for number in range(40)]
    alike = Recording.open(write(tmp_path / "alike", rows))
    apart = Recording.open(write(tmp_path / "apart", [*rows, Message(40, None, subscriber=None, fate="unsent")]))
    levels = [metrics.application(of) for of in (alike, apart)]
    assert [metrics.application(of, FLOW).height for of in (alike, apart)] == [2, 3]
    assert levels[0].columns == levels[1].columns
    assert levels[0].filter(qos=1).equals(levels[1].filter(qos=1))
    assert levels[1]["messages_unsent"].to_list() == [1, 0]
    whole = metrics.application(alike, ())
    assert whole["messages_delivered"].to_list() == [40] and whole["latency_ms_p50"].to_list() == [29.5]
