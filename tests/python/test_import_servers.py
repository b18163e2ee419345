"""Captures with several servers: a message is owed to subscribers of the broker that it was published to."""

from __future__ import annotations

import struct
from pathlib import Path

import polars as pl
import pytest

from captures import SLL, Client, Wire, pair, publish
from mqttlab.metrics.device_bytes import by_device
from mqttlab.recording import Recording
from test_import_messages import fates, read

HOST, CONTAINER = bytes((10, 0, 0, 1)), bytes((172, 17, 0, 2))


def two_servers(wire: Wire, filters: tuple[str, ...] = ("#",)) -> tuple[Client, Client]:
    """A publisher at 10.0.0.1, and a subscriber at 10.0.0.9."""
    return pair(wire, filters, receives=wire.beside("10.0.0.9"))


def test_a_message_is_not_expected_at_another_broker(tmp_path: Path) -> None:
    wire = Wire()
    publisher, _ = two_servers(wire)
    own = Client(wire, "10.0.0.4", 40_002)
    own.connect("own")
    own.subscribe("t")
    for number in range(3):
        publisher.up(publish("t", b"%d" % number))
        own.down(publish("t", b"%d" % number))
    publisher.up(publish("elsewhere", b"m"))
    recording = read(wire, tmp_path)
    assert fates(recording) == [*((number, "own", "delivered") for number in range(3)), (3, None, "no_receiver")]
    assert recording.run["validity"]["valid"]
    assert any(text.startswith("There are 2 brokers in the capture (10.0.0.1:1883 and 10.0.0.9:1883)")
               for text in recording.run["warnings"]), recording.run["warnings"]
    servers = recording.run["details"]["import"]["servers"]
    assert [(server["at"], server["broker"], server["clients"]) for server in servers] == [
        ("10.0.0.1:1883", "10.0.0.1:1883", 2), ("10.0.0.9:1883", "10.0.0.9:1883", 1)]


@pytest.mark.parametrize("qos", [0, 1])
def test_servers_of_which_one_delivers_what_the_other_was_given_are_one_broker(tmp_path: Path, qos: int) -> None:
    wire = Wire()
    publisher, subscriber = two_servers(wire)
    for number in range(5):
        publisher.up(publish("t", b"reading %d" % number, qos=qos, identifier=number + 1))
        if number != 2:
            subscriber.down(publish("t", b"reading %d" % number, qos=qos, identifier=number + 1))
    recording = read(wire, tmp_path)
    assert fates(recording) == [
        (number, "s", "lost" if number == 2 else "delivered") for number in range(5)]
    assert "10.0.0.1:1883 and 10.0.0.9:1883 are taken for one broker: 4 deliveries" in str(recording.run["warnings"])


def listeners(wire: Wire, address: str = "10.0.0.1", port: int = 1884) -> tuple[Client, Client]:
    """A publisher at port 1883 of 10.0.0.1, and a subscriber at another server."""
    return pair(wire, receives=wire.beside(address, port))


