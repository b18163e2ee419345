"""One message's story: the spans its time went to, and every frame that carried it or decided its fate.

```text
  Recording ──► metrics.attribution (legs, packets, segments) ──► Story: spans, arrows ──► words, diagram, page
```

A frame is in the story because it carried a byte of the message's PUBLISH, sent again or not; because it brought what
was missing before it in the stream; because its acknowledgement ended a wait, or because that acknowledgement was of
it; or because it carried the PUBREC and PUBREL of a QoS 2 delivery that waited for them.

What it does not model: what happened inside broker and clients, which no frame shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from mqttlab.metrics.attribution import Evidence, captured_parts, intervals, part_titles
from mqttlab.metrics.attribution.transport import SLACK_NS
from mqttlab.metrics.catalogue import PARTS
from mqttlab.recording import Recording

# Of a message that fills many segments, these many at each end are shown, and all that were lost or sent again.
SEGMENTS_SHOWN = 4
# The remark at the acknowledgement that ended a wait for a window.
MAKES_ROOM = "makes room in the in-flight window"

# What may hold a message before its broker or behind it.
EITHER_SIDE = ("link_down_ns", "nat_forgot_ns")


@dataclass(frozen=True, kw_only=True)
class Span:
    """A part of the message's time, and the host at which it passed."""

    part: str
    host: str
    from_ns: int
    to_ns: int

    @property
    def length_ns(self) -> int:
        """How long it took."""
        return self.to_ns - self.from_ns


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """A frame on its way from one host to another."""

    frame: int
    from_host: str
    to_host: str
    client: str
    """The client at the connection's end."""
    sent_ns: int
    ended_ns: int
    """When it had arrived, or when it was lost."""
    queue_ns: int
    lost: str | None
    """Why it did not arrive."""
    again: bool
    packets: tuple[str, ...]
    offset: int | None
    """Position of its data in the stream."""
    data_bytes: int
    acked: int | None
    """Position up to which it acknowledges the other direction's stream."""
    own: bool
    """Whether it carries the message itself."""
    to_broker: bool
    """Whether it goes from the client to the other end of its connection."""
    remarks: tuple[str, ...] = ()

    def label(self, named: int = 2) -> str:
        """What it carries, in short: so many packets by name."""
        if not self.packets:
            return "ACK" if not self.data_bytes else f"{self.data_bytes} B"
        more = len(self.packets) - named
        return ", ".join(self.packets[:named]) + (f" + {more}" if more > 0 else "")


