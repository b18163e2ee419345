"""Why clients' connections ended unplanned, and why they were refused: as clients were told, and as their evidence has
it in ``events``.
"""

from __future__ import annotations

import re

import polars as pl

from mqttlab.recording import Recording

KINDS = {"disconnect": "disconnected", "refused": "refused"}
COLUMNS = {"group": pl.String, "what": pl.String, "reason": pl.String, "count": pl.Int64, "clients": pl.Int64}
CODE = re.compile(r"code 0x([0-9a-f]{2})$")
# Of CONNACK in MQTT 3.1.1 (§3.2.2.3), and of CONNACK and DISCONNECT in MQTT 5 (§2.4).
CODES = {
    0x01: "unacceptable protocol version", 0x02: "identifier rejected", 0x03: "server unavailable",
    0x04: "bad user name or password", 0x05: "not authorised", 0x80: "unspecified error", 0x81: "malformed packet",
    0x82: "protocol error", 0x83: "implementation specific error", 0x84: "unsupported protocol version",
    0x85: "client identifier not valid", 0x86: "bad user name or password", 0x87: "not authorised",
    0x88: "server unavailable", 0x89: "server busy", 0x8A: "banned", 0x8B: "server shutting down",
    0x8C: "bad authentication method", 0x8D: "keep alive timeout", 0x8E: "session taken over",
    0x8F: "topic filter invalid", 0x90: "topic name invalid", 0x93: "receive maximum exceeded",
    0x94: "topic alias invalid", 0x95: "packet too large", 0x96: "message rate too high", 0x97: "quota exceeded",
    0x98: "administrative action", 0x99: "payload format invalid", 0x9A: "retain not supported",
    0x9B: "QoS not supported", 0x9C: "use another server", 0x9D: "server moved",
    0x9E: "shared subscriptions not supported", 0x9F: "connection rate exceeded", 0xA0: "maximum connect time",
    0xA1: "subscription identifiers not supported", 0xA2: "wildcard subscriptions not supported",
}


def disconnections(recording: Recording) -> pl.DataFrame:
    """One row for each group and reason, the most frequent first: ``group``, ``what`` (``disconnected`` or
    ``refused``), ``reason``, ``count`` (times) and ``clients`` (how many different ones)."""
    events = recording.events
    if events.is_empty():
        return pl.DataFrame(schema=COLUMNS)
    kind = pl.col("kind").cast(pl.String)
    found = events.filter(kind.is_in(list(KINDS)))
    if found.is_empty():
        return pl.DataFrame(schema=COLUMNS)
    groups = pl.DataFrame({"client": range(len(recording.layout["clients"])),
                           "group": [client["group"] for client in recording.layout["clients"]]},
                          schema={"client": pl.Int64, "group": pl.String})
    told = found.select(
        client=pl.col("client").cast(pl.Int64), what=kind.replace_strict(KINDS, return_dtype=pl.String),
        reason=pl.col("detail").cast(pl.String).fill_null("no reason was recorded"))
    counted = told.join(groups, on="client", how="left").group_by("group", "what", "reason").agg(
        count=pl.len().cast(pl.Int64), clients=pl.col("client").n_unique().cast(pl.Int64))
    reasons = {reason: in_words(reason) for reason in counted["reason"].unique()}
    return counted.with_columns(pl.col("reason").replace(reasons)).select(
        pl.col(name).cast(type_) for name, type_ in COLUMNS.items()).sort(
        ["count", "group", "what", "reason"], descending=[True, False, False, False], nulls_last=True)


def in_words(reason: str) -> str:
    """A reason with what its code means."""
    code = CODE.search(reason)
    means = CODES.get(int(code[1], 16)) if code and not reason.startswith("SUBSCRIBE") else None
    return f"{reason} ({means})" if means else reason
