"""What part of the bytes and frames at a client's link is the application's.

As perez2005 defines it: S is application bytes sent over link bytes sent, R is application bytes received over link
bytes received or overheard, T is application bytes (sent or received) over all link bytes sent and received, those
that the radio overhears included. The forms with ``_messages`` count messages and frames instead. Application bytes
of a message are its topic, its payload and one more. Counted over the measurement, or over the whole run where a
radio counted.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from mqttlab.metrics.frames import TOWARDS, connection_ends
from mqttlab.recording import Recording

COUNTS = ("messages_sent", "application_sent_bytes", "messages_received", "application_received_bytes",
          "frames_sent", "frames_sent_bytes", "frames_received", "frames_received_bytes", "frames_overheard",
          "frames_overheard_bytes")


def efficiency(recording: Recording) -> pl.DataFrame:
    """One row per group of clients: S, R and T with what they are made from.

    Frames count for the group of the TCP connection's client, at that client's end; without a radio, and where the
    connection is not known, for the group whose host sends or receives them. What nothing is known of is null: frames
    that were not recorded, and frames of groups that share a radio.
    """
    layout = recording.layout
    clients = pl.DataFrame(
        {"client": range(len(layout["clients"])), "group": [client["group"] for client in layout["clients"]],
         "host": [client["host"] for client in layout["clients"]]},
        schema={"client": pl.UInt32, "group": pl.String, "host": pl.UInt16},
    )
    table = clients.group_by("group", maintain_order=True).agg(pl.len().alias("clients"))
    for part in (_messages(recording, clients), _frames(recording, clients)):
        table = table.join(part, on="group", how="left", maintain_order="left")
    table = table.with_columns(
        heard=pl.col("frames_received") + pl.col("frames_overheard"),
        heard_bytes=pl.col("frames_received_bytes") + pl.col("frames_overheard_bytes"),
    )
    return table.with_columns(
        s=_share("application_sent_bytes", "frames_sent_bytes"),
        r=_share("application_received_bytes", "heard_bytes"),
        t=(pl.col("application_sent_bytes") + pl.col("application_received_bytes")) / _all("_bytes"),
        s_messages=_share("messages_sent", "frames_sent"),
        r_messages=_share("messages_received", "heard"),
        t_messages=(pl.col("messages_sent") + pl.col("messages_received")) / _all(""),
    ).drop("heard", "heard_bytes")


def _share(above: str, below: str) -> pl.Expr:
    return pl.when((pl.col(above) > 0) & (pl.col(below) > 0)).then(pl.col(above) / pl.col(below))


def _all(unit: str) -> pl.Expr:
    names = (f"frames_sent{unit}", f"frames_received{unit}", f"frames_overheard{unit}")
    whole = pl.sum_horizontal((pl.col(name) for name in names), ignore_nulls=False)
    return pl.when(whole > 0).then(whole)


def _window(recording: Recording) -> tuple[int, int]:
    if _stations(recording):
        # A radio's counters are those of the whole run.
        return 0, 2**63 - 1
    layout = recording.layout
    return int(layout["warm_up_end_ns"]), min(int(layout["measurement_end_ns"]), 2**63 - 1)


def _messages(recording: Recording, clients: pl.DataFrame) -> pl.DataFrame:
    start, end = _window(recording)
    application = (pl.col("topic").str.len_bytes() + pl.col("payload_bytes") + 1).cast(pl.Int64)
    messages = recording.messages.with_columns(application=application)
    sent = (
        messages.filter(pl.col("sent_ns").is_between(start, end, closed="left"))
        .unique(["publisher", "sequence"])
        .group_by(client=pl.col("publisher").cast(pl.UInt32))
        .agg(messages_sent=pl.len(), application_sent_bytes=pl.col("application").sum())
    )
    received = (
        messages.filter(pl.col("received_ns").is_between(start, end, closed="left"), pl.col("fate") == "delivered")
        .group_by(client=pl.col("subscriber").cast(pl.UInt32))
        .agg(messages_received=pl.len(), application_received_bytes=pl.col("application").sum())
    )
    names = ("messages_sent", "application_sent_bytes", "messages_received", "application_received_bytes")
    return (
        clients.join(sent, on="client", how="left").join(received, on="client", how="left")
        .group_by("group").agg(pl.col(name).fill_null(0).cast(pl.Int64).sum() for name in names)
    )


def _frames(recording: Recording, clients: pl.DataFrame) -> pl.DataFrame:
    """Frames at the clients' own ends: a radio's counters where there is one, else the rows of the links."""
    alone = (
        clients.group_by("host").agg(pl.col("group").unique()).filter(pl.col("group").list.len() == 1)
        .with_columns(pl.col("group").list.first())
    )
    counted = _radio(recording)
    counted = _links(recording, alone) if counted is None else alone.join(counted, on="host", how="left")
    names = ("frames_sent", "frames_sent_bytes", "frames_received", "frames_received_bytes", "frames_overheard",
             "frames_overheard_bytes")
    return counted.group_by("group").agg(pl.col(name).fill_null(0).cast(pl.Int64).sum() for name in names)


def _links(recording: Recording, alone: pl.DataFrame) -> pl.DataFrame:
    """Frames by group. ``alone`` has the hosts whose clients are all of one group."""
    start, end = _window(recording)
    packets = recording.table("packets")
    if packets.is_empty():
        return pl.DataFrame(schema={"group": pl.String, **dict.fromkeys(COUNTS[4:], pl.Int64)})
    ends = connection_ends(recording, packets).rename({"group": "of_connection"})
    packets = packets.join(ends, on="connection", how="left").with_columns(towards=TOWARDS)

    def of_group(host: str, towards: str) -> pl.Expr:
        by_host = pl.col(host).replace_strict(alone["host"], alone["group"], default=None, return_dtype=pl.String)
        # What the broker's host sends is not all of the clients there: the connection tells, where it is known.
        theirs = pl.when(pl.col("towards") == towards).then(pl.col("of_connection"))
        return pl.when(pl.col("of_connection").is_not_null()).then(theirs).otherwise(by_host)

    sent = packets.filter(
        pl.col("hop") == 0, pl.col("fate") != "duplicated", pl.col("entered_ns").is_between(start, end, closed="left"),
    ).group_by(group=of_group("from_host", "to_broker"))
    received = packets.filter(
        pl.col("hop") + 1 == pl.col("hops"), pl.col("fate").is_in(["delivered", "duplicated"]),
        pl.col("delivered_ns").is_between(start, end, closed="left"),
    ).group_by(group=of_group("to_host", "to_client"))
    size = pl.col("frame_bytes").cast(pl.Int64).sum()
    return sent.agg(frames_sent=pl.len(), frames_sent_bytes=size).join(
        received.agg(frames_received=pl.len(), frames_received_bytes=size), on="group", how="full", coalesce=True,
    ).with_columns(frames_overheard=pl.lit(0), frames_overheard_bytes=pl.lit(0))


def _stations(recording: Recording) -> list[dict[str, Any]]:
    return (recording.run.get("details") or {}).get("stations") or []


def _radio(recording: Recording) -> pl.DataFrame | None:
    """What each station's radio counted; ``None`` without a radio."""
    stations = _stations(recording)
    if not stations:
        return None
    return pl.DataFrame(
        [
            {"host": station["host"], "frames_sent": station["frames_sent"],
             "frames_sent_bytes": station["bytes_sent"], "frames_received": station["frames_received"],
             "frames_received_bytes": station["bytes_received"], "frames_overheard": station["frames_overheard"],
             "frames_overheard_bytes": station["bytes_overheard"]}
            for station in stations
        ]
    ).with_columns(pl.col("host").cast(pl.UInt16))
