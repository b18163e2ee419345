"""Figures: pure functions from a frame to a Plotly figure.

None of them reads a file, computes a metric or knows where its frame came from; they draw.
"""

from mqttlab.figures.live import (
    live_latency,
    live_lateness,
    live_links,
    live_queues,
    live_servers,
    message_rates,
)
from mqttlab.figures.run import (
    DIRECTIONS,
    MOST_POINTS,
    attribution_stack,
    latency_box,
    latency_cdf,
    latency_over_time,
    link_throughput,
    link_utilisation,
    overhead,
    publish_per_segment,
    resources,
    round_trip_cdf,
    round_trips_over_time,
    segments_per_publish,
    throughput,
    trace_rates,
)
from mqttlab.figures.style import FONT, PART_COLOURS, QOS_COLOURS, SERIES_COLOURS
from mqttlab.figures.tcp import congestion_windows, outstanding_bytes

__all__ = [
    "DIRECTIONS",
    "FONT",
    "MOST_POINTS",
    "PART_COLOURS",
    "QOS_COLOURS",
    "SERIES_COLOURS",
    "attribution_stack",
    "congestion_windows",
    "latency_box",
    "latency_cdf",
    "latency_over_time",
    "link_throughput",
    "link_utilisation",
    "live_latency",
    "live_lateness",
    "live_links",
    "live_queues",
    "live_servers",
    "message_rates",
    "outstanding_bytes",
    "overhead",
    "publish_per_segment",
    "resources",
    "round_trip_cdf",
    "round_trips_over_time",
    "segments_per_publish",
    "throughput",
    "trace_rates",
]
