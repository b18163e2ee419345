"""What is right for a capture at a point, from the frames of the whole run: no import is asked.

A message is sent when its first byte passes. It is delivered

- at the receiver's own host, when its last byte comes (at QoS 2 that of its PUBREL);
- elsewhere, when an acknowledgement of the last byte passes, with the time of the copy that was acknowledged.

Between two copies of a segment, and behind a hole that another segment fills later, a capture does not always say which
copy that was: the time has bounds then. A delivery of which no acknowledgement passes may be said either way.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from passing import Frame, Point
from streams import PUBLISH, PUBREL, SUBACK, Connection, Publish, Stream, Traffic, publish_of

# Near the ends of a session the order at a point may be another one than at the broker.
MARGIN_NS = 500_000_000


@dataclass(frozen=True, kw_only=True)
class View:
    """A file: where it is taken, how its clock goes, and from when to when."""

    point: Point
    offset_ns: int = 0
    """How far its clock is ahead."""
    offset_from_ns: int = 0
    """From when on it is."""
    from_ns: int = 0
    until_ns: int = 2**62

    def true_ns(self, frame: Frame) -> int | None:
        """When a frame passes within the time of the file."""
        at_ns = self.point.time_of(frame)
        return at_ns if at_ns is not None and self.from_ns <= at_ns < self.until_ns else None

    def said_ns(self, at_ns: int) -> int:
        """What the file's clock says."""
        return at_ns + (self.offset_ns if at_ns >= self.offset_from_ns else 0)


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A message that passes on its way to the broker."""

    publisher: int
    sequence: int
    at_ns: int
    """When its first byte passed first, as the file says."""
    is_whole: bool
    """Whether all of it passed, and all before it: behind a hole that never was filled it may be counted or not."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A message that passes on its way to a receiver."""

    is_certain: bool
    """Whether an acknowledgement shows it; without one it may be called delivered or not."""
    low_ns: int
    high_ns: int
    """Between these times it was, as the files say."""
    seen_ns: int
    """When all of it had passed first, in whichever copy."""
    is_at_receiver: bool
    """Whether a file is of the receiver's host."""


@dataclass
class Right:
    """What is right for the files of one capture."""

    sent: dict[tuple[int, int], Sent] = field(default_factory=dict)
    deliveries: dict[tuple[int, int, int], list[Delivery]] = field(default_factory=dict)
    """By publisher, sequence and subscriber."""
    subscribers: set[int] = field(default_factory=set)
    """Clients whose SUBACK passes."""
    sessions: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By client, from when to when its subscriptions certainly were in force at the broker."""
    at_broker: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By message, when its first byte was sent, and when the broker had the last one."""
    again: set[int] = field(default_factory=set)
    """Publishers that publish a message again in a new session, without DUP: no capture tells it from a new one."""
    contradicts: bool = False
    """Whether the files' times cannot all be right: a frame is said to have arrived before it was sent."""

    def is_due(self, message: tuple[int, int], subscriber: int) -> bool:
        """Whether a client was certainly subscribed while a message came to the broker."""
        sent_ns, came_ns = self.at_broker.get(message, (0, 0))
        return any(begin <= sent_ns and came_ns <= end for begin, end in self.sessions.get(subscriber, ()))


def right_of(traffic: Traffic, frames: list[Frame], views: list[View], *, slack_ns: int = 0) -> Right:
    """Everything that the files show; a live run's own times of two places may disagree by ``slack_ns``."""
    right = Right()
    for connection in sorted(traffic.connections, key=lambda connection: connection.opened_ns):
        _add_sent(connection, views, right)
    by_client: dict[int, list[Connection]] = {}
    for connection in traffic.connections:
        if connection.client is not None:
            by_client.setdefault(connection.client, []).append(connection)
    for client, connections in by_client.items():
        _add_deliveries(client, connections, views, right)
        right.sessions[client] = list(_sessions(connections))
    right.contradicts = len(views) > 1 and any(_contradicts(frame, views, slack_ns) for frame in frames)
    right.contradicts |= any(
        delivery.high_ns + slack_ns < right.sent[key[:2]].at_ns
        for key, found in right.deliveries.items() if key[:2] in right.sent for delivery in found)
    return right


def _contradicts(frame: Frame, views: list[View], slack_ns: int) -> bool:
    seen = sorted((at_ns, view.said_ns(at_ns)) for view in views if (at_ns := view.true_ns(frame)) is not None)
    return any(later + slack_ns < earlier for (_, earlier), (_, later) in pairwise(seen))


