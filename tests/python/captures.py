"""Small captures, made packet by packet, for tests of everything that reads one."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from pathlib import Path

MS = 1_000_000
START_NS = 1_700_000_000 * 1000 * MS
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


class Wire:
    """A pcap file under construction (nanoseconds, raw IP). Every frame takes a millisecond unless told otherwise."""

    def __init__(self, broker: str = "10.0.0.1", port: int = 1883) -> None:
        self.broker, self.port = IPv4Address(broker), port
        self.now_ns = START_NS
        self._file = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 101))

    def wait(self, ms: float) -> None:
        """Let time pass."""
        self.now_ns += int(ms * MS)

    def put(self, packet: bytes) -> None:
        """Capture a frame."""
        self._file += struct.pack("<IIII", self.now_ns // 10**9, self.now_ns % 10**9, len(packet), len(packet))
        self._file += packet
        self.wait(1)

    def save(self, path: Path) -> Path:
        """Write the file."""
        path.write_bytes(self._file)
        return path


class Client:
    """A client's TCP connection: its segments in both directions."""

    def __init__(self, wire: Wire, address: str, port: int) -> None:
        self._wire, self._address, self._port = wire, IPv4Address(address), port
        self._sent = self._received = 1

    def open(self) -> None:
        """The handshake."""
        self._sent = self._received = 0
        self.up(b"", SYN)
        self._sent = 1
        self.down(b"", SYN | ACK)
        self._received = 1
        self.up(b"")

    def up(self, payload: bytes, flags: int = ACK) -> None:
        """A segment to the broker."""
        wire = self._wire
        wire.put(_ip(self._address, wire.broker,
                     _tcp(self._port, wire.port, self._sent, self._received, flags, payload)))
        self._sent += len(payload)

    def down(self, payload: bytes, flags: int = ACK) -> None:
        """A segment from the broker."""
        wire = self._wire
        wire.put(_ip(wire.broker, self._address,
                     _tcp(wire.port, self._port, self._received, self._sent, flags, payload)))
        self._received += len(payload)

    def connect(self, name: str, *, code: int = 0, clean: bool = True) -> None:
        """Handshake, CONNECT and CONNACK."""
        self.open()
        body = b"\0\4MQTT\4" + bytes([2 if clean else 0]) + b"\0\x3c" + _text(name)
        self.up(_packet(0x10, body))
        self.down(_packet(0x20, bytes([0, code])))

    def subscribe(self, *filters: str, codes: bytes = b"") -> None:
        """SUBSCRIBE and SUBACK."""
        self.up(_packet(0x82, b"\0\1" + b"".join(_text(name) + b"\1" for name in filters)))
        self.down(_packet(0x90, b"\0\1" + (codes or bytes(len(filters)))))

    def unsubscribe(self, name: str) -> None:
        """UNSUBSCRIBE and UNSUBACK."""
        self.up(_packet(0xA2, b"\0\2" + _text(name)))
        self.down(_packet(0xB0, b"\0\2"))


def publish(topic: str, payload: bytes, *, qos: int = 0, identifier: int = 1, dup: bool = False,
            retain: bool = False) -> bytes:
    """A PUBLISH."""
    first = 0x30 | qos << 1 | (8 if dup else 0) | (1 if retain else 0)
    return _packet(first, _text(topic) + (struct.pack(">H", identifier) if qos else b"") + payload)


def answer(kind: int, identifier: int = 1) -> bytes:
    """PUBACK (4), PUBREC (5), PUBREL (6) or PUBCOMP (7)."""
    return _packet(kind << 4 | (2 if kind == 6 else 0), struct.pack(">H", identifier))


def disconnect() -> bytes:
    """A DISCONNECT."""
    return _packet(0xE0, b"")


def _packet(first: int, body: bytes) -> bytes:
    assert len(body) < 128
    return bytes([first, len(body)]) + body


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _tcp(source: int, destination: int, seq: int, ack: int, flags: int, payload: bytes) -> bytes:
    return struct.pack(">HHIIBBHHH", source, destination, seq, ack, 5 << 4, flags, 65_535, 0, 0) + payload


def _ip(source: IPv4Address, destination: IPv4Address, segment: bytes) -> bytes:
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, 6, 0, source.packed,
                       destination.packed) + segment
