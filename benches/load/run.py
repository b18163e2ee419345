#!/usr/bin/env python3
"""Processor time of load tools beside each other: same Mosquitto, same messages, one after the other.

Each tool publishes and receives the same number of messages of 64 B. Counted is the processor time of all its
processes from start to end, by `wait4`, for 100 000 messages sent and received; the broker's own stands beside it.
Rounds alternate between tools, so that a machine that grows slower is unfair to all of them.

Over WebSocket paho-mqtt stands beside our clients (`benches/load/paho_pair.py`): the others do not speak it. Over
TLS 1.3 (certificates of this bench's own, by openssl) there are mosquitto_pub and mosquitto_sub, and paho-mqtt.
MQTT-SN goes to our gateway (`mqttlab-engine gateway`, transparent), with mqtt-sn-tools beside our clients: QoS 1,
one message at a time, and a tenth of the messages.

    benches/load/run.py [--rounds 3] [--messages 100000] [--only tls,mqtt-sn] [--mqttwrk PATH] [--json FILE]

mqttwrk is installed by `cargo install mqttwrk`; a tool that is not there is left out. mqttwrk has no pairs: each of its
messages goes to all subscribers. So it stands beside our clients where theirs do (`to all`) and with one pair; there
100,000 messages are delivered, not sent. A tool that has not finished after 30 s is killed, and its share of deliveries
says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))

from ports import own_port

ROOT = Path(__file__).resolve().parents[2]
# Publishers, subscribers that each receive every message (0: each publisher has one of its own), QoS, transport.
CASES = [
    (1, 0, 0, "tcp"), (1, 0, 1, "tcp"), (100, 0, 0, "tcp"), (100, 0, 1, "tcp"), (1, 100, 0, "tcp"), (1, 100, 1, "tcp"),
    (100, 100, 0, "tcp"), (100, 100, 1, "tcp"), (1, 0, 1, "websocket"), (1, 0, 0, "tls"), (1, 0, 1, "tls"),
    (1, 0, 1, "mqtt-sn"),
]
TRANSPORTS = tuple(dict.fromkeys(transport for _, _, _, transport in CASES))
# Of a client that waits for each acknowledgement.
MQTT_SN_PART = 10
ENGINE = ROOT / "target/release/mqttlab-engine"
PAYLOAD_BYTES = 64
PATIENCE_S = 30
WINDOW = 100


@dataclass(frozen=True)
class Result:
    """One tool in one round of one case."""

    tool: str
    transport: str
    pairs: int
    to_all: int
    qos: int
    delivered: int
    cpu_s: float
    wall_s: float
    broker_cpu_s: float

    @property
    def cpu_s_per_100k(self) -> float:
        return self.cpu_s * 100_000 / max(self.delivered, 1)


@dataclass(frozen=True)
class Case:
    """So many publishers, each with a subscriber of its own, or all with the same ones."""

    transport: str
    port: int
    pairs: int
    qos: int
    each: int
    authority: Path
    """The certificate that the broker's is signed by: its own."""
    to_all: int = 0
    """Subscribers that each receive every message; 0: each publisher has one of its own."""

    @property
    def subscribers(self) -> int:
        return self.to_all or self.pairs


