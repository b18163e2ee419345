"""What TCP did with the bytes of a packet: when it let them go, and which frame brought them.

A recording has each frame on each of its links. From these rows follow, for each direction of each connection:

* the segments as they were sent: which bytes, whether they were sent before;
* the frames as they arrived, with their way over the links: waiting and travelling;
* the acknowledgements as they arrived at the sender, as positions in the stream that they acknowledge.

The last two say why a byte was sent when it was: `release` finds the acknowledgement that ended a wait.

What it does not model: the congestion window, which no frame shows. That an acknowledgement was followed by data that
had to wait, and that Nagle's algorithm cannot have held, is taken as evidence for a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from mqttlab.plan import StoredPlan, ports
from mqttlab.recording import Recording
from oracle.attribution.lookup import latest, next_at

# A connection and a direction in one number, which is quicker to join by than two columns.
WAY = ["way"]
# Data that an acknowledgement released sets out at once; this much later, something else has released them.
RELEASE_NS = 2_000_000
# The two ends of a link are stamped by one clock but not by one hand: the stack is woken up to this much before or
# after the frame's own time of arrival.
SLACK_NS = 200_000
ETHERNET_BYTES = 1500
IP_TCP_HEADERS_BYTES = 40
TIMESTAMPS_BYTES = 12
SEQUENCE_NUMBERS = 2**32
_HAS_DATA = pl.col("stream_offset").is_not_null() & (pl.col("payload_bytes") > 0)


@dataclass(frozen=True)
class Transport:
    """The TCP segments of a recording, and what can be looked up in them."""

    packets: pl.DataFrame
    plan: StoredPlan

    @classmethod
    def of(cls, recording: Recording) -> Transport:
        """The segments that a recording has on its links."""
        packets = recording.table("packets").filter(pl.col("connection").is_not_null())
        to_broker = pl.col("destination_port").is_in(ports(recording.plan))
        return cls(packets.with_columns(way=way(to_broker)), recording.plan)

    @cached_property
    def sent(self) -> pl.DataFrame:
        """Data segments on their first link, in order, with what of the stream had been sent by then.

        ``end``: position behind the last byte; ``again``: sent before; ``mss``: the largest segment of its sender;
        ``sent_end``, ``small_end``: end of all data, and of those in segments below the MSS, sent up to here;
        ``small_sent_ns``: when the last segment below the MSS was sent.
        """
        small = pl.col("payload_bytes") < pl.col("mss")
        rows = self.packets.filter(pl.col("hop") == 0, _HAS_DATA)
        end = pl.col("stream_offset") + pl.col("payload_bytes")
        return (
            rows.sort("entered_ns", maintain_order=True)
            .with_columns(end=end, mss=self._mss())
            .with_columns(sent_end=pl.col("end").cum_max().over(WAY))
            .with_columns(
                again=pl.col("end") <= pl.col("sent_end").shift(1, fill_value=-1).over(WAY),
                small_end=pl.when(small).then("end").otherwise(0).cum_max().over(WAY),
                small_sent_ns=pl.when(small).then("entered_ns").cum_max().forward_fill().over(WAY),
            )
            .select(*WAY, "entered_ns", "frame", "stream_offset", "end", "payload_bytes", "mss", "again", "sent_end",
                    "small_end", "small_sent_ns")
        )

    @cached_property
    def originals(self) -> pl.DataFrame:
        """Segments with data that had not been sent before, by the position behind their last byte."""
        return self.sent.filter(~pl.col("again")).sort("end")

    @cached_property
    def repetitions(self) -> pl.DataFrame:
        """Segments with data that had been sent before."""
        return self.sent.filter("again")

    @cached_property
    def arrived(self) -> pl.DataFrame:
        """Data segments that arrived, the links' copies too: when they entered, waited and arrived."""
        way_there = (
            self.packets.filter(pl.col("fate") != "dropped")
            .sort("hop", maintain_order=True)
            # A copy is made behind the transmitter, and has waited as long as its original.
            .unique(["frame", "hop"], keep="first", maintain_order=True)
            .group_by("frame")
            .agg(went_ns=pl.col("entered_ns").first(), queue_ns=(pl.col("start_ns") - pl.col("entered_ns")).sum())
        )
        arrivals = self._arrivals().filter(_HAS_DATA)
        again = self.sent.select("frame", "again").unique("frame")
        return (
            arrivals.select(*WAY, "delivered_ns", "frame", "stream_offset",
                            end=pl.col("stream_offset") + pl.col("payload_bytes"))
            .join(way_there, on="frame", how="left")
            .join(again, on="frame", how="left")
            .with_columns(pl.col("again").fill_null(False))
        )

    @cached_property
    def acknowledgements(self) -> pl.DataFrame:
        """Frames with an acknowledgement where they arrived, each under the direction of the data it acknowledges.

        ``acked``: position in that direction's stream up to which all is acknowledged; ``advanced``: it was not so
        before.
        """
        first_byte = (
            self.sent.join(self.packets.filter(pl.col("hop") == 0).select("frame", "seq"), on="frame")
            .unique(WAY, keep="first", maintain_order=True)
            .select(*WAY, base=pl.col("seq").cast(pl.Int64) - pl.col("stream_offset"))
        )
        acks = (
            self._arrivals().filter(pl.col("ack").is_not_null())
            .with_columns(way=pl.col("way") ^ 1)
            .sort("delivered_ns", maintain_order=True)
            .select(*WAY, "delivered_ns", "frame", "ack")
            .join(first_byte, on=WAY, how="left", maintain_order="left")
        )
        acks = latest(acks, self.sent, WAY, at="delivered_ns", key="entered_ns", take={"sent_end": "sent_end"})
        # The stream may be longer than the numbers: an acknowledgement is for the last 2^32 bytes. FIN counts as one.
        top = pl.col("sent_end") + 2
        behind = (top - (pl.col("ack").cast(pl.Int64) - pl.col("base"))).mod(SEQUENCE_NUMBERS)
        return (
            acks.with_columns(acked=(top - behind).clip(0).fill_null(0).cum_max().over(WAY))
            .with_columns(advanced=pl.col("acked") > pl.col("acked").shift(1, fill_value=0).over(WAY))
            .select(*WAY, "delivered_ns", "frame", "acked", "advanced")
        )

    def flights(self, packets: pl.DataFrame) -> pl.DataFrame:
        """The way of each packet from its first byte's sending until it was complete.

        Args:
            packets: columns ``packet``, ``way``, ``stream_start``, ``stream_end``,
                ``first_sent_ns``, ``complete_ns``, one row a packet.

        Returns:
            For each packet: ``frame``, the one that brought its last missing byte; ``went_ns``, when that came to its
            first link; ``queue_ns``, how long it waited in queues; ``arrived_ns``, until when the way counts as
            travelling; ``again``, whether ``frame`` was sent because something had been lost; ``frame_bytes``, the data
            in it; ``repeated_ns``, when data of this stream had been sent again before; and of the segment that carried
            the first byte ``segment_frame``, ``segment_bytes``, ``mss``.
        """
        first = next_at(packets.with_columns(_byte=pl.col("stream_start") + 1), self.originals, WAY, at="_byte",
                        key="end", take={"frame": "segment_frame", "payload_bytes": "segment_bytes", "mss": "mss",
                                            "end": "segment_end"})
        own = next_at(first.drop("_byte"), self.originals, WAY, at="stream_end", key="end",
                      take={"frame": "own_frame"})
        bringing = self._bringing(packets)
        bringing = latest(bringing, self.repetitions, WAY, at="went_ns", key="entered_ns",
                          take={"entered_ns": "repeated_ns"}).drop(WAY)
        own_way = self.arrived.sort("delivered_ns").unique("frame", keep="first").select(
            own_frame="frame", own_queue_ns="queue_ns", own_arrived_ns="delivered_ns")
        flights = own.join(bringing, on="packet", how="left").join(own_way, on="own_frame", how="left")
        # The frame that was missing had set out before this packet: it was overtaken, not lost. Then this packet's
        # own frame travelled, and waited at the other end.
        overtaken = (pl.col("went_ns") < pl.col("first_sent_ns")) & (pl.col("own_arrived_ns") <= pl.col("complete_ns"))
        overtaken = overtaken.fill_null(False)
        return flights.with_columns(
            went_ns=pl.when(overtaken).then("first_sent_ns").otherwise("went_ns"),
            queue_ns=pl.when(overtaken).then("own_queue_ns").otherwise("queue_ns"),
            arrived_ns=pl.when(overtaken).then("own_arrived_ns").otherwise("complete_ns"),
        ).select("packet", "frame", "went_ns", "queue_ns", "arrived_ns", "again", "frame_bytes", "repeated_ns",
                 "segment_frame", "segment_bytes", "mss", "segment_end")

    def release(self, packets: pl.DataFrame) -> pl.DataFrame:
        """What ended the wait of bytes that were ready and not yet sent, and what it was.

        Args:
            packets: columns ``packet``, ``way``, ``ready_ns``, ``first_sent_ns``, ``nagle`` (whether the sender uses
                it), ``segment_bytes``, ``mss``.

        Returns:
            For each packet ``nagle_until_ns``, ``socket_until_ns`` and ``held_until_ns``: from ``ready_ns`` to the
            first and from the second to the last Nagle's algorithm held it, in between a window did (all of them are
            ``ready_ns`` when nothing held it); and ``release_frame``, the acknowledgement.
        """
        before = packets.with_columns(_before=pl.col("first_sent_ns") - 1, _until=pl.col("first_sent_ns") + SLACK_NS)
        acks = self.acknowledgements
        advances = acks.filter("advanced").sort("acked", maintain_order=True)
        table = latest(before, self.sent, WAY, at="_before", key="entered_ns", take={
            "small_end": "small_end", "sent_end": "sent_end", "small_sent_ns": "small_sent_ns"})
        table = latest(table, self.sent, WAY, at="ready_ns", key="entered_ns", take={"small_end": "ready_small_end"})
        table = latest(table, acks, WAY, at="ready_ns", key="delivered_ns", take={"acked": "acked"})
        table = next_at(table, advances, WAY, at="small_end", key="acked",
                        take={"delivered_ns": "nagle_end_ns", "frame": "nagle_frame"})
        table = next_at(table, advances, WAY, at="ready_small_end", key="acked",
                        take={"delivered_ns": "ready_nagle_end_ns"})
        table = latest(table, acks, WAY, at="_until", key="delivered_ns",
                       take={"delivered_ns": "ack_ns", "frame": "ack_frame"})
        return _judge(table).select("packet", "nagle_until_ns", "socket_until_ns", "held_until_ns", "release_frame")

    def _arrivals(self) -> pl.DataFrame:
        whole = pl.col("fate").is_in(["delivered", "duplicated"])
        return self.packets.filter(whole, pl.col("hop") + 1 == pl.col("hops"), pl.col("delivered_ns").is_not_null())

    def _bringing(self, packets: pl.DataFrame) -> pl.DataFrame:
        """The frame whose arrival made each packet complete. Of frames that arrived together, the one sent last, but
        for those that bring again what one before them has brought."""
        complete = packets.filter(pl.col("complete_ns").is_not_null())
        data = pl.col("end") - pl.col("stream_offset")
        arrived = self.arrived.sort("delivered_ns", maintain_order=True).with_row_index("place")
        together = (
            complete.select("packet", *WAY, "stream_end", delivered_ns="complete_ns")
            .join(arrived, on=[*WAY, "delivered_ns"], how="inner")
        )
        # The first arrival of the original segment that has the same last byte.
        originals = self.originals.select(*WAY, "frame", "end").join(
            arrived.unique("frame", keep="first", maintain_order=True).select("frame", own_place="place"), on="frame")
        together = together.join(originals.select(*WAY, "end", "own_place").unique([*WAY, "end"]), on=[*WAY, "end"],
                                 how="left")
        pairs = together.select("packet", "place", "stream_offset", "end").join(
            together.select("packet", before="place", _from="stream_offset", _to="end"), on="packet")
        covered = pairs.filter(pl.col("before") < pl.col("place"), pl.col("_from") <= pl.col("stream_offset"),
                               pl.col("_to") >= pl.col("end")).select("packet", "place", covered=pl.lit(True)).unique()
        together = together.join(covered, on=["packet", "place"], how="left")
        is_copy = pl.col("covered").fill_null(False) | (
            pl.col("again") & (pl.col("own_place") < pl.col("place"))).fill_null(False)
        return (
            together.filter(pl.col("stream_offset") < pl.col("stream_end"))
            .with_columns(is_new=~is_copy)
            .sort("is_new", "frame")
            .unique("packet", keep="last", maintain_order=True)
            .select("packet", *WAY, "frame", "went_ns", "queue_ns", "again", frame_bytes=data)
        )

    def _mss(self) -> pl.Expr:
        """The largest segment between the two hosts, as the plan has it; that of Ethernet where it says nothing."""
        stacks: list[dict[str, Any]] = [{**host.get("tcp", {})} for host in self.plan["hosts"]]
        mtu = self.plan["network"].get("mtu_bytes") or ETHERNET_BYTES
        most = [stack.get("mss_bytes") or mtu - IP_TCP_HEADERS_BYTES for stack in stacks]
        stamps = [bool(stack.get("timestamps", True)) for stack in stacks]

        def of(column: str, values: list[Any], kind: type[pl.DataType]) -> pl.Expr:
            return pl.col(column).replace_strict(range(len(values)), values, default=None, return_dtype=kind)

        stamped = of("from_host", stamps, pl.Boolean) & of("to_host", stamps, pl.Boolean)
        both = pl.min_horizontal(of("from_host", most, pl.Int64), of("to_host", most, pl.Int64))
        return both - pl.when(stamped).then(TIMESTAMPS_BYTES).otherwise(0)


