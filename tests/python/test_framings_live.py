"""Framings on TCP, live: a broker behind a program that takes frames apart and knows nothing of ours; beside the
simulation of the scenario."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import early_ms
from mqttlab import export
from mqttlab.imports import import_evidence
from mqttlab.metrics import attribution_coverage, deliveries, other_traffic
from mqttlab.plan.declared import FRAMINGS
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.runs.perform import Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_framings import added, scenario
from test_transports import counted, opened

pytestmark = pytest.mark.live
# Mosquitto, and before its plain listener who speaks `framed` after its description alone; with other last words it
# says those, and closes where they are "close".
BEFORE_MOSQUITTO = textwrap.dedent("""
    import asyncio, signal, socket, sys
    address, framed, says, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode() + b"\\n", sys.argv[4]

    async def whole(reader):
        packet = await reader.readexactly(2)
        while packet[-1] & 128:
            packet += await reader.readexactly(1)
        left = sum((byte & 127) << 7 * place for place, byte in enumerate(packet[1:]))
        return packet + await reader.readexactly(left)

    async def to_client(broker, client):
        while True:
            packet = await whole(broker)
            client.write(len(packet).to_bytes(4, "big") + packet)

    async def to_broker(client, broker):
        while True:
            length = int.from_bytes(await client.readexactly(4), "big")
            broker.write(await client.readexactly(length))

    async def serve(reader, writer):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if await reader.readexactly(8) != b"FRAMES?\\n" or says == b"close\\n":
            return writer.close()
        writer.write(says)
        from_broker, broker = await asyncio.open_unix_connection(directory + "/mosquitto.socket")
        ways = (to_client(from_broker, writer), to_broker(reader, broker))
        await asyncio.wait(map(asyncio.ensure_future, ways), return_when=asyncio.FIRST_COMPLETED)
        for one in (writer, broker):
            one.close()

    async def main():
        # First, so that whoever waits for Mosquitto finds both.
        server = await asyncio.start_server(serve, address, framed)
        mosquitto = await asyncio.create_subprocess_exec("mosquitto", "-c", directory + "/mosquitto.conf")
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, mosquitto.terminate)
        await mosquitto.wait()
        server.close()

    asyncio.run(main())
