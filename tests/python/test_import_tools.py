"""Captures that real tools made of real traffic: what the clients counted, or unknown.

A forwarding host stands between Mosquitto's own clients and its broker, HTTP goes beside MQTT, and all interfaces of
that host are captured at once (`-i any`). Then the capture is spoiled with editcap: cut, thinned, begun in the middle.
"""

from __future__ import annotations

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

from commands import mqttlab
from dumpcaps import capture
from mqttlab import metrics
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.text import verdict

TOOLS = ("mosquitto", "mosquitto_pub", "mosquitto_sub", "dumpcap", "editcap", "capinfos", "curl", "ip")
MISSING = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")]
MESSAGES = 150
BROKER = "10.231.2.2"


def shell(*words: object) -> str:
    """A program that must succeed; what it prints."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Site:
    """Three hosts in a row: clients, a router, the broker."""

    name: str

    def host(self, name: str) -> str:
        """A host's namespace."""
        return f"{self.name}-{name}"

    def start(self, host: str, *words: object, **how: object) -> subprocess.Popen[str]:
        """A program on a host."""
        command = ["ip", "netns", "exec", self.host(host), *map(str, words)]
        return subprocess.Popen(command, text=True, stderr=subprocess.DEVNULL, **how)  # type: ignore[call-overload]

    def build(self) -> None:
        """The hosts, and the links between them."""
        for host in ("clients", "router", "broker"):
            shell("ip", "netns", "add", self.host(host))
            shell("ip", "-n", self.host(host), "link", "set", "lo", "up")
        for number, end in ((1, "clients"), (2, "broker")):
            device = f"{self.name[:9]}-{number}"
            shell("ip", "link", "add", device, "netns", self.host("router"), "type", "veth", "peer", "name", "eth0",
                  "netns", self.host(end))
            shell("ip", "-n", self.host("router"), "address", "add", f"10.231.{number}.1/24", "dev", device)
            shell("ip", "-n", self.host(end), "address", "add", f"10.231.{number}.2/24", "dev", "eth0")
            shell("ip", "-n", self.host("router"), "link", "set", device, "up")
            shell("ip", "-n", self.host(end), "link", "set", "eth0", "up")
            shell("ip", "-n", self.host(end), "route", "add", "default", "via", f"10.231.{number}.1")
        shell("ip", "netns", "exec", self.host("router"), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def remove(self) -> None:
        """Everything goes with the namespaces."""
        for host in ("clients", "router", "broker"):
            subprocess.run(["ip", "netns", "delete", self.host(host)], capture_output=True, check=False)


def ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(timeout=20)


def wait_for_port(site: Site, port: int) -> None:
    deadline = time.monotonic() + 20
    while site.start("clients", "curl", "-s", "--max-time", "1", f"telnet://{BROKER}:{port}",
                     stdin=subprocess.DEVNULL).wait() not in (0, 28):
        assert time.monotonic() < deadline, port
        time.sleep(0.1)


def wait_for_text(file: Path, text: str) -> None:
    deadline = time.monotonic() + 20
    while text not in (file.read_text(encoding="utf-8") if file.exists() else ""):
        assert time.monotonic() < deadline, text
        time.sleep(0.02)


def traffic(site: Site, directory: Path) -> list[str]:
    """Clients that publish with a topic alias and subscribe, and one that fetches a page; the lines received."""
    subscribe = ("mosquitto_sub", "-h", BROKER, "-V", "5", "-q", "1", "-t", "plant/#", "-C", MESSAGES, "-W", "30",
                 "-i", "listener")
    with (directory / "received").open("w", encoding="utf-8") as received:
        subscriber = site.start("clients", *subscribe, stdout=received)
        wait_for_text(directory / "broker.log", "listener 1 plant/#")
        publisher = site.start("clients", "mosquitto_pub", "-h", BROKER, "-V", "5", "-q", "1", "-l", "-t",
                               "plant/hall/temperature", "-D", "publish", "topic-alias", "1", "-i", "sensor",
                               stdin=subprocess.PIPE)
        assert publisher.stdin is not None
        for number in range(MESSAGES):
            publisher.stdin.write(f"{number:08d} {'.' * (number % 40)}\n")
            publisher.stdin.flush()
            time.sleep(0.005)
            if number == MESSAGES // 2:
                site.start("clients", "curl", "-s", f"http://{BROKER}:80/", stdout=subprocess.DEVNULL).wait(20)
        publisher.stdin.close()
        assert publisher.wait(20) == 0
        assert subscriber.wait(40) == 0
    return (directory / "received").read_text(encoding="utf-8").splitlines()


@dataclass(frozen=True)
class Captured:
    """A capture, and what the subscriber counted."""

    file: Path
    received: int


@pytest.fixture(scope="module", params=["LINUX_SLL", "LINUX_SLL2"])
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captured]:
    directory = tmp_path_factory.mktemp("tools")
    site, file = Site(f"mql{os.getpid()}"), directory / "any.pcapng"
    with ExitStack() as stack:
        stack.callback(site.remove)
        site.build()
        settings = directory / "mosquitto.conf"
        settings.write_text(f"listener 1883 0.0.0.0\nallow_anonymous true\nuser root\nlog_type subscribe\n"
                            f"log_dest file {directory / 'broker.log'}\n", encoding="utf-8")
        stack.callback(ended, site.start("broker", "mosquitto", "-c", settings))
        web = site.start("broker", sys.executable, "-m", "http.server", "80", "--directory", directory,
                         stdout=subprocess.DEVNULL)
        stack.callback(ended, web)
        wait_for_port(site, 1883)
        wait_for_port(site, 80)
        router, clients = (("ip", "netns", "exec", site.host(name)) for name in ("router", "clients"))
        with capture(router, ("-i", "any", "-y", request.param), file, last=(clients, BROKER)):
            lines = traffic(site, directory)
    assert lines == [f"{number:08d} {'.' * (number % 40)}" for number in range(MESSAGES)]
    yield Captured(file, len(lines))


