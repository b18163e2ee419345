"""Clients that publish more, other or no messages by events of a scenario: live and simulated."""

from __future__ import annotations

import copy
from typing import Any, cast

import polars as pl
import pytest

from mqttlab.metrics.bursts import _sizes
from mqttlab.plan import StoredPlan
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.load import parse_values

LIVE_AND_SIMULATED = [pytest.param("live", marks=pytest.mark.live), "sim"]
SCENARIO: dict[str, Any] = {
    "name": "publishing", "phases": {"warm_up": "1 s", "duration": "5 s", "cool_down": "4 s"},
    "networks": [{"between": ["field", "broker"], "up": {"delay": "2 ms"}, "down": {"delay": "2 ms"}}],
    "groups": [
        {"name": "p", "host": "field", "count": 2, "publish": [
            {"topic": "a/{client}", "qos": 1, "payload": "100 B", "rate": "20 /s", "start_phase": "synchronised"},
            {"topic": "b/{client}", "payload": "30 B", "rate": "10 /s", "start_phase": "synchronised"}]},
        {"name": "s", "host": "field", "subscribe": [{"filter": "#", "qos": 2}]}],
    "events": [
        {"at": "1 s", "for": "2 s", "group": "p", "publication": "a/{client}", "publish": {
            "rate": "50 /s", "payload": "400 B"}},
        {"at": "2 s", "for": "1500 ms", "group": "p", "client": 1, "publication": 0, "publish": {"qos": 2}},
        {"at": "2 s", "for": "1 s", "group": "p", "client": 0, "do": "stop-publishing"},
        {"every": "2 s", "group": "p", "share": "50 %", "publication": 1, "do": "burst", "messages": 7},
        {"at": "4500 ms", "group": "p", "client": 0, "publish": {"payload": "8 B", "interval": "100 ms"}}]}
A0, A1, B0, B1 = (0, "a/0"), (1, "a/1"), (0, "b/0"), (1, "b/1")
# By publisher and topic, in the order of time: QoS, payload and count. Publishing begins 1 s before the measurement.
EXPECTED = {
    # 20 /s, 50 /s, nothing, as before, 10 /s; where rates change, a part of an interval goes on.
    A0: [(1, 100, 40), (1, 400, 50), (1, 100, 30), (1, 8, 5)],
    A1: [(1, 100, 40), (1, 400, 50), (2, 400, 50), (2, 100, 10), (1, 100, 30)],
    B0: [(0, 30, 10 + 10 + 10 + 15), (0, 8, 5)],
    # Half of two clients is the second one: it has the bursts.
    B1: [(0, 30, 60 + 14)],
}


