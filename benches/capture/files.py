"""Plain captures, as tcpdump and mirror ports leave them, and what happens to them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from packets import as_v6, checked, translated
from passing import Frame
from right import View

PUBLIC = bytes((203, 0, 113, 9))
ETHERNET, RAW, COOKED = 1, 101, 113
MAGIC_US, MAGIC_NS = 0xA1B2C3D4, 0xA1B23C4D


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What happens to a file, or to the network before it."""

    snap: int | None = None
    """Bytes that are kept of a frame."""
    missing: float = 0
    """Share of the frames that are not in the file."""
    mirror: bool = False
    """Each frame twice."""
    numbers: str = "own"
    """Numbers of IPv4 packets: ``own``, ``zero``; ``v6`` where there are none."""
    nat: bool = False
    """Whether clients have the address of a NAT here."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A frame in a file."""

    at_ns: int
    said_ns: int
    frame: int
    data: bytes


def seen_by(view: View, frames: list[Frame], data: dict[int, bytes]) -> list[Seen]:
    """What passes a point, in the order of time."""
    times = ((view.true_ns(frame), frame.number) for frame in frames)
    found = [Seen(at_ns=at_ns, said_ns=view.said_ns(at_ns), frame=number, data=data[number])
             for at_ns, number in times if at_ns is not None]
    return sorted(found, key=lambda seen: seen.at_ns)


def damaged(
    seen: list[Seen], damage: Damage, chance: Chance, clients: list[bytes], ports: dict[tuple[bytes, int], int],
) -> list[Seen]:
    """The frames of a file after its damages; cutting comes when it is written."""
    if damage.nat:
        addresses = dict.fromkeys(clients, PUBLIC)
        seen = [replace(each, data=translated(each.data, addresses, ports)) for each in seen]
    if damage.numbers == "zero":
        seen = [replace(each, data=checked(bytearray(each.data[:4] + b"\0\0" + each.data[6:]))) for each in seen]
    elif damage.numbers == "v6":
        seen = [replace(each, data=as_v6(each.data)) for each in seen]
    if damage.mirror:
        seen = sorted([*seen, *_copies(seen, chance)], key=lambda each: each.at_ns)
    if damage.missing:
        seen = [each for number, each in enumerate(seen) if chance(f"missing/{number}") >= damage.missing]
    return seen


class Chance:
    """Evenly distributed numbers from 0 to 1, by names."""

    def __init__(self, name: str, uniform: object) -> None:
        self._name, self._uniform = name, uniform

    def __call__(self, what: str) -> float:
        return self._uniform(f"{self._name}/{what}")  # type: ignore[no-any-return, operator]


def _copies(seen: list[Seen], chance: Chance) -> Iterator[Seen]:
    for number, each in enumerate(seen):
        gap = round(3_000 + 197_000 * chance(f"mirror/{number}"))
        yield replace(each, at_ns=each.at_ns + gap, said_ns=each.said_ns + gap)


def pcap(seen: list[Seen], *, link_type: int, in_ns: bool, snap: int | None) -> bytes:
    """A pcap file."""
    unit = 1 if in_ns else 1_000
    parts = [struct.pack("<IHHiIII", MAGIC_NS if in_ns else MAGIC_US, 2, 4, 0, 0, snap or 262_144, link_type)]
    for each in seen:
        data = _link_header(link_type, each.data) + each.data
        kept = data[:snap]
        parts.append(struct.pack("<4I", each.said_ns // 10**9, each.said_ns % 10**9 // unit, len(kept), len(data)))
        parts.append(kept)
    return b"".join(parts)


def pcapng(seen: list[Seen], *, link_type: int, snap: int | None) -> bytes:
    """A pcapng file with times in nanoseconds."""
    parts = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
             _block(1, struct.pack("<HHI", link_type, 0, snap or 262_144) + struct.pack("<HHB3xI", 9, 1, 9, 0))]
    for each in seen:
        data = _link_header(link_type, each.data) + each.data
        kept = data[:snap]
        head = struct.pack("<5I", 0, each.said_ns >> 32, each.said_ns & 0xFFFFFFFF, len(kept), len(data))
        parts.append(_block(6, head + kept + bytes(-len(kept) % 4)))
    return b"".join(parts)


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def _link_header(link_type: int, data: bytes) -> bytes:
    protocol = b"\x86\xdd" if data[0] >> 4 == 6 else b"\x08\x00"
    if link_type == ETHERNET:
        return b"\x02\0\0\0\0\1\x02\0\0\0\0\2" + protocol
    return struct.pack("!3H8s", 0, 1, 6, b"\x02\0\0\0\0\1\0\0") + protocol if link_type == COOKED else b""
