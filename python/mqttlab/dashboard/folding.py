"""The runs of an experiment as one row of the table of runs.

A run of an experiment lies in its directory: ``EXPERIMENT/runs/RUN``. The row has the means of what was measured, over
the valid runs, and of what was set what is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from mqttlab.dashboard.store import METRICS

# The column with the names of an experiment's runs; empty where a row is a run.
RUNS = "runs"
Order = Sequence[tuple[str, bool]]
"""Columns, and whether they are sorted from large to small."""


def folded(runs: pl.DataFrame, order: Order, opened: Collection[str] = ()) -> pl.DataFrame:
    """The rows in an order, those of each experiment behind a row of their own, and only where it is opened."""
    of = runs.with_columns(_of=pl.col("run").str.extract("^(.+)/runs/[^/]+$"))
    single, many = of.filter(pl.col("_of").is_null()), of.filter(pl.col("_of").is_not_null())
    if many.is_empty():
        return ordered(runs, order)
    experiments = many.group_by("_of", maintain_order=True).agg(
        pl.col("run").alias(RUNS), *(_together(name, many.schema[name]) for name in runs.columns if name != "run"),
    ).rename({"_of": "run"}).select(*runs.columns, RUNS)
    rows = pl.concat([single.drop("_of"), experiments], how="diagonal_relaxed")
    rows = ordered(rows, order or [("started", True)])
    shown = many.filter(pl.col("_of").is_in(list(opened)))
    if shown.is_empty():
        return rows
    # Each behind the row of its experiment.
    places = rows.with_row_index("_at").select("_at", _of="run")
    inner = ordered(shown, order).join(places, on="_of", how="left", maintain_order="left").drop("_of")
    return pl.concat([rows.with_row_index("_at"), inner], how="diagonal_relaxed").sort(
        "_at", maintain_order=True).drop("_at")


def ordered(runs: pl.DataFrame, order: Order) -> pl.DataFrame:
    """The rows in an order; as they are where there is none."""
    if not order:
        return runs
    return runs.sort([name for name, _ in order], descending=[is_falling for _, is_falling in order], nulls_last=True,
                     maintain_order=True)


def _together(name: str, kind: pl.DataType) -> pl.Expr:
    """What a column says of several runs."""
    column = pl.col(name)
    if name == "started":
        return column.max()
    if name == "verdict":
        bad = (column != "valid").sum()
        return pl.when(bad == 0).then(pl.lit("valid")).otherwise(
            pl.format("{} of {} not valid", bad, pl.len())).alias(name)
    if name in METRICS:
        return column.filter(pl.col("verdict") == "valid").mean()
    return pl.when(column.n_unique() == 1).then(column.first()).otherwise(pl.lit(None, kind)).alias(name)
