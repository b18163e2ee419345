"""Clients that a real broker does not accept: why, and what helps, in one line of the verdict, wherever it is shown."""

from __future__ import annotations

import io
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mqttlab.recording import Recording
from mqttlab.report import terminal, write_html
from mqttlab.report.document import document
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from ports import own_port

pytestmark = pytest.mark.live


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Of a Mosquitto that lets nobody in without a password."""
    port = own_port()
    (tmp_path / "passwords").touch()
    (tmp_path / "own.conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {tmp_path}/passwords\nuser root\n")
    broker = subprocess.Popen(["mosquitto", "-c", tmp_path / "own.conf"], stderr=subprocess.PIPE, text=True)
    try:
        assert broker.stderr is not None
        assert any("running" in line for line in broker.stderr), "it says so when it serves"
        yield port
    finally:
        broker.kill()
        broker.wait()


def reasons(
    port: int, directory: Path, connect_timeout: str | None = "2 s", trusted: Path | None = None, **of_groups: Any,
) -> list[str]:
    """What the verdict says of clients that never connected."""
    waits = {} if connect_timeout is None else {"connect_timeout": connect_timeout}
    group = {"host": "field", "reconnect": {"enabled": False}, **of_groups}
    values = {
        "name": "refused", "network": "external",
        "phases": {**waits, "warm_up": "0 s", "duration": "1 min", "cool_down": "100 ms"},
        "broker": {"kind": "external", "address": "127.0.0.1", **(
            {"ports": {"tls": port}, "tls": {"authority": str(trusted)}} if trusted else {"port": port})},
        "groups": [{**group, "name": "p", "count": 3,
                    "publish": {"topic": "t", "qos": 1, "payload": "20 B", "rate": "5 /s"}},
                   {**group, "name": "s", "subscribe": [{"filter": "t"}]}]}
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    # The minute that would be measured is not waited for.
    assert outcome.verdict == "incomplete"
    assert str(outcome.reason).startswith("no client "), outcome.reason
    recording = Recording.open(directory)
    told = [str(reason) for reason in recording.run["validity"]["reasons"] if "never connected" in str(reason)]
    console = Console(width=400, record=True, file=io.StringIO())
    terminal(recording, console)
    page = write_html(recording, directory / "report.html").read_text(encoding="utf-8")
    for one in told:
        assert one in console.export_text(clear=False) and one.partition(";")[0] in page
        assert one in document(recording)["reasons"]
    return told


@pytest.mark.parametrize(("version", "code"), [("3.1.1", "0x05"), ("5", "0x87")])
def test_who_is_not_authorised_reads_which_field_says_who_he_is(
        version: str, code: str, port: int, tmp_path: Path) -> None:
    [told] = reasons(port, tmp_path / "run", mqtt={"version": version})
    assert told.startswith(f"4 of 4 clients never connected: CONNACK {code} not authorised; see `mqtt.username`")


def test_where_nothing_listens_is_a_refused_connection(tmp_path: Path) -> None:
    [told] = reasons(own_port(), tmp_path / "run")
    assert told.startswith("4 of 4 clients never connected: connection refused (cannot connect: ")
    assert told.endswith("nothing listens there: see `address` of the broker, and its `port`, or of TLS and WebSocket "
                         "its `ports`")


@contextmanager
def answering(answer: Callable[[bytes], bytes], *, keep: bool = False) -> Iterator[int]:
    """The port of a program that answers what comes first, and closes unless it is to keep the connection."""
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError):
                        connection.sendall(answer(connection.recv(1000)))
                    if keep:
                        kept.append(connection)
                    else:
                        connection.close()
        threading.Thread(target=serve, daemon=True).start()
        yield int(listening.getsockname()[1])
    for connection in kept:
        connection.close()


@pytest.fixture
def older() -> Iterator[int]:
    """The port of a broker that speaks MQTT 3.1.1 alone: it answers others as that version says (3.1.2.2)."""
    with answering(lambda _: bytes([0x20, 2, 0, 1])) as port:
        yield port


def test_a_broker_without_mqtt_5_says_so_at_once(older: int, tmp_path: Path) -> None:
    """Once "malformed packet: the packet ends within a field", after a minute of trying again."""
    begin = time.monotonic()
    [told] = reasons(older, tmp_path / "run", mqtt={"version": "5"}, reconnect={}, connect_timeout=None)
    assert told == ("4 of 4 clients never connected: CONNACK 0x01 unacceptable protocol version; the broker does not "
                    "speak this version of MQTT: use another `mqtt.version`")
    assert time.monotonic() - begin < 30, "nobody waits for `phases.connect_timeout`, which is a minute"


@pytest.mark.parametrize("way", ["nothing listens", "TLS at a plain port", "plain TCP at a port of TLS"])
def test_who_is_refused_everywhere_for_two_seconds_reads_so_then(way: str, port: int, tmp_path: Path) -> None:
    """Once after the minute in which clients connect, and the one that is measured."""
    authority = tmp_path / "ca.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=nobody", "-keyout", tmp_path / "ca.key", "-out", authority],
                   check=True, capture_output=True, timeout=30)
    alert = bytes([21, 3, 3, 0, 2, 2, 40])
    with answering(lambda _: alert) as of_tls:
        at = {"nothing listens": own_port(), "TLS at a plain port": port}.get(way, of_tls)
        over_tls = way.startswith("TLS")
        begin = time.monotonic()
        [told] = reasons(at, tmp_path / "run", connect_timeout=None, reconnect={},
                         transport="tls" if over_tls else "tcp", trusted=authority if over_tls else None)
    assert time.monotonic() - begin < 30
    assert told.startswith("4 of 4 clients never connected: ")


def test_where_nobody_answers_the_run_ends_when_connecting_is_over(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        [told] = reasons(int(silent.getsockname()[1]), tmp_path / "run", reconnect={})
    assert told.startswith("4 of 4 clients never connected: no CONNACK in time")


def test_where_some_are_accepted_the_run_goes_on(tmp_path: Path) -> None:
    def answer(connect: bytes) -> bytes:
        return bytes([0x20, 2, 0, 0 if b"in-0" in connect else 5])

    publish = {"topic": "t", "payload": "20 B", "rate": "5 /s"}
    with answering(answer, keep=True) as port:
        values = {
            "name": "some", "network": "external",
            "phases": {"connect_timeout": "3 s", "warm_up": "0 s", "duration": "1 s", "cool_down": "100 ms"},
            "broker": {"kind": "external", "address": "127.0.0.1", "port": port},
            "groups": [{"name": name, "host": "field", "publish": publish, "reconnect": {"initial": "500 ms"}}
                       for name in ("in", "out")]}
        outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
