"""What brokers and clients answered: reason codes (MQTT 5) and return codes (before), by packet, code and group.

Counted over the whole run from ``control_packets``. Acknowledgements before MQTT 5 have no code and are not counted.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.disconnections import code_names
from mqttlab.recording import Recording, named

REFUSES = 0x80
COLUMNS = {"from": pl.String, "packet": pl.String, "code": pl.String, "name": pl.String, "group": pl.String,
           "count": pl.Int64, "clients": pl.Int64}
SENDERS = {"to_broker": "client", "to_client": "broker"}


def answers(recording: Recording) -> pl.DataFrame:
    """One row for each sender, packet, code and group, refusals first, then the most frequent.

    Columns: ``from`` (``broker`` or ``client``), ``packet``, ``code`` (hexadecimal), ``name``, ``group`` of the client,
    ``count`` and ``clients`` (how many different ones). Of a SUBACK or UNSUBACK with several codes the highest counts.
    """
    packets = recording.scan("control_packets")
    if not packets.collect_schema():
        return pl.DataFrame(schema=COLUMNS)
    is_mqtt = pl.col("protocol").cast(pl.String) == "mqtt"
    # An answer of MQTT 5 that had codes before has properties, if only their length.
    before = (pl.col("property_bytes") == 0) & pl.col("kind").cast(pl.String).is_in(["CONNACK", "SUBACK", "UNSUBACK"])
    counted = recording.collect(
        packets.filter(pl.col("reason").is_not_null() & is_mqtt)
        .group_by(direction=pl.col("direction").cast(pl.String), packet=pl.col("kind").cast(pl.String),
                  reason=pl.col("reason").cast(pl.Int64), client=pl.col("client").cast(pl.Int64), before=before)
        .agg(count=pl.len().cast(pl.Int64)))
    if counted.is_empty():
        return pl.DataFrame(schema=COLUMNS)
    rows = counted.with_columns(group=named("client", recording.layout["clients"].groups)).group_by(
        "direction", "packet", "reason", "before", "group").agg(
            pl.col("count").sum(), clients=pl.col("client").n_unique().cast(pl.Int64))
    names = [_name(*row) for row in rows.select("packet", "reason", "before").rows()]
    is_refusal = (pl.col("reason") >= REFUSES) | (pl.col("packet") == "CONNACK") & (pl.col("reason") > 0)
    made = rows.with_columns(
        pl.Series("name", names, dtype=pl.String), pl.col("direction").replace_strict(SENDERS).alias("from"),
        pl.Series("code", [f"0x{code:02x}" for code in rows["reason"]], dtype=pl.String))
    return made.sort(is_refusal.not_(), pl.col("count") * -1, "from", "packet", "reason", "group",
                     nulls_last=True).select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def _name(packet: str, code: int, before: bool) -> str:
    names = code_names()
    kinds = (f"{packet} before MQTT 5", packet)
    # Simulations and clients do not say how many properties an answer has.
    found = [names[kind][code] for kind in (kinds if before else kinds[::-1]) if code in names.get(kind, {})]
    return found[0] if found else "unknown"
