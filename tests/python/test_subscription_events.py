"""Clients that subscribe and unsubscribe by events of a scenario: live and simulated."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

LIVE_AND_SIMULATED = [pytest.param("live", marks=pytest.mark.live), "sim"]
PUBLISHER, STEADY, LEAVING, COMING, AWAY, OTHER = range(6)
SCENARIO: dict[str, Any] = {
    "name": "subscriptions", "phases": {"warm_up": "0 s", "duration": "6 s", "cool_down": "4 s"},
    "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
    "groups": [
        {"name": "p", "host": "field", "publish": [
            {"topic": "a/0", "qos": 1, "payload": "100 B", "rate": "10 /s", "start_phase": "synchronised"},
            {"topic": "b", "payload": "60 B", "rate": "10 /s", "retain": True, "start_phase": "synchronised"}]},
        {"name": "s", "host": "field", "count": 4, "subscribe": [{"filter": "a/+", "qos": 1}]},
        {"name": "o", "host": "field", "subscribe": [{"filter": "a/+", "qos": 0}, {"filter": "a/#", "qos": 0}],
         "mqtt": {"version": "3.1.1"}}],
    "events": [
        {"at": "1050 ms", "for": "2 s", "group": "s", "client": LEAVING - 1, "do": "unsubscribe", "filter": "a/+"},
        {"at": "2050 ms", "for": "2 s", "group": "s", "client": COMING - 1, "do": "subscribe", "filter": "b", "qos": 1},
        # Away when it should unsubscribe: it does when it is back, with a new session.
        {"at": "3050 ms", "for": "1 s", "group": "s", "client": AWAY - 1, "do": "disconnect"},
        {"at": "3550 ms", "group": "s", "client": AWAY - 1, "do": "unsubscribe", "filter": "a/+"},
        # It has another filter that matches.
        {"at": "2050 ms", "group": "o", "do": "unsubscribe", "filter": "a/+"}]}


@pytest.fixture(scope="module", params=LIVE_AND_SIMULATED)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    directory = tmp_path_factory.mktemp("subscriptions") / "run"
    plan = compile_plan(parse_values(SCENARIO | {"backend": request.param}))
    outcome = perform(Job(plan, directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def _fates(recording: Recording, client: int, topic: str) -> dict[str, int]:
    rows = recording.messages.filter(subscriber=client).filter(pl.col("topic").cast(pl.String) == topic)
    return dict(rows.group_by(pl.col("fate").cast(pl.String)).agg(pl.len()).rows())


def test_messages_are_expected_by_who_is_subscribed(recording: Recording) -> None:
    for client in (STEADY, OTHER):
        assert _fates(recording, client, "a/0") == {"delivered": 60}, client
    # 20 messages are due while it has unsubscribed; one or the other may be under way when it changes.
    leaving = _fates(recording, LEAVING, "a/0")
    assert set(leaving) <= {"delivered", "not_decided"}
    assert 38 <= leaving["delivered"] <= 42 and leaving.get("not_decided", 0) <= 4, leaving
    coming = _fates(recording, COMING, "b")
    assert set(coming) <= {"delivered", "not_decided", "retained"}
    assert 18 <= coming["delivered"] <= 22 and coming["retained"] == 1, coming
    assert _fates(recording, STEADY, "b") == {}


def test_nothing_comes_between_unsuback_and_subscribe(recording: Recording) -> None:
    events = recording.events.filter(client=LEAVING, detail="a/+")
    assert events["kind"].cast(pl.String).to_list() == ["unsubscribe", "unsuback", "subscribe", "suback"]
    _, gone, back, _ = events["at_ns"].cast(pl.Int64).to_list()
    came = recording.messages.filter(subscriber=LEAVING).filter(
        pl.col("received_ns").cast(pl.Int64).is_between(gone, back))
    assert came.is_empty() and back - gone > 1e9
    took = events["took_ns"].drop_nulls()
    assert len(took) == 2 and took.min() >= 10e6, "a round trip of the network"


def test_who_is_away_unsubscribes_when_it_is_back(recording: Recording) -> None:
    events = recording.events.filter(client=AWAY).filter(
        pl.col("kind").cast(pl.String).is_in(["connack", "subscribe", "suback", "unsubscribe", "unsuback"]))
    assert events["kind"].cast(pl.String).to_list() == [
        "connack", "subscribe", "suback", "connack", "subscribe", "suback", "unsubscribe", "unsuback"]
    last = events["at_ns"].cast(pl.Int64)[-1]
    late = recording.messages.filter(subscriber=AWAY).filter(pl.col("received_ns").cast(pl.Int64) > last)
    assert late.is_empty()
    expected = recording.messages.filter(subscriber=AWAY).filter(pl.col("sent_ns").cast(pl.Int64) > last)
    assert expected.is_empty(), "nobody expects anything of it"


def test_metrics_leave_out_what_is_not_decided_and_tell_how_long_it_takes(recording: Recording) -> None:
    row = metrics.setup(recording).row(0, named=True)
    assert row["unsubscriptions"] == 4 and row["unsubscribe_ms_p50"] >= 10
    table = metrics.application(recording, by=()).row(0, named=True)
    counted = recording.messages.group_by(pl.col("fate").cast(pl.String)).agg(pl.len())
    fates = dict(counted.rows())
    assert table["messages_not_decided"] == fates.get("not_decided", 0)
    assert table["deliveries_expected"] == table["messages_delivered"] + fates.get("lost", 0) + fates.get("unknown", 0)
    packets = recording.control_packets.group_by(pl.col("kind").cast(pl.String)).agg(pl.len()).filter(
        pl.col("kind").is_in(["UNSUBSCRIBE", "UNSUBACK"]))
    assert dict(packets.rows()) == {"UNSUBSCRIBE": 4, "UNSUBACK": 4}
