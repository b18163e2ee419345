"""What is said of runs and messages: fates, validity, exit statuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Done, mqttlab
from live import able
from mqttlab import metrics
from mqttlab.cli.status import status_of, worst
from mqttlab.engine import EngineError
from mqttlab.recording import Recording
from mqttlab.report.text import verdict
from mqttlab.runs import Job, Outcome, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies import simulate
from processes import children, engines

PUBLISHER = """
[[groups]]
name = "publisher"
host = "field"
count = {publishers}
publish = {{ topic = "t/{{client}}", qos = {qos}, payload = "{payload}", rate = "{rate}" }}

[[groups]]
name = "subscriber"
host = "field"
count = {subscribers}
subscribe = [{{ filter = "t/+", qos = {qos} }}]
"""


def scenario(directory: Path, head: str, *, qos: int = 1, publishers: int = 1, subscribers: int = 1,
             payload: str = "100 B", rate: str = "10 /s") -> Path:
    path = directory / "scenario.toml"
    groups = PUBLISHER.format(qos=qos, publishers=publishers, subscribers=subscribers, payload=payload, rate=rate)
    path.write_text(f'name = "judged"\n{head}\n{groups}', encoding="utf-8")
    return path


def run(path: Path, *words: str, files: tuple[int, int] | None = None) -> tuple[Done, Path]:
    """Run it, in a process that may open so many files where a limit is given; returns where the recording is."""
    runs = path.parent / "runs"
    command = ["run", str(path), "--no-html", "--runs", str(runs), *words]
    if files is None:
        done = mqttlab(*command)
    else:
        limited = subprocess.run(
            ["prlimit", f"--nofile={files[0]}:{files[1]}", sys.executable, "-m", "mqttlab", *command],
            capture_output=True, text=True, check=False, timeout=120)
        done = Done(limited.returncode, limited.stdout, limited.stderr)
    return done, next((plan.parent for plan in runs.glob("*/plan.json")), runs)


def test_a_study_takes_no_simulation_that_ended_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(job: Job, *others: object) -> Outcome:
        return Outcome(verdict="incomplete", reason="killed by SIGKILL", directory=tmp_path)

    monkeypatch.setattr("mqttlab.runs.executor.perform", interrupted)
    values = {
        "name": "t", "phases": {"duration": "1 s"}, "networks": [{"between": ["field", "broker"], "up": {}}],
        "groups": [{"name": "p", "host": "field", "count": 1,
                    "publish": {"topic": "t", "qos": 0, "payload": "100 B", "rate": "1 /s"}}],
    }
    with pytest.raises(EngineError, match="killed by SIGKILL"):
        simulate({"half": values}, lambda recording: "half a recording", jobs=1)


def test_of_several_exit_statuses_the_first_in_their_order_counts() -> None:
    assert worst([]) == 0
    assert worst([0, 5, 4]) == 4
    assert worst([4, 6, 0]) == 6
    assert worst([6, 3]) == 3
    assert worst([3, 1]) == 1
    assert worst([1, 2, 6]) == 2


def test_a_simulation_in_which_nobody_connects_is_not_valid_and_says_so_first(tmp_path: Path) -> None:
    head = """
    phases = { connect_timeout = "5 s", duration = "2 s", cool_down = "1 s" }
    networks = [{ between = ["field", "broker"], up = { delay = "5 ms", loss = "99.9 %" }, down = { delay = "5 ms" } }]
    """
    done, directory = run(scenario(tmp_path, head), "--backend", "sim")
    assert done.returncode == 6, done.stderr
    assert done.stdout.startswith("not valid")
    assert "2 of 2 clients never connected" in " ".join(done.stdout.splitlines()[:4])
    text = (directory / "run.json").read_text(encoding="utf-8")
    assert list(json.loads(text))[:3] == ["status", "reason", "validity"]
    assert mqttlab("report", directory).stdout.startswith("not valid")
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert page.index("2 of 2 clients never connected") < page.index(">Messages", page.index("<h2 id"))


@pytest.mark.parametrize(("head", "payload", "says"), [
    # No filter is for these topics.
    ('networks = [{ between = ["field", "broker"], up = { delay = "5 ms" }, down = { delay = "5 ms" } }]', "100 B",
     "Nothing was delivered: no subscription was for the messages of the measurement"),
    # No message comes through in this time.
    ('networks = [{ between = ["field", "broker"], up = { rate = "20 kbit/s" }, down = { delay = "5 ms" } }]', "100 kB",
     "Nothing was delivered of the measurement: of 20 expected deliveries none happened (20 still under way)."),
])
def test_a_run_to_which_nothing_was_delivered_says_so_first_and_is_valid(
    head: str, payload: str, says: str, tmp_path: Path,
) -> None:
    path = scenario(tmp_path, f'phases = {{ duration = "2 s", cool_down = "1 s" }}\n{head}', payload=payload)
    if payload == "100 B":
        path.write_text(path.read_text(encoding="utf-8").replace('"t/+"', '"other/+"'), encoding="utf-8")
    done, directory = run(path, "--backend", "sim")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " ".join(done.stdout.split()).startswith(says)
    assert verdict(Recording.open(directory))[0] == "valid"
    document = json.loads(mqttlab("report", directory, "--json").stdout)
    assert document["verdict"] == "valid" and says in " ".join(document["reasons"])
    mqttlab("report", directory)
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert page.index("Nothing was delivered") < page.index(">Messages", page.index("<h2 id"))


ACL = "topic write t/#\n"


@pytest.mark.live
@pytest.mark.skipif(able() is not None, reason=str(able()))
def test_a_broker_that_lets_nobody_read_is_named_as_a_thing_to_look_at(tmp_path: Path) -> None:
    configuration = "user root\nlistener {port} {address}\nallow_anonymous true\nacl_file {directory}/acl\n"
    values = {
        "name": "refused", "backend": "live",
        "phases": {"connect_timeout": "3 s", "duration": "1 s", "cool_down": "1 s"},
        "broker": {"kind": "program", "program": {
            "command": ["mosquitto", "-c", "{directory}/m.conf"], "files": {"m.conf": configuration, "acl": ACL}}},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}],
        "groups": [
            {"name": "publisher", "host": "field",
             "publish": {"topic": "t/1", "qos": 1, "payload": "100 B", "rate": "10 /s"}},
            {"name": "subscriber", "host": "field", "subscribe": [{"filter": "t/+", "qos": 1}]}],
    }
    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    _, reasons = verdict(Recording.open(tmp_path / "run"))
    [warning] = [text for text in reasons if text.startswith("Nothing was delivered")]
    assert "of 10 expected deliveries" in warning and "access rules" in warning


def test_an_overloaded_run_has_its_messages_under_way_and_is_valid(tmp_path: Path) -> None:
    head = """
    phases = { duration = "20 s", cool_down = "5 s" }
    networks = [{ between = ["field", "broker"], up = { rate = "1 Mbit/s" }, down = { rate = "14 kbit/s" } }]
    """
    path = scenario(tmp_path, head, qos=2, subscribers=5, payload="10 kB", rate="0.2 /s")
    done, directory = run(path, "--backend", "sim")
    assert done.returncode == 0, done.stdout + done.stderr
    row = metrics.application(Recording.open(directory)).row(0, named=True)
    assert row["deliveries_expected"] == row["messages_sent"] * 5
    assert row["messages_under_way"] > 0
    assert row["messages_lost"] == row["messages_unknown"] == 0


def test_repetitions_are_no_deliveries_so_that_the_cool_down_waits_for_what_is_under_way(tmp_path: Path) -> None:
    head = """
    phases = { duration = "60 s", cool_down = "120 s" }
    seed = 3
    mqtt = { clean_session = false, keep_alive = "2 s" }

    [[networks]]
    between = ["field", "broker"]
    up = { rate = "1 Mbit/s", delay = "20 ms", burst_loss = { good_to_bad = "0.4 %", bad_to_good = "3 %" } }
    down = { rate = "1 Mbit/s", delay = "20 ms", burst_loss = { good_to_bad = "0.4 %", bad_to_good = "3 %" } }
    """
    done, directory = run(scenario(tmp_path, head, publishers=10), "--backend", "sim")
    assert done.returncode == 0, done.stdout + done.stderr
    messages = Recording.open(directory).messages
    assert messages.filter(pl.col("fate") == "duplicate").height > 0, "connections must break"
    assert messages.filter(pl.col("fate").is_in(["under_way", "unknown"])).is_empty()
    # Those who were away for long find no more than their queue holds.
    assert set(messages.filter(pl.col("fate") == "lost")["cause"]) <= {"queue_full"}


def test_what_was_sent_at_qos_0_into_a_connection_that_broke_is_lost_and_says_why(tmp_path: Path) -> None:
    head = """
    phases = { duration = "60 s", cool_down = "60 s" }
    mqtt = { keep_alive = "2 s" }

    [[networks]]
    between = ["field", "broker"]
    up = { rate = "1 Mbit/s", delay = "20 ms", burst_loss = { good_to_bad = "0.4 %", bad_to_good = "2 %" } }
    down = { rate = "1 Mbit/s", delay = "20 ms", burst_loss = { good_to_bad = "0.4 %", bad_to_good = "2 %" } }
    """
    done, directory = run(scenario(tmp_path, head, qos=0, publishers=5), "--backend", "sim")
    assert done.returncode in (0, 6), done.stdout + done.stderr
    causes = set(Recording.open(directory).messages.filter(pl.col("fate") == "lost")["cause"])
    assert None not in causes
    assert "connection_lost" in causes


EMULATED = """
phases = { duration = "1 s", cool_down = "1 s" }
networks = [{ between = ["field", "broker"], up = { delay = "1 ms" }, down = { delay = "1 ms" } }]
"""


@pytest.mark.live
def test_too_few_descriptors_are_found_before_anything_starts(tmp_path: Path) -> None:
    path = scenario(tmp_path, EMULATED, publishers=60)
    done, directory = run(path, files=(64, 64))
    assert done.returncode == 1, done.stdout
    assert "61 clients" in done.stderr and "may open 64" in done.stderr and "ulimit -Hn" in done.stderr
    assert not list(directory.glob("*.spool"))


@pytest.mark.live
def test_a_low_soft_limit_of_descriptors_is_raised(tmp_path: Path) -> None:
    done, directory = run(scenario(tmp_path, EMULATED, publishers=60), files=(64, 4096))
    assert done.returncode in (0, 6), done.stderr
    assert Recording.open(directory).clients["connect_ns"].null_count() == 0


@pytest.mark.live
@pytest.mark.parametrize("goes_on", [False, True], ids=["for good", "for a while"])
def test_a_run_whose_broker_stood_still_is_not_valid_and_says_when(goes_on: bool, tmp_path: Path) -> None:
    """Its connections stay open and nothing is lost: only that most was under way at the end tells, or the kernel."""
    phases = {"duration": "4 s", "cool_down": "3 s"}
    values = {
        "name": "frozen", "phases": phases,
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": [{"name": "p", "host": "field",
                    "publish": {"topic": "t", "qos": 1, "payload": "100 B", "rate": "50 /s"}},
                   {"name": "s", "host": "field", "subscribe": [{"filter": "t", "qos": 1}]}],
    }
    job, measuring = Job(compile_plan(parse_values(values)), tmp_path / "run"), []
    stopped: list[int] = []

    def freeze(line: dict[str, Any]) -> None:
        if line.get("event") == "phase":
            measuring.append(line["phase"])
        if line.get("event") == "tick" and measuring and measuring[-1] == "measurement" and line.get("delivered"):
            engines_here = engines(lambda words: any(str(tmp_path) in word for word in words))
            for broker in children(engines_here, lambda words: words[0].endswith("mosquitto")):
                stopped.append(broker)
                os.kill(broker, signal.SIGSTOP)
                measuring.clear()
                if goes_on:
                    threading.Timer(1.5, os.kill, (broker, signal.SIGCONT)).start()

    outcome = perform(job, freeze)
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    assert len(stopped) == 1
    reasons = recording.run["validity"]["reasons"]
    [told] = [re.search(r"server `broker` was stopped by a signal from ([\d.]+) s to ([\d.]+) s of the run", reason)
              for reason in reasons if "was stopped" in reason]
    assert told and float(told[2]) - float(told[1]) >= 1
    assert status_of(outcome) == 6
    silent = [reason for reason in reasons if "expected deliveries were under way when the run ended" in reason]
    [row] = metrics.application(recording).rows(named=True)
    assert not row["messages_lost"]
    if goes_on:
        assert not silent and row["undelivered_percent"] == 0
    else:
        assert re.match(r"nothing arrived after [\d.]+ s of the run", silent[0]) and row["undelivered_percent"] > 50