@dataclass(frozen=True)
class Servers:
    """A Mosquitto that runs for this bench alone, and a gateway of MQTT-SN before it."""

    ports: dict[str, int]
    broker: int
    gateway: int
    authority: Path

    def cpu_s(self, transport: str) -> float:
        """Processor time of who serves this transport: of the gateway, or of the broker."""
        pid = self.gateway if transport == "mqtt-sn" else self.broker
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def servers() -> Iterator[Servers]:
    """A broker and a gateway on ports of their own, without limits that would lose messages."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    ports = {name: own_port() for name in ("tcp", "websocket", "tls")}
    with tempfile.TemporaryDirectory() as scratch:
        authority, key = Path(scratch, "own.pem"), Path(scratch, "own.key")
        subprocess.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-addext",
            "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", authority],
            check=True, capture_output=True)
        # The broker reads it as a user of its own.
        Path(scratch).chmod(0o755)
        key.chmod(0o644)
        configuration = Path(scratch) / "mosquitto.conf"
        configuration.write_text(
            f"listener {ports['tcp']} 127.0.0.1\nlistener {ports['websocket']} 127.0.0.1\nprotocol websockets\n"
            f"listener {ports['tls']} 127.0.0.1\ncertfile {authority}\nkeyfile {key}\n"
            f"allow_anonymous true\nset_tcp_nodelay true\n"
            f"max_queued_messages 0\nmax_inflight_messages {WINDOW}\nlog_type error\n"
        )
        broker = subprocess.Popen([program, "-c", str(configuration)], stderr=subprocess.DEVNULL)
        gateway = None
        try:
            for name in ("tcp", "websocket", "tls"):
                wait_for_port(ports[name])
            gateway, port = start_gateway(ports["tcp"], Path(scratch))
            yield Servers(ports={**ports, "mqtt-sn": port}, broker=broker.pid, gateway=gateway.pid, authority=authority)
        finally:
            for process in (broker, gateway):
                if process is not None:
                    process.terminate()
                    process.wait()


def start_gateway(broker: int, scratch: Path) -> tuple[subprocess.Popen[str], int]:
    """Our gateway before the broker on this port, when it listens, and on which port."""
    role = {
        "broker": 0, "mode": "transparent", "id": 1, "client_id": "gateway", "keep_alive_s": 60,
        "retry_ns": 10_000_000_000, "retries": 3, "window": 1, "buffer": 1_000_000, "clients_max": 100,
        "broker_window": WINDOW, "broker_queue": 1_000_000, "filter_duplicates": True, "advertise_ns": None,
        "predefined_topics": [], "service": {"per_packet_ns": 0, "per_copy_ns": 0, "jitter": [0, 1]}}
    settings = scratch / "gateway.json"
    settings.write_text(json.dumps({
        "listen": "127.0.0.1:0", "broker": f"127.0.0.1:{broker}", "role": role}))
    process = subprocess.Popen([ENGINE, "gateway", "--settings", settings], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    listens = re.fullmatch(r".* listens on 127\.0\.0\.1:(\d+)\n", process.stdout.readline())
    if listens is None:
        raise RuntimeError("the gateway does not listen")
    return process, int(listens[1])


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def cpu_of(processes: list[subprocess.Popen[bytes]]) -> float:
    """Waits for all of them and returns what they used. What takes too long is killed, and delivers less."""
    watchdog = threading.Timer(PATIENCE_S, lambda: [process.kill() for process in processes])
    watchdog.start()
    total = 0.0
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        total += usage.ru_utime + usage.ru_stime
    watchdog.cancel()
    return total


def run_mqttlab(case: Case) -> tuple[int, float]:
    program = ROOT / "target/release/examples/load"
    scheme = {"websocket": "ws:", "tls": f"tls:{case.authority}:", "mqtt-sn": "sn:"}.get(case.transport, "")
    clients = f"{case.pairs}:{case.to_all}" if case.to_all else case.pairs
    arguments = [f"{scheme}127.0.0.1:{case.port}", clients, case.qos, PAYLOAD_BYTES, case.each * case.pairs]
    process = subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    said = json.loads(process.stdout.read())
    return said["delivered"], cpu_of([process])


def run_paho(case: Case) -> tuple[int, float]:
    program = Path(__file__).parent / "paho_pair.py"
    arguments = [case.transport, case.port, case.qos, PAYLOAD_BYTES, case.each, WINDOW, case.authority]
    process = subprocess.Popen([sys.executable, program, *map(str, arguments)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    said = process.stdout.read()
    return int(said or 0), cpu_of([process])


def run_mosquitto_tools(case: Case) -> tuple[int, float]:
    # By address, as the certificate says.
    common = ["-h", "127.0.0.1", "-p", str(case.port), "-q", str(case.qos)]
    if case.transport == "tls":
        common += ["--cafile", str(case.authority), "--tls-version", "tlsv1.3"]
    with tempfile.TemporaryDirectory() as scratch:
        outputs = [Path(scratch) / str(pair) for pair in range(case.pairs)]
        subscribers = []
        for pair, output in enumerate(outputs):
            command = ["mosquitto_sub", *common, "-t", f"load/{pair}", "-C", str(case.each)]
            with output.open("wb") as file:
                subscribers.append(subprocess.Popen(command, stdout=file))
        time.sleep(1)
        # Not `-l`: at QoS 1 mosquitto_pub 2.0.11 leaves before its last lines are out.
        payload = ["-m", "x" * PAYLOAD_BYTES, "--repeat", str(case.each), "-M", str(WINDOW)]
        publishers = [
            subprocess.Popen(["mosquitto_pub", *common, "-t", f"load/{pair}", *payload])
            for pair in range(case.pairs)
        ]
        cpu_s = cpu_of(publishers + subscribers)
        delivered = sum(output.stat().st_size // (PAYLOAD_BYTES + 1) for output in outputs)
    return delivered, cpu_s


def run_mqtt_sn_tools(case: Case) -> tuple[int, float]:
    """One publisher that waits for each acknowledgement. The subscriber is ended when all has come."""
    common = ["-h", "127.0.0.1", "-p", str(case.port), "-q", str(case.qos), "-k", "60", "-t", "load/0"]
    with tempfile.TemporaryDirectory() as scratch:
        lines, output = Path(scratch) / "lines", Path(scratch) / "output"
        lines.write_bytes((b"x" * PAYLOAD_BYTES + b"\n") * case.each)
        with output.open("wb") as file:
            subscriber = subprocess.Popen(["mqtt-sn-sub", *common], stdout=file)
        time.sleep(1)
        with lines.open("rb") as file:
            publisher = subprocess.Popen(["mqtt-sn-pub", *common, "-l"], stdin=file)
        cpu_s = cpu_of([publisher])
        deadline = time.monotonic() + 2
        while output.stat().st_size < case.each * (PAYLOAD_BYTES + 1) and time.monotonic() < deadline:
            time.sleep(0.01)
        subscriber.send_signal(signal.SIGINT)
        cpu_s += cpu_of([subscriber])
        delivered = output.stat().st_size // (PAYLOAD_BYTES + 1)
    return delivered, cpu_s


def run_mqttwrk(program: str) -> Callable[[Case], tuple[int, float]]:
    def run(case: Case) -> tuple[int, float]:
        options = {
            "--server": "127.0.0.1",
            "--port": case.port,
            "--publishers": case.pairs,
            "--subscribers": case.subscribers,
            "--count": case.each,
            "--publish-qos": case.qos,
            "--subscribe-qos": case.qos,
            "--payload-size": PAYLOAD_BYTES,
            "--max-inflight": WINDOW,
        }
        command = [program, "bench", *(str(word) for option in options.items() for word in option)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        said = process.stdout.read().decode()
        received = re.search(r"Aggregate SubStats.*?publish_count: (\d+)", said, re.DOTALL)
        return int(received.group(1)) if received else 0, cpu_of([process])

    return run


def tools(mqttwrk: str | None, case: Case) -> dict[str, Callable[[Case], tuple[int, float]]]:
    """The tools that do this case's work."""
    found: dict[str, Callable[[Case], tuple[int, float]]] = {"mqttlab": run_mqttlab}
    transport = case.transport
    if transport == "mqtt-sn":
        if shutil.which("mqtt-sn-pub") and shutil.which("mqtt-sn-sub"):
            return found | {"mqtt-sn-tools": run_mqtt_sn_tools}
        print("mqtt-sn-pub and mqtt-sn-sub are not on the PATH (no registry has them)", file=sys.stderr)
        return found
    if transport != "tcp":
        found["paho-mqtt"] = run_paho
    if transport == "websocket":
        return found
    if case.to_all:
        pass
    elif shutil.which("mosquitto_pub") and shutil.which("mosquitto_sub"):
        found["mosquitto_pub/_sub"] = run_mosquitto_tools
    else:
        print("mosquitto_pub and mosquitto_sub are not there (Debian: mosquitto-clients)", file=sys.stderr)
    if transport == "tls" or (case.pairs > 1 and not case.to_all):
        return found
    if program := mqttwrk or shutil.which("mqttwrk"):
        found["mqttwrk"] = run_mqttwrk(program)
    else:
        print("mqttwrk is not there (cargo install mqttwrk)", file=sys.stderr)
    return found


