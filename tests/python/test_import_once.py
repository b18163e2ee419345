"""One connection is one, however often and under whatever addresses captures show it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import polars as pl
import pytest

from captures import ACK, ETHERNET, FIN, MS, RST, SLL, START_NS, SYN, Client, Wire, answer, pair, publish
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from test_import_messages import fates

Frames = list[tuple[int, bytes]]
BROKER, DEVICE, OUTSIDE = (IPv4Address(f"{net}.1").packed for net in ("10.0.0", "10.0.7", "10.0.99"))
LAST_MILE_MS = 60
DEVICE_ISN, READER_ISN = (0x5A5A_0001, 0xC3C3_0001), (77, 0x1234_5678)


def imported(tmp_path: Path, *files: Path) -> Recording:
    number = len(list(tmp_path.glob("recording*")))
    outcome = import_evidence("capture", list(files), tmp_path / f"recording{number}", lambda line: None)
    return Recording.open(outcome.directory)


def saved(frames: Frames, path: Path, link_type: int = 101) -> Path:
    wire = Wire()
    wire.frames = sorted(frames, key=lambda frame: frame[0])
    return wire.save(path, link_type=link_type)


class Far(Client):
    """A client so far from the broker, where the frames are captured, that its answers come later."""

    away_ms = 0.0

    def down(self, payload: bytes, flags: int = ACK) -> None:
        super().down(payload, flags)
        self._wire.wait(2 * self.away_ms)


def conversation(*, count: int = 10, away_ms: float = 0) -> Wire:
    """A device at 10.0.7.1 publishes at QoS 1; a client beside the broker receives."""
    wire = Wire()
    device = Far(wire, "10.0.7.1", 50_000, acknowledges=False, isn=DEVICE_ISN)
    reader = Client(wire, "10.0.0.3", 40_001, isn=READER_ISN)
    device.away_ms = away_ms
    reader.connect("reader")
    reader.subscribe("t")
    device.connect("device")
    for number in range(count):
        wire.wait(1_000)
        device.up(publish("t", b"message %d" % number, qos=1, identifier=number + 1))
        reader.down(publish("t", b"message %d" % number))
        device.down(answer(4, number + 1))
        device.up(b"")
    return wire


def translated(packet: bytes, *, port: int = 61_000) -> bytes:
    """Behind the NAT: address and port of the device are the NAT's."""
    sends = packet[12:16] == DEVICE
    packet = packet.replace(DEVICE, OUTSIDE, 1)
    place = 20 if sends else 22
    return packet[:8] + bytes([packet[8] - 3]) + packet[9:place] + struct.pack(">H", port) + packet[place + 2:]


def sixth(packet: bytes) -> bytes:
    """The same segment over IPv6 (RFC 7915): 64:ff9b::/96 in front of each address; the NAT has clamped a SYN's MSS."""
    prefix = IPv6Address("64:ff9b::").packed[:12]
    header = struct.pack(">IHBB", 6 << 28, len(packet) - 20, 6, packet[8])
    return header + prefix + packet[12:16] + prefix + packet[16:20] + packet[20:]


def both_sides(
    wire: Wire, outside: Callable[[bytes], bytes] = translated, *, later_ms: float = LAST_MILE_MS
) -> tuple[Frames, Frames]:
    """The frames inside, of the device alone, and outside. The device is so far away from the NAT."""
    inside, beyond = [], []
    for number, (at_ns, packet) in enumerate(wire.frames, 1):
        packet = packet[:4] + struct.pack(">H", number % 65_536) + packet[6:]
        if DEVICE not in packet[12:20]:
            beyond.append((at_ns, packet))
            continue
        way = -1 if packet[12:16] == DEVICE else 1
        inside.append((at_ns + way * int(later_ms * MS), packet))
        beyond.append((at_ns, outside(packet)))
    return inside, beyond


def without_numbers(frames: Frames) -> Frames:
    return [(at_ns, packet[:4] + b"\0\0" + packet[6:] if packet[0] == 0x45 else packet) for at_ns, packet in frames]


