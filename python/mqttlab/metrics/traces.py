"""What links could carry over time, where they followed a trace."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl

from mqttlab.recording import Recording

MS = 10**6
NS_PER_S = 1e9
ROWS_MAX = 2_000
"""Of a link's line; of more rows the mean of neighbours is drawn."""
SCHEMA: dict[str, type[pl.DataType]] = {"link": pl.String, "at_s": pl.Float64, "rate_bit_s": pl.Float64}


def traced_rates(recording: Recording, links: Collection[str], from_ns: int, until_ns: int) -> pl.DataFrame:
    """The rate of these links by their traces, for a part of the run time: columns ``link``, ``at_s``, ``rate_bit_s``,
    each value from its time on. Empty where no link has followed a trace with a rate."""
    traces: Collection[Any] = recording.plan.get("network", {}).get("traces") or ()
    began = ((recording.run.get("details") or {}).get("phases") or {}).get("publish_from_ns")
    found = [pl.DataFrame(schema=SCHEMA)]
    for trace in traces if isinstance(began, int) and until_ns > from_ns else ():
        table = _table(trace)
        if table is None:
            continue
        rows = _over_time(table, trace, began - trace["begins_at_ns"], from_ns, until_ns)
        found += [rows.select(pl.lit(name).alias("link"), "at_s", "rate_bit_s") for name in trace["links"]
                  if name in links]
    return pl.concat(found)


def _table(trace: Any) -> pl.DataFrame | None:
    """A trace's rates over its own time; of opportunities, over seconds or a hundredth of its length."""
    course = trace["course"]
    if course["kind"] == "values":
        if course["rate_bit_s"] is None:
            return None
        return pl.DataFrame({"at": course["at_ns"], "rate": pl.Series(course["rate_bit_s"], dtype=pl.Float64)})
    length = trace["period_ns"] or (course["at_ms"][-1] + 1) * MS
    step = min(10**9, max(1, length // 100))
    counts = (pl.DataFrame({"at": pl.Series(course["at_ms"], dtype=pl.Int64) * MS})
              .with_columns(pl.col("at").clip(0, length - 1) // step * step).group_by("at").len())
    steps = pl.DataFrame({"at": range(0, length, step)}, schema={"at": pl.Int64})
    widths = pl.min_horizontal(pl.lit(step), length - pl.col("at"))
    return steps.join(counts, on="at", how="left", maintain_order="left").select(
        "at", rate=pl.col("len").fill_null(0) * course["bytes"] * 8 * NS_PER_S / widths)


def _over_time(table: pl.DataFrame, trace: Any, origin: int, from_ns: int, until_ns: int) -> pl.DataFrame:
    """The rows that hold in a part of the run, with the times of the run."""
    period = trace["period_ns"]
    if period is None:
        rows = table.with_columns(pl.col("at") + origin)
    else:
        first, last = (from_ns - origin) // period, (until_ns - origin) // period
        # A short trace is repeated a million times in a day: then one round stands for all.
        rounds = range(first, min(last, first + ROWS_MAX) + 1)
        rows = pl.concat([table.with_columns(pl.col("at") + origin + number * period) for number in rounds])
    before = rows.filter(pl.col("at") <= from_ns).tail(1).with_columns(at=pl.lit(from_ns, dtype=pl.Int64))
    if before.is_empty():
        before = rows.head(1).with_columns(at=pl.lit(from_ns, dtype=pl.Int64))
    rows = pl.concat([before, rows.filter(pl.col("at").is_between(from_ns, until_ns, closed="none"))])
    rows = pl.concat([rows, rows.tail(1).with_columns(at=pl.lit(until_ns, dtype=pl.Int64))])
    if rows.height > ROWS_MAX:
        width = -(-(until_ns - from_ns) // ROWS_MAX)
        rows = rows.group_by(pl.col("at") // width * width, maintain_order=True).agg(pl.col("rate").mean())
    return rows.select(at_s=pl.col("at") / NS_PER_S, rate_bit_s="rate")
