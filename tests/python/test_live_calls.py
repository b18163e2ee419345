"""System calls of a live message: the engine reads what is there once, and writes what a turn has made once.

The kernel's TCP is four fifths of a live client's processor time, so calls are what a message costs. A count does not
depend on the machine's speed: where it is slow, messages pile up, and one call takes several. The cost of one more
message is the difference of a longer and a shorter run, which leaves out what a run costs once.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqttlab.engine import engine_path
from mqttlab.runs import Job
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from ports import own_port

# `read` and `write` are left out: the recorder and the sampler have files of their own.
KINDS = {"reads": ("recvfrom", "recvmsg"), "writes": ("sendto", "sendmsg"), "waits": ("epoll_pwait2", "epoll_wait")}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[int]:
    """The port of a Mosquitto of the test's own."""
    program = shutil.which("mosquitto") or shutil.which("/usr/sbin/mosquitto")
    if program is None or shutil.which("strace") is None:
        pytest.skip("mosquitto or strace is not installed")
    port, settings = own_port(), tmp_path / "broker.conf"
    text = f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\n"
    settings.write_text(text, encoding="utf-8")
    with subprocess.Popen([program, "-c", settings], stderr=subprocess.DEVNULL) as process:
        try:
            yield port
        finally:
            process.terminate()


def counted(directory: Path, port: int, seconds: int, publish: dict[str, Any]) -> dict[str, int]:
    """Messages of a run with a publisher and a subscriber, and the engine's calls that read, write and wait."""
    values: dict[str, Any] = {
        "name": "counted", "network": "external", "phases": {"duration": f"{seconds} s", "cool_down": "1 s"},
        "broker": {"kind": "external", "address": "127.0.0.1", "port": port},
        "groups": [
            {"name": "publisher", "host": "field", "publish": {"topic": "calls", "payload": "64 B", **publish}},
            {"name": "subscriber", "host": "field", "subscribe": [{"filter": "calls", "qos": publish["qos"]}]},
        ],
    }
    job, summary = Job(compile_plan(parse_values(values)), directory), directory.with_suffix(".calls")
    names = ",".join(name for names in KINDS.values() for name in names)
    done = subprocess.run(
        ["strace", "--follow-forks", "--summary-only", f"--trace={names}", f"--output={summary}", engine_path(),
         *job.arguments],
        input=job.text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    run = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    # Share of time, seconds, microseconds a call, calls, perhaps errors, name.
    rows = (line.split() for line in summary.read_text(encoding="utf-8").splitlines())
    total = {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdecimal()}
    calls = {kind: sum(total.get(name, 0) for name in names) for kind, names in KINDS.items()}
    return calls | {"messages": run["messages"]["delivered"]}


def of_one_more(tmp_path: Path, port: int, publish: dict[str, Any]) -> dict[str, float]:
    short, long = (counted(tmp_path / str(seconds), port, seconds, publish) for seconds in (1, 4))
    more = long["messages"] - short["messages"]
    assert more >= 250, "too few to count"
    return {kind: (long[kind] - short[kind]) / more for kind in KINDS}


@pytest.mark.live
@pytest.mark.parametrize(("qos", "exchanged"), [(0, 1), (1, 2), (2, 4)])
def test_a_packet_that_travels_alone_costs_one_read_and_one_write(
    tmp_path: Path, broker: int, qos: int, exchanged: int,
) -> None:
    """Each packet that is `exchanged` between two sides: QoS 1 has PUBLISH and PUBACK (MQTT 5 §4.3)."""
    calls = of_one_more(tmp_path, broker, {"qos": qos, "rate": "100 /s"})
    # A packet that a client sends is one write. Of those that it receives, each wakes it, and is one read.
    for kind in ("reads", "writes"):
        assert LEAST * exchanged < calls[kind] < exchanged + MORE, calls
    # The schedule wakes the publisher, too.
    assert LEAST < calls["waits"] < exchanged + 1 + MORE, calls


@pytest.mark.live
def test_a_throughput_test_reads_and_writes_many_messages_at_once(tmp_path: Path, broker: int) -> None:
    calls = of_one_more(tmp_path, broker, {"qos": 1, "arrival": "back-to-back"})
    assert 0 < calls["reads"] < 0.5 and 0 < calls["writes"] < 0.5, calls


# Less than that was not counted, however much piled up.
LEAST = 0.3
# Keep-alives, farewells and what the machine wakes up for nothing.
MORE = 0.3
