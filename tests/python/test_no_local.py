"""No Local of a subscription (MQTT 5, 3.8.3.1): live, simulated and imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.fit import fit
from mqttlab.scenario.load import parse_values
from test_import_own import both
from test_import_own import fates as fates_by_name

CLIENTS, EACH = 3, 5
BACKENDS = [pytest.param("live", marks=pytest.mark.live), "sim"]


def scenario(backend: str, *, qos: int = 1, topic: str = "room/{client}", **options: Any) -> dict[str, Any]:
    """Clients of two groups publish to a room and hear it; those of the first without their own messages."""
    published = {"topic": topic, "qos": qos, "payload": "60 B", "rate": "10 /s", "messages": EACH}
    wanted = {"filter": "room/#", "qos": 2}
    return {
        "name": "local", "backend": backend, "mqtt": {"version": "5"},
        "phases": {"connect_timeout": "500 ms", "duration": "3 s", "cool_down": "1 s"},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": [
            {"name": "quiet", "host": "field", "count": CLIENTS, "publish": published,
             "subscribe": [wanted | {"no_local": True} | options]},
            {"name": "loud", "host": "field", "publish": published, "subscribe": [wanted]}]}


def run(values: dict[str, Any], to: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), to / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(outcome.directory)


def fates(recording: Recording) -> dict[tuple[bool, bool, str], int]:
    """How many rows there are by whether the publisher is quiet, whether it is the receiver, and fate."""
    rows = recording.messages.with_columns(
        quiet=pl.col("publisher") < CLIENTS, own=pl.col("publisher").eq_missing(pl.col("subscriber")),
        fate=pl.col("fate").cast(pl.String))
    return {tuple(row[:3]): row[3] for row in rows.group_by("quiet", "own", "fate").agg(pl.len()).rows()}


ALL = {(True, False, "delivered"): CLIENTS * EACH * CLIENTS, (False, False, "delivered"): EACH * CLIENTS,
       (False, True, "delivered"): EACH}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("topic", ["room/{client}", "room/all"])
def test_a_client_gets_what_others_publish_and_not_its_own(
    tmp_path: Path, backend: str, qos: int, topic: str,
) -> None:
    recording = run(scenario(backend, qos=qos, topic=topic), tmp_path)
    assert fates(recording) == ALL
    totals = metrics.application(recording, ()).row(0, named=True)
    assert (totals["messages_lost"], totals["undelivered_percent"]) == (0, 0), totals


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_it_everybody_gets_its_own_too(tmp_path: Path, backend: str) -> None:
    met = fates(run(scenario(backend, no_local=False), tmp_path))
    assert met == {**ALL, (True, True, "delivered"): CLIENTS * EACH}


@pytest.mark.parametrize("backend", BACKENDS)
def test_another_filter_brings_its_own_messages_once(tmp_path: Path, backend: str) -> None:
    """Mosquitto 2.0.11 sends a message once for each filter; the simulated broker once for all."""
    values = scenario(backend, qos=2)
    values["groups"][0]["subscribe"].append({"filter": "room/+", "qos": 1})
    recording = run(values, tmp_path)
    met = fates(recording)
    assert {key: count for key, count in met.items() if key[2] != "duplicate"} == {
        **ALL, (True, True, "delivered"): CLIENTS * EACH}
    assert (True, True, "duplicate") not in met


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_it_has_retained_itself_comes_all_the_same(tmp_path: Path, backend: str) -> None:
    values = scenario(backend)
    values["groups"][0]["publish"] = {**values["groups"][0]["publish"], "retain": True, "topic": "room/{client}/state"}
    values["events"] = [{"at": "2 s", "group": "quiet", "do": "subscribe", "filter": "room/#", "qos": 1}]
    met = fates(run(values, tmp_path))
    assert met == {**ALL, (True, True, "retained"): CLIENTS, (True, False, "retained"): CLIENTS * (CLIENTS - 1)}


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_event_brings_and_takes_another_filter(tmp_path: Path, backend: str) -> None:
    values = scenario(backend)
    for group in values["groups"]:
        group["publish"] = {**group["publish"], "messages": 30, "start_phase": "synchronised"}
    values["events"] = [
        {"at": "950 ms", "for": "1 s", "group": "quiet", "do": "subscribe", "filter": "room/+", "qos": 1}]
    met = fates(run(values, tmp_path))
    own = met.pop((True, True, "delivered"))
    assert 27 <= own <= 33, met
    assert all(count <= 6 for key, count in met.items() if key[:2] == (True, True)), met
    assert not [key for key in met if key[2] == "lost"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_of_itself_alone_nobody_gets_anything(tmp_path: Path, backend: str) -> None:
    values = scenario(backend)
    values["groups"] = [values["groups"][0] | {"count": 1}]
    assert fates(run(values, tmp_path)) == {(True, False, "no_receiver"): EACH}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_will_does_not_come_to_its_own_session(tmp_path: Path, backend: str) -> None:
    values = scenario(backend)
    values["groups"][0] |= {"mqtt": {
        "version": "5", "session_expiry": "1 h", "will": {"topic": "room/will", "payload": "60 B", "qos": 1}}}
    values["events"] = [{"at": "1500 ms", "for": "500 ms", "group": "quiet", "client": 0, "do": "vanish"}]
    recording = run(values, tmp_path)
    assert not recording.messages.filter(pl.col("fate").cast(pl.String) == "lost").height


def test_what_was_not_sent_is_wanted_by_others_alone(tmp_path: Path) -> None:
    values = scenario("sim", qos=1)
    values["groups"][0] |= {"count": 2, "mqtt": {"version": "5", "max_inflight": 1, "max_queued": 2}}
    del values["groups"][1]
    values["networks"][0] |= {"up": {"delay": "400 ms"}, "down": {"delay": "400 ms"}}
    values["groups"][0]["publish"] = {**values["groups"][0]["publish"], "rate": "100 /s", "messages": 200}
    for detail in ("messages", "summary"):
        recording = run(values | {"recording": {"detail": detail}}, tmp_path / detail)
        totals = metrics.application(recording, ()).row(0, named=True)
        unsent = totals["messages_unsent"]
        assert unsent > 100
        delivered, expected = totals["messages_delivered"], totals["deliveries_expected"]
        # Each has one receiver, sent or not.
        wanted = expected + unsent
        assert totals["undelivered_percent"] == pytest.approx(100 * (wanted - delivered) / wanted), detail


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("topic", ["room/{client}", "room/all"])
def test_a_capture_says_who_asked_for_it(tmp_path: Path, backend: str, topic: str) -> None:
    run_, again = both(tmp_path, scenario(backend, topic=topic))
    assert fates_by_name(again) == fates_by_name(run_)
    assert {row["client"] for row in again.layout["own_receivers"]} == {
        number for number, client in enumerate(again.layout["clients"]) if client["group"] != "loud"
        and client["name"].startswith("quiet")}


def test_a_plan_without_it_is_as_before() -> None:
    plan = compile_plan(parse_values(scenario("sim", no_local=False)))
    assert plan["groups"][0]["subscriptions"] == [{"filter": "room/#", "qos": 2}]
    plan = compile_plan(parse_values(scenario("sim")))
    assert plan["groups"][0]["subscriptions"] == [{"filter": "room/#", "qos": 2, "no_local": True}]


def test_a_link_need_not_carry_own_messages() -> None:
    """One of two clients hears half of what both publish."""
    values = scenario("sim")
    values["groups"] = [values["groups"][0] | {"count": 2}]
    values["networks"][0] |= {"down": {"delay": "5 ms", "rate": "20 kbit/s"}, "link": "each"}
    del values["groups"][0]["publish"]["messages"]
    assert not [place for place, _ in fit(parse_values(values)) if place[:1] == ("networks",)]
    values["groups"][0]["subscribe"][0]["no_local"] = False
    assert [place for place, _ in fit(parse_values(values)) if place[:1] == ("networks",)]


def test_the_load_is_estimated_without_own_messages() -> None:
    loud, quiet = (estimate(parse_values(scenario("sim", no_local=chosen))) for chosen in (False, True))
    assert loud.messages == quiet.messages
    assert loud.deliveries - quiet.deliveries == CLIENTS * EACH
