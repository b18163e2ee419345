"""Jobs and who performs them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from mqttlab.engine import EngineError, Interrupted
from mqttlab.recording import Recording
from mqttlab.runs import Executor, Job, LocalPool, Outcome
from mqttlab.runs.job import ulid
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values


def job(directory: Path, duration: str = "1 s") -> Job:
    values = {
        "name": directory.name, "backend": "sim", "network": "direct",
        "phases": {"duration": duration, "cool_down": "1 s"},
        "groups": [
            {"name": "p", "host": "a", "publish": {"topic": "t", "payload": "20 B", "rate": "10 /s"}},
            {"name": "s", "host": "b", "subscribe": ["t"]},
        ],
    }
    return Job(compile_plan(parse_values(values)), directory)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def verdict(_: Job, outcome: Outcome) -> str:
    return outcome.verdict


ENDLESS = "90 h"


def test_identifiers_sort_by_the_time_at_which_they_were_made() -> None:
    first = ulid()
    time.sleep(0.002)
    second = ulid()
    assert first < second and len(first) == 26
    assert first != ulid()


def test_a_job_is_a_value() -> None:
    one = Job({"name": "x"}, Path("here"))
    with pytest.raises(FrozenInstanceError):
        one.directory = Path("there")  # type: ignore[misc]
    assert one != Job({"name": "x"}, Path("here")), "two jobs of one plan are two jobs"
    assert "directory" not in one.plan


def test_every_job_ends_with_what_was_kept_of_it(tmp_path: Path) -> None:
    jobs = [job(tmp_path / str(number)) for number in range(3)]
    heard: list[tuple[str, str]] = []

    def observe(of: Job, line: dict[str, Any]) -> None:
        heard.append((of.identifier, line["event"]))

    def keep(of: Job, outcome: Outcome) -> int:
        return Recording.open(outcome.directory).messages.height

    pool: Executor[int]
    with LocalPool(keep, jobs=2, observe=observe) as pool:
        for one in jobs:
            pool.submit(one)
        ended = {finished.job.identifier: finished.result() for finished in pool.results()}
    assert list(ended.values()) == [10, 10, 10]
    assert {identifier for identifier, event in heard if event == "done"} == set(ended)
    assert set(ended) == {one.identifier for one in jobs}


def test_an_error_is_one_jobs_own(tmp_path: Path) -> None:
    bad, good = job(tmp_path / "bad"), job(tmp_path / "good")
    bad = Job({**bad.plan, "schema": "nothing"}, bad.directory)
    with LocalPool(verdict, jobs=2) as pool:
        pool.submit(bad)
        pool.submit(good)
        ended = {finished.job.directory.name: finished for finished in pool.results()}
    assert ended["good"].result() == "complete"
    with pytest.raises(EngineError):
        ended["bad"].result()


def test_one_job_is_cancelled_by_its_identifier_and_the_others_go_on(tmp_path: Path) -> None:
    running, waiting = job(tmp_path / "running", ENDLESS), job(tmp_path / "waiting", ENDLESS)
    last = job(tmp_path / "last")
    with LocalPool(verdict, jobs=1) as pool:
        for one in (running, waiting, last):
            pool.submit(one)
        wait_for(lambda: (running.directory / "plan.json").exists())
        pool.cancel(waiting.identifier)
        pool.cancel(running.identifier)
        ended = {finished.job.directory.name: finished for finished in pool.results()}
    assert ended["running"].result() == "incomplete"
    assert ended["last"].result() == "complete"
    with pytest.raises(Interrupted, match="cancelled before it began"):
        ended["waiting"].result()
    assert not waiting.directory.exists()
    assert Recording.open(running.directory).messages.height > 0, "what ran has kept what it recorded"


def test_all_are_cancelled_from_another_thread(tmp_path: Path) -> None:
    jobs = [job(tmp_path / str(number), ENDLESS) for number in range(4)]
    with LocalPool(verdict, jobs=2) as pool:
        for one in jobs:
            pool.submit(one)

        def cancel() -> None:
            wait_for(lambda: sum((one.directory / "plan.json").exists() for one in jobs) == 2)
            pool.cancel()

        threading.Thread(target=cancel).start()
        ended = list(pool.results())
    assert sum(finished.kept == "incomplete" for finished in ended) == 2
    assert sum(isinstance(finished.error, Interrupted) for finished in ended) == 2
    assert sum(one.directory.exists() for one in jobs) == 2


def test_leaving_a_pool_ends_what_runs(tmp_path: Path) -> None:
    endless = job(tmp_path / "endless", ENDLESS)
    with LocalPool(verdict, jobs=1) as pool:
        pool.submit(endless)
        wait_for(lambda: (endless.directory / "plan.json").exists())
    assert next(pool.results()).kept == "incomplete"


CTRL_C = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_executor import ENDLESS, job, verdict
from mqttlab.runs import LocalPool
with LocalPool(verdict, jobs=2) as pool:
    for number in range(4):
        pool.submit(job(Path(sys.argv[1], str(number)), ENDLESS))
    ended = [finished.kept or type(finished.error).__name__ for finished in pool.results()]
    print(pool.asked.name, *sorted(ended))
"""


def test_ctrl_c_ends_what_runs_and_begins_no_further(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", CTRL_C, str(tmp_path), str(Path(__file__).parent)],
                               stdout=subprocess.PIPE, text=True)
    wait_for(lambda: sum(path.parent.is_dir() for path in tmp_path.glob("*/plan.json")) == 2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output.split() == ["SIGINT", "Interrupted", "Interrupted", "incomplete", "incomplete"]
    assert len(list(tmp_path.iterdir())) == 2
