"""Secrets stay where they are: not in a byte that a command writes, of any field that may hold one."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import re
import sqlite3
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from commands import mqttlab
from mqttlab import secrets
from mqttlab.engine import engine_path, hide
from mqttlab.runs import Job
from mqttlab.runs.job import ulid
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import load, parse
from mqttlab.scenario.model import Scenario
from mqttlab.scenario.secret import classes_of, without_secrets
from mqttlab.scenario.secret_places import secrets_of
from secretly import OTHER, SCENARIO, SECRET, forms, leaks, written
from unchecked import without_checks


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test as a process of its own has it."""
    for name, empty in (("_values", {}), ("_absent", {}), ("_written", set()), ("_variables", {})):
        monkeypatch.setattr(secrets, name, empty)


def test_every_text_of_a_scenario_has_a_class() -> None:
    classes = dict(classes_of(Scenario))
    assert len(classes) > 50, "texts are found"
    assert [place for place, found in classes.items() if not found] == [], (
        "give each text a class: PLAIN, PERSONAL, SECRET or MAY_BE_SECRET of mqttlab.secrets")
    secret = {place for place, found in classes.items() if found & {"secret", "may be secret"}}
    assert secret == {"Mqtt.username", "Mqtt.password", "Program.command", "Program.environment", "Program.files",
                      "ClientProgram.command", "ClientProgram.environment", "ClientProgram.files", "WebSocket.path"}, (
        "a new field that may be secret belongs into SECRETS below, which says how it is written")


def test_a_text_without_a_class_is_found() -> None:
    from pydantic import BaseModel

    class New(BaseModel):
        token: str | None = None
        by_name: dict[secrets.PlainText, str] = {}

    assert dict(classes_of(New)) == {
        "New.token": frozenset(), "New.by_name{key}": {"plain"}, "New.by_name": frozenset()}


PROGRAM = """
[broker]
kind = "program"
[broker.program]
command = ["/bin/true", {command}]
environment = {{ TOKEN = {environment} }}
files = {{ "a.conf" = {files} }}
"""
CLIENT = """
[[groups]]
name = "program"
host = "field"
[groups.client]
command = ["/bin/true", {command}]
environment = {{ API_KEY = {environment} }}
files = {{ "b" = {files} }}
"""
REFERENCE = '{ env = "LAB_PASSWORD" }'
FIELDS = {
    "Mqtt.password": ("mqtt", "password"), "Mqtt.username": ("mqtt", "username"),
    "WebSocket.path": ("groups", 0, "transport", "websocket", "path"),
    "Program.command": ("broker", "program", "command", 1),
    "Program.environment": ("broker", "program", "environment", "TOKEN"),
    "Program.files": ("broker", "program", "files", "a.conf"),
    "ClientProgram.command": ("groups", 1, "client", "command", 1),
    "ClientProgram.environment": ("groups", 1, "client", "environment", "API_KEY"),
    "ClientProgram.files": ("groups", 1, "client", "files", "b"),
}


def with_secret(field: str, how: str) -> str:
    """A scenario whose field has the secret: by reference, or as text."""
    said = REFERENCE if how == "reference" else json.dumps(SECRET)
    plain = {"command": '"x"', "environment": '{ env = "OTHER" }', "files": '"x"'}
    text = SCENARIO.format(password=said if field == "Mqtt.password" else '{ env = "OTHER" }')
    name = field.rpartition(".")[2]
    if field == "Mqtt.username":
        text = text.replace('"alice"', said)
    if field == "WebSocket.path":
        said = said if how == "reference" else json.dumps(f"/mqtt?token={SECRET}")
        text += f"transport = {{ websocket = {{ path = {said} }} }}\n"
    if name in plain:
        told = said if name != "command" or how == "reference" else json.dumps(f"--password={SECRET}")
        told = json.dumps(f"password {SECRET}") if name == "files" and how == "text" else told
        text = text.replace('backend = "sim"\n', 'backend = "live"\n')
        text += (PROGRAM if field.startswith("Program") else CLIENT).format(**{**plain, name: told})
    return text


