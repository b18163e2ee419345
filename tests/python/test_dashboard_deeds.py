"""What a visitor of the dashboard does: configures, starts, searches, tags, compares, drops a file."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboards import HOSTILE, WITHIN_MS, Visitor, dashboard, three_runs, visitor
from mqttlab.catalog import Catalog, url_for


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return three_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def somebody(runs: Path) -> Iterator[Visitor]:
    with dashboard(runs) as served, visitor(served) as found:
        yield found


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
    page.set_default_timeout(WITHIN_MS)
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
    page.get_by_role("link", name="Swap", exact=True).click()
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
    page.get_by_label("Clients that publish").fill("1")
    page.get_by_text("This can be run.").wait_for()
    page.get_by_text("As an experiment").click()
    text = page.get_by_label("Experiment (TOML)")
    small = text.input_value().replace('"from-the-dashboard"', '"small"').replace("repetitions = 3", "repetitions = 1")
    text.fill(small.replace('"1 s", "2 s"', '"100 ms", "200 ms"'))
    page.get_by_role("button", name="Start the experiment").click()
    page.get_by_role("link", name="Watch it live").click()
    page.get_by_role("heading", name="Live", level=1).wait_for()
    # Before its first run there is no such experiment. Where there is an answer, the design is folded.
    matrix = page.get_by_role("region", name="Design: points and blocks, table")
    deadline = time.monotonic() + WITHIN_MS / 1000
    while matrix.get_by_role("link", name="✓ done").count() < 4:
        assert time.monotonic() < deadline
        somebody.go("/experiment/small")
        if (fold := page.locator("summary", has_text="Design:")).count():
            fold.first.click()
    matrix.get_by_role("link", name="✓ done").first.click()
    page.get_by_role("link", name="Messages", exact=True).wait_for()


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
    # The list is drawn anew again and again, and on a busy machine it never stands still for as long as a click wants.
    page.get_by_role("link", name=re.compile("^messages-")).dispatch_event("click")
    page.get_by_role("heading", name="messages", level=1).wait_for()
    page.get_by_role("link", name="Messages", exact=True).click()
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
    protocol = page.get_by_role("button", name=re.compile("^QoS, or another protocol"))
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
