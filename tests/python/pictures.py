"""The pictures in docs: ``python tests/python/pictures.py [--runs DIR] [NAME…]`` makes them from scratch, by the tests'
browser: the pages of the dashboard (``run``, ``live``, …), of each template its headline (``template-NAME``), of one
with events its latency over time, too, and of each trace of mqttlab its rate (``trace-NAME``).

It runs what it needs first. Recordings below DIR of an earlier time are taken as they are. All are simulated but
the run on the page Live, which has a real broker. With names only these are made.
"""

from __future__ import annotations

import argparse
import base64
import struct
import subprocess
import sys
import tempfile
import zlib
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import polars as pl
from playwright.sync_api import Locator, Page

from dashboards import Visitor, dashboard, queue_below, visitor
from mqttlab.dashboard.configure.drafts import Draft, written
from mqttlab.dashboard.jobs import Jobs
from mqttlab.figures import trace_rates
from mqttlab.gallery import templates
from mqttlab.networks.trace import read_trace, rows, shipped, title_of
from mqttlab.report.pages import figure_html, page_of

TALL = ("run", "compare")
ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
WITHIN_MS = 600_000
DECODE = """async (png) => {
  const bytes = Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  const pixels = canvas.getImageData(0, 0, picture.width, picture.height).data;
  const reader = new FileReader();
  await new Promise((done) => { reader.onload = done; reader.readAsDataURL(new Blob([pixels])); });
  return [picture.width, picture.height, reader.result];
}"""
CAMERAS = """name = "cameras"
backend = "sim"
phases = { duration = "10 s" }
recording = { payloads = true }
networks = [{ between = ["field", "broker"], model = "lte" }]

[[groups]]
name = "cameras"
host = "field"
count = 3
publish = { topic = "camera/{client}", qos = 1, payload = "image", interval = "2 s" }

[[groups]]
name = "viewer"
host = "broker"
subscribe = [{ filter = "camera/#", qos = 1 }]
"""


class Recordings:
    """The recordings below a folder, made when they are asked for first."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs

    def of(self, name: str) -> str:
        """The directory of a recording or of an experiment, by the name of its scenario."""
        if not (known := self._known(name)):
            with tempfile.TemporaryDirectory(prefix="mqttlab-pictures-") as folder:
                self._make(name, Path(folder))
            known = self._known(name)
        return known[0].name

    def _known(self, name: str) -> list[Path]:
        return sorted(path for path in self.runs.glob(f"{name}*")
                      if path.name == name or path.name.removeprefix(f"{name}-")[:8].isdigit())

    def _make(self, name: str, folder: Path) -> None:
        demo = ["run", str(ROOT / "scenarios" / "demo.toml"), "--backend", "sim"]
        if name == "cameras":
            (folder / "cameras.toml").write_text(CAMERAS, encoding="utf-8")
            self._give("run", str(folder / "cameras.toml"))
        elif name == "demo":
            self._give(*demo)
        elif name == "demo-dsl":
            self._give(*demo, "--set", "name=demo-dsl", "--set", "networks[0].model=dsl",
                       "--set", "networks[0].placement=both")
        elif name == "capture":
            slow = self.of("lte-m-fleet")
            self._give("export", str(self.runs / slow), "--pcapng", str(folder / "capture.pcapng"), places=False)
            self._give("import", "capture", str(folder / "capture.pcapng"), "--captured-at", "broker")
        else:
            file = folder / f"{name}.toml"
            self._give("new", name, "--out", str(file), places=False)
            self._give(templates()[name].command, str(file))

    def _give(self, *words: str, places: bool = True) -> None:
        where = ["--runs", str(self.runs)] if places else []
        subprocess.run([sys.executable, "-m", "mqttlab", *words, *where], check=True, stdout=subprocess.DEVNULL)


def pages(made: Recordings, named: list[str]) -> dict[str, str]:
    """The address of each page that is a picture as it opens."""
    found = {"runs": "/", "configure": "/configure", "study": "/study/andersen2021"}
    of_demo = {"run": "", "time": "?part=time", "parts": "?part=parts", "connection": "?part=connections&connection=1"}
    for name, query in of_demo.items():
        if not named or name in named:
            found[name] = f"/run/{made.of('demo')}{query}"
    if not named or "map" in named:
        found["map"] = f"/map?run={made.of('demo')}"
    if not named or "compare" in named:
        found["compare"] = f"/compare?first={made.of('demo')}&second={made.of('demo-dsl')}"
    if not named or "payloads" in named:
        found["payloads"] = f"/run/{made.of('cameras')}?part=recent&topic=camera"
    return {name: path for name, path in found.items() if not named or name in named}


def main(runs: Path, named: list[str]) -> None:
    """Make them all, or those that are named."""
    made = Recordings(runs)
    shown = [name for name in templates() if not named or f"template-{name}" in named]
    found, of_template = pages(made, named), {name: made.of(name) for name in shown}
    with queue_below(runs.parent), dashboard(runs) as served, visitor(served, WITHIN_MS) as somebody:
        for name, path in found.items():
            _page(somebody, name, path)
        if not named or "ladder" in named:
            _ladder(somebody, made.of("demo"))
        if not named or "live" in named:
            _live(somebody, Jobs(runs, served.jobs.queue.directory))
        _traces(somebody, [name for name in shipped() if not named or f"trace-{name}" in named])
        somebody.page.set_viewport_size({"width": 400, "height": 800})
        if not named or "narrow" in named:
            somebody.go(f"/run/{made.of('demo')}")
            _picture(somebody.page, "dashboard-narrow")
        somebody.page.set_viewport_size({"width": 900, "height": 1600})
        for name, run in of_template.items():
            _headline(somebody, name, run)


def _picture(what: Page | Locator, name: str) -> None:
    """A picture of what is there, with a palette: a third of the size."""
    whole = what.screenshot()
    # An empty page may decode it; the dashboard's own would refuse to.
    page = (what if isinstance(what, Page) else what.page).context.new_page()
    width, height, decoded = page.evaluate(DECODE, base64.b64encode(whole).decode())
    page.close()
    pixels = np.frombuffer(base64.b64decode(decoded.partition(",")[2]), np.uint8).reshape(height, width, 4)[..., :3]
    (PICTURES / f"{name}.png").write_bytes(_with_palette(pixels))


def _with_palette(pixels: np.ndarray) -> bytes:
    """A PNG of the 256 most frequent colours (PNG, 3rd edition, 11.2.1 and 11.2.2); others are the nearest of them."""
    colours, places, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    palette = colours[np.argsort(-counts, kind="stable")[:256]]
    apart = np.abs(colours[:, None].astype(np.int16) - palette[None].astype(np.int16)).sum(axis=2)
    rows = apart.argmin(axis=1).astype(np.uint8)[places.reshape(pixels.shape[:2])]
    head = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 3, 0, 0, 0)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    parts = ((b"IHDR", head), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts)


def _page(somebody: Visitor, name: str, path: str) -> None:
    somebody.page.set_viewport_size({"width": 1280, "height": 1420 if name in TALL else 900})
    somebody.go(path)
    if name == "map":
        _play(somebody)
    if name == "payloads":
        somebody.page.get_by_text("JSON, a picture").first.click()
    _picture(somebody.page, f"dashboard-{name}")


def _headline(somebody: Visitor, name: str, run: str) -> None:
    """What a template answers first: the Overview of its run, or an experiment's question and answer."""
    experiment = templates()[name].command == "experiment"
    somebody.go("/experiments" if experiment else f"/run/{run}")
    _picture(somebody.page.locator("#page .panel" if experiment else "#part").first, f"template-{name}")
    if "[[events]]" in templates()[name].path.read_text(encoding="utf-8"):
        somebody.go(f"/run/{run}?part=time")
        plot = somebody.page.locator(".plot[data-name=latency-over-time]")
        plot.locator(".main-svg").first.wait_for()
        somebody.ready()
        _picture(plot, f"template-{name}-over-time")


