"""How many values a percentile needs, and which metric counts them.

Between the two largest of nine latencies lies what interpolation calls their 99th percentile. A percentile needs so
many values that one of them lies beyond it: 20 for the 95th, 100 for the 99th. With fewer, surfaces for people show the
largest value and of how many it is; tables and documents keep the number. The median has no such bound.
"""

from __future__ import annotations

FEWEST = {"p95": 20, "p99": 100}
# By what a metric is called without its statistic. Parts of connecting are of some of the connections.
COUNTED_BY = {
    "latency_ms": "messages_delivered", "acknowledge_ms": "messages_acknowledged",
    "burst_completion_ms": "bursts_complete", "burst_spread_ms": "bursts_complete",
    "connect_ms": "connects", "connect_tcp_ms": "connects", "connect_tls_ms": "connects",
    "connect_tls_resumed_ms": "connects", "connect_websocket_ms": "connects", "connect_mqtt_ms": "connects",
    "connect_to_delivered_ms": "connects", "connect_to_acknowledged_ms": "connects",
    "subscribe_ms": "subscriptions", "unsubscribe_ms": "unsubscriptions",
}


def fewest(metric: str) -> int:
    """Of how many values a metric is told, by the statistic at the end of its name."""
    return FEWEST.get(metric.rpartition("_")[2], 1)


def counted_by(metric: str) -> str | None:
    """The metric that counts the values of a percentile, in the same table and scope; ``None`` of other metrics, and
    where no metric does."""
    what, _, statistic = metric.rpartition("_")
    return COUNTED_BY.get(what) if statistic in FEWEST else None
