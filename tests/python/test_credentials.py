"""Identifiers, user names and passwords of many clients: from patterns, and from a table."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import secrets
from mqttlab.engine import hide
from mqttlab.errors import MqttlabError
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.credentials import CredentialsError, filled, read_credentials
from mqttlab.scenario.load import parse, parse_values, warnings_of
from ports import own_port
from secretly import leaks

USERS = [("meter-a", "alice", "first-Pass"), ("meter-b", "bob", "other, \"one\""), ("meter-c", "zoë", "hüntér-22")]


def table(place: Path, *, columns: str = "client_id,username,password", rows: int = 3) -> Path:
    names = columns.split(",")
    known = ("client_id", "username", "password")
    path = place / "devices.csv"
    frame = pl.DataFrame({name: [row[known.index(name)] for row in USERS[:rows]] for name in names})
    frame.write_csv(path)
    return path


def scenario(mqtt: dict[str, Any], *, count: int = 3, backend: str = "sim", **more: Any) -> dict[str, Any]:
    return {
        "name": "named", "backend": backend, "mqtt": mqtt,
        "phases": {"connect_timeout": "5 s", "warm_up": "0 s", "duration": "1 s", "cool_down": "1 s"},
        "networks": [{"between": ["field", "broker"], "link": "each",
                      "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}],
        "groups": [{"name": "all", "host": "field", "count": count, "subscribe": ["t/#"],
                    "publish": {"topic": "t/{client}", "qos": 1, "payload": "30 B", "interval": "200 ms"}}], **more}


def made(values: dict[str, Any], directory: Path, verdict: str = "complete") -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == verdict, outcome.reason
    return Recording.open(directory)


def connects(recording: Recording) -> list[int]:
    """Bytes of each client's CONNECT."""
    packets = recording.table("control_packets").filter(pl.col("kind").cast(pl.String).str.to_lowercase() == "connect")
    length = (pl.col("stream_end") - pl.col("stream_start")).alias("bytes")
    return packets.select("client", length).unique().sort("client")["bytes"].to_list()


def problems(mqtt: dict[str, Any], count: int = 3) -> str:
    with pytest.raises(MqttlabError) as caught:
        parse_values(scenario(mqtt, count=count))
    return str(caught.value)


@pytest.mark.parametrize(("pattern", "expected"), [
    ("{group}-{client}", "meters-7"), ("device-{client:06}", "device-000007"),
    ("{client:1}/{client:20}", "7/00000000000000000007"),
    ("{{client}} {{client:04}} {{group}}", "{client} {client:04} {group}"),
    ("{client:0} {client:21} {client:x} {client:} {clients} {Group}",
     "{client:0} {client:21} {client:x} {client:} {clients} {Group}"),
    ("{{{client}}}{", "{{client}}{"), ("é{client}{é", "é7{é"), ("", "")])
def test_places_are_filled_in_as_the_engine_does_it(pattern: str, expected: str) -> None:
    # The same cases as in crates/plan/src/credentials.rs.
    assert filled(pattern, "meters", 7) == expected


def test_names_follow_their_patterns(tmp_path: Path) -> None:
    mqtt = {"client_id": "device-{client:06}", "username": "{group}:{client:03}", "password": "pass-{client}"}
    recording = made(scenario(mqtt, count=12), tmp_path / "run")
    names = [client["name"] for client in recording.layout["clients"]]
    assert names == [f"device-{number:06}" for number in range(12)]
    # MQTT 3.1.1, 3.1: 12 B before the payload with a length of one octet, then three texts behind their lengths.
    assert connects(recording) == [12 + 15 + 2 + len("all:000") + 2 + len(f"pass-{number}") for number in range(12)]
    assert not leaks(tmp_path / "run", secret="pass-11") and not leaks(tmp_path / "run", secret="pass-{client}")


def test_a_table_gives_each_client_its_row_and_leaves_no_password(tmp_path: Path) -> None:
    recording = made(scenario({"credentials": str(table(tmp_path))}), tmp_path / "run")
    assert [client["name"] for client in recording.layout["clients"]] == [name for name, _, _ in USERS]
    expected = [12 + sum(2 + len(text.encode()) for text in row) for row in USERS]
    assert connects(recording) == expected
    assert all(not leaks(tmp_path / "run", secret=password) for _, _, password in USERS)
    assert secrets.is_mark(recording.plan["groups"][0]["protocol"]["mqtt"]["credentials"])