def is_whole(recording: Recording, count: int = 10) -> None:
    assert fates(recording) == [(number, "reader", "delivered") for number in range(count)]
    assert sorted(client["name"] for client in recording.layout["clients"]) == ["device", "reader"]
    assert recording.run["validity"] == {"valid": True, "reasons": []}


@pytest.mark.parametrize("later_ms", [0.02, 60, 3_000])
@pytest.mark.parametrize("numbered", [True, False])
def test_a_nat_between_two_captures_makes_one_connection_of_two_however_far(
    later_ms: float, numbered: bool, tmp_path: Path
) -> None:
    sides = both_sides(conversation(away_ms=later_ms), later_ms=later_ms)
    if not numbered:
        sides = tuple(without_numbers(side) for side in sides)
    inside, outside = (saved(side, tmp_path / f"{name}.pcap")
                       for name, side in zip(("in", "out"), sides, strict=True))
    recording = imported(tmp_path, inside, outside)
    is_whole(recording)
    latencies = recording.messages["latency_ns"] / MS
    assert latencies.min() == pytest.approx(later_ms + 1) and latencies.max() == pytest.approx(later_ms + 1)
    assert recording.packets["marks"].drop_nulls().to_list() == []
    assert "1 connections are in the capture before and after address translation" in str(recording.run["warnings"])
    # In any order of files.
    is_whole(imported(tmp_path, outside, inside))


def test_translation_from_ipv4_to_ipv6_leaves_one_connection(tmp_path: Path) -> None:
    inside, outside = both_sides(conversation(away_ms=LAST_MILE_MS), lambda packet: sixth(translated(packet)))
    is_whole(imported(tmp_path, saved(inside, tmp_path / "v4.pcap"), saved(outside, tmp_path / "v6.pcap")))
    inside, outside = both_sides(conversation(away_ms=LAST_MILE_MS), translated)
    is_whole(imported(tmp_path, saved([(at, sixth(packet)) for at, packet in inside], tmp_path / "six.pcap"),
                      saved(outside, tmp_path / "four.pcap")))


def test_captures_that_begin_in_the_middle_of_a_translated_connection_show_it_once(tmp_path: Path) -> None:
    sides = both_sides(conversation(count=20, away_ms=LAST_MILE_MS))
    begin_ns = START_NS + 8_500 * MS
    files = [saved([frame for frame in side if frame[0] > begin_ns], tmp_path / f"{name}.pcap")
             for name, side in zip(("in", "out"), sides, strict=True)]
    recording = imported(tmp_path, *files)
    assert recording.packets["connection"].drop_nulls().n_unique() == 2
    assert recording.messages["fate"].to_list() == ["delivered"] * recording.messages.height
    assert 12 <= recording.messages.height <= 13


def test_two_devices_alike_behind_different_captures_stay_two(tmp_path: Path) -> None:
    files = []
    for number, address in enumerate(("10.0.7.1", "10.0.8.1")):
        wire = Wire()
        wire.wait(number * 5)
        # Neither has a clock for its sequence numbers; the broker has.
        device = Client(wire, address, 4_097, isn=(6_510, 0xC3C3_0001 + 9_999 * number))
        device.connect("")
        for count in range(5):
            wire.wait(1_000)
            device.up(publish("t", b"on", qos=1, identifier=count + 1))
            device.down(answer(4, count + 1))
        files.append(wire.save(tmp_path / f"{number}.pcap"))
    recording = imported(tmp_path, *files)
    assert recording.messages.height == 10 and recording.messages["publisher"].n_unique() == 2


def test_a_nat_uses_its_port_again_for_another_connection(tmp_path: Path) -> None:
    wire = conversation(count=5)
    second = Client(wire, "10.0.7.1", 50_007, isn=(0x7777_0001, 0x8888_0001))
    wire.wait(1_000)
    second.connect("second")
    second.up(publish("t", b"of the second"))
    sides = both_sides(wire)
    recording = imported(tmp_path, *(saved(side, tmp_path / f"{name}.pcap")
                                     for name, side in zip(("in", "out"), sides, strict=True)))
    assert recording.messages.height == 6
    assert sorted(client["name"] for client in recording.layout["clients"]) == ["device", "reader", "second"]


