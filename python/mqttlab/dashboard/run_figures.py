"""The figures of a run that pages show: those of its report, each under a name that an address can hold.

A figure over run time has the range that all of them show. Where more deliveries or round trips lie in that range than
a figure draws, it draws an even selection of these, so that looking closer shows more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from mqttlab import figures, metrics
from mqttlab.dashboard import connection_figures
from mqttlab.dashboard.panels import MARKERS_MAX
from mqttlab.digits import whole
from mqttlab.figures.drawing import Figure
from mqttlab.metrics import sums
from mqttlab.recording import Recording
from mqttlab.report import coverage, network

Range = tuple[float, float] | None
Draw = Callable[[Recording, Range], Figure | None]


@dataclass(frozen=True, kw_only=True)
class RunFigure:
    """A figure of a run."""

    name: str
    page: str
    """Where it stands: ``messages``, ``time``, ``parts`` or ``network``."""
    draw: Draw
    """Nothing where the recording does not have what it shows."""

    @property
    def over_time(self) -> bool:
        """Whether its horizontal axis is the run's time."""
        return self.page == "time"


def of_page(recording: Recording, page: str) -> list[RunFigure]:
    """The figures of a page, one for each of the busiest links among them."""
    shown = [figure for figure in FIGURES if figure.page == page]
    if page == "time":
        shown += [_throughput(place) for place in range(len(_throughputs(recording)))]
    return shown


def named(name: str) -> RunFigure | None:
    """The figure of this name."""
    if name.startswith(connection_figures.PREFIX):
        return RunFigure(name=name, page="time", draw=lambda recording, shown: connection_figures.drawn(
            recording, name, shown))
    kind, _, place = name.rpartition("-")
    if kind == "throughput" and (number := whole(place)) is not None:
        return _throughput(number)
    return next((figure for figure in FIGURES if figure.name == name), None)


def span(recording: Recording) -> tuple[float, float]:
    """From the start of the run to the last that its figures over time show, in seconds: all of them have this axis."""
    found: float = recording.derived("span of figures", _span)["end_s"][0]
    return 0.0, found


def _span(recording: Recording) -> pl.DataFrame:
    slices, states = recording.derived("slices of figures", metrics.slices), recording.tcp_state
    deliveries, trips = recording.derived("deliveries in run time", _in_run_time), recording.scan_summary("round_trips")
    ends = [_last(deliveries.select(pl.col("intended_s") + pl.col("latency_ms") / 1e3) if deliveries.height else None),
            # There may be as many as segments, and the first figures show none of them.
            _last(recording.collect(trips.select(pl.col("at_ns").max() / 1e9)) if trips.collect_schema() else None),
            _last(slices.select((pl.col("at_ns") + pl.col("length_ns")) / 1e9) if slices.height else None),
            *(_last(table.select(pl.col("at_ns") / 1e9) if table.height else None)
              for table in (states, recording.resources))]
    return pl.DataFrame({"end_s": [max(*ends, 1e-3)]})


def _last(column: pl.DataFrame | None) -> float:
    found = None if column is None else column.to_series().max()
    return float(found) if isinstance(found, (int, float)) else 0.0


def _deliveries(recording: Recording) -> pl.DataFrame:
    return recording.derived("deliveries", metrics.deliveries)


def _in_run_time(recording: Recording) -> pl.DataFrame:
    """Deliveries with the time since the run began, as all other figures have it."""
    samples = _deliveries(recording)
    if samples.is_empty():
        return samples
    return samples.with_columns(pl.col("intended_s") + metrics.measurement_began_ns(recording) / 1e9)


def _within(table: pl.DataFrame, column: str, shown: Range) -> pl.DataFrame:
    return table if shown is None or table.is_empty() else table.filter(pl.col(column).is_between(*shown))


def _drawn(table: pl.DataFrame, draw: Callable[[pl.DataFrame], Figure]) -> Figure | None:
    return None if table.is_empty() else draw(table)


def _sampled(recording: Recording, figure: Figure | None) -> Figure | None:
    """The figure, whose title says where it is of a sample of the messages."""
    told = sums.of_sample(recording)
    if not figure or not told:
        return figure
    return figure.update_layout(title={"text": f"{figure.layout['title']['text']},{told}"})


def _points(draw: Callable[[pl.DataFrame, int], Figure]) -> Callable[[pl.DataFrame], Figure]:
    return lambda table: draw(table, MARKERS_MAX)


