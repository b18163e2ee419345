"""ZeroMQ live: our proxy and libzmq's, our clients and libzmq's sockets."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import assert_undivided, early_ms
from mqttlab.engine import engine_path
from mqttlab.metrics import PARTS, attribution, attribution_coverage, deliveries, silent_groups
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.runs.perform import Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_zeromq import scenario

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
PYZMQ_PROXY = textwrap.dedent("""
    import sys, zmq
    publishers, subscribers, mark = sys.argv[1:]
    context = zmq.Context()
    xsub, xpub = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    xpub.sndhwm = int(mark)
    xpub.bind(subscribers)
    xsub.bind(publishers)
    zmq.proxy(xsub, xpub)
""")


def run(values: dict[str, Any], directory: Path) -> Outcome:
    return perform(Job(compile_plan(parse_values({**values, "backend": "live"})), directory), lambda line: None)


def of_pyzmq(values: dict[str, Any]) -> dict[str, Any]:
    """The same with libzmq's proxy."""
    pytest.importorskip("zmq", reason="pyzmq is not installed: `make setup-test` does it")
    program = {
        "command": [sys.executable, "{directory}/proxy.py", "tcp://{address}:{port}",
                    "tcp://{address}:{subscriber_port}", "{high_water_mark}"],
        "files": {"proxy.py": PYZMQ_PROXY}}
    values["servers"] = [{"name": "proxy", "role": "zeromq", "kind": "program", "program": program}]
    return values


