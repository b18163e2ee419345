"""Groups performed by programs: real Paho clients and a real Mosquitto, measured by their frames beside our own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import valid
from mqttlab.metrics import PARTS, attribution, attribution_coverage
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.runs.perform import Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: make setup-test")
pytestmark = pytest.mark.live

# Publishes and subscribes as a user of the library would.
PAHO = '''
import socket, sys, time
import paho.mqtt.client as mqtt

address, port, client_id, does, topic, qos, rate = sys.argv[1:8]
qos, rate = int(qos), float(rate)
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id)
client.on_subscribe = lambda *_: print("subscribed", flush=True)
client.connect(address, int(port))
if sys.argv[9] == "nodelay":
    client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
if does == "subscribe":
    client.on_connect = lambda *_: client.subscribe(topic, qos)
    client.loop_forever()
client.loop_start()
while not client.is_connected():
    time.sleep(0.01)
print("connected", flush=True)
# Others may need a moment longer to start.
time.sleep(2)
begin, count = time.monotonic(), int(sys.argv[8])
for number in range(count):
    time.sleep(max(begin + number / rate - time.monotonic(), 0))
    client.publish(topic, f"{number:6} of {client_id}".ljust(200), qos).wait_for_publish(10)
time.sleep(0.5)
client.disconnect()
client.loop_stop()
'''


def paho(
    does: str, topic: str, *, qos: int = 1, rate: float = 20, count: int = 60, nagle: bool = True,
) -> dict[str, Any]:
    """A group's program."""
    words = ["{address}", "{port}", "{client_id}", does, topic, str(qos), str(rate), str(count),
             "nagle" if nagle else "nodelay"]
    line = "subscribed" if does == "subscribe" else "connected"
    return {"command": [sys.executable, "{directory}/paho_client.py", *words], "files": {"paho_client.py": PAHO},
            "ready_line": line}


