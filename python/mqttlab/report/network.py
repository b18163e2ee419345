"""What the reports show of the network layer: rows with a name that can be read, and which columns."""

from __future__ import annotations

import polars as pl

from mqttlab import figures, metrics
from mqttlab.figures.drawing import Figure
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report import coverage
from mqttlab.report.text import number

COLUMNS = (
    "frames", "bytes", "data_rate_kbit_s", "publish_frame_bytes_min", "publish_frame_bytes_mean",
    "publish_frame_bytes_max", "retransmissions", "retransmissions_percent", "retransmissions_fast",
    "retransmissions_timer_or_probe", "retransmissions_spurious", "retransmissions_unknown", "rtt_ms_mean",
    "rtt_ms_p95", "publish_per_segment_mean", "frame_bytes_min", "frame_bytes_mean", "frame_bytes_max", "connections",
    "resets", "segments_with_payload", "rtt_ms_min", "rtt_ms_max", "rto_ms_mean", "mqtt_packets", "publish_packets",
    "tcp_analysis_retransmissions", "tcp_analysis_fast_retransmissions", "tcp_analysis_spurious_retransmissions",
    "tcp_analysis_out_of_order", "tcp_analysis_duplicate_acks", "tcp_analysis_zero_windows",
)
EFFICIENCY_WORDS = (
    "Share of application data in the bytes on the link (S, R, T, bytes), and messages per frame (S, R, T, "
    "messages): S of what the group's hosts sent, R of what they received, T of both, as Perez 2005 "
    "defines it.")
SHORT_COLUMNS = (
    "frames", "frame_bytes_mean", "data_rate_kbit_s", "retransmissions", "tcp_analysis_duplicate_acks", "resets",
    "rtt_ms_mean", "rtt_ms_max", "rto_ms_mean", "publish_packets", "publish_per_segment_mean",
)
OVERHEAD_COLUMNS = ("publish_packets", *metrics.family("overhead").columns("page"))
EFFICIENCY_COLUMNS = ("group", "messages_sent", *metrics.family("efficiency").columns("page"))
# Of datagrams a pair of ports is what a connection is, numbered from here on.
DATAGRAMS = 1 << 31
# Pages are read by people; the exports hold every station and every link.
STATIONS_SHOWN = 20
LINKS_PRINTED = 40
# A line for each, in a figure.
LINKS_DRAWN = 8
THROUGHPUTS_DRAWN = 4
# Of a series: in SVG a point is an element of the page.
POINTS_DRAWN = 2_000


