"""Frames with their connection's direction, client and group: what every table of the network layer starts from."""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.sent_again import sent_again
from mqttlab.plan import ports
from mqttlab.recording import Recording

FIN_SYN_RST = {"fin": 1, "syn": 2, "rst": 4}
ACK = 16
# Many bytes for what no table needs.
NOT_KEPT = ("cause", "protocol", "window", "tsval", "tsecr", "sack", "marks")
# Of frames joined with their connections' ends.
TOWARDS = (
    pl.when(pl.col("source_port") == pl.col("client_port")).then(pl.lit("to_broker"))
    .when(pl.col("client_port").is_not_null()).then(pl.lit("to_client"))
)


def frames(recording: Recording) -> pl.DataFrame:
    """Every frame of the broker's connections on every link of its path, without the copies that links make.

    Columns of ``packets``, without ``NOT_KEPT``; with ``towards`` (``to_broker`` or ``to_client``; null without TCP),
    ``client`` and ``group`` (null where they are not known), ``marks`` as a list and ``sent_again`` (of what the sender
    sent again, why; else null), both on every link of the path,
    ``publishes`` and ``control_packets`` (how many became complete in the segment).
    """
    return recording.derived("frames", _frames)


def _frames(recording: Recording) -> pl.DataFrame:
    packets = recording.packets
    if packets.is_empty():
        return packets
    packets = _broker_s(recording, packets.filter(pl.col("fate") != "duplicated"))
    marks = packets.filter(pl.col("hop") == 0, pl.col("marks").is_not_null()).select("frame", "marks")
    return (
        packets.drop(NOT_KEPT)
        .join(marks.unique("frame"), on="frame", how="left", maintain_order="left")
        .join(sent_again(recording), on="frame", how="left", maintain_order="left")
        .join(connection_ends(recording, packets), on="connection", how="left", maintain_order="left")
        .with_columns(
            pl.col("marks").str.split(","),
            towards=TOWARDS,
            publishes=pl.col("mqtt").str.count_matches(r"PUBLISH\(|MESSAGE").fill_null(0),
            control_packets=(pl.col("mqtt").str.count_matches(" ", literal=True) + 1).fill_null(0),
        )
        .drop("client_port")
    )


def _broker_s(recording: Recording, packets: pl.DataFrame) -> pl.DataFrame:
    """Somebody's capture may hold anything; then the plan says which ports are brokers'."""
    listening = ports(recording.plan) if "sources" in recording.plan else []
    if not listening:
        return packets
    return packets.filter(pl.col("source_port").is_in(listening) | pl.col("destination_port").is_in(listening))


def marked(name: str) -> pl.Expr:
    """Whether a frame of :func:`frames` carries a mark."""
    return pl.col("marks").list.contains(name).fill_null(False)


def is_opening() -> pl.Expr:
    """Whether a segment opens a connection: SYN without ACK; null without TCP."""
    return (pl.col("flags") & (FIN_SYN_RST["syn"] | ACK)) == FIN_SYN_RST["syn"]


def connection_ends(recording: Recording, packets: pl.DataFrame) -> pl.DataFrame:
    """Each connection's ``client``, its ``group``, and the ``client_port``.

    The client is who sent the SYN; where no SYN was captured, the end with the higher port.
    """
    segments = packets.filter(pl.col("connection").is_not_null())
    ports = segments.group_by("connection").agg(
        client_port=pl.coalesce(
            pl.col("source_port").filter(is_opening()).first(),
            pl.max_horizontal("source_port", "destination_port").first(),
        )
    )
    named = recording.layout["clients"].table.select(pl.col("client").cast(pl.UInt32), "group")
    return ports.join(_clients(recording), on="connection", how="left").join(named, on="client", how="left")


def _clients(recording: Recording) -> pl.DataFrame:
    nothing = pl.DataFrame(schema={"connection": pl.UInt32, "client": pl.UInt32})
    known = [
        table.select("connection", "client").drop_nulls()
        for table in (recording.network_metrics, recording.control_packets) if not table.is_empty()
    ]
    return pl.concat([nothing, *known]).unique("connection", keep="first")