def test_what_a_table_has_no_column_for_comes_from_the_pattern(tmp_path: Path) -> None:
    mqtt = {"credentials": str(table(tmp_path, columns="password")), "username": "u{client:02}"}
    recording = made(scenario(mqtt), tmp_path / "run")
    assert [client["name"] for client in recording.layout["clients"]] == ["all-0", "all-1", "all-2"]
    assert connects(recording) == [12 + 2 + 5 + 2 + 3 + 2 + len(password.encode()) for _, _, password in USERS]


def test_a_plan_without_a_table_says_nothing_of_one() -> None:
    plan = compile_plan(parse_values(scenario({"username": "u", "password": "word-of-old"})))
    assert "credentials" not in plan["groups"][0]["protocol"]["mqtt"]


def test_a_stored_plan_does_not_run_without_its_table(tmp_path: Path) -> None:
    plan = compile_plan(parse_values(scenario({"credentials": str(table(tmp_path))})))
    mark = plan["groups"][0]["protocol"]["mqtt"]["credentials"]
    values = json.loads(json.dumps(plan).replace(mark, "***" + "0" * 16))
    with pytest.raises(MqttlabError, match=r"groups\[0\].protocol.mqtt.credentials` is a .*, and a plan that was kept"):
        perform(Job(values, tmp_path / "again"), lambda line: None)


def test_too_few_rows_are_counted(tmp_path: Path) -> None:
    said = problems({"credentials": str(table(tmp_path))}, count=5)
    assert "has 3 rows, but `all` has 5 clients; add 2, or lower `count`" in said


@pytest.mark.parametrize(("text", "told"), [
    ("", "has no column `client_id`, `username` or `password`; its first line names the columns"),
    ("colour\nred\n", "has no column"),
    ("client_id,pasword\na,b\n", "line 1: the column \"pasword\" is not known; did you mean `password`?"),
    ("id,client_id\na,b\n", "line 1: the columns \"id\" and \"client_id\" both say the client_id; keep one"),
    ("client_id,password\na,\n", "line 2: column `password` is empty"),
    ("client_id,password\na\n", "line 2: column `password` is empty"),
    ("client_id,password\na,sec\x01ret\n", "line 2: column `password` has a control character"),
    ("client_id\n" + "a" * 65_536, "line 2: column `client_id` has 65536 B, but MQTT allows 65535 B"),
    ("client_id,password\n\"a,secret\n", "line 2: unexpected end of data"),
])
def test_a_wrong_table_is_told_by_line_and_column_without_its_secrets(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "devices.csv"
    path.write_text(text)
    with pytest.raises(CredentialsError) as caught:
        read_credentials(path)
    assert told in str(caught.value) and "sec\x01ret" not in str(caught.value)


def test_a_table_that_is_not_there_or_is_no_text_is_told(tmp_path: Path) -> None:
    assert ", which is not there" in problems({"credentials": str(tmp_path / "gone.csv")})
    assert "which is a directory" in problems({"credentials": str(tmp_path)})
    (tmp_path / "b.csv").write_bytes(b"client_id\n\xff\xfe")
    assert "which is not UTF-8 text" in problems({"credentials": str(tmp_path / "b.csv")})


def test_clients_with_one_identifier_are_refused_unless_that_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "devices.csv"
    path.write_text("client_id\na\nb\na\n")
    said = problems({"credentials": str(path)})
    assert "whose rows 1 and 3 have the identifier \"a\"" in said and "or set `duplicate_ids`" in said
    parse_values(scenario({"credentials": str(path), "duplicate_ids": True}))
    assert "for 3 clients, which would take over each other's sessions; add {client}" in problems({"client_id": "one"})
    recording = made(scenario({"client_id": "one", "duplicate_ids": True}, count=2), tmp_path / "run")
    assert (recording.table("events")["kind"].cast(pl.String) == "disconnect").any()


def test_a_table_of_two_groups_is_refused(tmp_path: Path) -> None:
    values = scenario({"credentials": str(table(tmp_path))})
    values["groups"].append({**values["groups"][0], "name": "more"})
    with pytest.raises(MqttlabError, match="gives clients of `all` and `more` the identifier \"meter-a\""):
        parse_values(values)
    (tmp_path / "devices.csv").write_text("username\na\nb\nc\n")
    parse_values(values)


def test_a_long_identifier_of_mqtt_31_is_a_warning() -> None:
    warned = warnings_of(parse_values(scenario({"version": "3.1", "client_id": "an-identifier-of-{client:07}"})))
    assert any("of 24 characters, but MQTT 3.1 has at most 23" in line for line in warned)
    unwarned = warnings_of(parse_values(scenario({"version": "3.1", "client_id": "an-identifier-of-{client:06}"})))
    assert not any("characters" in line for line in unwarned)


@pytest.mark.parametrize("masked", [False, True])
def test_many_passwords_are_found_in_one_pass(masked: bool, tmp_path: Path) -> None:
    words = [f"pässword-{number}" for number in range(0, 3000, 7)]
    values = [word.encode() for word in words]
    mask = os.urandom(4) if masked else bytes(4)
    noise = os.urandom(5000)
    shown = values[0], values[300], values[-1]
    sent = [bytes(byte ^ mask[index % 4] for index, byte in enumerate(value)) for value in shown]
    file = tmp_path / "capture.pcapng"
    file.write_bytes(noise.join([b"", *sent, b""]))
    assert hide(tmp_path, dict(zip(words, words, strict=True)))
    stars = [bytes(ord("*") ^ mask[index % 4] for index in range(len(value))) for value in shown]
    assert file.read_bytes() == noise.join([b"", *stars, b""])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Callable[[], int]]:
    """The port of a Mosquitto that lets in whom its password file names."""
    port, begun = own_port(), list[subprocess.Popen[str]]()
    passwords = tmp_path / "passwords"
    passwords.touch(mode=0o600)
    for number, (_, user, password) in enumerate(USERS):
        subprocess.run(["mosquitto_passwd", "-b", passwords, user, password], check=True, capture_output=True)
        subprocess.run(["mosquitto_passwd", "-b", passwords, f"user-{number:03}", f"word-{number}"], check=True,
                       capture_output=True)
    (tmp_path / "own.conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {passwords}\nuser root\n")

    def begin() -> int:
        begun.append(subprocess.Popen(["mosquitto", "-c", tmp_path / "own.conf"], stderr=subprocess.PIPE, text=True))
        assert begun[0].stderr is not None and any("running" in line for line in begun[0].stderr)
        return port

    yield begin
    for one in begun:
        one.kill()
        one.wait()


