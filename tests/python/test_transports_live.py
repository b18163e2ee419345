"""What lies between TCP and MQTT in live runs: with Mosquitto, beside simulations of the same, and with servers that
are not what they should be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import able
from mqttlab.metrics import deliveries
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.runs.perform import Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_transports import Values, counted, opened, scenario, simulated

REASON = able()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")
# Answers every HTTP request with its last argument, closes at once where that is "close", is silent where it is empty.
SERVER = '''
import asyncio, sys

async def serve(reader, writer):
    if sys.argv[3] == "close":
        return writer.close()
    await reader.readuntil(b"\\r\\n\\r\\n")
    if sys.argv[3]:
        writer.write(sys.argv[3].encode().decode("unicode_escape").encode("latin-1"))
    await writer.drain()
    await asyncio.sleep(60)

async def main():
    servers = [await asyncio.start_server(serve, sys.argv[1], int(port)) for port in sys.argv[2].split(",")]
    await asyncio.gather(*(server.serve_forever() for server in servers))

asyncio.run(main())
'''


def run(values: Values, directory: Path) -> Outcome:
    return perform(Job(compile_plan(parse_values({**values, "backend": "live"})), directory), lambda line: None)


# With 1 MB on its way to a subscriber Mosquitto 2.0.11 may stall: it writes what is left every 100 ms, or later.
@pytest.mark.parametrize(("payload", "messages"), [("0 B", 10), ("100 B", 10), ("70 kB", 5)])
def test_messages_pass_over_websocket_live_as_simulated(payload: str, messages: int, tmp_path: Path) -> None:
    values = scenario(payload=payload, link={"rate": "1 Gbit/s"}, publish={
        "rate": f"{messages} /s", "start_phase": "synchronised"})
    values["phases"]["warm_up"] = "0 s"
    assert run(values, tmp_path / "live").verdict == "complete"
    found = [Recording.open(tmp_path / "live"), simulated(values, tmp_path / "sim")]
    for recording in found:
        assert deliveries(recording).height == messages
        took = opened(recording)
        assert {part: len(times) for part, times in took.items()} == {"tcp": 2, "websocket": 2}
        assert min(time for times in took.values() for time in times) >= 10
        ends = recording.events.filter(pl.col("kind").cast(pl.String).is_in(["disconnect", "refused"]))
        assert ends.is_empty(), ends
    # The same packets, found in frames by the analyser and known to the simulator, and the same bytes around them.
    packets = [recording.control_packets.group_by(pl.col("kind", "direction").cast(pl.String)).len().sort(
        "kind", "direction").rows() for recording in found]
    assert packets[0] == packets[1]
    layers = [{way: row["websocket_bytes"] for way, row in counted(recording, "direction").items()}
              for recording in found]
    assert layers[0] == layers[1] and min(layers[0].values()) > 159
    # What the publisher puts into TCP is the same to the byte, and so is what the broker does.
    streams = [recording.packets.filter(pl.col("payload_bytes") > 0).group_by("link").agg(
        (pl.col("stream_offset") + pl.col("payload_bytes")).max().alias("bytes")).sort("link")["bytes"].to_list()
        for recording in found]
    assert streams[0] == streams[1]


def program(answer: str) -> dict[str, Any]:
    return {"kind": "program", "program": {
        "command": [sys.executable, "{directory}/server.py", "{address}", "{port},{websocket_port}", answer],
        "files": {"server.py": SERVER}}}


@pytest.mark.parametrize(("answer", "says"), [
    ("HTTP/1.1 404 Not Found\\r\\n\\r\\n", "WebSocket upgrade: HTTP 404 Not Found"),
    ("HTTP/1.1 400 Bad Request\\r\\n\\r\\n", "WebSocket upgrade: HTTP 400 Bad Request"),
    ("HTTP/1.1 101 Switching\\r\\n\\r\\n", "WebSocket upgrade: HTTP 101 without an upgrade"),
    ("close", "closed the connection instead of upgrading it"),
    ("", "no WebSocket in time"),
])
def test_a_server_that_does_not_upgrade_is_told_as_what_it_does(answer: str, says: str, tmp_path: Path) -> None:
    values = scenario(broker=program(answer))
    for group in values["groups"]:
        group["reconnect"] = {"enabled": False, "timeout": "1 s"}
    values["phases"] |= {"connect_timeout": "2 s", "cool_down": "100 ms"}
    outcome = run(values, tmp_path / "run")
    assert any("2 of 2 clients had not connected" in warning for warning in outcome.warnings), outcome.warnings
    events = Recording.open(tmp_path / "run").events.filter(pl.col("kind").cast(pl.String).is_in(["refused", "note"]))
    assert sum(says in str(detail) for detail in events["detail"]) == 2, events["detail"].to_list()