def _latency_over_time(recording: Recording, shown: Range) -> Figure | None:
    table = recording.derived("deliveries in run time", _in_run_time)
    figure = _sampled(recording, _drawn(_within(table, "intended_s", shown), _points(figures.latency_over_time)))
    return figure and figure.update_xaxes(title="run time of intended sending (s)")


def _link_figure(draw: Callable[..., Figure], *, traced: bool = False) -> Draw:
    def of(recording: Recording, shown: Range) -> Figure | None:
        slices = network.slices_drawn(recording, recording.derived("slices of figures", metrics.slices))
        if shown is not None:
            slices = slices.filter(pl.col("at_ns").is_between(shown[0] * 1e9, shown[1] * 1e9))
        more = [network.traced(recording, slices)] if traced else []
        figure = _drawn(slices, lambda table: draw(table, *more))
        return network.some_drawn(recording, figure) if figure and figure.data else None

    return of


def _tcp_figure(draw: Callable[[pl.DataFrame, pl.Series], Figure]) -> Draw:
    def of(recording: Recording, shown: Range) -> Figure | None:
        names = recording.layout["clients"].names
        return _drawn(recording.tcp_state, lambda states: draw(states, names))

    return of


def _round_trips(recording: Recording) -> pl.DataFrame:
    return recording.derived("round trips of figures", metrics.round_trips)


def _by(part: Callable[[Recording], pl.DataFrame]) -> Draw:
    def of(recording: Recording, shown: Range) -> Figure | None:
        return _drawn(part(recording), lambda rows: figures.attribution_stack(rows, metrics.part_titles(recording)))

    return of


def _throughputs(recording: Recording) -> list[Figure]:
    table = recording.derived("throughput of figures", metrics.throughput)
    return [] if table.is_empty() else network.throughputs(table)


def _throughput(place: int) -> RunFigure:
    def draw(recording: Recording, shown: Range) -> Figure | None:
        drawn = _throughputs(recording)
        return drawn[place] if place < len(drawn) else None

    return RunFigure(name=f"throughput-{place}", page="time", draw=draw)


FIGURES: tuple[RunFigure, ...] = (
    RunFigure(name="latency-cdf", page="messages",
              draw=lambda recording, _: _sampled(recording, _drawn(_deliveries(recording), figures.latency_cdf))),
    RunFigure(name="latency-box", page="messages",
              draw=lambda recording, _: _sampled(recording, _drawn(_deliveries(recording), figures.latency_box))),
    RunFigure(name="latency-over-time", page="time", draw=_latency_over_time),
    RunFigure(name="link-utilisation", page="time", draw=_link_figure(figures.link_utilisation)),
    RunFigure(name="link-throughput", page="time", draw=_link_figure(figures.link_throughput, traced=True)),
    RunFigure(name="round-trips-over-time", page="time", draw=lambda recording, shown: _drawn(
        _within(_round_trips(recording), "at_s", shown), _points(figures.round_trips_over_time))),
    RunFigure(name="congestion-windows", page="time", draw=_tcp_figure(figures.congestion_windows)),
    RunFigure(name="outstanding-bytes", page="time", draw=_tcp_figure(figures.outstanding_bytes)),
    RunFigure(name="resources", page="time",
              draw=lambda recording, _: _drawn(recording.resources, figures.resources)),
    RunFigure(name="parts-by-qos", page="parts", draw=_by(metrics.attribution_by_qos)),
    RunFigure(name="parts-by-band", page="parts", draw=_by(metrics.attribution_by_band)),
    RunFigure(name="round-trip-cdf", page="network",
              draw=lambda recording, _: _drawn(metrics.round_trip_counts(recording), figures.round_trip_cdf)),
    RunFigure(name="publish-per-segment", page="network", draw=lambda recording, _: _drawn(
        metrics.publish_per_segment(recording),
        lambda counts: figures.publish_per_segment(counts, coverage.carrier(recording)))),
    RunFigure(name="segments-per-publish", page="network", draw=lambda recording, _: _drawn(
        metrics.segments_per_publish(recording),
        lambda counts: figures.segments_per_publish(counts, coverage.carrier(recording)))),
    RunFigure(name="overhead", page="network",
              draw=lambda recording, _: _drawn(metrics.overhead(recording), lambda table: figures.overhead(
                  table, coverage.carrier(recording), coverage.protocol(recording)))),
)
