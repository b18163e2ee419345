"""Hosts whose processor, memory and disk are limited: live by control groups, simulated by the broker's model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import processes
from mqttlab import control_groups
from mqttlab.engine import doctor
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.limits import MACHINES
from mqttlab.scenario.load import parse_values

LIVE_AND_SIMULATED = [pytest.param("live", marks=pytest.mark.live), "sim"]


def needs(backend: str, *fields: str) -> None:
    """Skip a live test where this machine cannot set one of these limits."""
    if backend == "live":
        found = next(found for found in doctor()["capabilities"] if found["name"] == "limits")
        missing = [part for part in found["detail"].split("; ") if part.partition(":")[0] in fields]
        if not found["available"] and missing:
            pytest.skip("; ".join(missing))


def scenario(backend: str, limits: dict[str, str] | None, **more: Any) -> dict[str, Any]:
    """A publisher, and a subscriber behind a narrow link that falls behind where much is published."""
    publish = {"topic": "t", "qos": 1, "payload": "10 kB", "rate": "100 /s"} | more.pop("publish", {})
    broker = {"max_queued": 0, "max_inflight": 5} | more.pop("broker", {})
    down = more.pop("down", {"rate": "1 Mbit/s"})
    return {
        "name": "weak", "backend": backend, "phases": {"duration": "8 s", "cool_down": "1 s"},
        "broker": broker, "hosts": {"broker": {"limits": limits}} if limits else {},
        "mqtt": {"max_queued": 100_000, "max_inflight": 1000},
        "networks": [
            {"between": ["near", "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}},
            {"between": ["far", "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"} | down}],
        "groups": [{"name": "publishers", "host": "near", "publish": publish},
                   {"name": "subscribers", "host": "far", "subscribe": [{"filter": "t", "qos": 1}]}]} | more


def recorded(directory: Path, values: dict[str, Any]) -> tuple[str, Recording]:
    """How a run ended, and its recording."""
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict != "failed", outcome.reason
    return outcome.verdict, Recording.open(directory)


def problem(values: dict[str, Any]) -> str:
    """What a scenario is refused with."""
    with pytest.raises(ScenarioError) as refused:
        compile_plan(parse_values(values))
    return str(refused.value)


def left(engines: list[int]) -> set[Path]:
    """Control groups of these engines. Other tests run beside this one, and their runs have groups, too."""
    names = [f"{control_groups.PREFIX}{engine}-*" for engine in engines]
    return {path for above in control_groups.places() for name in names for path in above.glob(name)}


def test_a_machine_is_its_limits_and_what_is_written_goes_before() -> None:
    plan = compile_plan(parse_values(scenario("sim", {"profile": "raspberry-pi-3", "memory": "64 MB"})))
    assert plan["hosts"][0]["limits"] == {"processor": (1, 5), "memory_bytes": 64_000_000, "disk_bytes_s": 10_000_000}
    assert MACHINES["raspberry-pi-3"].memory == 10**9
    assert all("limits" not in host for host in compile_plan(parse_values(scenario("sim", None)))["hosts"])


def test_limits_that_nobody_could_be_held_to_are_refused() -> None:
    for limits, said in (
            ({}, "is empty; add `processor`"), ({"processor": "0.5 %"}, "is 0.5 %, but must be 1 %"),
            ({"memory": "100 kB"}, "must be 1 MiB or more"), ({"disk_rate": "10 bit/s"}, "must be 1 kB/s or more"),
            ({"profile": "raspberry-pi-5"}, "did you mean `raspberry-pi-"), ({"profile": "esp8266"}, "runs clients")):
        values = scenario("sim", None) | {"hosts": {"broker": {"limits": limits}}}
        assert said in problem(values), problem(values)
    ours = scenario("sim", None) | {"hosts": {"near": {"limits": {"memory": "64 MB"}}}}
    assert "`hosts.near.limits` holds servers and programs, but the clients of group `publishers`" in problem(ours)
    elsewhere = scenario("live", {"memory": "64 MB"}, broker={"kind": "external", "address": "127.0.0.1"})
    assert "`broker` runs elsewhere, out of reach" in problem(
        {name: value for name, value in elsewhere.items() if name != "networks"} | {"network": "external"})


def test_a_simulated_share_of_a_processor_makes_each_packet_that_much_longer(tmp_path: Path) -> None:
    medians = []
    for share in (None, "10 %"):
        values = scenario("sim", {"processor": share} if share else None, publish={"rate": "10 /s", "payload": "10 B"},
                          broker={"service": {"per_packet": "200 us", "per_copy": "100 us"}}, down={})
        verdict, recording = recorded(tmp_path / str(share), values)
        assert verdict == "complete"
        medians.append(float(recording.messages["latency_ns"].drop_nulls().quantile(0.1) or 0))
    # 0.3 ms at each message become 3 ms.
    assert medians[1] - medians[0] == pytest.approx(2.7e6, rel=1e-3)


@pytest.mark.parametrize("backend", LIVE_AND_SIMULATED)
def test_a_broker_that_needs_more_memory_than_there_is_dies_and_the_run_says_why(backend: str, tmp_path: Path) -> None:
    needs(backend, "memory")
    verdict, recording = recorded(tmp_path / "run", scenario(backend, {"memory": "4 MB"}))
    assert verdict == "incomplete"
    reason = str(recording.run["reason"])
    assert "the server `broker` ended during the run (killed for memory: its host has 4 MB)" in reason
    told = recording.events.filter(kind="server_exit")["detail"].to_list()
    assert told == ["broker: killed for memory: its host has 4 MB"]
    # 0.9 MB a second are left over: it lasts a second at least, and dies within the measurement.
    died = recording.events.filter(kind="server_exit")["at_ns"].item() - recording.messages["intended_ns"].min()
    assert 1e9 < died < 8e9


@pytest.mark.parametrize("backend", LIVE_AND_SIMULATED)
def test_a_message_needs_memory_as_it_is_read_and_for_each_receiver(backend: str, tmp_path: Path) -> None:
    """Of 3 MB to two receivers: the packet, the message, and a packet for each, beside the broker's own 1.4 MB."""
    needs(backend, "memory")
    verdicts = {}
    for memory_mb in (12, 16):
        values = scenario(backend, {"memory": f"{memory_mb} MB"}, phases={"duration": "2 s", "cool_down": "1 s"},
                          publish={"payload": "3 MB", "qos": 0, "messages": 1, "rate": "1 /s"})
        values["groups"][1]["count"] = 2
        verdicts[memory_mb], _ = recorded(tmp_path / str(memory_mb), values)
    assert verdicts == {12: "incomplete", 16: "complete"}


