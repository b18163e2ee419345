"""How much a run would offer and record, before it starts.

A closed loop (``back-to-back``) has no rate of its own, and counts as none; what relays add is not counted. While a
recording is finished it has spools and tables side by side; both are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqttlab.scenario.audiences import Audiences, Heard
from mqttlab.scenario.event_load import Offered, offered
from mqttlab.scenario.model import Group, Scenario
from mqttlab.scenario.phases import Phases
from mqttlab.scenario.publish import Publish

RATE_SEEN = 100_000
"""Messages a second that Mosquitto and 32 clients have carried on two cores (docs/reference/scenario.md)."""
# What 6,000 messages of 200 B at QoS 1 took over an emulated network, in spools and tables: 42 + 16 B for a message and
# its acknowledgement, 28 + 16 B for a delivery, 218 + 55 B for a frame.
MESSAGE_BYTES = 60
DELIVERY_BYTES = 45
FRAME_BYTES = 275
# Of a run that keeps sums and a sample: the spools between two folds, what is carried, and the sample's table.
SUMMARY_BYTES = 100_000_000
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
    emulated = scenario.network == "emulated" and scenario.recording.packets
    audiences = Audiences(scenario)
    changed = offered(scenario) if any(event.publishes for event in scenario.events) else {}
    offered_per_s = messages = deliveries = frames = kept = 0.0
    own, received_by = [0.0], dict[tuple[int, int], float]()
    publishing: list[tuple[float, tuple[int, int]]] = []
    for group in scenario.groups:
        own_frames = 0.0
        publishes = [changed.get((group.name, number)) or _unchanged(scenario, group, publish)
                     for number, (_, publish) in enumerate(group.publications)]
        offered_per_s += sum(one.most_per_s for one in publishes)
        for publish, sent in (messages for one in publishes for messages in one.messages):
            # A segment and an acknowledgement for each, which carries a PUBACK along; QoS 2 takes a second exchange.
            exchanges = 2 if publish.qos == 2 else 1
            each = 2 * exchanges * -(-payload_bytes(publish) // (scenario.mtu - HEADERS_BYTES)) if emulated else 0
            received = 0.0
            for audience, how in audiences.receiving(group, publish):
                heard = Heard(publish, group, how)
                for count, groups in audience.counts.items():
                    received += sent * groups * heard.clients(count)
                    place = id(audience), count
                    received_by[place] = received_by.get(place, 0.0) + sent * each * heard.clients(count) / count
            received -= sent if audiences.leaves_out(group, publish) else 0.0
            messages += sent
            deliveries += received
            if scenario.recording.payloads:
                # In the spool and beside the table.
                kept += 2 * received * (payload_bytes(publish) + MESSAGE_BYTES)
            frames += (sent + received) * each
            own_frames += sent * each / group.count
        own.append(own_frames)
        audience_of = audiences.of(group)
        if own_frames and audience_of is not None:
            publishing.append((own_frames, (id(audience_of), group.count)))
    busiest = max([*own, *received_by.values(), *(sends + received_by.get(place, 0.0) for sends, place in publishing)])
    rows = messages * MESSAGE_BYTES + deliveries * DELIVERY_BYTES
    if scenario.recording.detail == "summary":
        rows = min(rows, SUMMARY_BYTES)
    total = rows + frames * FRAME_BYTES + kept
    return Load(offered_per_s=offered_per_s, messages=messages, deliveries=deliveries, frames=frames,
                frames_busiest=busiest, recording_bytes=total)


def _unchanged(scenario: Scenario, group: Group, publish: Publish) -> Offered:
    limit = float("inf") if publish.messages is None else group.count * float(publish.messages)
    sent = min(group.count * messages_of(publish, scenario.phases, group.count), limit)
    return Offered([(publish, sent)], group.count * per_second(publish, group.count))


def per_second(publish: Publish, clients: int | None = None) -> float:
    """Messages a second that a publication of one of so many clients has; where that changes, the most. Of a table that
    is replayed, the mean."""
    if publish.replay is not None:
        table = publish.replay.table
        seconds = max(1e-3, table.period_ns * publish.replay.second_us / 1e15)
        return table.rows / seconds / (clients or len(table.clients) if "client" in table.columns else 1)
    return max([publish.first_rate, *(max(begins, ends) for _, begins, ends in publish.rates)])


def messages_of(publish: Publish, phases: Phases, clients: int) -> float:
    """Messages that a publication of one of so many clients has in a run."""
    if publish.replay is not None:
        table = publish.replay.table
        most = float("inf") if publish.replay.loop else table.rows / (clients if "client" in table.columns else 1)
        return min(most, per_second(publish, clients) * phases.duration / 1e9)
    count, left, last = publish.first_rate * phases.warm_up / 1e9, phases.duration / 1e9, publish.first_rate
    for seconds, begins, ends in publish.rates:
        lasts = min(seconds, left)
        last = begins + (ends - begins) * lasts / seconds
        count, left = count + (begins + last) / 2 * lasts, left - lasts
    return count + last * left


def payload_bytes(publish: Publish) -> int:
    """The length of a payload; of GPS positions, images and texts, a usual one."""
    payload = publish.payload
    said = None if publish.replay is None else publish.replay.table
    if said is not None and said.sizes is not None:
        return max(1, said.sizes[2] // (said.rows - said.unsized))
    if payload.usual_bytes is not None:
        return max(1, payload.usual_bytes)
    if payload.path is not None:
        return max(1, payload.path.stat().st_size)
    return GPS_BYTES if payload.kind == "gps" else IMAGE_BYTES
