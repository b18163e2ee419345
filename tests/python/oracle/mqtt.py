"""MQTT as it crossed the links: packets by type and topics, worked out from the wide table.

A recording without control packets has neither.
"""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording

PARTS = ("fixed_header_bytes", "topic_bytes", "packet_id_bytes", "property_bytes", "payload_bytes")


def packet_types(recording: Recording) -> pl.DataFrame:
    """One row for each direction and type: ``direction``, ``kind``, ``packets``, ``packet_bytes_mean``."""
    table = recording.control_packets
    if table.is_empty():
        return pl.DataFrame()
    size = pl.sum_horizontal(pl.col(part).cast(pl.Int64) for part in PARTS)
    return (
        table.group_by("direction", "kind")
        .agg(packets=pl.len().cast(pl.Int64), packet_bytes_mean=size.mean())
        .sort("direction", "packets", "kind", descending=[False, True, False])
    )


def topics(recording: Recording) -> pl.DataFrame:
    """One row for each topic, the busiest first: PUBLISH packets to the broker and from it, mean size of payloads.

    Columns: ``topic``, ``publish_to_broker``, ``publish_to_client``, ``payload_bytes_mean``.
    """
    table = recording.control_packets
    if table.is_empty():
        return pl.DataFrame()
    published = table.filter(pl.col("kind") == "PUBLISH")
    if published.is_empty():
        return pl.DataFrame()
    return (
        published.group_by(topic=pl.col("topic").fill_null("(not known)").cast(pl.String))
        .agg(
            publish_to_broker=(pl.col("direction") == "to_broker").sum().cast(pl.Int64),
            publish_to_client=(pl.col("direction") == "to_client").sum().cast(pl.Int64),
            payload_bytes_mean=pl.col("payload_bytes").mean(),
        )
        .sort("publish_to_broker", "publish_to_client", "topic", descending=[True, True, False])
    )
