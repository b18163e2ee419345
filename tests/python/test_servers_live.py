"""Several servers in a live run: each has its own host, log and clients; programs serve, pass on, and die."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import early_ms
from mqttlab import figures
from mqttlab.metrics import deliveries
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.runs.perform import Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_servers import LINE, scenario

pytestmark = pytest.mark.live
PROXY = '''
import asyncio, sys

async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def serve(reader, writer):
    there = await asyncio.open_connection(sys.argv[3], 1883)
    await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

async def main():
    server = await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]))
    print("passing on", flush=True)
    await server.serve_forever()

asyncio.run(main())
'''


def run(values: dict[str, Any], directory: Path) -> Outcome:
    return perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)


def test_each_broker_serves_its_own_clients_and_has_a_log(tmp_path: Path) -> None:
    values = scenario([{"name": "east"}, {"name": "west", "ready": "connack"}], "east", "west")
    values["networks"][1] |= {"up": {"delay": "20 ms"}, "down": {"delay": "20 ms"}}
    assert run(values, tmp_path / "run").verdict == "complete"
    recording = Recording.open(tmp_path / "run")
    found = deliveries(recording).group_by("publisher_group", "subscriber_group").agg(
        pl.len(), pl.col("latency_ms").min()).sort("publisher_group")
    # Both have topics of the same names: nothing crosses from one to the other.
    assert found.select("publisher_group", "subscriber_group", "len").rows() == [("p0", "s0", 20), ("p1", "s1", 20)]
    # The quickest of each: others may wait for acknowledgements, by Nagle's algorithm, or for the machine.
    near, far = found["latency_ms"]
    early = early_ms(recording, 2)
    assert 10 - early <= near < 25 and 40 - early <= far < 60
    for name, clients in (("east", ("p0", "s0")), ("west", ("p1", "s1"))):
        log = (tmp_path / "run" / f"{name}.log").read_text(encoding="utf-8")
        assert all(f"as {client}-0" in log for client in clients), log
    started = recording.events.filter(kind="server_start")["detail"].to_list()
    assert [words.split(":")[0] for words in started] == ["east", "west"]
    assert set(recording.run["versions"]) >= {"east", "west"}
    used = recording.resources.filter(process="server")
    assert used["name"].unique().sort().to_list() == ["east", "west"]
    assert used.group_by("name").agg(pl.col("rss_bytes").max())["rss_bytes"].min() > 1_000_000  # type: ignore[operator]
    named = {trace.name for trace in figures.resources(recording.resources).data}
    assert named == {"east", "west", "engine", "emulator"}


def test_several_brokers_are_simulated_as_they_are_run(tmp_path: Path) -> None:
    values = scenario([{"name": "east"}, {"name": "west"}], "east", "west")
    values["networks"][1] |= {"up": {"delay": "20 ms"}, "down": {"delay": "20 ms"}}
    found = []
    for backend in ("live", "sim"):
        outcome = run({**values, "backend": backend}, tmp_path / backend)
        assert outcome.verdict == "complete", (backend, outcome.reason)
        recording = Recording.open(tmp_path / backend)
        found.append(deliveries(recording).group_by("publisher_group", "subscriber_group").agg(
            pl.len(), pl.col("latency_ms").min()).sort("publisher_group"))
        assert recording.layout["topics"][0]["name"] == recording.layout["topics"][1]["name"] == "t/0"
    live, simulated = found
    assert live.drop("latency_ms").rows() == simulated.drop("latency_ms").rows()
    for real, modelled in zip(live["latency_ms"], simulated["latency_ms"], strict=True):
        assert modelled <= real + 1 and real - modelled < 15, "a busy machine is late, not early"


@pytest.mark.parametrize("backend", ["live", "sim"])
def test_clients_reach_a_broker_and_its_other_clients_through_a_proxy(backend: str, tmp_path: Path) -> None:
    proxy = {
        "name": "proxy", "role": "proxy", "kind": "program", "ready": {"kind": "log-line", "line": "passing on"},
        "passes_to": "broker",
        "program": {"command": [sys.executable, "{directory}/bin/proxy.py", "{address}", "{port}", "10.77.0.1"],
                    "files": {"bin/proxy.py": PROXY}},
    }
    values = scenario([{"name": "broker"}, proxy], "proxy", backend=backend)
    values["networks"] = [{"between": ["field", "proxy"], **LINE}, {"between": ["proxy", "broker"], **LINE},
                          {"between": ["near", "broker"], **LINE}]
    values["groups"].append({"name": "s1", "host": "near", "connects_to": "broker",
                             "subscribe": [{"filter": "t/#", "qos": 1}]})
    outcome = run(values, tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    found = deliveries(recording).group_by("subscriber_group").agg(pl.len(), pl.col("latency_ms").min()).sort(
        "subscriber_group")
    # Field, proxy, broker, proxy, field: four links of 5 ms; to the broker's own client three. The emulator releases a
    # frame some microseconds early, so that it arrives in time.
    (_, through, back), (_, straight, there) = found.rows()
    assert (through, straight) == (20, 20)
    assert 19.9 <= back < 24 and 14.9 <= there < 19
    assert set(recording.messages["fate"].to_list()) == {"delivered"}, "both are expected, and nobody else"
    if backend == "sim":
        # 20 us at the proxy each way, 20 us and 10 us a copy at the broker, 50 us until the client wakes up;
        # and what is passed on before it: the other copy, the acknowledgement.
        assert 20 + 0.02 + 0.03 + 0.02 + 0.05 <= back + 1e-9 <= 20.17
        assert recording.control_packets.filter(kind="CONNECT")["client"].to_list().count(0) == 2, "on both ways"


@pytest.mark.parametrize("when", ["go-on", "end-run"])
def test_the_end_of_a_server_means_what_the_scenario_says(when: str, tmp_path: Path) -> None:
    short = {
        "name": "short", "role": "proxy", "kind": "program", "when_it_dies": when, "host": "broker", "port": 1999,
        "ready": {"kind": "log-line", "line": "here"},
        "program": {"command": ["sh", "-c", "echo here; sleep 0.8; exit 7"]},
    }
    values = scenario([{"name": "broker"}, short], "broker")
    outcome = run(values, tmp_path / "run")
    recording = Recording.open(tmp_path / "run")
    ended = recording.events.filter(pl.col("kind") == "server_exit", pl.col("detail").str.contains("exit status 7"))
    assert ended["detail"].to_list() == ["short: exit status 7"]
    if when == "go-on":
        assert outcome.verdict == "complete" and len(deliveries(recording)) == 20
        assert any("`short` ended during the run" in warning for warning in outcome.warnings)
    else:
        assert outcome.verdict == "incomplete"
        assert outcome.reason == "the server `short` ended during the run (exit status 7); see short.log"


def test_a_server_that_never_becomes_ready_fails_the_run_and_says_what_was_missing(tmp_path: Path) -> None:
    deaf = {
        "name": "deaf", "kind": "program", "ready": "connack", "start_timeout": "1 s",
        "program": {"command": [sys.executable, "-m", "http.server", "--bind", "{address}", "{port}"]},
    }
    outcome = run(scenario([deaf], "deaf"), tmp_path / "run")
    assert outcome.verdict == "failed"
    assert str(outcome.reason).startswith("server `deaf`: it sent no CONNACK within")


def test_what_a_broker_may_have_dropped_at_the_end_is_unknown_and_its_cause_is_known_when_simulated(
        tmp_path: Path) -> None:
    """Six messages at most wait or are in flight; Mosquitto's log says for whom it drops others, and not which."""
    def perform_in(backend: str) -> pl.DataFrame:
        link = {"rate": "1 Mbit/s", "delay": "200 ms"}
        values = {
            "name": "drops", "backend": backend, "hosts": {"near": {}, "far": {}},
            "phases": {"warm_up": "0 s", "duration": "3 s", "cool_down": "100 ms"},
            "broker": {"max_inflight": 2, "max_queued": 4},
            "networks": [{"between": ["near", "broker"], "up": {}, "down": {}},
                         {"between": ["far", "broker"], "up": link, "down": link}],
            "groups": [
                {"name": "pub", "host": "near", "count": 1,
                 "publish": {"topic": "t", "qos": 1, "payload": "100 B", "rate": "50 /s"}},
                {"name": "sub", "host": "far", "count": 1, "subscribe": [{"filter": "t", "qos": 1}]},
                # Its queue is never full: what it has not got is under way.
                {"name": "quick", "host": "near", "count": 1, "subscribe": [{"filter": "t", "qos": 1}]}]}
        assert run(values, tmp_path / backend).verdict == "complete"
        recording = Recording.open(tmp_path / backend)
        assert recording.clients.filter(group="quick")["unknown"].item() == 0
        number = recording.clients.filter(group="sub")["client"].item()
        return recording.messages.filter(subscriber=number)

    live, simulated = perform_in("live"), perform_in("sim")
    assert simulated.filter(fate="under_way").height <= 6
    assert set(simulated.filter(fate="lost")["cause"].cast(pl.String)) == {"queue_full"}
    # After the last delivery nothing overtakes; 10 or more are sent until the end, and 6 have room.
    assert live.filter(fate="lost")["cause"].cast(pl.String).unique().to_list() == ["queue_full"]
    assert set(live.filter(fate="unknown")["cause"].cast(pl.String)) == {"queue_full"}
    assert live.filter(fate="unknown").height > 6 and live.filter(fate="delivered").height >= 8
    began = Recording.open(tmp_path / "live").events.filter(kind="queue_full")
    assert began.select("detail").rows() == [("broker",)]
    # What the broker had before it dropped any has not been dropped; what it has not acknowledged it may not have.
    under_way = live.filter(fate="under_way")
    assert under_way.filter(pl.col("acknowledged_ns") >= began["at_ns"].item()).is_empty()
    assert any("does not say which" in words for words in Recording.open(tmp_path / "live").run["warnings"])


