"""Captures of connections that begin with something else than MQTT: headers of balancers, tunnels through proxies,
other protocols at the broker's port."""

from __future__ import annotations

import struct
from collections import Counter
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from captures import ACK, FIN, Client, Wire, assert_ten_measured, send_ten
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.text import verdict

ASK = b"CONNECT broker.lab:1883 HTTP/1.1\r\nHost: broker.lab:1883\r\n\r\n"
GRANTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
REFUSED = (b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 5\r\n\r\n"
           b"no, n")
SOCKS_5 = [b"\5\1\0", b"\5\0", b"\5\1\0\3\x0abroker.lab\x07\x5b", b"\5\0\0\1\x0a\0\0\1\x9c\x40"]


def proxy_1(port: int) -> bytes:
    """A header of a balancer for a client of 192.0.2.1, as text."""
    return b"PROXY TCP4 192.0.2.1 10.0.0.1 %d 1883\r\n" % port


def proxy_2(port: int) -> bytes:
    """Likewise, in binary."""
    addresses = IPv4Address("192.0.2.1").packed + IPv4Address("10.0.0.1").packed + struct.pack(">HH", port, 1883)
    return b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + struct.pack(">H", len(addresses)) + addresses


class Opened(Client):
    """A client whose connection begins with turns of bytes, its own and the server's, cut into segments."""

    def __init__(self, wire: Wire, address: str, port: int, turns: list[bytes], *, size: int = 1448,
                 joined: bool = False) -> None:
        super().__init__(wire, address, port)
        self._turns, self.size, self._joined, self._before = turns, size, joined, b""

    def open(self) -> None:
        super().open()
        for number, turn in enumerate(self._turns):
            if self._joined:
                self._before = turn
            elif number % 2:
                self.down(turn)
            else:
                self.up(turn)

    def up(self, payload: bytes, flags: int = ACK) -> None:
        payload, self._before = (self._before + payload, b"") if payload else (payload, self._before)
        for at in range(0, max(len(payload), 1), self.size):
            super().up(payload[at:at + self.size], flags)


def read(wire: Wire, tmp_path: Path, *options: str) -> Recording:
    file = wire.save(tmp_path / "field.pcap")
    outcome = import_evidence("capture", [file], tmp_path / "recording", lambda line: None, options=options)
    return Recording.open(outcome.directory)


def conversation(wire: Wire, publisher: Client, subscriber: Client, names: tuple[str, str] = ("p", "s")) -> None:
    """Ten messages at QoS 1, all delivered 0.3 ms after they were sent."""
    for client, name in zip((publisher, subscriber), names, strict=True):
        client.connect(name)
        if isinstance(client, Opened):
            client.size = 1448
    subscriber.subscribe("plant/#")
    send_ten(wire, publisher, subscriber, qos=1)


@pytest.mark.parametrize("size", [1, 5, 1448])
@pytest.mark.parametrize(("kind", "turns", "port", "joined"), [
    ("PROXY protocol, version 1", lambda port: [proxy_1(port)], 1883, False),
    ("PROXY protocol, version 1", lambda port: [proxy_1(port)], 1883, True),
    ("PROXY protocol, version 2", lambda port: [proxy_2(port)], 1883, False),
    ("PROXY protocol, version 2", lambda port: [proxy_2(port)], 1883, True),
    ("PROXY protocol, version 1", lambda port: [proxy_1(port)], 8000, False),
    ("HTTP CONNECT", lambda port: [ASK, GRANTED], 3128, False),
    ("HTTP CONNECT", lambda port: [ASK, REFUSED, ASK, GRANTED], 3128, False),
    ("SOCKS4", lambda port: [b"\4\1\x07\x5b\0\0\0\1me\0broker.lab\0", b"\0\x5a\0\0\0\0\0\0"], 1080, False),
    ("SOCKS5", lambda port: SOCKS_5, 1080, False),
])
def test_mqtt_behind_a_preamble_is_measured_as_if_it_were_not_there(  # type: ignore[no-untyped-def]
    kind: str, turns, port: int, joined: bool, size: int, tmp_path: Path
) -> None:
    wire = Wire(port=port)
    ends = [Opened(wire, "10.0.0.9", 40_000 + number, turns(50_000 + number), size=size, joined=joined)
            for number in range(2)]
    conversation(wire, ends[0], ends[1])
    recording = read(wire, tmp_path)
    assert_ten_measured(recording)
    assert recording.clients["name"].to_list() == ["p", "s"]
    told = recording.run["details"]["connections"]
    assert [row["preamble"]["kinds"] for row in told] == [[kind], [kind]]
    sources = ["192.0.2.1:50000", "192.0.2.1:50001"] if "PROXY" in kind else ["10.0.0.9:40000", "10.0.0.9:40001"]
    assert [row["from"] for row in told] == sources
    assert [row["preamble"]["tcp_from"] for row in told] == ["10.0.0.9:40000", "10.0.0.9:40001"]
    bytes_up = sum(map(len, turns(50_000)[::2]))
    assert [row["preamble"]["bytes_to_server"] for row in told] == [bytes_up] * 2
    connects = recording.control_packets.filter(kind="CONNECT")
    assert connects["stream_start"].to_list() == [bytes_up] * 2
    metrics = recording.network_metrics.filter(scope="run")
    assert metrics.filter(metric="mqtt_skipped_bytes")["value"].sum() == 0
    assert f"2 connections to the broker begin with {kind}" in " ".join(recording.run["warnings"])


