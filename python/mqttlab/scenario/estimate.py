"""How much a run would offer and record, before it starts.

A closed loop (``back-to-back``) has no rate of its own, and counts as none; what relays add is not counted. While a
recording is finished it has spools and tables side by side; both are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqttlab.scenario.model import Group, Publish, Scenario
from mqttlab.scenario.topics import may_match

RATE_SEEN = 100_000
"""Messages a second that Mosquitto and 32 clients have carried on a machine of two cores (docs/scenario.md)."""
# What 6,000 messages of 200 B at QoS 1 took over an emulated network, in spools and tables: 42 + 16 B for a message and
# its acknowledgement, 28 + 16 B for a delivery, 218 + 55 B for a frame.
MESSAGE_BYTES = 60
DELIVERY_BYTES = 45
FRAME_BYTES = 275
HEADERS_BYTES = 60
# As the engine makes them (crates/plan, payload.rs).
GPS_BYTES, IMAGE_BYTES = 400, 1300


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a run offers, and what its recording takes."""

    offered_per_s: float
    messages: float
    deliveries: float
    frames: float
    frames_busiest: float
    """Of one client, on its connection: of the one that has most."""
    recording_bytes: float

    def words(self) -> str:
        """What the recording's size comes from."""
        return f"{self.messages:,.0f} messages, {self.deliveries:,.0f} deliveries, {self.frames:,.0f} frames on links"


def estimate(scenario: Scenario) -> Load:
    """The load of one repetition."""
    seconds = (scenario.phases.warm_up + scenario.phases.duration) / 1e9
    emulated = scenario.network == "emulated" and scenario.recording.packets
    offered = messages = deliveries = frames = kept = 0.0
    of_client = dict.fromkeys((group.name for group in scenario.groups), 0.0)
    for group in scenario.groups:
        if group.publish is None:
            continue
        rate = group.count * per_second(group.publish)
        limit = float("inf") if group.publish.messages is None else group.count * float(group.publish.messages)
        sent = min(rate * seconds, limit)
        receivers = receivers_of(scenario, group)
        received = sent * sum(receivers.values())
        offered += rate
        messages += sent
        deliveries += received
        if scenario.recording.payloads:
            # In the spool and beside the table.
            kept += 2 * received * (payload_bytes(group.publish) + MESSAGE_BYTES)
        if emulated:
            # A segment and an acknowledgement for each, which carries a PUBACK along; QoS 2 takes a second exchange.
            exchanges = 2 if group.publish.qos == 2 else 1
            each = 2 * exchanges * -(-payload_bytes(group.publish) // (scenario.mtu - HEADERS_BYTES))
            frames += (sent + received) * each
            of_client[group.name] += sent * each / group.count
            for other in scenario.groups:
                of_client[other.name] += sent * each * receivers.get(other.name, 0.0) / other.count
    total = messages * MESSAGE_BYTES + deliveries * DELIVERY_BYTES + frames * FRAME_BYTES + kept
    return Load(offered_per_s=offered, messages=messages, deliveries=deliveries, frames=frames,
                frames_busiest=max(of_client.values(), default=0.0), recording_bytes=total)


def per_second(publish: Publish) -> float:
    """Messages a second of one client."""
    if publish.burst is not None:
        return publish.burst.size / (publish.burst.every / 1e9)
    interval = publish.interval if publish.interval is not None else publish.rate
    return 0.0 if interval is None else 1e9 / interval


def receivers_of(scenario: Scenario, publishers: Group) -> dict[str, float]:
    """How many clients of each group receive a message of this one, which publishes."""
    assert publishers.publish is not None
    topic = publishers.publish.topic.replace("{group}", publishers.name)
    receivers: dict[str, float] = {}
    server = scenario.server_of(publishers).name
    for group in scenario.groups:
        if scenario.server_of(group).name != server:
            continue
        filters = [s.filter.replace("{group}", group.name) for s in group.subscribe]
        matching = [pattern for pattern in filters if may_match(pattern, topic)]
        if any(pattern.startswith("$share/") for pattern in matching):
            receivers[group.name] = 1.0
        elif any("{client}" not in pattern for pattern in matching):
            receivers[group.name] = float(group.count)
        elif matching:
            receivers[group.name] = min(1.0, group.count / publishers.count)
    return receivers


def payload_bytes(publish: Publish) -> int:
    """The length of a payload; of GPS positions and images, a usual one."""
    payload = publish.payload
    if payload.size is not None:
        return max(1, payload.size)
    if payload.path is not None:
        return max(1, payload.path.stat().st_size)
    return GPS_BYTES if payload.kind == "gps" else IMAGE_BYTES
