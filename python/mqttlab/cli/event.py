"""``mqttlab event``: an event fired by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqttlab.foreign import visible
from mqttlab.runs.by_hand import HandDesk
from mqttlab.scenario.by_hand import fields_of, planned_by_hand
from mqttlab.scenario.event_words import seconds
from mqttlab.terminal import say


def fire(run: Path, words: Sequence[str]) -> None:
    """Fire an event in a run, and say what happens."""
    with HandDesk.of(run) as desk:
        fields = fields_of(words)
        events = planned_by_hand(desk.scenario, desk.plan, fields, desk.earlier, desk.since_publishing_ns)
        desk.fire(events, fields)
    # Directions that differ are several events of one name.
    for (after_ns, name) in dict.fromkeys((after, event["name"]) for after, event in events):
        say(f"{f'in {seconds(after_ns)}' if after_ns else 'now'}: {visible(name)}")