def test_a_balancer_with_direct_routing_changes_only_ethernet_addresses(tmp_path: Path) -> None:
    frames = []
    for at_ns, packet in conversation().frames:
        header, other = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0", b"\2\0\0\0\0\3\2\0\0\0\0\1\x08\0"
        frames.append((at_ns, header + packet))
        # Only what is sent to the balanced address passes the balancer.
        if packet[16:20] == BROKER:
            frames.append((at_ns + 150_000, other + packet))
    recording = imported(tmp_path, saved(frames, tmp_path / "switch.pcap", ETHERNET))
    is_whole(recording)
    assert recording.packets["marks"].drop_nulls().to_list() == []


def mirrored(frames: Frames, lag_ns: int) -> Frames:
    return frames + [(at_ns + lag_ns, packet) for at_ns, packet in frames]


@pytest.mark.parametrize("lag_ns", [3_000, 200_000])
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("begun", [True, False])
def test_a_mirror_shows_every_frame_twice_and_packets_need_no_numbers(
    lag_ns: int, version: int, begun: bool, tmp_path: Path
) -> None:
    wire = conversation()
    # One acknowledgment and one segment are sent again in earnest.
    frames = wire.frames if begun else [frame for frame in wire.frames if frame[0] > START_NS + 500 * MS]
    again = [packet for _, packet in frames[-4:]]
    frames = [*frames, (frames[-1][0] + 300 * MS, again[0]), (frames[-1][0] + 301 * MS, again[3])]
    if version == 6:
        frames = [(at_ns, sixth(packet)) for at_ns, packet in frames]
    recording = imported(tmp_path, saved(mirrored(frames, lag_ns), tmp_path / "mirror.pcap"))
    once = imported(tmp_path, saved(frames, tmp_path / "once.pcap"))
    assert recording.packets.filter(hop=0).height == once.packets.height == len(frames)
    marks = [one.packets.filter(hop=0)["marks"].drop_nulls().to_list() for one in (recording, once)]
    assert marks[0] == marks[1] and len(marks[0]) >= 1, marks
    assert fates(recording) == fates(once) and len(fates(once)) == 10
    assert f"{len(frames)} frames stand in the capture twice" in str(recording.run["warnings"])


def test_equal_acknowledgments_without_other_twins_are_what_the_receiver_sent(tmp_path: Path) -> None:
    wire = conversation(count=3)
    at_ns, packet = wire.frames[-1]
    wire.frames += [(at_ns + number * 3_000, packet) for number in (1, 2, 3)]
    recording = imported(tmp_path, wire.save(tmp_path / "made.pcap"))
    assert recording.packets["marks"].drop_nulls().to_list() == ["duplicate_ack"] * 3


Restart = Callable[[Client, Client], None]


def device_that_restarts(wire: Wire, *, second_isn: tuple[int, int], between: Restart | None) -> None:
    """Five messages, a restart with the same port, five more; what the ends send meanwhile."""
    reader = Client(wire, "10.0.0.3", 40_001)
    reader.connect("reader")
    reader.subscribe("t")
    device = Client(wire, "10.0.7.1", 4_097, isn=(6_510, 507_000))
    for first, isn in ((0, None), (5, second_isn)):
        if isn is not None:
            device, old = Client(wire, "10.0.7.1", 4_097, isn=isn), device
            if between is not None:
                between(old, device)
        device.connect("device", clean=True)
        for number in range(first, first + 5):
            wire.wait(1_000)
            device.up(publish("t", b"%d" % number, qos=1, identifier=number + 1))
            device.down(answer(4, number + 1))
            reader.down(publish("t", b"%d" % number))
            if number == 6 and isn is not None:
                # The broker's end of the old connection, repeated late.
                old.down(b"", FIN | ACK)
                old.down(b"", RST)


