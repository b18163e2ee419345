"""Which connections are MQTT, how much of them is known, and captures whose frames or times are out of order."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from captures import ACK, MS, SYN, Client, Wire, _ip, _packet, pair, publish
from test_import_messages import fates, read

CONNECT = _packet(0x10, b"\0\4MQTT\4\2\0\x3c\0\1p")


def in_parts(wire: Wire, parts: list[bytes]) -> Client:
    """A publisher whose CONNECT comes in these parts."""
    publisher = Client(wire, "10.0.0.2", 40_000)
    publisher.open()
    for part in parts:
        publisher.up(part)
    publisher.down(_packet(0x20, b"\0\0"))
    return publisher


@pytest.mark.parametrize("parts", [
    [CONNECT[:3], CONNECT[3:]], [bytes((byte,)) for byte in CONNECT], [CONNECT[:1], CONNECT[1:], publish("t", b"x")],
    [CONNECT[:12], CONNECT[12:]],
], ids=["micropython", "byte by byte", "one byte first", "cut before the keep-alive"])
def test_a_connect_in_parts_is_one_at_any_port(tmp_path: Path, parts: list[bytes]) -> None:
    wire = Wire(port=8886)
    publisher = in_parts(wire, parts)
    subscriber = Client(wire, "10.0.0.3", 40_001)
    subscriber.connect("s")
    subscriber.subscribe("t")
    publisher.up(publish("t", b"m"))
    subscriber.down(publish("t", b"m"))
    recording = read(wire, tmp_path)
    assert fates(recording)[-1][1:] == ("s", "delivered")
    assert recording.control_packets.filter(kind="CONNECT").height == 2
    assert recording.run["validity"] == {"valid": True, "reasons": []}


def test_what_only_begins_like_a_connect_is_something_else(tmp_path: Path) -> None:
    wire = Wire(port=9999)
    for number, head in enumerate((b"\x10\x11", b"\x10\x11\0\5", b"\x10")):
        other = Client(wire, "10.0.0.2", 41_000 + number)
        other.open()
        other.up(head)
        other.up(b"something else, for sure")
    recording = read(wire, tmp_path)
    assert [row["protocol"] for row in recording.run["details"]["import"]["other_connections"]] == ["other"]
    assert recording.control_packets.is_empty()


def test_a_connection_to_a_known_broker_is_mqtt_whatever_it_begins_with(tmp_path: Path) -> None:
    wire = Wire(port=8886)
    early, late = Client(wire, "10.0.0.4", 40_002), Client(wire, "10.0.0.5", 40_003)
    # Open before the capture began, one heard before the broker is known and one behind it.
    early.up(publish("t", b"0"))
    _, subscriber = pair(wire)
    for number in range(1, 6):
        for client in (early, late):
            client.up(publish("t", b"%d" % number))
        subscriber.down(publish("t", b"%d" % number) * 2)
    recording = read(wire, tmp_path)
    sent = recording.control_packets.filter(kind="PUBLISH", direction="to_broker")
    assert sent.height >= 9
    assert recording.messages.filter(fate="foreign").is_empty()
    assert not recording.run["validity"]["valid"]
    reasons = recording.run["validity"]["reasons"]
    assert any(text.startswith("2 of 4 connections to the broker were open before") for text in reasons), reasons


def test_a_connection_that_begins_with_its_connect_is_known_whole(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    publisher.up(publish("t", b"m"))
    subscriber.down(publish("t", b"m"))
    # As most filters leave it: no SYN, no bare acknowledgement.
    wire.frames = [(at, packet) for at, packet in wire.frames if len(packet) > 40]
    recording = read(wire, tmp_path)
    assert fates(recording) == [(0, "s", "delivered")]
    assert recording.run["validity"] == {"valid": True, "reasons": []}


def test_skipped_bytes_are_those_of_the_connections_that_are_spoken_of(tmp_path: Path) -> None:
    wire = Wire()
    whole = Client(wire, "10.0.0.2", 40_000)
    whole.connect("p")
    whole.up(b"\xff" * 100)
    joined = Client(wire, "10.0.0.3", 40_001)
    joined.up(b"\xff" * 7 + publish("t", b"a") + publish("t", b"b") + publish("t", b"c"))
    reasons = read(wire, tmp_path).run["validity"]["reasons"]
    told = next(reason for reason in reasons if reason.startswith("1 of 2 connections"))
    assert "and 7 bytes of them were skipped" in told


def test_a_clock_that_is_set_back_is_named_and_the_run_is_not_valid(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for number in range(6):
        if number == 3:
            wire.wait(-3_600_000)
        publisher.up(publish("t", b"%d" % number))
        subscriber.down(publish("t", b"%d" % number))
    recording = read(wire, tmp_path)
    assert fates(recording) == [(number, "s", "delivered") for number in range(6)]
    assert not recording.run["validity"]["valid"]
    assert recording.run["validity"]["reasons"][0].startswith("The clock of made went back by")
    assert recording.messages["latency_ns"].to_list() == [MS] * 6


@pytest.mark.parametrize("stamped", [True, False])
def test_a_clock_that_is_set_back_by_a_little_is_told_by_what_its_senders_count(stamped: bool, tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for number in range(40):
        if number == 20:
            wire.wait(-7.5)
        stamps = (100 + number, 1) if stamped else None
        publisher.up(publish("t", b"%d" % number, qos=1, identifier=number + 1), stamps=stamps)
        publisher.down(_packet(0x40, struct.pack(">H", number + 1)), stamps=stamps)
        subscriber.down(publish("t", b"%d" % number), stamps=stamps)
    reasons = read(wire, tmp_path).run["validity"]["reasons"]
    assert any("have earlier times than frames that the same end of their connection sent before them" in reason and
               "the clock went back" in reason for reason in reasons), reasons


def test_frames_out_of_the_order_of_their_times_are_put_in_order(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for number in range(20):
        publisher.up(publish("t", b"%d" % number, qos=1, identifier=number + 1))
        publisher.down(_packet(0x40, struct.pack(">H", number + 1)))
        subscriber.down(publish("t", b"%d" % number))
    for place in range(10, len(wire.frames) - 3, 4):
        wire.frames[place:place + 3] = reversed(wire.frames[place:place + 3])
    recording = read(wire, tmp_path)
    assert fates(recording) == [(number, "s", "delivered") for number in range(20)]
    assert recording.packets["marks"].null_count() == recording.packets.height
    assert recording.run["validity"] == {"valid": True, "reasons": []}
    assert any("stored out of the order of their times" in text for text in recording.run["warnings"])


def test_frames_that_a_mirror_shows_twice_are_no_retransmissions(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for number in range(10):
        publisher.up(publish("t", b"%d" % number))
        subscriber.down(publish("t", b"%d" % number))
    # Sent again in earnest, with a number of its own.
    at_ns, packet = [frame for frame in wire.frames if len(frame[1]) > 40][-1]
    wire.frames.append((at_ns + 200 * MS, packet))
    shown = []
    for number, (at_ns, packet) in enumerate(wire.frames, 1):
        named = packet[:4] + struct.pack(">H", number) + packet[6:]
        shown += [(at_ns, named), (at_ns + 3_000, named)]
    wire.frames = shown
    recording = read(wire, tmp_path)
    assert fates(recording) == [(number, "s", "delivered") for number in range(10)]
    marked = recording.packets.filter(recording.packets["marks"].is_not_null())
    assert marked.height == 1 and "retransmission" in marked["marks"][0]
    assert any("frames stand in the capture twice: a mirror port" in text for text in recording.run["warnings"])


@pytest.mark.parametrize("kind", ["quic", "zeromq"])
def test_what_is_not_read_is_named_without_advice_that_does_not_help(tmp_path: Path, kind: str) -> None:
    wire = Wire(port=14_567)
    if kind == "zeromq":
        other = Client(wire, "10.0.0.2", 40_000)
        other.open()
        other.up(b"\xff" + bytes(7) + b"\1\x7f\3\1NULL" + bytes(40), ACK)
    else:
        initial = b"\xc3\0\0\0\1" + bytes(1_200)
        datagram = struct.pack(">HHHH", 40_000, wire.port, 8 + len(initial), 0) + initial
        packet = bytearray(_ip(IPv4Address("10.0.0.2"), wire.broker, datagram))
        packet[9] = 17
        wire.put(bytes(packet))
    (reason,) = read(wire, tmp_path).run["validity"]["reasons"]
    assert ("QUIC on UDP port 14567" if kind == "quic" else "ZeroMQ on port 14567") in reason
    assert "--broker-port" not in reason


def test_an_equal_number_of_a_syn_long_after_is_another_connection(tmp_path: Path) -> None:
    # Tools that write captures, and hosts without a clock for their numbers, begin each connection with the same one.
    wire = Wire()
    subscriber = Client(wire, "10.0.0.3", 40_001)
    subscriber.connect("s")
    subscriber.subscribe("t")
    for _ in range(2):
        publisher = Client(wire, "10.0.0.2", 40_000)
        publisher.connect("p")
        for number in range(5):
            publisher.up(publish("t", b"m%d" % number))
            subscriber.down(publish("t", b"m%d" % number))
        wire.wait(400_000)
    recording = read(wire, tmp_path)
    assert recording.control_packets.filter(kind="CONNECT").height == 3
    assert [row[2] for row in fates(recording)] == ["delivered"] * 10
    assert recording.packets["connection"].n_unique() == 3


def test_a_syn_without_an_answer_is_repeated_for_two_minutes(tmp_path: Path) -> None:
    wire = Wire()
    client = Client(wire, "10.0.0.2", 40_000)
    client._sent = client._received = 0
    for waited_s in (1, 2, 4, 8, 16, 32):
        client.up(b"", SYN)
        wire.wait(waited_s * 1000)
    client.connect("p")
    recording = read(wire, tmp_path)
    assert recording.packets["connection"].n_unique() == 1