def _sessions(connections: list[Connection]) -> Iterator[tuple[int, int]]:
    """From when to when subscriptions were in force, less a margin where a point may see another order."""
    begun = None
    for number, connection in enumerate(connections):
        granted = next((packet for packet in connection.down.packets() if packet.kind == SUBACK), None)
        if granted is not None and (begun is None or not connection.keeps):
            sent = connection.down.sent_ns(connection.down.raw(granted.end - 1))
            begun = None if sent is None else sent + MARGIN_NS
        if begun is None:
            continue
        is_last = number == len(connections) - 1
        if connection.keeps and not is_last:
            continue
        yield begun, 2**62 if connection.keeps else connection.ended_ns - MARGIN_NS
        begun = None


def _add_sent(connection: Connection, views: list[View], right: Right) -> None:
    ways = Ways(connection.up, views)
    for publish in publishes(connection.up, connection.level):
        if publish.message is None:
            continue
        start, end = span(connection.up, publish)
        first = ways.first(start)
        publisher, sequence = publish.message
        _came(publish.message, connection.up, start, end, right)
        if first is not None and publish.message in right.sent and not publish.dup:
            right.again.add(publisher)
        elif first is not None and publish.message not in right.sent:
            right.sent[publish.message] = Sent(
                publisher=publisher, sequence=sequence, at_ns=first, is_whole=ways.passed(start, end))


def _came(message: tuple[int, int], stream: Stream, start: int, end: int, right: Right) -> None:
    """When a message was sent, and when the broker had it."""
    over = [(first, last, frame) for first, last, frame in stream.segments if first < end and last > start]
    if message not in right.at_broker and over:
        came = [frame.arrived_ns or frame.sent_ns for _, _, frame in over]
        right.at_broker[message] = min(frame.sent_ns for _, _, frame in over), max(came)


def _add_deliveries(client: int, connections: list[Connection], views: list[View], right: Right) -> None:
    """Of a client's connections, one after the other: a PUBREL may come on a later one."""
    waiting: dict[int, tuple[int, int]] = {}
    for connection in connections:
        if not connection.keeps:
            waiting.clear()
        ways = Ways(connection.down, views)
        own = next((index for index, view in enumerate(views) if view.point.host == connection.client_address), None)
        for packet in connection.down.packets():
            start, end = connection.down.raw(packet.start), connection.down.raw(packet.end - 1) + 1
            if packet.kind == SUBACK and ways.passed(start, end):
                right.subscribers.add(client)
            elif packet.kind == PUBLISH:
                publish = publish_of(packet, connection.level)
                # A copy from the broker's store has no latency.
                if publish.message is None or publish.retain:
                    continue
                if publish.qos == 2:
                    waiting[publish.identifier] = publish.message
                    continue
                _add_delivery((*publish.message, client), ways.delivery(start, end, own), right)
            elif packet.kind == PUBREL:
                message = waiting.pop(int.from_bytes(packet.body[:2]), None)
                if message is not None:
                    _add_delivery((*message, client), ways.delivery(start, end, own), right)


def _add_delivery(key: tuple[int, int, int], delivery: Delivery | None, right: Right) -> None:
    if delivery is not None:
        right.deliveries.setdefault(key, []).append(delivery)


def publishes(stream: Stream, level: int) -> Iterator[Publish]:
    """The PUBLISH packets of a stream."""
    for packet in stream.packets():
        if packet.kind == PUBLISH:
            yield publish_of(packet, level)


def span(stream: Stream, publish: Publish) -> tuple[int, int]:
    """Where a PUBLISH stands in its stream."""
    return stream.begin(publish.packet.start), stream.raw(publish.packet.end - 1) + 1


