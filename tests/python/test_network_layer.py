"""The network layer's tables against answers that can be worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from recordings import MS, Message, control_packet, segment, write

SYN, ACK, RST = 2, 16, 4
BOTH = "fast_retransmission,retransmission"


def recorded(directory: Path, packets: list[dict[str, Any]], control_packets: list[dict[str, Any]] | None = None,
             ) -> Recording:
    return Recording.open(
        write(directory / "run", [Message(0)], packets=packets, control_packets=control_packets or []))


def rows(recording: Recording) -> dict[tuple[str, str | None, str | None], dict[str, Any]]:
    return {(row["scope"], row["name"], row["direction"]): row for row in metrics.network(recording).to_dicts()}


def conversation() -> list[dict[str, Any]]:
    """Two PUBLISH packets in one segment that is lost and sent again, another one, and their acknowledgements."""
    return [
        segment(0, frame=0, flags=SYN, seq=100, repetition=0),
        segment(20, frame=1, up=False, flags=SYN | ACK, ack_rtt_ns=20 * MS, seq=500, ack=101, repetition=0),
        segment(40, frame=2, payload=200, offset=0, mqtt="PUBLISH(1,1) PUBLISH(1,2)", lost=True, seq=101, ack=501,
                repetition=0),
        segment(50, frame=3, payload=100, offset=200, mqtt="PUBLISH(1,3)", seq=301, ack=501, repetition=0),
        segment(70, frame=4, up=False, marks="duplicate_ack", seq=501, ack=101, sack="301-401"),
        segment(90, frame=5, payload=200, offset=0, marks=BOTH, seq=101, ack=501, repetition=1),
        segment(120, frame=6, up=False, payload=12, offset=0, mqtt="PUBACK(1) PUBACK(2) PUBACK(3)",
                ack_rtt_ns=70 * MS, seq=501, ack=401, repetition=0),
    ]


def test_counts_of_everything_and_of_each_direction(tmp_path: Path) -> None:
    table = rows(recorded(tmp_path, conversation()))
    everything = table["run", None, None]
    assert (everything["frames"], everything["bytes"], everything["ip_bytes"]) == (7, 7 * 66 + 512, 7 * 52 + 512)
    assert (everything["mqtt_packets"], everything["publish_packets"]) == (6, 3)
    assert everything["publish_per_segment_mean"] == 1.5
    up, down = table["direction", None, "to_broker"], table["direction", None, "to_client"]
    assert (up["frames"], down["frames"]) == (4, 3)
    assert (up["retransmissions"], up["retransmissions_fast"], up["retransmissions_timer_or_probe"]) == (1, 1, 0)
    assert (down["retransmissions"], down["retransmissions_percent"]) == (0, 0)
    # Of the SYN and three segments with payload.
    assert up["retransmissions_percent"] == pytest.approx(100 / 4)
    assert (up["tcp_analysis_duplicate_acks"], down["tcp_analysis_duplicate_acks"]) == (0, 1)
    assert (up["publish_frame_bytes_min"], up["publish_frame_bytes_max"]) == (166, 266)
    assert (up["frame_bytes_min"], up["frame_bytes_max"]) == (66, 266)


def test_the_rate_is_that_of_the_time_from_the_first_frame_to_the_last(tmp_path: Path) -> None:
    everything = rows(recorded(tmp_path, conversation()))["run", None, None]
    assert everything["data_rate_kbit_s"] == pytest.approx((7 * 66 + 512) * 8 / 0.120 / 1000)


def test_of_a_recording_that_does_not_say_what_was_sent_again_there_are_only_wiresharks_flags(tmp_path: Path) -> None:
    marks = ["retransmission", BOTH, "retransmission,spurious_retransmission", "zero_window_probe"]
    packets = [segment(i, frame=i, payload=10, marks=mark) for i, mark in enumerate(marks)]
    everything = rows(recorded(tmp_path, packets))["run", None, None]
    assert everything["tcp_analysis_retransmissions"] == 3
    assert everything["tcp_analysis_fast_retransmissions"] == everything["tcp_analysis_spurious_retransmissions"] == 1
    assert everything["tcp_analysis_zero_windows"] == 0
    assert not [name for name in everything if name.startswith("retransmissions")]


def test_a_round_trip_ends_when_the_acknowledgement_has_arrived(tmp_path: Path) -> None:
    recording = recorded(tmp_path, conversation())
    samples = metrics.round_trips(recording)
    # The handshake: 20 ms there and 20 ms back. The last segment: 70 ms until acknowledged, and 20 ms back.
    assert samples["rtt_ms"].to_list() == [40, 90]
    assert samples["towards"].to_list() == ["to_broker", "to_broker"]
    assert samples["at_s"].to_list() == [0.04, 0.14]
    assert rows(recording)["direction", None, "to_broker"]["rtt_ms_mean"] == 65
    assert rows(recording)["direction", None, "to_client"]["rtt_ms_mean"] is None


def test_an_acknowledgement_that_was_lost_is_no_round_trip(tmp_path: Path) -> None:
    packets = [segment(0, frame=0, payload=9), segment(20, frame=1, up=False, ack_rtt_ns=20 * MS, lost=True)]
    assert metrics.round_trips(recorded(tmp_path, packets)).height == 0


def test_the_timeout_follows_rfc_6298_with_linux_s_lower_bound(tmp_path: Path) -> None:
    sampled = [segment(100 * i, frame=i, up=False, ack_rtt_ns=rtt * MS, delay_ms=0) for i, rtt in enumerate([400, 800])]
    samples = metrics.round_trips(recorded(tmp_path, sampled))
    # SRTT 400, RTTVAR 200; then RTTVAR = 3/4 200 + 1/4 |400 - 800| = 250, SRTT = 7/8 400 + 1/8 800 = 450.
    assert samples["rto_ms"].to_list() == pytest.approx([400 + 800, 450 + 1000])
    quick = [segment(i, frame=i, up=False, ack_rtt_ns=10 * MS, delay_ms=0) for i in range(20)]
    steady = metrics.round_trips(recorded(tmp_path / "steady", quick))
    assert steady["rto_ms"].to_list() == pytest.approx([210] * 20)


def test_the_second_link_of_a_path_is_counted_apart_and_knows_the_marks(tmp_path: Path) -> None:
    first = segment(0, frame=0, payload=10, marks="retransmission", hops=2, seq=1, repetition=1)
    second = {**first, "link": 1, "hop": 1, "marks": None}
    table = rows(recorded(tmp_path, [first, second]))
    assert table["run", None, None]["frames"] == 1
    for metric in ("retransmissions", "retransmissions_unknown", "tcp_analysis_retransmissions"):
        assert table["run", None, None][metric] == 1
        assert table["link", "up", "up"][metric] == 1
        assert table["link", "down", "up"][metric] == 1


def test_copies_that_a_link_makes_were_not_sent(tmp_path: Path) -> None:
    packets = [segment(0, frame=0, payload=10), {**segment(0, frame=1, payload=10), "fate": "duplicated"}]
    assert rows(recorded(tmp_path, packets))["run", None, None]["frames"] == 1


def test_groups_and_connections_have_the_client_that_control_packets_name(tmp_path: Path) -> None:
    recording = recorded(tmp_path, conversation(), [control_packet("PUBLISH", up=True, start=0, payload=98)])
    table = rows(recording)
    assert table["group", "publishers", "to_broker"]["frames"] == 4
    assert table["group", "publishers", "to_client"]["frames"] == 3
    connections = metrics.connections(recording)
    keys = connections.select("connection", "name", "direction")
    assert keys.rows() == [(0, "p", "to_broker"), (0, "p", "to_client")]


def test_a_connection_whose_start_was_missed_has_its_client_at_the_higher_port(tmp_path: Path) -> None:
    table = rows(recorded(tmp_path, [segment(0, frame=0, up=False), segment(1, frame=1, payload=3)]))
    assert table["direction", None, "to_broker"]["tcp_payload_bytes"] == 3


def test_payload_counts_once_on_a_link_and_frames_count_each_time(tmp_path: Path) -> None:
    published = [control_packet("PUBLISH", up=True, start=100 * i, payload=90, topic=8) for i in range(3)]
    table = metrics.throughput(recorded(tmp_path, conversation(), published))
    width_s = 0.001
    sums = {
        key: part["bytes_per_s"].sum() * width_s
        for key, part in table.filter(link="up").group_by(table.filter(link="up")["level"])
    }
    assert sums["message payload",] == pytest.approx(270)
    assert sums["transport payload",] == pytest.approx(500)
    assert sums["IP packets",] == pytest.approx(4 * 52 + 500)
    assert sums["frames",] == pytest.approx(4 * 66 + 500)


def test_payload_is_there_when_all_bytes_before_its_end_have_crossed(tmp_path: Path) -> None:
    packets = [segment(0, frame=0, payload=100, offset=0), segment(1000, frame=1, payload=100, offset=100)]
    published = [control_packet("PUBLISH", up=True, start=0, payload=148)]
    table = metrics.throughput(recorded(tmp_path, packets, published)).filter(level="message payload")
    assert table.filter(table["bytes_per_s"] > 0)["at_s"].to_list() == [1.0]


def test_idle_slices_are_zero_not_missing(tmp_path: Path) -> None:
    packets = [segment(0, frame=0), segment(10_000, frame=1)]
    table = metrics.throughput(recorded(tmp_path, packets)).filter(level="frames")
    assert table.height == 101, "slices of 100 ms"
    assert (table["bytes_per_s"] > 0).sum() == 2


def test_publish_packets_are_counted_by_the_segment_that_completes_them(tmp_path: Path) -> None:
    recording = recorded(tmp_path, conversation(), [
        control_packet("PUBLISH", up=True, start=0, payload=98, segments=2),
        control_packet("PUBLISH", up=True, start=100, payload=98, segments=2),
        control_packet("PUBLISH", up=True, start=200, payload=98),
    ])
    assert metrics.publish_per_segment(recording).rows() == [("to_broker", 1, 1, 50.0), ("to_broker", 2, 1, 50.0)]
    assert metrics.segments_per_publish(recording).rows() == [
        ("to_broker", 1, 1, pytest.approx(100 / 3)), ("to_broker", 2, 2, pytest.approx(200 / 3))]


def test_overhead_is_split_into_its_parts_and_acknowledgements_go_to_what_they_acknowledge(tmp_path: Path) -> None:
    packets = [
        control_packet("PUBLISH", up=True, start=0, topic=12, identifier=2, properties=1, payload=100, qos=1),
        control_packet("PUBACK", up=False, start=0, identifier=2),
        control_packet("PUBLISH", up=True, start=117, topic=12, identifier=2, properties=1, payload=300, qos=2),
        control_packet("PUBREC", up=False, start=4, identifier=2),
        control_packet("PUBREL", up=True, start=434, identifier=2),
        control_packet("PUBCOMP", up=False, start=8, identifier=2),
        control_packet("PUBLISH", up=False, start=12, topic=12, payload=50, qos=0),
    ]
    table = {(row["direction"], row["qos"]): row for row in
             metrics.overhead(recorded(tmp_path, conversation(), packets)).to_dicts()}
    assert table["to_broker", 1]["overhead_acknowledgements_bytes"] == 4
    assert table["to_broker", 2]["overhead_acknowledgements_bytes"] == 12
    assert table["to_client", 0]["overhead_acknowledgements_bytes"] == 0
    assert table["to_broker", 1]["overhead_bytes"] == 2 + 12 + 2 + 1 + 4
    assert table["to_broker", 1]["overhead_percent"] == pytest.approx(100 * 21 / 121)
    assert table["to_client", 0]["overhead_bytes"] == 2 + 12


def test_efficiency_is_application_bytes_over_link_bytes(tmp_path: Path) -> None:
    delivered = Message(0, 60)
    # Both clients on host 0, so that the connection tells whose a frame is.
    packets = [
        segment(0, frame=0, payload=100, offset=0),
        segment(30, frame=1, up=False),
        segment(40, frame=2, up=False, payload=100, offset=0, connection=1),
        {**segment(40, frame=3, up=False, payload=100, offset=0, connection=1), "fate": "duplicated"},
        segment(60, frame=4, up=True, connection=1, lost=True),
    ]
    named = [control_packet("CONNECT", up=True, start=0),
             {**control_packet("CONNECT", up=True, start=0), "connection": 1, "client": 1}]
    run = write(tmp_path / "run", [delivered], packets=packets, control_packets=named, hosts=(0, 0))
    table = {row["group"]: row for row in metrics.efficiency(Recording.open(run)).to_dicts()}
    publishers, subscribers = table["publishers"], table["subscribers"]
    # Topic "t", 100 B of payload and one more.
    assert publishers["s"] == pytest.approx(102 / 166)
    assert publishers["t"] == pytest.approx(102 / (166 + 66))
    assert (publishers["s_messages"], publishers["t_messages"], publishers["r"]) == (1, 0.5, None)
    # The copy that the link made was received, and not sent.
    assert subscribers["r"] == pytest.approx(102 / (2 * 166))
    assert (subscribers["r_messages"], subscribers["s"]) == (0.5, None)
    assert subscribers["t"] == pytest.approx(102 / (66 + 2 * 166))


def test_where_each_group_has_its_host_the_host_tells_whose_a_frame_is(tmp_path: Path) -> None:
    packets = [segment(0, frame=0, payload=100), {**segment(5, frame=1, up=False), "connection": None}]
    table = metrics.efficiency(recorded(tmp_path, packets)).to_dicts()
    assert [(row["group"], row["frames_sent"], row["frames_received"]) for row in table] == [
        ("publishers", 1, 1), ("subscribers", 1, 1)]


def test_efficiency_without_frames_is_unknown(tmp_path: Path) -> None:
    row = metrics.efficiency(Recording.open(write(tmp_path / "run", [Message(0)]))).row(0, named=True)
    assert row["messages_sent"] == 1
    assert [row[name] for name in ("frames_sent", "s", "t", "t_messages")] == [None] * 4


def test_a_run_without_frames_has_empty_tables(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(0)]))
    for table in (metrics.network, metrics.connections, metrics.throughput, metrics.publish_per_segment,
                  metrics.segments_per_publish, metrics.overhead, metrics.round_trips):
        assert table(recording).is_empty()


def test_every_column_is_declared_or_names_the_row(tmp_path: Path) -> None:
    recording = recorded(tmp_path, conversation(), [control_packet("PUBLISH", up=True, start=0, payload=98, qos=0)])
    keys = {"scope", "name", "direction", "link", "level", "at_s", "qos", "connection", "group"}
    for table in (metrics.network, metrics.connections, metrics.throughput, metrics.publish_per_segment,
                  metrics.segments_per_publish, metrics.overhead, metrics.efficiency):
        assert set(table(recording).columns) - keys <= set(metrics.ALL), table
