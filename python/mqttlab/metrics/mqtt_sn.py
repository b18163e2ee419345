"""MQTT-SN: datagrams by what they carry, what a delivered message costs, and how long a gateway keeps messages.

Counted over the whole run, from the control packets that frames show and the frames of datagrams on their first link.
Empty where no MQTT-SN was spoken, or no frames of it were recorded: a client knows neither what was lost nor what a
datagram was in its frame. A message's time in a gateway is known where the packet that brought
it and the one that passed it on both say which message they carry: in simulations, and live with payloads of 9 B and
more.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.application import has_messages
from mqttlab.recording import Recording, named

UDP = 17
MS_PER_NS = 1e-6
S_PER_NS = 1e-9
MESSAGE = ("publisher", "sequence")


def mqtt_sn(recording: Recording) -> pl.DataFrame:
    """One row for the run, one for each group that speaks it, and one for each packet type and direction.

    Columns: ``scope`` (``run``, ``group`` or ``packet_type``), ``name``, and the metrics of ``MQTT_SN``.
    """
    captured = recording.scan_captured()
    if not captured.collect_schema():
        return pl.DataFrame()
    is_spoken = pl.col("protocol").cast(pl.String) == "mqtt-sn"
    # Most recordings have none: they are not read for it.
    if not recording.collect(captured.filter(is_spoken).select(pl.len())).item():
        return pl.DataFrame()
    columns = ("connection", "protocol", "direction", "client", "kind", "packet_id", *MESSAGE, "stream_start",
               "first_sent_ns", "complete_ns")
    packets = recording.collect(captured.select(columns).with_columns(
        pl.col("protocol", "direction", "kind").cast(pl.String)))
    spoken = packets.filter(is_spoken)
    datagrams = _on_the_air(recording, spoken)
    delivered = _deliveries(recording)
    clients = recording.layout["clients"]
    datagrams = datagrams.with_columns(group=named("client", clients.groups))
    kept = _kept(spoken, packets.filter(pl.col("protocol") == "mqtt"), clients.groups)
    sleepers = _sleepers(recording)
    rows = [pl.concat([_row("run", None, datagrams, delivered, kept), _awake(sleepers)], how="horizontal")]
    seen = set(datagrams["group"].drop_nulls())
    for group in (group for group in clients.group_names if group in seen):
        of = pl.Series(clients.of_groups([group]), dtype=pl.Int64).implode()
        taking_part = delivered.filter(pl.col("publisher").is_in(of) | pl.col("subscriber").is_in(of))
        theirs = kept.filter(pl.col("client").is_in(of))
        row = _row("group", group, datagrams.filter(pl.col("group") == group), taking_part, theirs)
        rows.append(pl.concat([row, _awake(sleepers.filter(pl.col("client").is_in(of)))], how="horizontal"))
    for (kind, direction), theirs in datagrams.group_by("kind", "direction", maintain_order=True):
        name = f"{kind} {str(direction).replace('_', ' ')}"
        rows.append(_counts(theirs).with_columns(scope=pl.lit("packet_type"), name=pl.lit(name)))
    return pl.concat(rows, how="diagonal").select("scope", "name", pl.exclude("scope", "name"))


def _on_the_air(recording: Recording, spoken: pl.DataFrame) -> pl.DataFrame:
    """Each datagram with the bytes of its frame on its first link, and whether it was sent again."""
    frames = recording.collect(
        recording.scan("packets").filter(
            pl.col("protocol") == UDP, pl.col("hop") == 0, pl.col("connection").is_not_null(),
            pl.col("fate").cast(pl.String) != "duplicated",
        ).select("connection", "stream_offset", "frame_bytes", "repetition",
                 up=pl.col("direction").cast(pl.String) == "up"))
    side = {"up": pl.col("direction") == "to_broker"}
    return spoken.with_columns(**side).join(
        frames.rename({"stream_offset": "stream_start"}), on=["connection", "up", "stream_start"], how="left",
    ).with_columns(pl.col("client").cast(pl.Int64), pl.col("repetition").fill_null(0))


def _deliveries(recording: Recording) -> pl.DataFrame:
    """First deliveries, by publisher and receiver."""
    if not has_messages(recording):
        return pl.DataFrame(schema={"publisher": pl.Int64, "subscriber": pl.Int64})
    found = recording.scan("messages").filter(pl.col("fate").cast(pl.String) == "delivered")
    return recording.collect(found.select(pl.col("publisher", "subscriber").cast(pl.Int64)))


def _kept(spoken: pl.DataFrame, passed_on: pl.DataFrame, groups: pl.Series) -> pl.DataFrame:
    """How long messages were in a gateway on their way down: ``client``, ``kept_ns``.

    From the arrival of the broker's PUBLISH to the first datagram of it to the client: its queue, its registration, and
    the sleep of the client.
    """
    is_publish = (pl.col("kind") == "PUBLISH") & (pl.col("direction") == "to_client")
    known = pl.all_horizontal(pl.col(MESSAGE).is_not_null())
    down = spoken.filter(is_publish, known).group_by("client", *MESSAGE).agg(pl.col("first_sent_ns").min())
    speakers = spoken["client"].drop_nulls().unique().implode()
    # What comes to a client over MQTT is its own; what comes to nobody's connection is everybody's behind the gateway.
    came = passed_on.filter(is_publish, known, pl.col("complete_ns").is_not_null())
    own = came.filter(pl.col("client").is_in(speakers)).group_by("client", *MESSAGE).agg(pl.col("complete_ns").min())
    shared = came.filter(pl.col("client").is_null()).group_by(MESSAGE).agg(shared_ns=pl.col("complete_ns").min())
    both = down.join(own, on=["client", *MESSAGE], how="left").join(shared, on=MESSAGE, how="left")
    return both.select(
        pl.col("client").cast(pl.Int64),
        kept_ns=(pl.col("first_sent_ns").cast(pl.Int64)
                 - pl.coalesce("complete_ns", "shared_ns").cast(pl.Int64)),
    ).filter(pl.col("kept_ns") >= 0)


def _sleepers(recording: Recording) -> pl.DataFrame:
    """Clients that slept: ``client``, ``life_ns`` from the first CONNECT to the last that is known of them,
    ``slept_ns``, and how often they woke up."""
    kind, at = pl.col("kind"), pl.col("at_ns")
    events = recording.events.filter(pl.col("client").is_not_null()).select(
        pl.col("client").cast(pl.Int64), "at_ns", "took_ns", kind=pl.col("kind").cast(pl.String))
    of = events.sort("client", "at_ns", maintain_order=True).group_by("client", maintain_order=True).agg(
        begin=at.filter(kind == "connect").min(), end=at.max(),
        slept_ns=pl.col("took_ns").filter(kind == "awake").sum(),
        # Who sleeps at the end has not been woken up.
        asleep_since=at.filter(kind == "asleep").last(),
        naps=(kind == "asleep").sum(), awakenings=(kind == "awake").sum())
    still = pl.when(pl.col("naps") > pl.col("awakenings")).then(pl.col("end") - pl.col("asleep_since")).otherwise(0)
    return of.filter(pl.col("naps") > 0).select(
        "client", "awakenings", life_ns=pl.col("end") - pl.col("begin"), slept_ns=pl.col("slept_ns") + still)


def _awake(sleepers: pl.DataFrame) -> pl.DataFrame:
    """Means of these clients; nothing where there are none."""
    awake = pl.col("life_ns") - pl.col("slept_ns")
    return sleepers.select(
        awake_s=awake.mean() * S_PER_NS, awake_percent=100 * awake.mean() / pl.col("life_ns").mean(),
        awakenings=pl.col("awakenings").mean())


def _bytes(datagrams: pl.DataFrame) -> int:
    """Of their frames; as wide as the column the sum would be too narrow."""
    return int(datagrams["frame_bytes"].cast(pl.Int64).sum())


def _counts(datagrams: pl.DataFrame) -> pl.DataFrame:
    lost = pl.col("complete_ns").is_null()
    return datagrams.select(
        datagrams=pl.len(), datagram_bytes=pl.lit(_bytes(datagrams), dtype=pl.Int64), datagrams_lost=lost.sum(),
        datagrams_sent_again=(pl.col("repetition") > 0).sum())


def _row(
    scope: str, name: str | None, datagrams: pl.DataFrame, delivered: pl.DataFrame, kept: pl.DataFrame,
) -> pl.DataFrame:
    counts = _counts(datagrams)
    registering = datagrams.filter(pl.col("kind").is_in(["REGISTER", "REGACK"]))
    per = delivered.height or None
    waits = kept["kept_ns"] * MS_PER_NS
    return counts.with_columns(
        scope=pl.lit(scope), name=pl.lit(name, dtype=pl.String),
        registrations=pl.lit(registering.filter(pl.col("kind") == "REGISTER").height),
        datagram_bytes_per_delivery=pl.col("datagram_bytes") / per if per else pl.lit(None, dtype=pl.Float64),
        register_bytes_per_delivery=(
            pl.lit(_bytes(registering) / per) if per else pl.lit(None, dtype=pl.Float64)),
        gateway_wait_ms_mean=pl.lit(waits.mean(), dtype=pl.Float64),
        gateway_wait_ms_p95=pl.lit(waits.quantile(0.95, "linear"), dtype=pl.Float64),
        gateway_wait_ms_max=pl.lit(waits.max(), dtype=pl.Float64),
    )
