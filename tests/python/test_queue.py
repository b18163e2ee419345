"""The queue: who begins when; no run is lost, none is made twice, no live run has company, whoever is killed."""

from __future__ import annotations

import contextlib
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
from click.testing import CliRunner

import processes
from mqttlab.catalog import Catalog
from mqttlab.cli import main
from mqttlab.engine import is_being_written
from mqttlab.queue import Queue, QueueError, QueueExecutor, handed
from mqttlab.queue.handed import Handed
from mqttlab.queue.process import Waiting, choose
from mqttlab.recording import Recording
from mqttlab.runs import Job
from queued import SCENARIO, job, messages


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    # The queue's process finds there what is kept of a run.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    queue = Queue(tmp_path / "queue")
    yield queue
    queue.cancel()
    for pid in pids(queue):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not pids(queue))


def pids(queue: Queue) -> list[int]:
    """The queue's processes."""
    return processes.queues(queue.directory)


def engines(directory: Path) -> list[int]:
    """Engines that make recordings below a directory."""
    return processes.engines(
        lambda words: "run" in words and any(word.startswith(f"{directory}/") for word in words))


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def states(queue: Queue) -> list[str]:
    return [job.state for job in queue.jobs(all_=True)]


def test_what_begins_keeps_the_order_and_live_runs_are_alone() -> None:
    one, two, three = (Waiting(name, False) for name in "123")
    alone, other = Waiting("a", True), Waiting("b", True)
    assert choose([one, two, three], [], 2) == [one, two]
    assert choose([two, three], [one], 2) == [two]
    assert choose([one, alone, two], [], 4) == [one], "what stands behind a live run waits for it"
    assert choose([alone, one], [two], 4) == []
    assert choose([alone, other, one], [], 4) == [alone]
    assert choose([one], [alone], 4) == [] == choose([other], [alone], 4) == choose([], [], 4)


def test_an_executor_hands_back_what_was_kept_in_the_queue_and_the_catalog_has_it(
    queue: Queue, tmp_path: Path,
) -> None:
    heard: list[str] = []
    catalog = str(tmp_path / "catalog.db")
    with QueueExecutor(queue, messages, label="three", catalog=catalog,
                       observe=lambda _, line: heard.append(line["event"])) as executor:
        jobs = [job(tmp_path / "runs" / str(number)) for number in range(3)]
        for one in jobs:
            executor.submit(one)
            # The same job twice is one.
            executor.submit(one)
        ended = {finished.job.identifier: finished.result() for finished in executor.results()}
    assert ended == {one.identifier: ("complete", 10) for one in jobs}
    assert heard.count("done") == 3
    assert [(one.state, one.verdict, one.label) for one in queue.jobs(all_=True)] == [("done", "complete", "three")] * 3
    with Catalog.open(catalog, read_only=True) as opened:
        assert set(opened.runs(columns=["run"])["run"]) == {one.identifier for one in jobs}


def test_a_job_that_cannot_be_performed_ends_with_its_error(queue: Queue, tmp_path: Path) -> None:
    wrong = Job({**job(tmp_path).plan, "schema": 99}, tmp_path / "wrong")  # type: ignore[typeddict-item]
    with QueueExecutor(queue, messages) as executor:
        executor.submit(wrong)
        [finished] = executor.results()
    assert "`schema` is 99" in str(finished.error)
    [kept] = queue.jobs(all_=True)
    assert (kept.state, kept.verdict) == ("done", "failed")


def test_a_second_opening_in_one_process_loses_nothing_of_the_first(tmp_path: Path) -> None:
    # The first one's locks were lost, another process removed the log as the last to leave, and jobs waited for ever.
    seen = "import sys; from mqttlab.queue import Queue; from pathlib import Path; " \
           "print(sorted(Queue(Path(sys.argv[1])).held()))"

    def held() -> str:
        return subprocess.run([sys.executable, "-c", seen, str(tmp_path)], capture_output=True, text=True,
                              check=True).stdout.strip()

    first = Queue(tmp_path)
    first.pause()
    Queue(tmp_path)
    assert held() == "['*']"
    first.resume()
    assert held() == "[]"


