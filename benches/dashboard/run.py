"""How long the dashboard takes in a browser, and what watching costs: ``benches/dashboard/run.py [PART…]``.

Parts: ``table`` (10,000 runs), ``run`` (a recording of many messages: first figure, zoom), ``watch`` (processor of
server and queue while 54 clients are watched), ``pairs`` (interleaved live runs, watched and not: p99 lateness). All
when none is named. Times are from the act until what it asks for is there, in Debian's Chromium without a window;
medians of as many as ``--times`` says.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))

from dashboards import Program, Visitor, queue_below, simulate, visitor
from mqttlab.dashboard.drafts import Draft, written
from mqttlab.dashboard.jobs import Jobs
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

RUNS = 10_000
FIGURE = ".js-plotly-plot .main-svg"
# How long the search waits for another letter (`debounce` in pages/runs.py), and a zoom for another one (a-figures.js).
PAUSE_S, ZOOM_PAUSE_S = 0.25, 0.12
ZOOMED = """range => [...document.querySelectorAll(".plot.over-time.js-plotly-plot")].every(
  plot => range.every((end, place) => Math.abs(plot.layout.xaxis.range[place] - end) < 1e-3))"""
TICKS_A_S = os.sysconf("SC_CLK_TCK")


def timed(times: int, act: Callable[[], None]) -> list[float]:
    """Seconds of each."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        found.append(time.perf_counter() - began)
    return found


def say(what: str, seconds: list[float], wanted: str) -> None:
    """A row of the table."""
    middle = statistics.median(seconds)
    print(f"| {what} | {middle:.3f} | {min(seconds):.3f}–{max(seconds):.3f} | {wanted} |", flush=True)


def table(place: Path, times: int) -> None:
    """Ten thousand runs: the page, its figures, other pages, acts in the table."""
    runs = place / "many"
    first = simulate(runs, "first", qos=1, rate="10 /s")
    small = [(name, (first / name).read_bytes()) for name in ("plan.json", "run.json", "layout.json")]
    for number in range(RUNS):
        (runs / f"run-{number:05}").mkdir()
        for name, data in small:
            (runs / f"run-{number:05}" / name).write_bytes(data)
    with queue_below(place) as queue:
        served = Program(runs, queue.directory, place)
        try:
            with visitor(served) as somebody:
                page = somebody.page

                def opened(path: str, selector: str) -> Callable[[], None]:
                    def act() -> None:
                        page.goto(somebody.base + path)
                        page.wait_for_selector(selector)
                    return act

                opened("/", ".ag-row a")()
                say("table of 10,000 runs, page anew", timed(times, opened("/", ".ag-row a")), "< 2")
                say("first figure of a run, page anew", timed(times, opened("/run/first", FIGURE)), "< 3.5")
                say("first figure of the table, page anew", timed(times, opened("/", FIGURE)), "< 3.5")
                for name, seconds in _changes(somebody, times).items():
                    say(f"another page: {name}", seconds, "< 0.3")
                say("the table sorted", _sorted(somebody, times), "< 0.2")
                say("the table searched", _searched(somebody, times), "< 0.2")
        finally:
            served.kill()


def _changes(somebody: Visitor, times: int) -> dict[str, list[float]]:
    """From page to page by links, until the heading of the next one is there."""
    page = somebody.page
    names = ("Studies", "Compare", "Configure", "Live", "Map", "Captures", "Experiments", "Runs")
    found: dict[str, list[float]] = {name: [] for name in names}
    somebody.go("/doctor")
    for _ in range(times):
        for name in names:
            began = time.perf_counter()
            page.locator(".bar").get_by_role("link", name=name, exact=True).click()
            page.get_by_role("heading", name=name, level=1, exact=True).wait_for()
            found[name].append(time.perf_counter() - began)
            # What the page draws later is not to be in the next one's time.
            somebody.ready()
    return found


def _searched(somebody: Visitor, times: int) -> list[float]:
    """From the last letter until the table has what it asks for; the pause in which one may type on is taken off."""
    page, found = somebody.page, []
    somebody.go("/")
    for number in range(times):
        began = time.perf_counter()
        page.get_by_label("Search").fill(f"run-0{number:04}")
        page.get_by_text("1 shown").wait_for()
        page.locator(".ag-row").get_by_text(f"run-0{number:04}").wait_for()
        found.append(time.perf_counter() - began - PAUSE_S)
        somebody.ready()
    return found


def _sorted(somebody: Visitor, times: int) -> list[float]:
    page, found = somebody.page, []
    somebody.go("/")
    header = page.locator(".ag-header-cell[col-id=run]")
    for _ in range(times):
        before = page.locator(".ag-center-cols-container .ag-row, .ag-pinned-left-cols-container .ag-row").first
        at = before.inner_text()
        began = time.perf_counter()
        header.click()
        page.wait_for_function("at => { const row = document.querySelector('.ag-pinned-left-cols-container .ag-row');"
                               " return row && row.innerText !== at; }", arg=at)
        found.append(time.perf_counter() - began)
    return found


