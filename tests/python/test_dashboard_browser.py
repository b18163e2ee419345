"""The dashboard read in a browser, through what a visitor sees: labels, headings, links, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards import Visitor, dashboard, three_runs, visitor
from mqttlab import figures as figures_package
from mqttlab.dashboard.pages.runs import STRUCK_OUT

PARTS = ("Messages", "Over time", "Where the time went", "Network", "Message by message", "Files and provenance")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return three_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def somebody(runs: Path) -> Iterator[Visitor]:
    with dashboard(runs) as served, visitor(served) as found:
        yield found


def test_from_the_table_to_the_ladder_of_a_message(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/")
    page.get_by_label("Search").fill("plain")
    page.get_by_text("1 shown").wait_for()
    page.get_by_role("link", name="plain").click()
    page.get_by_role("heading", name="plain", level=1).wait_for()
    for part in PARTS:
        page.get_by_role("link", name=part, exact=True).click()
        page.get_by_role("link", name=part, exact=True).and_(page.locator("[aria-current=page]")).wait_for()
        somebody.ready()
        assert page.get_by_text("Valid", exact=True).is_visible(), part
    page.get_by_role("link", name="Message by message").click()
    page.get_by_role("link", name=re.compile("ladder of message")).first.click()
    page.get_by_role("heading", name="Ladder", exact=True).wait_for()
    assert page.get_by_alt_text("Ladder diagram").evaluate("picture => picture.naturalWidth") > 100
    # The address alone leads to the same page.
    page.reload()
    page.get_by_role("heading", name="Ladder", exact=True).wait_for()
    assert somebody.elsewhere == set() and somebody.problems == []


def test_who_reads_the_list_has_what_figures_need_before_a_run_is_opened(somebody: Visitor) -> None:
    somebody.go("/doctor")
    asked = len(somebody.asked)
    somebody.page.wait_for_function("() => window.Plotly")
    somebody.turn("/run/plain?part=time")
    figures = somebody.page.locator(".plot.js-plotly-plot").count()
    libraries = [url for url in somebody.asked[asked:] if "/plotly-" in url]
    assert figures >= 4 and len(libraries) <= 1
    # A part of the library, which has all that figures are made of.
    sources = Path(figures_package.__file__).parent.glob("*.py")
    made = {kind for source in sources for kind in re.findall(r'trace\(\s*"(\w+)"', source.read_text(encoding="utf-8"))}
    drawn = set(somebody.page.evaluate("() => Object.keys(window.Plotly.PlotSchema.get().traces)"))
    # It needs WebGL, and is drawn as SVG.
    assert {"scatter", "bar", "box", "heatmap"} <= made and made - drawn <= {"scattergl"}
    assert somebody.elsewhere == set() and somebody.problems == []


def test_a_simulated_run_is_played(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/plain?part=instant&at=0.5")

    def at() -> float:
        return float(page.get_by_label("Run time (s)").input_value())

    # By events: the address has each, and nothing to go back to but where it began.
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => Number(document.getElementById('instant-at').value) > 0.5")
    page.get_by_label("by", exact=True).select_option(label="1 s")
    page.wait_for_function("() => Number(document.getElementById('instant-at').value) > 1.5")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Play").wait_for()
    somebody.ready()
    stopped = at()
    assert float(page.url.rpartition("=")[2]) == stopped
    page.reload()
    somebody.ready()
    assert at() == stopped
    # It plays to its end, and no further.
    page.get_by_label("by", exact=True).select_option(label="1 s")
    page.get_by_role("button", name="Play").click()
    page.get_by_text("over", exact=True).wait_for()
    page.get_by_role("button", name="Play").wait_for()
    assert somebody.problems == []


def test_figures_over_time_are_zoomed_together_and_the_address_keeps_it(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/plain?part=time")
    whole = page.locator(".plot.over-time.js-plotly-plot").evaluate_all(
        "plots => plots.map(plot => plot.layout.xaxis.range.join(' '))")
    assert len(whole) >= 4 and len(set(whole)) == 1
    drawn = page.get_by_role("figure", name="Links: data rate").locator(".nsewdrag").first
    drawn.scroll_into_view_if_needed()
    box = drawn.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 42, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile("from=.*to="))
    somebody.ready()
    ranges = page.locator(".plot.over-time.js-plotly-plot").evaluate_all(
        "plots => plots.map(plot => plot.layout.xaxis.range.map(x => x.toFixed(3)).join(' '))")
    assert len(ranges) >= 4 and len(set(ranges)) == 1
    somebody.go(page.url.removeprefix(somebody.base))
    again = page.get_by_role("figure", name="Links: data rate").evaluate(
        "plot => plot.layout.xaxis.range[0].toFixed(3)")
    assert again == ranges[0].split()[0]
    # A point of a figure of deliveries leads to its message.
    somebody.go("/run/plain?part=time")
    point = page.get_by_role("figure", name="Latency of each delivery").locator(".scatterlayer .point").first
    point.scroll_into_view_if_needed()
    at = point.bounding_box()
    assert at is not None
    x, y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
    page.mouse.move(x - 1, y - 1)
    page.mouse.move(x, y, steps=3)
    page.mouse.click(x, y)
    page.get_by_role("heading", name="Ladder", exact=True).wait_for()
    assert "at=" in page.url and "latency=" in page.url


# Notes, of each figure that is drawn, whether it is seen, in which frame, and how many had been asked for.
NOTED = """
window.noted = [];
let frame = 0;
let asked = 0;
let library;
(function count() { frame += 1; window.requestAnimationFrame(count); })();
const ask = window.fetch;
window.fetch = (...what) => { asked += /figure/.test(what[0].url || what[0]); return ask(...what); };
const seen = (place) => {
  const { top, bottom } = place.getBoundingClientRect();
  return top <= window.innerHeight && bottom >= 0;
};
Object.defineProperty(window, "Plotly", { get: () => library, set: (made) => {
  library = made;
  const react = made.react;
  made.react = (place, ...rest) => {
    window.noted.push({ name: place.dataset.name, seen: seen(place), frame, asked });
    return react(place, ...rest);
  };
} });
"""


def test_of_many_figures_those_that_are_seen_come_first_each_in_a_frame_of_its_own(somebody: Visitor) -> None:
    page = somebody.page.context.new_page()
    page.add_init_script(NOTED)
    page.goto(f"{somebody.base}/run/plain?part=time")

    def drawn() -> list[dict[str, Any]]:
        page.wait_for_selector("body[data-ready=yes]", state="attached")
        found: list[dict[str, Any]] = page.evaluate("window.noted.splice(0)")
        frames, seen = [one["frame"] for one in found], [one["seen"] for one in found]
        assert len(found) >= 6 and len(set(frames)) == len(frames)
        assert seen == sorted(seen, reverse=True) and 0 < sum(seen) < len(seen)
        return found

    first = drawn()
    assert first[0]["name"] == "latency-over-time" and first[0]["asked"] <= sum(one["seen"] for one in first)
    # What is seen is drawn first after a zoom too, wherever on the page that is.
    last = page.locator(".plot.over-time.js-plotly-plot").last
    last.scroll_into_view_if_needed()
    last.evaluate("place => window.Plotly.relayout(place, { 'xaxis.range[0]': 0.25, 'xaxis.range[1]': 0.5 })")
    page.wait_for_url(re.compile("from=.*to="))
    assert first[0]["name"] not in {one["name"] for one in drawn() if one["seen"]}
    shown = page.locator(".plot.over-time").evaluate_all("places => places.map(place => place.dataset.shows)")
    assert all("from=0.25&to=0.5" in address for address in shown)
    page.close()


def test_every_figure_gives_its_numbers_and_itself(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/plain?part=messages")
    panel = page.locator(".figure-panel").filter(has=page.get_by_role("heading", name="Latency, cumulative"))
    for words, start in (("CSV", b"series,"), ("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as found:
            panel.get_by_text(words, exact=True).click()
        assert Path(found.value.path()).read_bytes().startswith(start)
    panel.get_by_text("The figure as a table").click()
    table = panel.get_by_role("region", name="Latency, cumulative, table")
    assert table.get_by_role("row").count() > 10 and table.get_by_role("cell", name="QoS 2").first.is_visible()


def test_the_screen_goes_out_as_one_file_that_needs_nothing(somebody: Visitor, tmp_path: Path) -> None:
    page = somebody.page
    somebody.go("/run/plain?part=messages")
    with page.expect_download() as found:
        page.get_by_role("button", name="Export screen").click()
    text = Path(found.value.path()).read_text(encoding="utf-8")
    assert "Messages by QoS" in text and text.count("data:image/svg+xml") >= 2 and "plain" in text
    assert not re.search(r"<script|https?://(?!www\.w3\.org)[^\"']*[\"']", text)
    # What was typed and chosen is in it, as text; a copy of a field has none of it.
    somebody.go("/map?run=plain")
    page.get_by_label("Speed").select_option(label="10 times faster")
    page.get_by_label("Messages", exact=True).fill("no such topic")
    with page.expect_download() as found:
        page.get_by_role("button", name="Export screen").click()
    other = page.context.new_page()
    other.set_content(Path(found.value.path()).read_text(encoding="utf-8"))
    words = other.inner_text("body")
    assert "10 times faster" in words and "no such topic" in words and "100 times slower" not in words
    assert re.search(r"Run\s+plain", words) and other.locator("input, select, button").count() == 0
    other.close()


def test_every_file_that_is_listed_is_sent(runs: Path, somebody: Visitor) -> None:
    (runs / "plain" / ".annotations.json.lock").touch()
    somebody.go("/run/plain?part=files")
    files = somebody.page.get_by_role("region", name="Files of the recording, table").get_by_role("link")
    assert "plan.json" in files.all_inner_texts()
    for one in files.all():
        assert somebody.page.request.get(f"{somebody.base}{one.get_attribute('href')}").ok, one.inner_text()


def test_a_figure_alone_has_its_title_and_its_ground(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/plain?part=messages")
    panel = page.locator(".figure-panel").filter(has=page.get_by_role("heading", name="Latency, cumulative"))
    for ground in ("rgb(255, 255, 255)", "rgb(24, 33, 43)"):
        with page.expect_download() as found:
            panel.get_by_text("SVG", exact=True).click()
        picture = Path(found.value.path()).read_text(encoding="utf-8")
        assert "Latency, cumulative" in picture and f"fill: {ground}; fill-opacity: 1;" in picture
        page.get_by_role("button", name="Theme").click()
        somebody.ready()


def test_what_others_have_written_is_text(somebody: Visitor) -> None:
    page = somebody.page
    for path in ("/", "/run/hostile", "/run/hostile?part=recent", "/run/hostile?part=network",
                 "/run/hostile?part=files", "/run/hostile?part=recent&topic=%3Cimg%20src%3Dx%3E",
                 "/compare?first=plain&second=hostile"):
        somebody.turn(path)
        assert "broken-into" not in page.title(), path
        assert page.locator("img[src=x]").count() == 0, path
    somebody.go("/run/hostile?part=recent")
    assert page.get_by_text("<img src=x").first.is_visible()
    somebody.go("/run/%3Cimg%20src%3Dx%20onerror%3Ddocument.title%3D1%3E")
    assert page.get_by_role("alert").get_by_text("there is no run").is_visible()


def test_dark_and_light_are_kept(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/plain?part=messages")
    before = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Theme").click()
    somebody.ready()
    after = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert before != after
    somebody.go("/run/plain?part=network")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == after
    page.get_by_role("button", name="Theme").click()


def test_who_has_chosen_no_theme_has_the_systems_also_when_it_changes(somebody: Visitor) -> None:
    """The first visit stored the theme that the system had then, and later ones kept it."""
    page = somebody.page

    def wears(theme: str) -> None:
        page.wait_for_function("(theme) => document.documentElement.dataset.theme === theme", arg=theme)

    page.emulate_media(color_scheme="light")
    somebody.go("/")
    page.evaluate("() => window.localStorage.removeItem('theme')")
    somebody.go("/")
    wears("light")
    page.emulate_media(color_scheme="dark")
    wears("dark")
    somebody.go("/")
    wears("dark")
    # One's own choice stays, whatever the system does; to go back to the system's is no choice.
    page.get_by_role("button", name="Theme").click()
    wears("light")
    somebody.ready()
    page.emulate_media(color_scheme="light")
    page.emulate_media(color_scheme="dark")
    somebody.go("/")
    wears("light")
    page.get_by_role("button", name="Theme").click()
    wears("dark")
    somebody.ready()
    page.emulate_media(color_scheme="light")
    wears("light")


def test_what_still_runs_is_not_struck_out(somebody: Visitor) -> None:
    struck_out = {verdict: somebody.page.evaluate(f"(params) => Boolean({STRUCK_OUT})", {"data": {"verdict": verdict}})
                  for verdict in ("valid", "running", "not valid", "incomplete")}
    assert struck_out == {"valid": False, "running": False, "not valid": True, "incomplete": True}


def test_all_of_it_by_keyboard(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/plain?part=messages")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the page"
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => (document.activeElement.getAttribute('aria-label') || "
                                  "document.activeElement.textContent || '').trim()"))
    assert {*PARTS, "Export screen", "Theme", "Messages by QoS, table", "Messages by QoS as CSV"} <= reached


def test_a_run_is_opened_from_the_table_by_keyboard(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/?search=plain")
    page.get_by_text("1 shown").wait_for()
    page.get_by_role("columnheader", name="run", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.activeElement.matches('.ag-cell[col-id=run]')")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="plain", level=1).wait_for()
    somebody.ready()


# Labels that stand neither on one line with their field nor right above it; figures that reach into their links.


def test_p99_is_in_sight_on_each_part_of_a_run(somebody: Visitor) -> None:
    for part in PARTS:
        somebody.go("/run/plain")
        somebody.page.get_by_role("link", name=part, exact=True).click()
        somebody.ready()
        words = somebody.page.locator("p.worst")
        assert re.search(r"(p99|worst of [\d,]+:) [\d.,]+ ms, all delivered", words.inner_text()), part
        box = words.bounding_box()
        assert box is not None and box["y"] + box["height"] < 800, part


def test_the_name_of_a_run_leaves_room_for_p99_beside_it_on_a_narrow_screen(somebody: Visitor) -> None:
    page = somebody.page
    page.set_viewport_size({"width": 400, "height": 800})
    try:
        somebody.go("/")
        # A name of 150 px, the box to select it (50 px), p99 (132 px).
        page.wait_for_function("""() => {
            const head = document.querySelector('.ag-header-cell[col-id="run"]');
            return head && head.getBoundingClientRect().right <= 400 - 50 - 132;
        }""")
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})
