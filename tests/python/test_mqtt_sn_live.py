"""MQTT-SN in live runs: our gateway and others', our clients and others'."""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import assert_undivided, early_ms
from mqttlab.engine import engine_path
from mqttlab.metrics import PARTS, attribution, attribution_coverage, deliveries, evidence, silent_groups
from mqttlab.metrics.attribution import intervals
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.runs.perform import Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from ports import own_port
from test_mqtt_sn import beside_the_gateway, scenario
from test_mqtt_sn_parts import parts_of
from test_mqtt_sn_sim import rested, with_a_mote

pytestmark = pytest.mark.live
MODES = ("transparent", "aggregating")
TCP, UDP = 6, 17


def run(values: dict[str, Any], directory: Path) -> Outcome:
    return perform(Job(compile_plan(parse_values({**values, "backend": "live"})), directory), lambda line: None)


def other_program(name: str) -> str:
    """The path of a program by others, or a skip: no package registry has these, so that few machines do."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on the PATH")
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_pass_both_ways_through_our_gateway(mode: str, qos: int, tmp_path: Path) -> None:
    outcome = run(scenario(mode=mode, qos=qos), tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    found = deliveries(recording)
    by_group = found.group_by(pl.col("subscriber_group").cast(pl.String)).agg(
        pl.len(), pl.col("latency_ms").min()).sort("subscriber_group")
    # Three sensors, twenty messages each: over MQTT-SN to an MQTT subscriber, and over MQTT-SN again.
    assert by_group.select("subscriber_group", "len").rows() == [("back", 60), ("office", 60)]
    back, office = by_group["latency_ms"]
    assert office >= 10 - early_ms(recording, 2) and back >= 15 - early_ms(recording, 3), "5 ms on each link"
    refused = recording.events.filter(pl.col("kind").is_in(["refused", "disconnect"]))
    assert refused.is_empty(), refused


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("beside", ["sensors", "broker"])
def test_what_stays_within_the_gateways_host_is_captured(beside: str, mode: str, tmp_path: Path) -> None:
    values = beside_the_gateway(beside, mode)
    live, sim = (
        Recording.open(perform(Job(compile_plan(parse_values({**values, "backend": backend})), tmp_path / backend),
                               lambda line: None).directory) for backend in ("live", "sim"))
    assert live.layout["links"] == sim.layout["links"]
    frames = live.packets.filter(pl.col("link") == "loopback")
    assert set(frames["protocol"].to_list()) == {UDP if beside == "sensors" else TCP}
    kinds = ["CONNECT", "CONNACK", "REGISTER", "REGACK", "PUBLISH", "PUBACK"]
    counts = [recording.control_packets.filter(pl.col("kind").is_in(kinds)).group_by("protocol", "kind").len()
              .sort("protocol", "kind").rows() for recording in (live, sim)]
    assert counts[0] == counts[1]
    assert (live.control_packets["seen_by"] == "capture").all()
    assert silent_groups(live) == {}
    covered = attribution_coverage(live)
    assert (covered.attributed, covered.by_clients) == (covered.delivered, 0)


def test_what_the_air_loses_is_sent_again(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["networks"][0]["up"]["loss"] = "20 %"
    outcome = run(values, tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    found = deliveries(Recording.open(tmp_path / "run")).filter(pl.col("subscriber_group") == "office")
    assert found.height == 60
    # T_retry is 300 ms.
    assert found["latency_ms"].max() > 300  # type: ignore[operator]


def test_a_sleepers_radio_is_off_while_it_sleeps(tmp_path: Path) -> None:
    outcome = run(with_a_mote(), tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    assert deliveries(recording).filter(pl.col("subscriber_group") == "back").height == 60
    station, slept = rested(recording)
    # Awake for what is left of an exchange, of which each nap has one; told late, it counts from when that was.
    naps = (recording.events["kind"].cast(pl.String) == "awake").sum()
    assert slept - 0.05 * naps < station["sleep_s"] <= slept + 0.001
    awake = station["transmit_s"] + station["receive_s"] + station["idle_s"]
    assert station["energy_j"] == pytest.approx(
        3 * (8.47e-3 * station["transmit_s"] + 7.03e-3 * (awake - station["transmit_s"]) + 0.2e-6 * station["sleep_s"]))


@pytest.mark.parametrize("mode", MODES)
def test_a_simulation_loses_the_datagrams_that_a_live_run_loses(mode: str, tmp_path: Path) -> None:
    def performed(backend: str) -> Recording:
        values = scenario(mode=mode, qos=1)
        values["networks"][0]["up"]["loss"] = values["networks"][0]["down"]["loss"] = "15 %"
        values["networks"][0] |= {way: values["networks"][0][way] | {"delay": "20 ms"} for way in ("up", "down")}
        del values["groups"][2]
        outcome = perform(Job(compile_plan(parse_values({**values, "backend": backend})), tmp_path / backend),
                          lambda line: None)
        assert outcome.verdict == "complete", outcome.reason
        return Recording.open(tmp_path / backend)

    def sent(recording: Recording) -> dict[tuple[Any, ...], list[bool]]:
        """Of each packet's copies, in their order, which were lost."""
        packets = recording.control_packets.filter(pl.col("protocol").cast(pl.String) == "mqtt-sn")
        # A real gateway that is ended with its broker may say so to clients whose own DISCONNECT was lost.
        is_farewell = (pl.col("kind") == "DISCONNECT") & (pl.col("direction") == "to_client")
        packets = packets.filter(~is_farewell)
        found = packets.sort("first_sent_ns").select(
            pl.col("client"), pl.col("direction", "kind").cast(pl.String), pl.col("packet_id").fill_null(0),
            pl.col("complete_ns").is_null())
        fates: dict[tuple[Any, ...], list[bool]] = {}
        for *packet, lost in found.rows():
            fates.setdefault(tuple(packet), []).append(lost)
        return fates

    live, simulated = performed("live"), performed("sim")
    lived, simed = sent(live), sent(simulated)
    assert sum(sum(copies) for copies in lived.values()) > 5, "the air loses datagrams"
    assert lived.keys() == simed.keys()
    # The air decides of each copy by its name. A busy machine may answer after T_retry, and be asked once more.
    for packet, copies in simed.items():
        assert lived[packet][:len(copies)] == copies, packet
    latency = [deliveries(recording)["latency_ms"] for recording in (live, simulated)]
    assert [len(values) for values in latency] == [60, 60]
    if lived != simed:
        pytest.skip("the machine was busy, and answers came after T_retry: times were not compared")
    # What waits for a repetition or two decides the mean: 300 ms each.
    assert latency[1].mean() == pytest.approx(latency[0].mean(), rel=0.1)
    # And the time went to the same parts.
    parts = [parts_of(recording) for recording in (live, simulated)]
    for part in ("register_ns", "retry_ns", "wire_to_broker_ns", "wire_to_subscriber_ns"):
        lived, simed = (table[part].mean() for table in parts)
        assert simed == pytest.approx(lived, rel=0.1, abs=2e6), part
    assert parts[1]["retry_ns"].max() >= 300e6  # type: ignore[operator]


