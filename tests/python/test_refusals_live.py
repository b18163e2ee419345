"""Clients that a real broker does not accept: why, and what helps, in one line of the verdict, wherever it is shown."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
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


def reasons(port: int, directory: Path, **of_groups: Any) -> list[str]:
    """What the verdict says of clients that never connected."""
    group = {"host": "field", "reconnect": {"enabled": False}, **of_groups}
    values = {
        "name": "refused", "network": "external",
        "phases": {"connect_timeout": "2 s", "warm_up": "0 s", "duration": "1 s", "cool_down": "100 ms"},
        "broker": {"kind": "external", "address": "127.0.0.1", "port": port},
        "groups": [{**group, "name": "p", "count": 3,
                    "publish": {"topic": "t", "qos": 1, "payload": "20 B", "rate": "5 /s"}},
                   {**group, "name": "s", "subscribe": [{"filter": "t"}]}]}
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
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
    assert told.endswith("nothing listens there: see `address` and `port` of the broker")
