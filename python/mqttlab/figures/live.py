"""Figures of a run that goes on: from the engine's progress lines, four a second."""

from __future__ import annotations

import polars as pl

from mqttlab.figures.drawing import Figure, trace
from mqttlab.figures.style import SERIES_COLOURS, blank


def message_rates(ticks: pl.DataFrame) -> Figure:
    """Messages per second that were offered, sent and delivered.

    Args:
        ticks: columns ``at_s`` and the totals ``offered``, ``sent``, ``delivered``, in the order of time.
    """
    figure = blank("Messages", "run time (s)", "messages per second")
    seconds = ticks["at_s"].diff()
    for index, name in enumerate(("offered", "sent", "delivered")):
        rate = ticks[name].diff() / seconds
        _line(figure, ticks["at_s"].to_list()[1:], rate.to_list()[1:], name, index)
    return figure


def live_latency(ticks: pl.DataFrame) -> Figure:
    """Latency of the deliveries of each tick: median and 99th percentile; nothing where none came.

    Args:
        ticks: columns ``at_s``, ``latency_p50_ns``, ``latency_p99_ns``.
    """
    figure = blank("Latency", "run time (s)", "latency (ms)")
    for index, (name, words) in enumerate((("latency_p50_ns", "median"), ("latency_p99_ns", "p99"))):
        known = ticks.filter(pl.col(name).is_not_null())
        _line(figure, known["at_s"].to_list(), (known[name] / 1e6).to_list(), words, index)
    return figure


def live_lateness(ticks: pl.DataFrame) -> Figure:
    """How late emulator and senders were in each tick, 99th percentile: what decides whether the run will be valid.

    Args:
        ticks: columns ``at_s``, ``sender_lateness_p99_ns``, ``emulator_lateness_p99_ns``.
    """
    figure = blank("Lateness, p99", "run time (s)", "late (ms)")
    for index, name in enumerate(("sender_lateness_p99_ns", "emulator_lateness_p99_ns")):
        known = ticks.filter(pl.col(name).is_not_null())
        _line(figure, known["at_s"].to_list(), (known[name] / 1e6).to_list(), name.partition("_")[0], index)
    return figure


def live_links(samples: pl.DataFrame) -> Figure:
    """What each link carries.

    Args:
        samples: columns ``link``, ``at_s``, ``rate_bit_s``.
    """
    return _each(blank("Links: data rate", "run time (s)", "kbit/s"), samples, "link", pl.col("rate_bit_s") / 1000)


def live_queues(samples: pl.DataFrame) -> Figure:
    """What waits in front of each link.

    Args:
        samples: columns ``link``, ``at_s``, ``queue_bytes``.
    """
    return _each(blank("Links: bytes that wait", "run time (s)", "B"), samples, "link", pl.col("queue_bytes"))


def live_servers(samples: pl.DataFrame) -> Figure:
    """What servers use of a processor.

    Args:
        samples: columns ``server``, ``at_s``, ``percent``.
    """
    return _each(blank("Servers: processor", "run time (s)", "% of one core"), samples, "server", pl.col("percent"))


def _each(figure: Figure, samples: pl.DataFrame, by: str, value: pl.Expr) -> Figure:
    """A line for each link or server, in the order of their names."""
    for index, name in enumerate(samples[by].unique().sort()):
        part = samples.filter(pl.col(by) == name).select("at_s", value=value)
        _line(figure, part["at_s"].to_list(), part["value"].to_list(), str(name), index % len(SERIES_COLOURS))
    return figure


def _line(figure: Figure, x: list[float], y: list[float], name: str, index: int) -> None:
    figure.add_trace(trace("scatter",
                           x=x, y=y, mode="lines", name=name, line={"color": SERIES_COLOURS[index], "width": 2}))
    figure.update_yaxes(rangemode="tozero")
