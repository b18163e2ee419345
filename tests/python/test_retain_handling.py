"""Retain handling of a subscription (MQTT 5, 3.8.3.1): live and simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

STATES = 3


def scenario(backend: str, handling: str | None) -> dict[str, Any]:
    """Three retained states. Their receiver subscribes before them, again by an event, and anew after it left."""
    wanted = {"filter": "state/+", "qos": 1} | ({} if handling is None else {"retain_handling": handling})
    return {
        "name": "handling", "backend": backend, "mqtt": {"version": "5"},
        "phases": {"connect_timeout": "500 ms", "duration": "6 s", "cool_down": "1 s"},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": [
            {"name": "states", "host": "field", "publish": {
                "topic": "state/{topic}", "topics": STATES, "qos": 1, "retain": True, "payload": "60 B",
                "rate": "10 /s", "messages": STATES, "start_phase": "synchronised"}},
            {"name": "app", "host": "field", "subscribe": [wanted]}],
        "events": [
            {"at": "2 s", "group": "app", "do": "subscribe", "filter": "state/+"},
            {"at": "3 s", "for": "1 s", "group": "app", "do": "unsubscribe", "filter": "state/+"}]}


@pytest.mark.parametrize("backend", [pytest.param("live", marks=pytest.mark.live), "sim"])
@pytest.mark.parametrize(("handling", "times"), [(None, 2), ("send", 2), ("new", 1), ("never", 0)])
def test_what_is_retained_comes_as_it_was_asked_for(
        tmp_path: Path, backend: str, handling: str | None, times: int) -> None:
    outcome = perform(Job(compile_plan(parse_values(scenario(backend, handling))), tmp_path / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    messages = Recording.open(outcome.directory).messages
    fates = dict(messages.group_by(pl.col("fate").cast(pl.String)).agg(pl.len()).rows())
    # It had subscribed before they were published. One event asks for what it has, the other for what it has left.
    assert fates == {"delivered": STATES} | ({"retained": times * STATES} if times else {})


def test_a_plan_without_it_is_as_before() -> None:
    assert compile_plan(parse_values(scenario("sim", None)))["groups"][1]["subscriptions"] == [
        {"filter": "state/+", "qos": 1}]