def scenario(groups: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Groups on one host, 40 ms from the broker and back with everything that a link adds."""
    line = {"delay": "20 ms", "jitter": "4 ms", "rate": "2 Mbit/s"}
    return {
        "name": "programs", "seed": 3, "phases": {"duration": "6 s", "cool_down": "4 s"},
        "networks": [{"between": ["field", "broker"], "up": line, "down": line}],
        "groups": [{"host": "field", **group} for group in groups], **changes,
    }  # fmt: skip


def delivered(recording: Recording) -> pl.DataFrame:
    """First deliveries of every phase: programs begin when they have started, which on a busy machine takes a while."""
    messages = recording.messages.filter(pl.col("fate") == "delivered", pl.col("latency_ns").is_not_null())
    return messages.with_columns(latency_ms=pl.col("latency_ns") / 1e6)


def run(values: dict[str, Any], directory: Path) -> Outcome:
    return perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_paho_clients_are_measured_like_our_own(qos: int, tmp_path: Path) -> None:
    # Without Nagle's algorithm, which makes a difference that is not of what is measured. A message of the second
    # publisher waits at the broker while the first one's is unacknowledged, or does not: the moment in which a program
    # has started decides. And at QoS 2 Paho writes each packet by itself, so that a PUBREC waits for the
    # acknowledgement of the PUBCOMP before it (42 ms here), and ours writes both at once; leg by leg the rest is alike
    # (docs/explanation/live.md).
    nagle = False
    publish = {"topic": "ours/{client}", "qos": qos, "payload": "200 B", "rate": "20 /s", "messages": 60}
    values = scenario([
        {"name": "pub", "count": 2, "publish": publish, "nagle": nagle},
        {"name": "sub", "subscribe": [{"filter": "ours/#", "qos": qos}], "nagle": nagle},
        {"name": "paho-pub", "count": 2, "client": paho("publish", "paho/{client}", qos=qos, nagle=nagle)},
        {"name": "paho-sub", "client": paho("subscribe", "paho/#", qos=qos, nagle=nagle)},
    ], broker={"nagle": nagle})  # fmt: skip
    outcome = run(values, tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    found = delivered(recording)
    ours = found.filter(publisher_group="pub", subscriber_group="sub")["latency_ms"]
    theirs = found.filter(publisher_group="paho-pub", subscriber_group="paho-sub")["latency_ms"]
    assert (len(ours), len(theirs), len(found)) == (120, 120, 240), "each to its own subscriber, and all of them"
    # A run that was late says so, and then nothing of its latencies.
    for quantile in (0.1, 0.5) if valid(recording) else ():
        one, other = ours.quantile(quantile), theirs.quantile(quantile)
        assert one is not None and other is not None
        # Two links with jitter: 120 messages a side tell a quantile to a few per cent; the tail is the machine's.
        assert abs(other - one) < 0.1 * one + 3, (quantile, one, other)
    clients = recording.table("clients").filter(pl.col("group").str.starts_with("paho")).sort("client")
    assert clients["sent"].to_list() == [60, 60, 0] and clients["delivered"].sum() == 120
    assert clients["acknowledged"].to_list() == ([60, 60, 0] if qos else [0, 0, 0])
    assert clients["connect_ns"].null_count() == 0 and clients["lost"].sum() == clients["unknown"].sum() == 0
    _check_events(recording, tmp_path / "run")


def _check_events(recording: Recording, directory: Path) -> None:
    first = recording.table("clients").filter(group="paho-pub")["client"].min()
    mine = recording.events.filter(client=first).sort("at_ns")["kind"].to_list()
    assert [kind for kind in mine if kind != "tcp_info"] == [
        "program_start", "connect", "connack", "close", "program_exit"]  # fmt: skip
    exits = recording.events.filter(kind="program_exit")["detail"].to_list()
    assert exits.count("exit status 0") == 2 and len(exits) == 3, "publishers have done, the subscriber is told"
    assert (directory / f"program-{first}.log").read_text(encoding="utf-8") == "connected\n"


@pytest.mark.parametrize(("qos", "host"), [(0, "field"), (1, "field"), (2, "field"), (1, "broker")])
def test_ours_and_theirs_receive_each_others_messages(qos: int, host: str, tmp_path: Path) -> None:
    publish = {"topic": "both/ours", "qos": qos, "payload": "200 B", "rate": "20 /s", "messages": 40}
    values = scenario([
        {"name": "pub", "host": host, "publish": publish},
        {"name": "sub", "subscribe": [{"filter": "both/#", "qos": qos}]},
        {"name": "paho-pub", "host": host, "client": paho("publish", "both/paho", qos=qos, count=40)},
        {"name": "paho-sub", "client": paho("subscribe", "both/#", qos=qos)},
    ])  # fmt: skip
    assert run(values, tmp_path / "run").verdict == "complete"
    recording = Recording.open(tmp_path / "run")
    counts = delivered(recording).group_by("publisher_group", "subscriber_group").len()
    assert sorted(counts.rows()) == [
        ("paho-pub", "paho-sub", 40), ("paho-pub", "sub", 40), ("pub", "paho-sub", 40), ("pub", "sub", 40)]  # fmt: skip
    assert set(recording.messages["fate"].cast(pl.String)) == {"delivered"}
    assert recording.table("clients")["foreign"].sum() == 0, "what our subscriber had of theirs is counted once"
    # Frames tell of theirs where the time went as they do of ours.
    table = attribution(recording)
    assert table["unattributed"].null_count() == table.height == 160, attribution_coverage(recording)
    assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    # 20 ms are the mean of what the links delay.
    assert table["wire_to_subscriber_ns"].median() > 10_000_000  # type: ignore[operator]
    on_its_way = table["wire_to_broker_ns"].median()
    assert (on_its_way == 0) if host == "broker" else (on_its_way > 10_000_000)  # type: ignore[operator]


def test_a_program_that_fails_is_said_and_does_not_end_the_run(tmp_path: Path) -> None:
    command = {"command": ["sh", "-c", "echo here; echo there >&2; exit 3"], "ready_line": "never"}
    publish = {"topic": "t", "qos": 0, "payload": "20 B", "rate": "20 /s"}
    values = scenario([
        {"name": "short", "client": command},
        {"name": "pub", "publish": publish},
        {"name": "sub", "subscribe": [{"filter": "t"}]},
    ], phases={"duration": "1 s", "cool_down": "1 s"})  # fmt: skip
    outcome = run(values, tmp_path / "run")
    assert outcome.verdict == "complete"
    assert any("the program of client `short[0]` ended during the run (exit status 3); see program-0.log" in warning
               for warning in outcome.warnings)  # fmt: skip
    assert (tmp_path / "run" / "program-0.log").read_text(encoding="utf-8").split() == ["here", "there"]
    missing = scenario([{"name": "gone", "client": {"command": ["/nowhere/client"]}}])
    outcome = run(missing, tmp_path / "missing")
    assert outcome.verdict == "incomplete"
    assert str(outcome.reason).startswith("client `gone[0]`: `/nowhere/client` cannot be started")


def test_programs_die_with_the_engine(tmp_path: Path) -> None:
    mark = f"{os.getpid()}.0625"
    long = {"name": "long", "count": 3, "client": {"command": ["sleep", mark]}}
    values = scenario([long], phases={"duration": "60 s"})
    plan = tmp_path / "run.py"
    plan.write_text(
        "import json, sys\nfrom pathlib import Path\nfrom mqttlab.runs import Job, perform\n"
        "perform(Job(json.loads(sys.argv[1]), Path(sys.argv[2])), lambda line: print(json.dumps(line), flush=True))\n",
        encoding="utf-8")  # fmt: skip
    run = subprocess.Popen(
        [sys.executable, str(plan), json.dumps(compile_plan(parse_values(values))), str(tmp_path / "run")],
        stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert run.stdout is not None
    for line in run.stdout:
        if '"measurement"' in line:
            break
    assert len(sleepers(mark)) == 3
    engine = subprocess.run(["pgrep", "-P", str(run.pid), "-f", "mqttlab-engine"], capture_output=True, text=True)
    os.kill(int(engine.stdout.split()[0]), signal.SIGKILL)
    run.wait(timeout=30)
    deadline = time.monotonic() + 10
    while sleepers(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sleepers(mark) == []


def sleepers(mark: str) -> list[str]:
    """The processes that sleep for just so long."""
    return subprocess.run(["pgrep", "-f", f"^sleep {mark}"], capture_output=True, text=True).stdout.split()
