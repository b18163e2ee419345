"""The ladder of a message in a browser: no label is cut, however long it took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dashboards import chromium
from mqttlab.explanation import Story, ladder, write
from mqttlab.explanation.story import Happening
from test_explanation import lost, story

pytest.importorskip("playwright.sync_api", reason="Playwright is missing: make setup-test")

from playwright.sync_api import Page, sync_playwright

SECOND = 10**9
# Of each text, what stands outside of the picture at its left and at its right, in pixels.
OUTSIDE = """() => { const svg = document.querySelector('figure svg');
    const [, , width] = svg.getAttribute('viewBox').split(' ');
    return [...svg.querySelectorAll('text')].map(text => [text.getBBox(), text.textContent])
        .filter(([box]) => box.x < 0 || box.x + box.width > Number(width)).map(([, words]) => words); }"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def late(told: Story, seconds: int) -> Story:
    """A story whose frames come so long after the intended time, with a long remark at either end."""
    words = "lost its connection: no PINGRESP in time, and no FIN was received"
    remarks = tuple(Happening(at_ns=told.ends_ns, host=told.names[host], text=words)
                    for host in ("publisher_host", "subscriber_host"))
    return replace(told, begins_ns=told.begins_ns - seconds * SECOND, happenings=remarks)


@pytest.mark.parametrize(("seconds", "first"), [(0, "+210.000"), (9, "+9210.000"), (119, "+119.210000 s"),
                                                (1084, "+1084.210000 s"), (90_000, "+90000.210000 s")])
def test_no_label_of_a_ladder_is_cut(page: Page, tmp_path: Path, seconds: int, first: str) -> None:
    told = late(story(lost().write(tmp_path)), seconds)
    assert any(line.lstrip().startswith(first) for line in ladder(told)), ladder(told)
    written, _ = write(told, tmp_path, "explain-0-0")
    page.goto(written.as_uri())
    assert page.evaluate(OUTSIDE) == []
    unit = "s" if seconds >= 10 else "ms"
    texts = page.eval_on_selector_all("figure svg text", "all => all.map(text => text.textContent)")
    assert f"time ({unit})" in texts and first.removesuffix(" s") in texts


@pytest.mark.parametrize("width", [1280, 1000, 400])
def test_a_ladder_is_as_wide_as_the_page_until_it_could_not_be_read(page: Page, tmp_path: Path, width: int) -> None:
    told = replace(late(story(lost().write(tmp_path)), 1084), happenings=())
    written, _ = write(told, tmp_path, "explain-0-0")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(written.as_uri())
    own, shown, room, scrolled, beyond = page.evaluate("""() => { const [figure, svg] = ["figure", "figure svg"].map(
        (one) => document.querySelector(one)); const style = getComputedStyle(figure);
        return [Number(svg.getAttribute("width")), svg.getBoundingClientRect().width,
          figure.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight),
          figure.scrollWidth > figure.clientWidth,
          document.documentElement.scrollWidth > document.documentElement.clientWidth]; }""")
    assert shown == pytest.approx(min(own, max(room, 0.8 * own)), abs=1)
    assert scrolled == (room < 0.8 * own - 1) and not beyond
    # Its left end, which a telephone shows, has the first line, and no empty strip before it.
    axis, line = page.evaluate("""() => { const svg = document.querySelector("figure svg");
        return [svg.querySelector("text").getBoundingClientRect().right,
          Math.min(...[...svg.querySelectorAll("line")].map((one) => one.getBoundingClientRect()).filter(
            (one) => one.width < 3 && one.height > 100).map((one) => one.left))]; }""")
    assert 0 < line - axis < 60
    assert page.eval_on_selector_all("figure title", "all => all.every(one => !one.textContent.endsWith(' ms'))")
    # The shadow at an edge, beyond which there is more of it, is seen through the picture.
    assert page.evaluate("getComputedStyle(document.querySelector('figure svg')).mixBlendMode") == "multiply"
