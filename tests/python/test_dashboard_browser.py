"""The dashboard in a browser, through what a visitor sees: labels, headings, links, tables."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards import HOSTILE, WITHIN_MS, Visitor, dashboard, simulate, visitor
from mqttlab import figures as figures_package
from mqttlab.catalog import Catalog, url_for

PARTS = ("Messages", "Over time", "Where the time went", "Network", "Message by message", "Files and provenance")
# In widgets whose markup is not ours.
WIDGETS = (".ag-root-wrapper", ".leaflet-container", ".js-plotly-plot", ".dash-input-container",
           ".dash-dropdown-wrapper", ".dash-dropdown", ".dash-options-list")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs")
    simulate(directory, "plain", qos=2, rate="10 /s")
    simulate(directory, "hostile", topic=HOSTILE, rate="5 /s", description=HOSTILE)
    simulate(directory, "images", payload="image", rate="10 /s", recording={"payloads": True})
    return directory


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
    # The first is drawn as SVG here, the other by reports alone: both need WebGL.
    assert {"scatter", "bar", "box", "heatmap"} <= made and made - drawn <= {"scattergl", "parcoords"}
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
    somebody.go("/run/plain")
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
    somebody.go("/run/plain")
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
    somebody.go("/run/plain")
    panel = page.locator(".figure-panel").filter(has=page.get_by_role("heading", name="Latency, cumulative"))
    for ground in ("rgb(255, 255, 255)", "rgb(24, 33, 43)"):
        with page.expect_download() as found:
            panel.get_by_text("SVG", exact=True).click()
        picture = Path(found.value.path()).read_text(encoding="utf-8")
        assert "Latency, cumulative" in picture and f"fill: {ground}; fill-opacity: 1;" in picture
        page.get_by_role("button", name="Dark or light").click()
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
    somebody.go("/run/plain")
    before = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark or light").click()
    somebody.ready()
    after = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert before != after
    somebody.go("/run/plain?part=network")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == after
    page.get_by_role("button", name="Dark or light").click()


def test_all_of_it_by_keyboard(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/plain")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the page"
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => (document.activeElement.getAttribute('aria-label') || "
                                  "document.activeElement.textContent || '').trim()"))
    assert {*PARTS, "Export screen", "Dark or light", "Messages by QoS, table", "Messages by QoS as CSV"} <= reached


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
APART = """() => [...document.querySelectorAll("#page .form-row > label[for]")].filter((label) => {
  const found = document.getElementById(label.htmlFor);
  const field = found && (found.closest(".dash-input-container") || found);
  if (!field || !label.offsetParent || !field.offsetParent) return false;
  const [at, of] = [label.getBoundingClientRect(), field.getBoundingClientRect()];
  const beside = at.top < of.bottom && of.top < at.bottom;
  return !beside && !(of.top - at.bottom < 30 && at.top < of.top && Math.abs(at.left - of.left) < 30);
}).map((label) => label.textContent)"""
OVER = """() => [...document.querySelectorAll(".figure-panel")].filter((panel) => {
  const drawn = panel.querySelector(".main-svg");
  return drawn && drawn.getBoundingClientRect().bottom > panel.querySelector(".links").getBoundingClientRect().top + 1;
}).map((panel) => panel.querySelector("h3").textContent)"""


@pytest.mark.parametrize("path", [
    "/", "/?group=name", "/?first=plain", "/configure", "/live", "/doctor", "/compare",
    "/compare?first=plain&second=hostile", "/map?run=plain", "/experiments", "/studies", "/study/andersen2021",
    "/captures", "/run/plain", "/run/none",
    "/run/plain?part=recent", "/run/images?part=recent", "/run/plain?part=files", "/run/plain?part=instant",
    "/run/plain?part=time", "/run/plain?part=parts", "/run/plain?part=network", "/run/plain?part=map",
    "/run/plain?part=connections&connection=0", "/run/plain?part=message&message=0:5@1"])
def test_no_page_is_wider_than_the_screen_and_none_breaks_a_rule_of_accessibility(
        somebody: Visitor, path: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="make setup-test").Axe()
    page = somebody.page
    try:
        somebody.turn(path)
        for width in (1280, 400):
            page.set_viewport_size({"width": width, "height": 800})
            # Figures take their new width a moment later.
            page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
            assert page.evaluate(APART) == [] and page.evaluate(OVER) == [], width
            found = axe.run(page, context={"exclude": [[widget] for widget in WIDGETS]}, options={
                "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).response["violations"]
            assert [(width, one["id"], one["nodes"][0]["html"][:120]) for one in found
                    if one["impact"] in ("serious", "critical")] == []
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


def test_a_scenario_is_configured_refused_started_and_watched_to_its_end(runs: Path, somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/configure")
    scenario = page.get_by_label("Scenario (TOML)")
    page.get_by_label("simulated").check()
    page.get_by_label("Duration", exact=True).fill("3 parsecs")
    page.get_by_text("parsecs\" is not a unit").first.wait_for()
    assert page.get_by_role("button", name="Start").is_disabled()
    page.get_by_label("Duration", exact=True).fill("3 s")
    page.get_by_text("This can be run.").wait_for()
    scenario.fill(scenario.input_value().replace("count = 9", "count = 2"))
    page.wait_for_function("() => document.getElementById('draft-nodes').value === '2'")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("link", name="Watch it live").click()
    finished = page.get_by_role("link", name="from-the-dashboard: complete")
    finished.wait_for()
    page.reload()
    finished.click()
    page.get_by_role("heading", name="from-the-dashboard", level=1).wait_for()
    somebody.ready()
    assert page.get_by_text("Valid", exact=True).is_visible()


def test_numbers_that_are_not_renewed_are_said_to_be_old(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/live")
    page.get_by_text("0 running, 0 waiting.").wait_for()
    assert not page.get_by_role("alert").is_visible()
    page.route("**/data/live.json", lambda route: route.abort())
    page.get_by_role("alert").get_by_text(re.compile(r"does not answer: what stands here is \d+ s old")).wait_for()
    page.unroute("**/data/live.json")
    page.route("**/data/live.json", lambda route: route.fulfill(status=401))
    page.get_by_role("alert").get_by_text("not let in any more").wait_for()
    page.unroute("**/data/live.json")
    page.get_by_role("alert").wait_for(state="hidden")
    somebody.problems.clear()


def test_a_library_that_has_not_come_is_asked_for_again(somebody: Visitor) -> None:
    page = somebody.page.context.new_page()
    page.route("**/vendor/leaflet.js", lambda route: route.abort())
    page.goto(f"{somebody.base}/map?run=plain")
    page.wait_for_selector("body[data-ready=yes]", state="attached")
    page.unroute("**/vendor/leaflet.js")
    page.evaluate("path => window.mqttlab.go(path)", "/map?run=images")
    page.locator(".map-place[data-drawn]").wait_for()
    page.close()


def test_when_a_run_began_is_read_to_the_second(somebody: Visitor) -> None:
    somebody.go("/")
    moments = somebody.page.locator(".ag-cell[col-id=started]").filter(has_text="20")
    assert moments.first.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


def test_a_search_is_followed_by_what_stands_around_the_table_and_the_table_stays(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/")
    # Other tests make runs, too.
    all_shown = re.compile(r"^[2-9] shown$")
    table = page.locator(".runs-grid")
    table.evaluate("table => { table.dataset.same = 'yes'; }")
    page.get_by_label("Search").press_sequentially("plai")
    page.get_by_text("1 shown").wait_for()
    page.keyboard.press("n")
    # Whoever leaves the field has the address at once.
    page.get_by_label("Name", exact=True).focus()
    assert page.evaluate("window.location.search") == "?search=plain"
    somebody.ready()
    assert table.get_attribute("data-same") == "yes" and page.get_by_label("Search").input_value() == "plain"
    assert page.get_by_role("gridcell", name="plain", exact=True).count()
    told = page.locator(".plot").first.get_attribute("data-source")
    assert told is not None and "search=plain" in told
    page.get_by_role("link", name="Only what differs").click()
    page.wait_for_url(re.compile(r"search=plain&columns=different"))
    somebody.ready()
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_text(all_shown).wait_for()
    somebody.ready()
    # Back is a page that nobody types in: all of it comes.
    page.go_back()
    page.get_by_text("1 shown").wait_for()
    somebody.ready()
    page.get_by_label("Search").fill("")
    page.get_by_text(all_shown).wait_for()
    somebody.ready()
    assert somebody.problems == []


def test_the_address_keeps_how_the_table_is_sorted_filtered_and_drawn(runs: Path, somebody: Visitor) -> None:
    page = somebody.page
    with Catalog.open(url_for(runs)) as catalog:
        catalog.scan([runs])
    somebody.go("/?search=sim")
    names = page.locator(".ag-pinned-left-cols-container .ag-row a")
    heading = page.get_by_role("columnheader", name="run", exact=True)

    def first() -> str:
        somebody.ready()
        return page.locator(".ag-pinned-left-cols-container .ag-row[row-index='0'] a").inner_text()

    def drawn() -> str:
        somebody.ready()
        return page.get_by_role("heading", name=re.compile(" over ")).inner_text()

    for asked in ("ascending", "descending"):
        heading.click()
        page.locator(f".ag-header-cell[aria-sort={asked}]").wait_for()
    last = first()
    page.get_by_role("button", name=re.compile("^y")).click()
    page.get_by_role("option", name="delivered", exact=True).click()
    page.get_by_role("heading", name=re.compile("^delivered over ")).wait_for()
    assert last == max(names.all_inner_texts()) and "sort=-run" in page.url and "y=messages_delivered" in page.url
    page.reload()
    assert first() == last and drawn().startswith("delivered over ")
    # Links that were made before the table was sorted keep it, and so does a view.
    page.get_by_role("link", name="Only what differs").click()
    page.wait_for_url(re.compile("columns=different"))
    assert first() == last and drawn().startswith("delivered over ")
    somebody.go("/?filter=" + '{"run":{"filterType":"text","type":"contains","filter":"lai"}}')
    page.get_by_text("1 shown").wait_for()
    assert first() == "plain" and names.count() == 1
    for wrong in ("{", "[3]", '{"run":3,"none":{}}'):
        somebody.go(f"/?filter={wrong}&sort=none,-&x=none")
        assert first() and names.count() >= 3, wrong
    page.get_by_role("link", name="Runs", exact=True).click()
    page.wait_for_url(f"{somebody.base}/")
    assert somebody.problems == []


def test_a_run_is_tagged_grouped_found_again_and_run_again(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/plain")
    page.get_by_label("Tag", exact=True).fill("kept=yes")
    page.get_by_role("button", name="Add the tag").click()
    page.get_by_role("button", name="Take the tag kept away").wait_for()
    page.get_by_label("Note").fill(HOSTILE)
    page.get_by_role("button", name="Add the note").click()
    page.get_by_text(HOSTILE).first.wait_for()
    assert "broken-into" not in page.title()
    somebody.go("/")
    page.get_by_label("Search").fill("tag.kept=yes")
    page.get_by_text("1 shown").wait_for()
    page.get_by_role("link", name="plain").wait_for()
    page.get_by_label("Name", exact=True).fill("mine")
    page.get_by_role("button", name="Save this view").click()
    page.get_by_role("link", name="mine", exact=True).wait_for()
    somebody.go("/?group=backend,qos")
    groups = page.get_by_role("region", name="Groups of runs, table")
    assert groups.get_by_role("row").count() >= 2
    assert groups.get_by_role("columnheader", name="n", exact=True).is_visible()
    page.get_by_role("link", name="mine", exact=True).click()
    page.get_by_text("1 shown").wait_for()
    # What is selected drives the figures: all deliveries of one run are drawn, too.
    page.locator(".ag-cell[col-id=backend]").first.click()
    page.get_by_text("1 selected.").wait_for()
    page.get_by_role("heading", name="Latency, tail").wait_for()


def test_a_payload_is_looked_at(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/run/images?part=recent")
    picture = page.get_by_alt_text("Picture in the payload").first
    page.wait_for_function("() => document.querySelector('.payload img').naturalWidth === 20")
    assert picture.is_visible()
    row = page.get_by_role("region", name="The latest messages, table").get_by_role("row").nth(1)
    row.get_by_text("JSON, a picture").click()
    assert '"type": "image"' in row.inner_text()
    with page.expect_download() as found:
        row.get_by_role("link", name="The payload as a file").click()
    assert Path(found.value.path()).read_bytes().startswith(b'{"id":"mqttlab:')
    page.get_by_role("link", name="messages of subscribers-0").click()
    page.wait_for_url(re.compile("client=subscribers-0"))
    assert somebody.problems == []


def test_groups_of_runs_are_compared_from_the_table_of_runs(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/?group=name")
    page.get_by_role("region", name="Groups of runs, table").get_by_role("link", name="compare group 2").click()
    page.get_by_role("heading", name="Compare", level=1).wait_for()
    assert "name=" in page.get_by_label("First: or all that are found by").input_value()
    page.get_by_role("region", name="The scenarios differ in, table").get_by_role("row").nth(1).wait_for()
    page.get_by_role("heading", name=re.compile("at each QoS")).first.wait_for()
    somebody.ready()
    page.get_by_text(re.compile(r"^All \d+ metrics$")).click()
    every = page.get_by_role("region", name="All metrics, table")
    # It is built when it is opened.
    every.locator("tbody tr").first.wait_for()
    many = every.locator("tbody tr:visible").count()
    every.get_by_label("All metrics: only rows with").fill("p99 at QoS")
    assert 0 < every.locator("tbody tr:visible").count() < many
    # The two sides the other way round, as addresses say it.
    before = page.get_by_label("First: or all that are found by").input_value()
    page.get_by_role("link", name="Change sides").click()
    page.wait_for_function("before => document.getElementById('compare-second-search').value === before", arg=before)
    page.get_by_label("First: or all that are found by").fill("name=nothing-of-this-name")
    page.get_by_role("alert").get_by_text("no run is found").wait_for()
    somebody.go("/")
    # Rows that have come: those that are still asked for say nothing of themselves.
    cells = page.locator(".ag-cell[col-id=backend]").filter(has_text="sim")
    cells.nth(0).click()
    page.get_by_text("1 selected.").wait_for()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("The first side has 1 run:").wait_for()
    somebody.ready()
    cells.nth(1).click()
    page.locator(".ag-row-selected[row-index='1']").first.wait_for()
    page.get_by_text("1 selected.").wait_for()
    page.get_by_role("button", name="Compare with the first side").click()
    page.get_by_role("heading", name="The scenarios differ in").wait_for()
    somebody.problems.clear()


def test_an_experiment_is_started_and_its_matrix_fills(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/configure")
    page.get_by_label("simulated").check()
    page.get_by_label("Duration", exact=True).fill("1 s")
    page.get_by_label("Nodes at each level").fill("1")
    page.get_by_text("This can be run.").wait_for()
    page.get_by_text("As an experiment").click()
    text = page.get_by_label("Experiment (TOML)")
    small = text.input_value().replace('"from-the-dashboard"', '"small"').replace("repetitions = 3", "repetitions = 1")
    text.fill(small.replace('"1 s", "2 s"', '"100 ms", "200 ms"'))
    page.get_by_role("button", name="Start the experiment").click()
    page.get_by_role("link", name="Watch it live").click()
    page.get_by_role("heading", name="Live", level=1).wait_for()
    # Before its first run there is no such experiment.
    matrix = page.get_by_role("region", name="Design: points and blocks, table")
    deadline = time.monotonic() + WITHIN_MS / 1000
    while matrix.get_by_role("link", name="✓ done").count() < 4:
        assert time.monotonic() < deadline
        somebody.go("/experiment/small")
    matrix.get_by_role("link", name="✓ done").first.click()
    page.get_by_role("heading", name="Messages by QoS").wait_for()


def test_a_capture_is_dropped_and_read(somebody: Visitor, tmp_path: Path) -> None:
    page = somebody.page
    file = tmp_path / "messages.csv"
    file.write_text("message,publisher,subscriber,topic,qos,payload_bytes,sent_ms,received_ms\n"
                    "1,a,b,t,1,100,0,10\n2,a,b,t,1,100,100,125\n", encoding="utf-8")
    other = tmp_path / "picture.png"
    other.write_bytes(b"\x89PNG....")
    somebody.go("/captures")
    page.get_by_label("Drop files here, or choose them").set_input_files([file, other])
    page.get_by_text("neither a capture").wait_for()
    page.get_by_role("link", name=re.compile("^messages-")).click()
    page.get_by_role("heading", name="messages", level=1).wait_for()
    somebody.ready()
    assert page.get_by_role("region", name="Messages by QoS, table").get_by_role("cell", name="2").first.is_visible()
    somebody.problems.clear()


def test_a_field_of_the_form_and_the_text_follow_each_other(somebody: Visitor) -> None:
    page = somebody.page
    somebody.go("/configure")
    section = page.locator(".form-section[data-place=phases]")
    section.get_by_label("cool down").fill("4 parsecs")
    section.get_by_label("cool down").press("Tab")
    section.get_by_role("alert").filter(has_text="parsecs").wait_for()
    assert page.get_by_role("button", name="Start", exact=True).is_disabled()
    section.get_by_label("cool down").fill("4 s")
    section.get_by_label("cool down").press("Tab")
    page.get_by_text("This can be run.").wait_for()
    text = page.get_by_label("Scenario (TOML)")
    assert 'cool_down = "4 s"' in text.input_value()
    # A text that is no TOML yet is left alone, and no field takes anything till it is one again.
    before = text.input_value()
    text.fill(before + "\n[half")
    page.get_by_text("This cannot be run.").wait_for()
    assert page.get_by_label("Duration", exact=True).is_disabled() and section.get_by_label("cool down").is_disabled()
    text.fill(before)
    page.get_by_text("This can be run.").wait_for()
    assert page.get_by_label("Duration", exact=True).is_enabled()
    protocol = page.get_by_role("button", name=re.compile("^Protocol"))
    protocol.focus()
    page.keyboard.press("Enter")
    page.get_by_role("option", name="ZeroMQ", exact=True).click()
    page.wait_for_function("() => document.getElementById('toml').value.includes('role = \"zeromq\"')")
    somebody.ready()
    # The address has all of it: a reload shows the same.
    page.reload()
    somebody.ready()
    assert 'role = "zeromq"' in text.input_value() and 'cool_down = "4 s"' in text.input_value()
    text.fill(text.input_value().replace('cool_down = "4 s"', 'cool_down = "6 s"'))
    page.wait_for_function("() => document.getElementById('field-phases.cool_down').value === '6 s'")
    assert page.get_by_alt_text("Drawing: ").is_visible()
    page.get_by_text("As an experiment").click()
    page.get_by_role("button", name="Check the experiment").click()
    page.get_by_text("This experiment can be run.").wait_for()
    assert page.get_by_role("region", name="Design, table").get_by_role("row").count() == 5