""")


def with_broker(values: dict[str, Any], says: str = "FRAMES!") -> dict[str, Any]:
    command = [sys.executable, "{directory}/broker.py", "{address}", "{framed_port}", says, "{directory}"]
    # What it passes on goes through a socket that is no TCP: else each packet was recorded twice on the broker's host.
    files = {"broker.py": BEFORE_MOSQUITTO, "mosquitto.conf": (
        "user root\nlistener {port} {address}\nlistener 0 {directory}/mosquitto.socket\nallow_anonymous true\n"
        "set_tcp_nodelay true\n")}
    broker = {"kind": "program", "ready": "connack", "nagle": False, "program": {"command": command, "files": files}}
    return {**values, "backend": "live", "broker": broker}


def run(values: dict[str, Any], directory: Path) -> Outcome:
    return perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)


def both(values: dict[str, Any], directory: Path) -> list[Recording]:
    """Live and simulated."""
    for name, one in (("live", with_broker(values)), ("sim", {**values, "broker": {"nagle": False}})):
        outcome = run(one, directory / name)
        assert outcome.verdict == "complete", outcome.reason
    return [Recording.open(directory / "live"), Recording.open(directory / "sim")]


def packets(recording: Recording) -> list[tuple[Any, ...]]:
    """What was sent by whom, and how often."""
    sizes = ("fixed_header_bytes", "topic_bytes", "packet_id_bytes", "payload_bytes")
    found = recording.control_packets.with_columns(pl.col("direction", "kind").cast(pl.String))
    return found.group_by("client", "direction", "kind", "dup", "qos", *sizes).len().sort(pl.all()).rows()


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(("qos", "payload"), [(0, "0 B"), (1, "100 B"), (2, "70 kB")])
def test_a_live_run_has_the_packets_and_bytes_of_its_simulation(
    framing: str, qos: int, payload: str, tmp_path: Path
) -> None:
    values = scenario(framing, qos=qos, payload=payload, link={"delay": "5 ms", "rate": "1 Gbit/s"})
    found = both(values, tmp_path)
    for recording in found:
        assert deliveries(recording).height == 140
        took = opened(recording)
        # Four over the links, and one beside the broker.
        assert {part: len(times) for part, times in took.items()} == {"tcp": 5, framing: 5}
        assert sorted(took[framing])[1] >= 10 - early_ms(recording, 2)
        ends = recording.events.filter(pl.col("kind").cast(pl.String).is_in(["disconnect", "refused"]))
        assert ends.is_empty(), ends
        covered = attribution_coverage(recording)
        assert covered.attributed == covered.delivered == 140, covered
    assert packets(found[0]) == packets(found[1])
    assert added(found[0]) == added(found[1])


@pytest.mark.parametrize("framing", FRAMINGS)
def test_over_links_that_lose_all_is_delivered_and_the_same_is_added(framing: str, tmp_path: Path) -> None:
    found = both(scenario(framing, qos=1, link={"delay": "5 ms", "loss": "5 %"}), tmp_path)
    for recording in found:
        assert deliveries(recording).height == 140
        everything = counted(recording, "run")["None"]
        assert everything["tcp_analysis_retransmissions"] > 0
        # Behind a frame that was lost the stream goes on as soon as it was sent again.
        assert everything["mqtt_skipped_bytes"] == 0
    assert added(found[0]) == added(found[1])


def test_a_capture_that_is_imported_counts_its_connections_as_of_another_protocol(tmp_path: Path) -> None:
    values = scenario("framed")
    assert run({**with_broker(values), "recording": {"pcapng": True}}, tmp_path / "live").verdict == "complete"
    export.pcapng(Recording.open(tmp_path / "live"), tmp_path / "run.pcapng")
    again = import_evidence("capture", [tmp_path / "run.pcapng"], tmp_path / "imported", lambda line: None, options=())
    imported = Recording.open(again.directory)
    # Nobody tells it what is spoken there: what is in frames is not guessed, and what is not has its messages.
    others = other_traffic(imported).filter(pl.col("port") == 8090)
    assert others.select("protocol", "connections").rows() == [("other", 5)]
    assert imported.clients["name"].to_list() == ["plain-0"]


@pytest.mark.parametrize(("says", "detail"), [
    ("FRAMES?", "the broker sent what is no frame of framed"),
    ("close", "the broker closed the connection instead of opening the framing"),
    ("FRAMES!\n\x7f\x7f\x7f\x7f", "the broker sent what is no frame of framed"),
])
def test_who_does_not_speak_it_is_named(says: str, detail: str, tmp_path: Path) -> None:
    values = with_broker(scenario("framed", reconnect={"enabled": False}), says)
    values["phases"]["connect_timeout"] = "2 s"
    outcome = run(values, tmp_path / "live")
    assert "5 of 6 clients had not connected" in " ".join(outcome.warnings), outcome
    recording = Recording.open(tmp_path / "live")
    assert detail in set(recording.events["detail"].drop_nulls()), recording.events.select("kind", "detail").unique()
    assert deliveries(recording).height == 0


def test_a_client_that_comes_back_says_the_word_again(tmp_path: Path) -> None:
    # Two with one identifier: whoever comes ends the session of the other ([MQTT-3.1.4-2]), who comes back.
    rival = {"mqtt": {"client_id": "one"}, "reconnect": {"initial": "100 ms", "maximum": "100 ms"}}
    values = scenario("framed", qos=1)
    framed = next(group for group in values["groups"] if group.get("subscribe") and group["name"] != "plain")
    values["groups"] += [{**framed, **rival, "name": name, "count": 1} for name in ("one", "other")]
    # Both are never connected at once.
    values["phases"] |= {"connect_timeout": "2 s"}
    outcome = run(with_broker(values), tmp_path / "live")
    recording = Recording.open(tmp_path / "live")
    took = opened(recording)
    assert len(took["framed"]) > 7, outcome
    assert len(took["framed"]) <= len(took["tcp"])
    assert not recording.events["detail"].drop_nulls().str.contains("no frame of").any()
