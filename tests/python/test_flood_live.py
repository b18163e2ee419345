"""A stranger floods the topics of a live run: what it sends is counted, and the engine does not grow with it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ports import own_port
from processes import engines

MESSAGES = 100_000
SCENARIO = """
name = "flooded"
network = "external"
[phases]
duration = "3 s"
cool_down = "1 s"
[broker]
kind = "external"
address = "127.0.0.1"
port = PORT
[[groups]]
name = "publishers"
host = "field"
count = 2
publish = { topic = "gps/{client}", qos = 1, payload = "30 B", interval = "50 ms" }
[[groups]]
name = "subscribers"
host = "field"
subscribe = [{ filter = "gps/+", qos = 1 }]
"""
# An idle engine has a tenth of that; what it held of each message was 118 B.
MOST_KB = 60_000


def string(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def packet(first: int, rest: bytes) -> bytes:
    assert len(rest) < 128
    return bytes([first, len(rest)]) + rest


def flood(port: int) -> None:
    """Publish on the run's topics, some as large as the run's messages and some larger (MQTT 3.1.1 §3.3)."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stranger:
        stranger.sendall(packet(0x10, string(b"MQTT") + b"\x04\x02\x00\x00" + string(b"stranger")))
        assert stranger.recv(4) == b"\x20\x02\x00\x00"
        both = b"".join(packet(0x30, string(b"gps/1") + b"A" * size) for size in (30, 60))
        for _ in range(MESSAGES // 1000):
            stranger.sendall(500 * both)
            # The broker has a second or two for them, and drops what it has no room for.
            time.sleep(0.01)
        stranger.sendall(b"\xe0\x00")


@pytest.fixture
def broker(tmp_path: Path) -> object:
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
            yield port
        finally:
            process.terminate()


def most_memory(runs: Path, until: threading.Event) -> int:
    """The most that the run's engine has had, in kB (VmHWM of proc(5))."""
    most = 0
    while not until.wait(0.02):
        for engine in engines(lambda words: any(word.startswith(str(runs)) for word in words)):
            with contextlib.suppress(OSError):
                found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{engine}/status").read_text(encoding="utf-8"))
                most = max(most, int(found[1]) if found else 0)
    return most


@pytest.mark.live
def test_a_flood_on_its_topics_is_counted_and_does_not_grow_the_engine(broker: int, tmp_path: Path) -> None:
    scenario, runs = tmp_path / "flooded.toml", tmp_path / "runs"
    scenario.write_text(SCENARIO.replace("PORT", str(broker)), encoding="utf-8")
    words = [sys.executable, "-m", "mqttlab", "run", str(scenario), "--runs", str(runs), "--no-html"]
    with subprocess.Popen([*words, "--catalog", "none"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        over, found = threading.Event(), list[int]()
        watching = threading.Thread(target=lambda: found.append(most_memory(runs, over)))
        watching.start()
        assert process.stdout is not None
        said, flooding = "", None
        for line in process.stdout:
            said += line
            if "measuring" in line and flooding is None:
                flooding = threading.Thread(target=flood, args=(broker,))
                flooding.start()
        over.set()
        watching.join()
        assert flooding is not None, said
        flooding.join()
    [run] = runs.glob("flooded-*")
    counted = json.loads((run / "run.json").read_text(encoding="utf-8"))["messages"]
    assert counted["foreign"] >= MESSAGES // 5, said
    told = re.sub(r"\s", "", said)
    assert told.count(f"{counted['foreign']:,}foreigndeliveries") == 1, said
    assert "unknownpublisher" not in told, said
    # An instant is given up only where a million are kept: nothing is unknown for want of room.
    assert "too many to keep" not in said
    assert 0 < found[0] < MOST_KB, f"{found} kB"