@pytest.mark.parametrize("how", ["reference", "text"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_secret_of_any_field_is_a_mark_in_the_plan_and_a_value_on_the_engines_standard_input(
        field: str, how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if field == "Mqtt.username" and how == "text":
        pytest.skip("a user name as text is none")
    secret = f"/mqtt?token={SECRET}" if field == "WebSocket.path" else SECRET
    monkeypatch.setenv("LAB_PASSWORD", secret)
    monkeypatch.setenv("OTHER", OTHER)
    text = with_secret(field, how)
    scenario = parse(text)
    assert FIELDS[field] in [place for place, _ in secrets_of(scenario)]
    plan = compile_plan(scenario)
    job = Job(plan, tmp_path)
    assert leaks(said=job.text + repr(job) + repr(scenario) + without_secrets(text)) == []
    assert SECRET in "".join(job.known_secrets.values())
    (tmp_path / "scenario.toml").write_text(text)
    checked = mqttlab("check", tmp_path / "scenario.toml")
    planned = mqttlab("check", tmp_path / "scenario.toml", "--plan")
    assert checked.returncode == planned.returncode == 0, checked.stderr
    assert leaks(said=checked.stdout + checked.stderr + planned.stdout + planned.stderr) == []
    assert ("is a secret" in checked.stderr) == (how == "text" or "command" in field), checked.stderr
    # The engine knows the places: without the values it names one, with them it has nothing to say of secrets.
    assert subprocess.run([engine_path(), "check"], input=job.input, text=True, capture_output=True).returncode == 0
    refused = subprocess.run([engine_path(), "run", "--directory", tmp_path / "run"], input=job.text, text=True,
                             capture_output=True)
    assert refused.returncode == 2
    assert "is a secret" in refused.stderr


def test_a_text_that_only_begins_as_a_mark_is_none_and_a_mark_needs_its_value() -> None:
    assert secrets.mark("***") == "***"
    made = secrets.mark(OTHER)
    assert re.fullmatch(r"\*\*\*[0-9a-f]{16}", made)
    assert secrets.mark(OTHER) == made, "equal secrets have equal marks"
    assert secrets.mark(OTHER + "!") != made
    assert secrets.value_of(made) == OTHER
    assert secrets.hidden(f"x {OTHER} y") == f"x {made} y"


def test_marks_differ_between_users_and_the_key_is_its_owners_alone(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for user in ("one", "two", "one"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / user))
        made.append(secrets.mark("the same word"))
    assert made[0] == made[2] != made[1]
    key = tmp_path / "one" / "mqttlab" / "secret-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_bytes()) == 32


@pytest.mark.parametrize(("password", "words"), [
    ('{ env = "NOT_SET" }', "kept.toml:8: `mqtt.password` is in the environment variable NOT_SET, which is not set"),
    ('{ file = "/no/such/file" }', "`mqtt.password` is in the file /no/such/file, which is not there"),
    ('{ file = "/dev" }', "`mqtt.password` is in the file /dev, which is a directory"),
    ('"***0123456789abcdef"', "`mqtt.password` is `***0123456789abcdef`, which stands for a secret that was taken out"),
    ('{ env = "A", file = "B" }', "must be a table with `env` or `file`"),
    ('{ }', "must be a table with `env` or `file`"),
    ('{ environment = "A" }', "unknown field"),
    ("42", 'is "***", but must be text in quotes'),
])
def test_what_is_missing_is_named_with_its_field(password: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, password)
    for command in (("check", path), ("run", path, "--runs", tmp_path / "runs")):
        done = mqttlab(*command)
        assert done.returncode == 2
        assert words in done.stderr.replace(str(tmp_path) + "/", "")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("text", [
    f'password = "{SECRET}{"x" * 70_000}"', f'password = ["{SECRET}"]', f'password = "{SECRET}"\nkeep_alive = "x"',
    f'password = "{SECRET}\\u0000"', f'username = 4\npassword = "{SECRET}"',
])
def test_an_error_does_not_show_a_password(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(SCENARIO.format(password='"x"').replace('username = "alice"\npassword = "x"\n', text + "\n"))
    done = mqttlab("check", path)
    assert done.returncode == 2
    assert "mqtt" in done.stderr
    assert leaks(said=done.stdout + done.stderr) == []
    assert SECRET[:8] not in done.stderr, "nor its beginning"


def test_a_file_may_have_the_secret_and_its_last_line_may_end(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    scenario = load(written(tmp_path, f'{{ file = "{tmp_path / "secret"}" }}'))
    assert scenario.mqtt.password is not None
    assert secrets.value_of(scenario.mqtt.password) == SECRET


def test_a_password_as_text_is_warned_of_and_kept_nowhere(tmp_path: Path) -> None:
    scenario = written(tmp_path, f'"{SECRET}" # or password = "{OTHER}"')
    done = mqttlab("run", scenario, "--runs", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert "kept.toml:8: `mqtt.password` is a secret that is written as text" in done.stderr
    origin = json.loads(next((tmp_path / "runs").rglob("origin.json")).read_text())["scenario"]["toml"]
    kept = SCENARIO.format(password=f'"{secrets.mark(SECRET)}" # or password = ***')
    assert origin == kept, "nothing else was changed"
    again = mqttlab("run", written(tmp_path, '{ env = "UNSET" }'), "--runs", tmp_path / "runs", "--set",
                    f'mqtt.password="{SECRET}"')
    assert again.returncode == 0, again.stderr
    assert "as set on the command line: `mqtt.password` is a secret" in again.stderr
    assert leaks(tmp_path / "runs", said=done.stdout + done.stderr + again.stdout + again.stderr) == []
    written(tmp_path, f'"{SECRET}"')
    many = mqttlab("experiment", scenario, "--runs", tmp_path / "many", "--queue", "none")
    assert many.returncode == 0, many.stderr
    assert "kept.toml:8: `mqtt.password` is a secret that is written as text" in many.stderr
    assert leaks(tmp_path / "many", said=many.stdout + many.stderr) == []
    assert mqttlab("report", tmp_path / "many" / "kept").returncode == 0, "who only reads needs no password"
    fresh = [sys.executable, "-m", "mqttlab", "experiment", tmp_path / "many" / "kept" / "scenario.toml", "--runs",
             tmp_path / "other", "--queue", "none"]
    refused = subprocess.run(fresh, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "which stands for a secret that was taken out" in refused.stderr
    assert leaks(tmp_path / "runs", secret=OTHER) == [], "a comment"


def test_what_a_recording_kept_cannot_be_run_without_its_secret(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_PASSWORD", SECRET)
    assert mqttlab("run", written(tmp_path), "--no-html", "--runs", tmp_path / "runs").returncode == 0
    run = next((tmp_path / "runs").glob("kept-*"))
    refused = subprocess.run([engine_path(), "run", "--directory", tmp_path / "again"], capture_output=True, text=True,
                             input=(run / "plan.json").read_text())
    assert refused.returncode == 2
    assert "`groups[0].protocol.mqtt.password` is a secret, and a plan that was kept does not have its value" \
        in refused.stderr
    # The scenario that was kept has the reference.
    (tmp_path / "again.toml").write_text(json.loads((run / "origin.json").read_text())["scenario"]["toml"])
    assert mqttlab("check", tmp_path / "again.toml").returncode == 0


def test_a_password_in_the_plan_itself_is_used_and_not_written_again(tmp_path: Path) -> None:
    plan: Any = compile_plan(parse(SCENARIO.format(password='"x"')))
    plan["groups"][0]["protocol"]["mqtt"]["password"] = SECRET
    done = subprocess.run([engine_path(), "run", "--directory", tmp_path / "run"], input=json.dumps(plan), text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    assert leaks(tmp_path, said=done.stdout + done.stderr) == []
    stored = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert stored["groups"][0]["protocol"]["mqtt"]["password"] == "***"


def test_a_job_that_is_handed_on_takes_its_secrets_along(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAB_PASSWORD", SECRET)
    job = Job(compile_plan(load(written(tmp_path))), tmp_path / "run")
    sent = dataclasses.replace(job, secrets=job.known_secrets)
    assert SECRET not in repr(sent)
    assert pickle.loads(pickle.dumps(sent)).secrets == {secrets.mark(SECRET): SECRET}


def test_a_job_that_waits_has_its_secrets_in_memory_of_its_user_alone_and_one_that_is_cancelled_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mqttlab.queue import Queue

    monkeypatch.setenv("LAB_PASSWORD", SECRET)
    memory = tmp_path / "run"
    memory.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(memory))
    queue = Queue(tmp_path / "queue")
    job = Job(compile_plan(load(written(tmp_path))), tmp_path / "runs" / "one")
    queue.submit(job, held=True)
    [file] = [path for path in memory.rglob("*") if path.is_file()]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {stat.S_IMODE(place.stat().st_mode) for place in (file.parent, file.parent.parent)} == {0o700}
    assert queue.handed.of(job.identifier) == {secrets.mark(SECRET): SECRET}
    assert leaks(tmp_path / "queue") == []
    assert stat.S_IMODE((tmp_path / "queue" / "queue.db").stat().st_mode) == 0o600
    assert queue.cancel() == 1
    assert not file.exists()
    queue.submit(dataclasses.replace(job, identifier=(another := ulid())))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (queue.jobs() or any(path.is_file() for path in memory.rglob("*"))):
        time.sleep(0.1)
    [done] = [each for each in queue.jobs(all_=True) if each.identifier == another]
    assert done.verdict == "complete", done.reason
    assert leaks(tmp_path / "runs", tmp_path / "queue", memory) == []


def test_a_url_with_a_password_is_shown_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTTLAB_QUEUE", str(tmp_path / "queue"))
    password = "db-Passw0rd"
    url = f"postgresql://lab:{password}@127.0.0.1:1/none"
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    scenario = written(tmp_path, f'{{ file = "{tmp_path / "empty.txt"}" }}')
    run = mqttlab("run", scenario, "--no-html", "--runs", tmp_path / "runs")
    assert run.returncode == 0, run.stderr
    recording = next((tmp_path / "runs").glob("kept-*"))
    said = ""
    for words in (("export", recording, "--sql", url), ("catalog", "query", "--catalog", url),
                  ("run", scenario, "--runs", tmp_path / "runs", "--sql", url),
                  ("run", scenario, "--runs", tmp_path / "runs", "--catalog", url),
                  ("run", scenario, "--detach", "--runs", tmp_path / "runs", "--catalog", url),
                  ("queue", "wait"), ("export", recording, "--sql", f"mongodb://lab:{password}@h/d"),
                  ("catalog", "query", "--catalog", f"mongodb://lab:{password}@h/d"),
                  ("experiment", scenario, "--detach", "--runs", tmp_path / "runs", "--catalog", url),
                  ("queue", "wait"), ("queue", "list", "--all")):
        done = mqttlab(*words)
        said += done.stdout + done.stderr
    assert "lab:***" in said
    assert leaks(tmp_path, Path(os.environ["MQTTLAB_QUEUE"]), said=said, secret=password) == []


@pytest.mark.parametrize(("url", "secret"), [
    ("postgresql://lab:one@Zq9rXwTwo@127.0.0.1:1/none", "Zq9rXwTwo"),
    ("postgresql://lab:one@two:Zq9rXwThree@127.0.0.1:1/none", "Zq9rXwThree"),
    ("postgresql://lab:one/Zq9rXwFour@127.0.0.1:1/none", "Zq9rXwFour"),
    ("postgresql://127.0.0.1:1/none?user=lab&password=Zq9rXwFive", "Zq9rXwFive"),
    ("mariadb://lab:Zq9rXwSix@127.0.0.1:Zq9rXwSix/none", "Zq9rXwSix"),
    ("postgresql://lab:Zq9rXwSeven@[::1/none", "Zq9rXwSeven"),
])
def test_a_password_that_should_have_been_encoded_is_shown_no_more_than_another(
    url: str, secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    # `queue wait` waits for all that is in a queue, what other tests have in theirs, too.
    monkeypatch.setenv("MQTTLAB_QUEUE", str(tmp_path / "queue"))
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    scenario = written(tmp_path, f'{{ file = "{tmp_path / "empty.txt"}" }}')
    said = ""
    for words in (("catalog", "query", "--catalog", url), ("run", scenario, "--no-html", "--runs", tmp_path / "runs",
                                                           "--catalog", "none", "--sql", url),
                  ("run", scenario, "--detach", "--runs", tmp_path / "runs", "--catalog", url), ("queue", "wait"),
                  ("queue", "list", "--all")):
        done = mqttlab(*words)
        said += done.stdout + done.stderr
    assert "Traceback" not in said
    assert "Name or service not known" not in said, "a part of the password was asked for as a host"
    assert leaks(tmp_path, Path(os.environ["MQTTLAB_QUEUE"]), said=said, secret=secret) == []


def test_the_queue_keeps_no_password_of_the_place_where_recordings_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MQTTLAB_QUEUE", str(tmp_path / "queue"))
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    scenario = written(tmp_path, f'{{ file = "{tmp_path / "empty.txt"}" }}')
    done = mqttlab("experiment", scenario, "--runs", tmp_path / "runs", "--to", "memory://lab:Zq9rXwEight@place")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert leaks(tmp_path, Path(os.environ["MQTTLAB_QUEUE"]), said=said, secret="Zq9rXwEight") == []


def test_the_password_of_a_url_reaches_the_database_as_it_was_meant() -> None:
    for given, password in (("a@b", "a@b"), ("a%40b", "a@b"), ("a/b@", "a/b@"), ("***", "***")):
        url = secrets.safe_url(f"postgresql://lab:{given}@host:1/d?x=c@d")
        assert url.endswith("@host:1/d?x=c@d") and url == secrets.safe_url(url)
        assert sa.make_url(secrets.revealed(url)).password == password
    assert secrets.url_to_show(secrets.safe_url("postgresql://lab:a@b@h/d?password=x1y2")) == (
        "postgresql://lab:***@h/d?password=***")


def test_levels_are_not_secrets(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "e.toml").write_text('name = "e"\nscenario = "kept.toml"\n[[factors]]\nplace = "mqtt.password"\n'
                                     f'levels = ["{SECRET}", "{OTHER}"]\n')
    done = mqttlab("experiment", tmp_path / "e.toml", "--runs", tmp_path / "runs")
    assert done.returncode == 2
    assert "has a secret as a level" in done.stderr
    assert leaks(said=done.stderr) == []


def test_an_authority_with_a_key_gives_the_plan_its_certificate_alone(tmp_path: Path) -> None:
    from mqttlab.scenario.compile import _certificates

    certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
    both = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n{certificate}\n"
    assert _certificates(both) == certificate + "\n"
    assert _certificates(certificate) == certificate


@pytest.mark.parametrize("mask", [None, b"\x01\xfe\x37\x99"])
def test_a_capture_loses_the_secret_plain_or_behind_a_websockets_mask(mask: bytes | None, tmp_path: Path) -> None:
    data = struct.pack("!H", len(SECRET)) + SECRET.encode()
    if mask is not None:
        data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
    before = os.urandom(1001)
    file = tmp_path / "capture.pcapng"
    file.write_bytes(before + data + before)
    assert hide(tmp_path, {"***": SECRET})
    after = file.read_bytes()
    assert after[:1003] == (before + data)[:1003]
    shown = after[1003:1003 + len(SECRET)]
    if mask is not None:
        shown = bytes(byte ^ mask[(index + 2) % 4] for index, byte in enumerate(shown))
    assert shown == b"*" * len(SECRET)
    assert after[1003 + len(SECRET):] == before


def old_recording(tmp_path: Path) -> Path:
    """A recording as versions before this one left it: the password in all that they wrote."""
    scenario = written(tmp_path, f'"{SECRET}"')
    assert mqttlab("run", scenario, "--runs", tmp_path / "runs").returncode == 0
    run = next((tmp_path / "runs").glob("kept-*"))
    mark = secrets.mark(SECRET)
    import html
    for name, value in (("plan.json", json.dumps(SECRET)[1:-1]), ("origin.json", json.dumps(SECRET)[1:-1])):
        file = run / name
        assert mark in file.read_text()
        file.write_text(file.read_text().replace(mark, value))
    page = run / "report.html"
    page.write_text(page.read_text() + f"<pre>{html.escape(json.dumps({'password': SECRET}))}</pre>")
    (run / "broker.log").write_text(f"argument {SECRET}\n")
    without_checks(run)
    assert mqttlab("catalog", "scan", tmp_path / "runs", "--fresh").returncode == 0
    assert leaks(run / "plan.json") and leaks(run / "origin.json") and leaks(page)
    assert leaks(tmp_path / "runs" / "catalog.db")
    return run


def test_scrub_takes_secrets_out_of_recordings_and_of_the_catalog_and_changes_nothing_else(tmp_path: Path) -> None:
    run = old_recording(tmp_path)
    before = {path: path.read_bytes() for path in sorted((tmp_path / "runs").rglob("*")) if path.is_file()}
    times = {path: path.stat().st_mtime_ns for path in before}
    done = mqttlab("catalog", "scrub", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert leaks(tmp_path / "runs", said=done.stdout + done.stderr) == []
    assert "plan.json: groups[0].protocol.mqtt.password" in done.stdout
    assert "origin.json: scenario.toml" in done.stdout
    mark = secrets.mark(SECRET).encode()
    for path, data in before.items():
        if path.name.startswith("catalog.db") or path.name == "run.json":
            continue
        expected = data
        for form in sorted(forms(SECRET), key=len, reverse=True):
            expected = expected.replace(form, mark)
        assert path.read_bytes() == expected or path.suffix == ".log", path
        assert path.stat().st_mtime_ns == times[path], path
    kept = re.sub(rb'("plan_sha256": ")[0-9a-f]{64}', rb"\1", before[run / "run.json"])
    assert re.sub(rb'("plan_sha256": ")[0-9a-f]{64}', rb"\1", (run / "run.json").read_bytes()) == kept
    with sqlite3.connect(tmp_path / "runs" / "catalog.db") as catalog:
        assert catalog.execute("SELECT COUNT(*) FROM run").fetchone() == (1,)
    again = mqttlab("catalog", "scrub", tmp_path / "runs")
    assert "0 files changed" in again.stdout
    assert mqttlab("report", run).returncode == 0


@pytest.mark.parametrize("password", ["sim", "1 s"])
def test_scrub_and_recordings_keep_their_other_words_where_a_password_is_one_of_them(
    password: str, tmp_path: Path,
) -> None:
    scenario = written(tmp_path, f'"{password}"')
    assert mqttlab("run", scenario, "--no-html", "--runs", tmp_path / "runs").returncode == 0
    run = next((tmp_path / "runs").glob("kept-*"))
    plan = json.loads((run / "plan.json").read_text())
    assert (plan["name"], plan["backend"]) == ("kept", "sim")
    toml = json.loads((run / "origin.json").read_text())["scenario"]["toml"]
    assert toml == SCENARIO.format(password=f'"{secrets.mark(password)}"')
    (run / "plan.json").write_text((run / "plan.json").read_text().replace(secrets.mark(password), password))
    assert mqttlab("catalog", "scrub", tmp_path / "runs").returncode == 0
    assert json.loads((run / "plan.json").read_text()) == plan
    assert mqttlab("report", run).returncode == 0


def test_scrub_takes_secrets_out_of_the_queues_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mqttlab.queue import Queue

    monkeypatch.setenv("MQTTLAB_QUEUE", str(tmp_path / "queue"))
    (tmp_path / "runs").mkdir()
    queue = Queue(tmp_path / "queue")
    plan: Any = compile_plan(parse(SCENARIO.format(password='"x"')))
    plan["groups"][0]["protocol"]["mqtt"]["password"] = SECRET
    for _ in range(2):
        origin = {"scenario": {"toml": SCENARIO.format(password=f'"{SECRET}"'), "settings": {}}}
        queue.submit(Job(plan, tmp_path / "runs" / "one", origin=origin), held=True)
    assert queue.cancel() == 2
    assert leaks(tmp_path / "queue")
    done = mqttlab("catalog", "scrub", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert "2 jobs changed" in done.stdout
    queue.store.close()
    assert leaks(tmp_path / "queue", said=done.stdout + done.stderr) == []


def test_runs_are_their_owners_alone_where_mqttlab_makes_the_directory(tmp_path: Path) -> None:
    scenario = written(tmp_path, '"x"')
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    for runs in (tmp_path / "new", shared):
        done = mqttlab("run", scenario, "--no-html", "--runs", runs)
        assert done.returncode == 0
        assert ("others can read" in done.stderr) == (runs == shared)
    modes = {path.name.partition("-")[0]: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert modes == {"kept": 0o700, "catalog.db": 0o600}
    assert stat.S_IMODE(next(shared.glob("kept-*")).stat().st_mode) == 0o755, "what is shared on purpose stays so"


def test_the_dashboard_takes_no_password_as_text_and_no_file_but_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    from mqttlab.dashboard.configure import drafts
    from mqttlab.dashboard.configure.definition import form

    monkeypatch.setenv("LAB_PASSWORD", SECRET)
    assert drafts.check(SCENARIO.format(password='{ env = "LAB_PASSWORD" }')).mqtt.password == secrets.mark(SECRET)
    for password, words in ((f'"{SECRET}"', "is not taken from the browser"),
                            ('{ file = "/etc/hostname" }', "cannot be set from the browser")):
        with pytest.raises(ScenarioError, match=words) as refused:
            drafts.check(SCENARIO.format(password=password))
        assert leaks(said=str(refused.value)) == []
    with pytest.raises(ScenarioError, match="browser"):
        drafts.check(SCENARIO.format(password='"x"').replace('"alice"', '{ env = "HOME" }'))
    fields = {one["place"] for section in form({"mqtt": {}}, []) for one in section["fields"]}
    assert "mqtt.username" in fields
    assert "mqtt.password" not in fields


def test_a_command_of_the_queue_is_told_secrets_by_its_environment_and_hands_them_to_nobody() -> None:
    program = ("import os; from mqttlab import secrets; print(secrets.value_of('***0123456789abcdef'), "
               "secrets.from_environment('NAME'), 'MQTTLAB_SECRETS' in os.environ)")
    told = json.dumps({"***0123456789abcdef": "one", "$NAME": "two"})
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"MQTTLAB_SECRETS": told},
                          capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["one", "two", "False"]


BROKER = """
[broker]
kind = "program"
ready = "connack"
[broker.program]
command = ["mosquitto", "-c", "{directory}/mosquitto.conf"]
[broker.program.files]
"users" = { file = "USERS" }
"mosquitto.conf" = '''
user root
password_file {directory}/users
allow_anonymous false
listener {port} {address}
LISTENER
'''
"""
LISTENERS = {
    "tcp": "",
    "websocket": "listener {websocket_port} {address}\nprotocol websockets",
    "tls": "listener {tls_port} {address}\ncertfile {directory}/tls/server.pem\nkeyfile {directory}/tls/server.key",
}


def users(place: Path, password: str) -> Path:
    """A password file of Mosquitto: PBKDF2 of SHA-512, 101 rounds."""
    import base64
    import hashlib

    salt = b"twelve bytes"
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 101)
    file = place / "users"
    file.write_text(f"alice:$7$101${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}\n")
    return file


@pytest.mark.live
@pytest.mark.parametrize("transport", LISTENERS)
def test_a_live_run_has_the_password_for_the_broker_and_for_nobody_else(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_PASSWORD", SECRET)
    monkeypatch.setenv("SHOWN", OTHER)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    broker = BROKER.replace("USERS", str(users(elsewhere, SECRET))).replace("LISTENER", LISTENERS[transport])
    scenario = written(elsewhere, extra=f'transport = "{transport}"\n{broker}')
    recorded = 'backend = "live"\n[recording]\npcapng = true\npayloads = true'
    scenario.write_text(scenario.read_text().replace('backend = "sim"', recorded))
    done = mqttlab("run", scenario, "--runs", tmp_path / "runs", "--json")
    assert done.returncode in (0, 6), done.stderr
    run = next((tmp_path / "runs").glob("kept-*"))
    assert json.loads((run / "run.json").read_text())["messages"]["delivered"] > 0, "the broker took the password"
    assert leaks(tmp_path / "runs", said=done.stdout + done.stderr) == []
    captures = [path.read_bytes() for path in run.glob("capture-*.pcapng")]
    assert captures
    assert transport != "tcp" or any(b"*" * len(SECRET) in capture for capture in captures), "it was there"
    exported = mqttlab("export", run, "--pcapng", run / "all.pcapng")
    assert exported.returncode == 0, exported.stderr
    mqttlab("import", "capture", run / "all.pcapng", "--runs", tmp_path / "imported")
    assert leaks(tmp_path / "runs", tmp_path / "imported") == []
    if transport == "tls":
        assert "removed" in (run / "keys.log").read_text()


@pytest.mark.live
def test_what_a_program_prints_of_its_secret_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_PASSWORD", SECRET)
    broker = """
[broker]
kind = "program"
start_timeout = "1 s"
[broker.program]
command = ["sh", "-c", "echo told $TOKEN; echo $TOKEN >&2; cat {directory}/a; exit 3"]
environment = { TOKEN = { env = "LAB_PASSWORD" } }
files = { "a" = { env = "LAB_PASSWORD" } }
"""
    scenario = written(tmp_path, extra=broker)
    scenario.write_text(scenario.read_text().replace('backend = "sim"', 'backend = "live"'))
    done = mqttlab("run", scenario, "--runs", tmp_path / "runs")
    assert done.returncode != 0
    assert "told ***" in done.stderr + done.stdout
    assert leaks(tmp_path / "runs", said=done.stdout + done.stderr) == []


@pytest.mark.live
def test_what_a_program_prints_of_a_file_with_a_secret_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_PASSWORD", OTHER)
    monkeypatch.setenv("BRIDGE", f"listener 1883\nremote_password {SECRET}\nuse_token true\n")
    broker = """
[broker]
kind = "program"
start_timeout = "1 s"
[broker.program]
command = ["sh", "-c", "sed -n 2p {directory}/a; sed -n 's/remote_password/wrong word:/p' {directory}/a; exit 3"]
files = { "a" = { env = "BRIDGE" } }
"""
    scenario = written(tmp_path, extra=broker)
    scenario.write_text(scenario.read_text().replace('backend = "sim"', 'backend = "live"'))
    done = mqttlab("run", scenario, "--runs", tmp_path / "runs")
    assert done.returncode != 0
    assert "wrong word: ***" in re.sub(r"\s+", " ", done.stderr + done.stdout), done.stderr
    assert leaks(tmp_path / "runs", said=done.stdout + done.stderr) == []


def test_of_a_file_lines_and_what_they_set_are_hidden_and_short_words_stay() -> None:
    file = "listener 1883\nremote_password hunter22\nuse_token true\nalice:$7$101$c2FsdA==\n"
    assert secrets.parts(file) == {file, "listener 1883", "remote_password hunter22", "hunter22", "use_token true",
                                   "alice:$7$101$c2FsdA=="}
    assert secrets.parts('{"password": "hunter22",') == {'{"password": "hunter22",'}
    assert secrets.parts('{\n "password": "hunter22",\n}') >= {"hunter22"}
    assert secrets.parts("abc") == set()


def test_programs_do_not_inherit_the_variable_that_a_reference_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_PASSWORD", SECRET)
    assert secrets.environment_without_variables()["LAB_PASSWORD"] == SECRET
    secrets.from_environment("LAB_PASSWORD")
    assert "LAB_PASSWORD" not in secrets.environment_without_variables()


def test_an_experiment_that_is_handed_over_has_the_variable_though_the_queue_began_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mqttlab.queue import Queue

    monkeypatch.setenv("MQTTLAB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    Queue(tmp_path / "queue").start()
    monkeypatch.setenv("LAB_PASSWORD", SECRET)
    done = mqttlab("experiment", written(tmp_path), "--runs", tmp_path / "runs", "--detach", "--set",
                   f'groups[0].mqtt={{"username": "bob", "password": "{OTHER}"}}')
    assert done.returncode == 0, done.stderr
    waited = mqttlab("queue", "wait")
    log = "".join(path.read_text() for path in (tmp_path / "queue" / "logs").iterdir())
    assert waited.returncode == 0, log
    plan = json.loads(next((tmp_path / "runs").rglob("plan.json")).read_text())
    assert plan["groups"][0]["protocol"]["mqtt"]["password"] == secrets.mark(OTHER)
    for secret in (SECRET, OTHER):
        assert leaks(tmp_path / "runs", tmp_path / "queue", said=log, secret=secret) == []


def test_scrub_takes_secrets_out_of_experiments(tmp_path: Path) -> None:
    scenario = written(tmp_path, f'"{SECRET}"')
    file = tmp_path / "e.toml"
    file.write_text(f'name = "e"\nscenario = "{scenario.name}"\nset = {{ "mqtt.password" = "{OTHER}" }}\n[[factors]]\n'
                    'place = "groups[0].publish.qos"\nlevels = [0, 1]\n')
    assert mqttlab("experiment", file, "--runs", tmp_path / "runs", "--queue", "none", "--set",
                   "mqtt.username=carol").returncode == 0
    place = tmp_path / "runs" / "e"
    known = {secrets.mark(SECRET): SECRET, secrets.mark(OTHER): OTHER}
    texts = (path for path in place.rglob("*") if path.suffix in (".toml", ".json", ".jsonl", ".html"))
    before = {path: path.read_text() for path in texts}
    assert any(secrets.mark(OTHER) in text for text in before.values())
    for path, text in before.items():
        for mark, value in known.items():
            text = text.replace(mark, json.dumps(value)[1:-1] if path.suffix == ".json" else value)
        path.write_text(text)
    (place / "notes.md").write_text(f"with {SECRET}\n")
    assert mqttlab("catalog", "scan", tmp_path / "runs").returncode == 0
    assert leaks(place / "scenario.toml") and leaks(place / "experiment.toml", secret=OTHER)
    done = mqttlab("catalog", "scrub", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert leaks(place) + leaks(tmp_path / "runs" / "catalog.db") == []
    assert leaks(place, secret=OTHER) + leaks(tmp_path / "runs" / "catalog.db", secret=OTHER) == []
    for path, text in before.items():
        if path.name != "run.json":
            assert path.read_text() == text, path
    assert mqttlab("report", place).returncode == 0
