"""Captures of real clients at a real broker over WebSocket and TLS: what the clients counted, and what tshark reads.

Clients, broker and capture share one network namespace's loopback. One capture holds everything; tests take what
they need from it, and spoil it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from dumpcaps import capture
from mqttlab.engine import EngineError
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.text import verdict

TOOLS = ("mosquitto", "dumpcap", "editcap", "capinfos", "tshark", "ip", "openssl")
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")]
MESSAGES = 60
SIZE = pl.sum_horizontal("fixed_header_bytes", "topic_bytes", "packet_id_bytes", "property_bytes", "payload_bytes")
# By kind of client: its port, the newest version it speaks, the suites it offers up to TLS 1.2.
PORTS = {"plain": 1883, "websocket": 9001, "tls13": 8883, "tls13-chacha": 8884, "tls13-aes128": 8885, "tls12": 8886,
         "tls12-chacha": 8887, "tls12-cbc": 8888, "wss": 9443}
CIPHERS = {"tls12-chacha": "ECDHE-RSA-CHACHA20-POLY1305", "tls12-cbc": "ECDHE-RSA-AES128-SHA256"}
OPENED = {"tls13": "TLS_AES_256_GCM_SHA384", "tls13-chacha": "TLS_CHACHA20_POLY1305_SHA256",
          "tls13-aes128": "TLS_AES_128_GCM_SHA256", "tls12": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
          "tls12-chacha": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "wss": "TLS_AES_256_GCM_SHA384"}
# Publishes at all three levels of QoS, hears everything itself, and says what it counted. Sizes differ, so that frames
# have short and long lengths, and segments end anywhere.
CLIENT = """
import json, ssl, sys, threading
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion
kind, port, count, keys, ciphers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
transport = "websockets" if kind in ("websocket", "wss") else "tcp"
client = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"client-{kind}", transport=transport)
heard, all_heard, ready = [], threading.Event(), threading.Event()
def on_message(_, __, message):
    heard.append(message.payload)
    if len(heard) == count:
        all_heard.set()
if kind.startswith("tls") or kind == "wss":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.keylog_filename = keys
    if kind.startswith("tls12"):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if ciphers:
        context.set_ciphers(ciphers)
    client.tls_set_context(context)
client.on_message = on_message
connects = []
def on_connect(*_):
    connects.append(1)
    client.subscribe(f"lab/{kind}/#", qos=2)