def big_run(place: Path, times: int, messages: int) -> None:
    """One run of many messages."""
    runs = place / "big"
    seconds = 100
    values = {
        "name": "big", "backend": "sim", "phases": {"duration": f"{seconds} s", "cool_down": "10 s"},
        "networks": [{"between": ["a", "broker"], "up": {"rate": "1 Gbit/s", "delay": "1 ms"},
                      "down": {"rate": "1 Gbit/s", "delay": "1 ms"}}],
        "groups": [{"name": "p", "host": "a", "count": 100,
                    "publish": {"topic": "t/{client}", "payload": "100 B", "rate": f"{messages // seconds // 100} /s"}},
                   {"name": "s", "host": "a", "count": 100, "subscribe": ["t/{client}"]}]}
    outcome = perform(Job(compile_plan(parse_values(values)), runs / "big"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(runs / "big")
    print(f"| a run of {recording.rows('messages')} messages and {recording.rows('packets')} frames | | | |")
    with queue_below(place) as queue:
        served = Program(runs, queue.directory, place)
        try:
            with visitor(served) as somebody:
                page = somebody.page

                def opened() -> None:
                    page.goto(f"{somebody.base}/run/big?part=time")
                    page.wait_for_selector(FIGURE)

                def opened_at(path: str) -> Callable[[], None]:
                    def act() -> None:
                        page.goto(f"{somebody.base}{path}")
                        page.wait_for_selector(".rows table")
                    return act

                say("first figure, the first time", timed(1, opened), "< 2")
                say("first figure, again", timed(times, opened), "< 2")
                for path, what in (("/run/big", "its messages"), ("/run/big?part=recent", "message by message")):
                    say(what, timed(times, opened_at(path)), "< 2")
                opened()
                somebody.ready()
                names = page.locator(".plot.over-time").evaluate_all("plots => plots.map(plot => plot.dataset.source)")
                for name in names:
                    say(f"zoom: {name.rpartition('/')[2]}", _asked(somebody, name, times), "< 0.5")
                say("zoom: all figures of the page, redrawn", _zoomed(somebody, times), "< 0.5")
        finally:
            served.kill()


def _asked(somebody: Visitor, source: str, times: int) -> list[float]:
    """A figure of a part of the run, as the server gives it."""
    found = []
    for number in range(times):
        began = time.perf_counter()
        path = f"{source}?theme=light&from={number}&to={number + 5}"
        somebody.page.evaluate("path => fetch(path).then(answer => answer.json()).then(() => 1)", path)
        found.append(time.perf_counter() - began)
    return found


def _zoomed(somebody: Visitor, times: int) -> list[float]:
    """From a zoom into one figure until all show the same part; the pause in which one may zoom on is taken off."""
    page, found = somebody.page, []
    for number in range(times):
        began = time.perf_counter()
        page.evaluate("""range => window.Plotly.relayout(document.querySelector(".plot.over-time.js-plotly-plot"),
            { "xaxis.range[0]": range[0], "xaxis.range[1]": range[1] })""", [number, number + 5])
        page.wait_for_function(ZOOMED, arg=[number, number + 5])
        found.append(time.perf_counter() - began - ZOOM_PAUSE_S)
        somebody.ready()
    return found


def watch(place: Path) -> None:
    """What the server and the queue use of a processor while a run of 54 clients is watched."""
    runs = place / "watched"
    runs.mkdir()
    with queue_below(place) as queue:
        served = Program(runs, queue.directory, place)
        try:
            with visitor(served) as somebody:
                jobs = Jobs(runs, queue.directory)
                jobs.start(written(Draft(duration="30 s")))
                somebody.page.goto(f"{somebody.base}/live")
                somebody.page.get_by_text("measuring").wait_for()
                names = {"server": served.process.pid, "queue": _queue_process(queue.directory)}
                before, began = {name: _used(pid) for name, pid in names.items()}, time.perf_counter()
                time.sleep(20)
                passed = time.perf_counter() - began
                for name, pid in names.items():
                    print(f"| {name}, % of a core while watched | {100 * (_used(pid) - before[name]) / passed:.2f} | | "
                          "< 3 together |", flush=True)
        finally:
            served.kill()


def pairs(place: Path, times: int) -> None:
    """Interleaved pairs of live runs, watched in a browser and not: the emulator's p99 lateness."""
    runs = place / "pairs"
    runs.mkdir()
    found: dict[bool, list[float]] = {True: [], False: []}
    with queue_below(place) as queue:
        served = Program(runs, queue.directory, place)
        try:
            with visitor(served) as somebody:
                jobs = Jobs(runs, queue.directory)
                for number in range(2 * times):
                    watched = number % 4 in (0, 3)
                    somebody.page.goto(somebody.base + ("/live" if watched else "/doctor"))
                    [identifier] = jobs.start(written(Draft(duration="10 s")))
                    while any(job.identifier == identifier for job in jobs.going_on()):
                        time.sleep(0.5)
                    [job] = [job for job in jobs.ended(1) if job.identifier == identifier]
                    told = json.loads((job.directory / "run.json").read_text(encoding="utf-8"))
                    found[watched].append(told["validity"]["emulator"]["p99_ns"] / 1e3)
        finally:
            served.kill()
    differences = [with_ - without for with_, without in zip(found[True], found[False], strict=True)]
    half = 2.26 * statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else float("nan")
    print(f"| p99 lateness, watched less not, µs, {times} pairs | {statistics.mean(differences):.1f} | ± {half:.1f} | "
          "< 50, or less than its interval |")


def _used(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_S


def _queue_process(directory: Path) -> int:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        words = place.read_bytes().decode(errors="replace").split("\0")
        if words[1:4] == ["-m", "mqttlab.queue", str(directory)]:
            return int(place.parent.name)
    raise AssertionError("the queue's process is not there")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="table, run, watch, pairs")
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--messages", type=int, default=1_000_000)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="mqttlab-dashboard-bench-"))
    acts = {"table": lambda: table(place, given.times), "run": lambda: big_run(place, given.times, given.messages),
            "watch": lambda: watch(place), "pairs": lambda: pairs(place, 10)}
    print("| what | median | range | wanted |\n|---|---:|---:|---|")
    try:
        for name in given.parts or acts:
            acts[name]()
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
