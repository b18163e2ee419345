"""IP packets with other bytes: contents, addresses, versions; checksums are right again."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from passing import ACK, TCP, Frame
from streams import WORD, Stream

UDP = 17
V6_NETWORK = bytes.fromhex("fd00" + "00" * 10)


@dataclass
class Edits:
    """Places of a stream that get other bytes."""

    parts: list[tuple[int, int, bytes]] = field(default_factory=list)

    def put(self, start: int, end: int, content: bytes) -> None:
        """Put bytes instead of those from ``start`` to ``end``; later places come later."""
        self.parts.append((start, end, content))

    def place(self, place: int) -> int:
        """Where a place of the stream is now."""
        moved = 0
        for start, end, content in self.parts:
            if place >= end:
                moved += len(content) - (end - start)
            elif place > start:
                return start + moved + min(place - start, len(content))
        return place + moved

    def applied(self, data: bytes) -> bytes:
        """The stream with its other bytes."""
        for start, end, content in reversed(self.parts):
            data = data[:start] + content + data[end:]
        return data


def ip_with(frame: Frame, own: Stream, other: Stream, edits: Edits, back: Edits) -> bytes:
    """A segment with the bytes that its streams have now."""
    segment, data = frame.segment, bytearray(frame.data)
    head = 20 + (data[32] >> 4) * 4
    place = own.place_of(segment.seq)
    if place >= 0:
        start, end = edits.place(place), edits.place(place + len(segment.payload))
        data[head:] = edits.applied(bytes(own.data))[start:end] if edits.parts else own.data[start:end]
        struct.pack_into("!I", data, 24, (own.isn + 1 + start) % WORD)
    if segment.flags & ACK and back.parts:
        struct.pack_into("!I", data, 28, (other.isn + 1 + back.place(other.place_of(segment.ack))) % WORD)
        _move_sack(data, head, other, back)
    struct.pack_into("!H", data, 2, len(data))
    return checked(data)


def _move_sack(data: bytearray, head: int, other: Stream, back: Edits) -> None:
    """Edges of selective acknowledgements (RFC 2018)."""
    at = 40
    while at + 1 < head and data[at]:
        if data[at] == 1:
            at += 1
            continue
        if data[at] == 5:
            for edge in range(at + 2, at + data[at + 1], 4):
                place = back.place(other.place_of(struct.unpack_from("!I", data, edge)[0]))
                struct.pack_into("!I", data, edge, (other.isn + 1 + place) % WORD)
        at += data[at + 1]


def checked(data: bytearray) -> bytes:
    """An IPv4 packet with its checksums."""
    data[10:12] = b"\0\0"
    struct.pack_into("!H", data, 10, checksum(bytes(data[:20])))
    place = {TCP: 36, UDP: 26}.get(data[9])
    if place is not None:
        data[place:place + 2] = b"\0\0"
        pseudo = bytes(data[12:20]) + struct.pack("!2H", data[9], len(data) - 20)
        struct.pack_into("!H", data, place, checksum(pseudo + bytes(data[20:])))
    return bytes(data)


def as_v6(data: bytes) -> bytes:
    """An IPv4 packet as one of IPv6."""
    body, protocol = bytearray(data[20:]), data[9]
    addresses = V6_NETWORK + data[12:16] + V6_NETWORK + data[16:20]
    place = {TCP: 16, UDP: 6}.get(protocol)
    if place is not None:
        body[place:place + 2] = b"\0\0"
        pseudo = addresses + struct.pack("!2I", len(body), protocol)
        struct.pack_into("!H", body, place, checksum(pseudo + bytes(body)))
    return struct.pack("!IHBB", 6 << 28, len(body), protocol, data[8]) + addresses + bytes(body)


def translated(data: bytes, addresses: dict[bytes, bytes], ports: dict[tuple[bytes, int], int]) -> bytes:
    """A packet behind a NAT: clients have another address and other ports."""
    moved = bytearray(data)
    for address, port in ((12, 20), (16, 22)):
        own = data[address:address + 4]
        if own in addresses:
            key = own, struct.unpack_from("!H", data, port)[0]
            moved[address:address + 4] = addresses[own]
            struct.pack_into("!H", moved, port, ports.setdefault(key, 20_001 + len(ports)))
    moved[8] = max(1, data[8] - 1)
    return checked(moved)


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~((total >> 16) + total) & 0xFFFF