@pytest.fixture(scope="module", params=LIVE_AND_SIMULATED)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    directory = tmp_path_factory.mktemp("publishing") / "run"
    scenario = copy.deepcopy(SCENARIO) | {"backend": request.param}
    if request.param == "sim":
        # What an event makes of a publication keeps its properties.
        scenario["mqtt"] = {"version": "5"}
        for publish in scenario["groups"][0]["publish"]:
            publish["user_properties"] = [["unit", "kelvin"]]
    plan = compile_plan(parse_values(scenario))
    outcome = perform(Job(plan, directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def test_messages_are_what_their_publication_is_when_they_are_due(recording: Recording) -> None:
    rows = recording.messages.filter(pl.col("fate") != "duplicate").sort(
        "publisher", "topic", "intended_ns", "sequence")
    found: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
    for publisher, topic, qos, size in rows.select(
            "publisher", pl.col("topic").cast(pl.String), "qos", "payload_bytes").iter_rows():
        entries = found.setdefault((publisher, topic), [])
        if entries and entries[-1][:2] == (qos, size):
            entries[-1] = qos, size, entries[-1][2] + 1
        else:
            entries.append((qos, size, 1))
    for place, expected in EXPECTED.items():
        assert [one[:2] for one in found[place]] == [one[:2] for one in expected], place
        # A message at the very instant of a change may be due before or after it by a nanosecond.
        assert all(abs(one[2] - other[2]) <= 1 for one, other in zip(found[place], expected, strict=True)), found
    assert set(rows["fate"].cast(pl.String)) == {"delivered"}
    silent = rows.filter(publisher=0).filter(
        pl.col("intended_ns").cast(pl.Int64).is_between(*_between(recording, 2.01, 2.99)))
    assert silent.is_empty()


def _between(recording: Recording, since_s: float, until_s: float) -> tuple[int, int]:
    """Times of the measurement since the run's start."""
    begin = recording.events.filter(kind="phase", detail="measurement")["at_ns"].cast(pl.Int64)[0]
    return begin + round(since_s * 1e9), begin + round(until_s * 1e9)


def test_events_are_told_with_their_ends(recording: Recording) -> None:
    changes = [(change.name, change.until_ns is not None) for change in recording.changes]
    assert changes == [
        ("p (a/{client}) publish at 50 /s, 400 B", True),
        ("p 1 (publication 0) publishes at QoS 2", True), ("p 0 stops publishing", True),
        ("50 % of p (publication 1) publish 7 messages at once", False),
        ("50 % of p (publication 1) publish 7 messages at once", False),
        ("p 0 publishes at 10 /s, 8 B", False)]


def test_messages_are_estimated_as_they_are() -> None:
    load = estimate(parse_values(copy.deepcopy(SCENARIO) | {"backend": "sim"}))
    expected = sum(count for entries in EXPECTED.values() for *_, count in entries)
    assert load.messages == pytest.approx(expected, abs=4)
    assert load.deliveries == load.messages


def test_bursts_and_pauses_join_other_schedules() -> None:
    """Poisson arrivals, a ramp and back-to-back messages stop, and a limit of messages holds for bursts."""
    groups = [{"name": name, "publish": {"topic": name, "payload": "20 B", "qos": 1} | publish, "host": "h"}
              for name, publish in {
        "poisson": {"rate": "200 /s", "arrival": "poisson"},
        "ramp": {"rate": "10 /s", "stages": [{"for": "4 s", "to": "100 /s"}]},
        "closed": {"arrival": "back-to-back"},
        "limit": {"rate": "1 /s", "messages": 12}}.items()]
    values = {
        "name": "others", "backend": "sim", "phases": {"warm_up": "0 s", "duration": "4 s"}, "network": "loopback",
        "groups": groups, "events": [
            *({"at": "1 s", "for": "1 s", "group": name, "do": "stop-publishing"}
              for name in ("poisson", "ramp", "closed")),
            {"at": "3 s", "group": "closed", "publish": {"payload": "40 B"}},
            {"at": "1 s", "group": "limit", "do": "burst", "messages": 30}]}
    scenario = parse_values(values)
    plan = compile_plan(scenario)
    assert [len(group["changed_publications"]) for group in plan["groups"]] == [0, 0, 1, 0]
    pauses = [event["change"] for event in plan["events"] if event["name"].endswith("stop publishing")]
    assert pauses[0] == {"kind": "publish", "publications": [
        {"publication": 0, "content": 0, "rate": {"interval_ns": None}}]}
    # The ramp without its second second: 3/4 of 55 a second in the mean would be 165; it lacks 43.75.
    load = estimate(scenario)
    assert load.messages == pytest.approx(600 + (220 - 43.75) + 12, abs=1)


def test_bursts_more_leave_the_bursts_of_a_publication_untold() -> None:
    """Nothing tells which messages of such a client are of which burst."""
    publish = {"topic": "{group}", "payload": "20 B", "arrival": "burst", "burst": {"size": 4, "every": "500 ms"}}
    plan = compile_plan(parse_values({
        "name": "bursts", "backend": "sim", "phases": {"warm_up": "0 s", "duration": "2 s"}, "network": "loopback",
        "groups": [{"name": name, "host": "h", "publish": publish} for name in ("plain", "more")] + [
            {"name": "s", "host": "h", "subscribe": ["#"]}],
        "events": [{"at": "300 ms", "group": "more", "do": "burst", "messages": 3}]}))
    assert _sizes(cast("StoredPlan", plan)) == {("plain", None): 4}