def columns(table: pl.DataFrame, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The wanted columns that have a value in some row.

    Of a recording that does not know what was sent again there is Wireshark's opinion instead.
    """
    if "retransmissions" not in table.columns and "tcp_analysis_retransmissions" not in wanted:
        wanted = tuple("tcp_analysis_retransmissions" if name == "retransmissions" else name for name in wanted)
    known = [name for name in wanted if name in table.columns and table[name].null_count() < table.height]
    # No run of MQTT is without a PUBLISH for long; of other protocols there is none, and zeros say nothing.
    return tuple(name for name in known if name != "publish_packets" or table[name].sum())


def covered(recording: Recording, table: pl.DataFrame) -> str:
    """What the tables of the network layer are made of, in a sentence."""
    run = table.filter(pl.col("scope") == "run").row(0, named=True)
    return (f"Covers the whole run, connecting and cooling down included: {counted(run['frames'], 'frame')}, "
            f"{counted(run['connections'], 'connection')}, "
            f"{coverage.control_packets(recording, run['mqtt_packets'])}.")


def busiest(links: pl.DataFrame, most: int) -> pl.DataFrame:
    """The links that carried the most bytes, the most first; all of them in the order of the table where they are not
    more."""
    if links.height <= most:
        return links
    return links.sort("bytes", descending=True, nulls_last=True, maintain_order=True).head(most)


def slices_drawn(recording: Recording, slices: pl.DataFrame) -> pl.DataFrame:
    """Of :func:`mqttlab.metrics.slices`, or of a part of them, the rows of the links that figures draw."""
    table = _links(recording)
    if table.height <= LINKS_DRAWN:
        return slices
    return slices.filter(pl.col("link").is_in(busiest(table, LINKS_DRAWN)["link"].implode()))


def some_drawn(recording: Recording, figure: Figure) -> Figure:
    """A figure of links, whose title says so where it has not all of them."""
    of = _links(recording).height
    if of <= LINKS_DRAWN:
        return figure
    title = figure.layout["title"]["text"]
    return figure.update_layout(title={"text": f"{title} ({LINKS_DRAWN} of {number(of)} links drawn)"})


def _links(recording: Recording) -> pl.DataFrame:
    return recording.derived("links of figures", metrics.links)


def left_out(links: pl.DataFrame, shown: pl.DataFrame, how: str) -> str:
    """A sentence with the sum of links of which a page has not all; empty where it has."""
    if shown.height == links.height:
        return ""
    frames, sent, dropped = (int(links[name].sum()) for name in ("frames", "bytes", "frames_dropped"))
    return (f" Of {number(links.height)} links the {number(shown.height)} with the most bytes are {how}; all together: "
            f"{number(frames)} frames, {number(sent)} B, {number(dropped)} dropped. Exports have all.")


def labelled(table: pl.DataFrame) -> pl.DataFrame:
    """The table with a column ``of`` that says whose numbers a row has."""
    if table.is_empty():
        return table
    towards = pl.col("direction").replace(figures.DIRECTIONS)
    name = pl.col("name")
    return table.with_columns(
        of=pl.when(pl.col("scope") == "run").then(pl.lit("everything"))
        .when(pl.col("scope") == "direction").then(towards)
        .when(pl.col("scope") == "link").then(pl.format("link {} ({})", name, towards))
        .otherwise(pl.format("{}, {}", name.fill_null("unknown"), towards))
    )


def overhead(recording: Recording) -> pl.DataFrame:
    """Overhead with a column ``of`` that says whose."""
    table = metrics.overhead(recording)
    if table.is_empty():
        return table
    return table.with_columns(of=pl.format("QoS {} {}", "qos", pl.col("direction").replace(figures.DIRECTIONS)))


def mqtt_sn(recording: Recording) -> pl.DataFrame:
    """MQTT-SN with a column ``of`` that says whose, or of which packets."""
    table = metrics.mqtt_sn(recording)
    if table.is_empty():
        return table
    return table.with_columns(
        of=pl.when(pl.col("scope") == "run").then(pl.lit("all datagrams"))
        .when(pl.col("scope") == "group").then(pl.format("group {}", "name")).otherwise(pl.col("name")))


def connections(recording: Recording) -> pl.DataFrame:
    """Connections with a column ``of``; those of datagrams are told apart by their name."""
    table = labelled(metrics.connections(recording))
    if table.is_empty():
        return table
    return table.with_columns(connection=pl.when(pl.col("connection") < DATAGRAMS).then(
        pl.col("connection").cast(pl.String)).otherwise(pl.format("UDP {}", pl.col("connection") - DATAGRAMS)))


def energy(recording: Recording) -> pl.DataFrame:
    """Energy with a column ``of`` that says whose; without single stations where these are many."""
    table = metrics.energy(recording)
    if table.is_empty():
        return table
    if table.filter(pl.col("scope") == "station").height > STATIONS_SHOWN:
        table = table.filter(pl.col("scope") != "station")
    return table.with_columns(of=pl.when(pl.col("scope") == "run").then(pl.lit("all stations"))
                              .otherwise(pl.format("{} {}", "scope", "name")))


def drawn(recording: Recording) -> list[Figure]:
    """The figures of the network layer; those without anything to show are left out."""
    made: list[Figure] = []
    together, taken = metrics.publish_per_segment(recording), metrics.segments_per_publish(recording)
    if not together.is_empty():
        made.append(figures.publish_per_segment(together, coverage.carrier(recording)))
    if not taken.is_empty():
        made.append(figures.segments_per_publish(taken, coverage.carrier(recording)))
    round_trips = metrics.round_trip_counts(recording)
    if not round_trips.is_empty():
        points = metrics.round_trips_thinned(recording, POINTS_DRAWN)
        made += [figures.round_trips_over_time(points, POINTS_DRAWN, counts=round_trips),
                 figures.round_trip_cdf(round_trips)]
    overhead_table = metrics.overhead(recording)
    if not overhead_table.is_empty():
        made.append(figures.overhead(overhead_table, coverage.carrier(recording), coverage.protocol(recording)))
    return made + throughputs(metrics.throughput(recording))


def throughputs(table: pl.DataFrame) -> list[Figure]:
    """A figure for each of the busiest links."""
    busiest = (
        table.filter(pl.col("level") == "frames").group_by("link", "direction").agg(pl.col("bytes_per_s").sum())
        .top_k(THROUGHPUTS_DRAWN, by="bytes_per_s").sort("link", "direction")
    )
    ways = busiest.select("link", "direction").rows()
    return [
        figures.throughput(table.filter(link=link, direction=direction))
        for link, direction in ways
    ]


def traced(recording: Recording, slices: pl.DataFrame) -> pl.DataFrame:
    """What the links among these slices could carry by their traces, for the slices' time."""
    if slices.is_empty():
        return metrics.traced_rates(recording, (), 0, 0)
    begin, end = int(slices["at_ns"].min()), int((slices["at_ns"] + slices["length_ns"]).max())  # type: ignore[arg-type]
    return metrics.traced_rates(recording, slices["link"].unique().to_list(), begin, end)
