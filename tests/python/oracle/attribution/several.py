"""The time of packets that fill several segments, instant by instant.

Every stretch of time between two instants at which anything changed is looked at: some frame of the packet was on a
transmitter, or else some waited in a queue, or else it is what the last frame had waited for.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl

ENDS = ("resumed_ns", "tail_nagle_until_ns", "tail_socket_until_ns", "tail_held_until_ns", "went_ns")


def divided(legs: pl.DataFrame, packets: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """The legs with the instants of their way ``up`` or ``down`` moved, so that their distances are each wait's sum."""
    names = [f"{prefix}_{name}" for name in (*ENDS, "queue_ns")]
    rows, links = legs.to_dicts(), _slowest(packets)
    for row in rows:
        ends = row[f"{prefix}_segment_end"], row[f"{prefix}_stream_end"]
        arrived, complete = row[f"{prefix}_arrived_ns"], row[f"{prefix}_complete_ns"]
        if None not in (*ends, row[f"{prefix}_frame"], complete) and ends[0] < ends[1] and arrived == complete:
            row.update(_moved(row, prefix, _own(row, prefix, links)))
    moved = pl.DataFrame([{name: row[name] for name in names} for row in rows], dict.fromkeys(names, pl.Int64))
    return legs.with_columns(moved) if rows else legs


def _slowest(packets: pl.DataFrame) -> pl.DataFrame:
    """Of each data frame that arrived, the link that took longest for it, and when it arrived."""
    has_data = pl.col("stream_offset").is_not_null() & (pl.col("payload_bytes") > 0)
    whole = pl.col("fate").is_in(["delivered", "duplicated"])
    rows = packets.filter(has_data)
    known = rows.filter(pl.col("fate") != "dropped").unique(["frame", "hop"], keep="first", maintain_order=True)
    start = pl.coalesce("start_ns", "entered_ns")
    known = known.with_columns(start=start).with_columns(sent=pl.coalesce("sent_ns", "start"))
    known = known.with_columns(_sent=pl.col("sent") - pl.col("start"), _waited=pl.col("start") - pl.col("entered_ns"))
    slowest = known.sort(["_sent", "_waited", "hop"], descending=[True, True, False], maintain_order=True).unique(
        "frame", keep="first", maintain_order=True).select("frame", "entered_ns", "start", "sent")
    last = rows.filter(whole, pl.col("hop") + 1 == pl.col("hops"), pl.col("delivered_ns").is_not_null()).sort(
        "delivered_ns", maintain_order=True)
    first = rows.filter(pl.col("hop") == 0).sort("entered_ns", maintain_order=True).with_columns(
        end=pl.col("stream_offset") + pl.col("payload_bytes"))
    first = first.with_columns(
        again=pl.col("end") <= pl.col("end").cum_max().shift(1, fill_value=-1).over("way")).select("frame", "again")
    return last.select("way", "frame", "stream_offset", "delivered_ns", end=pl.col("stream_offset") + pl.col(
        "payload_bytes")).join(slowest, on="frame", how="left", maintain_order="left").join(
        first.unique("frame", keep="last"), on="frame", how="left", maintain_order="left").with_row_index("place")


def _own(row: dict[str, Any], prefix: str, links: pl.DataFrame) -> list[tuple[int, int, int]]:
    """When the packet's frames came to a link, left its queue and its transmitter; without copies of what had come."""
    number = row[f"{prefix}_connection"] * 2 + int(prefix == "up")
    of_way = links.filter(pl.col("way") == number)
    theirs = of_way.filter(
        pl.col("stream_offset") < row[f"{prefix}_stream_end"], pl.col("end") > row[f"{prefix}_stream_start"],
        pl.col("delivered_ns").is_between(row[f"{prefix}_first_sent_ns"], row[f"{prefix}_complete_ns"]))
    found = []
    for one in theirs.iter_rows(named=True):
        originals = of_way.filter(~pl.col("again"), pl.col("end") >= one["end"]).sort("end", "place")
        is_copy = one["again"] and originals.height and originals["stream_offset"][0] < one["end"] and (
            originals["place"][0] < one["place"])
        if not is_copy:
            found.append((one["entered_ns"], one["start"], one["sent"]))
    return found


def _moved(row: dict[str, Any], prefix: str, own: list[tuple[int, int, int]]) -> dict[str, int | None]:
    went, arrived = row[f"{prefix}_went_ns"], row[f"{prefix}_arrived_ns"]
    started = went + row[f"{prefix}_queue_ns"]
    first, tried = row[f"{prefix}_first_sent_ns"], row[f"{prefix}_tried_ns"]
    begins = tried if tried is not None and tried < first else first
    sent = [(start, end) for _, start, end in own] + [(started, arrived)]
    on_way = [(entered, end) for entered, _, end in own] + [(went, arrived)]
    known = [(name, row[f"{prefix}_{name}"]) for name in ENDS]
    edges = sorted({begins, arrived, *(at for span in (*sent, *on_way) for at in span),
                    *(at for _, at in known if at is not None)})
    lengths: dict[str, int] = dict.fromkeys([*ENDS, "queue"], 0)
    for low, high in pairwise(edges):
        if low < begins or high > arrived or any(start <= low < end for start, end in sent):
            continue
        if any(start <= low < end for start, end in on_way):
            lengths["queue"] += high - low
        else:
            lengths[next(name for name, at in known if at is not None and low < at)] += high - low
    moved: dict[str, int | None] = {f"{prefix}_queue_ns": lengths["queue"]}
    at = begins
    for name, instant in known:
        at += lengths[name]
        moved[f"{prefix}_{name}"] = None if instant is None else at
    return moved
