"""What MQTT itself costs: bytes for each PUBLISH packet that are not the application's."""

from __future__ import annotations

import polars as pl

from mqttlab.recording import CARRIERS, Recording

PARTS = {
    "overhead_fixed_header_bytes": "fixed_header_bytes",
    "overhead_topic_bytes": "topic_bytes",
    "overhead_packet_id_bytes": "packet_id_bytes",
    "overhead_properties_bytes": "property_bytes",
}
# Which QoS an acknowledgement belongs to, and whether it runs with the PUBLISH or against it.
ACKNOWLEDGEMENTS = {"PUBACK": (1, False), "PUBREC": (2, False), "PUBREL": (2, True), "PUBCOMP": (2, False)}
OTHER_WAY = {"to_broker": "to_client", "to_client": "to_broker"}


def overhead(recording: Recording) -> pl.DataFrame:
    """One row per direction and QoS of the PUBLISH packets: where their bytes go, on average.

    Columns: ``direction``, ``qos``, and the metrics of ``OVERHEAD``. Packets that were published again count again, as
    do their acknowledgements. Empty where neither frames nor what clients know
    of their packets was recorded.
    """
    sums = recording.summary("packet_sums")
    if sums.is_empty():
        return pl.DataFrame()
    sums = sums.with_columns(pl.col("direction", "kind").cast(pl.String))
    count = pl.col("packets").sum()
    publishes = (
        sums.filter(pl.col("kind").is_in(CARRIERS))
        .group_by("direction", "qos")
        .agg(
            publish_packets=count,
            payload_bytes_mean=pl.col("payload_bytes").sum() / count,
            **{name: pl.col(column).sum() / count for name, column in PARTS.items()},
        )
    )
    table = publishes.join(_acknowledgements(sums), on=["direction", "qos"], how="left").with_columns(
        overhead_acknowledgements_bytes=pl.col("acknowledged_bytes").fill_null(0) / pl.col("publish_packets"))
    parts = [*PARTS, "overhead_acknowledgements_bytes"]
    total = pl.sum_horizontal(parts)
    return table.select(
        "direction", "qos", "publish_packets", "payload_bytes_mean", *parts,
        overhead_bytes=total, overhead_percent=100 * total / (total + pl.col("payload_bytes_mean")),
    ).sort("direction", "qos")


def _acknowledgements(sums: pl.DataFrame) -> pl.DataFrame:
    """Bytes of acknowledgements by direction and QoS of the PUBLISH packets that they answer."""
    qos = {kind: qos for kind, (qos, _) in ACKNOWLEDGEMENTS.items()}
    along = [kind for kind, (_, along) in ACKNOWLEDGEMENTS.items() if along]
    direction = pl.col("direction")
    return (
        sums.filter(pl.col("kind").is_in(list(qos)))
        .group_by(
            direction=pl.when(pl.col("kind").is_in(along)).then(direction).otherwise(direction.replace(OTHER_WAY)),
            qos=pl.col("kind").replace_strict(qos, return_dtype=pl.UInt8),
        )
        .agg(acknowledged_bytes=pl.col("stream_bytes").sum())
    )
