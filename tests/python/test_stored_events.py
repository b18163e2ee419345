"""Events of stored plans that have names alone: their ends are read from the names where these are clear."""

from __future__ import annotations

from typing import Any

import pytest

from mqttlab.plan.events import changes

SPEC = {"links": ["a/up"], "change": {"kind": "spec", "spec": {}}}
DOWN = {"links": ["a/up"], "change": {"kind": "down", "queue": "drop"}}
UP = {"links": ["a/up"], "change": {"kind": "up"}}
KILL = {"server": "broker", "change": {"kind": "kill", "persistence": True}}
START = {"server": "broker", "change": {"kind": "start", "persistence": True}}
MOVED = {"medium": "radio", "change": {"kind": "station_moved", "station": 1, "position": {"x_mm": 0, "y_mm": 0}}}
QUIET = {"clients": [0], "change": {"kind": "publish", "publications": [
    {"publication": 0, "content": 0, "rate": {"interval_ns": None}}]}}
BACK = {"clients": [0], "change": {"kind": "publish", "publications": [
    {"publication": 0, "content": 0, "rate": None}]}}


def event(at: int, name: str, what: dict[str, Any]) -> Any:
    return {"at_ns": at, "name": name, **what}


@pytest.mark.parametrize(("events", "expected"), [
    ([event(1, "a rate", SPEC), event(3, "a as before", SPEC), event(3, "a as before", SPEC)], [("a rate", 1, 3)]),
    ([event(1, "rain", SPEC), event(3, "end of rain", SPEC)], [("rain", 1, 3)]),
    ([event(1, "a down", DOWN), event(3, "a up", UP)], [("a down", 1, 3)]),
    ([event(1, "crash", KILL), event(3, "broker starts", START)], [("crash", 1, 3)]),
    ([event(1, "x moves to 1, 0 m", MOVED), event(2, "x back in its place", MOVED)], [("x moves to 1, 0 m", 1, 2)]),
    ([event(1, "x stop publishing", QUIET), event(2, "x publish again", BACK)], [("x stop publishing", 1, 2)]),
    # Which of two ends first is not in such a plan.
    ([event(1, "a rate", SPEC), event(2, "a delay", SPEC), event(3, "a as before", SPEC),
      event(4, "a as before", SPEC)], [("a rate", 1, None), ("a delay", 2, None)]),
    ([event(1, "a rate", SPEC), event(2, "a as before", SPEC), event(3, "a rate", SPEC),
      event(4, "a as before", SPEC)], [("a rate", 1, 2), ("a rate", 3, 4)]),
])
def test_the_ends_of_changes_of_an_earlier_plan_are_known_where_one_change_fits(
    events: list[Any], expected: list[tuple[str, int, int | None]],
) -> None:
    found = changes(events, [one["at_ns"] for one in events])
    assert [(one.name, one.at_ns, one.until_ns) for one in found] == expected


def test_events_that_were_fired_by_hand_in_an_earlier_run_end_as_the_plans_do() -> None:
    found = changes([event(1, "crash", KILL)], [1], [(4, event(4, "broker starts", START))])
    assert [(one.name, one.at_ns, one.until_ns) for one in found] == [("crash", 1, 4)]
