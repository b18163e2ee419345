"""The page of a report in a browser, as wide as a desk's screen and as a telephone's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboards import chromium
from mqttlab.recording import Recording
from mqttlab.report import write_html
from recordings import Message, packet, write

pytest.importorskip("playwright.sync_api", reason="Playwright is missing: make setup-test")

from playwright.sync_api import Page, ViewportSize, sync_playwright

DESK: ViewportSize = {"width": 1280, "height": 900}
TELEPHONE: ViewportSize = {"width": 400, "height": 800}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    directory = tmp_path_factory.mktemp("report")
    rows = [Message(i, 5.0 + i % 7, qos=i % 3) for i in range(90)]
    run = write(directory / "run", rows, packets=[packet(20 * i) for i in range(50)])
    written = write_html(Recording.open(run), directory / "report.html")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        opened = browser.new_page(viewport=DESK)
        problems: list[str] = []
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.goto(written.as_uri())
        opened.wait_for_selector(".js-plotly-plot .main-svg")
        yield opened
        assert problems == []
        browser.close()


@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, TELEPHONE])
def test_the_p99_is_on_the_first_screen(page: Page, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    page.evaluate("() => scrollTo(0, 0)")
    shown = page.get_by_text("p99", exact=False).first.bounding_box()
    assert shown is not None and shown["y"] >= 0 and shown["y"] + shown["height"] < size["height"]
    assert shown["x"] >= 0 and shown["x"] + shown["width"] <= size["width"]


def test_a_lone_figure_takes_its_whole_row(page: Page) -> None:
    page.set_viewport_size(DESK)
    row, drawn = page.evaluate(
        "() => { const all = [...document.querySelectorAll('.figures')].find(one => one.children.length == 3);"
        "return [all.clientWidth, [...all.children].map(one => one.getBoundingClientRect().width)] }")
    assert drawn[0] == drawn[1] < row / 2
    assert drawn[2] == pytest.approx(row, abs=1)


def test_a_wide_table_scrolls_in_itself_and_shows_that_it_does(page: Page) -> None:
    page.set_viewport_size(TELEPHONE)
    # Figures are drawn anew.
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=TELEPHONE["width"])
    tables = page.evaluate(
        "() => [...document.querySelectorAll('table')].map(table => { const box = table.parentElement;"
        "const style = getComputedStyle(box); return [box.scrollWidth > box.clientWidth, style.overflowX,"
        "style.backgroundImage.split('linear-gradient').length - 1, style.backgroundAttachment] })")
    wide = [how for is_wide, *how in tables if is_wide]
    # Two shadows stay at the edges; what covers them moves with the table, and is away where there is more of it.
    assert wide and all(how == ["auto", 4, "local, local, scroll, scroll"] for how in wide)