@pytest.mark.parametrize("backend", LIVE_AND_SIMULATED)
def test_a_run_goes_on_without_its_broker_where_it_is_to(backend: str, tmp_path: Path) -> None:
    needs(backend, "memory")
    values = scenario(backend, {"memory": "4 MB"}, broker={"when_it_dies": "go-on"})
    verdict, recording = recorded(tmp_path / "run", values)
    assert verdict == "complete"
    words = "the server `broker` ended during the run (killed for memory: its host has 4 MB)"
    assert words in recording.run["warnings"]
    fates = dict(recording.messages.group_by("fate").agg(pl.len()).rows())
    assert 10 < fates["delivered"] < 700


@pytest.mark.parametrize("backend", LIVE_AND_SIMULATED)
def test_a_slow_disk_holds_up_a_broker_that_stores(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Tests have their files in memory, which no disk holds up.
    disk = tempfile.TemporaryDirectory(dir="/var/tmp")
    monkeypatch.setenv("TMPDIR", disk.name)
    needs(backend, "disk_rate")
    p50 = {}
    for persistence in (False, True):
        # A subscriber with a session, which falls behind: each change of its queue is written.
        values = scenario(backend, {"disk_rate": "1 MB/s"}, broker={"persistence": persistence, "max_inflight": 1},
                          publish={"rate": "20 /s"}, down={"rate": "2 Mbit/s", "delay": "30 ms"})
        values["groups"][1]["mqtt"] = {"clean_session": False}
        verdict, recording = recorded(tmp_path / str(persistence), values)
        assert verdict == "complete"
        latencies = recording.messages.filter(fate="delivered")["latency_ns"]
        p50[persistence] = float(latencies.quantile(0.5) or 0)
    # A message of 10 kB alone takes 10 ms.
    assert p50[True] > p50[False] + 5e6


@pytest.mark.live
def test_a_live_share_of_a_processor_is_never_exceeded(tmp_path: Path) -> None:
    needs("live", "processor")
    values = scenario("live", {"processor": "2 %"}, publish={"rate": "5000 /s", "payload": "100 B", "qos": 0}, down={})
    verdict, recording = recorded(tmp_path / "run", values)
    assert verdict in ("complete", "incomplete")
    samples = recording.resources.filter(process="server").sort("at_ns")
    used = (samples["cpu_user_s"] + samples["cpu_system_s"]).to_list()
    lasted = (samples["at_ns"].max() - samples["at_ns"].min()) / 1e9  # type: ignore[operator]
    # Ticks of 10 ms, of user and system time.
    assert used[-1] - used[0] <= 0.02 * lasted * 1.2 + 0.04


@pytest.mark.live
@pytest.mark.parametrize("which", ["engine", "command", "nobody"])
def test_a_limited_run_leaves_no_control_group_whoever_is_killed(which: str, tmp_path: Path) -> None:
    needs("live", "processor", "memory")
    text = """
        name = "weak"
        backend = "live"
        network = "loopback"
        phases = { duration = "20 s" }
        [hosts.broker]
        limits = { processor = "20 %", memory = "64 MB" }
        [[groups]]
        name = "both"
        host = "field"
        publish = { topic = "t", payload = "10 B", rate = "1 /s" }
    """
    (tmp_path / "weak.toml").write_text(text, encoding="utf-8")
    with subprocess.Popen([sys.executable, "-m", "mqttlab", "run", "weak.toml", "--runs", "runs", "--no-html"],
                          cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
        deadline = time.monotonic() + 60
        engines: list[int] = []
        while not left(engines) and command.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            engines = processes.children([command.pid], lambda words: "run" in words[1:2])
        assert left(engines), "it is held by control groups"
        time.sleep(0.3)
        how = signal.SIGINT if which == "nobody" else signal.SIGKILL
        os.kill(engines[0] if which == "engine" else command.pid, how)
        command.wait(timeout=60)
    deadline = time.monotonic() + 30
    while left(engines) and time.monotonic() < deadline:
        if which != "nobody":
            control_groups.sweep()
        time.sleep(0.1)
    assert not left(engines)
