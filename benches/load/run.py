#!/usr/bin/env python3
"""Processor time of load tools beside each other: same Mosquitto, same messages, one after the other.

Each tool publishes and receives the same number of messages of 64 B. Counted is the processor time of all its
processes from start to end, by `wait4`, for 100 000 messages sent and received; the broker's own stands beside it.
Rounds alternate between tools, so that a machine that grows slower is unfair to all of them.

Over WebSocket paho-mqtt stands beside our clients (`benches/load/paho_pair.py`): the others do not speak it.

    benches/load/run.py [--rounds 3] [--messages 100000] [--mqttwrk PATH] [--json FILE]

mqttwrk is installed by `cargo install mqttwrk`; a tool that is not there is left out. With many pairs mqttwrk has no
pairs: each of its messages goes to all subscribers, and its figures count deliveries. A tool that has not finished
after 30 s is killed, and its share of deliveries says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = [(1, 0, "tcp"), (1, 1, "tcp"), (100, 0, "tcp"), (100, 1, "tcp"), (1, 1, "websocket")]
PAYLOAD_BYTES = 64
PATIENCE_S = 30
WINDOW = 100


@dataclass(frozen=True)
class Result:
    """One tool in one round of one case."""

    tool: str
    transport: str
    pairs: int
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
    """So many publishers, each with a subscriber of its own."""

    transport: str
    port: int
    pairs: int
    qos: int
    each: int


@dataclass(frozen=True)
class Broker:
    """A Mosquitto that runs for this bench alone."""

    ports: dict[str, int]
    pid: int

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def mosquitto() -> Iterator[Broker]:
    """A broker on a free port, without limits that would lose messages."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    with socket.create_server(("127.0.0.1", 0)) as plain, socket.create_server(("127.0.0.1", 0)) as layered:
        ports = {"tcp": plain.getsockname()[1], "websocket": layered.getsockname()[1]}
    with tempfile.TemporaryDirectory() as scratch:
        configuration = Path(scratch) / "mosquitto.conf"
        configuration.write_text(
            f"listener {ports['tcp']} 127.0.0.1\nlistener {ports['websocket']} 127.0.0.1\nprotocol websockets\n"
            f"allow_anonymous true\nset_tcp_nodelay true\n"
            f"max_queued_messages 0\nmax_inflight_messages {WINDOW}\nlog_type error\n"
        )
        process = subprocess.Popen([program, "-c", str(configuration)], stderr=subprocess.DEVNULL)
        try:
            for port in ports.values():
                wait_for_port(port)
            yield Broker(ports=ports, pid=process.pid)
        finally:
            process.terminate()
            process.wait()


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
    scheme = "ws:" if case.transport == "websocket" else ""
    arguments = [f"{scheme}127.0.0.1:{case.port}", case.pairs, case.qos, PAYLOAD_BYTES, case.each * case.pairs]
    process = subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    said = json.loads(process.stdout.read())
    return said["delivered"], cpu_of([process])


def run_paho(case: Case) -> tuple[int, float]:
    program = Path(__file__).parent / "paho_pair.py"
    arguments = [case.transport, case.port, case.qos, PAYLOAD_BYTES, case.each, WINDOW]
    process = subprocess.Popen([sys.executable, program, *map(str, arguments)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    said = process.stdout.read()
    return int(said or 0), cpu_of([process])


def run_mosquitto_tools(case: Case) -> tuple[int, float]:
    common = ["-p", str(case.port), "-q", str(case.qos)]
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


def run_mqttwrk(program: str) -> Callable[[Case], tuple[int, float]]:
    def run(case: Case) -> tuple[int, float]:
        options = {
            "--server": "127.0.0.1",
            "--port": case.port,
            "--publishers": case.pairs,
            "--subscribers": case.pairs,
            # Its subscribers all take every publisher's messages: fewer published make as many delivered.
            "--count": case.each // case.pairs,
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


def tools(mqttwrk: str | None, transport: str) -> dict[str, Callable[[Case], tuple[int, float]]]:
    found: dict[str, Callable[[Case], tuple[int, float]]] = {"mqttlab": run_mqttlab}
    if transport == "websocket":
        return found | {"paho-mqtt": run_paho}
    if shutil.which("mosquitto_pub") and shutil.which("mosquitto_sub"):
        found["mosquitto_pub/_sub"] = run_mosquitto_tools
    else:
        print("mosquitto_pub and mosquitto_sub are not there (Debian: mosquitto-clients)", file=sys.stderr)
    if program := mqttwrk or shutil.which("mqttwrk"):
        found["mqttwrk"] = run_mqttwrk(program)
    else:
        print("mqttwrk is not there (cargo install mqttwrk)", file=sys.stderr)
    return found


def measure(broker: Broker, rounds: int, messages: int, mqttwrk: str | None) -> list[Result]:
    results = []
    for pairs, qos, transport in CASES:
        case = Case(transport=transport, port=broker.ports[transport], pairs=pairs, qos=qos, each=messages // pairs)
        for _ in range(rounds):
            for tool, run in tools(mqttwrk, transport).items():
                began, broker_before = time.monotonic(), broker.cpu_s()
                delivered, cpu_s = run(case)
                wall_s, broker_cpu_s = time.monotonic() - began, broker.cpu_s() - broker_before
                results.append(Result(tool, transport, pairs, qos, delivered, cpu_s, wall_s, broker_cpu_s))
                print(f"  {results[-1]}", file=sys.stderr)
    return results


def table(results: list[Result], messages: int) -> str:
    """The median of each tool and case, as Markdown."""
    lines = [
        "| transport | pairs | QoS | tool | delivered | CPU s per 100 000 | of mqttlab | wall s | broker CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for pairs, qos, transport in CASES:
        ours = None
        for tool in dict.fromkeys(result.tool for result in results):
            here = [row for row in results if (row.pairs, row.qos, row.transport) == (pairs, qos, transport)]
            rows = [row for row in here if row.tool == tool]
            if not rows:
                continue
            cpu_s = statistics.median(row.cpu_s_per_100k for row in rows)
            ours = ours or cpu_s
            delivered = min(row.delivered for row in rows) / (messages // pairs * pairs)
            wall_s = statistics.median(row.wall_s for row in rows)
            broker_s = statistics.median(row.broker_cpu_s for row in rows)
            lines.append(
                f"| {transport} | {pairs} | {qos} | {tool} | {delivered:.1%} | {cpu_s:.3f} | {cpu_s / ours:.1f} × "
                f"| {wall_s:.2f} | {broker_s:.2f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--mqttwrk", metavar="PATH")
    parser.add_argument("--json", metavar="FILE", type=Path)
    arguments = parser.parse_args()
    build = ["cargo", "build", "--release", "--quiet", "-p", "mqttlab-live", "--example", "load"]
    subprocess.run(build, cwd=ROOT, check=True)
    load = os.getloadavg()[0]
    with mosquitto() as broker:
        results = measure(broker, arguments.rounds, arguments.messages, arguments.mqttwrk)
    print(f"load average before: {load:.2f}\n")
    print(table(results, arguments.messages))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))


if __name__ == "__main__":
    main()
