"""Retain As Published of a subscription (MQTT 5, 3.8.3.1): live and simulated."""

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
OTHERS = {("delivered", False, False): STATES}
BACKENDS = [pytest.param("live", marks=pytest.mark.live), "sim"]


def scenario(backend: str, *, qos: int = 1, **options: Any) -> dict[str, Any]:
    """Three messages are retained, three not. Their receiver subscribes before them, again, and anew after it left."""
    published = {"qos": qos, "payload": "60 B", "rate": "10 /s", "messages": STATES, "start_phase": "synchronised"}
    return {
        "name": "published", "backend": backend, "mqtt": {"version": "5"},
        "phases": {"connect_timeout": "500 ms", "duration": "6 s", "cool_down": "1 s"},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": [
            {"name": "states", "host": "field", "publish": {
                "topic": "state/{topic}", "topics": STATES, "retain": True, **published}},
            {"name": "events", "host": "field", "publish": {"topic": "state/event", **published}},
            {"name": "app", "host": "field", "subscribe": [{"filter": "state/+", "qos": 1} | options]}],
        "events": [
            {"at": "2 s", "group": "app", "do": "subscribe", "filter": "state/+"},
            {"at": "3 s", "for": "1 s", "group": "app", "do": "unsubscribe", "filter": "state/+"}]}


def run(values: dict[str, Any], to: Path) -> pl.DataFrame:
    outcome = perform(Job(compile_plan(parse_values(values)), to / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(outcome.directory).messages


def fates(messages: pl.DataFrame) -> dict[Any, int]:
    """How many rows have a fate, were published with RETAIN, and came with it."""
    flags = [pl.col("fate").cast(pl.String), "retain", "retained"]
    return {tuple(row[:3]): row[3] for row in messages.group_by(flags).agg(pl.len()).rows()}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("qos", [0, 1])
def test_a_live_delivery_has_the_flag_and_is_told_from_a_stored_copy(tmp_path: Path, backend: str, qos: int) -> None:
    met = fates(run(scenario(backend, qos=qos, retain_as_published=True), tmp_path))
    # Each SUBSCRIBE of an event brings the stored ones again.
    assert met == {("delivered", True, True): STATES, **OTHERS, ("retained", True, True): 2 * STATES}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("asked", [None, False])
def test_without_it_the_flag_is_cleared(tmp_path: Path, backend: str, asked: bool | None) -> None:
    options = {} if asked is None else {"retain_as_published": asked}
    met = fates(run(scenario(backend, **options), tmp_path))
    assert met == {("delivered", True, False): STATES, **OTHERS, ("retained", True, True): 2 * STATES}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_shared_subscription_gets_nothing_stored(tmp_path: Path, backend: str) -> None:
    values = scenario(backend, retain_as_published=True)
    values["groups"][2]["subscribe"][0]["filter"] = "$share/pool/state/+"
    del values["events"]
    assert fates(run(values, tmp_path)) == {("delivered", True, True): STATES, **OTHERS}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("qos", "fate"), [(0, "not_decided"), (1, "retained")])
def test_who_subscribes_late_gets_what_was_stored(tmp_path: Path, backend: str, qos: int, fate: str) -> None:
    """At QoS 0 no acknowledgement says that the broker had it before."""
    values = scenario(backend, qos=qos, retain_as_published=True)
    values["groups"][2] |= {"subscribe": [{"filter": "other", "retain_as_published": True}]}
    values["events"] = [{"at": "2 s", "group": "app", "do": "subscribe", "filter": "state/+"}]
    met = fates(run(values, tmp_path))
    assert met[fate, True, True] == STATES, met


def test_a_plan_without_it_is_as_before() -> None:
    plans = [compile_plan(parse_values(scenario("sim", **options))) for options in ({}, {"retain_as_published": False})]
    for plan in plans:
        assert plan["groups"][2]["subscriptions"] == [{"filter": "state/+", "qos": 1}]