@pytest.mark.live
@pytest.mark.parametrize("way", ["table", "patterns", "wrong"])
def test_mosquitto_lets_in_who_has_the_right_password(
    way: str, broker: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    mqtt: dict[str, Any] = {"username": "user-{client:03}", "password": {"env": "LAB_WORD"}}
    monkeypatch.setenv("LAB_WORD", "word-{client}" if way == "patterns" else "word-{client:02}")
    if way == "table":
        mqtt = {"credentials": str(table(tmp_path))}
    values = scenario(mqtt, backend="live", network="external",
                      broker={"kind": "external", "address": "127.0.0.1", "port": broker()})
    del values["networks"]
    values["groups"][0]["reconnect"] = {"enabled": False}
    # Where a broker elsewhere accepts none of the clients, there is nothing to measure.
    recording = made(values, tmp_path / "run", "incomplete" if way == "wrong" else "complete")
    accepted = recording.table("events").filter(pl.col("kind").cast(pl.String) == "connack")["client"].to_list()
    if way == "wrong":
        assert not accepted
        assert any("not authorised" in str(reason) for reason in recording.run["validity"]["reasons"])
    else:
        assert sorted(accepted) == [0, 1, 2]
        secret = "word-1" if way == "patterns" else USERS[2][2]
        assert not leaks(tmp_path / "run", secret=secret)


@pytest.mark.live
def test_a_capture_of_a_live_run_has_no_password_of_a_table(tmp_path: Path) -> None:
    values = scenario({"credentials": str(table(tmp_path))}, backend="live", recording={"pcapng": True})
    made(values, tmp_path / "run")
    captures = [file.read_bytes() for file in (tmp_path / "run").glob("*.pcapng")]
    assert any(b"zo\xc3\xab" in data for data in captures), "the capture has the CONNECTs"
    assert all(not leaks(tmp_path / "run", secret=password) for _, _, password in USERS)


def test_a_table_lies_beside_the_scenario_else_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    beside, working = tmp_path / "scenarios", tmp_path / "work"
    beside.mkdir()
    working.mkdir()
    monkeypatch.chdir(working)
    text = '''
name = "named"
backend = "sim"
mqtt = { credentials = "devices.csv" }
phases = { duration = "1 s" }
network = "direct"
groups = [{ name = "p", host = "p", count = 2, publish = { topic = "t", rate = "1 /s", payload = "9 B" } }]
'''
    with pytest.raises(MqttlabError, match="which is not there"):
        parse(text, str(beside / "named.toml"))
    table(working, rows=2)
    assert parse(text, str(beside / "named.toml")).mqtt.credentials == Path("devices.csv")
    table(beside, rows=2)
    assert parse(text, str(beside / "named.toml")).mqtt.credentials == beside / "devices.csv"
