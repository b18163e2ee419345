"""Deliveries in captures: what the receiver's host has acknowledged, and which copy of it."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from captures import ACK, FIN, MS, RST, Client, Wire, answer, disconnect, pair, publish
from mqttlab import metrics
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report import headline
from unchecked import without_checks


def read(wire: Wire, tmp_path: Path, *options: str) -> Recording:
    file = wire.save(tmp_path / "made.pcap")
    outcome = import_evidence("capture", [file], tmp_path / "recording", lambda line: None, options=options)
    return Recording.open(outcome.directory)


def silent_pair(wire: Wire, *, clean: bool = True) -> tuple[Client, Client]:
    """A publisher and a subscriber whose host acknowledges what it has up to here, and nothing behind."""
    publisher, subscriber = pair(wire, clean=clean)
    return publisher, subscriber.silent()


def fates(recording: Recording) -> list[tuple[str, str | None]]:
    """Fate and cause of each message, in order."""
    rows = recording.messages.sort("sequence", "subscriber")
    return [(str(fate), cause and str(cause)) for fate, cause in rows.select("fate", "cause").rows()]


DELIVERED, UNDER_WAY = ("delivered", None), ("under_way", None)
LOST, BROKEN = ("lost", "not_acknowledged"), ("unknown", "no_acknowledgement")


def first_and_second(wire: Wire, qos: int = 0, *, clean: bool = True) -> tuple[Client, Client]:
    """Two messages; the first is acknowledged by the subscriber's host, the second is not."""
    publisher, subscriber = silent_pair(wire, clean=clean)
    for number in (1, 2):
        publisher.up(publish("t", b"%d" % number, qos=qos, identifier=number))
        subscriber.down(publish("t", b"%d" % number, qos=qos, identifier=number))
        if number == 1:
            subscriber.acknowledge()
    return publisher, subscriber


def test_at_qos_0_a_message_that_was_repeated_in_vain_is_lost(tmp_path: Path) -> None:
    wire = Wire()
    _, subscriber = first_and_second(wire)
    wire.wait(300)
    subscriber.down(publish("t", b"2"), again=6)
    wire.wait(30_000)
    subscriber.down(b"", ACK | RST)
    recording = read(wire, tmp_path)
    assert fates(recording) == [DELIVERED, LOST]
    assert "1 lost (the receiving host never acknowledged it (TCP), and its connection ended)" in headline.undelivered(
        headline.told(recording).numbers.flows[0])
    told = recording.run["details"]["import"]["acknowledgements"]
    assert (told["deliveries_never_acknowledged"], told["deliveries_lost"]) == (1, 1)


def test_without_a_repetition_the_end_of_the_connection_proves_nothing(tmp_path: Path) -> None:
    wire = Wire()
    _, subscriber = first_and_second(wire)
    subscriber.down(b"", ACK | RST)
    assert fates(read(wire, tmp_path)) == [DELIVERED, BROKEN]


def test_what_an_open_connection_has_not_acknowledged_is_under_way(tmp_path: Path) -> None:
    wire = Wire()
    _, subscriber = first_and_second(wire)
    wire.wait(300)
    subscriber.down(publish("t", b"2"), again=6)
    assert fates(read(wire, tmp_path)) == [DELIVERED, UNDER_WAY]


