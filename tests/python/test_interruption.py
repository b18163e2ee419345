"""The end before its time: signals, and parents that are gone, in simulations, studies and imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqttlab.engine import Interrupted, Interruption, engine_path
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Long enough for a busy machine; what is waited for takes two seconds on an idle one."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def endless(subscribers: int = 1) -> dict[str, Any]:
    """A simulation of hours; with thousands of subscribers each of its events takes long."""
    return {
        "name": "endless", "backend": "sim", "network": "direct", "recording": {"detail": "messages"},
        "phases": {"duration": "90 h", "cool_down": "5 s"},
        "groups": [
            {"name": "p", "host": "a", "publish": {"topic": "t", "qos": 0, "payload": "10 B", "rate": "100 /s"}},
            {"name": "s", "host": "b", "count": subscribers, "subscribe": [{"filter": "t", "qos": 0}]},
        ],
    }


def job_of(values: dict[str, Any], directory: Path) -> Job:
    return Job(compile_plan(parse_values(values)), directory)


def simulating(values: dict[str, Any], directory: Path) -> subprocess.Popen[str]:
    """An engine that has begun to simulate; its first lines have been read."""
    job = job_of(values, directory)
    engine = subprocess.Popen([engine_path(), *job.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert engine.stdin is not None
    assert engine.stdout is not None
    engine.stdin.write(job.text)
    engine.stdin.close()
    assert json.loads(engine.stdout.readline())["event"] == "phase"
    return engine


def until_it_reports(engine: subprocess.Popen[str]) -> None:
    """Until messages have arrived, by a line of progress, of which there are four a second."""
    assert engine.stdout is not None
    while not json.loads(engine.stdout.readline()).get("delivered"):
        pass


def engines_of(parent: int) -> list[int]:
    """Engines that this process has started and that are not over."""
    found = []
    for children in Path(f"/proc/{parent}/task").glob("*/children"):
        for child in children.read_text(encoding="utf-8").split():
            try:
                program = Path(f"/proc/{child}/exe").readlink().name
            except OSError:
                continue
            if program.startswith("mqttlab-engine"):
                found.append(int(child))
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")")[-1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("number", SIGNALS)
def test_a_simulation_that_is_stopped_keeps_what_it_recorded(number: signal.Signals, tmp_path: Path) -> None:
    engine = simulating(endless(), tmp_path / "run")
    until_it_reports(engine)
    engine.send_signal(number)
    assert engine.stdout is not None
    output = engine.stdout.read()
    assert engine.wait(60) == 3
    done = json.loads(output.splitlines()[-1])
    assert (done["event"], done["verdict"]) == ("done", "incomplete")
    assert number.name in done["reason"]
    recording = Recording.open(tmp_path / "run")
    assert recording.messages.height > 0
    assert recording.run["ending"] == {"kind": "signal", "name": number.name}
    assert recording.run["reason"] == done["reason"], "the engine's words and ours"


def test_a_simulation_whose_events_take_long_ends_when_its_reader_is_gone(tmp_path: Path) -> None:
    engine = simulating(endless(subscribers=3_000), tmp_path / "run")
    assert engine.stdout is not None
    engine.stdout.close()
    assert engine.wait(60) == 3


def test_a_killed_command_line_takes_a_busy_simulation_with_it(tmp_path: Path) -> None:
    script = tmp_path / "scenario.json"
    script.write_text(json.dumps(compile_plan(parse_values(endless(subscribers=3_000)))), encoding="utf-8")
    code = ("import json, sys; from pathlib import Path; from mqttlab.runs import Job, perform; "
            "perform(Job(json.load(open(sys.argv[1])), Path(sys.argv[2])), lambda line: None)")
    parent = subprocess.Popen([sys.executable, "-c", code, str(script), str(tmp_path / "run")])
    wait_for(lambda: (tmp_path / "run" / "plan.json").exists())
    engine, = engines_of(parent.pid)
    parent.kill()
    parent.wait()
    wait_for(lambda: not is_running(engine))


def test_an_import_that_waits_for_more_ends_when_its_reader_is_gone(tmp_path: Path) -> None:
    engine = subprocess.Popen(
        [engine_path(), "import", "log", "--output", str(tmp_path / "run"), "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert engine.stdin is not None
    assert engine.stdout is not None
    engine.stdin.write(b"2018-05-29,23:20:20:163,sent,t,1,10,000000\n")
    engine.stdin.flush()
    engine.stdout.close()
    assert engine.wait(60) == 3
    engine.stdin.close()
    assert not (tmp_path / "run").exists()


STUDY = """
import json, sys
from mqttlab.studies import simulate
from mqttlab.engine import Interrupted
values = json.loads(sys.argv[1])
try:
    simulate({str(number): values for number in range(12)}, lambda recording: 1, jobs=2)
