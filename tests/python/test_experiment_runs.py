"""Experiments that run: killed at any point, gone on with, judged; simulated unless a test says otherwise."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

import processes
from mqttlab.catalog import Catalog
from mqttlab.cli import experiments
from mqttlab.cli.experiments import _say_detectable
from mqttlab.console import Console
from mqttlab.experiments import ExperimentDirectory
from mqttlab.experiments.journal import read
from mqttlab.experiments.responses import Response, Value
from mqttlab.recording import Recording
from mqttlab.runs.machine import is_held, live_alone
from wrong_experiments import GOOD, SCENARIO

COLUMNS = ["run", "experiment", "loss", "qos", "delay", "block", "attempt", "state",
           "latency_ms_p99", "messages_lost_percent"]
# A 99th percentile needs 100 deliveries.
OFTEN = ('interval = "100 ms"', 'interval = "30 ms"')
SLOW = ('duration = "2 s"', 'duration = "40 s"')


def write(directory: Path, experiment: str = GOOD, *changes: tuple[str, str]) -> Path:
    scenario = SCENARIO if any(OFTEN[0] in old for old, _ in changes) else SCENARIO.replace(*OFTEN)
    for old, new in changes:
        assert old in scenario
        scenario = scenario.replace(old, new, 1)
    (directory / "field.toml").write_text(scenario, encoding="utf-8")
    (directory / "loss.toml").write_text(experiment, encoding="utf-8")
    return directory / "loss.toml"


def command(directory: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "mqttlab", "experiment", *words]


def run(directory: Path, *words: str, status: int = 0) -> str:
    result = subprocess.run(command(directory, *words), cwd=directory, capture_output=True, text=True, timeout=280,
                            check=False)
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def began_and_ended(journal: Path) -> tuple[list[str], list[str]]:
    events = read(journal)
    return ([event["run"] for event in events if event["event"] == "began"],
            [event["run"] for event in events if event["event"] == "ended"])


POINTS, REPETITIONS = 3 * 3 * 2, 3


def three_factors() -> str:
    return GOOD.replace("repetitions = 5", f"repetitions = {REPETITIONS}").replace(
        "[[thresholds]]", '[[factors]]\nname = "delay"\nplace = "networks[0].up.delay"\n'
        'levels = ["1 ms", "50 ms"]\n\n[[thresholds]]').replace("250 ms", "20 s")


def engines_of(directory: Path) -> list[int]:
    """Engines that write below a directory."""
    return processes.engines(lambda words: any(str(directory) in word for word in words))


def queues() -> list[int]:
    """The queue's process of these tests, if it is there."""
    return processes.queues(os.environ["MQTTLAB_QUEUE"])


