"""Where a message's time went, rule by rule, from conversations with known times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from conversations import Conversation
from mqttlab import figures, metrics
from mqttlab.metrics import PARTS
from mqttlab.metrics.attribution.means import BANDS, bands
from mqttlab.recording import Recording
from recordings import MS, Message, write


def parts_ms(recording: Recording, row: int = 0) -> dict[str, float]:
    """The parts of a delivery that took any time, in ms; and that they add up."""
    table = metrics.attribution(recording)
    values = table.row(row, named=True)
    assert sum(values[part] for part in PARTS) == values["latency_ns"]
    assert min(values[part] for part in PARTS) >= 0
    return {part.removesuffix("_ns"): values[part] / MS for part in PARTS if values[part]}


def near(**parts: float) -> Any:
    return pytest.approx(parts, abs=1e-6)


def test_a_message_that_nothing_holds_passes_each_part_in_turn(tmp_path: Path) -> None:
    told = Conversation()
    told.carried()
    assert parts_ms(told.write(tmp_path)) == near(
        schedule=1, session=2, sender_socket=0.5, queue_to_broker=3, wire_to_broker=10, broker=0.5,
        queue_to_subscriber=6, wire_to_subscriber=10, delivery=0.4)


def outstanding_at_broker(told: Conversation, ack_at: float, forwarded: float) -> None:
    """Before the message goes to the subscriber, 10 bytes are on their way there; they are acknowledged in time."""
    told.frame(1, True, 0, 1, offset=0, size=5)
    told.frame(1, False, 2, 12, offset=0, size=10, ack=5)
    told.message(0, 0, 0, forwarded + 10)
    told.frame(0, True, 0, 10, offset=0, size=100)
    told.publish(0, True, 0, 100, 0, 10)
    told.frame(1, True, ack_at - 10, ack_at, ack=10)
    told.frame(1, False, forwarded, forwarded + 10, offset=10, size=100, ack=5)
    told.publish(1, False, 10, 110, forwarded, forwarded + 10)


def test_nagle_holds_a_small_segment_until_the_one_before_is_acknowledged(tmp_path: Path) -> None:
    told = Conversation()
    outstanding_at_broker(told, ack_at=50, forwarded=50.1)
    assert parts_ms(told.write(tmp_path)) == near(
        wire_to_broker=10, broker_nagle=40, broker=0.1, wire_to_subscriber=10)


def test_without_nagle_an_acknowledgement_makes_room_in_a_window(tmp_path: Path) -> None:
    told = Conversation(nagle=False)
    outstanding_at_broker(told, ack_at=50, forwarded=50.1)
    assert parts_ms(told.write(tmp_path)) == near(
        wire_to_broker=10, broker_socket=40, broker=0.1, wire_to_subscriber=10)


def test_an_acknowledgement_long_before_released_nothing(tmp_path: Path) -> None:
    told = Conversation()
    outstanding_at_broker(told, ack_at=50, forwarded=60)
    assert parts_ms(told.write(tmp_path)) == near(wire_to_broker=10, broker=50, wire_to_subscriber=10)


def test_an_acknowledgement_stamped_a_little_late_still_released(tmp_path: Path) -> None:
    told = Conversation()
    # The stack is woken a little before the frame's own time of arrival.
    outstanding_at_broker(told, ack_at=50, forwarded=49.95)
    assert parts_ms(told.write(tmp_path)) == near(wire_to_broker=10, broker_nagle=39.95, wire_to_subscriber=10)


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    told = Conversation(isn=2**32 - 4)
    outstanding_at_broker(told, ack_at=50, forwarded=50.1)
    assert parts_ms(told.write(tmp_path))["broker_nagle"] == pytest.approx(40)


def test_nagle_holds_at_the_sender_too(tmp_path: Path) -> None:
    told = Conversation()
    told.frame(0, False, -5, 0, offset=0, size=4)
    told.frame(0, True, 1, 2, offset=0, size=10, ack=4)
    told.message(3, 3, 3, 55)
    told.frame(0, False, 40, 43, ack=10)
    told.frame(0, True, 43, 45, offset=10, size=100, ack=4)
    told.publish(0, True, 10, 110, 43, 45)
    told.frame(1, False, 45, 55, offset=0, size=100)
    told.publish(1, False, 0, 100, 45, 55)
    assert parts_ms(told.write(tmp_path)) == near(sender_nagle=40, wire_to_broker=2, wire_to_subscriber=10)


def test_what_was_lost_and_sent_again_waited_for_it(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 0, 0, 230)
    told.frame(0, True, 0, None, offset=0, size=100)
    told.frame(0, True, 200, 210, offset=0, size=100)
    told.publish(0, True, 0, 100, 0, 210, segments=2)
    told.frame(1, False, 210, 230, offset=0, size=100)
    told.publish(1, False, 0, 100, 210, 230)
    assert parts_ms(told.write(tmp_path)) == near(
        retransmission_to_broker=200, wire_to_broker=10, wire_to_subscriber=20)


def test_data_behind_a_hole_waits_until_the_hole_is_filled(tmp_path: Path) -> None:
    told = Conversation()
    told.message(5, 5, 5, 230)
    told.frame(0, True, 0, None, offset=0, size=50)
    told.frame(0, True, 5, 15, offset=50, size=100)
    told.frame(0, True, 200, 210, offset=0, size=50)
    told.publish(0, True, 50, 150, 5, 210)
    told.frame(1, False, 210, 230, offset=0, size=100)
    told.publish(1, False, 0, 100, 210, 230)
    assert parts_ms(told.write(tmp_path)) == near(
        retransmission_to_broker=195, wire_to_broker=10, wire_to_subscriber=20)


def test_data_that_overtook_waits_for_what_it_has_overtaken(tmp_path: Path) -> None:
    told = Conversation()
    told.message(5, 5, 5, 60)
    told.frame(0, True, 0, 40, offset=0, size=50)
    told.frame(0, True, 5, 15, offset=50, size=100)
    told.publish(0, True, 50, 150, 5, 40)
    told.frame(1, False, 40, 60, offset=0, size=100)
    told.publish(1, False, 0, 100, 40, 60)
    assert parts_ms(told.write(tmp_path)) == near(
        wire_to_broker=10, retransmission_to_broker=25, wire_to_subscriber=20)


def test_the_later_segments_of_a_large_message_wait_in_the_socket(tmp_path: Path) -> None:
    told = Conversation(nagle=False)
    told.message(0, 0, 0, 70)
    told.frame(0, True, 0, 10, offset=0, size=1448)
    told.frame(0, True, 40, 50, offset=1448, size=552)
    told.publish(0, True, 0, 2000, 0, 50, segments=2)
    told.frame(1, False, 50, 70, offset=0, size=2000)
    told.publish(1, False, 0, 2000, 50, 70)
    assert parts_ms(told.write(tmp_path)) == near(sender_socket=40, wire_to_broker=10, wire_to_subscriber=20)


def test_the_later_segments_of_a_message_wait_for_what_was_lost_before_them(tmp_path: Path) -> None:
    told = Conversation(nagle=False)
    told.message(0, 0, 0, 250)
    told.frame(0, True, 0, None, offset=0, size=1448)
    told.frame(0, True, 200, 210, offset=0, size=1448)
    told.frame(0, True, 220, 230, offset=1448, size=552)
    told.publish(0, True, 0, 2000, 0, 230, segments=3)
    told.frame(1, False, 230, 250, offset=0, size=2000)
    told.publish(1, False, 0, 2000, 230, 250)
    assert parts_ms(told.write(tmp_path)) == near(
        retransmission_to_broker=200, sender_socket=20, wire_to_broker=10, wire_to_subscriber=20)


def test_nagle_holds_the_last_segment_of_a_message_while_a_small_one_is_not_acknowledged(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 0, 0, 110)
    told.frame(0, True, -2, 5, offset=0, size=10)
    told.frame(0, True, 0, 10, offset=10, size=1448)
    told.frame(0, False, 30, 40, ack=10)
    told.frame(0, True, 40, 50, offset=1458, size=552)
    told.publish(0, True, 10, 2010, 0, 50, segments=2)
    told.frame(1, False, 50, 110, offset=0, size=2000)
    told.publish(1, False, 0, 2000, 50, 110)
    assert parts_ms(told.write(tmp_path)) == near(sender_nagle=40, wire_to_broker=10, wire_to_subscriber=60)


def test_a_window_holds_before_the_small_segment_that_nagle_waits_for_is_sent(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 0, 0, 75)
    told.frame(0, True, -5, 5, offset=0, size=1448)
    # Ready at 0, but a window lets the bytes before it go only at 20; for their acknowledgement Nagle waits until 60.
    told.frame(0, True, 20, 30, offset=1448, size=30)
    told.frame(0, False, 50, 60, ack=1478)
    told.frame(0, True, 60, 65, offset=1478, size=100)
    told.publish(0, True, 1478, 1578, 60, 65)
    told.frame(1, False, 65, 75, offset=0, size=100)
    told.publish(1, False, 0, 100, 65, 75)
    assert parts_ms(told.write(tmp_path)) == near(
        sender_socket=20, sender_nagle=40, wire_to_broker=5, wire_to_subscriber=10)


def qos2(told: Conversation, forwarded: float, received: float) -> None:
    """A message at QoS 2: PUBLISH at the broker at 10, PUBREL there at 30."""
    told.message(0, 0, 0, received, qos=2)
    told.frame(0, True, 0, 10, offset=0, size=100)
    told.publish(0, True, 0, 100, 0, 10, qos=2, packet_id=7)
    told.frame(0, True, 20, 30, offset=100, size=4)
    told.packet(0, True, "PUBREL", 100, 104, 20, 30, packet_id=7)
    told.frame(1, False, forwarded, forwarded + 10, offset=0, size=100)
    told.publish(1, False, 0, 100, forwarded, forwarded + 10, qos=2, packet_id=3)
    told.frame(1, False, forwarded + 20, forwarded + 30, offset=100, size=4)
    told.packet(1, False, "PUBREL", 100, 104, forwarded + 20, forwarded + 30, packet_id=3)


def test_qos2_waits_for_the_pubrel_at_broker_and_client(tmp_path: Path) -> None:
    told = Conversation()
    qos2(told, forwarded=31, received=61)
    assert parts_ms(told.write(tmp_path)) == near(
        wire_to_broker=10, handshake=20, broker=1, wire_to_subscriber=10, release=20)


def test_a_broker_that_hands_on_at_the_publish_waits_for_no_handshake(tmp_path: Path) -> None:
    told = Conversation()
    qos2(told, forwarded=12, received=42)
    assert parts_ms(told.write(tmp_path)) == near(wire_to_broker=10, broker=2, wire_to_subscriber=10, release=20)


def test_a_client_that_delivers_at_the_publish_waits_for_no_release(tmp_path: Path) -> None:
    told = Conversation(deliver_on_release=False)
    qos2(told, forwarded=31, received=41)
    assert "release" not in parts_ms(told.write(tmp_path))


def test_a_full_window_holds_a_message_until_the_acknowledgement_that_makes_room(tmp_path: Path) -> None:
    told = Conversation(max_inflight=1)
    told.message(0, 0, 0, 50, qos=1)
    told.frame(1, False, -5, 5, offset=0, size=100)
    told.publish(1, False, 0, 100, -5, 5, qos=1, packet_id=1, publisher=9)
    told.frame(0, True, 0, 10, offset=0, size=100)
    told.publish(0, True, 0, 100, 0, 10, qos=1, packet_id=1)
    told.frame(1, True, 29, 39, offset=0, size=4, ack=100)
    told.packet(1, True, "PUBACK", 0, 4, 29, 39, packet_id=1)
    told.frame(1, False, 40, 50, offset=100, size=100, ack=4)
    told.publish(1, False, 100, 200, 40, 50, qos=1, packet_id=2)
    assert parts_ms(told.write(tmp_path)) == near(
        wire_to_broker=10, broker_window=29, broker=1, wire_to_subscriber=10)


def test_a_relayed_message_has_the_parts_of_both_its_legs(tmp_path: Path) -> None:
    told = Conversation(groups=[{"name": "p", "count": 1}, {"name": "s", "count": 1, "relay": {"topic_suffix": "_2"}}])
    told.carried()
    # Client 1 sends on what it had at 33.4; client 0 receives its own message back.
    told.message(0, 1, 3, 60, subscriber=0)
    told.frame(1, True, 34, 44, offset=0, size=102)
    told.publish(1, True, 0, 102, 34, 44, topic="t_2")
    told.frame(0, False, 45, 60, offset=0, size=102)
    told.publish(0, False, 0, 102, 45, 60, topic="t_2")
    recording = told.write(tmp_path)
    table = metrics.attribution(recording)
    assert dict(table.select("subscriber", "legs").rows()) == {1: 1, 0: 2}
    row = table["subscriber"].to_list().index(0)
    assert parts_ms(recording, row) == near(
        schedule=1, session=2.6, sender_socket=0.5, queue_to_broker=3, wire_to_broker=20, broker=1.5,
        queue_to_subscriber=6, wire_to_subscriber=25, delivery=0.4)


def test_a_message_sent_again_after_a_reconnect_was_lost_meanwhile(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 0, 0, 530, qos=1)
    told.frame(0, True, 0, None, offset=0, size=100)
    told.publish(0, True, 0, 100, 0, None, qos=1, packet_id=1)
    told.frame(0, True, 500, 510, offset=20, size=100, connection=5)
    told.publish(0, True, 20, 120, 500, 510, qos=1, packet_id=1, dup=True, connection=5)
    told.frame(1, False, 510, 530, offset=0, size=100)
    told.publish(1, False, 0, 100, 510, 530, qos=1, packet_id=1)
    assert parts_ms(told.write(tmp_path)) == near(
        retransmission_to_broker=500, wire_to_broker=10, wire_to_subscriber=20)


@pytest.mark.parametrize("repeated", [False, True])
def test_payloads_without_identity_are_matched_by_order(tmp_path: Path, repeated: bool) -> None:
    told = Conversation()
    for n in range(3):
        at, place = 100 * n, 20 * n
        told.message(at, at, at, at + 20, sequence=n, payload_bytes=4, identified="order", qos=1)
        nobody = {"publisher": None, "sequence": None, "qos": 1, "packet_id": n + 1, "payload_bytes": 4}
        told.frame(0, True, at, at + 10, offset=place, size=20)
        # What had never left the socket before a reconnect comes with DUP only.
        told.publish(0, True, place, place + 20, at, at + 10, dup=repeated and n == 1, **nobody)
        told.frame(1, False, at + 10, at + 20, offset=place, size=20)
        told.publish(1, False, place, place + 20, at + 10, at + 20, **nobody)
    recording = told.write(tmp_path)
    for row in range(3):
        assert parts_ms(recording, row) == near(wire_to_broker=10, wire_to_subscriber=10)


def test_instants_that_contradict_each_other_are_moved_and_counted(tmp_path: Path) -> None:
    told = Conversation()
    # The writing was noted 0.2 ms after the frame, the reception 0.1 ms before its arrival.
    told.message(0, 0, 0.2, 29.9)
    told.frame(0, True, 0, 10, offset=0, size=100)
    told.publish(0, True, 0, 100, 0, 10)
    told.frame(1, False, 10, 30, offset=0, size=100)
    told.publish(1, False, 0, 100, 10, 30)
    recording = told.write(tmp_path)
    assert parts_ms(recording) == near(session=0.2, wire_to_broker=9.8, wire_to_subscriber=19.9)
    assert metrics.attribution(recording)["adjusted_ns"].to_list() == [0.3 * MS]


def test_what_is_not_known_is_null_and_says_why(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path, [Message(sequence=n) for n in range(3)]))
    table = metrics.attribution(recording)
    assert table.height == 3
    assert table["wire_to_broker_ns"].null_count() == 3
    assert "not recorded" in str(metrics.attribution_gap(recording))


def test_a_delivery_without_packets_is_null_beside_others(tmp_path: Path) -> None:
    told = Conversation()
    told.carried()
    told.message(0, 0, 0, 10, sequence=1)
    assert metrics.attribution(told.write(tmp_path))["broker_ns"].null_count() == 1


def test_bands_divide_each_levels_messages_by_their_latency(tmp_path: Path) -> None:
    table = pl.DataFrame({
        "qos": [0] * 200, "phase": ["measurement"] * 200, "latency_ns": [n * MS for n in range(1, 201)],
        "adjusted_ns": [0] * 200, **{part: [0] * 200 for part in PARTS}}).with_columns(broker_ns="latency_ns")
    bands = metrics.attribution_by_band(table).filter(pl.col("part") == "broker_ns")
    assert bands["messages"].to_list() == [100, 80, 18, 2]
    assert bands["mean_ms"].to_list() == pytest.approx([50.5, 140.5, 189.5, 199.5])
    assert bands["share_percent"].to_list() == pytest.approx([100.0] * 4)


def test_bands_are_those_of_ranks_and_equal_latencies_are_divided_in_their_order() -> None:
    random = np.random.default_rng(1)
    for size in (0, 1, 2, 3, 9, 10, 11, 99, 100, 101, 1000, 1234):
        for kinds in (1, 2, 7, 10_000):
            latencies = random.integers(0, kinds, size)
            ranks = np.empty(size)
            ranks[np.argsort(latencies, kind="stable")] = np.arange(size)
            expected = sum((ranks / size >= high / 100).astype(int) for _, high in BANDS[:-1]) if size else ranks
            assert (bands(latencies) == expected).all(), (size, kinds)


def test_the_stack_is_as_high_as_the_mean_latency(tmp_path: Path) -> None:
    told = Conversation()
    told.carried()
    table = metrics.attribution(told.write(tmp_path))
    titles = {metric.name: metric.title for metric in metrics.ATTRIBUTION}
    upright = figures.attribution_stack(metrics.attribution_by_qos(table), titles)
    assert sum(trace.y[0] for trace in upright.data) == pytest.approx(33.4)
    lying = figures.attribution_stack(metrics.attribution_by_band(table), titles)
    assert sum(trace.x[0] for trace in lying.data) == pytest.approx(33.4)
