"""Captures in which sessions end: what they owed is lost, and what lives on is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from captures import ACK, FIN, SYN, Client, Wire, answer, disconnect, publish, publish_5
from commands import mqttlab
from mqttlab.recording import Recording
from mqttlab.report.text import verdict
from test_import_gaps import conversation, fates, read, reasons

BROKER = b"\x0a\0\0\1"


def rows(recording: Recording) -> list[tuple[int, str, str | None]]:
    """Sequence, fate and cause of every row."""
    return recording.messages.select("sequence", "fate", "cause").sort("sequence").rows()


class Scene:
    """A publisher, and a subscriber that got message 0 and not message 1."""

    def __init__(self, qos: int = 1, *, acknowledged: bool = True, level: int = 4, clean: bool = True,
                 expiry_s: int | None = None) -> None:
        self.wire, self.qos, self.count = Wire(), qos, 0
        self.publisher = Client(self.wire, "10.0.0.2", 40_000)
        self.subscriber = Client(self.wire, "10.0.0.3", 40_001)
        self.publisher.connect("p")
        self.subscriber.connect("s", level=level, clean=clean, expiry_s=expiry_s)
        self.level = level
        self.subscriber.subscribe("plant/#")
        self.deliver(self.publish())
        self.publish(acknowledged=acknowledged)

    def publish(self, *, acknowledged: bool = True) -> bytes:
        """A message is sent and, at QoS 1, acknowledged."""
        content = b"%08d" % self.count
        self.count += 1
        self.publisher.up(publish("plant/a", content, qos=self.qos, identifier=self.count))
        if self.qos and acknowledged:
            self.publisher.down(answer(4, self.count))
        return content

    def deliver(self, content: bytes) -> None:
        """A message comes from the broker."""
        if self.level == 5:
            self.subscriber.down(publish_5("plant/a", content))
        else:
            self.subscriber.down(publish("plant/a", content, qos=self.qos, identifier=9))

    def leave(self) -> None:
        """The subscriber goes."""
        self.subscriber.up(disconnect(), FIN | ACK)
        self.subscriber.down(b"", FIN | ACK)
        self.subscriber.up(b"")

    def fates(self, tmp_path: Path) -> list[tuple[int, str, str | None]]:
        """What became of the messages, and that nothing is missing."""
        recording = read(self.wire.save(tmp_path / "made.pcap"), tmp_path)
        assert verdict(recording)[0] == "valid"
        return rows(recording)


DELIVERED = (0, "delivered", None)


def test_what_was_not_delivered_to_a_clean_session_before_it_ended_is_lost(tmp_path: Path) -> None:
    scene = Scene()
    scene.leave()
    scene.publish()
    assert scene.fates(tmp_path) == [DELIVERED, (1, "lost", "session_ended"), (2, "no_receiver", None)]


def test_a_disconnect_ends_a_clean_session_although_its_end_of_stream_is_not_captured(tmp_path: Path) -> None:
    scene = Scene(qos=0)
    scene.subscriber.up(disconnect())
    # What the broker sent before it knew makes nobody a subscriber.
    scene.deliver(b"%08d" % 1)
    scene.publish()
    assert scene.fates(tmp_path) == [DELIVERED, (1, "delivered", None), (2, "no_receiver", None)]


def test_what_the_publisher_still_has_is_under_way_when_the_session_ends(tmp_path: Path) -> None:
    scene = Scene(acknowledged=False)
    scene.leave()
    assert scene.fates(tmp_path) == [DELIVERED, (1, "under_way", None)]


def test_a_persistent_session_still_owes_what_was_acknowledged(tmp_path: Path) -> None:
    scene = Scene(clean=False)
    scene.leave()
    scene.publish()
    assert scene.fates(tmp_path) == [DELIVERED, (1, "under_way", None), (2, "under_way", None)]


def test_at_qos_0_nobody_knows_what_a_persistent_session_without_a_connection_gets(tmp_path: Path) -> None:
    scene = Scene(qos=0, clean=False)
    scene.leave()
    assert scene.fates(tmp_path) == [DELIVERED, (1, "unknown", "connection_lost")]


@pytest.mark.parametrize(("present", "fate"), [(True, "under_way"), (False, "lost")])
def test_session_present_decides_what_is_still_owed(present: bool, fate: str, tmp_path: Path) -> None:
    scene = Scene(clean=False)
    scene.leave()
    scene.wire.wait(5_000)
    Client(scene.wire, "10.0.0.3", 40_002).connect("s", clean=False, present=present)
    assert scene.fates(tmp_path) == [DELIVERED, (1, fate, None if present else "session_ended")]


def test_a_refused_clean_connect_leaves_the_old_session_as_it_was(tmp_path: Path) -> None:
    scene = Scene(clean=False)
    scene.leave()
    scene.wire.wait(5_000)
    refused = Client(scene.wire, "10.0.0.3", 40_002)
    refused.connect("s", clean=True, code=5)
    refused.down(b"", FIN | ACK)
    refused.up(b"", FIN | ACK)
    scene.publish()
    assert scene.fates(tmp_path) == [DELIVERED, (1, "under_way", None), (2, "under_way", None)]


def test_what_a_client_subscribes_to_before_its_connect_is_answered_is_its_new_session_s(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001)
    publisher.connect("p")
    subscriber.connect("s", answered=False)
    subscriber.up(b"\x82\x0c\0\1\0\7plant/#\1")
    subscriber.down(b"\x20\2\0\0")
    subscriber.down(b"\x90\3\0\1\0")
    publisher.up(publish("plant/a", b"1"))
    publisher.up(b"\xc0\0")
    assert rows(read(wire.save(tmp_path / "made.pcap"), tmp_path)) == [(0, "under_way", None)]


@pytest.mark.parametrize(("expiry_s", "clean", "fate"), [
    # MQTT 5 begins anew with clean start, and keeps the session for as long as it says.
    (None, True, "lost"), (None, False, "lost"), (2, True, "lost"), (60, True, "under_way"),
    (0xFFFF_FFFF, False, "under_way"),
])
def test_a_session_of_mqtt_5_ends_when_it_has_expired(
    expiry_s: int | None, clean: bool, fate: str, tmp_path: Path
) -> None:
    scene = Scene(level=5, clean=clean, expiry_s=expiry_s)
    scene.leave()
    scene.wire.wait(10_000)
    scene.publisher.up(b"\xc0\0")
    scene.publisher.down(b"\xd0\0")
    assert scene.fates(tmp_path) == [DELIVERED, (1, fate, None if fate == "under_way" else "session_ended")]


@pytest.mark.parametrize(("qos", "fate"), [(0, "lost"), (1, "unknown")])
def test_a_subscription_that_was_given_up_owes_nothing_at_qos_0(qos: int, fate: str, tmp_path: Path) -> None:
    scene = Scene(qos)
    scene.subscriber.unsubscribe("plant/#")
    scene.publish()
    assert scene.fates(tmp_path) == [DELIVERED, (1, fate, "not_subscribed"), (2, "no_receiver", None)]


def test_a_topic_that_another_filter_still_covers_is_not_given_up(tmp_path: Path) -> None:
    scene = Scene(qos=0)
    scene.subscriber.subscribe("plant/+")
    scene.subscriber.unsubscribe("plant/#")
    assert scene.fates(tmp_path) == [DELIVERED, (1, "under_way", None)]


def test_a_client_that_comes_back_and_subscribes_again_has_lost_what_the_broker_had_before(tmp_path: Path) -> None:
    scene = Scene()
    scene.leave()
    scene.subscriber = Client(scene.wire, "10.0.0.3", 40_002)
    scene.subscriber.connect("s")
    scene.subscriber.subscribe("plant/#")
    # Of another QoS, so that the order says nothing.
    scene.qos = 0
    scene.deliver(scene.publish())
    assert scene.fates(tmp_path) == [DELIVERED, (1, "lost", "session_ended"), (2, "delivered", None)]


@pytest.mark.parametrize("goes_on", [True, False])
def test_who_receives_a_message_is_unknown_where_a_connection_was_open_before_the_capture_began(
    goes_on: bool, tmp_path: Path
) -> None:
    wire = Wire()
    subscriber = Client(wire, "10.0.0.3", 40_001)
    subscriber.connect("s")
    subscriber.subscribe("plant/#")
    wire.frames.clear()
    publisher = Client(wire, "10.0.0.2", 40_000)
    publisher.connect("p")
    if goes_on:
        # All that is seen of the subscriber is that it was there.
        subscriber.up(b"\xc0\0")
        subscriber.down(b"\xd0\0")
    for number in range(3):
        publisher.up(publish("plant/a", b"%08d" % number))
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert fates(recording) == ({"unknown": 3} if goes_on else {"no_receiver": 3})
    assert verdict(recording)[0] == ("not valid" if goes_on else "valid")


def is_from_broker(packet: bytes) -> bool:
    return packet[12:16] == BROKER


@pytest.mark.parametrize(("kept", "missing", "found"), [
    (lambda packet: not is_from_broker(packet), "what the broker sent is not", {"unknown": 20}),
    (is_from_broker, "what clients sent to the broker is not", {"foreign": 20}),
])
def test_a_capture_of_one_direction_says_so_and_knows_no_fate(
    kept: Callable[[bytes], bool], missing: str, found: dict[str, int], tmp_path: Path
) -> None:
    wire = conversation(20)
    wire.frames = [frame for frame in wire.frames if kept(frame[1])]
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert f"One direction is missing: {missing} in the capture of 2 of 2 connections" in reasons(recording)
    assert fates(recording) == found


@pytest.mark.parametrize(("to_broker", "found"), [(True, {"unknown": 20}), (False, {"unknown": 20, "foreign": 0})])
def test_one_direction_of_the_subscriber_s_connection_alone_is_missed(
    to_broker: bool, found: dict[str, int], tmp_path: Path
) -> None:
    wire, subscriber = conversation(20), b"\x0a\0\0\3"
    # Of the subscriber only one direction: what it sends, or what is sent to it, of which nothing carries a message.
    wire.frames = [
        (at, packet) for at, packet in wire.frames
        if subscriber not in packet[12:20]
        or (packet[12:16] == subscriber if to_broker else packet[16:20] == subscriber and b"plant" not in packet)]
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert "in the capture of 1 of 2 connections" in reasons(recording)
    assert fates(recording) == {fate: count for fate, count in found.items() if count}


def test_a_client_that_nobody_answers_misses_no_direction(tmp_path: Path) -> None:
    wire = conversation(3)
    Client(wire, "10.0.0.7", 40_007).up(b"", SYN)
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert verdict(recording)[0] == "valid"


def test_scripts_learn_from_the_exit_status_what_an_import_is_worth(tmp_path: Path) -> None:
    whole = conversation(3).save(tmp_path / "whole.pcap")
    cut = conversation(3).save(tmp_path / "cut.pcap", snap=80)
    early = tmp_path / "early.pcap"
    early.write_bytes(cut.read_bytes()[:-5])

    def status(*arguments: object) -> int:
        return mqttlab(*arguments).returncode

    where = tmp_path / "recordings"
    # What ends early is incomplete before it is anything else.
    for file, expected in ((whole, 0), (cut, 6), (early, 3), (tmp_path / "none.pcap", 2)):
        assert status("import", "capture", "--no-html", "--output", where / file.stem, file) == expected, file
    # Whoever reads a recording was answered, whatever the answer is worth.
    assert status("report", where / "cut", "--html", tmp_path / "cut.html") == 0
    assert status("report", where / "early", "--html", tmp_path / "early.html") == 0
    assert status("compare", where / "whole", where / "whole") == 0