def way(to_broker: pl.Expr) -> pl.Expr:
    """The number of a connection's direction."""
    return pl.col("connection").cast(pl.Int64) * 2 + to_broker.cast(pl.Int64)


def _judge(table: pl.DataFrame) -> pl.DataFrame:
    """Which wait it was: the data of a segment below the MSS waits, under Nagle's algorithm in the form that Linux
    uses, while another segment below the MSS is not acknowledged (RFC 896; Minshall's variant)."""
    ready, sent = pl.col("ready_ns"), pl.col("first_sent_ns")
    waited = sent > ready
    acked = pl.col("acked").fill_null(0)

    def released_at(column: str) -> pl.Expr:
        at = pl.col(column)
        return waited & (at > ready) & (at <= sent + SLACK_NS) & (at >= sent - RELEASE_NS)

    small = pl.col("segment_bytes") < pl.col("mss")
    held_at_once = (pl.col("nagle") & (pl.col("ready_small_end") > acked)).fill_null(False)
    acknowledged = (pl.col("nagle") & released_at("nagle_end_ns") & small).fill_null(False)
    # Under Nagle's algorithm a segment may also go because it has become full.
    filled = (held_at_once & waited & ~small & (pl.col("ready_nagle_end_ns") > sent)).fill_null(False)
    window = (released_at("ack_ns") & (pl.col("sent_end") > acked) & ~acknowledged & ~filled).fill_null(False)
    held_until = pl.when(acknowledged).then("nagle_end_ns").when(filled).then(sent).when(window).then("ack_ns")
    latest_end = pl.max_horizontal(sent, ready)
    table = table.with_columns(held_until_ns=pl.min_horizontal(held_until.otherwise(ready), latest_end))
    # The first acknowledgement that it waited for; what came in between was another's wait, or a window's.
    first = pl.min_horizontal(pl.col("ready_nagle_end_ns").fill_null(sent), "held_until_ns")
    # A full segment does not wait for an acknowledgement; it was held by the algorithm only until it was full.
    table = table.with_columns(
        nagle_until_ns=pl.when(held_at_once & (small | filled)).then(pl.max_horizontal(first, ready)).otherwise(ready))
    second = pl.max_horizontal(pl.min_horizontal("small_sent_ns", "held_until_ns"), "nagle_until_ns")
    return table.with_columns(
        socket_until_ns=pl.when(acknowledged | filled).then(second).otherwise("held_until_ns"),
        release_frame=pl.when(acknowledged).then("nagle_frame").when(window).then("ack_frame"),
    )
