"""Scenarios with several events by chance, and the rules that hold what is said of them against the evidence."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches" / "agreement"))

import contradictions
from contradictions import RULES, Read, between
from draw import EVENTFUL_FROM, draw

NUMBERS = range(EVENTFUL_FROM, EVENTFUL_FROM + 40)
AWAY = scenario(
    hosts=("broker", "field"), rate="4 /s", subscriber={"mqtt": {"clean_session": False}},
    phases={"duration": "8 s", "cool_down": "3 s"},
    events=[{"at": "2 s", "for": "4 s", "group": "subscribers", "do": "disconnect"}],
)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """A simulation in which the subscriber is away for four seconds."""
    directory = tmp_path_factory.mktemp("away") / "run"
    plan = compile_plan(parse_values(AWAY))
    assert perform(Job(plan, directory), lambda event: None).verdict == "complete"
    return Read(Recording.open(directory), True, "", [])


def test_numbers_draw_several_events_some_of_which_never_end_or_overlap() -> None:
    drawn = {number: draw(number)["events"] for number in NUMBERS}
    assert {len(events) for events in drawn.values()} == {1, 2, 3}
    all_of_them = [event for events in drawn.values() for event in events]
    assert 3 < sum("for" not in event and "do" in event for event in all_of_them) < len(all_of_them) / 2
    assert any(float(event.get("for", "0 s").split()[0]) > 4 for event in all_of_them)
    networks = [[event["network"] for event in events if "network" in event] for events in drawn.values()]
    assert any(len(of) > len(set(of)) for of in networks), "two events of one network"


def named(read: Read) -> set[str]:
    return {word for rule in RULES for word, _ in rule(read)}


@pytest.mark.parametrize(("text", "word"), [
    ("nothing arrived; see the broker's log", "machine"),
    ("until the application read it: the machine is too busy", "machine"),
    ("silent for 2.64e+03 s", "notation"),
    ("of the slowest, 96.3 % was waiting for a repeated segment to the subscriber", "repeated"),
    ("A sentence that is so long that a screen does not have the room for it, so it ends…\n", "cut off"),
    ("more was sent than the link carries", "overload"),
    ("Traceback (most recent call last)", "failed"),
])
def test_a_sentence_without_evidence_is_found(read: Read, text: str, word: str) -> None:
    assert word not in named(read)
    assert word in named(replace(read, text=text))


def test_a_verdict_that_blames_what_the_scenario_asked_for_is_found(read: Read) -> None:
    stood_still = "30 of 40 expected deliveries were under way: the broker or the network stood still"
    assert "not valid" in named(replace(read, reasons=[stood_still]))
    assert "not valid" in named(replace(read, reasons=[stood_still], simulated=False))
    out_of_reach = "1 of 2 clients never connected: no TCP connection in time"
    assert "not valid" not in named(replace(read, reasons=[out_of_reach]))
    late = "the senders were 19.9 ms late at the 99th percentile"
    assert "not valid" in named(replace(read, reasons=[late]))
    assert "not valid" not in named(replace(read, reasons=[late], simulated=False))


def test_a_socket_that_holds_messages_of_an_absent_client_is_found(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = contradictions.parts_of(read.recording)
    blamed = whole.with_columns(broker_socket_ns=pl.col("latency_ns"))
    monkeypatch.setattr(contradictions, "parts_of", lambda _: blamed)
    assert "socket" in named(read)
    monkeypatch.setattr(contradictions, "parts_of", lambda _: whole.with_columns(broker_socket_ns=0, broker_nagle_ns=0))
    assert "socket" not in named(read)


def test_backends_that_say_different_things_are_found() -> None:
    one: dict[str, Any] = {"valid": True, "reasons": [], "expected": 40, "causes": {"delivered ": 40},
                           "parts": {"wire_to_subscriber_ns": 0.9}}
    assert not list(between(one, json.loads(json.dumps(one))))
    lost = one | {"causes": {"delivered ": 30, "lost queue": 10}}
    assert {word for word, _ in between(one, lost)} == {"fate"}
    assert {word for word, _ in between(one, one | {"valid": False})} == {"verdict"}
    late = one | {"valid": False, "reasons": ["the senders were 19.9 ms late at the 99th percentile"]}
    assert not list(between(late, one)), "the machine's lateness is no simulation's"
    assert {word for word, _ in between(one, one | {"parts": {"broker_socket_ns": 0.9}})} == {"part"}