def test_who_waits_in_a_queue_whose_file_is_removed_is_told(queue: Queue, tmp_path: Path) -> None:
    queue.pause()
    with QueueExecutor(queue, messages) as executor:
        executor.submit(job(tmp_path / "a"))
        queue.store.path.rename(tmp_path / "elsewhere.db")
        with pytest.raises(QueueError, match="was removed or replaced while jobs waited"):
            list(executor.results())


def test_a_job_that_cannot_be_handed_in_is_not_waited_for(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(queue.handed, "give", full)
    with pytest.raises(OSError, match="No space"), QueueExecutor(queue, messages) as executor:
        executor.submit(job(tmp_path / "a"))


def test_secrets_are_handed_over_while_others_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(memory))
    giver, forgetter = Handed(tmp_path / "queue"), Handed(tmp_path / "queue")
    own = handed._own
    removed: list[Path] = []

    def own_and_removed(place: Path) -> None:
        own(place)
        if place.parent != memory and len(removed) < 3:
            removed.append(place)
            forgetter.forget(["another"])

    monkeypatch.setattr(handed, "_own", own_and_removed)
    giver.give("mine", {"mark": "value"})
    assert len(removed) == 3 and forgetter.of("mine") == {"mark": "value"}


def test_one_is_cancelled_while_it_runs_and_one_before_it_began(queue: Queue, tmp_path: Path) -> None:
    endless, never = job(tmp_path / "runs" / "endless", "90 h"), job(tmp_path / "runs" / "never", "90 h")
    with QueueExecutor(queue, messages) as executor:
        executor.submit(endless)
        wait_for(lambda: states(queue) == ["running"] and engines(tmp_path / "runs"))
        queue.pause()
        executor.submit(never)
        assert states(queue) == ["running", "held"]
        executor.cancel(never.identifier)
        executor.cancel(endless.identifier)
        ended = {finished.job.identifier: finished for finished in executor.results()}
    assert ended[endless.identifier].result()[0] == "incomplete"
    assert "before it began" in str(ended[never.identifier].error)
    assert not never.directory.exists() and states(queue) == ["cancelled", "cancelled"]


def test_what_is_held_does_not_begin_until_it_is_let_go(queue: Queue, tmp_path: Path) -> None:
    queue.pause()
    for name in ("a", "b"):
        queue.submit(job(tmp_path / name), label=name)
    wait_for(lambda: queue.is_running)
    assert states(queue) == ["held", "held"]
    queue.pause(["b"])
    queue.resume()
    # Of everything and of one, what was held is let go by name, too.
    wait_for(lambda: states(queue) == ["done", "done"])
    queue.submit(job(tmp_path / "c"), label="c")
    with pytest.raises(QueueError, match="did you mean"):
        queue.pause(["cc"])
    with pytest.raises(QueueError, match="not in the queue"):
        queue.cancel(["nothing like it"])


def test_a_process_ends_when_nothing_is_left_and_another_begins_with_the_next_job(queue: Queue, tmp_path: Path) -> None:
    queue.submit(job(tmp_path / "a"))
    wait_for(lambda: states(queue) == ["done"])
    [first] = pids(queue)
    queue.start()
    assert pids(queue) == [first]
    wait_for(lambda: not pids(queue), 30)
    queue.submit(job(tmp_path / "b"))
    wait_for(lambda: states(queue) == ["done", "done"])


CLIENT = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from queued import job, messages
from mqttlab.queue import Queue, QueueExecutor
with QueueExecutor(Queue(Path(sys.argv[1])), messages, label="client") as executor:
    for number in range(4):
        executor.submit(job(Path(sys.argv[2]) / str(number), "90 h"))
    print("in", flush=True)
    list(executor.results())
