"""Figures of one run: its messages, links, connections, and where the time went."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab.figures.drawing import Figure, trace
from mqttlab.figures.hover import hover
from mqttlab.figures.series import divided, has_publications
from mqttlab.figures.style import PART_COLOURS, SERIES_COLOURS, blank
from mqttlab.statistics import Selection

MOST_POINTS = 6_000
CDF_POINTS = 500
BAND_LEAST = 10
"""Values of which fewer are no band of their own."""
BARS_NAMED = 20
DIRECTIONS = {"to_broker": "to the broker", "to_client": "to the clients"}
LEVEL_COLOURS = dict(zip(
    ("frames", "IP packets", "transport payload", "message payload"), SERIES_COLOURS, strict=False))
OVERHEAD_PARTS = {
    "fixed header": "overhead_fixed_header_bytes", "topic": "overhead_topic_bytes",
    "packet id": "overhead_packet_id_bytes", "properties": "overhead_properties_bytes",
    "acknowledgements": "overhead_acknowledgements_bytes",
}


def latency_over_time(samples: pl.DataFrame, most: int = MOST_POINTS) -> Figure:
    """Each delivery's latency against its intended time.

    Args:
        samples: columns ``qos``, ``intended_s``, ``latency_ms`` (:func:`mqttlab.metrics.deliveries`), and
            ``publication`` where there are several.
        most: above so many deliveries of a curve an even selection and the slowest are drawn, and the title says
            so.
    """
    figure = blank("Latency of each delivery", "time of intended sending (s)", "latency (ms)")
    shown = 0
    for each in divided(samples):
        kept = _thin(each.samples, most)
        shown += kept.height
        figure.add_trace(
            trace(
                "scattergl",
                x=kept["intended_s"].to_list(), y=kept["latency_ms"].to_list(), mode="markers", name=each.name,
                marker={"color": each.colour, "size": 5, "opacity": 0.65},
                **hover(kept["latency_ms"].to_list(), "%{y:.3f} ms", "sent at %{x:.3f} s<br>",
                        f"<extra>{each.name}</extra>"),
            )
        )
    if shown < samples.height:
        figure.update_layout(title=f"Latency of each delivery ({shown} of {samples.height} drawn)")
    return _log_where_wide(figure, *_extent(samples["latency_ms"]))


def latency_cdf(samples: pl.DataFrame) -> Figure:
    """Cumulative distribution of the latency, one curve for each QoS level, and publication where there are several.

    Args:
        samples: columns ``qos``, ``latency_ms``, and ``publication`` where there are several.
    """
    figure, known = blank("Latency, cumulative", "latency (ms)", "share of the deliveries"), _Ordered(np.empty(0))
    for each in divided(samples):
        known = _Ordered(np.sort(each.samples["latency_ms"].to_numpy()))
        probability = np.linspace(0, 1, min(CDF_POINTS, max(each.samples.height, 2)))
        across = known.quantiles(probability).tolist()
        figure.add_trace(
            trace(
                "scatter", x=across, y=probability.tolist(), mode="lines",
                name=each.name, line={"color": each.colour, "width": 2, "shape": "hv"},
                **hover(across, "%{x:.3f} ms", "%{y:.1%} within ", f"<extra>{each.name}</extra>"),
            )
        )
    figure.update_yaxes(range=[0, 1.01], tickformat=".0%")
    if known.height < samples.height:
        known = _Ordered(np.sort(samples["latency_ms"].to_numpy()))
    return _cut_where_empty(_log_where_wide(figure, *known.extent(), axis="x"), known)


def latency_box(samples: pl.DataFrame) -> Figure:
    """Box plot of the latency for each QoS level, and publication where there are several: quartiles, whiskers at 5 %
    and 95 %, mean as a dashed line.

    Args:
        samples: columns ``qos``, ``latency_ms``, and ``publication`` where there are several.
    """
    by = "publication" if has_publications(samples) else "QoS"
    figure = blank(f"Latency by {by} (box: quartiles, whiskers: 5 % and 95 %)", "", "latency (ms)")
    ends: list[float] = []
    for each in divided(samples):
        latency = each.samples["latency_ms"].to_numpy()
        low, first, middle, third, high = np.quantile(latency, [0.05, 0.25, 0.5, 0.75, 0.95])
        ends += [float(low), float(high)]
        figure.add_trace(
            trace(
                "box", x=[each.name], q1=[first], median=[middle], q3=[third], lowerfence=[low], upperfence=[high],
                mean=[float(latency.mean())], name=each.name, boxmean=True,
                marker={"color": each.colour}, line={"width": 2}, showlegend=False,
            )
        )
    # What lies beyond the whiskers is not drawn, and does not decide on the axis.
    return _log_where_wide(figure, min(ends, default=None), max(ends, default=None))


def link_utilisation(slices: pl.DataFrame) -> Figure:
    """How busy each link's transmitter was over time, in per cent of each time slice; empty where it is not known
    when transmissions began.

    Args:
        slices: columns ``link``, ``at_ns``, ``length_ns``, ``busy_ns`` (:func:`mqttlab.metrics.slices`).
    """
    figure = blank("Links: share of the time that the transmitter is busy", "run time (s)", "busy (%)")
    if not slices["busy_ns"].sum():
        return figure
    return _over_slices(figure, slices, 100 * pl.col("busy_ns") / pl.col("length_ns"))


def link_throughput(slices: pl.DataFrame, traced: pl.DataFrame | None = None) -> Figure:
    """Bits that each link sent in each time slice, as a rate.

    Args:
        slices: columns ``link``, ``at_ns``, ``length_ns``, ``link_bytes`` (:func:`mqttlab.metrics.slices`).
        traced: columns ``link``, ``at_s``, ``rate_bit_s`` (:func:`mqttlab.metrics.traced_rates`): what links could
            have sent, drawn as dotted lines.
    """
    figure = blank("Links: data rate", "run time (s)", "kbit/s")
    _over_slices(figure, slices, pl.col("link_bytes") * 8e6 / pl.col("length_ns"))
    names = slices["link"].unique().sort().to_list()
    for (name,), line in () if traced is None else traced.group_by("link", maintain_order=True):
        colour = SERIES_COLOURS[names.index(name) % len(SERIES_COLOURS)] if name in names else SERIES_COLOURS[-1]
        _steps(figure, line, f"{name}, rate of its trace", {"color": colour, "width": 1, "dash": "dot"})
    if traced is not None and not traced.is_empty() and slices["link_bytes"].sum():
        # What is sent may be a thousandth of what could be.
        figure.update_yaxes(type="log", rangemode="normal")
    return figure


def trace_rates(rates: pl.DataFrame) -> Figure:
    """The rate of a trace over time, a line for each direction.

    Args:
        rates: columns ``name``, ``at_s``, ``rate_bit_s``, each value from its time on.
    """
    figure = blank("Rate of the trace", "time (s)", "kbit/s")
    for index, ((name,), line) in enumerate(rates.group_by("name", maintain_order=True)):
        _steps(figure, line, str(name), {"color": SERIES_COLOURS[index], "width": 2})
    above = rates.filter(pl.col("rate_bit_s") > 0)["rate_bit_s"] / 1000
    return _log_where_wide(figure, *_extent(above))


def _steps(figure: Figure, line: pl.DataFrame, name: str, look: dict[str, Any]) -> None:
    """Rates that hold from their time on."""
    figure.add_trace(trace(
        "scatter", x=line["at_s"].to_list(), y=(line["rate_bit_s"] / 1000).to_list(), mode="lines", name=name,
        line={**look, "shape": "hv"}))


def _over_slices(figure: Figure, slices: pl.DataFrame, value: pl.Expr) -> Figure:
    """A line for each link; slices in which there is nothing count as zero."""
    if slices.is_empty():
        return figure
    width = int(slices["length_ns"][0])
    first, last = int(slices["at_ns"].min()), int(slices["at_ns"].max())  # type: ignore[arg-type]
    times = pl.DataFrame({"at_ns": range(first, last + width, width)})
    sums = slices.with_columns(value=value).group_by("link", "at_ns").agg(pl.col("value").sum())
    for index, name in enumerate(sums["link"].unique().sort()):
        line = times.join(sums.filter(pl.col("link") == name), on="at_ns", how="left", maintain_order="left")
        figure.add_trace(
            trace(
                "scatter",
                x=(line["at_ns"] / 1e9).to_list(), y=line["value"].fill_null(0).to_list(), mode="lines", name=str(name),
                line={"color": SERIES_COLOURS[index % len(SERIES_COLOURS)], "width": 2, "shape": "hv"},
            )
        )
    figure.update_yaxes(rangemode="tozero")
    return figure


def resources(samples: pl.DataFrame) -> Figure:
    """Processor use of each server and of the engine over time, in per cent of one core.

    Args:
        samples: ``Recording.resources``: columns ``process``, ``name``, ``at_ns``, ``cpu_user_s``, ``cpu_system_s``.
    """
    figure = blank("Processor use", "run time (s)", "% of one core")
    named = samples.filter(pl.col("process") != "machine").sort("name", "at_ns")
    for index, (key, part) in enumerate(named.group_by("name", maintain_order=True)):
        used = part["cpu_user_s"] + part["cpu_system_s"]
        percent = 100e9 * used.diff() / part["at_ns"].diff()
        figure.add_trace(
            trace(
                "scatter",
                x=(part["at_ns"] / 1e9).to_list()[1:], y=percent.to_list()[1:], mode="lines", name=str(key[0]),
                line={"color": SERIES_COLOURS[index % len(SERIES_COLOURS)], "width": 2},
            )
        )
    figure.update_yaxes(rangemode="tozero")
    return figure


def throughput(samples: pl.DataFrame) -> Figure:
    """What crossed one link in one direction over time, one line for each level.

    Args:
        samples: columns ``link``, ``direction``, ``level``, ``at_s``, ``bytes_per_s``, of a single link and direction
            (:func:`mqttlab.metrics.throughput`).
    """
    title = "Throughput"
    if samples.height:
        link, direction = samples.row(0, named=True)["link"], samples.row(0, named=True)["direction"]
        # Some links are named after their direction; where one name stands for both, the figures must differ.
        title += f" of {link}" + ("" if link.endswith(direction) else f", {direction}")
    figure = blank(title, "run time (s)", "B/s")
    for name, colour in LEVEL_COLOURS.items():
        part = samples.filter(pl.col("level") == name)
        figure.add_trace(
            trace(
                "scatter", x=part["at_s"].to_list(), y=part["bytes_per_s"].to_list(), mode="lines", name=name,
                # Where a link adds nothing, frames are as large as their IP packets: the line shows behind the other.
                line={"color": colour, "width": 4 if name == "frames" else 2, "shape": "hv"},
                hovertemplate="from %{x:.3f} s<br>%{y:.4s}B/s<extra>" + name + "</extra>",
            )
        )
    figure.update_yaxes(rangemode="tozero", tickformat="~s")
    return figure


def publish_per_segment(counts: pl.DataFrame, carrier: str = "PUBLISH packet") -> Figure:
    """How many PUBLISH packets share a TCP segment: bars for each direction.

    Args:
        counts: columns ``direction``, ``packets``, ``segments_percent`` (:func:`mqttlab.metrics.publish_per_segment`).
        carrier: what a packet with a message is called in the protocol that was spoken.
    """
    figure = blank(f"{carrier}s that a segment completes", f"{carrier}s", "segments (%)")
    return _bars(figure, counts, "packets", "segments_percent")


def segments_per_publish(counts: pl.DataFrame, carrier: str = "PUBLISH packet") -> Figure:
    """How many TCP segments a PUBLISH packet takes: bars for each direction.

    Args:
        counts: columns ``direction``, ``segments``, ``packets_percent``
            (:func:`mqttlab.metrics.segments_per_publish`).
        carrier: what a packet with a message is called in the protocol that was spoken.
    """
    figure = blank(f"Segments that a {carrier} takes", "segments", f"{carrier}s (%)")
    return _bars(figure, counts, "segments", "packets_percent")


def round_trips_over_time(
    samples: pl.DataFrame, most: int = MOST_POINTS, counts: pl.DataFrame | None = None,
) -> Figure:
    """Each TCP round trip against the time at which it ended, by the direction of the data.

    Args:
        samples: columns ``towards``, ``at_s``, ``rtt_ms`` (:func:`mqttlab.metrics.round_trips`).
        most: above so many round trips of a direction an even selection and the longest are drawn, and the title says
            so.
        counts: where the samples are such a selection already (:func:`mqttlab.metrics.round_trips_thinned`), all that
            it was chosen from (:func:`mqttlab.metrics.round_trip_counts`).
    """
    title = "TCP round trips"
    figure = blank(title, "run time (s)", "round trip (ms)")
    shown = 0
    for index, (direction, part) in enumerate(_by_direction(samples, "towards")):
        kept = _thin(part, most, "rtt_ms")
        shown += kept.height
        figure.add_trace(
            trace(
                "scattergl",
                x=kept["at_s"].to_list(), y=kept["rtt_ms"].to_list(), mode="markers", name=f"data {direction}",
                marker={"color": SERIES_COLOURS[index], "size": 4, "opacity": 0.6},
                **hover(kept["rtt_ms"].to_list(), "%{y:.3f} ms", "at %{x:.3f} s<br>",
                        f"<extra>data {direction}</extra>"),
            )
        )
    whole = samples.height if counts is None else counts["round_trips"].sum()
    if shown < whole:
        figure.update_layout(title=f"{title} ({shown} of {whole} drawn)")
    extent = _extent(samples["rtt_ms"]) if counts is None else _Ordered.counted(counts).extent()
    return _log_where_wide(figure, *extent)


def round_trip_cdf(counts: pl.DataFrame) -> Figure:
    """Cumulative distribution of the TCP round trips, one curve for each direction of the data.

    Args:
        counts: columns ``towards``, ``rtt_ms``, ``round_trips`` (:func:`mqttlab.metrics.round_trip_counts`).
    """
    figure = blank("TCP round trips, cumulative", "round trip (ms)", "share of the round trips")
    for index, (direction, part) in enumerate(_by_direction(counts, "towards")):
        known = _Ordered.counted(part)
        probability = np.linspace(0, 1, min(CDF_POINTS, max(known.height, 2)))
        across = known.quantiles(probability).tolist()
        figure.add_trace(
            trace(
                "scatter", x=across, y=probability.tolist(), mode="lines",
                name=f"data {direction}", line={"color": SERIES_COLOURS[index], "width": 2, "shape": "hv"},
                **hover(across, "%{x:.3f} ms", "%{y:.1%} within ", f"<extra>data {direction}</extra>"),
            )
        )
    figure.update_yaxes(range=[0, 1.01], tickformat=".0%")
    known = _Ordered.counted(counts)
    return _cut_where_empty(_log_where_wide(figure, *known.extent(), axis="x"), known)


def overhead(table: pl.DataFrame, carrier: str = "PUBLISH packet", protocol: str = "MQTT") -> Figure:
    """Bytes that the protocol adds to a message, split into parts: a stacked bar for each direction and QoS.

    Args:
        table: columns ``direction``, ``qos`` and the parts (:func:`mqttlab.metrics.overhead`).
        carrier: what a packet with a message is called in the protocol that was spoken.
        protocol: its name.
    """
    figure = blank(f"What {protocol} adds to a message on one connection", f"bytes per {carrier}", "")
    # The first row is drawn lowest.
    table = table.reverse()
    whose = table.select("qos", "direction").rows()
    labels = [f"QoS {qos} {DIRECTIONS.get(direction, direction)}" for qos, direction in whose]
    for index, (name, column) in enumerate(OVERHEAD_PARTS.items()):
        figure.add_trace(
            trace(
                "bar", y=labels, x=table[column].to_list(), name=name, orientation="h",
                marker={"color": SERIES_COLOURS[index]},
                hovertemplate="%{x:,.4~r} B<extra>" + name + "</extra>",
            )
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"}, margin={"l": 140, "t": 100})
    figure.update_yaxes(ticks="")
    return figure


def attribution_stack(means: pl.DataFrame, titles: dict[str, str]) -> Figure:
    """Where the time went: a bar for each QoS level, or for each band of the latency within it, cut into its parts.

    Args:
        means: columns ``qos``, ``part``, ``mean_ms``, and ``band`` where the latency is cut into bands.
        titles: what each part is called. Parts below a thousandth of the tallest bar are left out.
    """
    banded = "band" in means.columns
    # Bands lie: there are up to twelve, whose names would overlap below upright bars.
    figure = (blank("Where the time went, by band of the latency", "mean time (ms)", "") if banded
              else blank("Where the time went, by QoS", "", "mean time (ms)"))
    keys = ["qos", "band"] if banded else ["qos"]
    bars = means.select(keys).unique(maintain_order=True)
    names = bars.select(pl.format("QoS {} {}", "qos", "band") if banded else pl.format("QoS {}", "qos")).to_series()
    tallest = float(means.group_by(keys).agg(pl.col("mean_ms").sum())["mean_ms"].max() or 0)  # type: ignore[arg-type]
    for part, title in titles.items():
        heights = bars.join(means.filter(pl.col("part") == part), on=keys, how="left", maintain_order="left")["mean_ms"]
        if float(heights.max() or 0) <= tallest / 1000:  # type: ignore[arg-type]
            continue
        lengths = heights.fill_null(0).to_list()
        across, value = ("y", "x") if banded else ("x", "y")
        figure.add_trace(
            trace(
                "bar", **{across: names.to_list(), value: lengths}, orientation="h" if banded else "v", name=title,
                marker={"color": PART_COLOURS[part]},
                **hover(lengths, f"%{{{value}:.3f}} ms", f"%{{{across}}}<br>{title}: ", "<extra></extra>"),
            )
        )
    figure.update_layout(barmode="stack", hovermode="closest", showlegend=True, height=470, margin={"t": 100})
    (figure.update_xaxes if banded else figure.update_yaxes)(rangemode="tozero")
    if banded:
        figure.update_yaxes(autorange="reversed", ticks="", automargin=True)
    return figure


def _bars(figure: Figure, counts: pl.DataFrame, x: str, y: str) -> Figure:
    for index, (direction, part) in enumerate(_by_direction(counts, "direction")):
        figure.add_trace(
            trace(
                "bar",
                x=part[x].to_list(), y=part[y].to_list(), name=direction, marker={"color": SERIES_COLOURS[index]},
                hovertemplate="%{x}: %{y:,.3~r} %<extra>" + direction + "</extra>",
            )
        )
    # Few different numbers are named one by one.
    if counts.height and counts[x].n_unique() <= BARS_NAMED:
        figure.update_xaxes(tickmode="array", tickvals=sorted(counts[x].unique().to_list()))
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(barmode="group")
    return figure


def _by_direction(samples: pl.DataFrame, column: str) -> list[tuple[str, pl.DataFrame]]:
    present = sorted(samples[column].drop_nulls().unique().to_list())
    return [(DIRECTIONS.get(name, name), samples.filter(pl.col(column) == name)) for name in present]


def _thin(samples: pl.DataFrame, most: int, by: str = "latency_ms") -> pl.DataFrame:
    """At most so many rows, as :class:`Selection` chooses them."""
    if samples.height <= most:
        return samples
    values = samples[by]
    selection = Selection(samples.height, most, lambda count: values.top_k(count).to_numpy())
    # By numbers of rows: no copy is made of what is not drawn.
    return samples[selection.places(values.to_numpy())]


@dataclass(frozen=True)
class _Ordered:
    """Values in their order; each stands for several where it is said how many lie below each and, at last, in all."""

    values: NDArray[np.float64]
    below: NDArray[np.int64] | None = None

    @classmethod
    def counted(cls, counts: pl.DataFrame) -> _Ordered:
        """Of a table of round trips and how many there were of each."""
        together = counts.group_by("rtt_ms").agg(pl.col("round_trips").sum()).sort("rtt_ms")
        below = np.concatenate([[0], np.cumsum(together["round_trips"].to_numpy())])
        return cls(together["rtt_ms"].to_numpy(), below.astype(np.int64))

    @property
    def height(self) -> int:
        return int(self.values.size if self.below is None else self.below[-1])

    def quantiles(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """As :func:`numpy.quantile` gives them of the values one by one, of which it would make a copy."""
        ranks = shares * (self.height - 1)
        lower, upper = self._at(np.floor(ranks)), self._at(np.ceil(ranks))
        return lower + (upper - lower) * (ranks % 1)

    def extent(self) -> tuple[float | None, float | None]:
        """What all but a thousandth of the values reach, and the largest."""
        if not self.height:
            return None, None
        least = self._at(np.round(np.array([0.001 * (self.height - 1)])))
        return float(least[0]), float(self.values[-1])

    def bands(self) -> list[tuple[float, float]]:
        """The ranges that the values lie in, where there are several with much of nothing between them, and each holds
        more than a few outliers."""
        ordered = self.values
        if ordered.size < 2 or ordered[-1] <= ordered[0]:
            return []
        # What is longer than a quarter of the whole has one of these places within.
        places = np.unique(np.searchsorted(ordered, np.linspace(ordered[0], ordered[-1], 9)[1:-1]))
        ends = places[ordered[places] - ordered[places - 1] > (ordered[-1] - ordered[0]) / 4]
        bounds = np.array([0, *ends, ordered.size])
        sizes = np.diff(bounds if self.below is None else self.below[bounds])
        if sizes.min() < max(sizes.sum() / 20, BAND_LEAST):
            return []
        return [(float(ordered[first]), float(ordered[last - 1])) for first, last in itertools.pairwise(bounds)]

    def _at(self, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.below is None:
            return self.values[ranks.astype(np.int64)]
        return self.values[np.searchsorted(self.below[1:], ranks, side="right")]


def _extent(values: pl.Series) -> tuple[float | None, float | None]:
    """What all but a thousandth of the values reach, and the largest."""
    if values.is_empty():
        return None, None
    rank = round(0.001 * (len(values) - 1))
    return float(np.partition(values.to_numpy(), rank)[rank]), float(values.to_numpy().max())


def _log_where_wide(figure: Figure, low: float | None, high: float | None, axis: str = "y") -> Figure:
    """A logarithmic axis where the values span more than a factor of 30."""
    if high is None:
        return figure
    wide = low is not None and low > 0 and high / low > 30
    kind = "log" if wide else "linear"
    update = figure.update_xaxes if axis == "x" else figure.update_yaxes
    # Of few decades the twos and fives are named, too.
    update(type=kind, **({"dtick": 1 if low and high / low > 1000 else "D2"} if wide else {"rangemode": "tozero"}))
    return figure


def _cut_where_empty(figure: Figure, values: _Ordered) -> Figure:
    """A cumulative figure with its horizontal axis cut where nothing lies, if what there is lies in bands far apart:
    on one axis each of them would be a vertical line."""
    bands = values.bands()
    if len(bands) < 2:
        return figure
    curves, title = figure.data, figure.layout.xaxis.title.text
    figure.data = ()
    width = 1 / len(bands)
    for number, (low, high) in enumerate(bands):
        margin = max((high - low) / 20, high / 1000)
        low, high = low - margin, high + margin
        name = str(number + 1) if number else ""
        # So few that their numbers stand upright beside each other.
        shown = {**figure.layout.xaxis, "type": "linear", "dtick": None, "nticks": max(2, 8 // len(bands)),
                 "tickangle": 0, "title": None, "range": [low, high],
                 "domain": [(number + 0.06 * (number > 0)) * width, (number + 0.94) * width]}
        figure.update_layout({f"xaxis{name}": shown})
        for curve in curves:
            x, y = _within(np.asarray(curve.x), np.asarray(curve.y), low, high)
            figure.add_trace({**curve, "x": x, "y": y, "xaxis": f"x{name}", "legendgroup": curve.name,
                              "showlegend": number == 0})
    words = f"{title}; an empty range is skipped"
    figure.add_annotation(text=words, showarrow=False, xref="paper", yref="paper", x=0.5, y=-0.17)
    return figure


def _within(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], low: float, high: float
) -> tuple[list[float], list[float]]:
    """The part of a cumulative curve between two values of x, from where it was before to where it is then."""
    inside = (x >= low) & (x <= high)
    before, after = (float(y[mask].max(initial=0)) for mask in (x < low, x <= high))
    return [low, *x[inside].tolist(), high], [before, *y[inside].tolist(), after]
