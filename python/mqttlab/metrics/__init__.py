"""Metrics: what a recording says, as numbers. Computed here and nowhere else.

Each function takes a :class:`~mqttlab.recording.Recording` and returns a small frame whose columns are declared
in :mod:`mqttlab.metrics.definition`. None of them knows which producer made the recording. Percentiles are taken
over messages, never over other percentiles.
"""

from mqttlab.metrics.agreement import compare
from mqttlab.metrics.application import application, clients, deliveries, has_both_ways, setup
from mqttlab.metrics.attribution import (
    attribution,
    attribution_by_band,
    attribution_by_qos,
    attribution_coverage,
    attribution_gap,
    evidence,
)
from mqttlab.metrics.definition import (
    ADJUSTED,
    ALL,
    APPLICATION,
    ATTRIBUTION,
    EFFICIENCY,
    LINK,
    MQTT,
    NETWORK,
    OVERHEAD,
    PARTS,
    SETUP,
    TRAFFIC,
    Metric,
)
from mqttlab.metrics.efficiency import efficiency
from mqttlab.metrics.link import links
from mqttlab.metrics.mqtt import mqtt_connections, other_traffic, packet_types, topics
from mqttlab.metrics.network import connections, network, round_trips
from mqttlab.metrics.overhead import overhead
from mqttlab.metrics.segments import publish_per_segment, segments_per_publish
from mqttlab.metrics.sent_again import sent_again
from mqttlab.metrics.statistics import batch_means_ci95
from mqttlab.metrics.throughput import throughput

__all__ = [
    "ADJUSTED",
    "ALL",
    "APPLICATION",
    "ATTRIBUTION",
    "EFFICIENCY",
    "LINK",
    "MQTT",
    "NETWORK",
    "OVERHEAD",
    "PARTS",
    "SETUP",
    "TRAFFIC",
    "Metric",
    "application",
    "attribution",
    "attribution_by_band",
    "attribution_by_qos",
    "attribution_coverage",
    "attribution_gap",
    "batch_means_ci95",
    "clients",
    "compare",
    "connections",
    "deliveries",
    "efficiency",
    "evidence",
    "has_both_ways",
    "links",
    "mqtt_connections",
    "network",
    "other_traffic",
    "overhead",
    "packet_types",
    "publish_per_segment",
    "round_trips",
    "segments_per_publish",
    "sent_again",
    "setup",
    "throughput",
    "topics",
]