def reset(old: Client, new: Client) -> None:
    old.down(b"", FIN | ACK)
    old.down(b"", RST | ACK)


def half_open(old: Client, new: Client) -> None:
    """RFC 9293 §3.5.1, RFC 5961 §4: SYN, challenge acknowledgment, RST, SYN."""
    new._sent = new._received = 0
    new.up(b"", SYN)
    old.down(b"")
    old.up(b"", RST)


def lost_answer(old: Client, new: Client) -> None:
    reset(old, new)
    new._sent = new._received = 0
    new.up(b"", SYN)


@pytest.mark.parametrize("isn", [
    (6_510, 9_900_000), (6_510, 507_000 + (1 << 28)), (1 << 31, 9_900_000), (7_000, 600_000)])
@pytest.mark.parametrize("between", [None, reset, half_open, lost_answer])
def test_a_device_that_restarts_with_its_port_has_another_connection(
    isn: tuple[int, int], between: Restart | None, tmp_path: Path
) -> None:
    wire = Wire()
    device_that_restarts(wire, second_isn=isn, between=between)
    recording = imported(tmp_path, wire.save(tmp_path / "made.pcap"))
    assert fates(recording) == [(number, "reader", "delivered") for number in range(10)]
    assert recording.run["validity"] == {"valid": True, "reasons": []}
    assert recording.packets["connection"].n_unique() == 3
    device = next(number for number, client in enumerate(recording.layout["clients"]) if client["name"] == "device")
    closes = recording.events.filter(pl.col("kind") == "disconnect", pl.col("client") == device)
    # What the old connection's end sends late does not end the new one.
    assert closes.height == (0 if between is None else 1), closes


def test_an_old_syn_does_not_end_the_connection_that_answers_it(tmp_path: Path) -> None:
    wire = conversation(count=3)
    device = Client(wire, "10.0.7.1", 50_000, isn=(1_000, 0))
    device._sent = device._received = 0
    device.up(b"", SYN)
    more = conversation(count=6)
    seen = len(conversation(count=3).frames)
    wire.frames += [(at_ns + 10 * MS, packet) for at_ns, packet in more.frames[seen:]]
    recording = imported(tmp_path, wire.save(tmp_path / "made.pcap"))
    assert fates(recording) == [(number, "reader", "delivered") for number in range(6)]
    assert recording.run["validity"] == {"valid": True, "reasons": []}


def shifted(frames: Frames, by_ms: float) -> Frames:
    return [(at_ns + int(by_ms * MS), packet) for at_ns, packet in frames]


