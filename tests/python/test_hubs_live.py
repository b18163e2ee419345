"""Protocols around a hub, live: our hub, and one that knows nothing of ours; beside the simulation of the scenario."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.engine import engine_path
from mqttlab.metrics import attribution_coverage, deliveries
from mqttlab.plan.declared import HUB_PROTOCOLS
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.runs.perform import Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_hubs import scenario

# `tell` after its description alone: HELLO 0, WELCOME 1, HEARD 2, MESSAGE 3, BYE 4.
OTHER_HUB = textwrap.dedent("""
    import socket, sys
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.bind((sys.argv[1], int(sys.argv[2])))
    filters, last = {}, {}

    def wants(wanted, topic):
        wanted, topic = wanted.split("/"), topic.split("/")
        return len(wanted) == len(topic) and all(w in ("+", t) for w, t in zip(wanted, topic))

    while True:
        packet, who = here.recvfrom(65536)
        kind, flags, number, rest = packet[0], packet[1], packet[2:4], packet[4:]
        if kind == 0:
            filters[who] = rest.decode().split("\\n")[1:]
            here.sendto(b"\\x01\\x00" + number, who)
        elif kind == 4:
            filters.pop(who, None)
        elif kind == 3:
            if flags & 1:
                here.sendto(b"\\x02\\x00" + number, who)
                if last.get(who) == number:
                    continue
                last[who] = number
            topic = rest[2:2 + int.from_bytes(rest[:2], "big")].decode()
            for there, asked in filters.items():
                if any(wants(one, topic) for one in asked):
                    here.sendto(b"\\x03\\x00\\x00\\x00" + rest, there)
