"""Two runs of one scenario side by side: how far they agree.

Whoever made the recordings, what is compared is the same: latencies and counts by quality of service and group,
and what crossed the network. A difference is relative to the first run.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.application import application
from mqttlab.metrics.network import network
from mqttlab.recording import Recording

KEYS = ("publisher_group", "subscriber_group", "qos")
APPLICATION = ("latency_ms_mean", "latency_ms_p50", "latency_ms_p95", "latency_ms_p99", "messages_sent",
               "messages_delivered", "messages_lost", "messages_under_way", "messages_unknown", "disconnects")
NETWORK = ("frames", "bytes", "segments_with_payload", "retransmissions", "tcp_analysis_retransmissions",
           "mqtt_packets", "publish_per_segment_mean")


def compare(first: Recording, second: Recording) -> pl.DataFrame:
    """One row per quantity that both runs have.

    Columns: ``scope`` (groups and QoS, or ``network``), ``metric``, ``first``, ``second``, ``difference_percent``
    (of the first; null where that is zero).
    """
    return pl.concat([_application(first, second), _network(first, second)]).with_columns(
        difference_percent=pl.when(pl.col("first") != 0)
        .then((pl.col("second") / pl.col("first") - 1) * 100)
        .otherwise(pl.when(pl.col("second") == 0).then(0.0))
    )


def _application(first: Recording, second: Recording) -> pl.DataFrame:
    sides = [_long(application(recording, KEYS)) for recording in (first, second)]
    joined = sides[0].join(sides[1], on=["scope", "metric"], how="full", coalesce=True, maintain_order="left_right")
    return joined.rename({"value": "first", "value_right": "second"})


def _long(table: pl.DataFrame) -> pl.DataFrame:
    if table.is_empty():
        return pl.DataFrame(schema={"scope": pl.String, "metric": pl.String, "value": pl.Float64})
    words = pl.format("{} to {} at QoS {}", *(pl.col(key).cast(pl.String).fill_null("none") for key in KEYS))
    present = [metric for metric in APPLICATION if metric in table.columns]
    return (
        table.select(words.alias("scope"), pl.col(present).cast(pl.Float64))
        .unpivot(index="scope", variable_name="metric", value_name="value")
        .sort("scope", maintain_order=True)
    )


def _network(first: Recording, second: Recording) -> pl.DataFrame:
    rows = []
    values = [_of_run(recording) for recording in (first, second)]
    for metric in NETWORK:
        if all(metric in value for value in values):
            rows.append({"scope": "network", "metric": metric, "first": values[0][metric],
                         "second": values[1][metric]})
    return pl.DataFrame(rows, schema={"scope": pl.String, "metric": pl.String, "first": pl.Float64,
                                      "second": pl.Float64})


def _of_run(recording: Recording) -> dict[str, float]:
    table = network(recording, ["run"])
    if table.is_empty():
        return {}
    return {name: value for name, value in table.row(0, named=True).items() if name in NETWORK and value is not None}