@pytest.mark.parametrize("by_s", [-3_600, -2, 2, 30])
@pytest.mark.parametrize("outside", [translated, lambda packet: packet])
def test_clocks_are_set_by_connections_that_both_captures_hold(
    by_s: float, outside: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    inside, beyond = both_sides(conversation(away_ms=LAST_MILE_MS), outside)
    files = saved(inside, tmp_path / "in.pcap"), saved(shifted(beyond, by_s * 1_000), tmp_path / "out.pcap")
    for order in (files, files[::-1]):
        recording = imported(tmp_path, *order)
        is_whole(recording)
        latencies = recording.messages["latency_ns"] / MS
        assert latencies.min() == pytest.approx(61, abs=1) and latencies.max() == pytest.approx(61, abs=1)
        [warned] = [text for text in recording.run["warnings"] if text.startswith("The clock of")]
        ahead = (by_s > 0) == (order is files)
        assert f"is {abs(by_s)} s {'ahead' if ahead else 'behind'} of" in warned and "± 0.06 s" in warned, warned
        assert "assumed to agree" not in str(recording.run["warnings"])


def two_points(latency_ms: float = 40, count: int = 10) -> tuple[Frames, Frames]:
    """A capture at the publisher and one at the subscriber, which have no connection in common."""
    publishes, receives = Wire(), Wire()
    publisher, subscriber = pair(publishes, receives=receives)
    for number in range(count):
        publishes.now_ns = START_NS + (number + 1) * 1_000 * MS
        receives.now_ns = publishes.now_ns + int(latency_ms * MS)
        publisher.up(publish("t", b"reading %d" % number))
        subscriber.down(publish("t", b"reading %d" % number))
    return publishes.frames, receives.frames


def test_deliveries_before_their_publication_prove_that_clocks_differ(tmp_path: Path) -> None:
    publishes, receives = two_points()
    recording = imported(tmp_path, saved(publishes, tmp_path / "p.pcap"),
                         saved(shifted(receives, -2_000), tmp_path / "s.pcap"))
    assert fates(recording) == [(number, "s", "delivered") for number in range(10)]
    assert recording.messages["latency_ns"].null_count() == 10
    assert not recording.run["validity"]["valid"]
    [reason] = recording.run["validity"]["reasons"]
    assert reason.startswith("10 deliveries are earlier than the sending of their messages: the clocks of the captures "
                             "differ by at least 1.96 s."), reason


@pytest.mark.parametrize(("contents", "words"), [
    ([b"reading %d" % number for number in range(10)],
     "deliveries are earlier than the sending of their messages: the times are out of order"),
    ([b"reading"] * 10, "and as many such messages have no delivery: either the times are out of order"),
])
def test_a_capture_that_shows_a_delivery_before_its_message_is_out_of_order(
    contents: list[bytes], words: str, tmp_path: Path
) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for number, content in enumerate(contents):
        wire.now_ns = START_NS + (number + 1) * 1_000 * MS
        # A mirror port shows the third delivery first.
        for pass_on in (subscriber.down, publisher.up) if number == 2 else (publisher.up, subscriber.down):
            pass_on(publish("t", content))
            wire.now_ns += MS // 50
    recording = imported(tmp_path, saved(wire.frames, tmp_path / "mirror.pcap"))
    assert not {"foreign", "lost"} & set(recording.messages["fate"])
    assert not recording.run["validity"]["valid"]
    [reason] = recording.run["validity"]["reasons"]
    assert words in reason and " by at least 0.00" in reason, reason


def test_a_suback_that_a_mirror_port_shows_before_its_subscribe_grants_it(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001)
    publisher.connect("p")
    subscriber.connect("s")
    subscriber.down(b"\x90\3\0\1\0")
    wire.wait(-0.98)
    subscriber.up(b"\x82\6\0\1\0\1t\0")
    publisher.up(publish("t", b"1"))
    recording = imported(tmp_path, saved(wire.frames, tmp_path / "mirror.pcap"))
    assert fates(recording) == [(0, "s", "under_way")]


def test_a_clock_that_drifts_makes_a_part_of_the_deliveries_precede(tmp_path: Path) -> None:
    publishes, receives = two_points()
    drifts = [(at_ns - (at_ns - START_NS) * 8 // 1_000, packet) for at_ns, packet in receives]
    recording = imported(tmp_path, saved(publishes, tmp_path / "p.pcap"), saved(drifts, tmp_path / "s.pcap"))
    assert fates(recording) == [(number, "s", "delivered") for number in range(10)]
    early = recording.messages["latency_ns"].null_count()
    assert 4 <= early <= 6
    assert f"{early} deliveries are earlier than the sending" in str(recording.run["validity"]["reasons"])


def test_contents_that_repeat_do_not_prove_that_clocks_differ(tmp_path: Path) -> None:
    publishes, receives = Wire(), Wire()
    publisher, subscriber = Client(publishes, "10.0.0.2", 40_000), Client(receives, "10.0.0.3", 40_001)
    subscriber.connect("s")
    subscriber.subscribe("t")
    # The publisher's capture begins late: the first two are not in it.
    for number in range(6):
        receives.now_ns = START_NS + (number + 1) * 1_000 * MS + 40 * MS
        subscriber.down(publish("t", b"on" if number % 2 else b"off"))
    publishes.now_ns = START_NS + 2_500 * MS
    publisher.connect("p")
    for number in range(2, 6):
        publishes.now_ns = START_NS + (number + 1) * 1_000 * MS
        publisher.up(publish("t", b"on" if number % 2 else b"off"))
    recording = imported(tmp_path, publishes.save(tmp_path / "p.pcap"), receives.save(tmp_path / "s.pcap"))
    assert recording.run["validity"] == {"valid": True, "reasons": []}
    assert fates(recording) == [*[(None, "s", "foreign")] * 2, *((number, "s", "delivered") for number in range(4))]


def test_a_container_s_port_is_one_broker_without_numbers_of_packets(tmp_path: Path) -> None:
    container, frames = IPv4Address("172.17.0.2").packed, []
    for at_ns, packet in conversation().frames:
        inside = packet.replace(BROKER, container, 1).replace(b"\x40\x06", b"\x3f\x06", 1)
        # The broker's side of the host is way 4, interfaces are not named (version 1).
        copies = (packet, inside) if packet[16:20] == BROKER else (inside, packet)
        for later, (way, copy) in enumerate(zip((0, 4), copies, strict=True)):
            frames.append((at_ns + later * 20_000, struct.pack(">HHH8sH", way, 1, 6, bytes(8), 0x0800) + copy))
    recording = imported(tmp_path, saved(frames, tmp_path / "any.pcap", SLL))
    is_whole(recording)
    assert {server["at"] for server in recording.run["details"]["import"]["servers"]} == {"10.0.0.1:1883"}


def behind_a_container(frames: Frames) -> Frames:
    """The capture of all interfaces of the broker's host, which passes its port on to a container (version 2)."""
    container, shown = IPv4Address("172.17.0.2").packed, []
    for at_ns, packet in frames:
        arrives = packet[16:20] == BROKER
        inside = packet.replace(BROKER, container, 1)
        inside = inside[:8] + bytes([inside[8] - 1]) + inside[9:]
        copies = (packet, inside) if arrives else (inside, packet)
        places = zip((2, 3) if arrives else (3, 2), (0, 4), copies, strict=True)
        for later, (interface, way, copy) in enumerate(places):
            header = struct.pack(">HHIHBB8s", 0x0800, 0, interface, 1, way, 6, bytes(8))
            shown.append((at_ns + later * 20_000, header + copy))
    return shown


@pytest.mark.parametrize("by_s", [0, 5])
def test_a_nat_and_a_container_show_one_connection_at_three_addresses(by_s: float, tmp_path: Path) -> None:
    inside, outside = both_sides(conversation(away_ms=LAST_MILE_MS))
    host = shifted(behind_a_container(outside), by_s * 1_000)
    recording = imported(tmp_path, saved(inside, tmp_path / "in.pcap"), saved(host, tmp_path / "any.pcap", 276))
    is_whole(recording)
    assert recording.messages["latency_ns"].max() / MS == pytest.approx(61, abs=0.1)


def test_devices_that_all_begin_with_one_number_stay_apart_behind_a_nat(tmp_path: Path) -> None:
    wire = Wire()
    reader = Client(wire, "10.0.0.3", 40_001, isn=READER_ISN)
    reader.connect("reader")
    reader.subscribe("t")
    devices = [Far(wire, "10.0.7.1", 4_097 + number, isn=(6_510, 0x5000_0000 + number * 77_777))
               for number in range(20)]
    for number, device in enumerate(devices):
        device.away_ms = 3
        device.connect(f"device{number}")
    for _ in range(3):
        for device in devices:
            device.up(publish("t", b"on"))
            reader.down(publish("t", b"on"))

    def outside(packet: bytes) -> bytes:
        [port] = struct.unpack(">H", packet[20:22] if packet[12:16] == DEVICE else packet[22:24])
        return translated(packet, port=port + 10_000)

    files = [saved(side, tmp_path / f"{name}.pcap")
             for name, side in zip(("in", "out"), both_sides(wire, outside, later_ms=3), strict=True)]
    recording = imported(tmp_path, *files)
    assert recording.messages["fate"].to_list() == ["delivered"] * 60
    assert len(recording.layout["clients"]) == 21 and recording.packets["connection"].drop_nulls().n_unique() == 21
