"""MQTT as it crossed the links: packets by type, topics, who connected how; and what else an imported capture holds.

A recording without control packets has none of these; connections and other traffic are known of imported captures.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from mqttlab.recording import Recording

PARTS = ("fixed_header_bytes", "topic_bytes", "packet_id_bytes", "property_bytes", "payload_bytes")
CONNECTIONS = {
    "client": pl.String, "from": pl.String, "to": pl.String, "mqtt_version": pl.String, "keep_alive_s": pl.Int64,
    "keep_alive_asked_s": pl.Int64, "keep_alive_ignored": pl.Boolean,
    "clean_start": pl.Boolean, "connected_ns": pl.Int64, "ended_ns": pl.Int64, "ended_how": pl.String,
}
SILENT = {"from": pl.String, "to": pl.String, "connections": pl.Int64, "closed_by": pl.String,
          "open_ns_min": pl.Int64, "open_ns_p50": pl.Int64, "open_ns_max": pl.Int64}
# How a table says what a CONNACK changes, where that is no number of seconds that has a column of its own.
CONNACK = {
    "assigned_client_identifier": "identifier {}", "session_expiry_interval_s": "session expiry {} s",
    "receive_maximum": "receive maximum {}", "maximum_qos": "maximum QoS {}", "retain_available": "retain {}",
    "maximum_packet_size": "maximum packet size {} B", "topic_alias_maximum": "topic aliases {}",
    "wildcard_subscription_available": "wildcards {}",
    "subscription_identifiers_available": "subscription identifiers {}",
    "shared_subscription_available": "shared subscriptions {}", "reason_string": "reason: {}",
    "server_reference": "server reference {}", "response_information": "response information {}",
}
OTHERS = {"port": pl.Int64, "protocol": pl.String, "connections": pl.Int64, "frames": pl.Int64, "bytes": pl.Int64}


def packet_types(recording: Recording) -> pl.DataFrame:
    """One row for each direction and type: ``direction``, ``kind``, ``packets``, ``packet_bytes_mean``."""
    sums = recording.summary("packet_sums")
    if sums.is_empty():
        return pl.DataFrame()
    return (
        sums.group_by(pl.col("direction", "kind").cast(pl.String))
        .agg(pl.col("packets").sum(), packet_bytes_mean=pl.sum_horizontal(PARTS).sum() / pl.col("packets").sum())
        .sort("direction", "packets", "kind", descending=[False, True, False])
    )


def topics(recording: Recording) -> pl.DataFrame:
    """One row for each topic, the busiest first: PUBLISH packets to the broker and from it, mean size of payloads.

    Columns: ``topic``, ``publish_to_broker``, ``publish_to_client``, ``payload_bytes_mean``.
    """
    sums = recording.summary("topic_sums")
    if sums.is_empty():
        return pl.DataFrame()
    return sums.select(
        pl.col("topic").cast(pl.String).fill_null("(not known)"), "publish_to_broker", "publish_to_client",
        payload_bytes_mean=pl.col("payload_bytes") / (pl.col("publish_to_broker") + pl.col("publish_to_client")),
    ).sort("publish_to_broker", "publish_to_client", "topic", descending=[True, True, False])


def mqtt_connections(recording: Recording) -> pl.DataFrame:
    """One row for each MQTT connection of an imported capture, in the order of their first segments.

    Columns: ``client``, ``from``, ``to``, ``mqtt_version``, ``keep_alive_s`` (in force: the server's where its CONNACK
    has one), ``keep_alive_asked_s``, ``keep_alive_ignored`` (``yes`` where the client was silent for longer than the
    server's), ``clean_start``, ``connack`` (what it changes), ``connected_s``, ``ended_s`` (since the start of the
    recording), ``ended_how``. Empty where nothing of it was captured.
    """
    rows = _details(recording).get("connections") or []
    table = pl.DataFrame([{name: row.get(name) for name in CONNECTIONS} for row in rows], schema=CONNECTIONS)
    connack = pl.Series("connack", [_connack(row.get("connack") or {}) for row in rows], dtype=pl.String)
    return table.with_columns(
        connack, connected_s=pl.col("connected_ns") / 1e9, ended_s=pl.col("ended_ns") / 1e9,
        clean_start=pl.when("clean_start").then(pl.lit("yes")).when(pl.col("clean_start").not_()).then(pl.lit("no")),
        keep_alive_ignored=pl.when("keep_alive_ignored").then(pl.lit("yes")),
    ).select("client", "from", "to", "mqtt_version", "keep_alive_s", "keep_alive_asked_s", "keep_alive_ignored",
             "clean_start", "connack", "connected_s", "ended_s", "ended_how")


def _connack(told: dict[str, Any]) -> str | None:
    named = {True: "available", False: "not available"}
    values = {name: named[value] if isinstance(value, bool) else value for name, value in told.items()}
    return ", ".join(words.format(values[name]) for name, words in CONNACK.items() if name in values) or None


def connections_without_connect(recording: Recording) -> pl.DataFrame:
    """TCP connections to a broker of an imported capture on which the client sent nothing, the most frequent first.

    Columns: ``from`` (address), ``to``, ``connections``, ``closed_by``, and how long they were open: ``open_s_min``,
    ``open_s_p50``, ``open_s_max``.
    """
    rows = (_details(recording).get("import") or {}).get("connections_without_connect") or []
    table = pl.DataFrame([{name: row.get(name) for name in SILENT} for row in rows], schema=SILENT)
    times = [(pl.col(f"open_ns_{name}") / 1e9).alias(f"open_s_{name}") for name in ("min", "p50", "max")]
    return table.select("from", "to", "connections", "closed_by", *times).sort(
        "connections", "from", "to", "closed_by", descending=[True, False, False, False])


def other_traffic(recording: Recording) -> pl.DataFrame:
    """What an imported capture holds beside the broker's connections, by the server's port, the largest first.

    Columns: ``protocol``, ``port``, ``connections``, ``frames``, ``bytes``. Frames without TCP have no port.
    """
    told = _details(recording).get("import") or {}
    rows = list(told.get("other_connections") or [])
    without = told.get("frames_without_tcp") or {}
    if without.get("frames"):
        rows.append({"protocol": "not TCP", "frames": without["frames"], "bytes": without["bytes"]})
    table = pl.DataFrame([{name: row.get(name) for name in OTHERS} for row in rows], schema=OTHERS)
    return table.select("protocol", "port", "connections", "frames", "bytes").sort(
        "bytes", "protocol", "port", descending=[True, False, False])


def _details(recording: Recording) -> dict[str, Any]:
    return recording.run.get("details") or {}
