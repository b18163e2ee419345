"""A broker that runs elsewhere and stands still for a while: its clients alone can tell."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.cli.status import status_of
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from ports import own_port

STANDS_STILL_S = 2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """The port and process of a Mosquitto that no run has started."""
    if shutil.which("mosquitto") is None:
        pytest.skip("mosquitto is not installed")
    port = own_port()
    (tmp_path / "broker.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n", encoding="utf-8")
    with subprocess.Popen(["mosquitto", "-c", tmp_path / "broker.conf"], stderr=subprocess.DEVNULL) as process:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    assert process.poll() is None
                    time.sleep(0.05)
            yield port, process.pid
        finally:
            process.kill()


@pytest.mark.live
@pytest.mark.parametrize(("qos", "payload"), [(0, "100 B"), (1, "20 kB")], ids=["QoS 0", "QoS 1, a full window"])
def test_a_broker_elsewhere_that_stood_still_makes_the_run_not_valid(
        qos: int, payload: str, broker: tuple[int, int], tmp_path: Path) -> None:
    port, process = broker
    values = {
        "name": "thawed", "network": "external", "phases": {"duration": "5 s", "cool_down": "5 s"},
        "broker": {"kind": "external", "address": "127.0.0.1", "port": port},
        "groups": [{"name": "p", "host": "here", "count": 2,
                    "publish": {"topic": "t/{client}", "qos": qos, "payload": payload, "rate": "50 /s"}},
                   {"name": "s", "host": "here", "subscribe": [{"filter": "t/+", "qos": qos}]}],
    }
    measuring: list[str] = []

    def freeze(line: dict[str, Any]) -> None:
        if line.get("event") == "phase":
            measuring.append(line["phase"])
        if line.get("event") == "tick" and measuring and measuring[-1] == "measurement" and line.get("delivered"):
            measuring.clear()
            os.kill(process, signal.SIGSTOP)
            threading.Timer(STANDS_STILL_S, os.kill, (process, signal.SIGCONT)).start()

    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), freeze)
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    # What was under way came when it went on: nothing else tells.
    assert set(recording.messages["fate"]) == {"delivered"}
    assert recording.messages.filter(pl.col("latency_ns") > (STANDS_STILL_S - 1) * 1e9).height
    [told] = [reason for reason in recording.run["validity"]["reasons"] if "answered nobody" in reason]
    times = re.match(r"server `broker` answered nobody from ([\d.]+) s to ([\d.]+) s of the run(?: and .*)?, "
                     "though its host acknowledged what it was sent", told)
    assert times and float(times[2]) - float(times[1]) > STANDS_STILL_S - 1
    assert status_of(outcome) == 6
