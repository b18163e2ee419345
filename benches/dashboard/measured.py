"""What an act in the browser takes: time, and what no load of the machine changes."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Response

from dashboards import Program, Visitor, queue_below, visitor

# A bench on a busy machine shall measure, not give up.
WITHIN_MS = 300_000
TICKS_A_S = os.sysconf("SC_CLK_TCK")
CALLBACKS = "/_dash-update-component"


def used_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_S


@dataclass
class Series:
    """One act, measured several times."""

    acts: Acts
    what: str
    wanted: str
    pause_s: float = 0.0
    """What is waited for on purpose, and not counted."""
    seconds: list[float] = field(default_factory=list)
    costs: list[tuple[float, int, int, int]] = field(default_factory=list)

    def once(self, act: Callable[[], object]) -> None:
        """Measure it once; what comes after it is counted with it, and not timed."""
        cpu, sent, asked, called = self.acts.counted()
        began = time.perf_counter()
        act()
        self.seconds.append(time.perf_counter() - began - self.pause_s)
        self.acts.somebody.ready()
        now = self.acts.counted()
        self.costs.append((now[0] - cpu, now[1] - sent, now[2] - asked, now[3] - called))

    def say(self) -> None:
        """A row of the table."""
        middle = statistics.median(self.seconds)
        cpu, sent, asked, called = (statistics.median(column) for column in zip(*self.costs, strict=True))
        print(f"| {self.what} | {middle:.3f} | {min(self.seconds):.3f}–{max(self.seconds):.3f} | {self.wanted} | "
              f"{cpu:.2f} · {sent:,.0f} · {asked:.0f} · {called:.0f} |", flush=True)


class Acts:
    """A visitor of a dashboard that is a program of its own, and what both have done so far."""

    def __init__(self, somebody: Visitor, served: Program) -> None:
        self.somebody, self.page, self.base = somebody, somebody.page, somebody.base
        self._pid = served.process.pid
        self._sent = 0
        self.page.set_default_timeout(WITHIN_MS)
        self.page.on("response", self._answered)

    def _answered(self, answer: Response) -> None:
        with contextlib.suppress(Exception):
            self._sent += int(answer.headers.get("content-length", 0))

    def counted(self) -> tuple[float, int, int, int]:
        """So far: processor seconds of the server, bytes that it has sent, requests, and those that are callbacks."""
        return (used_s(self._pid), self._sent, len(self.somebody.asked),
                sum(CALLBACKS in url for url in self.somebody.asked))

    def series(self, what: str, wanted: str, pause_s: float = 0.0) -> Series:
        """An act that is measured when its turn comes."""
        return Series(self, what, wanted, pause_s)

    def measure(self, what: str, times: int, act: Callable[[], object], wanted: str, pause_s: float = 0.0) -> None:
        """Measure an act, and say it."""
        series = self.series(what, wanted, pause_s)
        for _ in range(times):
            series.once(act)
        series.say()


@contextmanager
def opened_dashboard(runs: Path, place: Path) -> Iterator[Acts]:
    """A dashboard of these runs, opened once: what a browser keeps is there, and the list of runs is read."""
    with queue_below(place) as queue:
        served = Program(runs, queue.directory, place)
        try:
            began = time.perf_counter()
            with visitor(served, WITHIN_MS) as somebody:
                passed = time.perf_counter() - began
                print(f"| from the browser's start to the first page | {passed:.3f} | | | |", flush=True)
                yield Acts(somebody, served)
        finally:
            served.kill()


def ready_at_last(name: str, act: Callable[[], None]) -> None:
    """Perform a part; what fails is said, and the next part goes on."""
    try:
        act()
    except Exception:
        print(f"| {name}: failed | | | | |\n{traceback.format_exc()}", flush=True)
