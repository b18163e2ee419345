"""What watching costs a live run: processor of server and queue, and whether frames come later."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from measured import WITHIN_MS, used_s

from dashboards import Program, queue_below, visitor
from mqttlab.dashboard.configure.drafts import Draft, written
from mqttlab.dashboard.jobs import Jobs
from mqttlab.statistics import mean_interval

WATCHED_S = 20


def watch(place: Path) -> None:
    """What the server and the queue use of a processor while a run of 54 clients is watched."""
    runs = place / "watched"
    runs.mkdir(exist_ok=True)
    with queue_below(place) as queue:
        served = Program(runs, queue.directory, place)
        try:
            with visitor(served, WITHIN_MS) as somebody:
                jobs = Jobs(runs, queue.directory)
                jobs.start(written(Draft(duration=f"{WATCHED_S + 10} s")))
                somebody.page.goto(f"{somebody.base}/live")
                somebody.page.get_by_text("measuring").wait_for()
                names = {"server": served.process.pid, "queue": _queue_process(queue.directory)}
                before, began = {name: used_s(pid) for name, pid in names.items()}, time.perf_counter()
                asked = len(somebody.asked)
                # Playwright tells of requests only while it is asked for something.
                somebody.page.wait_for_timeout(1000 * WATCHED_S)
                passed = time.perf_counter() - began
                shares = {name: 100 * (used_s(pid) - before[name]) / passed for name, pid in names.items()}
                print(f"| server + queue, % of a core while 54 clients are watched | {sum(shares.values()):.2f} | "
                      f"{shares['server']:.2f} + {shares['queue']:.2f} | < 3 | "
                      f"{(len(somebody.asked) - asked) / passed:.1f} requests a second |", flush=True)
        finally:
            served.kill()


def pairs(place: Path, times: int) -> None:
    """Interleaved pairs of live runs, watched in a browser and not: the emulator's p99 lateness."""
    runs = place / "pairs"
    runs.mkdir(exist_ok=True)
    found: dict[bool, list[float]] = {True: [], False: []}
    with queue_below(place) as queue:
        served = Program(runs, queue.directory, place)
        try:
            with visitor(served, WITHIN_MS) as somebody:
                jobs = Jobs(runs, queue.directory)
                for number in range(2 * times):
                    # Watched first, then second, so that a drift of the machine is in neither.
                    watched = number % 4 in (0, 3)
                    somebody.page.goto(somebody.base + ("/live" if watched else "/doctor"))
                    found[watched].append(_lateness_us(jobs))
        finally:
            served.kill()
    for watched, words in ((True, "watched"), (False, "not watched")):
        print(f"| p99 lateness, µs, {words} | {statistics.median(found[watched]):.1f} | {min(found[watched]):.1f}–"
              f"{max(found[watched]):.1f} | | |")
    differences = [with_ - without for with_, without in zip(found[True], found[False], strict=True)]
    told = mean_interval(differences)
    print(f"| p99 lateness, watched less not, µs, mean of {times} pairs | {told.estimate:.1f} | "
          f"{told.low:.1f} … {told.high:.1f} | < 50, or less than its interval | "
          f"median {statistics.median(differences):.1f} |", flush=True)


def _lateness_us(jobs: Jobs) -> float:
    [identifier] = jobs.start(written(Draft(duration="5 s")))
    while any(job.identifier == identifier for job in jobs.going_on()):
        time.sleep(0.25)
    [job] = [job for job in jobs.ended(1) if job.identifier == identifier]
    told = json.loads((job.directory / "run.json").read_text(encoding="utf-8"))
    return float(told["validity"]["emulator"]["p99_ns"]) / 1e3


def _queue_process(directory: Path) -> int:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        words = place.read_bytes().decode(errors="replace").split("\0")
        if words[1:4] == ["-m", "mqttlab.queue", str(directory)]:
            return int(place.parent.name)
    raise AssertionError("the queue's process is not there")
