"""What the reports show of where the time of the messages went."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from mqttlab import figures, metrics
from mqttlab.recording import Recording

TITLES = {metric.name: metric.title for metric in metrics.ATTRIBUTION}
# In the terminal a part has a row where it takes this much of some QoS level's mean latency.
SHOWN_PERCENT = 0.1


def by_qos(table: pl.DataFrame, least_percent: float = 0.0) -> pl.DataFrame:
    """One row per part, in the order in which they pass: for each QoS level the mean in ms and the share in %.

    Args:
        table: :func:`mqttlab.metrics.attribution`.
        least_percent: parts with a smaller share at every level are left out.
    """
    means = metrics.attribution_by_qos(table) if table.height else table
    if means.is_empty():
        return pl.DataFrame()
    levels = means["qos"].unique().sort().to_list()
    columns = [pl.col("part")]
    wide = means.pivot("qos", index="part", values=["mean_ms", "share_percent"])
    for level in levels:
        columns += [pl.col(f"mean_ms_{level}").round(4).alias(f"QoS {level} (ms)"),
                    pl.col(f"share_percent_{level}").round(1).alias(f"QoS {level} (%)")]
    large = pl.max_horizontal(f"share_percent_{level}" for level in levels) >= least_percent
    return wide.filter(large).select(columns)


def drawn(table: pl.DataFrame) -> list[go.Figure]:
    """A stacked bar for each QoS level, and for each band of its latency."""
    return [figures.attribution_stack(metrics.attribution_by_qos(table), TITLES),
            figures.attribution_stack(metrics.attribution_by_band(table), TITLES)]


def accuracy(recording: Recording, table: pl.DataFrame) -> str:
    """A sentence on how far the parts can be trusted, or why there are none."""
    gap = metrics.attribution_gap(recording)
    if gap is not None:
        return f"Where the time went is not known: {gap}."
    known = table.filter(pl.col("adjusted_ns").is_not_null())
    if known.is_empty():
        return "Where the time went is not known: no delivered message has its packets recorded."
    worst = float(known["adjusted_ns"].quantile(0.999) or 0) / 1000
    unknown = table.height - known.height
    missing = f" Of {unknown} deliveries the packets are not known." if unknown else ""
    return (f"The parts of each message add up to its latency. They were read from instants that disagree by at most "
            f"{worst:.0f} µs in 99.9 % of {known.height} deliveries.{missing}")