def read(file: Path, tmp_path: Path) -> Recording:
    return Recording.open(import_evidence("capture", [file], tmp_path / "imported", lambda line: None).directory)


def fates(recording: Recording) -> Counter[str]:
    return Counter(recording.messages["fate"].to_list())


def report(recording: Recording) -> str:
    done = mqttlab("report", recording.directory, "--full", "--html", recording.directory.parent / "report.html")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_forwarding_host_s_capture_of_all_interfaces_says_what_the_clients_counted(
    captured: Captured, tmp_path: Path
) -> None:
    recording = read(captured.file, tmp_path)
    assert verdict(recording)[0] == "valid"
    assert fates(recording) == {"delivered": captured.received}
    # Every frame came in and went out again, and counts once.
    assert recording.run["details"]["import"]["frames_seen_on_another_link"] > 2 * MESSAGES
    assert recording.network_metrics.filter(scope="run", metric="connections")["value"].to_list() == [2.0]
    words = report(recording)
    assert f"{MESSAGES}" in words


def test_a_topic_alias_stands_for_its_topic(captured: Captured, tmp_path: Path) -> None:
    publishes = read(captured.file, tmp_path).control_packets.filter(kind="PUBLISH")
    assert publishes["topic"].unique().to_list() == ["plant/hall/temperature"]
    sent = publishes.filter(direction="to_broker")
    # The first one names it; the others have an empty topic of two bytes.
    assert Counter(sent["topic_bytes"].to_list())[2] == MESSAGES - 1


def test_http_beside_mqtt_stands_beside_it(captured: Captured, tmp_path: Path) -> None:
    recording = read(captured.file, tmp_path)
    others = metrics.other_traffic(recording)
    assert ("HTTP", 80) in others.select("protocol", "port").rows()
    assert "HTTP" in report(recording)
    ports = recording.packets.filter(pl.col("marks").is_not_null())
    assert recording.run["details"]["import"]["control_packets"] == recording.control_packets.height, ports


def spoilt(recording: Recording, captured: Captured) -> Counter[str]:
    """What a capture says that does not hold everything."""
    assert verdict(recording)[0] == "not valid"
    found = fates(recording)
    assert set(found) <= {"delivered", "unknown", "foreign"}, found
    assert found["delivered"] + found["foreign"] <= captured.received
    assert "not valid" in report(recording)
    return found


def test_a_cut_capture_says_what_the_clients_counted_or_unknown(captured: Captured, tmp_path: Path) -> None:
    shell("editcap", "-s", 96, captured.file, tmp_path / "cut.pcapng")
    spoilt(read(tmp_path / "cut.pcapng", tmp_path), captured)


@pytest.mark.parametrize("seed", range(3))
def test_a_thinned_capture_says_what_the_clients_counted_or_unknown(
    seed: int, captured: Captured, tmp_path: Path
) -> None:
    frames = int(shell("capinfos", "-M", "-T", "-r", "-c", captured.file).split()[-1])
    gone = random.Random(seed).sample(range(1, frames + 1), min(frames // 20, 500))
    shell("editcap", captured.file, tmp_path / "thinned.pcapng", *gone)
    recording = read(tmp_path / "thinned.pcapng", tmp_path)
    found = fates(recording)
    # A frame that is gone on one interface is there on the other: that may be all that it takes.
    assert set(found) <= {"delivered", "unknown", "foreign"}, found
    # Behind a hole in its publisher's stream no topic alias is known, nor which message a delivery is.
    assert found["delivered"] > 0


def test_a_capture_that_begins_in_the_middle_says_what_the_clients_counted_or_unknown(
    captured: Captured, tmp_path: Path
) -> None:
    frames = int(shell("capinfos", "-M", "-T", "-r", "-c", captured.file).split()[-1])
    shell("editcap", "-r", captured.file, tmp_path / "late.pcapng", f"{frames // 2}-{frames}")
    found = spoilt(read(tmp_path / "late.pcapng", tmp_path), captured)
    assert MESSAGES // 4 < found["delivered"] + found["foreign"] < MESSAGES
