"""What senders sent again, and what for: judged from the frames of our own links, which know what had arrived when.

A segment with data, SYN or FIN is *sent again* where the recording counts it so (``repetition`` in ``packets``).
Its kind:

- ``spurious``: every byte of it, SYN and FIN included, had arrived undamaged at its receiver's host before it came to
  its first link. Whatever the sender knew, it was not needed.
- ``fast``: not spurious, and before it left, acknowledgements that had come back to its sender's host spoke for a loss:
  something had been acknowledged that was sent after the copy before it (a selective acknowledgement beyond it, or one
  that answers another repetition: RFC 6675, RFC 8985), or three had repeated the number at which it begins (RFC 5681).
- ``timer_or_probe``: none of these. A retransmission timer or a loss probe sent it; frames do not tell which.
- ``unknown``: the recording has no earlier copy of a part of it, so that nothing can be said.

A link's own copies are not sent again by anybody, and are not among these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from mqttlab.recording import Recording

KINDS = ("fast", "timer_or_probe", "spurious", "unknown")
SYN, FIN, ACK = 2, 1, 16
DUPLICATES_WANTED = 3
NEVER_NS = 2**62
NOTHING = {"frame": pl.UInt64, "sent_again": pl.String}

Times = npt.NDArray[np.int64]


def is_counted(recording: Recording) -> bool:
    """Whether the recording says what was sent again: imports, and recordings of schema 1, do not."""
    packets = recording.packets
    return "repetition" in packets.columns and packets["repetition"].null_count() < packets.height


def sent_again(recording: Recording) -> pl.DataFrame:
    """The frames whose segments were sent again: ``frame``, and ``sent_again``, which is one of :data:`KINDS`."""
    return recording.derived("sent_again", _sent_again)


def _sent_again(recording: Recording) -> pl.DataFrame:
    if not is_counted(recording):
        return pl.DataFrame(schema=NOTHING)
    packets = recording.packets
    again = packets.filter(pl.col("hop") == 0, pl.col("fate") != "duplicated", pl.col("repetition") > 0)
    placed = again.filter(pl.col("connection").is_not_null(), pl.col("seq").is_not_null())
    judged = [pl.DataFrame(schema=NOTHING)]
    if not placed.is_empty():
        early_ns = _early_ns(recording)
        judged += [_judge(_Way.of(way), early_ns) for way in _ways(packets, placed)]
    known = pl.concat(judged)
    return again.select("frame").join(
        known.with_columns(pl.col("frame").cast(again.schema["frame"])), on="frame", how="left", maintain_order="left",
    ).with_columns(pl.col("sent_again").fill_null("unknown"))


def _early_ns(recording: Recording) -> int:
    """How much before its time a frame may have been handed to a host: the emulator allows for its own cost."""
    emulator = (recording.run.get("details") or {}).get("emulator") or {}
    return int(emulator.get("latency_compensation_ns", 0))


def _ways(packets: pl.DataFrame, placed: pl.DataFrame) -> list[pl.DataFrame]:
    """The segments of each direction in which something was sent again, with the acknowledgements that came back."""
    wanted = placed.select("connection", way="source_port").unique()
    segments = (
        packets.filter(pl.col("connection").is_not_null(), pl.col("seq").is_not_null())
        .select(
            "connection", "frame", "hop", "hops", "fate", "entered_ns", "delivered_ns", "seq", "ack", "flags",
            "payload_bytes", "sack", "repetition", "source_port", "destination_port",
            arrived=(pl.col("hop") + 1 == pl.col("hops")) & pl.col("fate").is_in(["delivered", "duplicated"]),
        )
        .sort("entered_ns", maintain_order=True)
    )
    out = segments.join(
        wanted, left_on=["connection", "source_port"], right_on=["connection", "way"], maintain_order="left",
    ).with_columns(way="source_port", back=False)
    back = segments.filter(pl.col("flags") & ACK != 0).join(
        wanted, left_on=["connection", "destination_port"], right_on=["connection", "way"], maintain_order="left",
    ).with_columns(way="destination_port", back=True)
    return pl.concat([out, back]).partition_by("connection", "way", maintain_order=True)


def _offset(numbers: pl.Expr) -> pl.Expr:
    """Positions of sequence numbers, which wrap: each is taken to be the one nearest to the one before."""
    steps = numbers.cast(pl.Int64).diff().fill_null(0)
    return ((steps + 3 * 2**31) % 2**32 - 2**31).cum_sum()


@dataclass
class _Way:
    """One direction of a connection. Positions count from its first segment's sequence number."""

    frame: npt.NDArray[np.uint64]
    repetition: Times
    entered: Times
    start: Times
    end: Times
    # Of each segment that arrived, in the order of entering the last link.
    arrived_at: Times
    arrived_start: Times
    arrived_end: Times
    arrived_frame: npt.NDArray[np.uint64]
    # Of each acknowledgement that came back, in the order of arriving.
    ack_sent: Times
    ack_at: Times
    ack: Times
    ack_bare: npt.NDArray[np.bool_]
    # The highest position that had been acknowledged selectively by then.
    sacked: Times

    @classmethod
    def of(cls, way: pl.DataFrame) -> _Way:
        """From the rows of :func:`_ways`."""
        out = way.filter(~pl.col("back")).with_columns(start=_offset(pl.col("seq"))).filter(
            pl.col("repetition").is_not_null())
        taken = pl.col("payload_bytes").cast(pl.Int64)
        for flag in (SYN, FIN):
            taken = taken + (pl.col("flags") & flag != 0).cast(pl.Int64)
        out = out.with_columns(end=pl.col("start") + taken)
        sent = out.filter(pl.col("hop") == 0, pl.col("fate") != "duplicated")
        arrived = out.filter(pl.col("arrived"))
        first = int(way.filter(~pl.col("back"))["seq"][0])
        back = _acknowledgements(way.filter(pl.col("back")), first)
        return cls(
            frame=sent["frame"].cast(pl.UInt64).to_numpy(), repetition=_times(sent["repetition"]),
            entered=_times(sent["entered_ns"]), start=_times(sent["start"]), end=_times(sent["end"]),
            arrived_at=_times(arrived["delivered_ns"]), arrived_start=_times(arrived["start"]),
            arrived_end=_times(arrived["end"]), arrived_frame=arrived["frame"].cast(pl.UInt64).to_numpy(),
            ack_sent=_times(back["sent_ns"]), ack_at=_times(back["delivered_ns"]), ack=_times(back["position"]),
            ack_bare=back["bare"].to_numpy(), sacked=_times(back["sacked"]),
        )


