"""One TCP connection segment by segment: what its sender sent, what was acknowledged, what was in flight.

Counted where segments came to their first link, as a capture at the sender would show it. Sequence numbers are told
as positions in the stream, so that both directions begin at 0 and none wraps around.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.frames import ACK, is_opening
from mqttlab.recording import Recording

NS_PER_S = 1e9
WRAP = 1 << 32
COLUMNS = ("entered_ns", "seq", "ack", "flags", "window", "payload_bytes", "stream_offset", "marks", "fate",
           "repetition", "mqtt", "source_port", "destination_port")
SEGMENTS = {"at_s": pl.Float64, "start": pl.Int64, "end": pl.Int64, "again": pl.Boolean, "lost": pl.Boolean,
            "mqtt": pl.String}
FLIGHT = {"at_s": pl.Float64, "acknowledged": pl.Int64, "in_flight_bytes": pl.Int64, "window": pl.Int64}
DIRECTIONS = ("to_broker", "to_client")


def connection_segments(recording: Recording, connection: int, towards: str) -> pl.DataFrame:
    """The data segments of one direction of a connection, in the order in which they were sent.

    Columns: ``at_s``, ``start`` and ``end`` (positions in the stream, bytes), ``again`` (sent before), ``lost`` (a link
    dropped it), ``mqtt`` (the control packets that it completes).

    Args:
        recording: the recording.
        connection: its number.
        towards: ``to_broker`` or ``to_client``.
    """
    frames = _frames(recording, connection, towards)
    data = frames.filter(pl.col("payload_bytes") > 0, pl.col("stream_offset").is_not_null())
    if data.is_empty():
        return pl.DataFrame(schema=SEGMENTS)
    marked = pl.col("marks").cast(pl.String).str.contains("retransmission").fill_null(False)
    return data.select(
        at_s=pl.col("entered_ns") / NS_PER_S, start="stream_offset",
        end=pl.col("stream_offset") + pl.col("payload_bytes"),
        again=(pl.col("repetition").fill_null(0) > 0) | marked, lost=pl.col("fate").cast(pl.String) == "dropped",
        mqtt=pl.col("mqtt").cast(pl.String).fill_null(""))


def connection_flight(recording: Recording, connection: int, towards: str) -> pl.DataFrame:
    """What of one direction's data was acknowledged and in flight, whenever a segment of either direction was sent.

    An acknowledgement counts from when its receiver sent it; its way back is still to come then.

    Columns: ``at_s``, ``acknowledged`` (position in the stream), ``in_flight_bytes`` (sent and not acknowledged),
    ``window`` (what the data's receiver has announced, as in the header, not scaled; null at data segments).
    """
    there, back = _frames(recording, connection, towards), _frames(recording, connection, _other(towards))
    data = there.filter(pl.col("payload_bytes") > 0, pl.col("stream_offset").is_not_null(), pl.col("seq").is_not_null())
    if data.is_empty():
        return pl.DataFrame(schema=FLIGHT)
    # The sequence number of the stream's first byte.
    base = int(data["seq"][0]) - int(data["stream_offset"][0])
    sent = data.select("entered_ns", sent=pl.col("stream_offset") + pl.col("payload_bytes"),
                       acknowledged=pl.lit(None, pl.Int64), window=pl.lit(None, pl.Int64))
    answers = back.filter(pl.col("ack").is_not_null(), (pl.col("flags").fill_null(0) & ACK) > 0).select(
        "entered_ns", sent=pl.lit(None, pl.Int64), acknowledged=(pl.col("ack").cast(pl.Int64) - base) % WRAP,
        window=pl.col("window").cast(pl.Int64))
    # An answer to the SYN acknowledges the byte before the first, which is far away on a circle.
    answers = answers.with_columns(acknowledged=pl.when(pl.col("acknowledged") > WRAP // 2).then(0).otherwise(
        # A FIN counts as a byte behind the last.
        pl.min_horizontal("acknowledged", pl.lit(sent["sent"].max()))))
    both = pl.concat([sent, answers]).sort("entered_ns", maintain_order=True).with_columns(
        pl.col("sent").cum_max().forward_fill().fill_null(0),
        pl.col("acknowledged").cum_max().forward_fill().fill_null(0))
    return both.select(at_s=pl.col("entered_ns") / NS_PER_S, acknowledged="acknowledged",
                       in_flight_bytes=(pl.col("sent") - pl.col("acknowledged")).clip(lower_bound=0), window="window")


def _frames(recording: Recording, connection: int, towards: str) -> pl.DataFrame:
    """The frames of one direction at their first link, in the order in which they came there."""
    packets = recording.scan("packets")
    known = packets.collect_schema()
    if "connection" not in known:
        return pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Int64))
    found = recording.collect(packets.filter(
        pl.col("connection") == connection, pl.col("hop") == 0).select(*COLUMNS))
    opened = found.filter(is_opening())
    # Who opened the connection is the client; where the beginning is missing, the lower port is the server's.
    first = opened if not opened.is_empty() else found.sort("destination_port").head(1)
    if first.is_empty():
        return found
    server = int(first["destination_port"][0])
    column = "destination_port" if towards == "to_broker" else "source_port"
    # A frame that a link has copied was sent once.
    return found.filter(pl.col(column) == server, pl.col("fate").cast(pl.String) != "duplicated").sort(
        "entered_ns", maintain_order=True)


def _other(towards: str) -> str:
    return DIRECTIONS[1 - DIRECTIONS.index(towards)]
