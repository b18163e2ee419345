"""Figures of what both ends of TCP connections knew over time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from mqttlab.figures.drawing import Figure, trace
from mqttlab.figures.style import SERIES_COLOURS, blank

ENDS_DRAWN = 6
ENDS = {"client": "to the broker", "server": "from the broker"}


def congestion_windows(samples: pl.DataFrame, clients: Sequence[str] | pl.Series) -> Figure:
    """Congestion windows over time, of the ends that had most bytes waiting or under way at one time.

    Args:
        samples: the table ``tcp_state``: columns ``at_ns``, ``client``, ``end``, ``congestion_window_bytes``,
            ``unsent_bytes``, ``unacknowledged_bytes``.
        clients: the clients' names, by number.
    """
    return _over_time("TCP: congestion windows", samples, clients, pl.col("congestion_window_bytes"))


def outstanding_bytes(samples: pl.DataFrame, clients: Sequence[str] | pl.Series) -> Figure:
    """Bytes over time that wait in a socket or are not acknowledged, of the same ends; the same arguments."""
    waiting = pl.col("unsent_bytes") + pl.col("unacknowledged_bytes")
    return _over_time("TCP: bytes unsent or not acknowledged", samples, clients, waiting)


def _over_time(title: str, samples: pl.DataFrame, clients: Sequence[str] | pl.Series, value: pl.Expr) -> Figure:
    known = samples.filter(pl.col("client").is_not_null())
    busiest = (
        known.group_by("client", pl.col("end").cast(pl.String))
        .agg(most=(pl.col("unsent_bytes") + pl.col("unacknowledged_bytes")).max())
        .sort("most", "client", "end", descending=[True, False, False])
    )
    shown = busiest.head(ENDS_DRAWN)
    if shown.height < busiest.height:
        title = f"{title} ({shown.height} of {busiest.height} ends drawn)"
    figure = blank(title, "run time (s)", "bytes")
    for index, (client, end, _) in enumerate(shown.rows()):
        part = known.filter(pl.col("client") == client, pl.col("end") == end).sort("at_ns")
        figure.add_trace(
            trace(
                "scatter",
                x=(part["at_ns"] / 1e9).to_list(), y=part.select(value.alias("value"))["value"].to_list(), mode="lines",
                name=f"{clients[client]} {ENDS.get(end, end)}",
                line={"color": SERIES_COLOURS[index % len(SERIES_COLOURS)], "width": 2, "shape": "hv"},
            )
        )
    figure.update_yaxes(rangemode="tozero")
    return figure
