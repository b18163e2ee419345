"""Metrics: what a recording says, as numbers. Computed here and nowhere else.

Each function takes a :class:`~mqttlab.recording.Recording` and returns a small frame whose columns are declared
in :mod:`mqttlab.metrics.catalogue`; :func:`summary` is the long form of all of them. None of them knows which producer
made the recording. Percentiles are taken over messages, never over other percentiles.
"""

from mqttlab.metrics.answers import answers
from mqttlab.metrics.application import application, clients, deliveries, has_both_ways, measurement_began_ns
from mqttlab.metrics.attribution import (
    CAPTURED_WORDS,
    attribution,
    attribution_by_band,
    attribution_by_qos,
    attribution_coverage,
    attribution_gap,
    attribution_parts,
    captured_parts,
    evidence,
    has_deliveries,
    part_titles,
    silent_groups,
)
from mqttlab.metrics.bursts import burst_times, bursts
from mqttlab.metrics.catalogue import (
    ADJUSTED,
    ALL,
    APPLICATION,
    ATTRIBUTION,
    BURSTS,
    CHANGES,
    DEVICE_MONTH,
    DEVICE_RATE,
    DEVICES,
    EFFICIENCY,
    ENERGY,
    ENGINE,
    FAMILIES,
    LINK,
    MQTT,
    MQTT_SN,
    NETWORK,
    OVERHEAD,
    PARTS,
    PROCESSOR,
    SETUP,
    TRAFFIC,
    called,
    called_beside_a_value,
    counted,
    family,
)
from mqttlab.metrics.changes import changes
from mqttlab.metrics.connecting import setup
from mqttlab.metrics.connection import DIRECTIONS, connection_flight, connection_segments
from mqttlab.metrics.declaration import WINDOWS, Family, Metric, Shown
from mqttlab.metrics.device_bytes import by_device, device_bytes
from mqttlab.metrics.devices import COLUMNS as COLUMNS_OF_CLIENTS
from mqttlab.metrics.devices import messages_by_device, worst_first
from mqttlab.metrics.disconnections import disconnections
from mqttlab.metrics.efficiency import efficiency
from mqttlab.metrics.energy import energy
from mqttlab.metrics.flow import FLOW, publisher
from mqttlab.metrics.headline import Acknowledged, Bytes, Flow, Headline, foreign, headline
from mqttlab.metrics.link import links
from mqttlab.metrics.members import members
from mqttlab.metrics.mqtt import (
    connections_without_connect,
    mqtt_connections,
    other_traffic,
    packet_types,
    topics,
)
from mqttlab.metrics.mqtt_sn import mqtt_sn
from mqttlab.metrics.network import connections, network, round_trip_counts, round_trips, round_trips_thinned
from mqttlab.metrics.overhead import overhead
from mqttlab.metrics.processor import processor
from mqttlab.metrics.segments import publish_per_segment, segments_per_publish
from mqttlab.metrics.sent_again import sent_again
from mqttlab.metrics.summary import is_of_stages, summary
from mqttlab.metrics.throughput import slices, throughput
from mqttlab.metrics.traces import traced_rates
from mqttlab.metrics.window import Stage, measurement, stages

__all__ = [
    "ADJUSTED",
    "ALL",
    "APPLICATION",
    "ATTRIBUTION",
    "BURSTS",
    "CAPTURED_WORDS",
    "CHANGES",
    "COLUMNS_OF_CLIENTS",
    "DEVICES",
    "DEVICE_MONTH",
    "DEVICE_RATE",
    "DIRECTIONS",
    "EFFICIENCY",
    "ENERGY",
    "ENGINE",
    "FAMILIES",
    "FLOW",
    "LINK",
    "MQTT",
    "MQTT_SN",
    "NETWORK",
    "OVERHEAD",
    "PARTS",
    "PROCESSOR",
    "SETUP",
    "TRAFFIC",
    "WINDOWS",
    "Acknowledged",
    "Bytes",
    "Family",
    "Flow",
    "Headline",
    "Metric",
    "Shown",
    "Stage",
    "answers",
    "application",
    "attribution",
    "attribution_by_band",
    "attribution_by_qos",
    "attribution_coverage",
    "attribution_gap",
    "attribution_parts",
    "burst_times",
    "bursts",
    "by_device",
    "called",
    "called_beside_a_value",
    "captured_parts",
    "changes",
    "clients",
    "connection_flight",
    "connection_segments",
    "connections",
    "connections_without_connect",
    "counted",
    "deliveries",
    "device_bytes",
    "disconnections",
    "efficiency",
    "energy",
    "evidence",
    "family",
    "foreign",
    "has_both_ways",
    "has_deliveries",
    "headline",
    "is_of_stages",
    "links",
    "measurement",
    "measurement_began_ns",
    "members",
    "messages_by_device",
    "mqtt_connections",
    "mqtt_sn",
    "network",
    "other_traffic",
    "overhead",
    "packet_types",
    "part_titles",
    "processor",
    "publish_per_segment",
    "publisher",
    "round_trip_counts",
    "round_trips",
    "round_trips_thinned",
    "segments_per_publish",
    "sent_again",
    "setup",
    "silent_groups",
    "slices",
    "stages",
    "summary",
    "throughput",
    "topics",
    "traced_rates",
    "worst_first",
]
