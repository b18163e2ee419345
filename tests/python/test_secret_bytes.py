"""Every byte that commands write, in files and in both of their outputs, has no secret of the scenario in it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from captures import Client, Wire, publish
from commands import Done, mqttlab
from mqttlab import secrets
from mqttlab.scenario import ScenarioError
from mqttlab.scenario.load import parse
from secretly import SECRET, leaks, written


def all_that_is_written(tmp_path: Path, scenario: Path, *settings: str) -> Iterator[Done]:
    """Every command that has to do with a run, with all that it writes below a directory."""
    runs = tmp_path / "runs"
    yield mqttlab("check", scenario, *settings)
    yield mqttlab("run", scenario, "--runs", runs, *settings)
    yield mqttlab("run", scenario, "--runs", runs, "--json", "--sql", tmp_path / "live.db", *settings)
    first, second = sorted(path.parent for path in runs.glob("kept-*/plan.json"))
    yield mqttlab("report", first, "--html", tmp_path / "page.html")
    yield mqttlab("report", first, "--json")
    yield mqttlab("explain", first, "--slowest", "1")
    yield mqttlab("compare", first, second, "--html", tmp_path / "compared.html")
    yield mqttlab("export", first, "--csv", tmp_path / "csv", "--parquet", tmp_path / "parquet", "--xlsx",
                  tmp_path / "run.xlsx", "--pcapng", tmp_path / "run.pcapng", "--sql", tmp_path / "messages.db")
    yield mqttlab("catalog", "query", "--runs", runs, "--csv", tmp_path / "catalog.csv")
    yield mqttlab("catalog", "scan", runs)
    yield mqttlab("list", "--runs", runs)
    yield mqttlab("run", scenario, "--detach", "--runs", runs, *settings)
    yield mqttlab("queue", "list", "--all")
    yield mqttlab("queue", "wait")
    yield mqttlab("experiment", scenario, "--runs", runs, "--queue", "none", *settings)
    yield mqttlab("experiment", scenario, "--runs", runs, "--scenarios", tmp_path / "points", *settings)


def test_no_byte_of_any_command_has_the_secret(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    scenario = written(elsewhere, f'"{SECRET}"')
    said = ""
    for done in all_that_is_written(tmp_path, scenario):
        assert done.returncode == 0, done.stderr
        said += done.stdout + done.stderr
    queue = Path(os.environ["MQTTLAB_QUEUE"])
    scenario.unlink()
    assert leaks(tmp_path, queue, said=said) == []
    plans = [json.loads(path.read_text()) for path in (tmp_path / "runs").rglob("plan.json")]
    passwords = {plan["groups"][0]["protocol"]["mqtt"]["password"] for plan in plans}
    assert len(plans) >= 4
    assert len(passwords) == 1, "all can be told to have the same"
    assert passwords.pop().startswith("***")


def test_an_import_keeps_no_password_of_a_capture(tmp_path: Path) -> None:
    wire = Wire()
    client = Client(wire, "10.0.0.2", 40_000)
    client.open()
    fields = b"".join(struct.pack("!H", len(text)) + text for text in (b"sensor", b"alice", SECRET.encode()))
    body = b"\x00\x04MQTT\x04\xc2\x00\x3c" + fields
    client.up(bytes([0x10, len(body)]) + body)
    client.down(b"\x20\x02\x00\x00")
    client.up(publish("t", b"1"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    capture = wire.save(elsewhere / "somebody.pcap")
    assert leaks(capture), "it is there"
    done = mqttlab("import", "capture", capture, "--output", tmp_path / "runs" / "imported")
    assert done.returncode in (0, 3, 6), done.stderr
    again = mqttlab("report", tmp_path / "runs" / "imported")
    exported = mqttlab("export", tmp_path / "runs" / "imported", "--pcapng", tmp_path / "made-again.pcapng")
    assert exported.returncode == 0, exported.stderr
    said = done.stdout + done.stderr + again.stdout + again.stderr + exported.stdout
    assert leaks(tmp_path / "runs", tmp_path / "made-again.pcapng", said=said) == []


@pytest.mark.parametrize("kind", ["device", "fifo", "nul"])
def test_a_secret_comes_from_a_file_and_from_nothing_else(kind: str, tmp_path: Path) -> None:
    # A device gives bytes without end, and a FIFO none.
    path = {"device": Path("/dev/zero"), "fifo": tmp_path / "fifo", "nul": Path("a\0b")}[kind]
    if kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(secrets.MissingSecret, match="NUL" if kind == "nul" else "is no file"):
        secrets.from_file(path)


def test_a_payload_whose_name_has_a_nul_is_told() -> None:
    with pytest.raises(ScenarioError, match="has a NUL in its name"):
        parse('name = "n"\n[phases]\nduration = "1 s"\n[[groups]]\nname = "p"\nhost = "h"\n'
              'publish = { topic = "t", rate = "1 /s", payload = { kind = "file", path = "a\\u0000b" } }\n')


@pytest.mark.parametrize("placeholder", ["{port}", "{address}", "{client_id}", "{broker_port}", "{tls_port}"])
def test_a_placeholder_is_no_secret_behind_an_option_for_a_password(placeholder: str) -> None:
    """A program got `{port}` itself as its port: mosquitto_sub has it behind -p."""
    for option in ("-p", "-P", "--password"):
        assert not secrets.is_secret_argument(option, placeholder)
        assert secrets.is_secret_argument(option, "hunter2") and secrets.is_secret_argument(option, "{hunter2}")
