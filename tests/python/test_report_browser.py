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
# Whether a figure has the words of the dark ground.
IS_DARK = "getComputedStyle(document.querySelector('.js-plotly-plot .xtick text')).fill.includes('230')"


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


def test_dark_is_what_the_system_asks_for_and_paper_stays_light(page: Page) -> None:
    def colours() -> tuple[int, int, int]:
        """How light ground, panel and a figure's words are, of 255."""
        return tuple(page.evaluate(
            "() => [[document.documentElement, 'backgroundColor'], "
            "[document.querySelector('section'), 'backgroundColor'],"
            "[document.querySelector('.js-plotly-plot .xtick text'), 'fill']].map(([one, what]) =>"
            "Math.max(...getComputedStyle(one)[what].match(/\\d+/g).slice(0, 3).map(Number)))"))

    page.set_viewport_size(DESK)
    ground, panel, words = colours()
    assert ground > 230 and panel > 230 and words < 100
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => {IS_DARK}")
    ground, panel, words = colours()
    assert ground < 60 and panel < 60 and words > 200
    # Lines that are black on white, and blue ones, have colours of their own there.
    lines = page.evaluate("() => [...document.querySelectorAll('.js-plotly-plot .scatterlayer path.js-line')].map("
                          "one => getComputedStyle(one).stroke)")
    assert lines and not {"rgb(0, 0, 0)", "rgb(0, 114, 178)"} & set(lines)
    page.emulate_media(color_scheme="dark", media="print")
    page.wait_for_function(f"() => !{IS_DARK}")
    ground, panel, words = colours()
    assert ground > 230 and panel > 230 and words < 100
    page.emulate_media(color_scheme="light", media="screen")


def test_no_figure_begins_with_an_empty_band(page: Page) -> None:
    page.set_viewport_size(DESK)
    # From the title to the axes, or to the legend that stands above them.
    bands = page.evaluate(
        "() => [...document.querySelectorAll('.figure')].map(one => { const under = one.querySelector('h3')"
        ".getBoundingClientRect().bottom; const drawn = [...one.querySelectorAll('.legend, .bglayer, .xaxislayer-above,"
        " .yaxislayer-above, .gridlayer')].filter(part => part.getBoundingClientRect().height);"
        "return Math.min(...drawn.map(part => part.getBoundingClientRect().top)) - under })")
    assert len(bands) > 5 and max(bands) < 45, bands


def test_no_legend_reaches_into_the_axes_when_a_figure_becomes_wider(page: Page) -> None:
    page.set_viewport_size(TELEPHONE)
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=TELEPHONE["width"])
    # So many words that they take several rows on a telephone.
    page.evaluate("() => Plotly.addTraces(document.querySelector('.js-plotly-plot'), ['frames', 'IP packets', "
                  "'transport payload', 'message payload'].map(name => ({x: [0], y: [1], name, showlegend: true})))")
    page.set_viewport_size(DESK)
    # What the pointer is over is the ground within the axes.
    page.wait_for_function(
        "() => { const one = document.querySelector('.js-plotly-plot'); const box = what => one.querySelector(what)"
        ".getBoundingClientRect(); return box('.nsewdrag').width > 300 && "
        "box('.legend .bg').bottom - box('.nsewdrag').top < 3 }", timeout=10_000)


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
