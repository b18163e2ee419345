"""TCP connections of a run: their streams in both directions, and the MQTT packets in them.

All bytes of a run are there, so this needs no reassembly of what is missing.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate

from passing import ACK, FIN, RST, SYN, Frame

from mqttlab.export.identity import identity

PUBLISH, PUBREL, SUBACK, DISCONNECT = 3, 6, 9, 14
DUP = 8
WORD = 2**32
IDENTITY_BYTES, TIMED_BYTES = 9, 17


@dataclass(frozen=True, kw_only=True)
class Packet:
    """A control packet in a stream."""

    kind: int
    flags: int
    start: int
    """The place of its first byte in the bytes of MQTT."""
    end: int
    body: bytes
    """What follows the fixed header."""
    body_start: int


@dataclass(frozen=True, kw_only=True)
class Publish:
    """What a PUBLISH says."""

    packet: Packet
    topic: bytes
    qos: int
    dup: bool
    retain: bool
    identifier: int
    payload_start: int
    message: tuple[int, int] | None
    """Publisher and number, as the payload has them."""


@dataclass
class Stream:
    """One direction of a connection."""

    isn: int = 0
    data: bytearray = field(default_factory=bytearray)
    known: list[tuple[int, int]] = field(default_factory=list)
    segments: list[tuple[int, int, Frame]] = field(default_factory=list)
    """Place of the first byte, place behind the last one, and the frame; also without data."""
    acks: list[tuple[int, Frame]] = field(default_factory=list)
    """What the receiver acknowledged: the place behind it, and the frame."""
    pieces: list[tuple[int, int, bytes, int]] = field(default_factory=list)
    """Where bytes of MQTT stand: from, to, the mask of a WebSocket frame, and where that frame begins."""
    starts: list[int] = field(default_factory=list)
    """Of each piece the place of its first byte among the bytes of MQTT."""

    def place_of(self, seq: int) -> int:
        """The place of a sequence number; -1 for the SYN's own."""
        return (seq - self.isn - 1 + WORD // 2) % WORD - WORD // 2

    def sent_ns(self, place: int) -> int | None:
        """When a byte was sent first."""
        return min((frame.sent_ns for start, end, frame in self.segments if start <= place < end), default=None)

    def add(self, frame: Frame) -> None:
        """A segment of this direction."""
        segment = frame.segment
        start = self.place_of(segment.seq) + bool(segment.flags & SYN)
        end = start + len(segment.payload)
        self.segments.append((start, end, frame))
        if segment.payload and start >= 0:
            self.data.extend(bytes(max(0, end - len(self.data))))
            self.data[start:end] = segment.payload

    def settle_arrivals(self, within_ns: int, passed_on: Iterable[tuple[int, int]] = ()) -> None:
        """Let no data arrive after its receiver has acknowledged it, or passed it on.

        The times of a live run are those at which its links are to hand frames over. The kernel has them some
        microseconds earlier or later, so that its answer may be earlier. No host captures that order: it answers what
        it has.

        Args:
            within_ns: by so much an answer may be earlier; data that is later still is a copy that was not needed.
            passed_on: the places behind messages that the receiver has passed on, and when.
        """
        answers = sorted([*((place, frame.sent_ns) for place, frame in self.acks), *passed_on])
        places = [place for place, _ in answers]
        answered = [*accumulate((at_ns for _, at_ns in reversed(answers)), min)][::-1]
        for start, end, frame in self.segments:
            index = bisect.bisect_left(places, end)
            arrived = frame.arrived_ns
            if end <= start or index == len(answers) or arrived is None:
                continue
            others = [other.arrived_ns for low, high, other in self.segments if low <= start and high >= end]
            is_first = min(other for other in others if other is not None) == arrived
            if is_first and 0 <= arrived - answered[index] < within_ns:
                # On a loopback interface, whose frames have one time, an answer may have an earlier one.
                settled = max(answered[index] - 1, frame.sent_ns)
                frame.passes[-1] = replace(frame.passes[-1], delivered_ns=settled)

    def find_mqtt(self) -> None:
        """Find out where bytes of MQTT stand."""
        if self.data[:4] in (b"GET ", b"HTTP"):
            at = self.data.find(b"\r\n\r\n") + 4
            self.pieces = list(_frames(self.data, at)) if at > 3 else []
        else:
            self.pieces = [(0, len(self.data), b"", 0)]
        total = 0
        for start, end, _, _ in self.pieces:
            self.starts.append(total)
            total += end - start

    def raw(self, place: int) -> int:
        """Where in the stream a byte of MQTT stands."""
        index = max(0, bisect.bisect_right(self.starts, place) - 1)
        return self.pieces[index][0] + place - self.starts[index] if self.pieces else place

    def begin(self, place: int) -> int:
        """The same of a packet's first byte, with the header of the WebSocket frame that it begins."""
        raw = self.raw(place)
        return next((frame for start, _, _, frame in self._around(place) if start == raw), raw)

    def _around(self, place: int) -> list[tuple[int, int, bytes, int]]:
        index = max(0, bisect.bisect_right(self.starts, place) - 1)
        return self.pieces[index:index + 1]

    def mqtt(self) -> bytes:
        """The bytes of MQTT."""
        return b"".join(_unmasked(self.data[start:end], mask) for start, end, mask, _ in self.pieces)

    def write(self, place: int, content: bytes) -> None:
        """Put other bytes of MQTT at this place."""
        while content:
            index = max(0, bisect.bisect_right(self.starts, place) - 1)
            start, end, mask, _ = self.pieces[index]
            at = start + place - self.starts[index]
            part = content[:end - at]
            shift = (at - start) % 4
            self.data[at:at + len(part)] = _unmasked(part, mask[shift:] + mask[:shift])
            place, content = place + len(part), content[len(part):]

    def packets(self) -> Iterator[Packet]:
        """The control packets, up to one that is cut off."""
        content, at = self.mqtt(), 0
        while at + 2 <= len(content):
            length, body, shift = 0, at + 1, 0
            while body < len(content):
                digit = content[body]
                length |= (digit & 127) << shift
                body, shift = body + 1, shift + 7
                if not digit & 128:
                    break
            end = body + length
            if end > len(content) or not content[at]:
                return
            yield Packet(kind=content[at] >> 4, flags=content[at] & 15, start=at, end=end, body=content[body:end],
                         body_start=body)
            at = end


@dataclass
class Connection:
    """A TCP connection from a client to a server."""

    client_address: int
    client_port: int
    server_address: int
    server_port: int
    up: Stream = field(default_factory=Stream)
    down: Stream = field(default_factory=Stream)
    level: int = 4
    client: int | None = None
    """The client's number in the run."""
    client_id: bytes = b""

    keeps: bool = False
    """Whether its session outlasts it."""

    @property
    def opened_ns(self) -> int:
        """When its first SYN was sent."""
        return self.up.segments[0][2].sent_ns

    @property
    def ended_ns(self) -> int:
        """When its end began: DISCONNECT, FIN or RST of either side, or its last frame."""
        ends = [frame.sent_ns for stream in (self.up, self.down) for _, _, frame in stream.segments
                if frame.segment.flags & (FIN | RST)]
        said = [sent for packet in self.up.packets() if packet.kind == DISCONNECT
                and (sent := self.up.sent_ns(self.up.raw(packet.start))) is not None]
        # A client that vanished has no end of its own; what it does not acknowledge is beyond it.
        heard = max(frame.sent_ns for _, _, frame in self.up.segments)
        return min([*ends, *said, heard])


@dataclass
class Traffic:
    """All connections of a run, and the connection and direction of each frame."""

    connections: list[Connection] = field(default_factory=list)
    of_frame: dict[int, tuple[Connection, bool]] = field(default_factory=dict)

    def settle_arrivals(self, within_ns: int) -> None:
        """Let no data arrive after it was answered: see :meth:`Stream.settle_arrivals`."""
        passed_on: dict[tuple[int, tuple[int, int]], int] = {}
        for connection in self.connections:
            for packet, message in _messages(connection.down, connection.level):
                sent_ns = connection.down.sent_ns(connection.down.raw(packet.start))
                if sent_ns is not None:
                    key = connection.server_address, message
                    passed_on[key] = min(sent_ns, passed_on.get(key, sent_ns))
        for connection in self.connections:
            up = connection.up
            # Of a repetition the server may have had the first copy.
            first = ((up.raw(packet.end - 1) + 1, passed_on.get((connection.server_address, message)))
                     for packet, message in _messages(up, connection.level) if not packet.flags & DUP)
            up.settle_arrivals(within_ns, [(place, at_ns) for place, at_ns in first if at_ns is not None])
            connection.down.settle_arrivals(within_ns)


def _messages(stream: Stream, level: int) -> Iterator[tuple[Packet, tuple[int, int]]]:
    for packet in stream.packets():
        if packet.kind == PUBLISH and (message := publish_of(packet, level).message) is not None:
            yield packet, message


def traffic_of(frames: list[Frame], names: list[str]) -> Traffic:
    """Put segments into connections, and read their packets.

    Args:
        frames: the frames of a run, in the order in which they were sent.
        names: the client identifiers by the numbers of the clients.
    """
    traffic, current = Traffic(), dict[tuple[int, int, int, int], Connection]()
    for frame in frames:
        if not frame.is_tcp:
            continue
        segment = frame.segment
        key = (frame.source, frame.ports[0], frame.destination, frame.ports[1])
        back = (*key[2:], *key[:2])
        if segment.flags & (SYN | ACK) == SYN:
            known = current.get(key)
            if known is None or known.up.isn != segment.seq:
                current[key] = known = Connection(*key)
                known.up.isn = segment.seq
                traffic.connections.append(known)
        connection = current.get(key) or current.get(back)
        if connection is not None:
            is_up = key in current
            traffic.of_frame[frame.number] = connection, is_up
            _add(connection, is_up, frame)
    for connection in traffic.connections:
        connection.up.find_mqtt()
        connection.down.find_mqtt()
        _name(connection, names)
    return traffic


def _add(connection: Connection, is_up: bool, frame: Frame) -> None:
    own, other = (connection.up, connection.down) if is_up else (connection.down, connection.up)
    segment = frame.segment
    if segment.flags & SYN and not is_up:
        own.isn = segment.seq
    own.add(frame)
    if segment.flags & ACK and not segment.flags & RST:
        other.acks.append((other.place_of(segment.ack), frame))


def _name(connection: Connection, names: list[str]) -> None:
    """Whose it is, as its CONNECT says."""
    first = next(connection.up.packets(), None)
    if first is None or first.kind != 1:
        return
    name_bytes = struct.unpack_from("!H", first.body)[0]
    at = 2 + name_bytes
    connection.level = first.body[at]
    connection.keeps = connection.level < 5 and not first.body[at + 1] & 2
    at += 4
    if connection.level == 5:
        at += 1 + first.body[at]
    length = struct.unpack_from("!H", first.body, at)[0]
    connection.client_id = first.body[at + 2:at + 2 + length]
    name = connection.client_id.decode().rstrip("-")
    # An identifier may have random letters behind the client's name.
    found = [number for number, known in enumerate(names) if name == known or name.startswith(known + "-")]
    connection.client = found[0] if found else None


def publish_of(packet: Packet, level: int) -> Publish:
    """Read a PUBLISH."""
    body, qos = packet.body, packet.flags >> 1 & 3
    length = struct.unpack_from("!H", body)[0]
    at = 2 + length
    identifier = struct.unpack_from("!H", body, at)[0] if qos else 0
    at += 2 if qos else 0
    if level == 5:
        size, shift = 0, 0
        while True:
            digit = body[at]
            size |= (digit & 127) << shift
            at, shift = at + 1, shift + 7
            if not digit & 128:
                break
        at += size
    return Publish(packet=packet, topic=body[2:2 + length], qos=qos, dup=bool(packet.flags & DUP),
                   retain=bool(packet.flags & 1), identifier=identifier, payload_start=packet.body_start + at,
                   message=message_of(body[at:]))


def message_of(payload: bytes) -> tuple[int, int] | None:
    """Whose message it is, as mqttlab writes it into payloads."""
    if len(payload) < IDENTITY_BYTES:
        return None
    _, high, low, sequence = struct.unpack_from("!HBHI", payload)
    publisher = high << 16 | low
    intended = struct.unpack_from("!Q", payload, 9)[0] if len(payload) >= TIMED_BYTES else None
    said = identity(publisher, sequence, intended, len(payload))[:IDENTITY_BYTES]
    return (publisher, sequence) if said == payload[:IDENTITY_BYTES] else None


def _frames(data: bytearray, at: int) -> Iterator[tuple[int, int, bytes, int]]:
    """Payloads of WebSocket frames with data (RFC 6455 §5.2)."""
    while at + 2 <= len(data):
        opcode, length, masked = data[at] & 15, data[at + 1] & 127, data[at + 1] & 128
        start = at + 2
        if length > 125:
            width = 2 if length == 126 else 8
            length = int.from_bytes(data[start:start + width])
            start += width
        mask = bytes(data[start:start + 4]) if masked else b""
        start += 4 if masked else 0
        end = min(start + length, len(data))
        if opcode <= 2 and end > start:
            yield start, end, mask, at
        at = start + length


def _unmasked(content: bytes | bytearray, mask: bytes) -> bytes:
    if not any(mask):
        return bytes(content)
    key = (mask * (len(content) // 4 + 1))[:len(content)]
    return (int.from_bytes(content) ^ int.from_bytes(key)).to_bytes(len(content))
