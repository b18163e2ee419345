"""Message by message: which had another fate or another latency in the other run, the frames that made it so, and why.

A message is the same where publisher, sequence and receiver have the same names. With the same random streams a frame
has the same luck in both runs, unless the knob that differs changed it; so the frames that one run lost and the other
did not are where the runs part, and each message is traced to those that carried it, or that it had to wait for in
its stream. Where there is none, what the recording says of the message itself is the reason: why it was lost, or the
part of its time that changed most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from mqttlab.comparison import frames
from mqttlab.metrics import attribution, captured_parts, fates
from mqttlab.metrics.catalogue import PARTS
from mqttlab.recording import Recording, named

KEY = ("publisher", "sequence", "subscriber")
Reason = str
OWN, BEFORE, CAUSE, TIME, SCHEDULE, UNKNOWN = (
    "its own segment", "a segment before it", "its session or the broker", "waiting", "what was offered",
    "not recorded")
"""What made the difference: a frame that carried it; a frame that it waited for in its stream; what the recording
says of a message that was not delivered; a part of its time; that only one run offered it; nothing that was
recorded."""


@dataclass(frozen=True)
class ByMessage:
    """Two runs with the same random streams."""

    first: Recording
    second: Recording
    tolerance_percent: float

    @cached_property
    def together(self) -> pl.DataFrame:
        """One row per message and receiver of either run.

        Columns: :data:`KEY` by name, ``topic``, ``qos``; ``fate``, ``cause``, ``latency_ns``, ``intended_ns`` of both
        runs (``_second``); ``fate`` is ``not offered`` where a run has no such message.
        """
        sides = [_messages(recording) for recording in (self.first, self.second)]
        both = sides[0].join(sides[1], on=KEY, how="full", coalesce=True, nulls_equal=True, suffix="_second",
                             maintain_order="left_right")
        return both.with_columns(
            pl.coalesce("topic", "topic_second").alias("topic"), pl.coalesce("qos", "qos_second").alias("qos"),
            pl.col("fate").fill_null("not offered"), pl.col("fate_second").fill_null("not offered"),
        ).drop("topic_second", "qos_second")

    @cached_property
    def fates(self) -> pl.DataFrame:
        """How many messages met which fates: ``first``, ``second``, ``messages``; those with the same last."""
        return (
            self.together.group_by(first="fate", second="fate_second").agg(messages=pl.len())
            .sort(pl.col("first") == pl.col("second"), pl.col("messages"), descending=[False, True])
        )

    @cached_property
    def frames(self) -> pl.DataFrame:
        """The frames of both runs by name (:func:`mqttlab.comparison.frames.side_by_side`)."""
        return frames.side_by_side(*(frames.named_frames(recording) for recording in (self.first, self.second)))

    @cached_property
    def parted(self) -> pl.DataFrame:
        """The frames that one run lost and the other did not, in the order of time, with ``lost_in`` (1 or 2)."""
        sides = [frames.decisive(self.frames, second=second).with_columns(lost_in=pl.lit(int(second) + 1))
                 for second in (False, True)]
        return pl.concat(sides).sort("entered_ns", "frame", "lost_in")

    @cached_property
    def different(self) -> pl.DataFrame:
        """The messages of another fate, then those whose latency changed by more than the tolerance, largest first.

        Columns: those of :attr:`together`, ``difference_ns``, ``reason`` (what made the difference), ``part`` and
        ``part_ns`` (the part of its time that changed most), ``lost_frames`` (rows of :attr:`parted`).
        """
        other = pl.col("fate") != pl.col("fate_second")
        far = (pl.col("difference_ns").abs() * 100 > pl.col("latency_ns") * self.tolerance_percent).fill_null(False)
        chosen = self.together.with_columns(
            difference_ns=pl.col("latency_ns_second") - pl.col("latency_ns")).filter(other | far)
        chosen = chosen.join(self._parts(), on=KEY, how="left", nulls_equal=True, maintain_order="left")
        chosen = chosen.join(self._losses(), on=KEY, how="left", nulls_equal=True, maintain_order="left")
        unsent = pl.any_horizontal(pl.col("fate", "fate_second").is_in(["not offered", "unsent"]))
        # That something was not recorded is no cause.
        recorded = pl.any_horizontal(pl.col("cause", "cause_second").is_in(list(fates.CAUSES)))
        reason = (
            pl.when(pl.col("own").fill_null(False)).then(pl.lit(OWN))
            .when(pl.col("own").is_not_null()).then(pl.lit(BEFORE))
            .when(unsent).then(pl.lit(SCHEDULE)).when(other & recorded).then(pl.lit(CAUSE))
            .when(pl.col("part").is_not_null()).then(pl.lit(TIME)).otherwise(pl.lit(UNKNOWN)))
        return chosen.with_columns(reason=reason).drop("own").sort(
            other, pl.col("difference_ns").abs(), *KEY, descending=[True, True, False, False, False], nulls_last=True)

    @cached_property
    def reasons(self) -> pl.DataFrame:
        """How many messages differ for which reason: ``reason``, ``other_fate``, ``slower``, ``faster``."""
        other = pl.col("fate") != pl.col("fate_second")
        return self.different.group_by("reason").agg(
            other_fate=other.sum(), slower=(~other & (pl.col("difference_ns") > 0)).sum(),
            faster=(~other & (pl.col("difference_ns") < 0)).sum(),
        ).sort(pl.sum_horizontal("other_fate", "slower", "faster"), "reason", descending=[True, False])

    def _parts(self) -> pl.DataFrame:
        """Of messages that both runs delivered: the part of the time that changed most; of none where the evidence of
        one recording divides a latency in another way."""
        nothing = pl.DataFrame(schema={**KEYS, "part": pl.String, "part_ns": pl.Int64})
        if captured_parts(self.first) != captured_parts(self.second):
            return nothing
        sides = []
        for recording in (self.first, self.second):
            table = attribution(recording)
            if table.is_empty():
                return nothing
            sides.append(_by_name(recording, table).select(*KEY, *PARTS).unique(KEY, keep="first"))
        both = sides[0].join(sides[1], on=KEY, suffix="_second", nulls_equal=True)
        changes = both.select(*KEY, *((pl.col(f"{part}_second") - pl.col(part)).alias(part) for part in PARTS))
        long = changes.unpivot(index=KEY, on=list(PARTS), variable_name="part", value_name="part_ns").filter(
            pl.col("part_ns").is_not_null(), pl.col("part_ns") != 0)
        return long.sort(pl.col("part_ns").abs(), descending=True, maintain_order=True).unique(
            KEY, keep="first", maintain_order=True)

    def _losses(self) -> pl.DataFrame:
        """Each message's frames among :attr:`parted`: ``own`` (whether one of them carried it), ``lost_frames``."""
        numbered = self.parted.with_row_index("row").filter(~pl.col("acknowledges"), pl.col("start").is_not_null())
        found = []
        for number, recording in ((1, self.first), (2, self.second)):
            lost = numbered.filter(pl.col("lost_in") == number)
            if lost.height:
                found.append(_touched(recording, lost))
        if not found:
            return pl.DataFrame(schema={**KEYS, "own": pl.Boolean, "lost_frames": pl.List(pl.UInt32)})
        return (
            pl.concat(found).sort("row").group_by(KEY, maintain_order=True)
            .agg(own=pl.col("carried").any(), lost_frames=pl.col("row").filter(
                pl.col("carried") | ~pl.col("carried").any()).unique(maintain_order=True))
        )


