"""Real runs, from the command line to the report: Mosquitto in namespaces that the run makes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from live import early_ms
from mqttlab import metrics
from mqttlab.engine import EngineError, is_being_written, recover
from mqttlab.recording import Recording
from mqttlab.report.text import lateness
from mqttlab.runs import list_runs

SCENARIO = """
name = "short"

[phases]
duration = "{duration}"
cool_down = "5 s"

[[networks]]
between = ["field", "broker"]
model = "satcom"
placement = "egress-at-broker"
link = "shared"

[[groups]]
name = "publishers"
host = "field"
count = 3
publish = {{ topic = "gps/{{client}}", qos = {qos}, payload = "gps", interval = "250 ms" }}

[[groups]]
name = "subscribers"
host = "field"
count = 3
subscribe = [{{ filter = "gps/{{client}}", qos = {qos} }}]
"""


pytestmark = pytest.mark.live


def start(directory: Path, duration: str = "3 s", qos: int = 1, **more: Any) -> subprocess.Popen[str]:
    scenario = directory / "short.toml"
    scenario.write_text(SCENARIO.format(duration=duration, qos=qos), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "mqttlab", "run", str(scenario), "--runs", str(directory / "runs")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def only_run(directory: Path) -> Path:
    runs = [path for path in (directory / "runs").iterdir() if path.is_dir()]
    assert len(runs) == 1
    return runs[0]


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def recorded_frames(directory: Path) -> bool:
    """Whether the run is under way: clients have begun to talk."""
    return any(path.stat().st_size > 4096 for path in (directory / "runs").glob("*/*.spool"))


def programs_of(directory: Path) -> list[str]:
    """Command lines of programs that belong to a run below this directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                here = (entry / "cwd").readlink()
            except OSError:
                continue
            if str(directory) in words or here.is_relative_to(directory):
                found.append(words)
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    directory = tmp_path_factory.mktemp("finished")
    run = start(directory, qos=2)
    output, _ = run.communicate(timeout=120)
    assert run.returncode in (0, 6), output  # a busy machine is late, which makes a run not valid
    return only_run(directory), output


def test_a_run_delivers_everything_and_says_so(finished: tuple[Path, str]) -> None:
    run, output = finished
    row = metrics.application(Recording.open(run)).row(0, named=True)
    assert row["messages_lost"] == 0
    # Three publishers, one message each 250 ms for 3 s.
    assert row["messages_delivered"] == row["messages_sent"] == 36
    assert "report" in output
    assert (run / "report.html").stat().st_size > 100_000


def test_no_delivery_is_earlier_than_the_network_allows(finished: tuple[Path, str]) -> None:
    recording = Recording.open(finished[0])
    row = metrics.application(recording).row(0, named=True)
    # QoS 2 crosses the broker's 550 ms three times: PUBREC, PUBLISH, PUBREL. The emulator may take its own cost off.
    assert row["latency_ms_min"] >= 3 * 550 - early_ms(recording, 3)


def test_frames_are_recorded_with_their_fate_and_agree_with_the_links_counters(finished: tuple[Path, str]) -> None:
    recording = Recording.open(finished[0])
    table = metrics.links(recording)
    counted = {entry["link"]: entry["frames"] for entry in recording.run["links"]}
    assert dict(zip(table["link"], table["frames"], strict=True)) == counted
    assert (recording.packets["delivered_ns"] >= recording.packets["entered_ns"]).drop_nulls().all()


def test_the_tcp_of_the_plan_was_in_force(finished: tuple[Path, str]) -> None:
    tcp = Recording.open(finished[0]).run["details"]["tcp"]
    assert "cubic" in tcp["field"]["route"]


def test_a_run_says_what_the_machine_did_to_it(finished: tuple[Path, str]) -> None:
    recording = Recording.open(finished[0])
    validity = recording.run["validity"]
    # A timer every millisecond, for 3 s and more; where the machine is busy it misses some.
    assert validity["control_timer"]["count"] > 100
    assert 0 <= validity["machine"]["steal_percent"] <= 100
    assert validity["machine"]["emulator_cpu_percent"] > 0
    assert validity["machine"]["emulator_faults_minor"] > 0
    samples = recording.resources
    machine = samples.filter(samples["process"] == "machine")
    assert machine["steal_s"].null_count() == 0
    assert samples.filter(samples["process"] == "emulator")["steal_s"].null_count() > 0
    labels = dict(lateness(recording))
    assert "control timer lateness" in labels
    assert "steal (processor time given to other machines)" in labels


def test_a_finished_run_is_listed_and_leaves_no_program(finished: tuple[Path, str]) -> None:
    run, _ = finished
    assert [(summary.name, summary.status) for summary in list_runs(run.parent)] == [("short", "complete")]
    assert programs_of(run.parent.parent) == []
    assert list(run.glob("*.spool")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_stopped_keeps_what_it_recorded(number: signal.Signals, tmp_path: Path) -> None:
    run = start(tmp_path, "60 s")
    wait_for(lambda: recorded_frames(tmp_path))
    run.send_signal(number)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 3, output
    assert "incomplete" in output
    # Who sends a signal to a program does not wait for its report; docs/explanation/live.md says two seconds.
    assert ("makes its tables" in output) == (number != signal.SIGINT)
    recording = Recording.open(only_run(tmp_path))
    assert not recording.complete
    assert recording.packets.height > 0


def test_a_killed_command_line_takes_everything_with_it(tmp_path: Path) -> None:
    run = start(tmp_path, "60 s")
    wait_for(lambda: recorded_frames(tmp_path))
    run.kill()
    run.communicate(timeout=60)
    wait_for(lambda: programs_of(tmp_path) == [])
    recording = Recording.open(only_run(tmp_path))
    assert not recording.complete
    assert recording.packets.height > 0


def test_a_killed_engine_leaves_a_recording_that_can_be_read(tmp_path: Path) -> None:
    run = start(tmp_path, "60 s")
    wait_for(lambda: recorded_frames(tmp_path))
    # A child is its thread's.
    threads = Path(f"/proc/{run.pid}/task").glob("*/children")
    children = [child for thread in threads for child in thread.read_text(encoding="utf-8").split()]
    os.kill(int(children[0]), signal.SIGKILL)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 3, output
    assert "SIGKILL" in output or "incomplete" in output
    recording = Recording.open(only_run(tmp_path))
    assert not recording.complete
    assert recording.packets.height > 0
    wait_for(lambda: programs_of(tmp_path) == [])


def test_what_is_recovered_is_not_recovered_again(tmp_path: Path) -> None:
    run = start(tmp_path, "60 s")
    wait_for(lambda: recorded_frames(tmp_path))
    run.kill()
    run.communicate(timeout=60)
    wait_for(lambda: programs_of(tmp_path) == [] and not is_being_written(only_run(tmp_path)))
    directory = Recording.open(only_run(tmp_path)).directory
    with pytest.raises(EngineError, match="finished already"):
        recover(directory)
