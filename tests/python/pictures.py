"""The dashboard's pictures in docs: ``python tests/python/pictures.py RUNS RUN SECOND PAYLOADS [NAME…]`` makes them, by
the tests' browser.

Below RUNS, RUN is the demo's recording, SECOND another one of it over another network, and PAYLOADS one that has kept
images. The picture of the page Live is of a run that is made for it. With names only these are made.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dashboards import Visitor, dashboard, queue_below, visitor
from mqttlab.dashboard.drafts import Draft, written
from mqttlab.dashboard.jobs import Jobs

TALL = ("run", "compare")
PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def main(runs: Path, run: str, second: str, payloads: str, named: list[str]) -> None:
    """Make them all from these recordings, and one of a run that goes on."""
    pages = {"run": f"/run/{run}", "time": f"/run/{run}?part=time", "parts": f"/run/{run}?part=parts", "runs": "/",
             "configure": "/configure", "study": "/study/andersen2021", "map": f"/map?run={run}",
             "connection": f"/run/{run}?part=connections&connection=1",
             "compare": f"/compare?first={run}&second={second}",
             "payloads": f"/run/{payloads}?part=recent&topic=camera"}
    with queue_below(runs.parent), dashboard(runs) as served, visitor(served) as somebody:
        for name, path in pages.items():
            if named and name not in named:
                continue
            somebody.go(path)
            somebody.page.set_viewport_size({"width": 1280, "height": 1420 if name in TALL else 900})
            somebody.ready()
            if name == "map":
                _play(somebody)
            if name == "payloads":
                somebody.page.get_by_text("JSON, a picture").first.click()
            somebody.page.screenshot(path=PICTURES / f"dashboard-{name}.png")
        if named:
            return
        somebody.go(f"/run/{run}?part=recent")
        somebody.page.get_by_role("link", name="ladder of message").first.click()
        somebody.page.get_by_role("heading", name="Ladder", exact=True).wait_for()
        somebody.ready()
        somebody.page.screenshot(path=PICTURES / "dashboard-ladder.png")
        _live(somebody, Jobs(runs, served.jobs.queue.directory))
        somebody.page.set_viewport_size({"width": 400, "height": 800})
        somebody.go(f"/run/{run}")
        somebody.page.screenshot(path=PICTURES / "dashboard-narrow.png")


def _play(somebody: Visitor) -> None:
    """Let a message be under way."""
    somebody.page.locator(".map-place[data-drawn]").wait_for()
    slider = somebody.page.get_by_label("Time", exact=True)
    slider.focus()
    for _ in range(20):
        somebody.page.keyboard.press("ArrowRight")
        if not somebody.page.get_by_text("0 messages under way.").is_visible():
            break


def _live(somebody: Visitor, jobs: Jobs) -> None:
    """A run with a real broker, when it has been going on for a while."""
    page = somebody.page
    [identifier] = jobs.start(written(Draft(duration="25 s")))
    page.set_viewport_size({"width": 1280, "height": 1420})
    page.goto(f"{somebody.base}/live")
    page.get_by_text("measuring").wait_for()
    page.wait_for_timeout(12_000)
    page.screenshot(path=PICTURES / "dashboard-live.png")
    jobs.cancel(identifier)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], sys.argv[5:])
