"""Captures that do not hold everything: what they miss is unknown, and the verdict says so."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from captures import ACK, FIN, MS, PSH, RST, Client, Wire, answer, disconnect, pair, publish, publish_5
from mqttlab import metrics
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.text import verdict


def read(file: Path, tmp_path: Path, *options: str) -> Recording:
    outcome = import_evidence("capture", [file], tmp_path / "recording", lambda line: None, options=options)
    return Recording.open(outcome.directory)


def fates(recording: Recording) -> Counter[str]:
    return Counter(recording.messages["fate"].to_list())


def reasons(recording: Recording) -> str:
    assert recording.run["validity"]["valid"] is False
    word, said = verdict(recording)
    assert word != "valid"
    return "\n".join(said)


def conversation(messages: int = 80, payload: int = 60, topic: str = "plant/hall/temperature") -> Wire:
    """A publisher at QoS 1 and a subscriber that gets everything."""
    wire = Wire()
    publisher, subscriber = pair(wire, ("plant/#",))
    for number in range(messages):
        content = b"%08d" % number + b"." * (payload - 8)
        publisher.up(publish(topic, content, qos=1, identifier=number + 1), PSH | ACK)
        publisher.down(answer(4, number + 1), PSH | ACK)
        subscriber.down(publish(topic, content, qos=1, identifier=number + 1), PSH | ACK)
        subscriber.up(answer(4, number + 1), PSH | ACK)
    for client in (publisher, subscriber):
        client.up(disconnect(), FIN | ACK)
        client.down(b"", FIN | ACK)
        client.up(b"")
    return wire


def test_a_whole_capture_is_valid_and_counts_what_the_clients_do(tmp_path: Path) -> None:
    recording = read(conversation().save(tmp_path / "made.pcap"), tmp_path)
    assert fates(recording) == {"delivered": 80}
    assert verdict(recording)[0] == "valid"


@pytest.mark.parametrize("snap", [60, 80, 96])
def test_what_a_snap_length_cut_off_is_unknown_and_not_lost(snap: int, tmp_path: Path) -> None:
    recording = read(conversation().save(tmp_path / "made.pcap", snap=snap), tmp_path)
    found = fates(recording)
    assert found["lost"] == found["under_way"] == 0, found
    words = reasons(recording)
    assert "bytes of the broker's connections were sent and are not in the capture" in words
    assert "capture whole frames" in words


@pytest.mark.parametrize("seed", range(8))
def test_frames_that_the_capture_missed_lose_no_message(seed: int, tmp_path: Path) -> None:
    wire, dice = conversation(), random.Random(seed)
    wire.frames = [frame for frame in wire.frames if dice.random() > 0.05]
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    found = fates(recording)
    assert found["lost"] == 0, found
    # Nothing is believed that was not there.
    assert recording.control_packets.filter(kind="PUBLISH").height <= 160
    assert found["delivered"] > 60
    assert "not in the capture" in reasons(recording)


def test_a_gap_in_equal_messages_matches_none_of_them_with_another(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for number in range(20):
        wire.wait(1_000)
        publisher.up(publish("plant/a", b"same"))
        subscriber.down(publish("plant/a", b"same"))
        if number == 10:
            del wire.frames[-1]
    subscriber.up(b"")
    messages = read(wire.save(tmp_path / "made.pcap"), tmp_path).messages
    assert messages.filter(fate="lost").is_empty()
    latencies = messages["latency_ns"].drop_nulls()
    assert latencies.len() >= 10
    assert latencies.max() == MS


def test_what_the_broker_lacks_itself_is_a_loss_of_the_network_and_no_gap_of_the_capture(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for number in range(6):
        message = publish("t", b"%08d" % number)
        if number == 3:
            publisher.lose_up(message)
            continue
        publisher.up(message)
        publisher.down(b"")
        if number < 3:
            subscriber.down(message)
            subscriber.up(b"")
    publisher.up(b"", RST)
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    # Neither the lost one nor those behind it came to the broker's program.
    assert fates(recording) == {"delivered": 3}
    assert verdict(recording)[0] == "valid"


def test_the_end_of_a_capture_is_no_loss(tmp_path: Path) -> None:
    wire = conversation(10)
    last = max(place for place, (_, frame) in enumerate(wire.frames) if b"00000009" in frame)
    wire.frames = wire.frames[:last]
    assert fates(read(wire.save(tmp_path / "made.pcap"), tmp_path)) == {"delivered": 9, "under_way": 1}


@pytest.mark.parametrize("said", ["of the frame", "of the interface"])
def test_frames_that_the_capture_says_it_dropped_make_messages_unknown(said: str, tmp_path: Path) -> None:
    wire = conversation(10)
    last = max(place for place, (_, frame) in enumerate(wire.frames) if b"00000009" in frame)
    wire.frames = wire.frames[:last] + wire.frames[last + 5:last + 6]
    drops: dict[int, int] = {last: 5} if said == "of the frame" else {}
    file = wire.save_pcapng(tmp_path / "made.pcapng", dropped_before=drops, interface_drops=0 if drops else 5)
    recording = read(file, tmp_path)
    assert fates(recording) == {"delivered": 9, "unknown": 1}
    assert "The capture reports 5 dropped frames" in reasons(recording)


def test_a_capture_that_starts_inside_a_large_random_payload_invents_nothing(tmp_path: Path) -> None:
    dice = random.Random(7)
    wire = Wire()
    publisher, subscriber = pair(wire, ("plant/#",))
    large = publish("plant/picture", dice.randbytes(1_000_000))
    for start in range(0, len(large), 1448):
        publisher.up(large[start:start + 1448])
    for start in range(0, len(large), 1448):
        subscriber.down(large[start:start + 1448])
    for number in range(20):
        content = publish("plant/a", b"%08d" % number)
        publisher.up(content)
        subscriber.down(content)
    wire.frames = wire.frames[40:]
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert Counter(recording.control_packets["kind"].to_list()) == {"PUBLISH": 41}
    assert fates(recording)["delivered"] >= 19
    assert fates(recording)["lost"] == 0
    assert "were open before the capture began" in reasons(recording)


def test_a_control_packet_that_cannot_be_one_ends_the_trust(tmp_path: Path) -> None:
    wire = Wire()
    publisher = Client(wire, "10.0.0.2", 40_000)
    publisher.connect("p")
    # A PINGREQ has no body, and AUTH is of MQTT 5.
    publisher.up(b"\xc0\x90\x4e" + b"\xf0" * 700)
    publisher.up(publish("plant/hall/temperature", b"1"))
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert recording.control_packets.filter(direction="to_broker")["kind"].to_list() == ["CONNECT", "PUBLISH"]
    assert "were not a control packet" in reasons(recording)


@pytest.mark.parametrize(("hello", "name"), [
    (bytes.fromhex("1603010200010001fc0303") + bytes(500), "TLS"),
    (b"GET /mqtt HTTP/1.1\r\nHost: b\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\r\n", "WebSocket"),
])
def test_what_hides_mqtt_on_the_broker_s_port_is_said(hello: bytes, name: str, tmp_path: Path) -> None:
    wire = Wire()
    client = Client(wire, "10.0.0.2", 40_000)
    client.open()
    client.up(hello)
    client.down(b"\x16\x03\x03\x00\x7a" + bytes(100))
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert recording.control_packets.is_empty()
    assert {
        "TLS": "1 connection to port 1883 (number 0) with TLS: the messages are not imported, because",
        "WebSocket": "1 connections to the broker's port carry WebSocket: their messages are not imported.",
    }[name] in reasons(recording)


def test_topic_aliases_are_followed_in_each_direction_of_each_connection(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire, ("plant/#",), level=5)
    publisher.up(publish_5("plant/a", b"0", alias=1) + publish_5("plant/b", b"1", alias=2))
    for number in range(2, 8):
        publisher.up(publish_5("", b"%d" % number, alias=1 + number % 2))
    for number in range(8):
        subscriber.down(publish_5("plant/a" if number % 2 == 0 else "plant/b", b"%d" % number, alias=7 + number % 2))
    again = Client(wire, "10.0.0.2", 40_005)
    again.connect("p", level=5)
    again.up(publish_5("", b"?", alias=1))
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    delivered = recording.messages.filter(fate="delivered").sort("sequence")
    assert delivered["topic"].to_list() == ["plant/a", "plant/b"] * 4
    assert "1 PUBLISH packets name their topic by an alias that was defined where nothing" in reasons(recording)


def test_a_capture_without_times_has_no_latencies(tmp_path: Path) -> None:
    recording = read(conversation(5).save_pcapng(tmp_path / "made.pcapng", timed=False), tmp_path)
    assert fates(recording) == {"delivered": 5}
    assert recording.messages["latency_ns"].null_count() == 5
    assert recording.packets["ack_rtt_ns"].null_count() == recording.packets.height
    assert recording.network_metrics.filter(pl.col("metric").str.ends_with("_s")).is_empty()
    assert "have no time (simple packet blocks): there are no latencies" in reasons(recording)
    assert metrics.application(recording)["messages_delivered"].to_list() == [5]
    assert metrics.application(recording)["latency_ms_mean"].to_list() == [None]


def test_other_link_types_and_tunnels_are_named_with_their_frames(tmp_path: Path) -> None:
    file = conversation(2).save(tmp_path / "made.pcap", link_type=195)
    recording = read(file, tmp_path)
    assert f"link type 195 (IEEE 802.15.4): {recording.packets.height} frames not read." in reasons(recording)


def test_frames_in_tunnels_are_read(tmp_path: Path) -> None:
    plain = read(conversation(5).save(tmp_path / "plain.pcap"), tmp_path / "plain")
    wire = conversation(5)
    outer = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, 47, 0, b"\1\1\1\1", b"\2\2\2\2")
    wire.frames = [
        (at, outer[:2] + struct.pack(">H", 24 + len(packet)) + outer[4:] + b"\0\0\x08\0" + packet)
        for at, packet in wire.frames]
    inside = read(wire.save(tmp_path / "gre.pcap"), tmp_path / "gre")
    assert inside.messages.equals(plain.messages)


def test_a_fragment_is_said_and_what_it_took_away_is_unknown(tmp_path: Path) -> None:
    wire = conversation(20)
    whole, wire.frames = wire.frames, []
    for at, packet in whole:
        if len(packet) < 100:
            wire.frames.append((at, packet))
            continue
        for part, start in enumerate(range(0, len(packet) - 20, 48)):
            body = packet[20 + start:20 + start + 48]
            more = 0x2000 if start + 48 < len(packet) - 20 else 0
            header = packet[:2] + struct.pack(">HHH", 20 + len(body), 7, more | start // 8) + packet[8:20]
            wire.frames.append((at + part, header + body))
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert fates(recording)["lost"] == 0
    assert "are IP fragments, which are not put together" in reasons(recording)