@pytest.mark.parametrize("delivered", range(1, 11))
def test_two_ports_of_one_address_are_one_broker_however_much_is_lost(delivered: int, tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = listeners(wire)
    for number in range(10):
        publisher.up(publish("t", b"reading %d" % number))
        if number % 10 < delivered:
            subscriber.down(publish("t", b"reading %d" % number))
    recording = read(wire, tmp_path)
    found = [fate for _, _, fate in fates(recording)]
    assert found == ["delivered"] * delivered + ["under_way"] * (10 - delivered)
    assert recording.run["validity"] == {"valid": True, "reasons": []}
    assert f"10.0.0.1:1883 and 10.0.0.1:1884 are taken for one broker: {delivered} deliveries" in str(
        recording.run["warnings"])


@pytest.mark.parametrize(("address", "delivered"), [("10.0.0.1", 0), ("10.0.0.9", 1), ("10.0.0.9", 4)])
def test_servers_of_which_deliveries_do_not_tell_make_an_import_that_is_not_valid(
    address: str, delivered: int, tmp_path: Path
) -> None:
    wire = Wire()
    publisher, subscriber = listeners(wire, address)
    for number in range(10):
        publisher.up(publish("t", b"reading %d" % number))
        if number < delivered:
            subscriber.down(publish("t", b"reading %d" % number))
    recording = read(wire, tmp_path)
    [reason] = recording.run["validity"]["reasons"]
    assert reason.startswith(f"Whether 10.0.0.1:1883 and {address}:1884 are one broker cannot be told: 10 deliveries "
                             f"at one of them were expected if they are, and {delivered} happened.")
    assert read(wire, tmp_path / "two", "--separate-brokers").run["validity"]["valid"]
    one = read(wire, tmp_path / "one", "--one-broker")
    assert one.run["validity"]["valid"]
    assert [fate for _, _, fate in fates(one)] == ["delivered"] * delivered + ["under_way"] * (10 - delivered)


@pytest.mark.parametrize("other_s", [0, 11])
def test_equal_messages_of_another_listener_are_delivered_also_before_the_suback(other_s: int, tmp_path: Path) -> None:
    wire = Wire()
    publisher = Client(wire, "10.0.0.2", 40_000)
    subscriber = Client(wire.beside("10.0.0.1", 1884), "10.0.0.3", 40_001)
    publisher.connect("p")
    subscriber.connect("s")
    subscriber.subscribe("t")
    publisher.up(publish("t", b"once"))
    wire.wait(1000 * other_s)
    subscriber.down(publish("t", b"once"))
    subscriber.unsubscribe("t")
    for payload in (b"on", b"off", b"on"):
        publisher.up(publish("t", payload))
    subscriber.up(b"\x82\6\0\1\0\1t\1")
    publisher.up(publish("t", b"on"))
    subscriber.down(b"\x90\3\0\1\0")
    subscriber.down(publish("t", b"on"))
    publisher.up(publish("t", b"off"))
    subscriber.down(publish("t", b"off"))
    if other_s:
        # Only a message of a moment ago shows that they are one broker.
        assert not read(wire, tmp_path / "unknown").run["validity"]["valid"]
    recording = read(wire, tmp_path / "import", *["--one-broker"] * bool(other_s))
    assert fates(recording) == [(0, "s", "delivered"), *((number, None, "no_receiver") for number in (1, 2, 3)),
                                (4, "s", "delivered"), (5, "s", "delivered")]
    assert recording.run["validity"]["valid"]
    latencies = recording.messages.sort("sequence").filter(pl.col("fate") == "delivered")["latency_ns"]
    assert [latency is None for latency in latencies] == [False, True, True]


def test_two_brokers_of_one_host_that_both_deliver_are_two(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = listeners(wire)
    own, other = Client(wire, "10.0.0.4", 40_002), Client(wire.beside("10.0.0.1", 1884), "10.0.0.5", 40_003)
    own.connect("own")
    own.subscribe("t")
    other.connect("other")
    for number in range(5):
        publisher.up(publish("t", b"first %d" % number))
        own.down(publish("t", b"first %d" % number))
        other.up(publish("t", b"second %d" % number))
        subscriber.down(publish("t", b"second %d" % number))
    recording = read(wire, tmp_path)
    assert [fate for _, _, fate in fates(recording)] == ["delivered"] * 10
    assert recording.run["validity"] == {"valid": True, "reasons": []}


def test_an_option_says_that_servers_are_one_broker(tmp_path: Path) -> None:
    wire = Wire()
    publisher, _ = two_servers(wire)
    publisher.up(publish("t", b"m"))
    assert fates(read(wire, tmp_path, "--one-broker")) == [(0, "s", "under_way")]


def test_equal_messages_at_two_brokers_reach_the_subscribers_of_each(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = two_servers(wire)
    other = Client(wire.beside("10.0.0.9"), "10.0.0.4", 40_002)
    other.connect("q")
    for _ in range(3):
        publisher.up(publish("t", b"on"))
        other.up(publish("t", b"on"))
        subscriber.down(publish("t", b"on"))
    recording = read(wire, tmp_path)
    clients = [client["name"] for client in recording.layout["clients"]]
    of_p, of_q = ([fate for publisher, _, fate in recording.messages.sort("sequence").select(
        "publisher", "sequence", "fate").rows() if clients[publisher] == name] for name in ("p", "q"))
    assert (of_p, of_q) == (["no_receiver"] * 3, ["delivered"] * 3)


def translated(wire: Wire, path: Path) -> Path:
    """The capture of all interfaces of a host that passes port 1883 on to a container: each packet twice."""
    frames, wire.frames = wire.frames, []
    for number, (at_ns, packet) in enumerate(frames, 1):
        named = bytearray(packet)
        named[4:6] = struct.pack(">H", number)
        inside = bytes(named).replace(HOST, CONTAINER).replace(b"\x40\x06", b"\x3f\x06", 1)
        # What clients send comes in at the host's address; what the container sends has its own address first.
        first, second = (bytes(named), inside) if named[16:20] == HOST else (inside, bytes(named))
        for way, copy, later in ((0, first, 0), (4, second, 20_000)):
            wire.frames.append((at_ns + later, struct.pack(">HHH8sH", way, 1, 6, bytes(8), 0x0800) + copy))
    return wire.save(path, link_type=SLL)


def test_what_a_host_passes_on_to_a_container_is_counted_once(tmp_path: Path) -> None:
    from mqttlab.imports import import_evidence

    wire = Wire()
    publisher, subscriber = pair(wire)
    for number in range(5):
        publisher.up(publish("t", b"%d" % number))
        subscriber.down(publish("t", b"%d" % number))
    file = translated(wire, tmp_path / "docker.pcap")
    recording = Recording.open(
        import_evidence("capture", [file], tmp_path / "recording", lambda line: None).directory)
    assert fates(recording) == [(number, "s", "delivered") for number in range(5)]
    assert recording.run["validity"] == {"valid": True, "reasons": []}
    assert [client["name"] for client in recording.layout["clients"]] == ["p", "s"]
    assert any(text.startswith("2 connections are in the capture before and after address translation")
               for text in recording.run["warnings"])
    frames = recording.packets
    assert frames.filter(hop=0).height == frames.filter(hop=1).height == frames.height // 2
    # What a client sends and receives are its frames, each once.
    once = frames.filter(hop=0)
    addresses = {"p": "10.0.0.2", "s": "10.0.0.3"}
    [p, s] = by_device(recording).sort("client").rows(named=True)
    for name, row in (("p", p), ("s", s)):
        for way, end in (("up", "from_host"), ("down", "to_host")):
            its = once.filter(pl.col(end).cast(pl.String) == addresses[name])
            assert row[f"ip_bytes_{way}"] == its["ip_bytes"].sum() > 0
            assert row[f"link_bytes_{way}"] == its["frame_bytes"].sum()
    received = recording.summary("group_frames").sort(pl.col("group").cast(pl.String))
    assert received["frames_received"].to_list() == [
        once.filter(pl.col("to_host").cast(pl.String) == addresses[name]).height for name in ("p", "s")]


def test_equal_frames_on_two_interfaces_are_the_same_within_seconds_only(tmp_path: Path) -> None:
    from mqttlab.imports import import_evidence

    wire = Wire()
    publisher, subscriber = pair(wire)
    for number in range(5):
        publisher.up(publish("t", b"%d" % number))
        subscriber.down(publish("t", b"%d" % number))
    first = wire.save(tmp_path / "first.pcap")
    for later_s, is_same in ((0.02, True), (9, True), (400, False)):
        shifted = Wire()
        shifted.frames = [(at_ns + int(later_s * 1000) * 1_000_000, packet) for at_ns, packet in wire.frames]
        second = shifted.save(tmp_path / f"after-{later_s}.pcap")
        recording = Recording.open(import_evidence(
            "capture", [first, second], tmp_path / f"recording-{later_s}", lambda line: None).directory)
        assert recording.packets.filter(hop=0).height == len(wire.frames) * (1 if is_same else 2)
        warned = [text for text in recording.run["warnings"] if "frames equal frames" in text]
        assert [text.split()[0] for text in warned] == ([] if is_same else [str(len(wire.frames))])
        # So late no host repeats a SYN: what has the same numbers is another connection.
        assert fates(recording) == [(number, "s", "delivered") for number in range(5 if is_same else 10)]
