"""Small captures, made packet by packet, for tests of everything that reads one."""

from __future__ import annotations

import copy
import struct
from collections import Counter
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from mqttlab.recording import Recording
from mqttlab.report.text import verdict

MS = 1_000_000
START_NS = 1_700_000_000 * 1000 * MS
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


RAW, ETHERNET, SLL, SLL2 = 101, 1, 113, 276


class Wire:
    """A capture under construction (raw IP). Every frame takes a millisecond unless told otherwise."""

    def __init__(self, broker: str = "10.0.0.1", port: int = 1883) -> None:
        self.broker, self.port = IPv4Address(broker), port
        self.frames: list[tuple[int, bytes]] = []
        self._whole = self
        self._now_ns = START_NS

    def beside(self, broker: str, port: int | None = None) -> Wire:
        """The same capture, for clients of another server."""
        other = copy.copy(self)
        other.broker, other._whole = IPv4Address(broker), self._whole
        other.port = port or self.port
        return other

    @property
    def now_ns(self) -> int:
        """The time, one for all servers."""
        return self._whole._now_ns

    @now_ns.setter
    def now_ns(self, now_ns: int) -> None:
        self._whole._now_ns = now_ns

    def wait(self, ms: float) -> None:
        """Let time pass."""
        self.now_ns += int(ms * MS)

    def put(self, packet: bytes) -> None:
        """Capture a frame."""
        self.frames.append((self.now_ns, packet))
        self.wait(1)

    def save(self, path: Path, *, snap: int = 1 << 18, link_type: int = RAW) -> Path:
        """Write the file as pcap, frames cut to ``snap`` bytes."""
        file = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, link_type))
        for at_ns, packet in self.frames:
            kept = packet[:snap]
            file += struct.pack("<IIII", at_ns // 10**9, at_ns % 10**9, len(kept), len(packet)) + kept
        path.write_bytes(file)
        return path

    def save_modified(self, path: Path, *, magic: int = 0xA1B2CD34, more: int = 8) -> Path:
        """Write the file as a modified library does, with ``more`` bytes behind the lengths of each record."""
        file = bytearray(struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 1 << 18, RAW))
        for at_ns, packet in self.frames:
            head = struct.pack("<IIII", at_ns // 10**9, at_ns % 10**9 // 1000, len(packet), len(packet))
            file += head + struct.pack("<IHBB", 2, 0x0800, 0, 0).ljust(more, b"\0")[:more] + packet
        path.write_bytes(file)
        return path

    def save_snoop(self, path: Path) -> Path:
        """Write the file as Solaris's snoop does; frames get an Ethernet header."""
        file = bytearray(b"snoop\0\0\0" + struct.pack(">II", 2, 4))
        for at_ns, packet in self.frames:
            frame = bytes(12) + b"\x08\0" + packet
            file += struct.pack(">IIIIII", len(frame), len(frame), 24 + len(padded(frame)), 0, at_ns // 10**9,
                                at_ns % 10**9 // 1000) + padded(frame)
        path.write_bytes(file)
        return path

    def save_pcapng(self, path: Path, *, timed: bool = True, dropped_before: dict[int, int] | None = None,
                    interface_drops: int = 0) -> Path:
        """Write the file as pcapng, with or without times, with what the capture says that it dropped."""
        file = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        file += block(1, struct.pack("<HHI", RAW, 0, 0) + option(9, b"\x09"))
        for number, (at_ns, packet) in enumerate(self.frames):
            if timed:
                drops = (dropped_before or {}).get(number, 0)
                head = struct.pack("<IIIII", 0, at_ns >> 32, at_ns & 0xFFFFFFFF, len(packet), len(packet))
                file += block(6, head + padded(packet) + (option(4, struct.pack("<Q", drops)) if drops else b""))
            else:
                file += block(3, struct.pack("<I", len(packet)) + padded(packet))
        if interface_drops:
            file += block(5, struct.pack("<III", 0, 0, 0) + option(5, struct.pack("<Q", interface_drops)))
        path.write_bytes(file)
        return path


def block(kind: int, body: bytes) -> bytes:
    """A block of pcapng."""
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def option(code: int, value: bytes) -> bytes:
    """An option of a block, and the end of its options."""
    return struct.pack("<HH", code, len(value)) + padded(value) + struct.pack("<HH", 0, 0)


def padded(content: bytes) -> bytes:
    """Filled up to four bytes."""
    return content + bytes(-len(content) % 4)


@dataclass(frozen=True)
class LastWill:
    """The will of a CONNECT."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    delay_s: int | None = None

    @property
    def flags(self) -> int:
        """Its bits among the connect flags."""
        return 4 | self.qos << 3 | (0x20 if self.retain else 0)

    def fields(self, level: int) -> bytes:
        """What stands behind the client identifier."""
        delay = b"" if self.delay_s is None else b"\x18" + struct.pack(">I", self.delay_s)
        properties = bytes([len(delay)]) + delay if level == 5 else b""
        return properties + _text(self.topic) + struct.pack(">H", len(self.payload)) + self.payload


class Client:
    """A client's TCP connection: its segments in both directions.

    Args:
        acknowledges: whether its host acknowledges each segment with data at once, as one that is alive does. The
            acknowledgement takes no time.
        isn: the first sequence numbers, the client's and the broker's.
    """

    def __init__(self, wire: Wire, address: str, port: int, *, acknowledges: bool = True,
                 isn: tuple[int, int] = (0, 0)) -> None:
        self._wire, self._address, self._port = wire, IPv4Address(address), port
        self._isn = isn
        self.acknowledges = acknowledges
        # What a silent host has acknowledged; others have all that has come.
        self._acknowledged: int | None = None
        self._sent = self._received = 1
        self._lacking: int | None = None
        self._five = b""

    def open(self) -> None:
        """The handshake."""
        self._sent = self._received = 0
        self.up(b"", SYN)
        self._sent = 1
        self.down(b"", SYN | ACK)
        self._received = 1
        self.up(b"")

    def up(self, payload: bytes, flags: int = ACK, *, stamps: tuple[int, int] | None = None, again: int = 0) -> None:
        """A segment to the broker, with time stamps; ``again``: it begins so many bytes before what comes next."""
        wire = self._wire
        received = self._received if self._acknowledged is None else self._acknowledged
        wire.put(_ip(self._address, wire.broker, _tcp(
            self._port, wire.port, *self._numbers(self._sent - again, received), flags, payload, _stamped(stamps))))
        self._sent += max(0, len(payload) - again)

    def lose_up(self, payload: bytes) -> None:
        """A segment to the broker that is lost before the point of capture, and not repeated."""
        self._lacking = self._sent if self._lacking is None else self._lacking
        self._sent += len(payload)

    def down(self, payload: bytes, flags: int = ACK, *, stamps: tuple[int, int] | None = None, again: int = 0) -> None:
        """A segment from the broker, as :meth:`up`."""
        wire = self._wire
        ack = self._sent if self._lacking is None else self._lacking
        wire.put(_ip(wire.broker, self._address, _tcp(
            wire.port, self._port, *reversed(self._numbers(ack, self._received - again)), flags, payload,
            _stamped(stamps))))
        self._received += max(0, len(payload) - again)
        if payload and self.acknowledges:
            now_ns = wire.now_ns
            self.up(b"")
            wire.now_ns = now_ns

    def acknowledge(self, *, stamps: tuple[int, int] | None = None) -> None:
        """The host acknowledges all that has come."""
        self._acknowledged = None
        self.up(b"", stamps=stamps)
        self._acknowledged = self._received

    def silent(self) -> Client:
        """The same client, whose host does not acknowledge by itself from here on: what it last acknowledged stays."""
        self.acknowledges, self._acknowledged = False, self._received
        return self

    def _numbers(self, sent: int, received: int) -> tuple[int, int]:
        client, broker = self._isn
        return client + sent & 0xFFFFFFFF, broker + received & 0xFFFFFFFF

    def connect(self, name: str, *, code: int = 0, clean: bool = True, level: int = 4, present: bool = False,
                expiry_s: int | None = None, answered: bool = True, bridge: bool = False, keep_alive_s: int = 60,
                properties: bytes = b"", will: LastWill | None = None, terms: bytes = b"") -> None:
        """Handshake, CONNECT and, unless it comes later, CONNACK, with properties ``terms`` in MQTT 5."""
        self.open()
        self._five = b"\0" if level == 5 else b""
        if expiry_s is not None:
            properties = b"\x11" + struct.pack(">I", expiry_s) + properties
        flags = (2 if clean else 0) | (0 if will is None else will.flags)
        body = b"\0\4MQTT" + bytes([level | (0x80 if bridge else 0), flags]) + struct.pack(">H", keep_alive_s)
        body += (bytes([len(properties)]) + properties if level == 5 else b"") + _text(name)
        self.up(_packet(0x10, body + (b"" if will is None else will.fields(level))))
        if answered:
            five = bytes([len(terms)]) + terms if level == 5 else b""
            self.down(_packet(0x20, bytes([1 if present else 0, code]) + five))

    def subscribe(self, *filters: str, codes: bytes = b"") -> None:
        """SUBSCRIBE and SUBACK."""
        self.up(_packet(0x82, b"\0\1" + self._five + b"".join(_text(name) + b"\1" for name in filters)))
        self.down(_packet(0x90, b"\0\1" + self._five + (codes or bytes(len(filters)))))

    def unsubscribe(self, name: str, *, codes: bytes = b"") -> None:
        """UNSUBSCRIBE and UNSUBACK."""
        self.up(_packet(0xA2, b"\0\2" + self._five + _text(name)))
        self.down(_packet(0xB0, b"\0\2" + (self._five + codes if codes else b"")))


def pair(wire: Wire, filters: tuple[str, ...] = ("t",), *, receives: Wire | None = None, level: int = 4,
         clean: bool = True) -> tuple[Client, Client]:
    """A publisher and a subscriber with these filters, connected; ``receives``: the subscriber's wire, if another."""
    publisher = Client(wire, "10.0.0.2", 40_000)
    subscriber = Client(wire if receives is None else receives, "10.0.0.3", 40_001)
    publisher.connect("p", level=level)
    subscriber.connect("s", level=level, clean=clean)
    subscriber.subscribe(*filters)
    return publisher, subscriber


def send_ten(wire: Wire, publisher: Client, subscriber: Client, *, qos: int = 0) -> Wire:
    """Ten messages, published at this QoS and delivered 0.3 ms later at QoS 0. Returns the wire."""
    for number in range(10):
        publisher.up(publish("plant/a", b"%08d" % number, qos=qos, identifier=number + 1))
        wire.wait(-0.7)
        subscriber.down(publish("plant/a", b"%08d" % number))
        if qos:
            publisher.down(answer(4, number + 1))
        wire.wait(10)
    return wire


def assert_ten_measured(recording: Recording) -> None:
    """The recording has the messages of :func:`send_ten`, each with its latency, and is valid."""
    assert verdict(recording)[0] == "valid", recording.run["validity"]
    assert Counter(recording.messages["fate"].to_list()) == {"delivered": 10}
    assert recording.messages["latency_ns"].to_list() == [300_000] * 10


def publish(topic: str, payload: bytes, *, qos: int = 0, identifier: int = 1, dup: bool = False,
            retain: bool = False) -> bytes:
    """A PUBLISH."""
    first = 0x30 | qos << 1 | (8 if dup else 0) | (1 if retain else 0)
    return _packet(first, _text(topic) + (struct.pack(">H", identifier) if qos else b"") + payload)


def answer(kind: int, identifier: int = 1, *, code: int | None = None) -> bytes:
    """PUBACK (4), PUBREC (5), PUBREL (6) or PUBCOMP (7); of MQTT 5 with a reason code."""
    reason = b"" if code is None else bytes([code])
    return _packet(kind << 4 | (2 if kind == 6 else 0), struct.pack(">H", identifier) + reason)


def disconnect(code: int | None = None) -> bytes:
    """A DISCONNECT; of MQTT 5 with a reason code."""
    return _packet(0xE0, b"" if code is None else bytes([code]))


def publish_5(topic: str, payload: bytes, *, alias: int | None = None, qos: int = 0, identifier: int = 1,
              expiry_s: int | None = None) -> bytes:
    """A PUBLISH of MQTT 5, with a topic alias or an expiry interval."""
    properties = b"" if alias is None else b"\x23" + struct.pack(">H", alias)
    properties += b"" if expiry_s is None else b"\x02" + struct.pack(">I", expiry_s)
    number = struct.pack(">H", identifier) if qos else b""
    return _packet(0x30 | qos << 1, _text(topic) + number + bytes([len(properties)]) + properties + payload)


def _packet(first: int, body: bytes) -> bytes:
    length, rest = bytearray(), len(body)
    while True:
        length.append(rest % 128 | (128 if rest > 127 else 0))
        rest //= 128
        if not rest:
            return bytes([first]) + bytes(length) + body


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _stamped(stamps: tuple[int, int] | None) -> bytes:
    """The option of time stamps (RFC 7323), padded to four bytes."""
    return b"" if stamps is None else b"\1\1\x08\x0a" + struct.pack(">II", *stamps)


def _tcp(source: int, destination: int, seq: int, ack: int, flags: int, payload: bytes, options: bytes = b"") -> bytes:
    words = 5 + len(options) // 4
    return struct.pack(">HHIIBBHHH", source, destination, seq, ack, words << 4, flags, 65_535, 0, 0) + options + payload


def _ip(source: IPv4Address, destination: IPv4Address, segment: bytes) -> bytes:
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, 6, 0, source.packed,
                       destination.packed) + segment