@dataclass(frozen=True, kw_only=True)
class Happening:
    """What became of a connection meanwhile."""

    at_ns: int
    host: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Release:
    """An acknowledgement that ended a wait, and the frame that it acknowledged."""

    part: str
    frame: int
    awaited: Arrow | None
    withheld_ns: int | None
    """How long the receiver of that frame kept the acknowledgement back."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """What became of one delivery."""

    publisher: int
    sequence: int
    subscriber: int
    names: dict[str, str]
    topic: str
    qos: int
    payload_bytes: int
    begins_ns: int
    ends_ns: int
    parts: dict[str, int]
    adjusted_ns: int
    hosts: tuple[str, ...]
    clients_at: dict[str, tuple[str, ...]]
    spans: tuple[Span, ...]
    arrows: tuple[Arrow, ...]
    releases: tuple[Release, ...]
    happenings: tuple[Happening, ...]
    titles: dict[str, str] = field(default_factory=part_titles)
    """Short names of the parts."""
    captured: dict[str, str] = field(default_factory=dict)
    """The parts that a capture of others does not divide, and what they stand for: keys of ``CAPTURED_WORDS``."""
    simulated: bool = False
    """Whether no machine performed it."""

    @property
    def latency_ns(self) -> int:
        """From the intended time to the reception."""
        return self.ends_ns - self.begins_ns


def _server(recording: Recording) -> str:
    """What stands between publishers and subscribers, in words: a ``broker``, of ZeroMQ a ``proxy``."""
    roles = [server.get("role") for server in recording.plan.get("servers") or ()]
    if roles and all(isinstance(one, dict) and "zeromq" in one for one in roles):
        return "proxy"
    return "broker"


def tell(recording: Recording, evidence: Evidence, leg: int) -> Story:
    """The story of the delivery with this number in ``evidence.legs``, all its legs from the publisher on."""
    chain = _legs_of(evidence.legs, leg)
    teller = _Teller(recording, evidence)
    for row in chain:
        teller.leg(row)
    last, first = chain[-1], chain[0]
    message = recording.collect(recording.scan("messages").filter(
        pl.col("publisher") == last["publisher"], pl.col("sequence") == last["sequence"],
        pl.col("subscriber") == last["subscriber"], pl.col("fate") == "delivered"))
    arrows = tuple(sorted(teller.arrows.values(), key=lambda arrow: (arrow.sent_ns, arrow.frame)))
    clients = recording.layout["clients"]
    ends = [last["publisher"], *(row["subscriber"] for row in chain)]
    broker = teller.broker
    hosts = _in_order(_hosts_of(teller, chain))
    return Story(
        publisher=last["publisher"], sequence=last["sequence"], subscriber=last["subscriber"],
        names={"publisher": clients[last["publisher"]]["name"], "subscriber": clients[last["subscriber"]]["name"],
               "broker": broker, "server": _server(recording),
               "publisher_host": teller.host(ends[0]), "subscriber_host": teller.host(ends[-1])},
        topic=message["topic"][0], qos=message["qos"][0], payload_bytes=message["payload_bytes"][0],
        begins_ns=first["begins_ns"], ends_ns=last["received_ns"],
        parts={part: sum(row[part] for row in chain) for part in PARTS},
        adjusted_ns=sum(row["adjusted_ns"] for row in chain), hosts=hosts,
        clients_at={host: tuple(_in_order([clients[c]["name"] for c in ends if teller.host(c) == host]))
                    for host in hosts if host != broker},
        spans=tuple(teller.spans), arrows=arrows, releases=tuple(teller.releases),
        happenings=tuple(teller.happenings(ends, first["begins_ns"], last["received_ns"])),
        titles=part_titles(recording), captured=captured_parts(recording),
        simulated=recording.plan.get("backend") == "sim",
    )


def _hosts_of(teller: _Teller, chain: list[dict[str, Any]]) -> list[str]:
    """Where the message was, in order."""
    hosts = [teller.host(chain[0]["publisher"])]
    for row in chain:
        between = [teller.gateway(row, "sn_up"), teller.broker, teller.gateway(row, "sn_down")]
        hosts += [host for host in between if host is not None] + [teller.host(row["subscriber"])]
    return hosts


def _legs_of(legs: pl.DataFrame, leg: int) -> list[dict[str, Any]]:
    chain: list[dict[str, Any]] = []
    at: int | None = leg
    while at is not None:
        row = legs.row(by_predicate=pl.col("leg") == at, named=True)
        chain.insert(0, row)
        at = row["before"]
    return chain


def _in_order(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


class _Teller:
    """Gathers spans and arrows, leg after leg."""

    def __init__(self, recording: Recording, evidence: Evidence) -> None:
        self.recording, self.evidence = recording, evidence
        self.transport = evidence.transport
        self.arrows: dict[int, Arrow] = {}
        self.spans: list[Span] = []
        self.releases: list[Release] = []
        names = recording.layout["clients"].names
        pairs = evidence.control_packets.select("connection", "client").drop_nulls().unique("connection")
        self.client_of = {connection: names[client] for connection, client in pairs.rows()}
        # Datagrams end at a gateway, which has connections of its own to the broker.
        datagrams = pl.col("connection").is_in(evidence.datagrams.implode())
        hosts = self.transport.packets.select("connection", "way", "to_host")
        to_broker = hosts.filter(pl.col("way") % 2 == 1).sort(datagrams, maintain_order=True)
        self.broker = str(recording.layout["hosts"][to_broker["to_host"][0]])

    def gateway(self, row: dict[str, Any], prefix: str) -> str | None:
        """The host of the gateway between a leg's client and the broker; ``None`` without one."""
        if row[f"{prefix}_packet"] is None:
            return None
        frames = self.transport.of_frame.of(row[f"{prefix}_frame"])
        return str(self.recording.layout["hosts"][frames["to_host" if prefix == "sn_up" else "from_host"][0]])

    def host(self, client: int) -> str:
        """The name of a client's host."""
        layout = self.recording.layout
        return str(layout["hosts"][layout["clients"][client]["host"]])

    def happenings(self, clients: list[int], begins_ns: int, ends_ns: int) -> list[Happening]:
        """Connections that ended or came about while the message was on its way."""
        names = self.recording.layout["clients"]
        words = {"disconnect": "lost its connection", "connack": "is connected", "reconnect": "connects again"}
        events = self.recording.events.filter(
            pl.col("kind").is_in(list(words)), pl.col("client").is_in(sorted(set(clients))),
            pl.col("at_ns").is_between(begins_ns, ends_ns)).sort("at_ns")
        return [
            Happening(at_ns=event["at_ns"], host=self.host(event["client"]),
                      text=f"{names[event['client']]['name']} {words[event['kind']]}"
                           + (f" ({event['detail']})" if event["detail"] else ""))
            for event in events.iter_rows(named=True)
        ]

    def leg(self, row: dict[str, Any]) -> None:
        """Add one leg."""
        sender, receiver = self.host(row["up_client"]), self.host(row["subscriber"])
        one = self.evidence.legs.filter(pl.col("leg") == row["leg"])
        for span in intervals(one, self.evidence.holds).iter_rows(named=True):
            host = self._place(row, span["from_ns"]) or _host_of(span["part"], sender, self.broker, receiver)
            came_ns = row["up_complete_ns"]
            if span["part"] in EITHER_SIDE and came_ns is not None and span["from_ns"] < came_ns:
                host = sender
            self.spans.append(Span(part=span["part"], host=host, from_ns=span["from_ns"], to_ns=span["to_ns"]))
        for prefix in ("sn_up", "sn_down"):
            if row[f"{prefix}_packet"] is not None:
                self._carriers(row, prefix)
                self._registration(row, prefix)
        for prefix, side in (("up", "sender"), ("down", "broker")):
            if row[f"{prefix}_packet"] is None:
                continue
            self._carriers(row, prefix)
            self._wait(row, prefix, f"{side}_nagle_ns", f"{side}_socket_ns")
            self._window(row, prefix)
        if row["handshake_ns"]:
            self._handshake(row, "up")
        if row["release_ns"]:
            self._handshake(row, "down" if row["sn_down_packet"] is None else "sn_down")

    def _place(self, row: dict[str, Any], at_ns: int) -> str | None:
        """Where a leg's time passes while the message is before or in a gateway; ``None`` where it is neither."""
        up, down = (self.gateway(row, prefix) for prefix in ("sn_up", "sn_down"))
        broker_ns = row["up_complete_ns"]
        if up is not None and at_ns < row["sn_up_complete_ns"]:
            return self.host(row["up_client"])
        if up is not None and row["sn_up_complete_ns"] <= at_ns and (broker_ns is None or at_ns < broker_ns):
            return up
        came_ns = row["down_complete_ns"]
        is_there = down is not None and came_ns is not None and came_ns <= at_ns < row["sn_down_complete_ns"]
        return down if is_there else None

    def _registration(self, row: dict[str, Any], prefix: str) -> None:
        """The frames with the REGISTER that the message waited for, each time it was sent, and with its REGACK."""
        from_ns, until_ns = row[f"{prefix}_register_from_ns"], row[f"{prefix}_register_until_ns"]
        if from_ns is None:
            return
        datagram = self.evidence.control_packets.filter(pl.col("packet") == row[f"{prefix}_packet"]).row(0, named=True)
        kind = pl.col("kind").cast(pl.String)
        theirs = self.evidence.control_packets.filter(
            kind.is_in(["REGISTER", "REGACK"]), pl.col("connection") == datagram["connection"],
            pl.col("first_sent_ns").is_between(from_ns - SLACK_NS, until_ns))
        for packet in theirs.iter_rows(named=True):
            self._segments(packet["connection"] * 2 + int(packet["to_broker"]), packet["stream_start"],
                           packet["stream_end"], until_ns, packet["packet"], carries=False)

    def _carriers(self, row: dict[str, Any], prefix: str) -> None:
        """The frames of every copy of the PUBLISH, and the one that brought what was missing before it."""
        control = self.evidence.control_packets
        own = control.filter(pl.col("packet") == row[f"{prefix}_packet"]).row(0, named=True)
        # An aggregating gateway's connection is no client's.
        alike = [pl.col(name).eq_missing(pl.lit(own[name])) for name in ("client", "topic")]
        copies = control.filter(
            pl.col("kind") == "PUBLISH", pl.col("to_broker") == own["to_broker"], *alike,
            pl.col("connection").is_in(self.evidence.datagrams.implode()) == prefix.startswith("sn_"),
            pl.col("publisher") == row["publisher"], pl.col("sequence") == row["sequence"],
            pl.col("first_sent_ns") <= row[f"{prefix}_complete_ns"])
        for copy in copies.iter_rows(named=True):
            way = copy["connection"] * 2 + int(copy["to_broker"])
            until = row[f"{prefix}_complete_ns"]
            self._segments(way, copy["stream_start"], copy["stream_end"], until, copy["packet"])
        bringing = self.transport.sent_in_frame.of(row[f"{prefix}_frame"])
        for segment in bringing.iter_rows(named=True):
            self._segments(segment["way"], segment["stream_offset"], segment["end"], row[f"{prefix}_complete_ns"],
                           row[f"{prefix}_packet"])

    def _segments(self, way: int, start: int, end: int, until: int, packet: int, *, carries: bool = True) -> None:
        segments = self.transport.sent.filter(
            pl.col("way") == way, pl.col("stream_offset") < end, pl.col("end") > start, pl.col("entered_ns") <= until)
        frames = segments["frame"].to_list()
        for place, frame in enumerate(frames):
            arrow = self._arrow(frame, packet, carries=carries)
            ends = place < SEGMENTS_SHOWN or place >= len(frames) - SEGMENTS_SHOWN
            if ends or arrow.lost or arrow.again:
                self._add(arrow)

    def _wait(self, row: dict[str, Any], prefix: str, nagle: str, socket: str) -> None:
        """The acknowledgements that ended waits in the socket, and the frames that they acknowledged."""
        for kind in ("", "tail_"):
            frame = row[f"{prefix}_{kind}release_frame"]
            if frame is None:
                continue
            ends, socket_until, nagle_until = (
                row[f"{prefix}_{kind}{until}"] for until in ("held_until_ns", "socket_until_ns", "nagle_until_ns"))
            part = nagle if nagle_until == ends or socket_until < ends else socket
            words = "ends the wait under Nagle's algorithm" if part == nagle else "makes room in the socket's window"
            way = row[f"{prefix}_connection"] * 2 + int(prefix == "up")
            release = self._add(self._arrow(frame, None, way), words)
            awaited = self._awaited(way, release)
            withheld = None if awaited is None or awaited.lost else release.sent_ns - awaited.ended_ns
            self.releases.append(Release(part=part, frame=frame, awaited=awaited, withheld_ns=withheld))

    def _awaited(self, way: int, release: Arrow) -> Arrow | None:
        """The frame whose acknowledgement was waited for: the last data that it acknowledges, each time they were
        sent."""
        if release.acked is None:
            return None
        segments = self.transport.originals.filter(pl.col("way") == way, pl.col("end") <= release.acked)
        if segments.is_empty():
            return None
        last = segments.row(segments.height - 1, named=True)
        sendings = self.transport.sent.filter(
            pl.col("way") == way, pl.col("stream_offset") <= last["stream_offset"], pl.col("end") >= last["end"],
            pl.col("entered_ns") <= release.ended_ns)
        arrow = None
        for frame in sendings["frame"].to_list():
            arrow = self._add(self._arrow(frame, None), "not acknowledged yet")
        return arrow

    def _window(self, row: dict[str, Any], prefix: str) -> None:
        packet = row[f"{prefix}_window_packet"]
        waited = row["session_ns"] if prefix == "up" else row["broker_window_ns"]
        began = row["handed_ns"] if prefix == "up" else row["ingress_ns"]
        at = row[f"{prefix}_window_ns"]
        if packet is None or not waited or at is None or at <= began:
            return
        came = self.evidence.control_packets.filter(pl.col("packet") == packet).row(0, named=True)
        self._completing(came, MAKES_ROOM)

    def _handshake(self, row: dict[str, Any], prefix: str) -> None:
        """The PUBREC that answered, and the PUBREL that let the receiver hand on."""
        control = self.evidence.control_packets
        own = control.filter(pl.col("packet") == row[f"{prefix}_packet"]).row(0, named=True)
        began, ended = row[f"{prefix}_complete_ns"], row[f"{prefix}_release_ns"]
        answers = control.filter(
            pl.col("kind") == "PUBREC", pl.col("to_broker") != own["to_broker"],
            pl.col("client").eq_missing(pl.lit(own["client"])),
            pl.col("packet_id") == own["packet_id"], pl.col("first_sent_ns") >= began - SLACK_NS,
            pl.col("first_sent_ns") <= ended)
        releases = control.filter(pl.col("packet") == row[f"{prefix}_release_packet"])
        for packet in [*answers.iter_rows(named=True), *releases.iter_rows(named=True)]:
            way = packet["connection"] * 2 + int(packet["to_broker"])
            self._segments(way, packet["stream_start"], packet["stream_end"], ended, packet["packet"],
                           carries=False)
            if packet["complete_ns"] is not None:
                self._completing(packet, "" if packet["kind"] == "PUBREC" else "lets the receiver hand it on")

    def _completing(self, packet: dict[str, Any], words: str) -> None:
        way = packet["connection"] * 2 + int(packet["to_broker"])
        arrived = self.transport.arrived.filter(
            pl.col("way") == way, pl.col("delivered_ns") == packet["complete_ns"],
            pl.col("stream_offset") < packet["stream_end"]).sort("frame")
        if arrived.height:
            self._add(self._arrow(arrived["frame"][-1], packet["packet"]), words)

    def _add(self, arrow: Arrow, remark: str = "") -> Arrow:
        known = self.arrows.get(arrow.frame, arrow)
        remarks = known.remarks if not remark or remark in known.remarks else (*known.remarks, remark)
        packets = arrow.packets if arrow.own and not known.own else known.packets
        merged = replace(known, remarks=remarks, own=known.own or arrow.own, packets=packets)
        self.arrows[arrow.frame] = merged
        return merged

    def _arrow(self, frame: int, packet: int | None, acknowledging: int | None = None, *, carries: bool = False
               ) -> Arrow:
        rows = self.transport.of_frame.of(frame).sort("hop", maintain_order=True)
        first = rows.row(0, named=True)
        whole = rows.filter(pl.col("hop") + 1 == pl.col("hops"), pl.col("fate").is_in(["delivered", "duplicated"]))
        last = (whole if whole.height else rows.tail(1)).row(0, named=True)
        lost = None if whole.height else str(last["cause"] or last["fate"]).replace("_", " ")
        ended = last["delivered_ns"] or last["sent_ns"] or last["start_ns"] or last["entered_ns"]
        once = rows.unique("hop", keep="first")
        hosts = self.recording.layout["hosts"]
        acks = self.transport.acknowledged_by_frame.of(frame)
        if acknowledging is not None:
            acks = acks.filter(pl.col("way") == acknowledging)
        packets, within = self._packets(first, packet)
        again = self.transport.sent_in_frame.of(frame)["again"].any()
        return Arrow(
            frame=frame, from_host=hosts[first["from_host"]], to_host=hosts[first["to_host"]],
            client=self.client_of.get(first["connection"], ""),
            sent_ns=first["entered_ns"], ended_ns=ended,
            queue_ns=int((once["start_ns"] - once["entered_ns"]).sum() or 0), lost=lost, again=bool(again),
            packets=packets, offset=first["stream_offset"], data_bytes=first["payload_bytes"],
            acked=acks["acked"][0] if acks.height else None, own=carries and within,
            to_broker=bool(first["way"] % 2),
        )

    def _packets(self, first: dict[str, Any], packet: int | None) -> tuple[tuple[str, ...], bool]:
        """Names of the MQTT packets with a byte in a frame, the one of interest first, and whether that is there."""
        start = first["stream_offset"]
        if start is None or not first["payload_bytes"]:
            return (), False
        end = start + first["payload_bytes"]
        within = self.evidence.packets_within(first["way"], start, end).sort(
            pl.col("packet") != (-1 if packet is None else packet), "stream_start")
        names = tuple(_name(row, start, end) for row in within.iter_rows(named=True))
        return names, packet is not None and packet in within["packet"]


def _name(packet: dict[str, Any], start: int, end: int) -> str:
    identifier = packet["packet_id"]
    inside = [str(packet["qos"])] if packet["kind"] == "PUBLISH" else []
    inside += [] if identifier is None else [str(identifier)]
    name = str(packet["kind"]) + (f"({','.join(inside)})" if inside else "")
    # An ellipsis on the side on which the packet goes on in another segment.
    return ("…" if packet["stream_start"] < start else "") + name + ("…" if packet["stream_end"] > end else "")


def _host_of(part: str, sender: str, broker: str, receiver: str) -> str:
    """Where a part of the time passes."""
    if part in ("schedule_ns", "session_ns", "sender_nagle_ns", "sender_socket_ns", "queue_to_broker_ns",
                "wire_to_broker_ns", "retransmission_to_broker_ns", "sender_unconnected_ns"):
        return sender
    return receiver if part in ("release_ns", "delivery_ns", "reader_stopped_ns") else broker
