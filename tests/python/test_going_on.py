"""Recordings of runs that are still going on: nobody else writes them, and looking at them changes nothing."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mqttlab.cli import main
from mqttlab.engine import EngineError, engine_path, is_being_written, recover, snapshot
from mqttlab.recording import Recording
from mqttlab.runs import Job, list_runs, taken_directory
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

BACKENDS = [pytest.param("live", marks=pytest.mark.live), "sim"]
PUBLISH = {"topic": "t/{client}", "qos": 1, "payload": "100 B", "interval": "20 ms"}
SCENARIO: dict[str, Any] = {
    "name": "long", "seed": 1, "phases": {"duration": "100000 s", "cool_down": "1 s"},
    "hosts": {"field": {}}, "networks": [{"between": ["field", "broker"], "up": {"delay": "2 ms"},
                                          "down": {"delay": "2 ms"}}],
    "groups": [
        {"name": "publishers", "host": "field", "count": 5, "publish": PUBLISH},
        {"name": "subscribers", "host": "field", "count": 2, "subscribe": [{"filter": "t/#", "qos": 1}]},
    ],
}


def start(directory: Path, **changes: Any) -> subprocess.Popen[bytes]:
    job = Job(compile_plan(parse_values({**SCENARIO, **changes}, "long")), directory)
    engine = subprocess.Popen([engine_path(), *job.arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    assert engine.stdin is not None
    engine.stdin.write(job.text.encode())
    engine.stdin.close()
    return engine


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def has_deliveries(directory: Path) -> bool:
    spool = directory / "received.spool"
    return spool.is_file() and spool.stat().st_size > 10_000


@dataclass(frozen=True)
class GoingOn:
    """A run that has not ended; a simulation is halted, so that it does not outgrow the machine meanwhile."""

    directory: Path
    engine: subprocess.Popen[bytes]

    def writes_on(self) -> None:
        """Wait until it has written more."""
        spool = self.directory / "received.spool"
        size = spool.stat().st_size
        self.engine.send_signal(signal.SIGCONT)
        wait_for(lambda: spool.stat().st_size > size)


@pytest.fixture(params=BACKENDS)
def run_that_goes_on(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GoingOn]:
    """A run that goes on until the test ends."""
    directory = tmp_path / "runs" / "long"
    engine = start(directory, backend=request.param)
    try:
        wait_for(lambda: has_deliveries(directory))
        if request.param == "sim":
            engine.send_signal(signal.SIGSTOP)
        yield GoingOn(directory, engine)
    finally:
        engine.kill()
        engine.wait()


@pytest.fixture
def going_on(run_that_goes_on: GoingOn) -> Path:
    """Its directory."""
    return run_that_goes_on.directory


def test_a_run_that_goes_on_is_not_recovered_and_loses_nothing(
    going_on: Path, run_that_goes_on: GoingOn
) -> None:
    files = {path.name for path in going_on.iterdir()}
    with pytest.raises(EngineError, match="is being written by a run in progress"):
        recover(going_on)
    assert {path.name for path in going_on.iterdir()} >= files
    assert is_being_written(going_on)
    run_that_goes_on.writes_on()


def test_a_run_that_goes_on_is_opened_as_a_snapshot_that_says_so(going_on: Path) -> None:
    before = {path.name for path in going_on.iterdir()}
    recording = Recording.open(going_on)
    assert recording.going_on is not None
    assert re.match(r"the run is still in progress; this is what it had written at 2\d{3}-", recording.going_on)
    assert not recording.complete
    assert recording.source == going_on
    assert recording.messages["received_ns"].count() > 100
    assert recording.run_id == json.loads((going_on / "layout.json").read_text(encoding="utf-8"))["run_id"]
    later = Recording.open(going_on)
    assert later.messages.height >= recording.messages.height
    assert {path.name for path in going_on.iterdir()} == before
    look = recording.directory
    assert look.is_dir()
    del recording
    assert not look.exists()
    assert [summary.status for summary in list_runs(going_on.parent)] == ["running"]


def test_every_command_says_that_a_run_is_still_going_on(
    going_on: Path, run_that_goes_on: GoingOn, tmp_path: Path
) -> None:
    def said(*words: str | Path) -> str:
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.output

    # A live run has real-time priority, before the commands. Halted it goes on as much, for its lock is held.
    run_that_goes_on.engine.send_signal(signal.SIGSTOP)
    assert is_being_written(going_on)
    words = "the run is still in progress"
    assert words in said("report", going_on, "--html", tmp_path / "report.html")
    assert words in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert words in said("compare", going_on, going_on)
    assert words in said("export", going_on, "--csv", tmp_path / "csv")
    assert "running" in said("list", "--runs", going_on.parent)
    assert not list(going_on.glob("*.parquet"))


def test_a_snapshot_is_refused_where_there_is_a_recording(going_on: Path, tmp_path: Path) -> None:
    snapshot(going_on, tmp_path / "look")
    with pytest.raises(EngineError, match="already holds a recording"):
        snapshot(going_on, tmp_path / "look")


def test_a_second_engine_does_not_write_into_a_run_that_goes_on(
    going_on: Path, run_that_goes_on: GoingOn
) -> None:
    second = start(going_on, backend="sim")
    assert second.wait(60) == 1
    run_that_goes_on.writes_on()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_keeps_its_identifier_when_it_is_recovered(backend: str, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    engine = start(directory, backend=backend)
    wait_for(lambda: has_deliveries(directory))
    engine.kill()
    engine.wait()
    begun = json.loads((directory / "layout.json").read_text(encoding="utf-8"))["run_id"]
    assert re.fullmatch("[0-9A-HJKMNP-TV-Z]{26}", begun)
    recording = Recording.open(directory)
    assert recording.going_on is None
    assert recording.run["status"] == "incomplete"
    assert recording.run["run_id"] == recording.run_id == begun


def test_a_simulation_says_when_it_was_made(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    before = datetime.now(UTC)
    assert start(directory, backend="sim", phases={"duration": "1 s"}).wait(60) == 0
    # The recording itself says it; where it did not, the list would take the time of its files.
    started = Recording.open(directory).run["started_at"]
    assert before <= datetime.fromisoformat(started) <= datetime.now(UTC)
    assert [summary.started for summary in list_runs(tmp_path)] == [started]


def test_directories_are_taken_by_making_them(tmp_path: Path) -> None:
    taken: list[Path] = []

    def take() -> None:
        with taken_directory("same", 0, 1, tmp_path / "runs") as (path, promise):
            taken.append(path)
            promise.of(None)

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 16
    assert all(path.is_dir() for path in taken)


def test_several_runs_that_start_at_once_have_directories_of_their_own(tmp_path: Path) -> None:
    scenario = tmp_path / "short.toml"
    values = {**SCENARIO, "backend": "sim", "phases": {"duration": "1 s"}}
    scenario.write_text(_toml(values), encoding="utf-8")
    command = [sys.executable, "-m", "mqttlab", "run", str(scenario), "--no-html", "--runs", str(tmp_path / "runs")]
    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(run.communicate(timeout=120)[1], run.returncode)[1] for run in runs] == [0, 0, 0, 0]
    made = list_runs(tmp_path / "runs")
    assert [summary.status for summary in made] == ["complete"] * 4
    assert len({Recording.open(summary.directory).run_id for summary in made}) == 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_that_fails_before_it_starts_leaves_nothing(backend: str, tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "fails"
    plan = compile_plan(parse_values({**SCENARIO, "backend": backend}, "long"))
    if backend == "live":
        plan["servers"][0]["process"]["command"] = ["/bin/false"]
    else:
        # Found when the recording has been begun.
        plan["hosts"][0]["tcp"]["congestion_control"] = "bbr"
    job = Job(plan, directory)
    done = subprocess.run([engine_path(), *job.arguments], input=job.text, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert not directory.exists() or not list(directory.iterdir())


def test_a_killed_run_is_recovered_by_one_of_many_who_open_it_at_once(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    engine = start(directory, backend="sim")
    wait_for(lambda: has_deliveries(directory))
    engine.send_signal(signal.SIGKILL)
    engine.wait()
    command = [sys.executable, "-c",
               "import sys; from pathlib import Path; from mqttlab.recording import Recording; "
               "print(Recording.open(Path(sys.argv[1])).messages.height)", str(directory)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    heights = []
    for reader in readers:
        output, words = reader.communicate(timeout=120)
        assert reader.returncode == 0, words
        heights.append(int(output))
    assert len(set(heights)) == 1
    assert heights[0] > 100


def _toml(values: dict[str, Any]) -> str:
    """Enough TOML for these scenarios: inline tables everywhere."""
    def written(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key} = {written(inner)}" for key, inner in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(written, value)) + "]"
        return json.dumps(value)
    return "\n".join(f"{key} = {written(value)}" for key, value in values.items()) + "\n"


def test_a_killed_simulation_keeps_its_packets_and_they_are_those_of_the_whole_run(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    engine = start(killed, backend="sim")
    wait_for(lambda: (killed / "packets.groups.spool").is_file()
             and (killed / "packets.groups.spool").stat().st_size > 10_000)
    engine.kill()
    engine.wait()
    recording = Recording.open(killed)
    assert recording.run["status"] == "incomplete"
    assert recording.packets.height >= 16_384
    assert recording.control_packets.height > 0
    assert not list(killed.glob("*.spool")) + list(killed.glob("*.tmp"))
    # The whole run is longer than what was recorded of the killed one; either table may have got further.
    latest = max(recording.packets["entered_ns"].to_list()[-1], recording.control_packets["complete_ns"].to_list()[-1])
    seconds = int(latest / 1e9) + 2
    whole = tmp_path / "whole"
    assert start(whole, backend="sim", phases={"duration": f"{seconds} s"}).wait(120) == 0
    complete = Recording.open(whole)
    assert complete.packets.head(recording.packets.height).equals(recording.packets)
    assert complete.control_packets.head(recording.control_packets.height).equals(recording.control_packets)


def test_a_look_at_a_simulation_that_goes_on_has_its_packets(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    engine = start(directory, backend="sim")
    try:
        wait_for(lambda: (directory / "packets.groups.spool").is_file()
                 and (directory / "packets.groups.spool").stat().st_size > 10_000)
        engine.send_signal(signal.SIGSTOP)
        assert Recording.open(directory).packets.height >= 16_384
    finally:
        engine.kill()
        engine.wait()