def of_each(messages: int, pairs: int, to_all: int, transport: str) -> int:
    """How many messages each publisher has, so that this many are delivered."""
    return messages // pairs // max(to_all, 1) // (MQTT_SN_PART if transport == "mqtt-sn" else 1)


def measure(
    running: Servers, rounds: int, messages: int, mqttwrk: str | None, transports: Collection[str]
) -> list[Result]:
    results = []
    for pairs, to_all, qos, transport in CASES:
        if transport not in transports:
            continue
        case = Case(transport=transport, port=running.ports[transport], pairs=pairs, qos=qos,
                    each=of_each(messages, pairs, to_all, transport), authority=running.authority, to_all=to_all)
        for _ in range(rounds):
            for tool, run in tools(mqttwrk, case).items():
                began, before = time.monotonic(), running.cpu_s(transport)
                delivered, cpu_s = run(case)
                wall_s, broker_cpu_s = time.monotonic() - began, running.cpu_s(transport) - before
                results.append(Result(tool, transport, pairs, to_all, qos, delivered, cpu_s, wall_s, broker_cpu_s))
                print(f"  {results[-1]}", file=sys.stderr)
    return results


def table(results: list[Result], messages: int) -> str:
    """The median of each tool and case, as Markdown."""
    lines = [
        "| transport | pairs | QoS | tool | delivered | CPU s per 100 000 | of mqttlab | wall s | server CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for pairs, to_all, qos, transport in CASES:
        ours = None
        clients = f"{pairs} to all {to_all}" if to_all else pairs
        for tool in dict.fromkeys(result.tool for result in results):
            kind = (pairs, to_all, qos, transport, tool)
            rows = [row for row in results if (row.pairs, row.to_all, row.qos, row.transport, row.tool) == kind]
            if not rows:
                continue
            cpu_s = statistics.median(row.cpu_s_per_100k for row in rows)
            ours = ours or cpu_s
            wanted = of_each(messages, pairs, to_all, transport) * pairs * max(to_all, 1)
            delivered = min(row.delivered for row in rows) / wanted
            wall_s = statistics.median(row.wall_s for row in rows)
            server_s = statistics.median(row.broker_cpu_s for row in rows)
            lines.append(
                f"| {transport} | {clients} | {qos} | {tool} | {delivered:.1%} | {cpu_s:.3f} | {cpu_s / ours:.1f} × "
                f"| {wall_s:.2f} | {server_s:.2f} |"
            )
    return "\n".join(lines)


def chosen(text: str) -> tuple[str, ...]:
    """Transports by their names, with commas between them."""
    names = tuple(text.split(","))
    for name in names:
        if name not in TRANSPORTS:
            raise argparse.ArgumentTypeError(f"unknown transport {name!r}; known: {', '.join(TRANSPORTS)}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--only", metavar="TRANSPORTS", type=chosen, default=TRANSPORTS,
                        help=f"of {', '.join(TRANSPORTS)}, with commas between them")
    parser.add_argument("--mqttwrk", metavar="PATH")
    parser.add_argument("--json", metavar="FILE", type=Path)
    arguments = parser.parse_args()
    for what in (["-p", "mqttlab-live", "--example", "load"], ["-p", "mqttlab-engine"]):
        subprocess.run(["cargo", "build", "--release", "--quiet", *what], cwd=ROOT, check=True)
    load = os.getloadavg()[0]
    with servers() as running:
        results = measure(running, arguments.rounds, arguments.messages, arguments.mqttwrk, arguments.only)
    print(f"load average before: {load:.2f}\n")
    print(table(results, arguments.messages))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))


if __name__ == "__main__":
    main()
