"""Captures of real clients at a real broker over WebSocket: what the clients counted, and what tshark reads.

Clients, broker and capture share one network namespace's loopback. One capture holds everything; tests take what
they need from it, and spoil it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from live import able
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.text import verdict

TOOLS = ("mosquitto", "dumpcap", "editcap", "capinfos", "tshark", "ip")
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
REASON = f"needs {', '.join(MISSING)}" if MISSING else able()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")
MESSAGES = 60
SIZE = pl.sum_horizontal("fixed_header_bytes", "topic_bytes", "packet_id_bytes", "property_bytes", "payload_bytes")
PORTS = {"plain": 1883, "websocket": 9001}
# Publishes at all three levels of QoS, hears everything itself, and says what it counted. Sizes differ, so that frames
# have short and long lengths, and segments end anywhere.
CLIENT = """
import json, sys, threading
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion
kind, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
transport = "websockets" if kind in ("websocket", "wss") else "tcp"
client = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"client-{kind}", transport=transport)
heard, all_heard, ready = [], threading.Event(), threading.Event()
def on_message(_, __, message):
    heard.append(message.payload)
    if len(heard) == count:
        all_heard.set()
client.on_message = on_message
client.on_connect = lambda *_: client.subscribe(f"lab/{kind}/#", qos=2)
client.on_subscribe = lambda *_: ready.set()
client.connect("127.0.0.1", port)
client.loop_start()
assert ready.wait(20)
for number in range(count):
    info = client.publish(f"lab/{kind}/{number % 3}", b"%06d" % number + b"." * (number * 97 % 4000), qos=number % 3)
    info.wait_for_publish(20)
assert all_heard.wait(20)
client.disconnect()
client.loop_stop()
print(json.dumps(len(heard)))
"""


def shell(*words: object) -> str:
    """A program that must succeed; what it prints."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(timeout=20)


@dataclass(frozen=True)
class Site:
    """One namespace with a loopback interface."""

    name: str

    def start(self, *words: object, output: int | None = None, errors: int | None = None) -> subprocess.Popen[str]:
        """A program inside."""
        command = ["ip", "netns", "exec", self.name, *map(str, words)]
        return subprocess.Popen(command, text=True, stdout=output, stderr=errors)

    def run(self, *words: object) -> str:
        """A program inside that must succeed; what it prints."""
        return shell("ip", "netns", "exec", self.name, *words)


def broker(site: Site, directory: Path) -> subprocess.Popen[str]:
    """Mosquitto, ready on all its ports."""
    settings = directory / "mosquitto.conf"
    settings.write_text(
        "user root\nallow_anonymous true\nlistener 1883\nlistener 9001\nprotocol websockets\n", encoding="utf-8")
    process = site.start("mosquitto", "-c", settings, errors=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    for port in PORTS.values():
        # libwebsockets listens on both IP versions by one socket.
        while f":{port:04X} 00" not in site.run("cat", "/proc/net/tcp", "/proc/net/tcp6"):
            assert time.monotonic() < deadline, port
            time.sleep(0.05)
    return process


@dataclass(frozen=True)
class Captured:
    """A capture, and what each client heard."""

    file: Path
    heard: dict[str, int]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captured]:
    directory = tmp_path_factory.mktemp("layers")
    site, file = Site(f"mqy{os.getpid()}"), directory / "lo.pcapng"
    with ExitStack() as stack:
        stack.callback(subprocess.run, ["ip", "netns", "delete", site.name], capture_output=True)
        shell("ip", "netns", "add", site.name)
        shell("ip", "-n", site.name, "link", "set", "lo", "mtu", "1500", "up")
        stack.callback(ended, broker(site, directory))
        # dumpcap gives up root, and must write all the same.
        directory.chmod(0o777)
        for parent in (directory.parent, directory.parent.parent):
            parent.chmod(parent.stat().st_mode | 0o055)
        capture = site.start("dumpcap", "-q", "-i", "lo", "-w", file, errors=subprocess.PIPE)
        assert capture.stderr is not None
        while "File:" not in capture.stderr.readline():
            assert capture.poll() is None
        clients = {
            kind: site.start(sys.executable, "-c", CLIENT, kind, port, MESSAGES, output=subprocess.PIPE)
            for kind, port in PORTS.items()
        }
        heard = {kind: json.loads(client.communicate(timeout=60)[0]) for kind, client in clients.items()}
        time.sleep(1)
        ended(capture)
    assert heard == dict.fromkeys(PORTS, MESSAGES)
    yield Captured(file, heard)


def read(file: Path, tmp_path: Path, *options: str) -> Recording:
    outcome = import_evidence("capture", [file], tmp_path / "imported", lambda line: None, options=options)
    return Recording.open(outcome.directory)


def only(kind: str, captured: Captured, directory: Path) -> Path:
    """The frames of one kind of client."""
    file = directory / f"{kind}.pcapng"
    shell("tshark", "-r", captured.file, "-Y", f"tcp.port == {PORTS[kind]}", "-w", file)
    return file


def tshark_packets(file: Path, *options: str) -> Counter[int]:
    """MQTT packets by the number of their type, as Wireshark's dissectors find them."""
    fields = shell("tshark", "-r", file, *options, "-Y", "mqtt", "-T", "fields", "-e", "mqtt.msgtype")
    return Counter(int(number) for line in fields.split() for number in line.split(","))


