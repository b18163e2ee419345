"""How many bytes a device sends and receives across its own access link, as the operator of the link counts them.

A device is a client. Its access link is the one next to its host: the first on the way to the broker, the last on the
way from it. Every packet counts that the link transmitted within the measurement: messages, acknowledgements,
keep-alives, repetitions, and those that the link lost. Packets that its queue refused never crossed it, and copies that
the link made were not sent. A frame that a capture shows on several interfaces counts where it was seen first. Rates
are of the measurement's length, and a kilobyte is 1,000 bytes.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.window import measurement
from mqttlab.recording import Recording, looked_up, named
from mqttlab.words import phrases

BYTES = ("ip_bytes_up", "ip_bytes_down", "link_bytes_up", "link_bytes_down")
RATES = tuple(f"{name.replace('_bytes', '_kb_per_device_hour')}" for name in BYTES)
PER_HOUR = 3600 / 1e3
MONTH = "ip_mb_per_device_month"
MONTH_HOURS = 30 * 24
# Of a frame, what is counted, and when it crossed.
KEPT = ("ip_bytes", "frame_bytes", "start_ns", "entered_ns")


def device_bytes(recording: Recording) -> pl.DataFrame:
    """One row for each group of clients: ``scope`` (``group``), ``name``, and the metrics of ``DEVICES``.

    What no frame tells is null: of groups on the broker's host, and of a direction that is not emulated. Empty where no
    frames were recorded.
    """
    return recording.derived("device bytes", _device_bytes)


def by_device(recording: Recording) -> pl.DataFrame:
    """One row for each client, in their order: ``client`` (its name), ``group``, the bytes of :data:`BYTES` within the
    measurement, and their rates."""
    return recording.derived("bytes by device", _by_device)


def _device_bytes(recording: Recording) -> pl.DataFrame:
    each = by_device(recording)
    if each.is_empty():
        return pl.DataFrame()
    return each.group_by("group", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("devices"), *(pl.col(name).mean() for name in RATES),
    ).select(pl.lit("group").alias("scope"), pl.col("group").alias("name"), "devices", *RATES,
             ((pl.col(RATES[0]) + pl.col(RATES[1])) * MONTH_HOURS / 1e3).alias(MONTH))


def _by_device(recording: Recording) -> pl.DataFrame:
    clients = recording.layout["clients"]
    packets = recording.scan("packets")
    if not clients or not packets.collect_schema():
        return pl.DataFrame()
    window = measurement(recording)
    table: pl.DataFrame = clients.table.select("client", "group")
    crossed = _crossed(recording, packets)
    at = pl.coalesce("start_ns", "entered_ns")
    counted = recording.collect(crossed.with_columns(within=window.holds(at)).group_by("client", "way").agg(
        ip_bytes=pl.col("ip_bytes").cast(pl.Int64).filter("within").sum(),
        link_bytes=pl.col("frame_bytes").cast(pl.Int64).filter("within").sum()))
    for way in ("up", "down"):
        its = counted.filter(pl.col("way") == way).select(
            "client", pl.col("ip_bytes").alias(f"ip_bytes_{way}"), pl.col("link_bytes").alias(f"link_bytes_{way}"))
        table = table.join(its, on="client", how="left", maintain_order="left")
    # A client that sent nothing is a device of none, where frames of others of its group were recorded.
    seen = [pl.when(pl.col(name).is_not_null().any().over("group")).then(pl.col(name).fill_null(0)).alias(name)
            for name in BYTES]
    seconds = window.seconds if window.seconds > 0 else None
    return table.with_columns(seen).select(
        named("client", clients.names), "group", *BYTES,
        *((pl.col(count) / seconds * PER_HOUR).alias(rate) if seconds else pl.lit(None, pl.Float64).alias(rate)
          for count, rate in zip(BYTES, RATES, strict=True)))


def _crossed(recording: Recording, packets: pl.LazyFrame) -> pl.LazyFrame:
    """Frames on the access link of the client that sends or receives them: ``client`` and ``way``."""
    clients = recording.layout["clients"]
    hosts = clients.hosts
    of_host = clients.table.group_by("host").agg(alone=pl.when(pl.len() == 1).then(pl.col("client").first()))
    sole = pl.DataFrame({"host": range(len(recording.layout["hosts"]))}, schema={"host": pl.Int64}).join(
        of_host, on="host", how="left", maintain_order="left")["alone"]
    is_known = pl.col("client").is_not_null()
    # What stays on one host crosses no link.
    apart = pl.col("from_host") != pl.col("to_host")
    cause = pl.col("cause").cast(pl.String)
    # A frame that was being sent when its link went down has used the link, and so has what came from inside to a
    # translator that had forgotten its connection.
    before_link = cause.is_in(list(phrases("frame_cause", "refused_by")))
    refused = (before_link | (cause == "link_down") & pl.col("start_ns").is_null()
               | (cause == "nat_forgot") & (pl.col("direction").cast(pl.String) == "down")).fill_null(False)
    transmitted = apart & (pl.col("fate") != "duplicated") & ~refused
    found = packets.filter(transmitted).select(
        "connection", "hop", "hops", *KEPT, *(pl.col(name).cast(pl.Int64) for name in ("from_host", "to_host")),
    ).join(_client_of(recording), on="connection", how="left")
    # A host with one client is that client's, as far as its connections do not tell whose they are.
    sender, receiver = (looked_up(f"{end}_host", sole) for end in ("from", "to"))
    up = (pl.col("hop") == 0) & pl.when(is_known).then(pl.col("from_host") == looked_up("client", hosts)).otherwise(
        sender.is_not_null())
    down = (pl.col("hop") == pl.col("hops") - 1) & pl.when(is_known).then(
        pl.col("to_host") == looked_up("client", hosts)).otherwise(receiver.is_not_null())
    return pl.concat([
        found.filter(up.fill_null(False)).select(
            *KEPT, client=pl.coalesce("client", sender), way=pl.lit("up")),
        found.filter(down.fill_null(False)).select(
            *KEPT, client=pl.coalesce("client", receiver), way=pl.lit("down"))])


def _client_of(recording: Recording) -> pl.LazyFrame:
    """Each ``connection`` and its ``client``, as far as it is known. Numbers of connections have gaps."""
    known = [scanned.select(pl.col("connection").cast(pl.UInt32), pl.col("client").cast(pl.Int64)).drop_nulls()
             for table in ("network_metrics", "control_packets")
             if (scanned := recording.scan(table)).collect_schema()]
    nothing = pl.DataFrame(schema={"connection": pl.UInt32, "client": pl.Int64})
    pairs = [recording.collect(one.unique("connection")) for one in known]
    return pl.concat([nothing, *pairs]).unique("connection", keep="first", maintain_order=True).lazy()