NEVER = 2**62
KEYS: dict[str, type[pl.DataType]] = {"publisher": pl.String, "sequence": pl.Int64, "subscriber": pl.String}


def _messages(recording: Recording) -> pl.DataFrame:
    table = recording.messages
    if table.is_empty():
        return pl.DataFrame(schema={**KEYS, "topic": pl.String, "qos": pl.Int64, "fate": pl.String, "cause": pl.String,
                                    "latency_ns": pl.Int64, "intended_ns": pl.Int64})
    others = ["duplicate", "retained", "foreign", "will"]
    known = table.filter(pl.col("publisher").is_not_null(), ~pl.col("fate").is_in(others))
    return _by_name(recording, known).select(
        *KEY, "topic", pl.col("qos").cast(pl.Int64), "fate", "cause", "latency_ns", "intended_ns",
    ).unique(KEY, keep="first", maintain_order=True)


def _by_name(recording: Recording, table: pl.DataFrame) -> pl.DataFrame:
    """Clients by their names."""
    names = recording.layout["clients"].names
    return table.with_columns(named("publisher", names), named("subscriber", names), pl.col("sequence").cast(pl.Int64))


def _touched(recording: Recording, lost: pl.DataFrame) -> pl.DataFrame:
    """The messages that lost frames carried, or that waited for them: :data:`KEY`, ``row``, ``carried``."""
    publishes = recording.control_packets.filter(
        pl.col("kind") == "PUBLISH", pl.col("publisher").is_not_null(),
    ).with_columns(subscriber=pl.when(pl.col("direction") == "to_client").then("client"))
    way = ["connection", "direction"]
    streams = publishes.join(lost.select(way).unique(), on=way, how="semi").sort("stream_start").partition_by(
        way, as_dict=True)
    waits = lost.join(_filled(recording, lost), on="row", how="left").with_columns(pl.col("filled_ns").fill_null(NEVER))
    met = [_of_stream(streams[key], part) for key, part in waits.partition_by(way, as_dict=True).items()
           if key in streams]
    if not met:
        return pl.DataFrame(schema={**KEYS, "row": pl.UInt32, "carried": pl.Boolean})
    # On the way to the broker a message is the same for all its receivers.
    receivers = recording.messages.select("publisher", "sequence", receiver="subscriber").unique()
    found = pl.concat(met).join(receivers, on=["publisher", "sequence"]).filter(
        pl.col("subscriber").is_null() | (pl.col("subscriber") == pl.col("receiver"))).with_columns(
        subscriber="receiver")
    return _by_name(recording, found).select(*KEY, "row", "carried")


