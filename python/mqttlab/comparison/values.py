"""Metric by metric: how much the second side differs from the first, with intervals and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from mqttlab import statistics
from mqttlab.comparison.roles import Roles
from mqttlab.comparison.sides import Side, runs_of
from mqttlab.metrics import ALL, summary
from mqttlab.recording import Recording

COMPARED = {
    "application": ("groups", ("latency_ms_mean", "latency_ms_p50", "latency_ms_p95", "latency_ms_p99",
                               "messages_sent", "messages_delivered", "messages_lost", "messages_under_way",
                               "messages_unknown", "disconnects")),
    "network": ("run", ("frames", "bytes", "segments_with_payload", "retransmissions", "tcp_analysis_retransmissions",
                        "mqtt_packets", "publish_per_segment_mean")),
}
"""What is compared where nothing else is asked for: by table, its scope and its metrics."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One metric of one thing on both sides. A side without a value has none of its runs; all values are in
    ``unit``."""

    scope: str
    metric: str
    unit: str
    first: tuple[float, ...]
    second: tuple[float, ...]
    paired: bool
    difference: statistics.Difference | None
    """``None`` where a side has fewer than two runs."""
    ratio: statistics.Interval | None
    shift: statistics.Interval | None
    overlap: statistics.Interval | None
    verdict: statistics.Verdict | None

    @property
    def means(self) -> tuple[float | None, float | None]:
        """Of both sides."""
        return _mean(self.first), _mean(self.second)

    @property
    def percent(self) -> float | None:
        """The difference of the means in per cent of the first; ``None`` where that is zero and the other is not."""
        first, second = self.means
        if first is None or second is None:
            return None
        if first == 0:
            return 0.0 if second == 0 else None
        return (second / first - 1) * 100


def rows(
    first: Side, second: Side, roles: Roles, *, tolerance_percent: float, metrics: Sequence[str] = (),
) -> list[Row]:
    """Every quantity that is compared, in the order of the tables; flows are lined up by their roles.

    Sides whose runs all have a partner with the same random streams are compared in pairs; else as independent series.
    Verdicts are of one family (:func:`mqttlab.statistics.judge`); the margin is the tolerance, of the first side's
    mean.

    Args:
        metrics: only these, of every scope; those of :data:`COMPARED` where none is named.
    """
    *sides, paired = runs_of(first, second)
    tables = [_values(runs, metrics, roles.scopes(place)) for place, runs in enumerate(sides)]
    together = tables[0].join(tables[1], on=["part", "scope", "metric", "unit"], how="full", coalesce=True,
                              maintain_order="left_right", suffix="_second")
    if not metrics:
        # Groups of both runs; networks only where both have one.
        lacking = pl.col("values").is_null() | pl.col("values_second").is_null()
        together = together.filter(~((pl.col("part") == "network") & lacking))
    found = [_row(record, paired) for record in together.iter_rows(named=True)]
    judged = [row for row in found if row.difference is not None]
    margins = [abs(_mean(row.first) or 0.0) * tolerance_percent / 100 for row in judged]
    verdicts = statistics.judge([row.difference for row in judged if row.difference is not None], margins,
                                [ALL[row.metric].better if row.metric in ALL else "neither" for row in judged])
    by_row = {id(row): verdict for row, verdict in zip(judged, verdicts, strict=True)}
    return [Row(**{**vars(row), "verdict": by_row.get(id(row))}) for row in found]


def _row(record: dict[str, object], paired: bool) -> Row:
    a, b = (tuple(map(float, record[name] or ())) for name in ("values", "values_second"))  # type: ignore[call-overload]
    both = len(a) >= 2 and len(b) >= 2
    pair = paired and len(a) == len(b)
    return Row(
        scope=str(record["scope"]), metric=str(record["metric"]), unit=str(record["unit"]), first=a, second=b,
        paired=pair, difference=statistics.difference(a, b, paired=pair) if both else None,
        ratio=statistics.ratio_interval(a, b, paired=pair) if both else None,
        shift=statistics.hodges_lehmann(a, b, paired=pair) if both else None,
        overlap=statistics.cliffs_delta(a, b) if both else None, verdict=None)


def _values(recordings: Sequence[Recording], metrics: Sequence[str], scopes: Mapping[str, str]) -> pl.DataFrame:
    """The values of each quantity over a side's runs: ``part``, ``scope``, ``metric``, ``unit``, ``values``."""
    parts = []
    for number, recording in enumerate(recordings):
        for table, wanted, of_run in _tables(recording, metrics):
            scope = pl.col("name").fill_null(pl.lit(table)).replace(scopes)
            order = {metric: place for place, metric in enumerate(wanted)}
            parts.append(
                of_run.filter(pl.col("metric").is_in(list(wanted)))
                .select(pl.lit(table).alias("part"), scope.alias("scope"), "metric", "unit",
                        "value", run=pl.lit(number),
                        place=pl.col("metric").replace_strict(order, return_dtype=pl.Int64)))
    if not parts:
        words = dict.fromkeys(("part", "scope", "metric", "unit"), pl.String())
        return pl.DataFrame(schema={**words, "values": pl.List(pl.Float64)})
    return (
        pl.concat(parts).sort("part", "scope", "place", "run", maintain_order=True)
        .group_by("part", "scope", "metric", "unit", maintain_order=True).agg(values="value")
    )


def _tables(recording: Recording, metrics: Sequence[str]) -> list[tuple[str, tuple[str, ...], pl.DataFrame]]:
    if not metrics:
        # Where no packets were recorded there is nothing to sum up.
        return [(table, wanted, summary(recording, tables=[table], scopes=[scope]))
                for table, (scope, wanted) in COMPARED.items() if table != "network" or recording.rows("packets")]
    whole = summary(recording).with_columns(name=pl.coalesce("name", "scope"))
    return [("metrics", tuple(metrics), whole)]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
