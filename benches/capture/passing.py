"""The frames of a run with all their times, and when each passes a point of capture.

Read from ``mqttlab export --pcapng``, whose comments say when a frame came to each link, left it and arrived.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

INTERFACE, ENHANCED_PACKET = 1, 6
NAME, COMMENT = 2, 1
TCP = 6
FIN, SYN, RST, ACK = 1, 2, 4, 16
TIMES = re.compile(r"(frame|link|start_ns|sent_ns|delivered_ns)=([\d/]+)")


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One link of a frame's way."""

    link: str
    is_up: bool
    entered_ns: int
    sent_ns: int | None
    """When its last bit went out; empty where a queue dropped it."""
    delivered_ns: int | None


@dataclass
class Frame:
    """An IP packet on its way."""

    number: int
    data: bytes
    links: int
    """How many links its way has."""
    passes: list[Pass] = field(default_factory=list)

    @cached_property
    def source(self) -> int:
        """The address of its sender."""
        return int.from_bytes(self.data[12:16])

    @cached_property
    def destination(self) -> int:
        """The address of its receiver."""
        return int.from_bytes(self.data[16:20])

    @property
    def sent_ns(self) -> int:
        """When its sender sent it."""
        return self.passes[0].entered_ns

    @property
    def arrived_ns(self) -> int | None:
        """When it arrived at its receiver; empty where it was lost."""
        return self.passes[-1].delivered_ns if len(self.passes) == self.links else None

    @property
    def is_tcp(self) -> bool:
        """Whether it is a segment of TCP."""
        return self.data[9] == TCP

    @cached_property
    def ports(self) -> tuple[int, int]:
        """Ports of its sender and its receiver."""
        return struct.unpack_from("!2H", self.data, 20)

    @cached_property
    def segment(self) -> Segment:
        """What its TCP header says."""
        seq, ack, offset, flags = struct.unpack_from("!2I2B", self.data, 24)
        return Segment(seq=seq, ack=ack, flags=flags, payload=self.data[20 + (offset >> 4) * 4:])


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Of a TCP header what is needed here, and the data."""

    seq: int
    ack: int
    flags: int
    payload: bytes


@dataclass(frozen=True, kw_only=True)
class Point:
    """Where a capture is taken: at a host, or at a place of a link."""

    host: int | None = None
    """The address of the host."""
    link: str | None = None
    """The link without its direction."""
    place: float = 0
    """On the link: 0 at its first end, 1 at its second, between them in the middle."""

    def time_of(self, frame: Frame) -> int | None:
        """When a frame passes; empty where it does not."""
        if self.host is not None:
            return frame.sent_ns if frame.source == self.host else (
                frame.arrived_ns if frame.destination == self.host else None)
        for each in frame.passes:
            if each.link == self.link:
                return self._on_link(frame, each)
        return None

    def _on_link(self, frame: Frame, each: Pass) -> int | None:
        """On a link a frame may be lost before this place, or behind it."""
        way = self.place if each.is_up else 1 - self.place
        if way == 0:
            return each.entered_ns
        if way == 1 or each.sent_ns is None:
            return each.delivered_ns
        if each.delivered_ns is not None:
            return each.sent_ns + round(way * (each.delivered_ns - each.sent_ns))
        # Every second loss is behind the place.
        return each.sent_ns if frame.number % 2 else None


def frames_of(path: Path) -> list[Frame]:
    """The frames of an export, in the order in which they were sent."""
    frames: dict[int, Frame] = {}
    for interface, at_ns, data, comment in _packets(path):
        told = dict(TIMES.findall(comment))
        if comment.startswith("corrupted"):
            told.pop("delivered_ns", None)
        name, way = interface.rsplit(" ", 1)
        number = int(told["frame"])
        frame = frames.setdefault(number, Frame(number, data, int(told["link"].split("/")[1])))

        def time(of: str, at_ns: int = at_ns, told: dict[str, str] = told) -> int | None:
            return at_ns + int(told[of]) if of in told else None

        frame.passes.append(Pass(
            link=name.rsplit("/", 1)[0], is_up=way == "up", entered_ns=at_ns, sent_ns=time("sent_ns"),
            delivered_ns=time("delivered_ns")))
    return sorted(frames.values(), key=lambda frame: frame.sent_ns)


def _packets(path: Path) -> Iterator[tuple[str, int, bytes, str]]:
    """Interface, time, bytes and comment of each packet."""
    content, at, names = path.read_bytes(), 0, list[str]()
    while at < len(content):
        kind, size = struct.unpack_from("<2I", content, at)
        body = content[at + 8:at + size - 4]
        at += size
        if kind == INTERFACE:
            names.append(_option(body[8:], NAME))
        elif kind == ENHANCED_PACKET:
            interface, high, low, captured = struct.unpack_from("<4I", body)
            comment = _option(body[20 + captured + -captured % 4:], COMMENT)
            yield names[interface], high << 32 | low, body[20:20 + captured], comment


def _option(options: bytes, wanted: int) -> str:
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<2H", options, at)
        if code == wanted:
            return options[at + 4:at + 4 + length].decode()
        at += 4 + length + -length % 4
    return ""
