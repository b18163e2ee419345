"""Two runs of one scenario side by side: how far they agree.

Whoever made the recordings, what is compared is the same: latencies and counts by quality of service and group,
and what crossed the network. A difference is relative to the first run.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics.summary import summary
from mqttlab.recording import Recording

APPLICATION = ("latency_ms_mean", "latency_ms_p50", "latency_ms_p95", "latency_ms_p99", "messages_sent",
               "messages_delivered", "messages_lost", "messages_under_way", "messages_unknown", "disconnects")
NETWORK = ("frames", "bytes", "segments_with_payload", "retransmissions", "tcp_analysis_retransmissions",
           "mqtt_packets", "publish_per_segment_mean")


def compare(first: Recording, second: Recording) -> pl.DataFrame:
    """One row per quantity that both runs have.

    Columns: ``scope`` (groups and QoS, or ``network``), ``metric``, ``first``, ``second``, ``difference_percent``
    (of the first; null where that is zero).
    """
    sides = [part(first, second) for part in (_application, _network)]
    return pl.concat(sides).with_columns(
        difference_percent=pl.when(pl.col("first") != 0)
        .then((pl.col("second") / pl.col("first") - 1) * 100)
        .otherwise(pl.when(pl.col("second") == 0).then(0.0))
    )


def _application(first: Recording, second: Recording) -> pl.DataFrame:
    sides = [_side(recording, "application", "groups", APPLICATION) for recording in (first, second)]
    joined = sides[0].join(sides[1], on=["scope", "metric"], how="full", coalesce=True, maintain_order="left_right")
    return joined.rename({"value": "first", "value_right": "second"})


def _network(first: Recording, second: Recording) -> pl.DataFrame:
    sides = [_side(recording, "network", "run", NETWORK) for recording in (first, second)]
    joined = sides[0].join(sides[1], on=["scope", "metric"], how="inner", maintain_order="left")
    return joined.rename({"value": "first", "value_right": "second"})


def _side(recording: Recording, table: str, scope: str, wanted: tuple[str, ...]) -> pl.DataFrame:
    """What is compared of one run, in the order in which it is asked for."""
    order = {metric: place for place, metric in enumerate(wanted)}
    return (
        summary(recording, tables=[table], scopes=[scope]).filter(pl.col("metric").is_in(wanted))
        .select(pl.col("name").fill_null(table).alias("scope"), "metric", "value")
        .sort("scope", pl.col("metric").replace_strict(order, return_dtype=pl.Int64))
    )