def test_clients_with_one_identifier_are_told_apart_by_their_hosts_and_take_over_alike_in_both_backends(
        tmp_path: Path) -> None:
    """The second one ends the first one's session ([MQTT-3.1.4-2]), with its will, or goes on with it, without."""
    def told(backend: str, clean: bool) -> dict[str, list[int]]:
        def link(delay: str) -> dict[str, Any]:
            return {"up": {"delay": delay}, "down": {"delay": delay}}

        subscriber = {
            "subscribe": [{"filter": "t", "qos": 1}], "reconnect": {"enabled": False},
            "mqtt": {"client_id": "one", "clean_session": clean, "will": {"topic": "gone", "payload": "x", "qos": 1}}}
        values = {
            "name": "rivals", "backend": backend, "hosts": {"near": {}, "far": {}, "desk": {}},
            "phases": {"warm_up": "0 s", "duration": "1 s", "cool_down": "5 s"},
            "networks": [{"between": ["near", "broker"], **link("10 ms")},
                         {"between": ["far", "broker"], **link("60 ms")},
                         {"between": ["desk", "broker"], **link("5 ms")}],
            "groups": [{"name": "near", "host": "near", **subscriber}, {"name": "far", "host": "far", **subscriber},
                       {"name": "desk", "host": "desk", "subscribe": [{"filter": "gone", "qos": 1}],
                        "publish": {"topic": "t", "qos": 1, "payload": "100 B", "rate": "10 /s"}}]}
        outcome = run(values, tmp_path / f"{backend}-{clean}")
        assert outcome.verdict == "complete", outcome.reason
        recording = Recording.open(outcome.directory)
        names = recording.clients["group"].to_list()
        packets = recording.control_packets.with_columns(
            pl.col("client").replace_strict(dict(enumerate(names)), return_dtype=pl.String))
        kinds = packets.group_by("client").agg((pl.col("kind").cast(pl.String) == kind).sum().alias(kind)
                                               for kind in ("CONNECT", "SUBSCRIBE", "PUBLISH"))
        found = {row[0]: list(row[1:]) for row in kinds.rows()}
        return {**found, "wills": [recording.messages.filter(fate="will").height]}

    for clean in (True, False):
        live, simulated = told("live", clean), told("sim", clean)
        assert live == simulated
        # One connection and one subscription each; the messages to the one that came last; the will to the desk.
        assert live["near"] == [1, 1, 0] and live["far"] == [1, 1, 10]
        assert live["desk"] == [1, 1, 11 if clean else 10] and live["wills"] == [int(clean)]