client.on_connect = on_connect
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
print(json.dumps([len(heard), len(connects)]))
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
    shell("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=broker",
          "-keyout", directory / "key.pem", "-out", directory / "certificate.pem")
    lines = ["user root", "allow_anonymous true"]
    for kind, port in PORTS.items():
        lines += [f"listener {port}"]
        lines += ["protocol websockets"] if kind in ("websocket", "wss") else []
        if kind not in ("plain", "websocket"):
            lines += [f"certfile {directory}/certificate.pem", f"keyfile {directory}/key.pem"]
        if kind in ("tls13-chacha", "tls13-aes128"):
            lines += ["tls_version tlsv1.3", f"ciphers_tls1.3 {OPENED[kind]}"]
    settings = directory / "mosquitto.conf"
    settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    process = site.start("mosquitto", "-c", settings, errors=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    for port in PORTS.values():
        # libwebsockets listens on both IP versions by one socket.
        while f":{port:04X} 00" not in site.run("cat", "/proc/net/tcp", "/proc/net/tcp6"):
            assert time.monotonic() < deadline and process.poll() is None, port
            time.sleep(0.05)
    return process


@dataclass(frozen=True)
class Captured:
    """A capture, what each client heard, and the secrets of those with TLS."""

    file: Path
    heard: dict[str, int]
    keys: Path


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    for _ in range(3):
        found, connects = capture_all(tmp_path_factory.mktemp("layers"))
        # Once a broker reset a connection on a busy machine: some messages were then said twice.
        if set(connects) == {1}:
            break
    assert found.heard == dict.fromkeys(PORTS, MESSAGES)
    return found


def capture_all(directory: Path) -> tuple[Captured, list[int]]:
    """All kinds of clients at once; how often each has connected."""
    site, file = Site(f"mqy{os.getpid()}"), directory / "lo.pcapng"
    with ExitStack() as stack:
        stack.callback(subprocess.run, ["ip", "netns", "delete", site.name], capture_output=True)
        shell("ip", "netns", "add", site.name)
        shell("ip", "-n", site.name, "link", "set", "lo", "mtu", "1500", "up")
        stack.callback(ended, broker(site, directory))
        inside = ("ip", "netns", "exec", site.name)
        with capture(inside, ("-i", "lo"), file, last=(inside, "127.0.0.1")):
            clients = {
                kind: site.start(sys.executable, "-c", CLIENT, kind, port, MESSAGES, directory / "keys.log",
                                 CIPHERS.get(kind, ""), output=subprocess.PIPE)
                for kind, port in PORTS.items()
            }
            counted = {kind: json.loads(client.communicate(timeout=60)[0]) for kind, client in clients.items()}
    heard = {kind: heard for kind, (heard, _) in counted.items()}
    return Captured(file, heard, directory / "keys.log"), [connects for _, connects in counted.values()]


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


def reasons(recording: Recording) -> str:
    return "\n".join(recording.run["validity"]["reasons"])


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
    recording = read(captured.file, tmp_path, "--key-log", str(captured.keys))
    delivered = recording.messages.filter(fate="delivered")
    assert delivered.height == MESSAGES * (len(PORTS) - 1)
    plain = read(only("plain", captured, tmp_path), tmp_path / "plain")
    assert by_type(plain) == tshark_packets(only("plain", captured, tmp_path))
    # The clients do the same.
    assert by_type(recording) == Counter({kind: count * (len(PORTS) - 1) for kind, count in by_type(plain).items()})
    said = reasons(recording)
    assert "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256" in said and "port 8888" in said and "1 connection" in said


@pytest.mark.parametrize("kind", OPENED)
def test_messages_over_tls_are_those_that_the_client_counted(kind: str, captured: Captured, tmp_path: Path) -> None:
    file = only(kind, captured, tmp_path)
    recording = read(file, tmp_path, "--key-log", str(captured.keys))
    assert verdict(recording)[0] == "valid", reasons(recording)
    assert Counter(recording.messages["fate"].to_list()) == {"delivered": captured.heard[kind]}
    if kind != "wss":
        as_tls = ("-o", f"tls.keylog_file:{captured.keys}", "-d", f"tcp.port=={PORTS[kind]},tls",
                  "-d", f"tls.port=={PORTS[kind]},mqtt")
        assert by_type(recording) == tshark_packets(file, *as_tls)
    counted = sums(recording)
    layers = counted["mqtt_bytes"] + counted["websocket_bytes"] + counted["tls_bytes"]
    assert layers == counted["tcp_payload_unique_bytes"]
    secured = recording.run["details"]["import"]["tls"]
    assert [(row["suite"], row["connections"], row["unread"]) for row in secured] == [(OPENED[kind], 1, None)]


def test_without_a_key_log_one_line_says_why_not(captured: Captured, tmp_path: Path) -> None:
    recording = read(only("tls13", captured, tmp_path), tmp_path)
    assert recording.control_packets.is_empty()
    lines = [line for line in recording.run["validity"]["reasons"] if "TLS" in line]
    assert len(lines) == 1 and "1 connection to port 8883" in lines[0] and "--key-log" in lines[0]


def test_secrets_in_the_capture_itself_open_it(captured: Captured, tmp_path: Path) -> None:
    file = tmp_path / "with-secrets.pcapng"
    shell("editcap", "--inject-secrets", f"tls,{captured.keys}", only("tls12", captured, tmp_path), file)
    recording = read(file, tmp_path)
    assert Counter(recording.messages["fate"].to_list()) == {"delivered": captured.heard["tls12"]}


def test_secrets_of_other_connections_open_nothing(captured: Captured, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text(f"CLIENT_RANDOM {'ab' * 32} {'cd' * 48}\n", encoding="utf-8")
    recording = read(only("tls13", captured, tmp_path), tmp_path, "--key-log", str(other))
    assert "has no secrets of" in reasons(recording)
    spoilt = tmp_path / "spoilt.log"
    text = captured.keys.read_text(encoding="utf-8")
    spoilt.write_text("".join(line[:-9] + "00000000\n" for line in text.splitlines(keepends=True)), encoding="utf-8")
    recording = read(only("tls13", captured, tmp_path), tmp_path / "spoilt", "--key-log", str(spoilt))
    assert "do not open" in reasons(recording)


def test_what_is_no_key_log_is_refused(captured: Captured, tmp_path: Path) -> None:
    for file in (captured.file, tmp_path / "nowhere.log"):
        with pytest.raises(EngineError, match=file.name):
            read(captured.file, tmp_path, "--key-log", str(file))
    assert not (tmp_path / "imported").exists()


def disorder(file: Path, out: Path, seed: int) -> None:
    """The same frames, some swapped with the next one of their direction, some twice."""
    shell("editcap", "-F", "pcap", file, out)
    data = out.read_bytes()
    frames, at = [], 24
    while at < len(data):
        end = at + 16 + struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at:end])
        at = end
    dice = random.Random(seed)
    times = [frame[:8] for frame in frames]
    for index in range(8, len(frames) - 8):
        # A message may not overtake the one that it is a copy of.
        same_way = frames[index][50:54] == frames[index + 1][50:54]
        if same_way and dice.random() < 0.5:
            frames[index], frames[index + 1] = frames[index + 1], frames[index]
    kept = [time + frame[8:] for time, frame in zip(times, frames, strict=True)]
    copies = [frame for frame in kept for _ in range(2 if dice.random() < 0.1 else 1)]
    out.write_bytes(data[:24] + b"".join(copies))


