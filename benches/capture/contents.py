"""Other contents for the packets of a run: what strangers publish, and what an export of a simulation leaves out.

Payloads keep their lengths. A CONNECT that loses its client identifier, and the CONNACK that assigns one, do not: the
sequence numbers behind them are moved.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import blake2b

from packets import Edits, ip_with
from passing import Frame
from streams import PUBLISH, Connection, Packet, Stream, Traffic, publish_of

from mqttlab.export.websocket import header

CONNECT, CONNACK, SUBSCRIBE, SUBACK = 1, 2, 8, 9
ASSIGNED = 0x12
# So many more bytes has a packet than were sent of it.
LONGER = 500
JSON = b'{"device":{"vendor":"Example","model":"T-1000","firmware":"2.4.1-release"},"site":"plant 7, hall 3, line 12",'
Content = Callable[[int, int, int], bytes]


def _late(publisher: int, sequence: int, size: int) -> bytes:
    """JSON whose number stands at its end."""
    tail = b'"n":%d.%06d}' % (publisher, sequence)
    return (JSON * (size // len(JSON) + 1))[:size - len(tail)] + tail if size >= len(tail) else tail[-size:]


def _early(publisher: int, sequence: int, size: int) -> bytes:
    """JSON whose number stands at its beginning."""
    return (b'{"n":%d.%06d,' % (publisher, sequence)).ljust(size - 1, b" ")[:size - 1] + b"}"


def _constant(publisher: int, sequence: int, size: int) -> bytes:
    """The same throughout."""
    return (JSON * (size // len(JSON) + 1))[:size]


def _few(publisher: int, sequence: int, size: int) -> bytes:
    """A reading with few values, which come again."""
    value = blake2b(b"%d/%d" % (publisher, sequence), digest_size=1).digest()[0] % 7
    return (b'{"t":2%d.5}' % value).ljust(size, b" ")[:size]


def _random(publisher: int, sequence: int, size: int) -> bytes:
    """Bytes that look random."""
    seed = blake2b(b"%d/%d" % (publisher, sequence), digest_size=32).digest()
    return (seed * (size // len(seed) + 1))[:size]


CONTENTS: dict[str, Content | None] = {
    "mqttlab": None, "late": _late, "early": _early, "constant": _constant, "few": _few, "random": _random}
"""How payloads look; ``mqttlab`` leaves them as they are."""


def rewritten(
    frames: list[Frame], traffic: Traffic, *, contents: str, assigns: bool, completes: bool,
) -> dict[int, bytes]:
    """The IP packets of a run with other contents, by the numbers of their frames.

    Args:
        frames: the frames.
        traffic: their connections.
        contents: one of ``CONTENTS``.
        assigns: whether the broker assigns client identifiers, where the protocol has that.
        completes: whether to write what exports of simulations leave out.
    """
    edits = {id(stream): Edits() for connection in traffic.connections for stream in (connection.up, connection.down)}
    sessions: set[tuple[int, int, int | None]] = set()
    for number, connection in enumerate(traffic.connections):
        if CONTENTS[contents] is not None:
            for stream in (connection.up, connection.down):
                _write_payloads(stream, connection.level, CONTENTS[contents])
        if completes:
            _complete(connection, sessions)
        if assigns and connection.level == 5:
            _assign(connection, number, edits)
    return {frame.number: _frame(frame, traffic, edits) for frame in frames}


def _write_payloads(stream: Stream, level: int, content: Content | None) -> None:
    for packet in stream.packets():
        if packet.kind == PUBLISH and content is not None:
            publish = publish_of(packet, level)
            if publish.message is not None:
                stream.write(publish.payload_start, content(*publish.message, packet.end - publish.payload_start))


def _complete(connection: Connection, sessions: set[tuple[int, int, int | None]]) -> None:
    """Grants as they were asked for, whether the session was there, and a packet that never was whole."""
    for stream, is_up in ((connection.up, True), (connection.down, False)):
        _begin_last(stream, is_up=is_up)
    asked: list[tuple[bytes, bytes]] = []
    keeps = False
    for packet in connection.up.packets():
        if packet.kind == CONNECT and connection.level == 4:
            keeps = not packet.body[7] & 2
        elif packet.kind == SUBSCRIBE:
            asked.append((packet.body[:2], _levels(packet, connection.level)))
    key = (connection.server_address, connection.server_port, connection.client)
    for packet in connection.down.packets():
        if packet.kind == CONNACK and packet.body[1] == 0:
            if keeps and key in sessions:
                connection.down.write(packet.body_start, b"\1")
            (sessions.add if keeps else sessions.discard)(key)
        elif packet.kind == SUBACK:
            codes = next((codes for identifier, codes in asked if identifier == packet.body[:2]), b"")
            connection.down.write(packet.end - len(codes), codes)


def _begin_last(stream: Stream, *, is_up: bool) -> None:
    """An export has zeros for the beginning of a packet whose end never was sent: a PUBLISH begins there."""
    last = 0
    for packet in stream.packets():
        last = stream.raw(packet.end - 1) + 1
    rest = len(stream.data) - last
    if rest < 3 or any(stream.data[last:]):
        return
    size = rest + LONGER
    packet_ = bytes((0x32,)) + _varint(size) + b"\0\1t\0\1"
    begun = (header(size + 4, is_masked=is_up) if stream.pieces and stream.pieces[0][0] else b"") + packet_
    stream.data[last:] = begun[:rest].ljust(rest, b"\0")


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes((*digits, value))


def _levels(packet: Packet, level: int) -> bytes:
    """The qualities of service that a SUBSCRIBE asks for."""
    at, levels = 2, bytearray()
    at += 1 + packet.body[at] if level == 5 else 0
    while at + 2 < len(packet.body):
        at += 2 + struct.unpack_from("!H", packet.body, at)[0]
        levels.append(packet.body[at] & 3)
        at += 1
    return bytes(levels)


def _assign(connection: Connection, number: int, edits: dict[int, Edits]) -> None:
    """A CONNECT without an identifier, and a CONNACK with one."""
    asking, answer = next(connection.up.packets(), None), next(connection.down.packets(), None)
    is_plain = len(connection.up.pieces) == 1 and connection.up.pieces[0][2] == b""
    if asking is None or answer is None or not is_plain or not connection.client_id:
        return
    name = struct.pack("!H", len(connection.client_id)) + connection.client_id
    body = asking.body.replace(name, bytes(2), 1)
    edits[id(connection.up)].put(asking.start, asking.end, _packet(0x10, body))
    length = answer.body[2]
    assigned = b"auto-%08X" % (0x5EED0000 + number)
    said = answer.body[3:3 + length] + bytes((ASSIGNED,)) + struct.pack("!H", len(assigned)) + assigned
    answered = answer.body[:2] + bytes((len(said),)) + said
    edits[id(connection.down)].put(answer.start, answer.end, _packet(0x20, answered))
    connection.client_id = assigned


def _packet(first: int, body: bytes) -> bytes:
    assert len(body) < 128, "a CONNECT or CONNACK that is too long"
    return bytes((first, len(body))) + body


def _frame(frame: Frame, traffic: Traffic, edits: dict[int, Edits]) -> bytes:
    if frame.number not in traffic.of_frame:
        return frame.data
    connection, is_up = traffic.of_frame[frame.number]
    own, other = (connection.up, connection.down) if is_up else (connection.down, connection.up)
    return ip_with(frame, own, other, edits[id(own)], edits[id(other)])
