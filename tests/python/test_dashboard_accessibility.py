"""Every page of the dashboard, wide and narrow, fits the screen and breaks no rule of accessibility."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboards import Visitor, dashboard, three_runs, visitor

# In widgets whose markup is not ours.
WIDGETS = (".ag-root-wrapper", ".leaflet-container", ".js-plotly-plot", ".dash-input-container",
           ".dash-dropdown-wrapper", ".dash-dropdown", ".dash-options-list")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return three_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def somebody(runs: Path) -> Iterator[Visitor]:
    with dashboard(runs) as served, visitor(served) as found:
        yield found


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
            # Navigation is one row, and shows where one is.
            row = page.evaluate("() => document.querySelector('.bar').getBoundingClientRect().height")
            assert row < 65
            page.wait_for_function("""() => { const [row, link] = [document.querySelector(".bar nav"),
              document.querySelector(".bar nav [aria-current]")].map((one) => one && one.getBoundingClientRect());
              return link === null || (link.left >= row.left - 1 && link.right <= row.right + 1); }""")
            assert page.evaluate(APART) == [] and page.evaluate(OVER) == [], width
            found = axe.run(page, context={"exclude": [[widget] for widget in WIDGETS]}, options={
                "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).response["violations"]
            assert [(width, one["id"], one["nodes"][0]["html"][:120]) for one in found
                    if one["impact"] in ("serious", "critical")] == []
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})