except Interrupted as error:
    print(error)
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_study_that_is_stopped_begins_no_further_simulation(number: signal.Signals) -> None:
    study = subprocess.Popen(
        [sys.executable, "-c", STUDY, json.dumps(endless())], stdout=subprocess.PIPE, text=True)
    wait_for(lambda: len(engines_of(study.pid)) == 2)
    engines = engines_of(study.pid)
    study.send_signal(number)
    try:
        # One simulation alone would take days.
        output, _ = study.communicate(timeout=60)
    finally:
        study.kill()
    assert output.strip() == f"the study was stopped by {number.name} when 0 of 12 simulations were done"
    assert not any(is_running(engine) for engine in engines)


HEARD_ELSEWHERE = """
import signal, threading, time
from mqttlab.engine import Interruption
interruption, over = Interruption(), threading.Lock()
over.acquire()
def look():
    # By then the main thread waits.
    time.sleep(0.5)
    # The kernel hands it to this thread, so that it does not wake the main one.
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    end = time.monotonic() + 60
    while interruption.asked is None and time.monotonic() < end:
        time.sleep(0.01)
    print(interruption.asked)
    over.release()
with interruption.heard():
    threading.Thread(target=look).start()
    over.acquire()
"""


def test_a_signal_is_heard_while_the_main_thread_waits_for_something_else() -> None:
    heard = subprocess.run([sys.executable, "-c", HEARD_ELSEWHERE], capture_output=True, text=True, check=True)
    assert heard.stdout.strip() in ("Signals.SIGTERM", "15"), heard.stderr


def test_a_study_ends_at_its_first_failure() -> None:
    code = STUDY.replace("lambda recording: 1", "print").replace(
        "{str(number): values for number in range(12)}",
        "{'bad': {**values, 'network': 'external', 'broker': {'kind': 'external', 'address': '127.0.0.1'}}, "
        "**{str(number): values for number in range(12)}}")
    study = subprocess.run([sys.executable, "-c", code, json.dumps(endless())], capture_output=True, text=True,
                           check=False, timeout=60)
    # The other twelve would take days.
    assert study.returncode == 1
    assert "Error" in study.stderr


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[str]]:
    """A program that does not end when it is asked to."""
    code = ("import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('ready', flush=True); "
            "time.sleep(600)")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_interruption_kills(stubborn: subprocess.Popen[str]) -> None:
    interruption = Interruption()
    with interruption.telling(stubborn):
        interruption.end(signal.SIGINT)
        assert stubborn.poll() is None
        interruption.end(signal.SIGINT)
        assert stubborn.wait(60) == -signal.SIGKILL


def test_nothing_is_begun_once_the_end_was_asked_for(tmp_path: Path) -> None:
    interruption = Interruption()
    interruption.end(signal.SIGTERM)
    with pytest.raises(Interrupted):
        perform(Job(compile_plan(parse_values(endless())), tmp_path / "run"), lambda line: None, interruption)
    assert not (tmp_path / "run").exists()


def test_what_nohup_ignores_stays_ignored(tmp_path: Path) -> None:
    code = ("import signal, sys, os; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
            "os.execv(sys.argv[1], sys.argv[1:])")
    job = job_of(endless(), tmp_path / "run")
    engine = subprocess.Popen([sys.executable, "-c", code, str(engine_path()), *job.arguments], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    assert engine.stdin is not None
    assert engine.stdout is not None
    engine.stdin.write(job.text)
    engine.stdin.close()
    assert json.loads(engine.stdout.readline())["event"] == "phase"
    os.kill(engine.pid, signal.SIGHUP)
    time.sleep(0.3)
    engine.send_signal(signal.SIGTERM)
    assert engine.stdout is not None
    output = engine.stdout.read()
    assert "SIGTERM" in json.loads(output.splitlines()[-1])["reason"]