""")


def run(values: dict[str, Any], directory: Path, backend: str = "live") -> Outcome:
    return perform(Job(compile_plan(parse_values({**values, "backend": backend})), directory), lambda line: None)


def recorded(values: dict[str, Any], directory: Path, backend: str = "live") -> Recording:
    outcome = run(values, directory, backend)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def packets(recording: Recording) -> list[tuple[Any, ...]]:
    """What was sent by whom, how often, and how much of it came."""
    found = recording.control_packets.with_columns(pl.col("direction", "kind").cast(pl.String))
    # Who is told to end reads no more.
    found = found.filter(pl.col("kind") != "BYE")
    sizes = ("fixed_header_bytes", "topic_bytes", "packet_id_bytes", "payload_bytes")
    return found.group_by("client", "direction", "kind", "dup", "qos", *sizes).agg(
        pl.len(), arrived=pl.col("complete_ns").count()).sort(pl.all()).rows()


def fates(recording: Recording) -> list[tuple[Any, ...]]:
    return recording.messages.select("publisher", "sequence", "subscriber", pl.col("fate").cast(pl.String)).sort(
        pl.all()).rows()


def paced(protocol: str = "tell", qos: int = 1) -> dict[str, Any]:
    """Over links that lose, with so much time between any two things that no delay of a busy machine changes what is
    sent: answers take 12 ms, repetitions 150 ms, the next message 400 ms. Dice are thrown by a connection's
    number on its host, so that no host opens two at once."""
    values = scenario(protocol, qos, loss="10 %")
    values["phases"]["duration"] = "8 s"
    values["networks"].append({**values["networks"][0], "between": ["office", "hub"]})
    sensors, office, _ = values["groups"]
    sensors |= {"connect_over": "900 ms"}
    sensors["publish"]["interval"] = "400 ms"
    office |= {"connect_over": "600 ms", "host": "office"}
    for group in values["groups"]:
        group["hub"] = {"settings": {"repeat": "150 ms"}}
    return values


@pytest.mark.live
@pytest.mark.parametrize("protocol", HUB_PROTOCOLS)
@pytest.mark.parametrize("qos", [0, 1])
def test_a_live_run_has_the_packets_and_losses_of_its_simulation(protocol: str, qos: int, tmp_path: Path) -> None:
    values = paced(protocol, qos)
    sim, live = recorded(values, tmp_path / "sim", "sim"), recorded(values, tmp_path / "live")
    assert packets(sim) == packets(live)
    assert fates(sim) == fates(live) and "lost" in {fate for *_, fate in fates(live)}
    covered = attribution_coverage(live)
    assert covered.attributed == covered.delivered == deliveries(live).height > 100, covered


@pytest.mark.live
def test_without_frames_the_clients_tell_of_their_packets(tmp_path: Path) -> None:
    values = scenario()
    del values["networks"]
    recording = recorded({**values, "network": "direct"}, tmp_path / "run")
    assert deliveries(recording).height == 140
    found = recording.control_packets.with_columns(pl.col("kind", "protocol", "seen_by", "transport").cast(pl.String))
    assert set(found["seen_by"]) == {"client"} and set(found["protocol"]) == {"tell"}
    assert set(found["transport"]) == {"udp"}
    counted = dict(found.filter(pl.col("kind") != "BYE").group_by("kind").len().rows())
    assert counted == {"HELLO": 6, "WELCOME": 6, "MESSAGE": 60 + 140, "HEARD": 60}
    messages = found.filter(kind="MESSAGE")
    assert messages["topic"].null_count() == messages["publisher"].null_count() == 0
    assert set(messages["topic"].cast(pl.String)) == {"t/0", "t/1", "t/2"}


@pytest.mark.live
@pytest.mark.parametrize("payload", ["0 B", "4 B", "1400 B"])
def test_empty_small_and_large_messages_pass(payload: str, tmp_path: Path) -> None:
    recording = recorded(scenario(payload=payload), tmp_path / "run")
    assert deliveries(recording).height == 140
    assert set(recording.messages["payload_bytes"]) == {int(payload.split()[0])}


@pytest.mark.live
def test_another_hub_is_measured_like_ours(tmp_path: Path) -> None:
    values = paced()
    program = {"command": [sys.executable, "{directory}/hub.py", "{address}", "{port}"], "files": {"hub.py": OTHER_HUB}}
    theirs = json.loads(json.dumps(values))
    theirs["servers"][0] |= {"kind": "program", "program": program}
    ours, other = recorded(values, tmp_path / "ours"), recorded(theirs, tmp_path / "other")
    assert packets(ours) == packets(other) and fates(ours) == fates(other)


@pytest.mark.live
def test_a_hub_that_ends_ends_the_run_and_what_was_recorded_is_there(tmp_path: Path) -> None:
    values = scenario()
    program = {"command": [sys.executable, "-c", "import time; time.sleep(1.5)"]}
    values["servers"][0] |= {"kind": "program", "program": program, "ready": {"kind": "log-line", "line": "never"}}
    outcome = run(values, tmp_path / "silent")
    assert outcome.verdict != "complete" and "hub" in (outcome.reason or ""), outcome


def test_a_hub_says_where_it_listens_counts_noise_and_ends_by_a_signal(tmp_path: Path) -> None:
    settings = tmp_path / "hub.json"
    settings.write_text(json.dumps({"listen": "127.0.0.1:0", "protocol": "tell", "settings": {}}), encoding="utf-8")
    with subprocess.Popen([engine_path(), "hub", "--settings", settings], stdout=subprocess.PIPE, text=True) as hub:
        try:
            assert hub.stdout is not None
            listens = re.fullmatch(r"mqttlab hub listens on 127\.0\.0\.1:(\d+)\n", hub.stdout.readline())
            assert listens
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(30)
                client.connect(("127.0.0.1", int(listens[1])))
                for noise in (b"", b"\xff" * 9, b"\x03\x00\x00\x01\xff\xff"):
                    client.send(noise)
                client.send(b"\x00\x00\x00\x07me\na/+")
                assert client.recv(100) == b"\x01\x00\x00\x07"
                client.send(b"\x03\x01\x00\x08\x00\x03a/bhello")
                assert sorted([client.recv(100), client.recv(100)]) == [
                    b"\x02\x00\x00\x08", b"\x03\x00\x00\x00\x00\x03a/bhello"]
            hub.send_signal(signal.SIGTERM)
            counted = json.loads(hub.stdout.read())
        finally:
            hub.kill()
    assert counted == {"received": 5, "sent": 3, "malformed": 3, "unsent": 0}