def _times(values: pl.Series) -> Times:
    return values.cast(pl.Int64).to_numpy()


def _acknowledgements(back: pl.DataFrame, first: int) -> pl.DataFrame:
    """What came back, in the order of arriving; ``position`` and ``sacked`` count from sequence number ``first``."""
    back = back.with_columns(sent_ns=pl.col("entered_ns").min().over("frame"), position=_offset(pl.col("ack")))
    if back.height:
        # The first acknowledgement lies close behind the first segment.
        base = (int(back["ack"][0]) - first + 2**31) % 2**32 - 2**31
        back = back.with_columns(position=pl.col("position") + base)
    edges = (
        back.select("ack", "sack", row=pl.int_range(pl.len())).filter(pl.col("sack").is_not_null())
        .with_columns(pl.col("sack").str.split(" ")).explode("sack")
        .with_columns(edge=pl.col("sack").str.split("-").list.last().cast(pl.Int64) - pl.col("ack").cast(pl.Int64))
        .group_by("row").agg(beyond=((pl.col("edge") + 3 * 2**31) % 2**32 - 2**31).max())
    )
    return (
        back.with_columns(row=pl.int_range(pl.len())).join(edges, on="row", how="left", maintain_order="left")
        .filter(pl.col("arrived")).sort("delivered_ns", maintain_order=True)
        .with_columns(
            sacked=(pl.col("position") + pl.col("beyond")).fill_null(-1).cum_max(),
            bare=(pl.col("payload_bytes") == 0) & (pl.col("flags") & (SYN | FIN) == 0),
        )
    )


