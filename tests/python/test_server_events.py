"""A broker that stands still, is killed, is stopped and starts again by events of the plan: live and simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.report import changes
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

LIVE_AND_SIMULATED = [pytest.param("live", marks=pytest.mark.live), "sim"]
# Milliseconds of the measurement, the change, and whether what the broker stored stays.
LIFE = [(500, "pause", True), (1000, "continue", True), (1700, "kill", True), (2100, "start", True),
        (3000, "stop", True), (3300, "start", True)]


def recorded(backend: str, directory: Path, life: list[tuple[int, str, bool]], version: str = "3.1.1") -> Recording:
    """A publisher and a subscriber of each QoS, whose sessions stay, and what happens to their broker."""
    mqtt = {"mqtt": {"version": version, "clean_session": False},
            "reconnect": {"initial": "100 ms", "maximum": "200 ms"}}
    groups: list[dict[str, Any]] = []
    for qos in (0, 1, 2):
        groups.append({"name": f"p{qos}", "host": "field", **mqtt,
                       "publish": {"topic": f"t/{qos}", "qos": qos, "payload": "100 B", "rate": "20 /s"}})
        groups.append({"name": f"s{qos}", "host": "field", **mqtt, "subscribe": [{"filter": f"t/{qos}", "qos": qos}]})
    plan = compile_plan(parse_values({
        "name": "life", "backend": backend, "phases": {"warm_up": "0 s", "duration": "5 s", "cool_down": "15 s"},
        "broker": {"persistence": True},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": groups, "events": [
            {"at": f"{at} ms", "name": f"broker {kind}", "server": "broker", "do": kind} | (
                {} if persistence else {"persistence": False}) for at, kind, persistence in life]}))
    outcome = perform(Job(plan, directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


@pytest.fixture(scope="module", params=LIVE_AND_SIMULATED)
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """What all of it leaves: live with MQTT 3.1.1, simulated with MQTT 5."""
    version = "3.1.1" if request.param == "live" else "5"
    return recorded(request.param, tmp_path_factory.mktemp("life") / "run", LIFE, version)


def fates(recording: Recording, qos: int) -> dict[str, int]:
    """How many messages of a QoS had which fate."""
    return dict(recording.messages.filter(qos=qos).group_by("fate").agg(pl.len()).rows())


def test_over_a_pause_a_kill_and_a_stop_persistent_sessions_lose_nothing(lived: Recording) -> None:
    one, two = fates(lived, 1), fates(lived, 2)
    # Repetitions after a restart are told apart from deliveries.
    assert one.pop("duplicate", 0) < 20 and one == {"delivered": 100}, one
    # What was between two writes of the broker's disk when it was killed may be gone at QoS 2, or come again: at most a
    # window of it.
    assert two.pop("duplicate", 0) <= 20 and two["delivered"] >= 80 and sum(two.values()) == 100, two
    # QoS 0 waits for nobody: down for 0.7 s, and clients come back 0.3 s later at most.
    none = fates(lived, 0)
    assert sum(none.values()) == 100 and none["unsent"] >= 10 and none["delivered"] >= 60, none
    events = lived.events
    assert events.filter(kind="change")["detail"].to_list() == [f"broker {kind}" for _, kind, _ in LIFE]
    # Nobody loses a connection over the pause.
    assert events.filter(kind="disconnect").group_by("client").agg(pl.len())["len"].to_list() == [2] * 6
    present = events.filter(pl.col("kind") == "connack", detail="session present")
    assert present.group_by("client").agg(pl.len())["len"].to_list() == [2] * 6
    # What came in the pause was read when it was over.
    assert lived.messages.filter(qos=0, fate="delivered").select(pl.col("latency_ns").max()).item() > 3e8


def test_who_finds_nobody_listening_is_refused(lived: Recording) -> None:
    tried = lived.events.filter(pl.col("detail").str.starts_with("cannot connect"))["detail"].str.to_lowercase()
    # The kernel adds its number.
    assert len(tried) and tried.str.starts_with("cannot connect: connection refused").all(), tried.unique().to_list()


def test_an_end_that_was_planned_is_no_fault_and_leaves_its_words(lived: Recording) -> None:
    recording = lived
    if recording.plan["backend"] == "sim":
        pytest.skip("programs are of live runs")
    reasons = " ".join(recording.run["validity"]["reasons"])
    assert not any(words in reasons for words in ("stopped by a signal", "refused", "ended")), reasons
    ends = recording.events.filter(kind="server_exit")["detail"].to_list()
    assert ends[0] == "broker: killed by signal 9" and len(ends) == 3, ends
    assert recording.events.filter(kind="server_start").height == 3
    log = (recording.directory / "broker.log").read_text(encoding="utf-8")
    assert log.count(" running") == 3, "each start behind the one before"
    # What the processes of all starts have used.
    used = recording.resources.filter(process="server").sort("at_ns")["cpu_user_s"].to_list()
    assert used == sorted(used)


@pytest.mark.parametrize("backend", LIVE_AND_SIMULATED)
def test_a_client_beside_a_broker_that_is_killed_is_among_those_that_come_back(backend: str, tmp_path: Path) -> None:
    """Live, its connection ended before the recorded time of the kill: it was missing."""
    mqtt = {"mqtt": {"clean_session": False}, "reconnect": {"initial": "100 ms", "maximum": "200 ms"}}
    outcome = perform(Job(compile_plan(parse_values({
        "name": "beside", "backend": backend, "phases": {"warm_up": "0 s", "duration": "3 s", "cool_down": "2 s"},
        "broker": {"persistence": True},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": [{"name": "p", "host": "field", **mqtt,
                    "publish": {"topic": "t", "qos": 1, "payload": "100 B", "rate": "20 /s"}},
                   {"name": "s", "host": "broker", **mqtt, "subscribe": [{"filter": "t", "qos": 1}]}],
        "events": [{"at": "1 s", "for": "500 ms", "server": "broker", "do": "kill"}]})), tmp_path / "run"),
        lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    [found] = metrics.changes(recording).rows(named=True)
    assert (found["change_connections_lost"], found["change_not_reconnected"]) == (2, 0)
    assert 0 < found["change_reconnected_s_max"] < 1
    # Ten messages were due while it was away, and the disk may have missed the last ones before.
    assert found["change_backlog"] >= 9
    assert ", all 2 connected again " in changes.sentence(recording)


@pytest.mark.parametrize("backend", LIVE_AND_SIMULATED)
def test_a_broker_that_starts_with_an_empty_disk_knows_no_session(backend: str, tmp_path: Path) -> None:
    life = [(1500, "stop", True), (1900, "start", False)]
    recording = recorded(backend, tmp_path / "run", life)
    assert recording.events.filter(kind="connack", detail="session present").is_empty()
    assert recording.events.filter(kind="suback").height == 6
    # What was published before the subscriber was back has no receiver; every publisher is done.
    assert fates(recording, 1)["delivered"] >= 80
    assert recording.messages.filter(qos=1)["acknowledged_ns"].null_count() == 0

