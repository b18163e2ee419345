"""Clients that disconnect, vanish, come back and do not read by events of a scenario: live and simulated."""

from __future__ import annotations

import polars as pl
import pytest

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

LIVE_AND_SIMULATED = [pytest.param("live", marks=pytest.mark.live), "sim"]
STEADY, VANISHED, DISCONNECTED, BUSY = 1, 2, 3, 4


@pytest.fixture(scope="module", params=LIVE_AND_SIMULATED)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A publisher, and four subscribers whose sessions stay; something happens to three of them."""
    backend, directory = request.param, tmp_path_factory.mktemp("absence") / "run"
    mqtt = {"clean_session": False, "keep_alive": "60 s"}
    plan = compile_plan(parse_values({
        "name": "absence", "backend": backend, "phases": {"warm_up": "0 s", "duration": "4 s", "cool_down": "5 s"},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": [
            {"name": "p", "host": "field", "mqtt": mqtt, "publish": {"topic": "t", "qos": 1, "payload": "100 B",
                                                                     "rate": "20 /s"}},
            {"name": "s", "host": "field", "count": 4, "mqtt": mqtt, "subscribe": [{"filter": "t", "qos": 1}]}],
        "events": [{"at": "1 s", "for": "1.5 s", "group": "s", "client": client - 1, "do": do} for client, do in (
            (VANISHED, "vanish"), (DISCONNECTED, "disconnect"), (BUSY, "stop-reading"))]}))
    outcome = perform(Job(plan, directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def test_who_was_away_or_did_not_read_gets_everything_later(recording: Recording) -> None:
    messages = recording.messages.filter(pl.col("fate") != "duplicate")
    assert messages.group_by("subscriber", "fate").agg(pl.len()).sort("subscriber").rows() == [
        (client, "delivered", 80) for client in (STEADY, VANISHED, DISCONNECTED, BUSY)]
    changes = recording.events.filter(kind="change").sort("at_ns")["at_ns"].to_list()
    away_from, away_until = changes[0], changes[-1]
    assert len(changes) == 6 and away_until - away_from >= 1.4e9
    # Nothing comes to them meanwhile; half a round trip and a busy machine before and after.
    late = messages.filter(pl.col("received_ns").is_between(away_from + 3e8, away_until - 1e8))
    assert set(late["subscriber"]) == {STEADY}
    events = recording.events
    assert events.filter(kind="disconnect").is_empty(), "it was to be"
    again = events.filter(pl.col("kind") == "connack", detail="session present")["client"].sort().to_list()
    assert again == [VANISHED, DISCONNECTED]
    assert events.filter(kind="note", detail="vanished")["client"].to_list() == [VANISHED]


def test_who_vanishes_sends_nothing_more_and_who_disconnects_says_so(recording: Recording) -> None:
    changes = recording.events.filter(kind="change").sort("at_ns")["at_ns"].to_list()
    up = recording.packets.filter(pl.col("destination_port") == 1883)
    before = up.filter(pl.col("entered_ns") < changes[0])
    connections = recording.control_packets.filter(kind="CONNECT").sort("first_sent_ns")
    vanished = connections.filter(client=VANISHED)["connection"].to_list()[0]
    port = before.filter(connection=vanished)["source_port"].to_list()[0]
    sent = up.filter(source_port=port).filter(pl.col("entered_ns") > changes[0] + 1e8)
    assert sent.is_empty(), "neither FIN nor RST, to the run's end"
    down = recording.packets.filter(destination_port=port).filter(pl.col("entered_ns") > changes[0] + 1e8)
    assert not down.is_empty(), "the broker does not know, and sends again"
    goodbyes = recording.control_packets.filter(kind="DISCONNECT").sort("first_sent_ns")
    first = goodbyes.row(0, named=True)
    assert first["client"] == DISCONNECTED and first["first_sent_ns"] < changes[-1]