@contextmanager
def our_proxy(directory: Path, mark: int = 1000) -> Iterator[tuple[int, int, subprocess.Popen[str]]]:
    """The engine's proxy: the ports that it has chosen, and its process."""
    settings = directory / "proxy.json"
    settings.write_text(json.dumps({
        "publishers": "127.0.0.1:0", "subscribers": "127.0.0.1:0", "high_water_mark": mark}))
    command = [engine_path(), "proxy", "--settings", str(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            listens = re.fullmatch(
                r"mqttlab proxy listens on 127\.0\.0\.1:(\d+) \(XSUB\) and 127\.0\.0\.1:(\d+) \(XPUB\)\n", said)
            assert listens, said
            yield int(listens[1]), int(listens[2]), process
        finally:
            process.kill()


def counters(process: subprocess.Popen[str]) -> dict[str, int]:
    process.terminate()
    assert process.stdout is not None
    found: dict[str, int] = json.loads(process.stdout.read())
    return found


@pytest.mark.live
@pytest.mark.parametrize("proxy", ["ours", "pyzmq"])
def test_messages_pass_through_a_proxy(proxy: str, tmp_path: Path) -> None:
    values = scenario() if proxy == "ours" else of_pyzmq(scenario())
    outcome = run(values, tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    found = deliveries(recording)
    assert found.height == 3 * 20 * 2
    assert found["latency_ms"].min() >= 10 - early_ms(recording, 2), "5 ms on each link"  # type: ignore[operator]
    packets = recording.control_packets.with_columns(pl.col("kind").cast(pl.String))
    assert set(packets["protocol"].cast(pl.String)) == {"zeromq"}
    kinds = dict(packets.group_by("kind").len().rows())
    assert (kinds["MESSAGE"], kinds["READY"], kinds["GREETING"], kinds["PING"]) == (180, 10, 10, 2), kinds
    messages = packets.filter(kind="MESSAGE")
    assert messages["client"].null_count() == 0 and messages["publisher"].null_count() == 0
    assert messages["complete_ns"].null_count() == 0


@pytest.mark.live
def test_a_simulation_has_the_packets_of_a_live_run(tmp_path: Path) -> None:
    def packets(backend: str) -> list[tuple[Any, ...]]:
        directory = tmp_path / backend
        outcome = perform(Job(compile_plan(parse_values({**scenario(), "backend": backend})), directory),
                          lambda line: None)
        assert outcome.verdict == "complete", outcome.reason
        found = Recording.open(directory).control_packets.with_columns(pl.col("direction", "kind").cast(pl.String))
        sizes = ("fixed_header_bytes", "topic_bytes", "payload_bytes")
        # Who leaves last hears that the others have.
        found = found.filter(pl.col("kind") != "CANCEL")
        return found.group_by("client", "direction", "kind", *sizes).len().sort(pl.all()).rows()

    assert packets("sim") == packets("live")


@pytest.mark.live
def test_empty_and_large_messages_pass_and_a_client_may_be_on_the_proxys_host(tmp_path: Path) -> None:
    values = scenario()
    values["phases"]["cool_down"] = "5 s"
    values["networks"][0] |= {way: {"rate": "100 Mbit/s"} for way in ("up", "down")}
    values["networks"][1] |= {way: {"rate": "100 Mbit/s"} for way in ("up", "down")}
    publish = {"topic": "t/{client}", "interval": "200 ms", "messages": 4}
    values["groups"][0] |= {"name": "large", "count": 1, "publish": {**publish, "payload": "1 MB"}}
    values["groups"] += [
        {"name": "empty", "host": "field", "protocol": "zeromq", "publish": {
            **publish, "topic": "t/empty", "payload": "0 B"}},
        {"name": "near", "host": "proxy", "protocol": "zeromq", "subscribe": ["#"]}]
    outcome = run(values, tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    found = deliveries(Recording.open(tmp_path / "run"))
    by_group = found.group_by(pl.col("subscriber_group").cast(pl.String)).len().sort("subscriber_group").rows()
    assert by_group == [("near", 8), ("office", 16)]


@pytest.mark.live
def test_clients_come_back_to_a_proxy_that_dies_in_between(tmp_path: Path) -> None:
    values = scenario(messages=100)
    values["phases"] = {"duration": "4 s", "cool_down": "1 s"}
    settings = {"publishers": "{address}:{port}", "subscribers": "{address}:{subscriber_port}",
                "high_water_mark": 1000}
    # It is killed after 2 s, and started again after another half.
    again = "for life in 2 60; do timeout -s KILL $life {engine} proxy --settings {directory}/p.json; sleep 0.5; done"
    values["servers"] = [{
        "name": "proxy", "role": "zeromq", "kind": "program", "ready": "tcp-accept",
        "program": {"command": ["sh", "-c", again], "files": {"p.json": json.dumps(settings)}}}]
    for group in values["groups"]:
        group["reconnect"] = {"initial": "100 ms", "maximum": "400 ms"}
    outcome = run(values, tmp_path / "run")
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    events = dict(recording.events.group_by(pl.col("kind").cast(pl.String)).len().rows())
    assert events["disconnect"] >= 5 and events["reconnect"] >= 5, events
    found = recording.messages.filter(pl.col("fate").cast(pl.String) == "delivered")
    # They were delivered before and after, and not what was published in between.
    assert found["sequence"].min() < 15 and found["sequence"].max() > 32  # type: ignore[operator]
    assert 0 < found.height < 3 * 40 * 2


@pytest.mark.live
def test_what_a_proxy_drops_for_a_slow_subscriber_is_not_under_way(tmp_path: Path) -> None:
    """The proxy says for whom it drops, not what: a simulation knows which messages these are."""
    values = scenario(messages=400)
    values["phases"] = {"duration": "4 s", "cool_down": "1 s"}
    values["servers"][0]["zeromq"] = {"high_water_mark": 5}
    values["groups"][0]["publish"] |= {"interval": "10 ms", "payload": "2 kB"}
    values["networks"][0] |= {way: {"rate": "100 Mbit/s"} for way in ("up", "down")}
    values["networks"][1] |= {way: {"rate": "200 kbit/s", "queue": "20 packets"} for way in ("up", "down")}
    fates = {}
    for backend in ("live", "sim"):
        plan = compile_plan(parse_values({**values, "backend": backend}))
        outcome = perform(Job(plan, tmp_path / backend), lambda line: None)
        assert outcome.verdict == "complete", outcome.reason
        told = Recording.open(tmp_path / backend).messages.select(pl.col("fate", "cause").cast(pl.String))
        fates[backend] = {(fate, cause): count for fate, cause, count in told.group_by(
            "fate", "cause").len().rows()}
    assert fates["sim"]["lost", "queue_full"] > 500, fates
    dropped = sum(count for (fate, cause), count in fates["live"].items()
                  if (fate, cause) in (("unknown", "queue_full"), ("lost", "overtaken"), ("lost", "queue_full")))
    assert dropped > 500 and not fates["live"].get(("under_way", None)), fates
    assert "high_water_mark" in str(Recording.open(tmp_path / "live").run["warnings"])


def test_libzmqs_sockets_speak_through_our_proxy(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq", reason="pyzmq is not installed: `make setup-test` does it")
    with our_proxy(tmp_path) as (publishers, subscribers, process), zmq.Context() as context:
        sub, pub = context.socket(zmq.SUB), context.socket(zmq.XPUB)
        for end in (sub, pub):
            end.linger, end.rcvtimeo = 0, 10_000
        sub.connect(f"tcp://127.0.0.1:{subscribers}")
        pub.connect(f"tcp://127.0.0.1:{publishers}")
        sub.subscribe(b"a/")
        assert pub.recv() == b"\x01a/"
        sent = [[b"a/1", b""], [b"a/", b"x" * 10], [b"a/2", bytes(1_000_000)], [b"a/3", b"b", b"c", b""]]
        for message in sent:
            pub.send_multipart([b"nobody", b"x"])
            pub.send_multipart(message)
        assert [sub.recv_multipart() for _ in sent] == sent
        sub.unsubscribe(b"a/")
        assert pub.recv() == b"\x00a/"
        sub.close(), pub.close()
        counted = counters(process)
    # XPUB filters as PUB does: what nobody wants never came.
    assert (counted["messages"], counted["copies"], counted["refused"]) == (4, 4, 0)


@pytest.mark.parametrize(("said", "answer"), [
    (b"GET / HTTP/1.1\r\n\r\n", b""),
    (GREETING[:10] + b"\x01\x02\x00\x00", b""),
    (GREETING.replace(b"NULL", b"CURV"), b""),
    (GREETING + b"\x02" + (2**63).to_bytes(8, "big"), b""),
    (GREETING + b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB", b"Invalid socket type"),
    (GREETING + b"\x00\x01x", b""),
    (GREETING[:20], None),
])
def test_hostile_peers_are_shut_out_and_others_go_on(said: bytes, answer: bytes | None, tmp_path: Path) -> None:
    with our_proxy(tmp_path) as (publishers, _, process):
        with socket.create_connection(("127.0.0.1", publishers), timeout=10) as peer:
            peer.sendall(said)
            if answer is None:
                peer.shutdown(socket.SHUT_WR)
            heard = b""
            while piece := peer.recv(4096):
                heard += piece
        assert heard.startswith(GREETING) and (answer or b"") in heard
        with socket.create_connection(("127.0.0.1", publishers), timeout=10) as good:
            good.sendall(GREETING + b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB")
            heard = b""
            while b"XSUB" not in heard:
                heard += good.recv(4096)
        assert counters(process)["refused"] == (0 if answer is None else 1)


def test_a_peer_of_3_0_subscribes_with_messages(tmp_path: Path) -> None:
    with our_proxy(tmp_path) as (publishers, subscribers, _):
        old = GREETING.replace(b"\x03\x01NULL", b"\x03\x00NULL")
        ready = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03"
        with socket.create_connection(("127.0.0.1", subscribers), timeout=10) as sub, \
                socket.create_connection(("127.0.0.1", publishers), timeout=10) as pub:
            pub.sendall(old + ready + b"PUB")
            sub.sendall(old + ready + b"SUB" + b"\x00\x03\x01a/")
            heard = b""
            while not heard.endswith(b"\x00\x03\x01a/"):
                heard += pub.recv(4096)
            pub.sendall(b"\x01\x03a/b\x00\x02hi")
            heard = b""
            while not heard.endswith(b"\x01\x03a/b\x00\x02hi"):
                heard += sub.recv(4096)


def test_a_slow_subscriber_loses_what_exceeds_the_mark_and_others_nothing(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq", reason="pyzmq is not installed: `make setup-test` does it")
    with our_proxy(tmp_path, mark=10) as (publishers, subscribers, process), zmq.Context() as context:
        pub, quick = context.socket(zmq.XPUB), context.socket(zmq.SUB)
        pub.linger = quick.linger = 0
        pub.sndhwm, quick.rcvhwm, quick.rcvtimeo, pub.rcvtimeo = 0, 0, 10_000, 10_000
        pub.connect(f"tcp://127.0.0.1:{publishers}")
        ready = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
        with socket.create_connection(("127.0.0.1", subscribers), timeout=10) as slow:
            # It subscribes, and never reads.
            slow.sendall(GREETING + ready + b"\x04\x0a\x09SUBSCRIBE")
            assert pub.recv() == b"\x01"
            quick.connect(f"tcp://127.0.0.1:{subscribers}")
            quick.subscribe(b"q")
            assert pub.recv() == b"\x01q"
            for _ in range(400):
                pub.send_multipart([b"q", bytes(100_000)])
                quick.recv_multipart()
        counted = counters(process)
        pub.close(), quick.close()
    assert counted["messages"] == 400 and counted["copies"] + counted["dropped"] == 800
    # Kernel buffers hold a few megabytes at most; the quick one has lost nothing.
    assert counted["dropped"] > 200


@pytest.mark.live
def test_without_frames_clients_tell_of_the_packets_that_frames_would_show(tmp_path: Path) -> None:
    direct = {**scenario(), "network": "direct"}
    del direct["networks"]
    found = {}
    for name, values in (("direct", direct), ("emulated", scenario())):
        assert run(values, tmp_path / name).verdict == "complete"
        found[name] = Recording.open(tmp_path / name)
    recording = found["direct"]
    assert recording.rows("packets") == 0
    assert set(recording.control_packets.select("seen_by", "transport", "protocol").unique().rows()) == {
        ("client", "tcp", "zeromq")}

    def packets(recording: Recording) -> list[tuple[Any, ...]]:
        text = pl.col("direction", "kind", "topic").cast(pl.String)
        columns = ("client", "direction", "kind", "topic", "publisher", "sequence", "stream_start", "stream_end",
                   "fixed_header_bytes", "topic_bytes", "payload_bytes")
        # Who leaves last hears that the others have.
        known = recording.control_packets.with_columns(text).filter(pl.col("kind") != "CANCEL")
        # In which order three publishers reach a subscriber is chance.
        is_up = pl.col("direction") == "to_broker"
        known = known.with_columns(pl.when(is_up).then(pl.col("stream_start", "stream_end")))
        return known.select(columns).sort(pl.all()).rows()

    assert packets(recording) == packets(found["emulated"])
    covered = attribution_coverage(recording)
    assert (covered.delivered, covered.attributed, covered.by_clients) == (120, 120, 120)
    table = attribution(recording)
    assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    assert_undivided(table)
    assert silent_groups(recording) == {}

