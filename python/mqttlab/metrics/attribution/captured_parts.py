"""What the parts of a latency are called in an import: a capture tells less than a run of our own.

A run knows when a message was due and when its client sent it. Of a capture that was taken away from an end, what that
end held is not told from the way. So some parts stand for more, and have other names.
"""

from __future__ import annotations

from mqttlab.metrics.catalogue import ATTRIBUTION
from mqttlab.recording import Recording

BEFORE_SENDING, BEFORE_CAPTURE = "before_sending", "before_capture"
BEYOND_CAPTURE, AFTER_CAPTURE = "beyond_capture", "after_capture"
CAPTURED_WORDS = {
    BEFORE_SENDING: "before its first packet, in the client or in TCP",
    BEFORE_CAPTURE: "before the place of capture, in the client, in TCP or on the way",
    AFTER_CAPTURE: "after its first capture, on the way to the subscriber",
    BEYOND_CAPTURE: "beyond the place of capture, in the broker or on the way",
}
"""Where this time passed, as every surface says it."""
CAPTURED_TITLES = {BEFORE_SENDING: "before sending", BEFORE_CAPTURE: "before capture", BEYOND_CAPTURE: "beyond capture",
                   AFTER_CAPTURE: "after capture"}


def captured_parts(recording: Recording) -> dict[str, str]:
    """The parts that stand for more in an import, and for what, a key of :data:`CAPTURED_WORDS`; none in a run."""
    if "sources" not in recording.plan:
        return {}
    point = ((recording.run.get("details") or {}).get("import") or {}).get("captured_at") or {}
    before = BEFORE_SENDING if point.get("at_clients") else BEFORE_CAPTURE
    # A copy that was captured later, or nearer to the subscriber, may be the one that arrived.
    meant = {"schedule_ns": before, "delivery_ns": AFTER_CAPTURE}
    return meant if point.get("at_broker") else meant | {"undivided_ns": BEYOND_CAPTURE}


def part_titles(recording: Recording | None = None) -> dict[str, str]:
    """The short name of each part in a recording, or in runs of our own."""
    meant = {} if recording is None else captured_parts(recording)
    return {part.name: CAPTURED_TITLES.get(meant.get(part.name, ""), part.title) for part in ATTRIBUTION}
