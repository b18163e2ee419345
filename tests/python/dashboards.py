"""A dashboard and a browser for tests: a server of its own on a free port, and Debian's Chromium without a window."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")
pytest.importorskip("playwright.sync_api", reason="Playwright is missing: make setup-test")

from playwright.sync_api import Page, Request, sync_playwright

from mqttlab.dashboard.address import Listen
from mqttlab.dashboard.server import Dashboard

SECRET = "a-secret-of-the-tests"
HOSTILE = "<img src=x onerror=document.title='broken-into'>"
# Of one page, on a machine that has other things to do.
WITHIN_MS = 60_000


def simulate(directory: Path, name: str, **changes: Any) -> Path:
    """A short simulated run in a directory of its own."""
    plan = compile_plan(parse_values({**scenario(**changes), "name": name}))
    outcome = perform(Job(plan, directory / name), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return directory / name


@contextmanager
def dashboard(runs: Path) -> Iterator[Dashboard]:
    """A dashboard that serves in a thread."""
    served = Dashboard(runs, Listen.read("127.0.0.1:0"), SECRET)
    thread = threading.Thread(target=served.serve, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.end()


class Visitor:
    """Somebody at a browser, who sees labels and text."""

    def __init__(self, page: Page, served: Dashboard) -> None:
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

    def ready(self) -> None:
        """Wait until all that was asked for is there."""
        self.page.wait_for_timeout(100)
        self.page.wait_for_selector("body[data-ready=yes]", state="attached")


def chromium() -> str:
    """The browser's program; skips the test where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium: make setup-test")
    return found


@contextmanager
def visitor(served: Dashboard, **context: Any) -> Iterator[Visitor]:
    """Somebody who has opened the printed address."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        made = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "accept_downloads": True, **context})
        somebody = Visitor(made.new_page(), served)
        somebody.page.goto(served.url)
        somebody.ready()
        yield somebody
        browser.close()