def test_clients_without_an_identifier_are_named_by_the_address_in_the_header(tmp_path: Path) -> None:
    wire = Wire()
    conversation(wire, Opened(wire, "10.0.0.9", 40_000, [proxy_1(50_000)]),
                 Opened(wire, "10.0.0.9", 40_001, [proxy_2(50_001)]), ("", ""))
    recording = read(wire, tmp_path)
    assert_ten_measured(recording)
    assert recording.clients["name"].to_list() == ["192.0.2.1:50000", "192.0.2.1:50001"]
    assert recording.clients["group"].to_list() == ["192.0.2.1", "192.0.2.1"]


def test_a_proxy_s_refusal_is_a_note_with_its_reason_and_the_others_are_measured(tmp_path: Path) -> None:
    wire = Wire(port=3128)
    refused = Opened(wire, "10.0.0.7", 40_007, [ASK, REFUSED])
    refused.open()
    refused.down(b"", FIN | ACK)
    conversation(wire, Opened(wire, "10.0.0.2", 40_000, [ASK, GRANTED]),
                 Opened(wire, "10.0.0.3", 40_001, [ASK, GRANTED]))
    recording = read(wire, tmp_path, "--broker-port", "3128")
    assert_ten_measured(recording)
    words = "10.0.0.7:40007 was refused a connection to broker.lab:1883 by the proxy 10.0.0.1:3128: HTTP 407 Proxy " \
            "Authentication Required"
    assert words in recording.events.filter(kind="note")["detail"].to_list()
    assert "1 connection was refused by a proxy: HTTP 407 Proxy Authentication Required." in recording.run["warnings"]


def test_brokers_behind_one_proxy_are_told_apart_by_their_addresses(tmp_path: Path) -> None:
    wire = Wire(port=3128)
    one, other = (b"CONNECT 10.0.0.%d:1883 HTTP/1.1\r\n\r\n" % last for last in (5, 6))
    conversation(wire, Opened(wire, "10.0.0.2", 40_000, [one, GRANTED]),
                 Opened(wire, "10.0.0.3", 40_001, [one, GRANTED]))
    elsewhere = Opened(wire, "10.0.0.4", 40_002, [other, GRANTED])
    elsewhere.connect("elsewhere")
    elsewhere.subscribe("plant/#")
    recording = read(wire, tmp_path)
    assert Counter(recording.messages["fate"].to_list()) == {"delivered": 10}
    assert [row["to"] for row in recording.run["details"]["connections"]] == [
        "10.0.0.5:1883", "10.0.0.5:1883", "10.0.0.6:1883"]


