"""Captures of MQTT in tunnels, as mobile networks, overlays and mirrors carry it: what is inside counts, once."""

from __future__ import annotations

import struct
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from captures import ETHERNET, RAW, Wire, assert_ten_measured, pair, send_ten
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording


def ip(protocol: int, payload: bytes) -> bytes:
    """A packet between the tunnel's ends."""
    ends = IPv4Address("172.16.0.1").packed + IPv4Address("172.16.0.2").packed
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + ends + payload


def udp(port: int, payload: bytes) -> bytes:
    return ip(17, struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload)


def ethernet(packet: bytes) -> bytes:
    return bytes(12) + b"\x08\0" + packet


def gtp_u(packet: bytes) -> bytes:
    """With a sequence number and the container of a session in 5G (3GPP TS 38.415)."""
    head = struct.pack(">BBHI", 0x36, 255, 8 + len(packet), 7)
    return udp(2152, head + b"\0\1\0\x85" + b"\1\x10\x09\0" + packet)


def vxlan(packet: bytes) -> bytes:
    return udp(4789, b"\x08\0\0\0\0\0\5\0" + ethernet(packet))


def geneve(packet: bytes) -> bytes:
    return udp(6081, b"\1\0\x65\x58\0\0\5\0" + b"\1\2\3\0" + ethernet(packet))


def erspan(packet: bytes) -> bytes:
    return ip(47, b"\x10\0\x88\xbe\0\0\0\1\x10\5\0\1\0\0\0\0" + ethernet(packet))


def gre(packet: bytes) -> bytes:
    return ip(47, b"\x30\0\x08\0\0\0\0\x09\0\0\0\1" + packet)


def conversation(wire: Wire) -> Wire:
    return send_ten(wire, *pair(wire, ("plant/#",)))


def read(wire: Wire, tmp_path: Path, link_type: int = RAW) -> Recording:
    file = wire.save(tmp_path / "field.pcap", link_type=link_type)
    return Recording.open(import_evidence("capture", [file], tmp_path / "recording", lambda line: None).directory)


@pytest.mark.parametrize("tunnel", [gtp_u, vxlan, geneve, erspan, gre])
def test_mqtt_in_a_tunnel_is_measured_and_frames_have_their_size_on_the_link(
    tunnel: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    wire = conversation(Wire())
    (tmp_path / "plain").mkdir()
    plain = read(wire, tmp_path / "plain")
    wire.frames = [(at, tunnel(packet)) for at, packet in wire.frames]
    recording = read(wire, tmp_path)
    assert_ten_measured(recording)
    assert recording.packets["frame_bytes"].to_list() == [len(packet) for _, packet in wire.frames]
    assert recording.packets["ip_bytes"].to_list() == plain.packets["ip_bytes"].to_list()
    assert recording.run["details"]["import"]["frames_not_read"] == {}


@pytest.mark.parametrize("tunnel", [gtp_u, vxlan, erspan])
def test_a_capture_before_and_behind_a_tunnel_counts_each_frame_once(
    tunnel: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    wire = conversation(Wire())
    # Hosts that number no packets: nothing but the bytes tells that a frame is a copy.
    count = len(wire.frames)
    wire.frames = [frame for at, packet in wire.frames for frame in ((at, packet), (at + 50_000, tunnel(packet)))]
    recording = read(wire, tmp_path)
    assert_ten_measured(recording)
    assert recording.run["details"]["import"]["frames_seen_on_another_link"] == count
    marks = recording.packets["marks"].drop_nulls().to_list()
    assert not any("retransmission" in mark for mark in marks), marks


def test_what_a_tunnel_hides_is_named_with_its_frames(tmp_path: Path) -> None:
    wire = conversation(Wire())
    wire.frames.append((wire.now_ns, ip(50, bytes(40))))
    wire.frames.append((wire.now_ns, udp(2152, b"\x30\xff\0\4\0\0\0\7" + bytes(4))))
    recording = read(wire, tmp_path)
    assert recording.run["validity"]["reasons"] == [
        "GTP-U that carries no IP: 1 frames not read.", "IPsec ESP: 1 frames not read."]


def test_tags_of_a_provider_and_sessions_of_dsl_are_passed_over(tmp_path: Path) -> None:
    wire = conversation(Wire())
    heads = (bytes(12) + b"\x88\xa8\0\1\x81\0\0\2\x08\0",
             bytes(12) + b"\x81\0\0\2\x88\x64\x11\0\0\1\0\x64\0\x21")
    wire.frames = [(at, heads[number % 2] + packet) for number, (at, packet) in enumerate(wire.frames)]
    assert_ten_measured(read(wire, tmp_path, ETHERNET))


def test_frames_of_an_open_wi_fi_are_read_behind_radiotap(tmp_path: Path) -> None:
    wire = conversation(Wire())
    head = b"\0\0\x08\0\0\0\0\0" + b"\x88\1" + bytes(24) + b"\xaa\xaa\3\0\0\0\x08\0"
    wire.frames = [(at, head + packet + b"fcs!") for at, packet in wire.frames]
    wire.frames.append((wire.now_ns, b"\0\0\x08\0\0\0\0\0" + b"\x80\0" + bytes(40)))
    assert_ten_measured(read(wire, tmp_path, 127))
