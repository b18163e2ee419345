"""What radios drew, and for how much: by station, by group of clients, and in all.

Known where a radio counted, over the whole run. A radio sleeps while all clients of its host do, as those of
MQTT-SN may; `wake_ups` says how often one that sleeps whenever the channel is silent would have had to wake up.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import has_messages
from mqttlab.recording import Recording

COUNTED = ("transmit_s", "receive_s", "idle_s", "sleep_s", "energy_j")
MJ_PER_J = 1e3


def energy(recording: Recording) -> pl.DataFrame:
    """One row for all stations, one for each group that has its stations to itself, one for each station.

    Columns: ``scope`` (``run``, ``group`` or ``station``), ``name``, and the metrics of ``ENERGY``. Empty without a
    radio. Recordings from before wake-ups were counted do not have them; in those from before radios slept, none
    did.
    """
    told = (recording.run.get("details") or {}).get("stations") or []
    if not told:
        return pl.DataFrame()
    stations = pl.DataFrame(
        [{"host": station["host"], **{name: float(station.get(name, 0.0)) for name in COUNTED},
          "wake_ups": station.get("wake_ups")} for station in told],
        schema={"host": pl.Int64, **dict.fromkeys(COUNTED, pl.Float64), "wake_ups": pl.Int64},
    )
    clients = recording.layout["clients"].table.select("client", "group", "host")
    pairs = _deliveries(recording)
    hosts = clients.group_by("host").agg(pl.col("group").unique())
    alone = hosts.filter(pl.col("group").list.len() == 1).explode("group")
    names = list(recording.layout["hosts"])
    rows = [_row("run", None, stations, int(pairs["deliveries"].sum()))]
    for group in dict.fromkeys(clients["group"]):
        of = alone.filter(pl.col("group") == group)["host"]
        # Stations that groups share draw for both.
        if of.len() == clients.filter(pl.col("group") == group)["host"].n_unique():
            theirs = stations.filter(pl.col("host").is_in(of.implode()))
            rows.append(_row("group", group, theirs, _taking_part(pairs, clients.filter(pl.col("group") == group))))
    for host in stations["host"].to_list():
        theirs = stations.filter(pl.col("host") == host)
        rows.append(_row("station", names[host], theirs, _taking_part(pairs, clients.filter(pl.col("host") == host))))
    return pl.concat(rows)


def _deliveries(recording: Recording) -> pl.DataFrame:
    """Each publisher and receiver with a first delivery, and their ``deliveries``."""
    if not has_messages(recording) or sums.is_summed(recording):
        return pl.DataFrame(schema={"publisher": pl.Int64, "subscriber": pl.Int64, "deliveries": pl.Int64})
    delivered = recording.scan("messages").filter(pl.col("fate") == "delivered")
    return recording.collect(
        delivered.group_by(pl.col("publisher", "subscriber").cast(pl.Int64)).agg(deliveries=pl.len().cast(pl.Int64)))


def _taking_part(pairs: pl.DataFrame, clients: pl.DataFrame) -> int:
    who = clients["client"].implode()
    return int(pairs.filter(pl.col("publisher").is_in(who) | pl.col("subscriber").is_in(who))["deliveries"].sum())


def _row(scope: str, name: str | None, stations: pl.DataFrame, deliveries: int) -> pl.DataFrame:
    active = pl.col("transmit_s").sum() + pl.col("receive_s").sum()
    observed = active + pl.col("idle_s").sum() + pl.col("sleep_s").sum()
    drawn = pl.col("energy_j").sum()
    return stations.select(
        pl.lit(scope).alias("scope"), pl.lit(name, pl.String).alias("name"),
        stations=pl.len().cast(pl.Int64),
        energy_j=drawn,
        energy_mj_per_delivery=drawn * MJ_PER_J / deliveries if deliveries else pl.lit(None, pl.Float64),
        radio_active_s=active,
        radio_active_percent=pl.when(observed > 0).then(100 * active / observed),
        radio_asleep_s=pl.col("sleep_s").sum(),
        wake_ups=pl.when(pl.col("wake_ups").is_not_null().all()).then(pl.col("wake_ups").sum()),
    )