NUMBERS = {"CONNECT": 1, "CONNACK": 2, "PUBLISH": 3, "PUBACK": 4, "PUBREC": 5, "PUBREL": 6, "PUBCOMP": 7,
           "SUBSCRIBE": 8, "SUBACK": 9, "PINGREQ": 12, "PINGRESP": 13, "DISCONNECT": 14}


def by_type(recording: Recording) -> Counter[int]:
    return Counter(NUMBERS[kind] for kind in recording.control_packets["kind"].to_list())


def tshark_payloads(file: Path) -> Counter[int]:
    """Lengths of the payloads of binary frames; Wireshark 4.0 does not read MQTT in them."""
    # It takes what goes to that port for something else.
    words = ("-d", f"tcp.port=={PORTS['websocket']},http", "-Y", "websocket.opcode == 2", "-T", "fields")
    fields = ("websocket.opcode", "websocket.payload_length", "websocket.payload_length_ext_16")
    lines = shell("tshark", "-r", file, *words, *(word for field in fields for word in ("-e", field))).splitlines()
    found: Counter[int] = Counter()
    for line in lines:
        opcodes, short, long = ([int(number) for number in column.split(",") if number] for column in line.split("\t"))
        longer = iter(long)
        found.update(next(longer) if length == 126 else length for length in short)
        assert set(opcodes) == {2}
    return found


def sums(recording: Recording) -> dict[str, float]:
    run = recording.network_metrics.filter(scope="run")
    return dict(run.select("metric", "value").rows())


def test_messages_over_web_socket_are_those_that_the_client_counted(captured: Captured, tmp_path: Path) -> None:
    file = only("websocket", captured, tmp_path)
    recording = read(file, tmp_path)
    assert verdict(recording)[0] == "valid"
    assert Counter(recording.messages["fate"].to_list()) == {"delivered": captured.heard["websocket"]}
    counted = sums(recording)
    # Every byte of the streams is MQTT's or WebSocket's.
    assert counted["mqtt_bytes"] + counted["websocket_bytes"] == counted["tcp_payload_unique_bytes"]
    # Client and broker put each packet into a frame of its own.
    sizes = recording.control_packets.select(size=SIZE)["size"]
    assert Counter(sizes.to_list()) == tshark_payloads(file)


def test_a_packet_s_place_in_the_stream_is_that_of_its_frame(captured: Captured, tmp_path: Path) -> None:
    recording = read(only("websocket", captured, tmp_path), tmp_path)
    added = pl.col("stream_end") - pl.col("stream_start") - SIZE
    taken = recording.control_packets.with_columns(size=SIZE, added=added)
    # Two bytes of header, two more of length above 125, and four of the mask on the way to the broker.
    for direction, mask in (("to_broker", 4), ("to_client", 0)):
        frames = taken.filter(direction=direction, kind="PUBLISH")
        assert frames.filter(pl.col("size") <= 125)["added"].unique().to_list() == [2 + mask]
        assert frames.filter(pl.col("size") > 125)["added"].unique().to_list() == [4 + mask]


def test_kinds_of_connections_stand_beside_each_other(captured: Captured, tmp_path: Path) -> None:
    recording = read(captured.file, tmp_path)
    delivered = recording.messages.filter(fate="delivered")
    assert delivered.height == sum(captured.heard.values())
    plain = read(only("plain", captured, tmp_path), tmp_path / "plain")
    assert by_type(plain) == tshark_packets(captured.file)
    # The clients do the same.
    assert by_type(recording) == Counter({kind: count * len(PORTS) for kind, count in by_type(plain).items()})


@pytest.mark.parametrize("seed", range(2))
def test_a_thinned_capture_says_what_the_client_counted_or_unknown(
    seed: int, captured: Captured, tmp_path: Path
) -> None:
    file = only("websocket", captured, tmp_path)
    frames = int(shell("capinfos", "-M", "-T", "-r", "-c", file).split()[-1])
    gone = random.Random(seed).sample(range(20, frames + 1), frames // 25)
    shell("editcap", file, tmp_path / "thinned.pcapng", *gone)
    recording = read(tmp_path / "thinned.pcapng", tmp_path)
    found = Counter(recording.messages["fate"].to_list())
    assert set(found) <= {"delivered", "unknown", "foreign"}, found
    assert verdict(recording)[0] == "not valid"
    assert MESSAGES // 2 < found["delivered"] + found["foreign"] <= captured.heard["websocket"]


def test_a_capture_that_begins_in_the_middle_goes_on_with_the_next_frame(captured: Captured, tmp_path: Path) -> None:
    file = only("websocket", captured, tmp_path)
    frames = int(shell("capinfos", "-M", "-T", "-r", "-c", file).split()[-1])
    shell("editcap", "-r", file, tmp_path / "late.pcapng", f"{frames // 2}-{frames}")
    recording = read(tmp_path / "late.pcapng", tmp_path)
    found = Counter(recording.messages["fate"].to_list())
    assert verdict(recording)[0] == "not valid"
    assert MESSAGES // 4 < found["delivered"] + found["foreign"] < MESSAGES