def test_what_nothing_repeated_before_a_session_ended_may_have_arrived(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = silent_pair(wire)
    publisher.up(publish("t", b"1", qos=1))
    publisher.down(answer(4))
    subscriber.down(publish("t", b"1", qos=1))
    subscriber.down(b"", ACK | RST)
    assert fates(read(wire, tmp_path)) == [BROKEN]


@pytest.mark.parametrize(("qos", "clean", "second"), [(1, False, UNDER_WAY), (2, False, UNDER_WAY), (1, True, LOST)])
def test_a_session_that_goes_on_still_owes_what_was_not_acknowledged(
    tmp_path: Path, qos: int, clean: bool, second: tuple[str, str | None],
) -> None:
    wire = Wire()
    publisher, subscriber = silent_pair(wire, clean=clean)
    for number in (1, 2):
        publisher.up(publish("t", b"%d" % number, qos=qos, identifier=number))
        publisher.down(answer(4 if qos == 1 else 5, number))
        subscriber.down(publish("t", b"%d" % number, qos=qos, identifier=number))
        if number == 1:
            subscriber.acknowledge()
            subscriber.up(answer(4 if qos == 1 else 5, number))
            if qos == 2:
                subscriber.down(answer(6, number))
                subscriber.acknowledge()
                subscriber.up(answer(7, number))
    subscriber.down(publish("t", b"2", qos=qos, identifier=2), again=8)
    wire.wait(10_000)
    subscriber.down(b"", ACK | RST)
    first, later = fates(read(wire, tmp_path))
    assert (first, later) == (DELIVERED, second)


def test_a_redelivery_over_a_new_connection_is_the_delivery(tmp_path: Path) -> None:
    wire = Wire()
    _, subscriber = first_and_second(wire, qos=1, clean=False)
    subscriber.down(publish("t", b"2", qos=1, identifier=2), again=8)
    wire.wait(5_000)
    subscriber.down(b"", ACK | RST)
    back = Client(wire, "10.0.0.3", 40_002)
    back.connect("s", clean=False, present=True)
    at_ns = wire.now_ns
    back.down(publish("t", b"2", qos=1, identifier=2, dup=True))
    back.up(answer(4, 2))
    recording = read(wire, tmp_path)
    assert fates(recording) == [DELIVERED, DELIVERED]
    start_ns = recording.layout["started_unix_ns"]
    assert recording.messages.sort("sequence")["received_ns"][1] == at_ns - start_ns


@pytest.mark.parametrize(("echo", "copy"), [(100, 0), (400, 1), (900, 2)])
def test_the_latency_is_that_of_the_copy_whose_time_stamp_is_echoed(tmp_path: Path, echo: int, copy: int) -> None:
    wire = Wire()
    publisher, subscriber = silent_pair(wire)
    at_ns = wire.now_ns
    publisher.up(publish("t", b"1"))
    copies_ns = []
    for number, stamp in enumerate((100, 400, 900)):
        copies_ns.append(wire.now_ns)
        subscriber.down(publish("t", b"1"), stamps=(stamp, 5), again=6 if number else 0)
        wire.wait(300)
    subscriber.acknowledge(stamps=(6, echo))
    recording = read(wire, tmp_path)
    assert recording.messages["latency_ns"].to_list() == [copies_ns[copy] - at_ns]
    assert recording.run["details"]["import"]["acknowledgements"]["copies_by_round_trip"] == 0


def test_without_time_stamps_the_copy_is_told_by_its_round_trip_and_that_is_said(tmp_path: Path) -> None:
    wire = Wire()
    subscriber = Client(wire, "10.0.0.3", 40_001, acknowledges=False)
    # Round trips of 200 ms from the handshake on.
    subscriber.connect("s", answered=False)
    subscriber.down(b"\x20\2\0\0")
    wire.wait(199)
    subscriber.up(b"\x82\6\0\1\0\1t\0")
    subscriber.down(b"\x90\3\0\1\0")
    wire.wait(199)
    subscriber.silent().acknowledge()
    publisher = Client(wire, "10.0.0.2", 40_000)
    publisher.connect("p")
    publisher.up(publish("t", b"1"))
    subscriber.down(publish("t", b"1"))
    wire.wait(199)
    subscriber.acknowledge()
    publisher.up(publish("t", b"2"))
    at_ns = wire.now_ns
    subscriber.down(publish("t", b"2"))
    wire.wait(999)
    subscriber.down(publish("t", b"2"), again=6)
    wire.wait(199)
    # A third copy that crosses the acknowledgement of the second.
    subscriber.down(publish("t", b"2"), again=6)
    wire.wait(4)
    subscriber.acknowledge()
    recording = read(wire, tmp_path)
    second_ns = at_ns + 1_000 * MS - recording.layout["started_unix_ns"]
    assert recording.messages.sort("sequence")["received_ns"][1] == second_ns
    assert any("time stamps do not say which copy" in text for text in recording.run["warnings"])


def test_a_message_behind_a_repeated_segment_arrives_with_it_and_one_before_it_does_not_wait(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = silent_pair(wire)
    for number in (1, 2, 3):
        publisher.up(publish("t", b"%d" % number))
    first_ns = wire.now_ns
    for number in (1, 2, 3):
        subscriber.down(publish("t", b"%d" % number), stamps=(10 * number, 5))
    wire.wait(250)
    again_ns = wire.now_ns
    subscriber.down(publish("t", b"2"), stamps=(300, 5), again=12)
    wire.wait(50)
    subscriber.acknowledge(stamps=(6, 300))
    recording = read(wire, tmp_path)
    start_ns = recording.layout["started_unix_ns"]
    assert recording.messages.sort("sequence")["received_ns"].to_list() == [
        at_ns - start_ns for at_ns in (first_ns, again_ns, again_ns)]


def test_an_acknowledgement_to_a_dead_publisher_is_none(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = silent_pair(wire)
    subscriber.acknowledges = True
    publisher.silent()
    for number in (1, 2):
        publisher.up(publish("t", b"%d" % number, qos=1, identifier=number))
        publisher.down(answer(4, number))
        if number == 1:
            publisher.acknowledge()
    recording = read(wire, tmp_path)
    assert recording.messages.sort("sequence")["acknowledged_ns"].is_null().to_list() == [False, True]


def test_a_subscription_whose_answer_never_arrived_has_no_time(tmp_path: Path) -> None:
    wire = Wire()
    alive, dead = Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001)
    for client, name in ((alive, "a"), (dead, "d")):
        client.connect(name)
        if client is dead:
            client.silent()
        client.subscribe("t")
    events = read(wire, tmp_path).events
    assert events.filter(kind="suback")["client"].to_list() == [0]
    assert events.filter(kind="subscribe").height == 2


@pytest.mark.parametrize(("qos", "clean", "fate"), [(0, True, LOST), (1, True, LOST), (1, False, UNDER_WAY)])
def test_a_message_that_its_publisher_repeated_in_vain_never_reached_the_broker(
    tmp_path: Path, qos: int, clean: bool, fate: tuple[str, str | None],
) -> None:
    wire = Wire()
    subscriber, publisher = Client(wire, "10.0.0.3", 40_001), Client(wire, "10.0.0.2", 40_000)
    subscriber.connect("s")
    subscriber.subscribe("t")
    publisher.connect("p", clean=clean)
    whole = publish("t", b"1", qos=qos)
    publisher.up(whole)
    wire.wait(300)
    publisher.up(whole, again=len(whole))
    wire.wait(20_000)
    publisher.up(b"", ACK | RST)
    # The broker's host has acknowledged nothing behind the CONNECT.
    assert fates(read(wire, tmp_path, "--captured-at", "clients")) == [fate]


def test_a_capture_without_acknowledgements_shows_what_passed_and_says_so_first(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = first_and_second(wire)
    publisher.up(disconnect())
    subscriber.up(disconnect())
    wire.frames = [(at, packet) for at, packet in wire.frames if len(packet) > 40]
    recording = read(wire, tmp_path)
    assert fates(recording) == [DELIVERED, DELIVERED]
    assert "without acknowledgements of TCP: delivered is what passed there" in headline.told(recording).timing


def test_at_the_receivers_own_host_a_message_has_arrived_when_it_is_captured(tmp_path: Path) -> None:
    wire = Wire()
    first_and_second(wire)
    assert fates(read(wire, tmp_path, "--captured-at", "clients")) == [DELIVERED, DELIVERED]


def test_a_capture_at_the_broker_says_that_latencies_end_there(tmp_path: Path) -> None:
    wire = Wire()
    _, subscriber = first_and_second(wire)
    wire.wait(50)
    subscriber.acknowledge()
    recording = read(wire, tmp_path, "--captured-at", "broker")
    assert "captured at the broker, as was said: latencies end there" in headline.told(recording).timing


def test_a_fin_does_not_end_what_may_still_be_acknowledged(tmp_path: Path) -> None:
    wire = Wire()
    _, subscriber = first_and_second(wire)
    subscriber.down(b"", ACK | FIN)
    wire.wait(80)
    subscriber.acknowledge()
    recording = read(wire, tmp_path)
    assert fates(recording) == [DELIVERED, DELIVERED]
    assert metrics.headline(recording).flows[0].undelivered_percent == 0


def test_a_recording_that_an_earlier_version_imported_says_so_and_a_new_one_does_not(tmp_path: Path) -> None:
    wire = Wire()
    first_and_second(wire)
    recording = read(wire, tmp_path)
    words = "an earlier version imported it: importing the files again may change its numbers"
    assert words not in headline.told(recording).notes
    file = tmp_path / "recording" / "run.json"
    run = json.loads(file.read_text())
    del run["details"]["import"]["rules"]
    file.write_text(json.dumps(run))
    without_checks(tmp_path / "recording")
    assert words in headline.told(Recording.open(tmp_path / "recording")).notes


def test_of_two_captures_the_one_nearer_to_the_receiver_says_when_a_message_arrived(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001, acknowledges=False)
    publisher.connect("p")
    away = IPv4Address("10.0.0.3").packed
    # Each answer of the subscriber, 40 ms away, comes 80 ms later at least.
    subscriber.connect("s", answered=False)
    subscriber.down(b"\x20\2\0\0")
    wire.wait(99)
    subscriber.up(b"\x82\6\0\1\0\1t\0")
    subscriber.down(b"\x90\3\0\1\0")
    wire.wait(99)
    subscriber.up(b"")
    for number in range(5):
        publisher.up(publish("t", b"%d" % number))
        subscriber.down(publish("t", b"%d" % number))
        wire.wait(99)
        subscriber.up(b"")
    at_broker = wire.save(tmp_path / "broker.pcap")
    own = Wire()
    handshake = [frame for frame in wire.frames if away in (frame[1][12:16], frame[1][16:20])][:3]
    # The handshake took no time on its way; it stays apart.
    seen = [frame for frame in wire.frames if away in (frame[1][12:16], frame[1][16:20]) and frame not in handshake]
    own.frames = sorted(((at_ns + (40 * MS if packet[16:20] == away else -40 * MS), packet) for at_ns, packet in seen),
                        key=lambda frame: frame[0])
    at_client = own.save(tmp_path / "client.pcap")
    for files in ([at_broker, at_client], [at_client, at_broker]):
        outcome = import_evidence("capture", files, tmp_path / files[0].stem, lambda line: None)
        recording = Recording.open(outcome.directory)
        assert recording.messages["fate"].to_list() == ["delivered"] * 5
        assert recording.messages["latency_ns"].to_list() == [41 * MS] * 5, recording.run["warnings"]
