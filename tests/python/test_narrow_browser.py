"""A fleet on links of its own and an experiment in a browser, as wide as a desk's screen and as a telephone's: nothing
that is looked at is cut, and no figure gives its room to its legend.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from dashboards import Visitor, dashboard, visitor
from mqttlab.cli.main import main
from mqttlab.dashboard import run_figures
from mqttlab.recording import Recording
from mqttlab.report.html import page as report_of
from test_analysis import EXPERIMENT, SCENARIO

FLEET = """name = "fleet"
backend = "sim"
phases = { duration = "4 s" }
networks = [{ between = ["field", "broker"], link = "each", up = { rate = "1 Mbit/s" }, down = { rate = "1 Mbit/s" } }]
[[groups]]
name = "meters"
host = "field"
count = 60
publish = { topic = "m/{client}", qos = 1, payload = "50 B", interval = "1 s" }
[[groups]]
name = "desk"
host = "broker"
subscribe = [{ filter = "m/#", qos = 1 }]
"""
LINKS = "(8 of 121 links drawn)"
# Of each figure of links its title, how many names its legend has, and how high its axes are.
DRAWN = """() => [...document.querySelectorAll(".figure-panel")].map((panel) => [panel.querySelector("h3").textContent,
  panel]).filter(([title]) => title.startsWith("Links")).map(([title, panel]) => [title,
  panel.querySelectorAll(".legend .traces").length, panel.querySelector(".nsewdrag").getBoundingClientRect().height])"""
# What of a table of sentences stands beyond the panel around it.
BEYOND = """() => [...document.querySelectorAll(".wraps td, .wraps th")].filter((cell) => {
  const [of, at] = [cell.closest(".panel"), cell].map((one) => one.getBoundingClientRect());
  return at.width && (at.right > of.right || at.left < of.left);
}).map((cell) => cell.textContent)"""
# Of figures the words that their picture cuts.
CUT = """() => [...document.querySelectorAll(".js-plotly-plot .main-svg text")].filter((text) => {
  const [of, at] = [text.closest("svg"), text].map((one) => one.getBoundingClientRect());
  return at.width && !text.closest(".legend") && (at.left < of.left - 1 || at.right > of.right + 1 ||
    at.top < of.top - 1 || at.bottom > of.bottom + 1);
}).map((text) => text.textContent)"""
# Tables that are wider than their place, and do not show that they are.
UNSEEN = """() => [...document.querySelectorAll("#page table")].map((table) => table.parentElement).filter((place) =>
  place.scrollWidth > place.clientWidth && !(getComputedStyle(place).overflowX === "auto" &&
    getComputedStyle(place).backgroundAttachment === "local, local, scroll, scroll")).length"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("narrow")
    for name, text in (("fleet", FLEET), ("line", SCENARIO), ("small", EXPERIMENT)):
        (directory / f"{name}.toml").write_text(text, encoding="utf-8")
    for verb, name in (("run", "fleet"), ("experiment", "small")):
        done = CliRunner().invoke(main, [verb, str(directory / f"{name}.toml"), "--runs", str(directory / "runs")])
        assert done.exit_code == 0, done.output
    return directory / "runs"


@pytest.fixture(scope="module")
def fleet(runs: Path) -> Path:
    return next(runs.glob("fleet-*"))


@pytest.fixture(scope="module")
def somebody(runs: Path) -> Iterator[Visitor]:
    with dashboard(runs) as served, visitor(served) as found:
        yield found


def test_of_many_links_the_busiest_are_drawn_and_titles_say_so(fleet: Path) -> None:
    recording = Recording.open(fleet)
    for name in ("link-utilisation", "link-throughput"):
        figure = run_figures.named(name)
        assert figure is not None
        drawn, closer = figure.draw(recording, None), figure.draw(recording, (1.0, 2.0))
        assert drawn and closer and len(drawn.data) == 8 and drawn.layout["title"]["text"].endswith(LINKS)
        # Those of the whole run, wherever one looks.
        assert {part.name for part in closer.data} <= {part.name for part in drawn.data}
    assert report_of(recording).count(LINKS) == 2


@pytest.mark.parametrize("width", [1280, 400])
def test_a_figure_of_many_links_has_room(somebody: Visitor, fleet: Path, width: int) -> None:
    page = somebody.page
    page.set_viewport_size({"width": width, "height": 900})
    somebody.go(f"/run/{fleet.name}?part=time")
    page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
    found = page.evaluate(DRAWN)
    assert len(found) == 2, json.dumps(found)
    for title, names, height in found:
        assert title.endswith(LINKS) and names == 8 and height > 110


@pytest.mark.parametrize("width", [1280, 400])
def test_sentences_of_tables_are_read_without_scrolling(somebody: Visitor, width: int) -> None:
    page = somebody.page
    page.set_viewport_size({"width": width, "height": 900})
    for path in ("/experiments", "/studies", "/doctor"):
        somebody.go(path)
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
        assert page.locator(".wraps td").count() > 3 and page.evaluate(BEYOND) == [], path


@pytest.mark.parametrize("width", [1280, 400])
def test_a_table_that_scrolls_shows_that_it_does(somebody: Visitor, fleet: Path, width: int) -> None:
    page = somebody.page
    page.set_viewport_size({"width": width, "height": 900})
    for path in (f"/run/{fleet.name}?part=messages", f"/run/{fleet.name}?part=network", "/experiment/small"):
        somebody.go(path)
        assert page.evaluate(UNSEEN) == 0, path
    assert somebody.problems == []


def test_no_word_of_a_figure_is_cut_on_a_telephone(somebody: Visitor, fleet: Path) -> None:
    page = somebody.page
    page.set_viewport_size({"width": 400, "height": 900})
    for part in ("messages", "time", "parts", "network"):
        somebody.go(f"/run/{fleet.name}?part={part}")
        page.wait_for_function("() => document.documentElement.scrollWidth <= 400")
        assert page.locator(".js-plotly-plot .main-svg text").count() > 10 and page.evaluate(CUT) == [], part