def _traces(somebody: Visitor, names: list[str]) -> None:
    """The rate of each trace over time."""
    # The dashboard's own page takes no script of others.
    page = somebody.page.context.new_page()
    page.set_viewport_size({"width": 900, "height": 900})
    for name in names:
        lines = [(way, at, rate) for way in ("down", "up")
                 for trace in [read_trace(f"{name}/{way}", None)]
                 for at, rate in [*rows(trace, "rate"), (trace.length_ns / 1e9, trace.columns["rate"][-1])]]
        table = pl.DataFrame(lines, schema=("name", "at_s", "rate_bit_s"), orient="row")
        figure = trace_rates(table).update_layout(title=title_of(name), height=260)
        page.set_content(page_of(title_of(name), "", [figure_html(figure, name)], ""))
        page.locator(".main-svg").first.wait_for()
        _picture(page.locator(".figure"), f"trace-{name}")
    page.close()


def _ladder(somebody: Visitor, run: str) -> None:
    somebody.page.set_viewport_size({"width": 1280, "height": 900})
    somebody.go(f"/run/{run}?part=recent")
    somebody.page.get_by_role("link", name="ladder of message").first.click()
    somebody.page.get_by_role("heading", name="Ladder", exact=True).wait_for()
    somebody.ready()
    _picture(somebody.page, "dashboard-ladder")


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
    [identifier] = jobs.start(written(Draft(duration="90 s")))
    page.set_viewport_size({"width": 1280, "height": 1420})
    page.goto(f"{somebody.base}/live")
    page.get_by_text("measuring").wait_for()
    # A busy machine takes its time to draw; a line needs more than a point.
    page.wait_for_function("""() => document.querySelectorAll(".live-job .plot.js-plotly-plot").length >= 4 &&
        document.getElementById("live-silent").hidden""")
    page.wait_for_timeout(15_000)
    page.wait_for_function("() => document.getElementById('live-silent').hidden")
    _picture(page, "dashboard-live")
    jobs.cancel(identifier)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the pictures in docs.")
    parser.add_argument("--runs", type=Path, help="where recordings are, and are made; a temporary folder without it")
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    with ExitStack() as stack:
        main((asked.runs or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mqttlab-pictures-"))) / "runs"
              ).resolve(), asked.names)
