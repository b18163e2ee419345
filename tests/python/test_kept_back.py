"""What is under way at the end because the scenario or the broker keeps it from arriving makes no run not valid.

The run says who or what has it. A broker that stands still by itself makes the run not valid."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from mqttlab.recording import Recording
from mqttlab.report import headline
from mqttlab.report.text import rounded, verdict
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_silence_live import broker  # noqa: F401 (a fixture)

BACKENDS = ["sim", pytest.param("live", marks=pytest.mark.live)]
LINK = {"name": "wan", "between": ["field", "broker"], "link": "shared", "up": {"delay": "20 ms"},
        "down": {"delay": "20 ms"}}
# What nobody of a simulation can look at.
OUTSIDE = ("log", "machine", "doctor")


def device(qos: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": "dev", "host": "field", "publish": {
        "topic": "d", "qos": qos, "payload": "50 B", "interval": "100 ms"}, **more}


def reader(qos: int = 1, name: str = "app", filter_: str = "d", **more: Any) -> dict[str, Any]:
    return {"name": name, "host": "field", "mqtt": {"clean_session": False},
            "subscribe": [{"filter": filter_, "qos": qos}], **more}


def run(directory: Path, backend: str, groups: list[dict[str, Any]], *events: dict[str, Any],
        **more: Any) -> Recording:
    """A run of 6 s with events; 3 s later it ends."""
    if backend == "live" and shutil.which("mosquitto") is None:
        pytest.skip("mosquitto is not installed")
    values = {"name": "kept", "backend": backend, "phases": {"duration": "6 s", "cool_down": "3 s"},
              "networks": [LINK], "groups": groups, "events": [{"at": "2 s", **event} for event in events], **more}
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def kept(recording: Recording) -> str:
    """The remark of a run that is valid but for how late this machine was."""
    validity = recording.run["validity"]
    reasons = [reason for reason in validity["reasons"] if "late at the 99th percentile" not in reason]
    assert reasons == [], reasons
    remarks = validity.get("remarks", [])
    if recording.plan["backend"] == "sim":
        assert validity["valid"]
        assert not any(word in remark for word in OUTSIDE for remark in remarks), remarks
    assert len(remarks) == 1, remarks
    [told] = [line for line in verdict(recording)[1] if line == rounded(remarks[0])]
    assert told in headline.told(recording).reasons, "the headline says it"
    return str(remarks[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("qos", "event", "words"), [
    (1, {"group": "app", "do": "disconnect"}, "`app-0` was away since the event `app disconnect`"),
    (2, {"group": "app", "do": "disconnect"}, "`app-0` was away since the event `app disconnect`"),
    (1, {"group": "app", "do": "vanish"}, "`app-0` was away since the event `app vanish`"),
    (0, {"group": "app", "do": "stop-reading"}, "`app-0` was not reading since the event `app stop reading`"),
    (1, {"group": "app", "do": "stop-reading"}, "`app-0` was not reading since the event `app stop reading`"),
    (0, {"network": "wan", "down": True}, "the links `field/down`, `field/up` were down since the event `wan down`"),
    (1, {"network": "wan", "down": True}, "the links `field/down`, `field/up` were down since the event `wan down`"),
    (1, {"server": "broker", "do": "kill"}, "the server `broker` was killed by the event `broker is killed`"),
    (2, {"server": "broker", "do": "kill"}, "the server `broker` was killed by the event `broker is killed`"),
    (1, {"server": "broker", "do": "pause"}, "the server `broker` was paused by the event `broker is paused`"),
], ids=lambda value: value if isinstance(value, str) else None)
def test_an_event_that_nothing_ended_explains_what_did_not_arrive(
        qos: int, event: dict[str, Any], words: str, backend: str, tmp_path: Path) -> None:
    said = kept(run(tmp_path / "run", backend, [device(qos), reader(qos)], event))
    count, of = int(said.split()[0]), int(said.split()[2])
    assert 35 <= count <= 45, said
    assert of == 60, said
    assert said.endswith("(from `dev-0` to `app-0`)."), said
    assert words in said, said


@pytest.mark.parametrize("backend", BACKENDS)
def test_of_two_subscribers_that_which_is_away_is_named(backend: str, tmp_path: Path) -> None:
    said = kept(run(tmp_path / "run", backend, [device(), reader(), reader(name="other")],
                    {"group": "app", "do": "disconnect"}))
    assert "of 120 deliveries were under way at the end: `app-0` was away since the event" in said, said
    assert said.endswith("(from `dev-0` to `app-0`)."), said


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_member_of_a_shared_subscription_that_is_away_is_named(backend: str, tmp_path: Path) -> None:
    # Mosquitto hands messages to members that are away, too.
    recording = run(tmp_path / "run", backend, [
        device(), reader(name="near", filter_="$share/g/d"), reader(name="far", filter_="$share/g/d")],
        {"group": "far", "do": "disconnect"})
    under_way = recording.messages.filter(recording.messages["fate"] == "under_way").height
    if under_way:
        assert "`far-0` was away since the event" in kept(recording)
    else:
        assert recording.run["validity"]["reasons"] == [] or backend == "live"


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_lies_behind_a_gateway_is_held_by_the_link_between_gateway_and_broker(
        backend: str, tmp_path: Path) -> None:
    far = {**LINK, "name": "far", "between": ["gwhost", "broker"]}
    servers = [{"name": "broker"}, {"name": "gw", "role": "gateway", "host": "gwhost", "gateway": {"broker": "broker"}}]
    groups = [device(connects_to="gw", protocol="mqtt-sn"), reader(host="broker", connects_to="broker")]
    said = kept(run(tmp_path / "run", backend, groups, {"network": "far", "down": True}, servers=servers,
                    networks=[{**LINK, "between": ["field", "gwhost"]}, far]))
    assert "down since the event `far down" in said, said


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("change", [{"loss": "100 %"}, {"rate": "1 kbit/s", "queue": "1500 B"}], ids=["loss", "rate"])
def test_a_link_that_an_event_made_worse_explains_what_it_lost_or_holds(
        change: dict[str, Any], backend: str, tmp_path: Path) -> None:
    said = kept(run(tmp_path / "run", backend, [device(), reader()], {"network": "wan", **change}))
    assert "the links `field/down`, `field/up` were changed by the event `wan " in said, said
    assert said.endswith("` (from `dev-0` to `app-0`)."), said


def test_a_link_that_an_event_made_worse_and_that_lost_nothing_explains_nothing(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", "sim", [device(), reader()], {"network": "wan", "delay": "21 ms"},
                    {"group": "app", "do": "disconnect"})
    assert "`app-0` was away since the event" in kept(recording)


@pytest.mark.parametrize("event", [{"group": "app", "do": "disconnect"}, {"network": "wan", "down": True},
                                   {"server": "broker", "do": "pause"}, {"group": "app", "do": "stop-reading"}])
def test_what_an_event_gave_back_holds_nothing(event: dict[str, Any], tmp_path: Path) -> None:
    recording = run(tmp_path / "run", "sim", [device(), reader()], {**event, "for": "1 s"})
    validity = recording.run["validity"]
    assert validity["valid"] and "remarks" not in validity


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_translator_of_addresses_that_forgot_explains_it(backend: str, tmp_path: Path) -> None:
    network = {**LINK, "nat": {"timeout": "1 s", "forgotten": "drop"}}
    groups = [device(publish={"topic": "d", "qos": 1, "payload": "50 B", "interval": "3 s"}),
              reader(host="broker")]
    said = kept(run(tmp_path / "run", backend, groups, networks=[network],
                    phases={"duration": "20 s", "cool_down": "3 s"}))
    assert "the address translation at `field/up`" in said, said
    assert "had forgotten connections and dropped" in said, said


@pytest.mark.live
@pytest.mark.parametrize("qos", [0, 1])
def test_a_broker_that_refuses_by_its_access_rules_has_not_stood_still(qos: int, tmp_path: Path) -> None:
    rules = {"m.conf": "listener {port} {address}\nallow_anonymous true\nuser root\nacl_file {directory}/acl\n",
             "acl": "topic readwrite plant/open\ntopic read plant/#\n"}
    program = {"kind": "program", "ready": {"kind": "tcp-accept"}, "program": {
        "command": ["mosquitto", "-c", "{directory}/m.conf"], "files": rules}}
    publish = [{"topic": f"plant/{name}", "qos": qos, "payload": "20 B", "interval": "100 ms"}
               for name in ("open", "secret")]
    # Before MQTT 5 a broker acknowledges what it refuses.
    recording = run(tmp_path / "run", "live", [device(publish=publish), reader(qos, filter_="plant/#")],
                    broker=program, mqtt={"version": "3.1.1"})
    said = kept(recording)
    assert said.startswith("60 of 120 deliveries were under way at the end: "), said
    assert "the server ran on meanwhile, so that it refuses these messages or holds them" in said, said


@pytest.mark.live
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_broker_that_stands_still_by_itself_makes_the_run_not_valid(
        qos: int, broker: tuple[int, int], tmp_path: Path) -> None:  # noqa: F811 (the fixture)
    port, process = broker
    values = {
        "name": "frozen", "backend": "live", "network": "external", "phases": {"duration": "5 s", "cool_down": "3 s"},
        "broker": {"kind": "external", "address": "127.0.0.1", "port": port},
        "groups": [{**device(qos), "host": "here"}, {**reader(qos), "host": "here"}],
    }
    measured: list[int] = []

    def freeze(line: dict[str, Any]) -> None:
        if line.get("event") == "tick" and line.get("delivered"):
            measured.append(line["delivered"])
            if len(measured) == 2:
                os.kill(process, signal.SIGSTOP)

    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), freeze)
    assert outcome.verdict == "complete", outcome.reason
    validity = Recording.open(tmp_path / "run").run["validity"]
    assert not validity["valid"]
    assert any("the broker or the network stood still" in reason for reason in validity["reasons"]), validity["reasons"]
    assert "remarks" not in validity


@pytest.mark.parametrize(("exact", "words"), [
    ("nothing arrived after 2641.123 s of the run", "nothing arrived after 44 min of the run"),
    ("12345.678 ms late", "12.3 s late"), ("0.000123 s", "0.000123 s"), ("4.8215 s", "4.82 s")])
def test_times_of_verdicts_are_read_without_powers_of_ten(exact: str, words: str) -> None:
    assert rounded(exact) == words