"""


def test_what_belongs_to_a_command_that_is_killed_ends_with_it(queue: Queue, tmp_path: Path) -> None:
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(queue.directory), str(tmp_path / "runs"),
                               str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None and client.stdout.readline() == "in\n"
    wait_for(lambda: len(engines(tmp_path / "runs")) == min(4, os.cpu_count() or 1))
    queue.submit(job(tmp_path / "runs" / "mine"), label="mine")
    client.kill()
    client.wait()
    wait_for(lambda: states(queue) == ["cancelled"] * 4 + ["done"])
    assert not engines(tmp_path / "runs")


def test_a_queue_that_is_killed_loses_no_run_and_makes_none_twice(queue: Queue, tmp_path: Path) -> None:
    catalog = str(tmp_path / "catalog.db")
    queue.submit(job(tmp_path / "runs" / "long", "400 h"), label="long", catalog=catalog)
    for number in range(3):
        queue.submit(job(tmp_path / "runs" / f"short{number}"), label="short", catalog=catalog)
    wait_for(lambda: (tmp_path / "runs" / "long" / "plan.json").is_file())
    [pid] = pids(queue)
    os.kill(pid, signal.SIGKILL)
    # Nobody reads what the engines say: they end.
    wait_for(lambda: not engines(tmp_path / "runs"))
    assert "running" in states(queue) and not queue.is_running
    queue.resume()
    wait_for(lambda: len(engines(tmp_path / "runs")) and states(queue)[1:] == ["done"] * 3)
    [long] = queue.jobs()
    assert (long.attempt, long.directory.name, long.state) == (2, "long-again-2", "running")
    assert long.run != long.identifier
    # What it had recorded is kept beside.
    assert not Recording.open(tmp_path / "runs" / "long").complete
    queue.cancel(["long"])
    wait_for(lambda: states(queue) == ["cancelled", *["done"] * 3])
    complete = [path for path in (tmp_path / "runs").iterdir() if Recording.open(path).complete]
    assert sorted(path.name.partition("-again")[0] for path in complete) == ["short0", "short1", "short2"]
    with Catalog.open(catalog, read_only=True) as opened:
        assert opened.runs(["state = complete"]).height == 3


def test_what_a_killed_queue_has_left_is_not_said_to_run(queue: Queue, tmp_path: Path) -> None:
    def listed(*words: str) -> str:
        return CliRunner().invoke(main, ["queue", "list", "--queue", str(queue.directory), *words]).output

    queue.submit(job(tmp_path / "runs" / "cancelled", "400 h"), label="cancelled")
    wait_for(lambda: [one.progress.get("at_ns") for one in queue.jobs()] != [None])
    assert "running" in listed()
    [pid] = pids(queue)
    os.kill(pid, signal.SIGSTOP)
    # It has no time to do what it is asked.
    assert queue.cancel(["cancelled"]) == 1
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not pids(queue) and not queue.is_running)
    assert "nothing is in the queue" in listed() and not queue.is_running
    assert "cancelled  sim" in listed("--all").replace("\n", " ") and "running" not in listed("--all")
    [ended] = queue.jobs(all_=True)
    assert (ended.state, ended.reason) == ("cancelled", "cancelled, and the queue ended while it ran")
    queue.submit(job(tmp_path / "runs" / "left", "400 h"), label="left")
    wait_for(lambda: [one.progress.get("at_ns") for one in queue.jobs()] != [None])
    [pid] = pids(queue)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not queue.is_running)
    assert "the queue was killed" in listed()
    # To look starts it, as it does for what waits.
    wait_for(lambda: [(one.attempt, one.state) for one in queue.jobs()] == [(2, "running")])


def test_an_engine_that_is_killed_ends_its_run_and_no_other(queue: Queue, tmp_path: Path) -> None:
    with QueueExecutor(queue, messages) as executor:
        endless, short = job(tmp_path / "runs" / "endless", "90 h"), job(tmp_path / "runs" / "short")
        executor.submit(endless)
        wait_for(lambda: is_being_written(endless.directory))
        for pid in engines(tmp_path / "runs"):
            os.kill(pid, signal.SIGKILL)
        executor.submit(short)
        ended = {finished.job.identifier: finished.result()[0] for finished in executor.results()}
    assert ended == {endless.identifier: "incomplete", short.identifier: "complete"}
    assert "SIGKILL" in str(queue.jobs(all_=True)[0].reason)


def test_an_executor_outlives_the_queues_process(queue: Queue, tmp_path: Path) -> None:
    with QueueExecutor(queue, messages) as executor:
        endless, short = job(tmp_path / "runs" / "endless", "90 h"), job(tmp_path / "runs" / "short")
        executor.submit(endless)
        wait_for(lambda: is_being_written(endless.directory))
        queue.pause()
        executor.submit(short)
        [pid] = pids(queue)
        os.kill(pid, signal.SIGKILL)
        queue.resume()
        ended = {finished.job.identifier: finished.result()[0] for finished in executor.results()}
    # What ran belongs to the command, which decides whether to make it again.
    assert ended == {endless.identifier: "incomplete", short.identifier: "complete"}


def test_a_queue_that_is_asked_to_end_leaves_its_runs_waiting(queue: Queue, tmp_path: Path) -> None:
    queue.submit(job(tmp_path / "runs" / "endless", "90 h"))
    wait_for(lambda: is_being_written(tmp_path / "runs" / "endless"))
    [pid] = pids(queue)
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not pids(queue))
    assert states(queue) == ["pending"] and not engines(tmp_path / "runs")


@pytest.mark.live
def test_live_runs_do_not_overlap_each_other_or_simulations(queue: Queue, tmp_path: Path) -> None:
    live = {"backend": "live", "broker": {"kind": "mosquitto", "host": "a"}}
    most = {"live": 0, "all": 0}
    with QueueExecutor(queue, messages) as executor:
        names = ["sim0", "live0", "sim1", "live1", "sim2"]
        for name in names:
            more = live if name.startswith("live") else {}
            executor.submit(job(tmp_path / "runs" / name, **more))
        done = 0
        while done < len(names):
            going = [path.name for path in (tmp_path / "runs").glob("*") if is_being_written(path)]
            alive = sum(name.startswith("live") for name in going)
            assert alive <= 1 and not (alive and len(going) > 1), going
            most = {"live": max(most["live"], alive), "all": max(most["all"], len(going))}
            done = sum(state == "done" for state in states(queue))
        ended = [finished.result()[0] for finished in executor.results()]
    assert ended == ["complete"] * 5 and most["live"] == 1


def test_the_commands(queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MQTTLAB_QUEUE", str(queue.directory))
    Path("waits.toml").write_text("\n".join(
        [f"{name} = {json.dumps(SCENARIO[name])}" for name in ("name", "backend", "network")]
        + ['phases = { duration = "1 s", cool_down = "1 s" }', "repetitions = 2", '[[groups]]\nname = "p"\nhost = "a"',
           'publish = { topic = "t", payload = "20 B", rate = "10 /s" }', '[[groups]]\nname = "s"\nhost = "b"',
           'subscribe = ["t"]']), encoding="utf-8")

    def mqttlab(*words: str) -> Any:
        return CliRunner().invoke(main, words)

    assert "nothing is in the queue" in mqttlab("queue", "list").output
    assert mqttlab("queue", "pause").exit_code == 0
    done = mqttlab("run", "waits.toml", "--detach")
    assert done.exit_code == 0 and done.stdout.count("runs/waits-") == 2, done.output
    # It has not waited for them: they have not begun.
    assert mqttlab("queue", "list").output.count("held") == 2
    assert mqttlab("queue", "cancel", done.stdout.split()[2][-8:]).output == "1 cancelled\n"
    assert mqttlab("queue", "resume").exit_code == 0
    assert mqttlab("queue", "wait").exit_code == 0
    listed = mqttlab("queue", "list", "--all").output
    assert listed.count("complete") == 1 and listed.count("cancelled") == 1
    assert len(list(Path("runs").glob("*/report.html"))) == 1
    assert mqttlab("list", "--where", "messages_delivered = 10").output.count("runs/waits-") == 1
    assert mqttlab("queue", "cancel").exit_code == 2 == mqttlab("queue", "cancel", "nobody").exit_code


def test_a_command_that_was_handed_over_is_run_by_the_queue_and_again_after_its_death(
    queue: Queue, tmp_path: Path,
) -> None:
    (tmp_path / "long.toml").write_text(
        'name = "long"\nbackend = "sim"\nnetwork = "direct"\nphases = { duration = "90 h" }\n'
        'groups = [{ name = "p", host = "a", publish = { topic = "t", payload = "20 B", rate = "10 /s" } }]\n',
        encoding="utf-8")
    queue.add_driver(["run", "long.toml"], label="long", directory=tmp_path)
    with pytest.raises(QueueError, match="in the queue already"):
        queue.add_driver(["run", "long.toml"], label="long", directory=tmp_path)
    wait_for(lambda: len(engines(tmp_path / "runs")) == 1)
    [first] = engines(tmp_path / "runs")
    [pid] = pids(queue)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not engines(tmp_path / "runs"))
    queue.start()
    wait_for(lambda: engines(tmp_path / "runs") not in ([], [first]))
    queue.cancel(["long"])
    wait_for(lambda: [driver.state for driver in queue.drivers(all_=True)] == ["done"])
    assert not engines(tmp_path / "runs")