@pytest.mark.parametrize("kind", ["tls13", "tls12", "wss"])
def test_reordered_and_repeated_frames_change_nothing(kind: str, captured: Captured, tmp_path: Path) -> None:
    disorder(only(kind, captured, tmp_path), tmp_path / "disorder.pcap", 3)
    recording = read(tmp_path / "disorder.pcap", tmp_path, "--key-log", str(captured.keys))
    assert Counter(recording.messages["fate"].to_list()) == {"delivered": captured.heard[kind]}


@pytest.mark.parametrize("kind", ["tls13", "tls12", "tls12-chacha", "wss"])
def test_a_thinned_capture_with_tls_goes_on_behind_each_hole(kind: str, captured: Captured, tmp_path: Path) -> None:
    file = only(kind, captured, tmp_path)
    frames = int(shell("capinfos", "-M", "-T", "-r", "-c", file).split()[-1])
    gone = random.Random(1).sample(range(30, frames + 1), frames // 25)
    shell("editcap", file, tmp_path / "thinned.pcapng", *gone)
    recording = read(tmp_path / "thinned.pcapng", tmp_path, "--key-log", str(captured.keys))
    found = Counter(recording.messages["fate"].to_list())
    assert set(found) <= {"delivered", "unknown", "foreign"}, found
    assert verdict(recording)[0] == "not valid"
    assert MESSAGES // 2 < found["delivered"] + found["foreign"] <= MESSAGES


def test_a_capture_that_begins_behind_the_hellos_is_named(captured: Captured, tmp_path: Path) -> None:
    file = only("tls13", captured, tmp_path)
    shell("editcap", "-r", file, tmp_path / "late.pcapng", "60-400")
    recording = read(tmp_path / "late.pcapng", tmp_path, "--key-log", str(captured.keys), "--broker-port", "8883")
    assert recording.control_packets.is_empty()
    assert "hellos were not captured" in reasons(recording)


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
    # What a connection carries is told by its first captured segment: here one that begins with a client's frame.
    begins = f"frame.number > {frames // 2} && tcp.dstport == {PORTS['websocket']} && tcp.payload[0:1] == 82"
    first = shell("tshark", "-r", file, "-Y", begins, "-T", "fields", "-e", "frame.number").split()[0]
    shell("editcap", "-r", file, tmp_path / "late.pcapng", f"{first}-{frames}")
    recording = read(tmp_path / "late.pcapng", tmp_path)
    found = Counter(recording.messages["fate"].to_list())
    assert verdict(recording)[0] == "not valid"
    assert MESSAGES // 4 < found["delivered"] + found["foreign"] < MESSAGES