def test_several_names_behind_one_proxy_are_not_called_one_broker(tmp_path: Path) -> None:
    wire = Wire(port=3128)
    other = ASK.replace(b"broker.lab", b"backup.lab")
    conversation(wire, Opened(wire, "10.0.0.2", 40_000, [ASK, GRANTED]),
                 Opened(wire, "10.0.0.3", 40_001, [other, GRANTED]))
    recording = read(wire, tmp_path)
    assert verdict(recording)[0] != "valid"
    reasons = " ".join(recording.run["validity"]["reasons"])
    assert "clients connect to 2 names (backup.lab:1883, broker.lab:1883)" in reasons


def test_both_sides_of_a_balancer_in_one_capture_are_named(tmp_path: Path) -> None:
    wire = Wire()
    conversation(wire, Opened(wire, "10.0.0.9", 40_000, [proxy_1(50_000)]),
                 Opened(wire, "10.0.0.9", 40_001, [proxy_1(50_001)]))
    front = Client(wire.beside("10.0.0.9"), "192.0.2.1", 50_000)
    front.connect("p")
    recording = read(wire, tmp_path)
    assert verdict(recording)[0] != "valid"
    assert "1 connection is in the capture on both sides of a balancer" in recording.run["validity"]["reasons"][0]


@pytest.mark.parametrize(("first", "words"), [
    (b"SSH-2.0-OpenSSH_9.2\r\n", 'an SSH banner ("SSH-2.0-OpenSSH_9.2")'),
    (b"\1\2\3\4", "the bytes 01 02 03 04"),
    (b"AMQP\0\0\x09\1", "AMQP"),
    (b"PROXY TCP4 nowhere\r\n", 'a PROXY header that is cut or wrong ("PROXY TCP4 nowhere")'),
])
@pytest.mark.parametrize("given", [True, False])
def test_another_protocol_at_the_broker_s_port_is_named_by_its_first_bytes(
    first: bytes, words: str, given: bool, tmp_path: Path
) -> None:
    wire = Wire()
    stranger = Client(wire, "10.0.0.7", 40_007)
    stranger.open()
    stranger.up(first)
    conversation(wire, Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001))
    recording = read(wire, tmp_path, *(("--broker-port", "1883") if given else ()))
    assert Counter(recording.messages["fate"].to_list())["delivered"] == 10
    reasons = recording.run["validity"]["reasons"]
    assert any(f"1 connection to port 1883 begins with {words}, not with a CONNECT" in reason for reason in reasons)
    assert any("--broker-port" in reason for reason in reasons) is not given
    assert not any("were not a control packet" in reason for reason in reasons)


def test_http_at_a_given_port_is_named_without_advice_to_give_it(tmp_path: Path) -> None:
    wire = Wire(port=8080)
    browser = Client(wire, "10.0.0.7", 40_007)
    browser.open()
    browser.up(b"GET / HTTP/1.1\r\n\r\n")
    browser.down(b"HTTP/1.1 200 OK\r\n\r\n")
    given = read(wire, tmp_path, "--broker-port", "8080")
    reasons = " ".join(given.run["validity"]["reasons"])
    assert "carry HTTP: their messages are not imported." in reasons and "--broker-port" not in reasons


def test_what_one_of_two_captures_behind_a_balancer_lost_is_noticed_in_both_directions(tmp_path: Path) -> None:
    wire = Wire()
    publisher = Opened(wire, "10.0.0.2", 40_000, [proxy_1(40_000)])
    subscriber = Opened(wire, "10.0.0.3", 40_001, [proxy_1(40_001)])
    conversation(wire, publisher, subscriber)
    for direction in ("up", "down"):
        # A message in the middle, of ten.
        ports = (40_000, 1883) if direction == "up" else (1883, 40_001)
        found = [place for place, (_, packet) in enumerate(wire.frames)
                 if packet[20:24] == struct.pack(">HH", *ports) and b"00000005" in packet]
        assert len(found) == 1
        nearer = Wire()
        nearer.frames = [(at + 20_000, packet) for place, (at, packet) in enumerate(wire.frames) if place != found[0]]
        files = [wire.save(tmp_path / f"{direction}-1.pcap"), nearer.save(tmp_path / f"{direction}-2.pcap")]
        outcome = import_evidence("capture", files, tmp_path / direction, lambda line: None)
        reasons = Recording.open(outcome.directory).run["validity"]["reasons"]
        assert any(text.startswith("1 segments are in one capture only") for text in reasons), (direction, reasons)
