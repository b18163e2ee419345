"""The segments of connections: what was sent, what arrived, what was acknowledged when.

A recording has each frame on each of its links. From these rows follow, for each direction of each connection:

* the segments as they were sent: which bytes, whether they were sent before;
* the frames as they arrived, with their way over the links: waiting and travelling;
* the acknowledgements as they arrived at the sender, as positions in the stream that they acknowledge.

What they mean for a message, the engine has found out; this is for who shows it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from mqttlab.metrics.attribution.lookup import Lookup
from mqttlab.plan import ports
from mqttlab.recording import Recording

# A connection and a direction in one number, which is quicker to join by than two columns.
WAY = ["way"]
# The two ends of a link are stamped by one clock but not by one hand: the stack is woken up to this much before or
# after the frame's own time of arrival.
SLACK_NS = 200_000
SEQUENCE_NUMBERS = 2**32
# There may be many segments: what nobody asks for is not read.
COLUMNS = ("connection", "frame", "hop", "hops", "from_host", "to_host", "entered_ns", "start_ns", "sent_ns",
           "delivered_ns", "fate", "cause", "payload_bytes", "stream_offset", "seq", "ack")
_HAS_DATA = pl.col("stream_offset").is_not_null() & (pl.col("payload_bytes") > 0)


@dataclass(frozen=True)
class Transport:
    """The TCP segments of a recording, and what can be looked up in them."""

    packets: pl.DataFrame

    @classmethod
    def of(
        cls, recording: Recording, connections: Collection[int] | None = None, between: tuple[int, int] | None = None,
    ) -> Transport:
        """The segments that a recording has on its links: of all connections, or of these; all, or those of a time.

        Of the segments before that time the last of each stream are there, too, which tell what had been sent by then.
        """
        packets = recording.scan("packets").filter(pl.col("connection").is_not_null())
        if connections is not None:
            packets = packets.filter(pl.col("connection").is_in(list(connections)))
        packets = packets.with_columns(way=way(pl.col("destination_port").is_in(ports(recording.plan))))
        if between is not None:
            is_within = pl.col("entered_ns").is_between(*between)
            packets = packets.filter(is_within | pl.col("frame").is_in(_last_before(recording, packets, between[0])))
        return cls(recording.collect(packets.select(*COLUMNS, "way")))

    @cached_property
    def sent(self) -> pl.DataFrame:
        """Data segments on their first link, in order, with what of the stream had been sent by then.

        ``end``: position behind the last byte; ``again``: sent before; ``sent_end``: end of all data sent up to here.
        """
        rows = self.packets.filter(pl.col("hop") == 0, _HAS_DATA)
        return (
            rows.sort("entered_ns", maintain_order=True)
            .with_columns(end=pl.col("stream_offset") + pl.col("payload_bytes"))
            .with_columns(sent_end=pl.col("end").cum_max().over(WAY))
            .with_columns(again=pl.col("end") <= pl.col("sent_end").shift(1, fill_value=-1).over(WAY))
            .select(*WAY, "entered_ns", "frame", "stream_offset", "end", "payload_bytes", "again", "sent_end")
        )

    @cached_property
    def of_frame(self) -> Lookup:
        """:attr:`packets` by frame: its rows, one for each link."""
        return Lookup(self.packets, "frame")

    @cached_property
    def sent_in_frame(self) -> Lookup:
        """:attr:`sent` by frame."""
        return Lookup(self.sent, "frame")

    @cached_property
    def acknowledged_by_frame(self) -> Lookup:
        """:attr:`acknowledgements` by frame."""
        return Lookup(self.acknowledgements, "frame")

    @cached_property
    def originals(self) -> pl.DataFrame:
        """Segments with data that had not been sent before, by the position behind their last byte."""
        return self.sent.filter(~pl.col("again")).sort("end")

    @cached_property
    def arrived(self) -> pl.DataFrame:
        """Data segments that arrived, the links' copies too."""
        return self._arrivals(_HAS_DATA, "stream_offset")

    @cached_property
    def acknowledgements(self) -> pl.DataFrame:
        """Frames with an acknowledgement where they arrived, each under the direction of the data it acknowledges.

        ``acked``: position in that direction's stream up to which all is acknowledged.
        """
        first_byte = (
            self.sent.unique(WAY, keep="first", maintain_order=True)
            .join(self.packets.filter(pl.col("hop") == 0).select("frame", "seq"), on="frame")
            .select(*WAY, base=pl.col("seq").cast(pl.Int64) - pl.col("stream_offset"))
        )
        acks = (
            self._arrivals(pl.col("ack").is_not_null(), "ack")
            .with_columns(way=pl.col("way") ^ 1)
            .sort("delivered_ns", maintain_order=True)
            .select(*WAY, "delivered_ns", "frame", "ack")
            .join(first_byte, on=WAY, how="left", maintain_order="left")
        )
        sent = self.sent.select(*WAY, "entered_ns", "sent_end").sort("entered_ns", maintain_order=True)
        acks = acks.join_asof(sent, left_on="delivered_ns", right_on="entered_ns", by=WAY, check_sortedness=False)
        # The stream may be longer than the numbers: an acknowledgement is for the last 2^32 bytes. FIN counts as one.
        top = pl.col("sent_end") + 2
        behind = (top - (pl.col("ack").cast(pl.Int64) - pl.col("base"))).mod(SEQUENCE_NUMBERS)
        return (
            acks.with_columns(acked=(top - behind).clip(0).fill_null(0).cum_max().over(WAY))
            .select(*WAY, "delivered_ns", "frame", "acked")
        )

    def _arrivals(self, which: pl.Expr, told: str) -> pl.DataFrame:
        """Of the frames that arrived at their last hosts these, and of each what is asked for."""
        whole = pl.col("fate").is_in(["delivered", "duplicated"])
        arrived = self.packets.lazy().filter(
            which, whole, pl.col("hop") + 1 == pl.col("hops"), pl.col("delivered_ns").is_not_null())
        return arrived.select(*WAY, "delivered_ns", "frame", told).collect()


def _last_before(recording: Recording, packets: pl.LazyFrame, at_ns: int) -> list[int]:
    """The frames with the last byte of each way's stream that had been sent before an instant."""
    if at_ns <= 0:
        return []
    sent = packets.filter(pl.col("entered_ns") < at_ns, pl.col("hop") == 0, _HAS_DATA).select(
        "way", "frame", end=pl.col("stream_offset") + pl.col("payload_bytes"))
    ends = recording.collect(sent.group_by("way").agg(pl.col("end").max()))
    are_last = [(pl.col("way") == number) & (pl.col("end") == end) for number, end in ends.iter_rows()]
    if not are_last:
        return []
    return recording.collect(sent.filter(pl.any_horizontal(are_last)).select("frame")).to_series().to_list()


def way(to_broker: pl.Expr) -> pl.Expr:
    """The number of a connection's direction."""
    return pl.col("connection").cast(pl.Int64) * 2 + to_broker.cast(pl.Int64)