def kill(process: int) -> bool:
    """Kill a process; whether it was still there."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def runs_going(directory: Path) -> set[bytes]:
    """Identifiers of runs whose engine, or the process above their broker, is there."""
    found = set()
    for process in engines_of(directory):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found |= {words[words.index(b"--identifier") + 1]} if b"--identifier" in words else set()
    return found


@pytest.mark.timeout(1200)
def test_killed_again_and_again_no_run_is_lost_and_none_is_done_twice(tmp_path: Path) -> None:
    write(tmp_path, three_factors())
    journal = tmp_path / "runs" / "loss" / "journal.jsonl"
    for after in (3, 15, 16, 30):
        with subprocess.Popen(command(tmp_path, "loss.toml"), cwd=tmp_path, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as going:
            deadline = time.monotonic() + 600
            while len(began_and_ended(journal)[1] if journal.is_file() else []) < after:
                assert time.monotonic() < deadline and going.poll() is None
                time.sleep(0.01)
            going.kill()
    # Engines are killed, too, and the queue's process with all that it runs: their runs are done again.
    with subprocess.Popen(command(tmp_path, "loss.toml"), cwd=tmp_path, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as going:
        killed, queue = 0, 0
        while going.poll() is None and (killed < 2 or not queue):
            for process in engines_of(tmp_path):
                if killed < 2:
                    killed += kill(process)
                # One that leaves, or that finds another there, ends at once.
                elif not queue and len(found := queues()) == 1 and kill(found[0]):
                    [queue] = found
            time.sleep(0.005)
        assert killed >= 2 and queue
        assert going.wait(timeout=900) == 0
        assert queue not in queues()
    experiment = ExperimentDirectory.open(tmp_path / "runs" / "loss")
    runs = experiment.runs()
    done = [run for run in runs if run.state == "done"]
    tasks = [run.task for run in done]
    assert len(tasks) == len(set(tasks)) == POINTS * REPETITIONS + POINTS * REPETITIONS // 10
    began, ended = began_and_ended(journal)
    assert sorted(began) == sorted(ended), "every run that was begun has ended once"
    assert all(run.interrupted or run.state in ("done", "incomplete", "failed") for run in runs)
    for one in done:
        assert Recording.open(experiment.path / one.directory).run_id == one.run
    assert experiment.pending() == []
    # What was killed in between is in the catalog all the same: it equals one that is built again.
    grown, again = tmp_path / "runs" / "catalog.db", tmp_path / "again.db"
    with Catalog.open(str(again)) as built:
        built.scan([tmp_path / "runs"])
        rebuilt = built.runs(columns=COLUMNS, sort=["run"])
    with Catalog.open(str(grown), read_only=True) as opened:
        assert opened.runs(columns=COLUMNS, sort=["run"]).equals(rebuilt)
    assert rebuilt.height >= len(tasks)
    table = experiment.table()
    good = table.filter(pl.col("state") == "done", pl.col("metric") == "latency_ms_p99", pl.col("kind") == "run")
    assert good.height == POINTS * REPETITIONS
    assert good.group_by("delay", "loss", "qos").len()["len"].unique().to_list() == [REPETITIONS]
    # In a block all points have the same dice; a longer path takes longer, whatever was killed.
    means = good.group_by("delay__value").agg(pl.col("value").mean()).sort("delay__value")["value"]
    assert means.is_sorted()


def test_the_same_command_goes_on_and_then_does_nothing(tmp_path: Path) -> None:
    text = GOOD.replace("repetitions = 5", "repetitions = 1").replace("250 ms", "20 s")
    write(tmp_path, text, SLOW)
    assert "undecided" in run(tmp_path, "loss.toml", status=5)
    journal = (tmp_path / "runs" / "loss" / "journal.jsonl").read_text(encoding="utf-8")
    said = run(tmp_path, "loss.toml", "--junit", "j.xml", status=5)
    assert "going on: 9 of 9 runs are done" in said and "junit      j.xml" in said
    assert (tmp_path / "runs" / "loss" / "journal.jsonl").read_text(encoding="utf-8") == journal
    assert (tmp_path / "j.xml").read_text(encoding="utf-8").count("<skipped") == 9
    # More repetitions make nothing stale.
    write(tmp_path, text.replace("repetitions = 1", "repetitions = 2"), SLOW)
    run(tmp_path, "loss.toml", status=0)
    assert len(ExperimentDirectory.open(tmp_path / "runs" / "loss").runs()) == 18 + 1
    # Another scenario makes all of it stale.
    write(tmp_path, text, ('duration = "2 s"', 'duration = "3 s"'))
    assert "19 of 19 runs are stale" in run(tmp_path, "loss.toml", status=2)
    run(tmp_path, "loss.toml", "--redo", status=5)
    states = [run.state for run in ExperimentDirectory.open(tmp_path / "runs" / "loss").runs()]
    assert states.count("stale") == 19 and states.count("done") == 9


def test_an_experiment_without_factors_says_what_was_set(tmp_path: Path) -> None:
    """Once its runs were "the scenario as it is", whatever ``--set`` had changed."""
    (tmp_path / "field.toml").write_text(SCENARIO, encoding="utf-8")
    said = run(tmp_path, "field.toml", "--set", "phases.duration=1 s", "--set", "repetitions=2", status=0)
    assert 'set at every point: phases.duration = "1 s"\n' in said
    assert "as it is" not in said and "the only point, block 1" in said


@pytest.mark.parametrize(("bound", "status"), [("20 s", 0), ("1 ms", 4)])
def test_exit_statuses_are_those_of_thresholds(tmp_path: Path, bound: str, status: int) -> None:
    text = GOOD.replace("250 ms", bound)
    write(tmp_path, text.replace('levels = ["0 %", "1 %", "5 %"]', 'levels = ["0 %"]').replace("[0, 1, 2]", "[0]"))
    assert ("broken" in run(tmp_path, "loss.toml", status=status)) == (status == 4)


def test_ctrl_c_ends_it_and_the_rest_is_pending(tmp_path: Path) -> None:
    # Whole, these runs would take 30 GB.
    write(tmp_path, GOOD.replace("250 ms", "20 s"), ('duration = "2 s"', 'duration = "20000 s"'))
    journal = tmp_path / "runs" / "loss" / "journal.jsonl"
    with subprocess.Popen(command(tmp_path, "loss.toml", "--ignore-disk"), cwd=tmp_path, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as going:
        deadline = time.monotonic() + 60
        while not engines_of(tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        going.send_signal(signal.SIGINT)
        said = going.communicate(timeout=60)[0]
    assert going.returncode == 3, said
    assert "the same command goes on" in said and engines_of(tmp_path) == []
    began, ended = began_and_ended(journal)
    assert sorted(began) == sorted(ended) and began
    assert all(event["interrupted"] for event in read(journal) if event["event"] == "ended")


def test_two_commands_do_not_run_one_experiment_at_once(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace("250 ms", "20 s"), ('duration = "2 s"', 'duration = "20000 s"'))
    with subprocess.Popen(command(tmp_path, "loss.toml", "--ignore-disk"), cwd=tmp_path, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as going:
        while not engines_of(tmp_path):
            assert going.poll() is None
            time.sleep(0.02)
        assert "is being run by another mqttlab" in run(tmp_path, "loss.toml", "--ignore-disk", status=2)
        going.kill()
    while engines_of(tmp_path):
        time.sleep(0.05)


def test_what_always_fails_is_reported_and_never_dropped(tmp_path: Path) -> None:
    # A broker that dies makes the run incomplete each time; a simulation cannot, so the engine is a program that fails.
    engine = tmp_path / "mqttlab-engine"
    engine.write_text("#!/bin/sh\necho no such network >&2\nexit 1\n", encoding="utf-8")
    engine.chmod(0o755)
    write(tmp_path, GOOD.replace("repetitions = 5", "repetitions = 1\nattempts = 2")
          .replace('levels = ["0 %", "1 %", "5 %"]', 'levels = ["0 %"]').replace("[0, 1, 2]", "[0]"))
    code = ("import sys\nfrom mqttlab.__main__ import main\nimport mqttlab.runs.perform\n"
            f"sys.modules['mqttlab.runs.perform'].engine_path = lambda: {str(engine)!r}\n"
            "sys.argv = ['mqttlab', 'experiment', 'loss.toml', '--junit', 'j.xml', '--queue', 'none']\nmain()\n")
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                            check=False)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "failed 2 times, last: the engine ended with 1: no such network" in result.stdout
    assert '<error message="failed: the engine ended with 1: no such network"' in (tmp_path / "j.xml").read_text()
    table = ExperimentDirectory.open(tmp_path / "runs" / "loss").table()
    assert table.select("state", "metric").rows() == [("failed", None)] * 2


def test_a_dry_run_starts_nothing_and_says_what_would_run(tmp_path: Path) -> None:
    write(tmp_path)
    said = run(tmp_path, "loss.toml", "--dry-run")
    assert "design full: 9 points" in said and "runs: 49" in said and "--pilot 3" in said
    assert not (tmp_path / "runs").exists()
    said = run(tmp_path, "loss.toml", "--dry-run", "--pilot", "3")
    assert "smallest difference between two points that 5 runs each show" in said and "latency_ms_p99: " in said
    runs = ExperimentDirectory.open(tmp_path / "runs" / "loss").runs()
    assert {run.kind for run in runs} == {"pilot"} and len({run.seed for run in runs}) == 3
    # Pilot runs are no results.
    assert len(ExperimentDirectory.open(tmp_path / "runs" / "loss").pending()) == 49


@pytest.mark.parametrize(("asked", "said"), [
    # It counted the 15 runs of the design as pilots, and pilots as runs of the design.
    (3, "going on: 1 of 3 runs are done"), (1, "going on: 1 of 1 runs are done"),
    (None, "going on: 15 of 49 runs are done")])
def test_pilots_and_runs_of_the_design_are_counted_apart(
        asked: int | None, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(experiments, "most", lambda experiment: 49)
    kinds = [("run", 14), ("control", 1), ("pilot", 1)]
    done = [SimpleNamespace(kind=kind, state="done", block=block, seconds=1.0)
            for kind, count in kinds for block in range(count)]
    done += [SimpleNamespace(kind="pilot", state="done", block=7, seconds=1.0),
             SimpleNamespace(kind="pilot", state="failed", block=1, seconds=1.0)] if asked else []
    directory = SimpleNamespace(runs=lambda: done, experiment=None)
    pilots = None if asked is None else [SimpleNamespace(block=block) for block in range(asked)]
    screen = experiments._Screen(Console(width=80), cast(Any, directory), cast(Any, pilots), 1, lambda record: None)
    with screen.shown():
        pass
    assert capsys.readouterr().out.strip() == said


def test_runs_that_do_not_differ_show_no_smallest_difference_of_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """It said: smallest difference, latency_ms_p50: 0 ms (0 % of 301.4)."""
    response = Response("latency_ms_p50")
    experiment = SimpleNamespace(file=SimpleNamespace(repetitions=5), responses=[response])

    def said(*values: float) -> str:
        done = [SimpleNamespace(point_key="a", responses=[
            Value(metric="latency_ms_p50", scope="run", scope_name=None, value=value, unit="ms")]) for value in values]
        _say_detectable(Console(width=120), cast(Any, experiment), cast(Any, done))
        return capsys.readouterr().out

    assert "latency_ms_p50: no spread; 301.4 ms in all of them" in said(301.4, 301.4, 301.4 + 1e-12)
    assert "latency_ms_p50: 2" in said(301.4, 302.4, 300.4)
    assert "no spread; 0 ms" in said(0.0, 0.0)


def test_a_fraction_says_what_is_confounded(tmp_path: Path) -> None:
    varied = (("loss", "networks[0].up.loss", '["0 %", "5 %"]'), ("delay", "networks[0].up.delay", '["1 ms", "50 ms"]'),
              ("qos", "groups[map].publish.qos", "[0, 1]"), ("count", "groups[map].count", "[1, 9]"))
    factors = "".join(f'[[factors]]\nname = "{name}"\nplace = "{place}"\nlevels = {levels}\n'
                      for name, place, levels in varied)
    head = 'name = "loss"\nscenario = "field.toml"\ndesign = { kind = "fractional", resolution = 4 }\n'
    write(tmp_path, head + factors)
    said = run(tmp_path, "loss.toml", "--dry-run")
    assert "8 points, resolution IV" in said and "confounded: loss × delay = qos × count" in said


def test_a_search_finds_its_interval(tmp_path: Path) -> None:
    # Messages of 200 B fill 1 Mbit/s when two clients send some 250 a second each.
    text = ('name = "loss"\nscenario = "field.toml"\ndesign = "search"\n[[factors]]\nname = "rate"\n'
            'place = "groups[map].publish.rate"\nrange = { from = "10 /s", to = "1000 /s", scale = "logarithmic" }\n'
            '[search]\nfactor = "rate"\nholds = "2 of 2"\ntolerance = "20 %"\n'
            'criterion = { metric = "latency_ms_p99", below = "1 s" }\n')
    write(tmp_path, text, (', interval = "100 ms"', ', rate = "1 /s"'), ('duration = "2 s"', 'duration = "10 s"'))
    said = run(tmp_path, "loss.toml")
    line = next(line for line in said.splitlines() if line.startswith("rate: the criterion"))
    edges = line.replace("rate: the criterion holds at ", "").split(" not at ")
    low, high = (float(words.split()[0]) for words in edges)
    frame_bits = 8 * (200 + 2 + 2 + 5 + 52)
    assert 0.7 < low * 2 * frame_bits / 1e6 <= high * 2 * frame_bits / 1e6 < 1.5, line
    assert low < high <= low / 0.8


def test_recordings_that_are_not_to_be_kept_are_deleted(tmp_path: Path) -> None:
    text = GOOD.replace("repetitions = 5", "repetitions = 1\nkeep_recordings = false").replace("250 ms", "20 s")
    write(tmp_path, text)
    run(tmp_path, "loss.toml", status=5)
    experiment = ExperimentDirectory.open(tmp_path / "runs" / "loss")
    assert list((experiment.path / "runs").iterdir()) == []
    assert experiment.table().filter(pl.col("metric") == "latency_ms_p99").height == 9


def test_the_machine_is_held_by_one_at_a_time_and_by_whoever_inherits_it() -> None:
    with live_alone() as lock:
        assert lock is not None and is_held()
        heir = subprocess.Popen(["sleep", "60"], pass_fds=[lock])
    assert is_held(), "as long as the engine lives"
    waited: Iterator[bool] = iter([False, False, True])
    with live_alone(lambda: next(waited)) as refused:
        assert refused is None
    heir.kill()
    heir.wait()
    with live_alone() as lock:
        assert lock is not None


@pytest.mark.live
def test_a_live_run_waits_for_another_one_and_says_for_which(tmp_path: Path) -> None:
    scenario = tmp_path / "field.toml"
    scenario.write_text(SCENARIO.replace('backend = "sim"', 'backend = "live"').replace(
        'duration = "2 s"', 'duration = "0.2 s"'), encoding="utf-8")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    holding = "import sys, time\nfrom mqttlab.runs.machine import live_alone\n" \
        "with live_alone(what='runs/theirs'):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    with subprocess.Popen([sys.executable, "-c", holding], env=environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdin is not None and other.stdout.readline() == "held\n"
        with subprocess.Popen([sys.executable, "-m", "mqttlab", "run", "field.toml", "--no-html"], cwd=tmp_path,
                              env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as going:
            assert going.stderr is not None
            line = next(line for line in going.stderr if "waiting" in line)
            assert "waiting for the live run in runs/theirs to end" in line
            assert not list((tmp_path / "runs").glob("*/plan.json")), "nothing has begun"
            other.stdin.close()
            assert going.wait(timeout=120) in (0, 6), going.stderr.read()
    assert list((tmp_path / "runs").glob("*/run.json"))


@pytest.mark.live
def test_live_runs_of_two_experiments_never_overlap_whoever_is_killed(tmp_path: Path) -> None:
    text = GOOD.replace("repetitions = 5", 'repetitions = 1\nbackend = "live"').replace("250 ms", "20 s").replace(
        'levels = ["0 %", "1 %", "5 %"]', 'levels = ["0 %"]').replace("[0, 1, 2]", "[0, 1]")
    places = [tmp_path / name for name in "ab"]
    for place in places:
        place.mkdir()
        write(place, text, ('duration = "2 s"', 'duration = "1 s"\ncool_down = "1 s"'))
    going = [subprocess.Popen(command(place, "loss.toml"), cwd=place, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) for place in places]
    deadline, killed, seen = time.monotonic() + 120, False, 0
    while any(process.poll() is None for process in going):
        assert time.monotonic() < deadline
        engines = runs_going(tmp_path)
        assert len(engines) <= 1, "two live runs at once"
        seen = max(seen, len(engines))
        if engines and not killed and going[0].poll() is None and engines_of(places[0]):
            going[0].kill()
            killed = True
            going[0].wait()
            going[0] = subprocess.Popen(command(places[0], "loss.toml"), cwd=places[0], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        time.sleep(0.005)
    assert killed and seen == 1
    spans = []
    for place in places:
        experiment = ExperimentDirectory.open(place / "runs" / "loss")
        done = [run for run in experiment.runs() if run.state in ("done", "invalid")]
        assert len({run.task for run in done}) == 2
        for one in done:
            plan, end = (experiment.path / one.directory / name for name in ("plan.json", "run.json"))
            spans.append((plan.stat().st_mtime, end.stat().st_mtime))
            assert json.loads(end.read_text(encoding="utf-8"))["status"] == "complete"
    spans.sort()
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


THRESHOLD = '\n[[thresholds]]\nmetric = "{}"\nbelow = "{}"\n{}'


@pytest.mark.parametrize(("threshold", "status", "word"), [
    (THRESHOLD.format("latency_ms_p99", "20 s", ""), 0, "held"),
    (THRESHOLD.format("latency_ms_p99", "1 ms", ""), 4, "broken"),
    (THRESHOLD.format("latency_ms_p99", "61.5 ms", 'name = "1"\n'), 2, "leave it out"),
])
def test_run_judges_a_scenarios_thresholds_over_its_repetitions(
    tmp_path: Path, threshold: str, status: int, word: str
) -> None:
    scenario = SCENARIO.replace(*OFTEN)
    (tmp_path / "field.toml").write_text("repetitions = 3\n" + scenario + threshold, encoding="utf-8")
    words = [sys.executable, "-m", "mqttlab", "run", "field.toml", "--no-html", "--junit", "j.xml"]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == status, result.stdout + result.stderr
    assert word in result.stdout + result.stderr
    assert ("junit      j.xml" in result.stdout) == (status != 2)
    assert (tmp_path / "j.xml").exists() == (status != 2) and (tmp_path / "runs").exists() == (status != 2)


def test_a_run_that_a_threshold_ends_is_broken_and_what_it_recorded_is_kept(tmp_path: Path) -> None:
    # 100 s of a link that carries half of what is offered: waiting grows beyond any bound.
    scenario = SCENARIO.replace('duration = "2 s"', 'duration = "200000 s"').replace('"1 Mbit/s"', '"10 kbit/s"')
    (tmp_path / "field.toml").write_text(
        scenario + THRESHOLD.format("latency_ms_p99", "1 s", "abort = true\n"), encoding="utf-8")
    words = [sys.executable, "-m", "mqttlab", "run", "field.toml", "--no-html", "--json"]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 4, result.stdout + result.stderr
    said = json.loads(result.stdout)
    assert said["thresholds"][0]["verdict"] == "broken" and said["exit_status"] == 4
    assert "a run was ended" in said["thresholds"][0]["words"]
    [place] = (tmp_path / "runs").glob("field-*")
    assert Recording.open(place).messages.height > 0


def test_a_baseline_may_be_an_experiment_of_before_and_one_that_is_not_there_starts_nothing(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace('levels = ["0 %", "1 %", "5 %"]', 'levels = ["0 %"]').replace(
        "[0, 1, 2]", "[0, 1]").replace("250 ms", "20 s"))
    run(tmp_path, "loss.toml")
    assert (tmp_path / "runs" / "catalog.db").is_file()
    threshold = '\n[[thresholds]]\nmetric = "latency_ms_p50"\nnot_worse_than = { baseline = "BASELINE", by = "5 %" }\n'
    text = "repetitions = 5\n" + SCENARIO + threshold
    for name, baseline, delay, status in (("same", "runs/loss#0", "20 ms", 0), ("slower", "runs/loss#0", "40 ms", 4),
                                          ("vague", "runs/loss", "20 ms", 2), ("gone", "release-1", "20 ms", 2)):
        written = text.replace('"field"\nbackend', f'"{name}"\nbackend').replace("BASELINE", baseline)
        (tmp_path / f"{name}.toml").write_text(written.replace("20 ms", delay), encoding="utf-8")
        said = run(tmp_path, f"{name}.toml", status=status)
        assert (tmp_path / "runs" / name).exists() == (status != 2), said
