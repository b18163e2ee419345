"""What MQTT itself costs, packet by packet: the bytes of each PUBLISH that are not the application's, and those of the
packets that answer it (MQTT 3.1.1 §4.3).
"""

from __future__ import annotations

from collections import Counter, defaultdict

import polars as pl

from mqttlab.recording import Recording

PARTS = {
    "overhead_fixed_header_bytes": "fixed_header_bytes", "overhead_topic_bytes": "topic_bytes",
    "overhead_packet_id_bytes": "packet_id_bytes", "overhead_properties_bytes": "property_bytes",
}


def overhead(recording: Recording) -> pl.DataFrame:
    """One row per direction and QoS of the PUBLISH packets."""
    sums: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    answers: Counter[tuple[str, int]] = Counter()
    for packet in recording.control_packets.iter_rows(named=True):
        kind, way = packet["kind"], packet["direction"]
        other = {"to_broker": "to_client", "to_client": "to_broker"}.get(way)
        if kind == "PUBLISH":
            of = sums[way, packet["qos"]]
            of["packets"] += 1
            for column in ("payload_bytes", *PARTS.values()):
                of[column] += packet[column] or 0
            continue
        # The receiver answers with PUBACK at QoS 1, with PUBREC and PUBCOMP at QoS 2; the sender's PUBREL is between.
        answered = {"PUBACK": (other, 1), "PUBREC": (other, 2), "PUBREL": (way, 2), "PUBCOMP": (other, 2)}.get(kind)
        if answered is not None:
            answers[answered] += packet["stream_end"] - packet["stream_start"]  # type: ignore[index]
    rows = []
    for (way, qos), of in sorted(sums.items()):
        packets = of["packets"]
        parts = {name: of[column] / packets for name, column in PARTS.items()}
        parts["overhead_acknowledgements_bytes"] = answers[way, qos] / packets
        added, payload = sum(parts.values()), of["payload_bytes"] / packets
        rows.append({
            "direction": way, "qos": qos, "publish_packets": packets, "payload_bytes_mean": payload, **parts,
            "overhead_bytes": added, "overhead_percent": 100 * added / (added + payload)})
    return pl.DataFrame(rows)