def _judge(way: _Way, early_ns: int) -> pl.DataFrame:
    """The kind of each repetition of one direction."""
    pieces = _Pieces(way)
    again = np.flatnonzero(way.repetition > 0)
    left = way.entered[again]
    answered = _answered(way, again)
    kinds = []
    for row, at in zip(again.tolist(), left, strict=True):
        first, before, arrived = pieces.look(row)
        seen_until = at + early_ns
        if first >= row:
            kind = "unknown"
        elif arrived < at:
            kind = "spurious"
        elif (
            _sacked_by(way, seen_until) > pieces.highest[before]
            or answered[np.searchsorted(again, before, side="right")] <= seen_until
            or _duplicates(way, way.start[row], way.entered[before], seen_until) >= DUPLICATES_WANTED
        ):
            kind = "fast"
        else:
            kind = "timer_or_probe"
        kinds.append(kind)
        pieces.sent(row)
    return pl.DataFrame({"frame": way.frame[again], "sent_again": kinds}, schema=NOTHING)


class _Pieces:
    """A stream cut wherever a segment begins or ends, so that every segment is a row of whole pieces."""

    def __init__(self, way: _Way) -> None:
        cuts = np.unique(np.concatenate([way.start, way.end]))
        self.spans = np.searchsorted(cuts, way.start), np.searchsorted(cuts, way.end)
        # The segment that brought a piece first, and the last one so far, in the order of sending: many leave at one
        # instant. When a copy of it had arrived.
        self.first = np.full(cuts.size, NEVER_NS)
        self.arrived = np.full(cuts.size, NEVER_NS)
        for row, (begin, end) in enumerate(zip(*self.spans, strict=True)):
            self.first[begin:end] = np.minimum(self.first[begin:end], row)
        arrivals = np.searchsorted(cuts, way.arrived_start), np.searchsorted(cuts, way.arrived_end), way.arrived_at
        for begin, end, at in zip(*arrivals, strict=True):
            self.arrived[begin:end] = np.minimum(self.arrived[begin:end], at)
        self.latest = self.first.copy()
        # How far the stream had been sent with each segment.
        self.highest = np.maximum.accumulate(way.end)

    def look(self, row: int) -> tuple[int, int, int]:
        """By which segment all of this one had been sent, which had a part of it last, and when all had arrived."""
        pieces = slice(self.spans[0][row], self.spans[1][row])
        return int(self.first[pieces].max()), int(self.latest[pieces].max()), int(self.arrived[pieces].max())

    def sent(self, row: int) -> None:
        """The segment has left once more."""
        self.latest[self.spans[0][row]:self.spans[1][row]] = row


def _answered(way: _Way, again: npt.NDArray[np.int64]) -> Times:
    """By when the sender had been told that this repetition, or one after it, had arrived; one more: never."""
    told = np.full(again.size + 1, NEVER_NS)
    arrived = dict(zip(way.arrived_frame.tolist(), way.arrived_at.tolist(), strict=True))
    by_sending = np.argsort(way.ack_sent, kind="stable")
    sent, numbers = way.ack_sent[by_sending], np.maximum.accumulate(way.ack[by_sending])
    soonest = np.minimum.accumulate(np.append(way.ack_at[by_sending], NEVER_NS)[::-1])[::-1]
    selective = way.sacked.size > 0 and way.sacked[-1] >= 0
    for place, row in enumerate(again):
        at = arrived.get(int(way.frame[row]))
        if at is None:
            continue
        # With selective acknowledgements the next one tells; without, the one whose number covers it.
        after = np.searchsorted(sent, at)
        if not selective:
            after = max(after, np.searchsorted(numbers, way.end[row]))
        told[place] = soonest[after]
    return np.minimum.accumulate(told[::-1])[::-1]


def _sacked_by(way: _Way, at: int) -> int:
    """The highest position that had been acknowledged selectively by then."""
    count = np.searchsorted(way.ack_at, at, side="right")
    return int(way.sacked[count - 1]) if count else -1


def _duplicates(way: _Way, number: int, after: int, until: int) -> int:
    """How many bare acknowledgements repeated a number in this time."""
    begin, end = np.searchsorted(way.ack_at, [after, until], side="right")
    same = way.ack[begin:end] == number
    count = int((same & way.ack_bare[begin:end]).sum())
    is_first_new = begin == 0 or way.ack[begin - 1] != number
    return count - int(is_first_new and count > 0)