def _of_stream(publishes: pl.DataFrame, lost: pl.DataFrame) -> pl.DataFrame:
    """The messages of one stream that each lost frame touched.

    Messages lie one behind the other, and are sent in that order: those that a frame carried are neighbours, and
    those that had been sent before its hole was filled are the next ones.
    """
    start, end, sent = (publishes[name].to_numpy() for name in ("stream_start", "stream_end", "first_sent_ns"))
    first = np.searchsorted(end, lost["start"].to_numpy(), side="right")
    behind = np.searchsorted(start, lost["end"].to_numpy(), side="left")
    until = np.maximum(np.searchsorted(np.maximum.accumulate(sent), lost["filled_ns"].to_numpy(), side="left"), behind)
    counts = until - first
    whose = np.repeat(np.arange(lost.height), counts)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + first[whose]
    return publishes[place].select("publisher", "sequence", "subscriber").with_columns(
        row=lost["row"].gather(whose), carried=pl.Series(place < behind[whose]))


def _filled(recording: Recording, lost: pl.DataFrame) -> pl.DataFrame:
    """When the first byte of what each frame carried arrived after all: ``row``, ``filled_ns``. What brings it was sent
    again."""
    arrived = frames.named_frames(recording).filter(
        pl.col("times") > 0, ~pl.col("acknowledges"), pl.col("fate") == "delivered",
        pl.col("hop") + 1 == pl.col("hops"), pl.col("start").is_not_null())
    met = lost.select("row", "connection", "direction", lost_start="start").join(
        arrived.select("connection", "direction", "start", "end", "delivered_ns"), on=["connection", "direction"])
    first_byte = (pl.col("start") <= pl.col("lost_start")) & (pl.col("end") > pl.col("lost_start"))
    return met.filter(first_byte).group_by("row").agg(filled_ns=pl.col("delivered_ns").min())
