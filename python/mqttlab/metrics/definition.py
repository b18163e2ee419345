"""Every metric, declared once: its name, unit, meaning and source.

The columns of the tables in this package are the names declared here; documentation, report and export take unit
and meaning from here, and a test refuses a column that is not declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A quantity that a recording yields."""

    name: str
    unit: str
    title: str
    meaning: str
    source: str = "mqttlab"
    better: Better = "neither"


def _latency(statistic: str, title: str, words: str) -> Metric:
    return Metric(
        name=f"latency_ms_{statistic}",
        unit="ms",
        title=title,
        meaning=f"{words} of the time from a message's intended sending to its first delivery.",
        better="lower",
    )


APPLICATION: tuple[Metric, ...] = (
    Metric(name="messages_offered", unit="messages", title="offered",
           meaning="Messages that the schedule wanted sent within the measurement."),
    Metric(name="messages_sent", unit="messages", title="sent", better="higher",
           meaning="Offered messages that were handed to the publisher's session."),
    Metric(name="messages_unsent", unit="messages", title="unsent", better="lower",
           meaning="Offered messages that never were: no connection, or the client's queue was full."),
    Metric(name="deliveries_expected", unit="deliveries", title="expected",
           meaning="Sent messages times the subscribers whose filters match their topic."),
    Metric(name="messages_delivered", unit="deliveries", title="delivered", better="higher",
           meaning="Expected deliveries that happened at least once before the end of the cool-down."),
    Metric(name="messages_lost", unit="deliveries", title="lost", better="lower",
           meaning="Expected deliveries that did not happen before the end of the cool-down."),
    Metric(name="messages_lost_percent", unit="%", title="lost %", better="lower",
           meaning="Lost deliveries in a hundred expected ones."),
    Metric(name="duplicates", unit="deliveries", title="dup", better="lower",
           meaning="Deliveries of a message to a subscriber that had received it already."),
    Metric(name="out_of_order", unit="deliveries", title="out of order", better="lower",
           meaning="First deliveries that came after a later message of the same publisher and topic."),
    Metric(name="late", unit="deliveries", title="late", better="lower",
           meaning="First deliveries later than the scenario's `late_after`."),
    Metric(name="disconnects", unit="connections", title="disconnects", better="lower",
           meaning="Connections of the group's clients that ended although nobody had planned it."),
    _latency("min", "min", "The minimum"),
    _latency("mean", "mean", "The mean"),
    Metric(name="latency_ms_mean_ci95", unit="ms", title="± 95 %", better="lower",
           meaning="Half width of the 95 % confidence interval of the mean latency, by batch means (20 batches in "
                   "the order of intended sending, Student's t), which allows for the correlation of neighbours.",
           source="Law, Simulation Modeling and Analysis, 9.5.3"),
    _latency("p50", "median", "The median"),
    _latency("p95", "p95", "The 95th percentile (linear interpolation)"),
    _latency("p99", "p99", "The 99th percentile (linear interpolation)"),
    _latency("max", "max", "The maximum"),
    _latency("std", "std", "The standard deviation"),
    Metric(name="throughput_per_s", unit="deliveries/s", title="per s", better="higher",
           meaning="First deliveries of messages of the measurement, divided by its length."),
    Metric(name="goodput_kbit_s", unit="kbit/s", title="kbit/s", better="higher",
           meaning="Payload bits of these deliveries, divided by the measurement's length."),
)

LINK: tuple[Metric, ...] = (
    Metric(name="frames", unit="frames", title="frames", meaning="Frames offered to the link."),
    Metric(name="bytes", unit="B", title="bytes",
           meaning="Their bytes as the link counts them, with its own headers."),
    Metric(name="frames_delivered", unit="frames", title="delivered", better="higher",
           meaning="Frames that arrived, damaged ones and the link's own copies included."),
    Metric(name="frames_dropped", unit="frames", title="dropped", better="lower",
           meaning="Frames that did not arrive."),
    Metric(name="drops_by_cause", unit="", title="causes", meaning="Dropped or damaged frames by cause."),
    Metric(name="data_rate_kbit_s", unit="kbit/s", title="kbit/s",
           meaning="Bits of the frames that were sent, divided by the time from the first frame to the last."),
    Metric(name="utilisation_percent", unit="%", title="used %",
           meaning="Part of the time from the first frame to the last that the transmitter was busy."),
    Metric(name="queue_wait_ms_mean", unit="ms", title="wait", better="lower",
           meaning="Mean time between a frame's arrival at the queue and its first bit going out."),
    Metric(name="queue_wait_ms_max", unit="ms", title="wait max", better="lower",
           meaning="Longest such time."),
    Metric(name="frame_bytes_mean", unit="B", title="size", meaning="Mean frame size."),
)

SETUP: tuple[Metric, ...] = (
    Metric(name="connect_ms_p50", unit="ms", title="connect p50", better="lower",
           meaning="Median time from opening the TCP connection to a CONNACK that accepts."),
    Metric(name="connect_ms_p99", unit="ms", title="connect p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="subscribe_ms_p50", unit="ms", title="subscribe p50", better="lower",
           meaning="Median time from SUBSCRIBE to SUBACK."),
    Metric(name="subscribe_ms_p99", unit="ms", title="subscribe p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="acknowledge_ms_p50", unit="ms", title="acknowledge p50", better="lower",
           meaning="Median time from handing over a QoS 1 or 2 message to its last acknowledgement."),
    Metric(name="acknowledge_ms_p99", unit="ms", title="acknowledge p99", better="lower",
           meaning="99th percentile of it."),
)

ALL: dict[str, Metric] = {metric.name: metric for metric in (*APPLICATION, *LINK, *SETUP)}
