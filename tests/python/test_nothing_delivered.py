"""What the first screen says where little or nothing arrived: counts of the recording, and no cause beside these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqttlab.metrics import headline
from mqttlab.recording import Recording
from mqttlab.report.answer import lines
from mqttlab.report.headline import told
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse
from recordings import Message, write

# The broker lets one message out in 10 s, as its receive maximum is 1 and a round trip takes that long.
BACKLOG = """
name = "backlog"
backend = "sim"
[phases]
warm_up = "2 s"
duration = "4 s"
cool_down = "2 s"
[broker]
max_inflight = 1
[mqtt]
version = "5"
[[networks]]
between = ["field", "broker"]
up = { delay = "500 ms" }
down = { delay = "500 ms" }
[[groups]]
name = "pub"
host = "field"
publish = { topic = "a", qos = 1, payload = "50 B", rate = "10 /s" }
[[groups]]
name = "app"
host = "broker"
subscribe = [{ filter = "a", qos = 1 }]
"""
STORED = """
name = "stored"
backend = "sim"
[phases]
duration = "10 s"
[broker]
max_queued = 10
[[networks]]
between = ["far", "broker"]
up = { delay = "100 ms" }
down = { delay = "100 ms" }
[[groups]]
name = "bridge"
host = "broker"
publish = { topic = "c/{topic}", topics = 50, qos = 1, retain = true, payload = "90 B", rate = "50 /s", messages = 50 }
[[groups]]
name = "controller"
host = "far"
subscribe = [{ filter = "unused", qos = 1 }]
[[events]]
at = "5 s"
group = "controller"
do = "subscribe"
filter = "c/#"
qos = 1
"""


def recorded(scenario: str, directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse(scenario)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def screen(recording: Recording) -> str:
    return " ".join(" ".join(lines(told(recording))).split())


def test_what_waits_in_its_client_was_not_sent(tmp_path: Path) -> None:
    recording = recorded(BACKLOG, tmp_path / "run")
    [flow] = headline(recording).flows
    assert (flow.sent, flow.left, flow.delivered) == (40, 40 - flow.waiting, 0) and flow.waiting > 30
    said = screen(recording)
    assert said.startswith("Nothing was delivered of the measurement: of 40 expected deliveries none happened")
    assert f"{flow.waiting} messages had not left the clients when the run ended" in said
    assert "of the warm-up arrived" in said
    assert f"{flow.left} sent, {flow.waiting} waiting in the client" in said
    assert "access rules" not in said and "granted" not in said


def test_copies_from_the_store_are_counted_and_those_that_a_queue_dropped_are_missing(tmp_path: Path) -> None:
    recording = recorded(STORED, tmp_path / "run")
    flows = [flow for flow in headline(recording).flows if flow.retained]
    # The window takes 20, the queue 10. None of them is a delivery.
    assert [(flow.retained, flow.expected, flow.delivered) for flow in flows] == [(30, 0, 0)]
    stored = flows[0].stored
    assert stored is not None and (stored.owed, stored.missing) == (50, 20)
    said = screen(recording)
    assert "20 of 50 stored messages did not come to new subscriptions, which breaks the promise of RETAIN" in said
    assert "30 retained copies came" in said and "30 copies came from the broker's store" in said
    assert "access rules" not in said


@pytest.mark.parametrize("change", [
    ('max_queued = 10', 'max_queued = 100'), ('retain = true', 'retain = false'),
    ('retain = true', 'retain = true, expiry = "100 s"'),
])
def test_no_promise_of_the_store_is_broken_where_all_came_or_none_was_made(
    change: tuple[str, str], tmp_path: Path,
) -> None:
    scenario = STORED.replace(*change).replace('[broker]', '[mqtt]\nversion = "5"\n[broker]')
    assert "promise of RETAIN" not in screen(recorded(scenario, tmp_path / "run"))


def event(kind: str, client: int = 1, detail: str | None = None) -> dict[str, Any]:
    return {"at_ns": 1, "kind": kind, "client": client, "took_ns": None, "detail": detail}


@pytest.mark.parametrize(("events", "expected"), [
    ([event("subscribe"), event("suback")],
     "The subscriptions were answered and messages acknowledged. Why these stayed at the broker is not recorded: see "
     "its log and its access rules."),
    ([event("subscribe")], "The broker answered no SUBSCRIBE of 1 client: see its log and its access rules."),
    ([event("subscribe"), event("suback"), event("refused", detail="SUBSCRIBE: code 0x87 (not authorized)")],
     "The broker refused subscriptions of 1 client: see its access rules."),
    ([], "happened (5 still under way)."),
])
def test_what_to_look_at_is_what_the_recording_shows(
    events: list[dict[str, Any]], expected: str, tmp_path: Path,
) -> None:
    messages = [Message(number, None, qos=1, fate="under_way") for number in range(5)]
    directory = write(tmp_path / "run", messages, events=events)
    run = json.loads((directory / "run.json").read_text())
    run["warnings"] = ["Nothing was delivered: of 5 expected deliveries none happened. See whether it granted …"]
    (directory / "run.json").write_text(json.dumps(run))
    sentence = told(Recording.open(directory)).delivered_nothing
    assert sentence.endswith(expected) and "granted" not in sentence
    assert sentence.startswith("Nothing was delivered of the measurement: of 5 expected deliveries none happened")


def test_the_sentence_is_a_note_where_something_else_comes_first(tmp_path: Path) -> None:
    directory = write(tmp_path / "run", [Message(0, None, fate="lost", cause="queue_full")], validity={
        "valid": False, "reasons": ["the senders were late"]})
    run = json.loads((directory / "run.json").read_text())
    run["warnings"] = ["Nothing was delivered: of 1 expected deliveries none happened."]
    (directory / "run.json").write_text(json.dumps(run))
    said = screen(Recording.open(directory))
    assert said.startswith("not valid: the senders were late")
    assert said.count("Nothing was delivered of the measurement: of 1 expected delivery none happened") == 1
