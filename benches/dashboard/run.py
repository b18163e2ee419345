"""How long the dashboard takes in a browser, and what watching costs: ``benches/dashboard/run.py [PART…]``.

Parts: ``table`` (10,000 runs), ``run`` (a recording of many messages: first figure, zoom), ``watch`` (processor of
server and queue while 54 clients are watched), ``pairs`` (interleaved live runs, watched and not: p99 lateness). All
when none is named; each prints what it has measured as it goes, and one that fails does not end the others.

Times are from the act until what it asks for is there, in Debian's Chromium without a window; medians of as many as
``--times`` says. They want a quiet machine. Beside each stands what no load changes: processor time of the server,
bytes that it has sent, requests and Dash callbacks, of one act. ``--place DIR`` keeps what is measured (10,000 runs,
the large recording) and finds it again; ``--prepare`` makes it and measures nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import places
from measured import Acts, opened_dashboard, ready_at_last
from watching import pairs, watch

FIGURE = ".js-plotly-plot .main-svg"
# How long a zoom waits for another one (a-figures.js).
ZOOM_PAUSE_S = 0.12
READ_MS = 5000
# Whether the figures that are seen, or all, show this range of time, drawn from what the server has told of it.
ZOOMED = """([from, to, all]) => [...document.querySelectorAll(".plot.over-time")].every((place) => {
  const { top, bottom } = place.getBoundingClientRect();
  const away = top > window.innerHeight || bottom < 0;
  return (away && !all) || (place.dataset.shows || "").includes(`from=${from}&to=${to}`);
})"""
FOUND = """name => document.getElementById("runs-count").textContent === "1 shown" &&
  [...document.querySelectorAll(".ag-row a")].map(link => link.textContent).join() === name"""
BY_NAME = ".ag-header-cell[col-id=run]"
# Whether the first row is the one that this column's arrow asks for.
SORTED = """byName => {
  const sorted = document.querySelector(byName).getAttribute("aria-sort");
  const row = document.querySelector(".ag-pinned-left-cols-container .ag-row[row-index='0']");
  return row && (row.innerText === "first") === (sorted !== "descending");
}"""
PAGES = ("Studies", "Compare", "Configure", "Live", "Map", "Captures", "Experiments", "Runs")


def table(place: Path, times: int) -> None:
    """Ten thousand runs: the page, its figures, other pages, acts in the table."""
    runs = places.many(place)
    with opened_dashboard(runs, place) as acts:
        acts.measure("table of 10,000 runs, page anew", times, _opened(acts, "/", ".ag-row a"), "< 2")
        acts.measure("first figure of the table, page anew", times, _opened(acts, "/", FIGURE), "< 3.5")
        acts.measure("first figure of a run, page anew", times, _opened(acts, "/run/first", FIGURE), "< 3.5")
        _changes(acts, times)
        acts.somebody.go("/")
        in_order = acts.series("the table sorted", "< 0.2")
        for _ in range(times):
            if acts.page.locator(BY_NAME).get_attribute("aria-sort") == "none":
                # Upwards the runs stand as they do when nobody sorts them.
                acts.page.locator(BY_NAME).click()
                acts.somebody.ready()
            in_order.once(lambda: _sort(acts))
        in_order.say()
        numbers = iter(range(times))
        searched = acts.series("the table searched, from the last letter to its row", "< 0.2")
        for _ in range(times):
            number = f"{next(numbers):04}"
            _typed_but_one(acts, number)
            searched.once(lambda number=number: _search(acts, number))  # type: ignore[misc]
        searched.say()


def _opened(acts: Acts, path: str, selector: str) -> Callable[[], None]:
    """Loads an address anew, until something is there."""
    def act() -> None:
        acts.page.goto(acts.base + path)
        acts.page.wait_for_selector(selector)

    return act


def _turned(acts: Acts, path: str, selector: str) -> None:
    """As a link there does, until something is there."""
    acts.page.evaluate("path => window.mqttlab.go(path)", path)
    acts.page.wait_for_selector(selector)


def _changes(acts: Acts, times: int) -> None:
    """From page to page by links, until the heading of the next one is there."""
    acts.somebody.go("/doctor")

    def change(name: str) -> None:
        acts.page.locator(".bar").get_by_role("link", name=name, exact=True).click()
        acts.page.get_by_role("heading", name=name, level=1, exact=True).wait_for()

    found = {name: acts.series(f"another page: {name}", "< 0.3") for name in PAGES}
    for _ in range(times):
        for name in PAGES:
            found[name].once(lambda name=name: change(name))  # type: ignore[misc]
    for series in found.values():
        series.say()


def _sort(acts: Acts) -> None:
    """By the names of the runs, downwards or not any more, until the first row is the right one."""
    acts.page.locator(BY_NAME).click()
    acts.page.wait_for_function(SORTED, arg=BY_NAME)


def _typed_but_one(acts: Acts, number: str) -> None:
    """The name of a run is typed but for its last letter, and the table has what that asks for."""
    acts.page.get_by_label("Search").fill(f"run-0{number[:-1]}")
    acts.page.get_by_text("10 shown", exact=True).wait_for()
    acts.somebody.ready()


def _search(acts: Acts, number: str) -> None:
    """From the last letter until the table has the one row that it asks for, and says so."""
    acts.page.keyboard.press(number[-1])
    acts.page.wait_for_function(FOUND, arg=f"run-0{number}")


def big_run(place: Path, times: int, messages: int) -> None:
    """One run of many messages."""
    runs, words = places.large(place, messages)
    print(f"| {words} | | | | |")
    with opened_dashboard(runs, place) as acts:
        # Whoever has read the list for a while.
        acts.page.wait_for_timeout(READ_MS)
        acts.measure("first figure, the first time, from the list", 1, lambda: _turned(
            acts, "/run/big?part=time", FIGURE), "< 2")
    with opened_dashboard(runs, place) as acts:
        acts.measure("first figure, the first time, page anew", 1, _opened(acts, "/run/big?part=time", FIGURE), "< 2")
        acts.measure("first figure, again, page anew", times, _opened(acts, "/run/big?part=time", FIGURE), "< 2")
        for path, what in (("/run/big", "its messages"), ("/run/big?part=recent", "message by message")):
            acts.measure(what, times, _opened(acts, path, ".rows table"), "< 2")
        acts.somebody.go("/run/big?part=time")
        drawn = acts.page.locator(".plot.over-time")
        sources = drawn.evaluate_all("plots => plots.map(plot => plot.dataset.source)")
        for source in sources:
            numbers = iter(range(times))
            acts.measure(f"zoom: {source.rpartition('/')[2]}", times, lambda source=source, numbers=numbers: _ask(
                acts, source, next(numbers)), "< 0.5")  # type: ignore[misc]
        numbers = iter(range(2 * times))
        for every, what in ((False, "those that are seen"), (True, f"all {len(sources)}")):
            acts.measure(f"zoom: {what} of the page's figures, redrawn", times, lambda every=every: _zoom(
                acts, next(numbers), every), "" if every else "< 0.5", ZOOM_PAUSE_S)  # type: ignore[misc]


def _ask(acts: Acts, source: str, number: int) -> None:
    """A figure of a part of the run, as the server gives it."""
    path = f"{source}?theme=light&from={number}&to={number + 5}"
    acts.page.evaluate("path => fetch(path).then(answer => answer.json()).then(() => 1)", path)


def _zoom(acts: Acts, number: int, every: bool) -> None:
    """From a zoom into one figure until all that are seen, or all of the page, show the same part; the pause in which
    one may zoom on is taken off."""
    acts.page.evaluate("""range => window.Plotly.relayout(document.querySelector(".plot.over-time.js-plotly-plot"),
        { "xaxis.range[0]": range[0], "xaxis.range[1]": range[1] })""", [number, number + 5])
    acts.page.wait_for_function(ZOOMED, arg=[number, number + 5, every])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="table, run, watch, pairs")
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--place", type=Path, help="where what is measured is kept")
    parser.add_argument("--prepare", action="store_true", help="make what is measured, and measure nothing")
    given = parser.parse_args()
    place = given.place or Path(tempfile.mkdtemp(prefix="mqttlab-dashboard-bench-"))
    acts = {"table": lambda: table(place, given.times), "run": lambda: big_run(place, given.times, given.messages),
            "watch": lambda: watch(place), "pairs": lambda: pairs(place, given.pairs)}
    try:
        if given.prepare:
            places.many(place)
            places.large(place, given.messages)
            return
        print("| what | s, median | range | wanted | server, CPU s · bytes · requests · callbacks |\n"
              "|---|---:|---:|---|---|")
        for name in given.parts or acts:
            ready_at_last(name, acts[name])
    finally:
        if given.place is None:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"\n{time.monotonic() - began:.0f} s in all")
