"""The figures of a comparison, as its page and the dashboard show them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqttlab import metrics
from mqttlab.comparison import ByMessage, Comparison, Side
from mqttlab.figures import comparison as figures
from mqttlab.figures.drawing import Figure
from mqttlab.recording import Recording
from mqttlab.report.comparison import tables
from mqttlab.report.text import heading, unit
from mqttlab.statistics import mean_interval

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
BY_QOS = ("latency_ms_mean", "latency_ms_p99", "undelivered_percent", "messages_delivered")


def by_qos(*comparisons: Comparison) -> dict[str, Figure]:
    """Bars of every side at each QoS, by metric; none where no run tells it. The first side is that of all."""
    sides = sides_of(comparisons)
    tables_of = [[_of_qos(recording, place) for recording in side.recordings] for place, side in enumerate(sides)]
    found = pl.concat([table for side in tables_of for table in side])
    made = {}
    for metric in BY_QOS:
        values = found.filter(pl.col("metric") == metric)
        if values.height:
            words = f"{heading(metric)} ({unit(metric)})" if unit(metric) else heading(metric)
            made[metric] = figures.bars_by_qos(_means(values, sides), f"{heading(metric)} at each QoS", words)
    return made


def ratios(comparison: Comparison) -> Figure | None:
    """The ratios of means; ``None`` where no side has several runs."""
    known = [row for row in comparison.rows if row.ratio is not None and row.ratio.bounded and row.verdict]
    if not known:
        return None
    return figures.ratios(pl.DataFrame({
        "name": [f"{row.scope}: {heading(row.metric)}" for row in known],
        "ratio": [row.ratio.estimate for row in known if row.ratio],
        "low": [row.ratio.low for row in known if row.ratio],
        "high": [row.ratio.high for row in known if row.ratio],
        "verdict": [row.verdict.word for row in known if row.verdict]}))


def latency_cdf(*comparisons: Comparison) -> Figure | None:
    """The latencies of every side; ``None`` where one shares no flow with the first."""
    if not all(comparison.shifts for comparison in comparisons):
        return None
    # Six names of runs would leave no room for the curves.
    return figures.latency_cdf_of_sides(
        {ordinal(place): _samples(side) for place, side in enumerate(sides_of(comparisons))})


def shifts(comparison: Comparison) -> Figure | None:
    """The shift of each quantile; ``None`` where the sides share no flow."""
    if not comparison.shifts:
        return None
    return figures.quantile_shifts(pl.DataFrame(
        [{"flow": shift.flow, "quantile": tables.quantile(shift.q), "shift_ms": shift.shift_ms,
          "low_ms": shift.interval.low if shift.interval else None,
          "high_ms": shift.interval.high if shift.interval else None} for shift in comparison.shifts],
        schema_overrides={"low_ms": pl.Float64, "high_ms": pl.Float64}))


def latency_in_both(pair: ByMessage, most: int = figures.POINTS_MOST) -> Figure | None:
    """Each message that both runs delivered, an even selection of more than ``most``; ``None`` where there is none."""
    both = pair.together.filter(pl.col("latency_ns").is_not_null(), pl.col("latency_ns_second").is_not_null()).join(
        pair.different.select("publisher", "sequence", "subscriber", "reason"),
        on=["publisher", "sequence", "subscriber"], how="left", nulls_equal=True)
    if both.is_empty():
        return None
    return figures.latency_in_both(both.select(
        first_ms=pl.col("latency_ns") / 1e6, second_ms=pl.col("latency_ns_second") / 1e6,
        reason=pl.col("reason").fill_null("as fast")), most)


def sides_of(comparisons: Sequence[Comparison]) -> list[Side]:
    """Every side, the first one first."""
    return [comparisons[0].first, *(each.second for each in comparisons)]


def ordinal(place: int) -> str:
    """What a side is called, by its place from 0."""
    return ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th"


def _samples(side: Side) -> pl.DataFrame:
    # Publications are words of their run.
    return pl.concat([
        metrics.deliveries(recording, ("publication", "qos", "latency_ms")).with_columns(
            pl.col("publication").cast(pl.String)) for recording in side.recordings])


def _of_qos(recording: Recording, place: int) -> pl.DataFrame:
    return metrics.summary(recording, tables=["application"], scopes=["qos"]).with_columns(side=pl.lit(place))


def _means(values: pl.DataFrame, sides: Sequence[Side]) -> pl.DataFrame:
    """Of each side and QoS the mean over runs, with its interval."""
    rows = []
    for (place, qos), part in values.sort("side", "name", maintain_order=True).group_by(
            "side", "name", maintain_order=True):
        found = mean_interval(part["value"].to_list())
        several = part.height > 1
        number = int(str(place))
        rows.append({"side": f"{number + 1}: {sides[number].label}", "qos": str(qos), "mean": found.estimate,
                     "low": found.low if several else None, "high": found.high if several else None})
    return pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64})
