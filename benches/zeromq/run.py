#!/usr/bin/env python3
"""ZeroMQ: processor time of our clients beside pyzmq's through one proxy, and what a slow joiner loses.

1. One publisher sends messages of 64 B back to back to one subscriber through `mqttlab-engine proxy`, without a
   high-water mark. Counted is processor time for 100 000 deliveries: of our engine by the run's samples of it
   (recording included), of the peer's two Python processes (libzmq) by `wait4`.
2. A PUB of libzmq connects and sends a message every millisecond at once, while a SUB has subscribed long ago: how many
   are lost before the subscription reaches it. Beside it a run of ours, which waits until subscriptions are there.

    benches/zeromq/run.py [--messages 100000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab.engine import engine_path
from mqttlab.metrics import deliveries
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

PAYLOAD_BYTES = 64
SUBSCRIBER = """
import sys, zmq
port, messages = map(int, sys.argv[1:])
sub = zmq.Context().socket(zmq.SUB)
sub.rcvhwm, sub.rcvtimeo = 0, 20_000
sub.connect(f"tcp://127.0.0.1:{port}")
sub.subscribe(b"")
print("ready", flush=True)
came = 0
try:
    while came < messages:
        sub.recv_multipart()
        came += 1
except zmq.Again:
    pass
print(came, flush=True)
"""
PUBLISHER = """
import sys, time, zmq
port, messages, size, joins_slowly = map(int, sys.argv[1:])
pub = zmq.Context().socket(zmq.XPUB)
pub.sndhwm = 0
pub.connect(f"tcp://127.0.0.1:{port}")
if not joins_slowly:
    pub.recv()
payload = bytes(size)
for _ in range(messages):
    pub.send_multipart([b"t", payload])
    if joins_slowly:
        time.sleep(0.001)
"""


@contextmanager
def proxy(directory: Path) -> Iterator[tuple[int, int]]:
    """Our proxy: the ports that it has chosen, of publishers and subscribers."""
    settings = directory / "proxy.json"
    settings.write_text(json.dumps({
        "publishers": "127.0.0.1:0", "subscribers": "127.0.0.1:0", "high_water_mark": 0}))
    with subprocess.Popen(
            [engine_path(), "proxy", "--settings", str(settings)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        ports = [int(port) for port in re.findall(r":(\d+) \(X", said)]
        assert len(ports) == 2, said
        try:
            yield ports[0], ports[1]
        finally:
            process.terminate()
            # It says what it has counted when it ends.
            process.communicate()


def of_pyzmq(messages: int, *, joins_slowly: bool = False) -> tuple[int, float]:
    """Deliveries and processor seconds of libzmq's two ends."""
    with tempfile.TemporaryDirectory() as directory, proxy(Path(directory)) as (publishers, subscribers):
        sub = subprocess.Popen(
            [sys.executable, "-c", SUBSCRIBER, str(subscribers), str(messages)], stdout=subprocess.PIPE, text=True)
        assert sub.stdout is not None
        sub.stdout.readline()
        words = [str(word) for word in (publishers, messages, PAYLOAD_BYTES, int(joins_slowly))]
        pub = subprocess.Popen([sys.executable, "-c", PUBLISHER, *words])
        used = [os.wait4(pub.pid, 0)[2]]
        came = int(sub.stdout.readline())
        used.append(os.wait4(sub.pid, 0)[2])
        sub.stdout.close()
    return came, sum(each.ru_utime + each.ru_stime for each in used)


def scenario(messages: int, **publish: Any) -> dict[str, Any]:
    return {
        "name": "zeromq-bench", "network": "loopback", "phases": {"duration": "5 s", "cool_down": "2 s"},
        "recording": {"detail": "messages", "resource_interval": "20 ms"},
        "servers": [{"name": "proxy", "role": "zeromq", "zeromq": {"high_water_mark": 0}}],
        "groups": [
            {"name": "pub", "host": "proxy", "protocol": "zeromq", "zeromq": {"high_water_mark": 0},
             "publish": {"topic": "t", "payload": f"{PAYLOAD_BYTES} B", "messages": messages, **publish}},
            {"name": "sub", "host": "proxy", "protocol": "zeromq", "subscribe": ["t"]}],
    }


def of_ours(values: dict[str, Any]) -> tuple[int, float]:
    """Deliveries and processor seconds of the engine."""
    with tempfile.TemporaryDirectory() as directory:
        outcome = perform(Job(compile_plan(parse_values(values)), Path(directory) / "run"), lambda line: None)
        assert outcome.verdict == "complete", outcome.reason
        recording = Recording.open(Path(directory) / "run")
        engine = recording.table("resources").filter(pl.col("process").cast(pl.String) == "engine")
        spent = engine["cpu_user_s"] + engine["cpu_system_s"]
        return deliveries(recording).height, float(spent.max() - spent.min())  # type: ignore[operator, arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    found: dict[str, list[tuple[int, float]]] = {"mqttlab": [], "pyzmq": []}
    for _ in range(arguments.rounds):
        found["mqttlab"].append(of_ours(scenario(arguments.messages, arrival="back-to-back")))
        found["pyzmq"].append(of_pyzmq(arguments.messages))
    print("| clients | CPU s per 100,000 deliveries, median | rounds | delivered |")
    print("|---|---:|---:|---:|")
    for name, rounds in found.items():
        cost = statistics.median(cpu * 100_000 / max(came, 1) for came, cpu in rounds)
        least = 100 * min(came for came, _ in rounds) / arguments.messages
        print(f"| {name} | {cost:.2f} | {len(rounds)} | {least:g} % |")
    lost = [1000 - of_pyzmq(1000, joins_slowly=True)[0] for _ in range(arguments.rounds)]
    ours = [1000 - of_ours(scenario(1000, interval="1 ms"))[0] for _ in range(arguments.rounds)]
    print(f"\nSlow joiner, of 1000 messages a millisecond apart: libzmq's PUB lost {min(lost)} to {max(lost)}, "
          f"a run of ours {min(ours)} to {max(ours)}.")


if __name__ == "__main__":
    main()
