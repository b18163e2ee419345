"""A dashboard and a browser for tests: a server of its own on a free port, and Debian's Chromium without a window."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
import tomlkit

import processes
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")
pytest.importorskip("playwright.sync_api", reason="Playwright is missing: make setup-test")

from playwright.sync_api import Page, Request, sync_playwright

from mqttlab.dashboard.address import Listen
from mqttlab.dashboard.server import Dashboard
from mqttlab.queue import Queue

SECRET = "a-secret-of-the-tests"
HOSTILE = "<img src=x onerror=document.title='broken-into'>"
# Of one page, on a machine that has other things to do; below the limit of a test, so that the page's text is printed.
WITHIN_MS = 200_000


def simulate(directory: Path, name: str, **changes: Any) -> Path:
    """A short simulated run in a directory of its own."""
    values = {**scenario(**changes), "name": name}
    origin = {"scenario": {"toml": tomlkit.dumps(values), "settings": {}}}
    job = Job(compile_plan(parse_values(values)), directory / name, origin=origin)
    outcome = perform(job, lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return directory / name


@contextmanager
def queue_below(directory: Path) -> Iterator[Queue]:
    """A queue of its own, whose process is gone afterwards."""
    queue = Queue(directory / "queue")
    try:
        yield queue
    finally:
        queue.cancel()
        deadline = time.monotonic() + 60
        while queue.rows_open() and time.monotonic() < deadline:
            time.sleep(0.05)
        for process in processes.queues(queue.directory):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)


@contextmanager
def dashboard(runs: Path) -> Iterator[Dashboard]:
    """A dashboard that serves in a thread, with a queue of its own beside the runs."""
    served = Dashboard(runs, Listen.read("127.0.0.1:0"), SECRET, runs.parent / "queue")
    thread = threading.Thread(target=served.serve, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.end()


class Served(Protocol):
    """A dashboard that serves, in a thread or as a program."""

    @property
    def url(self) -> str: ...


class Program:
    """A dashboard as people start it: a program of its own, which can be killed and started again."""

    def __init__(self, runs: Path, queue: Path, home: Path) -> None:
        self._command = [sys.executable, "-m", "mqttlab", "dashboard", "--runs", str(runs), "--queue", str(queue)]
        self._environment = {**os.environ, "HOME": str(home)}
        self._listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Start it; again under the same address."""
        self.process = subprocess.Popen([*self._command, "--listen", self._listen], stdout=subprocess.PIPE, text=True,
                                        env=self._environment)
        assert self.process.stdout is not None
        words = self.process.stdout.readline()
        self.url = words.rsplit(maxsplit=1)[-1]
        self._listen = self.url.removeprefix("http://").partition("/")[0]

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


class Visitor:
    """Somebody at a browser, who sees labels and text."""

    def __init__(self, page: Page, served: Served) -> None:
        self.page = page
        self.base = served.url.partition("/?")[0]
        self.asked: list[str] = []
        self.problems: list[str] = []
        page.set_default_timeout(WITHIN_MS)
        page.on("request", self._request)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)

    def _request(self, request: Request) -> None:
        self.asked.append(request.url)

    @property
    def elsewhere(self) -> set[str]:
        """Addresses on other machines that were asked for."""
        return {url for url in self.asked if not url.startswith((self.base, "data:", "blob:"))}

    def go(self, path: str) -> None:
        """Open an address, and wait until all of it is there."""
        self.page.goto(self.base + path)
        self.ready()

    def turn(self, path: str) -> None:
        """As a link there does: the page changes, and is not loaded anew."""
        self.page.evaluate("path => window.mqttlab.go(path)", path)
        self.ready()

    def ready(self) -> None:
        """Wait until all that was asked for is there; whatever somebody does makes the page not ready at once."""
        self.page.wait_for_selector("body[data-ready=yes]", state="attached")


def chromium() -> str:
    """The browser's program; skips the test where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium: make setup-test")
    return found


def three_runs(directory: Path) -> Path:
    """A plain run, one whose words are hostile, and one with payloads, all simulated."""
    simulate(directory, "plain", qos=2, rate="10 /s")
    simulate(directory, "hostile", topic=HOSTILE, rate="5 /s", description=HOSTILE)
    simulate(directory, "images", payload="image", rate="10 /s", recording={"payloads": True})
    return directory


@contextmanager
def visitor(served: Served, within_ms: float = WITHIN_MS, **context: Any) -> Iterator[Visitor]:
    """Somebody who has opened the printed address."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        made = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "accept_downloads": True, **context})
        somebody = Visitor(made.new_page(), served)
        somebody.page.set_default_timeout(within_ms)
        somebody.page.goto(served.url)
        somebody.ready()
        try:
            yield somebody
        except Exception:
            # Whoever reads of the failure reads what was on the page then.
            print(somebody.page.url, somebody.page.inner_text("body"), sep="\n")
            raise
        browser.close()