def test_a_sleeper_gets_what_was_kept_and_a_client_without_a_connection_is_heard(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["groups"][2]["mqtt_sn"] |= {"sleep": {"duration": "5 s", "wake_every": "500 ms", "linger": "20 ms"}}
    values["groups"].append({
        "name": "mute", "host": "field", "connects_to": "gateway", "protocol": "mqtt-sn",
        "mqtt_sn": {"without_connection": True, "predefined_topics": {"mute/0": 7}},
        "publish": {"topic": "mute/0", "payload": "20 B", "interval": "100 ms"},
    })
    values["servers"][0]["gateway"]["predefined_topics"] = {"mute/0": 7}
    values["groups"][1]["subscribe"].append("mute/#")
    outcome = run(values, tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    found = deliveries(Recording.open(tmp_path / "run"))
    slept = found.filter(pl.col("subscriber_group") == "back")
    assert slept.height == 60
    assert slept["latency_ms"].max() > 200, "who sleeps for 500 ms has waited"  # type: ignore[operator]
    assert found.filter(pl.col("publisher_group") == "mute").height == 20


@pytest.mark.parametrize("name", ["bisquitt", "paho"])
def test_our_clients_work_with_other_gateways(name: str, tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    del values["groups"][2]
    if name == "bisquitt":
        program = {"command": [other_program("bisquitt"), "--mqtt-host", "{broker_address}", "--mqtt-port",
                               "{broker_port}", "--host", "{address}", "--port", "{port}"]}
    else:
        settings = ("GatewayID=1\nGatewayName=judge\nMaxNumberOfClients=30\nKeepAlive=60\nBrokerName={broker_address}\n"
                    "BrokerPortNo={broker_port}\nAggregatingGateway=NO\nQoS-1=NO\nForwarder=NO\nPredefinedTopic=NO\n"
                    "ClientAuthentication=NO\nGatewayPortNo={port}\nMulticastPortNo=1888\nMulticastIP=225.1.1.1\n"
                    "MulticastTTL=1\nShearedMemory=NO\n")
        # It joins a multicast group, for which its host needs a route.
        gateway = other_program("MQTT-SNGateway")
        start = f"ip route add 224.0.0.0/4 dev lo && exec {gateway} -f {{directory}}/gateway.conf"
        program = {"command": ["sh", "-c", start],
                   "files": {"gateway.conf": settings}}
    values["servers"][0] |= {"kind": "program", "program": program}
    outcome = run(values, tmp_path / "run")
    log = tmp_path / "run" / "gateway.log"
    said = log.read_text(encoding="utf-8")[-2000:] if log.exists() else ""
    assert outcome.verdict == "complete", (outcome.reason, said)
    assert deliveries(Recording.open(tmp_path / "run")).height == 60


def until_it_accepts(program: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        assert program.poll() is None, "the broker has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the broker does not accept"
            time.sleep(0.02)


@contextmanager
def gateway(directory: Path, mode: str) -> Iterator[int]:
    """Mosquitto and our gateway on the machine's own loopback; the gateway's port."""
    mosquitto = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if mosquitto is None:
        pytest.skip("mosquitto is not installed")
    values = scenario(mode=mode, qos=1)
    values["servers"][0]["gateway"]["predefined_topics"] = {"known/topic": 5}
    plan = compile_plan(parse_values({**values, "backend": "live"}))
    process = plan["servers"][1]["process"]
    assert process is not None
    text = process["files"][0]["text"]
    port = own_port()
    listen, broker = (f"{server['endpoints'][0]['address']}:{server['endpoints'][0]['port']}" for server in (
        plan["servers"][1], plan["servers"][0]))
    text = text.replace(listen, "127.0.0.1:0").replace(broker, f"127.0.0.1:{port}")
    (directory / "gateway.json").write_text(text, encoding="utf-8")
    with ExitStack() as programs:
        def start(*command: str, **pipes: Any) -> subprocess.Popen[Any]:
            program = subprocess.Popen(command, **pipes)
            programs.callback(program.wait, timeout=20)
            programs.callback(program.send_signal, signal.SIGTERM)
            return program

        until_it_accepts(start(mosquitto, "-p", str(port), stderr=subprocess.DEVNULL), port)
        ours = start(str(engine_path()), "gateway", "--settings", str(directory / "gateway.json"),
                     stdout=subprocess.PIPE, text=True)
        assert ours.stdout is not None
        said = ours.stdout.readline()
        listens = re.fullmatch(r"mqttlab gateway listens on 127\.0\.0\.1:(\d+)\n", said)
        assert listens, said
        yield int(listens[1])


class Ear:
    """What a program that subscribes prints, line by line: the payload behind the topic."""

    def __init__(self, command: list[str]) -> None:
        self.program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        assert self.program.stdout is not None
        for line in self.program.stdout:
            self.lines.put(line.rstrip("\n").split(": ")[-1])

    def hears(self, timeout_s: float, but: str = "") -> str | None:
        """The next payload other than `but`; None where none comes in time."""
        try:
            while (payload := self.lines.get(timeout=timeout_s)) == but:
                pass
            return payload
        except queue.Empty:
            return None

    def end(self) -> None:
        self.program.send_signal(signal.SIGTERM)
        self.program.wait(timeout=20)


@pytest.mark.parametrize("mode", MODES)
def test_our_gateway_works_with_other_clients(mode: str, tmp_path: Path) -> None:
    publisher, subscriber = other_program("mqtt-sn-pub"), other_program("mqtt-sn-sub")
    with gateway(tmp_path, mode) as port:
        at = ["-h", "127.0.0.1", "-p", str(port)]

        def publish(*words: str) -> None:
            subprocess.run([publisher, *at, *words], check=True, timeout=20)

        ear = Ear([subscriber, *at, "-v", "-i", "ear", "-t", "a/#", "-t", "known/topic"])
        try:
            # It subscribes to the known topic last: what is heard there says that both subscriptions stand.
            deadline = time.monotonic() + 20
            heard = None
            while heard is None and time.monotonic() < deadline:
                publish("-q", "-1", "-T", "5", "-m", "ready?")
                heard = ear.hears(0.2)
            assert heard == "ready?"
            for words in (["-t", "a/b", "-m", "zero"], ["-q", "1", "-t", "a/b", "-m", "one"],
                          ["-q", "-1", "-T", "5", "-m", "minus one"],
                          ["--fe", "-q", "1", "-t", "a/c", "-m", "forwarded"]):
                publish(*words)
                assert ear.hears(20, but="ready?") == words[-1]
        finally:
            ear.end()


@pytest.mark.parametrize("mode", MODES)
def test_our_gateway_works_with_the_client_from_pypi(mode: str, tmp_path: Path) -> None:
    """mqtt-sn-12: another maker's packets at QoS 0 to 2, and REGISTER for a filter with wild cards."""
    mqttsn12 = pytest.importorskip("mqttsn12.client.MqttSnClient", reason="`.[test]` installs mqtt-sn-12")
    heard: list[tuple[str, bytes]] = []

    class Listener(mqttsn12.MqttSnListener):  # type: ignore[misc, name-defined]
        def message_arrived(self, message: Any) -> None:
            heard.append((message.get_topic_name(), bytes(message.get_payload())))

    with gateway(tmp_path, mode) as port:
        clients = [mqttsn12.MqttSnClient() for _ in range(2)]
        try:
            for name, client in zip(("ear", "mouth"), clients, strict=True):
                client.set_client_id(name)
                client.set_timeout(5)
                client.open("127.0.0.1", port)
                client.send_connect()
            ear, mouth = clients
            # At QoS 1 it acknowledges nothing that it receives, and hears the first message again and again.
            ear.send_subscribe("a/#", 0, Listener())
            for qos in range(3):
                mouth.send_publish("a/b", f"at {qos}".encode(), qos)
            deadline = time.monotonic() + 20
            while len(heard) < 3 and time.monotonic() < deadline:
                ear.polling()
            mouth.send_disconnect()
        finally:
            for client in clients:
                client.close()
    # What it published it need not hear in order: at QoS 0 nothing is awaited.
    assert sorted(heard) == [("a/b", b"at 0"), ("a/b", b"at 1"), ("a/b", b"at 2")]


def told(recording: Recording) -> list[tuple[Any, ...]]:
    """What clients of MQTT-SN sent and received, repetitions aside: whose it was, what, and its bytes."""
    text = pl.col("direction", "kind", "protocol").cast(pl.String)
    known = recording.control_packets.with_columns(text).filter(pl.col("protocol") == "mqtt-sn")
    columns = ("client", "direction", "kind", "qos", "reason", "publisher", "sequence", "fixed_header_bytes",
               "topic_bytes", "packet_id_bytes", "payload_bytes")
    # Who has said DISCONNECT does not read the answer.
    known = known.filter((pl.col("direction") == "to_broker") | (pl.col("kind") != "DISCONNECT"))
    return known.select(columns).unique().sort(pl.all()).rows()


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_without_frames_clients_tell_of_the_packets_that_frames_would_show(qos: int, tmp_path: Path) -> None:
    emulated = scenario(qos=qos)
    # Somebody publishes over MQTT, too, for those who listen behind the gateway.
    emulated["groups"].append({
        "name": "switch", "host": "desk", "connects_to": "broker",
        "publish": {"topic": "s/on", "qos": qos, "payload": "30 B", "interval": "200 ms"}})
    direct = {**emulated, "network": "direct"}
    del direct["networks"]
    found = {}
    for name, values in (("direct", direct), ("emulated", emulated)):
        assert run(values, tmp_path / name).verdict == "complete"
        found[name] = Recording.open(tmp_path / name)
    recording = found["direct"]
    assert recording.rows("packets") == 0
    seen = recording.control_packets.select("seen_by", "transport", "protocol").unique()
    assert set(seen.rows()) == {("client", "tcp", "mqtt"), ("client", "udp", "mqtt-sn")}
    assert told(recording) == told(found["emulated"])
    covered = attribution_coverage(recording)
    # Three sensors with 20 messages and a switch with 10, to two subscribers each.
    assert (covered.delivered, covered.attributed, covered.by_clients) == (140, 140, 140)
    table = attribution(recording)
    assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    assert_undivided(table)
    assert table.select("gateway_ns", "broker_ns", "wire_to_broker_ns").sum().row(0) == (0, 0, 0)
    legs = evidence(recording).legs
    assert legs["leg"].is_unique().all()
    lengths = intervals(legs).group_by("leg", "part").agg((pl.col("to_ns") - pl.col("from_ns")).sum().alias("ns"))
    told_parts = legs.select("leg", *PARTS).unpivot(index="leg", variable_name="part", value_name="ns")
    assert sorted(lengths.rows()) == sorted(told_parts.filter(pl.col("ns") != 0).rows())
    assert silent_groups(recording) == {}


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv") or not Path("/dev/net/tun").exists(),
                    reason="takes a capability away, which only root may, and needs TUN devices for the rest")
def test_beside_frames_only_what_lies_before_the_gateway_is_undivided(tmp_path: Path) -> None:
    values = {**scenario(), "backend": "live", "live": {"port": "tun"}}
    # The sensors are on the gateway's own host, where nobody may listen.
    values["groups"][0] |= {"host": "gateway"}
    job = Job(compile_plan(parse_values(values)), tmp_path / "run")
    done = subprocess.run(
        ["setpriv", "--bounding-set", "-net_raw", engine_path(), *job.arguments], input=job.text, text=True,
        capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    recording = Recording.open(tmp_path / "run")
    table = attribution(recording)
    assert table["unattributed"].null_count() == table.height == 120
    assert table["seen_by"].unique().to_list() == ["both"]
    assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    # From the gateway on all is seen; what it had a message for is a part of the way to it.
    assert_undivided(table)
    # A sender that lost its processor looked at its clock when its frame was under way: the way is shorter by that.
    way = table["wire_to_broker_ns"] + table["adjusted_ns"]
    assert way.min() >= 1e6 * (5 - early_ms(recording, 1))  # type: ignore[operator]

