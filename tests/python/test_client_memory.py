"""Memory of a simulated client: that of more clients over that of fewer, so that the program's own drops out."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from mqttlab.engine import engine_path
from mqttlab.runs import Job
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

# What one took when this was written, and how much more it may take: queues grow by doubling.
BYTES_KNOWN = 3_800
MORE_MOST = 1.1


def peak(directory: Path, clients: int) -> int:
    """Bytes that the engine has at most: publishers on ten hosts, a message in ten minutes each, one subscriber."""
    cable = {"rate": "10 Gbit/s", "delay": "1 ms", "overhead": "38 B"}
    hosts = [f"site{number}" for number in range(10)]
    values: dict[str, Any] = {
        "name": "many",
        "backend": "sim",
        "phases": {"duration": "20 s", "cool_down": "1 s"},
        "hosts": {host: {} for host in [*hosts, "watcher"]},
        "networks": [{"between": [host, "broker"], "up": cable, "down": cable} for host in [*hosts, "watcher"]],
        "groups": [
            *(
                {
                    "name": host,
                    "host": host,
                    "count": clients // len(hosts),
                    "connect_over": "10 s",
                    "publish": {"topic": "t/{client}", "payload": "64 B", "rate": "0.1 /min"},
                }
                for host in hosts
            ),
            {"name": "watcher", "host": "watcher", "subscribe": ["t/#"]},
        ],
        "recording": {"detail": "messages"},
    }
    job = Job(compile_plan(parse_values(values)), directory)
    engine = subprocess.Popen([engine_path(), *job.arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert engine.stdin is not None
    engine.stdin.write(job.text.encode())
    engine.stdin.close()
    most = 0
    # The peak is at the end of the network's time; what follows, the tables, takes longer than a look.
    while engine.poll() is None:
        lines = Path(f"/proc/{engine.pid}/status").read_text(encoding="utf-8").splitlines()
        most = max([most, *(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
        time.sleep(0.002)
    assert engine.returncode == 0
    return most


def test_a_simulated_client_takes_less_than_4_kib(tmp_path: Path) -> None:
    few, many = 10_000, 40_000
    each = (peak(tmp_path / "many", many) - peak(tmp_path / "few", few)) / (many - few)
    assert each < MORE_MOST * BYTES_KNOWN, f"{each:.0f} B for a client, which took {BYTES_KNOWN}"
    assert each < 4096
