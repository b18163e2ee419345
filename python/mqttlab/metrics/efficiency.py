"""What part of the bytes and frames at a client's link is the application's.

As perez2005 defines it: S is application bytes sent over link bytes sent, R is application bytes received over link
bytes received or overheard, T is application bytes (sent or received) over all link bytes sent and received, those
that the radio overhears included. The forms with ``_messages`` count messages and frames instead. Application bytes
of a message are its topic, its payload and one more. Counted over the measurement, or over the whole run where a
radio counted.
"""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import is_once
from mqttlab.metrics.window import TIME_MAX_NS, Window, measurement
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
    clients: pl.DataFrame = recording.layout["clients"].table.select(
        pl.col("client").cast(pl.UInt32), "group", pl.col("host").cast(pl.UInt16))
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


def _window(recording: Recording) -> Window:
    if _stations(recording):
        # A radio's counters are those of the whole run.
        return Window(from_ns=0, until_ns=TIME_MAX_NS, seconds=math.nan)
    return measurement(recording)


def _messages(recording: Recording, clients: pl.DataFrame) -> pl.DataFrame:
    names = ("messages_sent", "application_sent_bytes", "messages_received", "application_received_bytes")
    if sums.is_summed(recording):
        # Sums do not tell clients.
        return clients.select("group").unique().with_columns(pl.lit(None, pl.Int64).alias(name) for name in names)
    window = _window(recording)
    application = (pl.col("topic").str.len_bytes() + pl.col("payload_bytes") + 1).cast(pl.Int64)
    messages = recording.scan("messages").with_columns(application=application)
    once = messages.filter(window.holds(pl.col("sent_ns")))
    if not is_once(recording):
        once = once.unique(["publisher", "sequence"])
    sent = recording.collect(
        once
        .group_by(client=pl.col("publisher").cast(pl.UInt32))
        .agg(messages_sent=pl.len(), application_sent_bytes=pl.col("application").sum())
    )
    received = recording.collect(
        messages.filter(window.holds(pl.col("received_ns")), pl.col("fate") == "delivered")
        .group_by(client=pl.col("subscriber").cast(pl.UInt32))
        .agg(messages_received=pl.len(), application_received_bytes=pl.col("application").sum())
    )
    return (
        clients.join(sent, on="client", how="left").join(received, on="client", how="left")
        .group_by("group").agg(pl.col(name).fill_null(0).cast(pl.Int64).sum() for name in names)
    )


def _frames(recording: Recording, clients: pl.DataFrame) -> pl.DataFrame:
    """Frames at the clients' own ends: a radio's counters where there is one, else the rows of the links."""
    counted = _radio(recording)
    if counted is None:
        counted = _links(recording)
    else:
        alone = (
            clients.group_by("host").agg(pl.col("group").unique()).filter(pl.col("group").list.len() == 1)
            .with_columns(pl.col("group").list.first())
        )
        counted = alone.join(counted, on="host", how="left")
    names = ("frames_sent", "frames_sent_bytes", "frames_received", "frames_received_bytes", "frames_overheard",
             "frames_overheard_bytes")
    return counted.group_by("group").agg(pl.col(name).fill_null(0).cast(pl.Int64).sum() for name in names)


def _links(recording: Recording) -> pl.DataFrame:
    """Frames by group, as the links' rows tell: that of the connection's client, where it is known, else that of the
    host whose clients are all of one group."""
    table = recording.summary("group_frames")
    if table.is_empty():
        return pl.DataFrame(schema={"group": pl.String, **dict.fromkeys(COUNTS[4:], pl.Int64)})
    return table.with_columns(pl.col("group").cast(pl.String), frames_overheard=pl.lit(0),
                              frames_overheard_bytes=pl.lit(0))


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