class Ways:
    """How the bytes of one stream came to the points and to their receiver. Packets are asked for in their order."""

    def __init__(self, stream: Stream, views: list[View]) -> None:
        self._views = views
        self._segments = sorted((part for part in stream.segments if part[1] > part[0] >= 0), key=lambda part: part[:2])
        self._starts = [start for start, _, _ in self._segments]
        self._longest = max((end - start for start, end, _ in self._segments), default=0)
        self._acks = sorted(((place, frame) for place, frame in stream.acks), key=lambda ack: ack[0])
        self._ack_places = [place for place, _ in self._acks]
        # The first times at which acknowledgements of so many bytes and more passed each point, and were sent.
        self._acked = [self._earliest(view.true_ns(frame) for _, frame in self._acks) for view in views]
        self._answered = self._earliest(frame.sent_ns for _, frame in self._acks)
        self._whole = [self._contiguous(view) for view in views]
        # Per view, until when the bytes before a packet may have been on their way.
        self._behind: list[int] = [0] * len(views)
        self._looked_at = 0

    def _contiguous(self, view: View) -> tuple[int, int]:
        """From where to where all bytes passed a point."""
        seen = [(start, end) for start, end, frame in self._segments if view.true_ns(frame) is not None]
        begin = until = seen[0][0] if seen else 0
        for start, end in seen:
            if start > until:
                break
            until = max(until, end)
        return begin, until

    @staticmethod
    def _earliest(times: Iterable[int | None]) -> list[int | None]:
        found = list(times)
        for index in range(len(found) - 2, -1, -1):
            here, later = found[index], found[index + 1]
            found[index] = later if here is None or (later is not None and later < here) else here
        return found

    def _over(self, start: int, end: int) -> list[tuple[int, int, Frame]]:
        """Segments with bytes of this range."""
        first = bisect.bisect_left(self._starts, start - self._longest)
        last = bisect.bisect_left(self._starts, end)
        return [part for part in self._segments[first:last] if part[1] > start]

    def _cut(self, start: int, end: int) -> list[tuple[int, list[Frame]]]:
        """The range cut where segments begin or end: the end of each piece, and the frames with it."""
        over = self._over(start, end)
        edges = sorted({start, end, *(edge for part in over for edge in part[:2] if start < edge < end)})
        return [(other, [frame for low, high, frame in over if low <= one and high >= other])
                for one, other in pairwise(edges)]

    def first(self, start: int) -> int | None:
        """When a byte passed first, by the clock of the file that saw it first."""
        seen = [(at_ns, view.said_ns(at_ns)) for view in self._views for _, _, frame in self._over(start, start + 1)
                if (at_ns := view.true_ns(frame)) is not None]
        return min(seen)[1] if seen else None

    def passed(self, start: int, end: int) -> bool:
        """Whether all of it, and of its stream before it, passed one of the points."""
        return any(begin <= start and end <= until for begin, until in self._whole)

    def delivery(self, start: int, end: int, own: int | None) -> Delivery | None:
        """Whether and when a packet was delivered.

        Args:
            start: where it begins in the stream.
            end: where it ends.
            own: which of the views is at the receiver's own host.
        """
        self._look_before(start)
        pieces = [piece for _, piece in self._cut(start, end)]
        arrived = [min((frame.arrived_ns for frame in piece if frame.arrived_ns is not None), default=None)
                   for piece in pieces]
        came = None if None in arrived else max(at_ns for at_ns in arrived if at_ns is not None)
        index = bisect.bisect_left(self._ack_places, end)
        is_acked = index < len(self._acks)
        if own is not None:
            view = self._views[own]
            if came is None or not view.from_ns <= came < view.until_ns:
                return None
            self._behind[own] = max(self._behind[own], came)
            return Delivery(is_certain=is_acked, low_ns=view.said_ns(came), high_ns=view.said_ns(self._behind[own]),
                            seen_ns=self._seen(pieces), is_at_receiver=True)
        return self._elsewhere(pieces, index, came)

    def _look_before(self, start: int) -> None:
        """Bytes before a packet that belong to no delivery hold it up, too, where they fill a hole."""
        at, self._looked_at = self._looked_at, max(start, self._looked_at)
        for end, piece in self._cut(at, start) if at < start else ():
            index = bisect.bisect_left(self._ack_places, end)
            for number, view in enumerate(self._views):
                acked = self._acked[number][index] if index < len(self._acks) else None
                self._behind[number] = max([self._behind[number], *self._copy_times(piece, view, acked)])

    def _elsewhere(self, pieces: list[list[Frame]], index: int, came: int | None) -> Delivery | None:
        found: list[tuple[int, int]] = []
        is_certain = False
        for number, view in enumerate(self._views):
            acked = self._acked[number][index] if index < len(self._acks) else None
            times = [self._copy_times(piece, view, acked) for piece in pieces]
            if not all(times):
                continue
            low, high = max(min(each) for each in times), max(max(each) for each in times)
            self._behind[number] = max(self._behind[number], high)
            if acked is None and came is None:
                continue
            is_certain |= acked is not None
            found.append((view.said_ns(low), view.said_ns(self._behind[number])))
        if not found:
            return None
        return Delivery(is_certain=is_certain, low_ns=min(low for low, _ in found), is_at_receiver=False,
                        high_ns=max(high for _, high in found), seen_ns=self._seen(pieces))

    def _seen(self, pieces: list[list[Frame]]) -> int:
        times = [[view.said_ns(at_ns) for frame in piece for view in self._views
                  if (at_ns := view.true_ns(frame)) is not None] for piece in pieces]
        return max((min(each) for each in times if each), default=0)

    @staticmethod
    def _copy_times(piece: list[Frame], view: View, acked: int | None) -> list[int]:
        """When the copy passed that arrived first, and the last one that may have been acknowledged."""
        passed = [(frame, at_ns) for frame in piece if (at_ns := view.true_ns(frame)) is not None]
        arrived = sorted((frame.arrived_ns, at_ns) for frame, at_ns in passed if frame.arrived_ns is not None)
        before = [at_ns for _, at_ns in passed if acked is None or at_ns <= acked]
        return [*[at_ns for _, at_ns in arrived[:1]], *([max(before)] if before else [])]
