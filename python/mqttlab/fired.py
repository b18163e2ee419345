"""Events by hand, from the words in which they are given to the engine that performs them: of the command
``mqttlab event`` and of the form on the dashboard's page Live."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqttlab.runs.by_hand import HandDesk
from mqttlab.scenario.by_hand import fields_of, planned_by_hand, possible_by_hand
from mqttlab.scenario.event_words import seconds
from mqttlab.scenario.possible import Thing


def fire(run: Path, words: Sequence[str]) -> list[str]:
    """Fire an event in a run, and return what happens, a line each: ``now: wan down``, ``in 20 s: wan up``.

    Raises:
        HandError: the run takes no events now, or refuses this one.
        ScenarioError: the event is wrong.
    """
    with HandDesk.of(run) as desk:
        fields = fields_of(words)
        events = planned_by_hand(desk.scenario, desk.plan, fields, desk.earlier, desk.since_publishing_ns)
        desk.fire(events, fields)
    # Directions that differ are several events of one name.
    return [f"{f'in {seconds(after_ns)}' if after_ns else 'now'}: {name}"
            for after_ns, name in dict.fromkeys((after, event["name"]) for after, event in events)]


def possible(run: Path) -> list[Thing]:
    """What may be fired in a run that goes on.

    Raises:
        HandError: it takes no events.
        ScenarioError: its scenario cannot be read again.
    """
    with HandDesk.of(run) as desk:
        return possible_by_hand(desk.scenario, desk.plan)
