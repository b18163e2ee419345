"""Which tests run beside each other.

A worker of pytest-xdist takes one *group* of tests after the other. A file with a fixture of its module, or with
servers of databases, is one group, so that those are made once; in other files each test is a group. Groups of whole
files come first, the longest before the others, so that no worker has one left at the end. Then come the tests of other
long files, mixed: those that compute run beside those that wait. `times.txt` has the seconds, and is only a hint.

Tests with the mark `live` perform real runs. A machine has so many slots for them; a test takes one, or as many as it
performs runs at once (`live(runs=6)`), and waits until they are free. A slot is a lock of a file, which the kernel
frees when its worker ends.
"""

from __future__ import annotations

import fcntl
import functools
import os
import re
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

TIMES = Path(__file__).with_name("times.txt")
LONG_S = 5
"""From so many seconds on a file is left out of `make check`."""
PLACE = "MQTTLAB_TEST_SLOTS"
"""The variable that tells workers where the slots' files are."""
SLOTS = 6 * (os.cpu_count() or 1)
"""A live run waits nearly all of its time."""


@functools.cache
def times() -> dict[str, float]:
    """Seconds by file, as `pytest --write-times` saw them last."""
    rows = [line.split() for line in TIMES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {name: float(seconds) for seconds, name in rows}


def arrange(items: list[pytest.Item]) -> None:
    """Put tests in the order in which workers take them."""
    took = times()

    def place(item: pytest.Item) -> tuple[float, int]:
        seconds = took.get(item.path.name, 0.0)
        if _shares(item.path.name):
            return -seconds - 1, 0
        return (0, zlib.crc32(item.nodeid.encode())) if seconds else (1, 0)

    items.sort(key=place)


class Times:
    """Adds up what the tests of each file take, fixtures included, and writes it down at the end."""

    def __init__(self) -> None:
        self._took: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._took[Path(report.location[0]).name] += report.duration

    def pytest_sessionfinish(self) -> None:
        head = "# Seconds that the tests of a file took beside others; written by `pytest --write-times`.\n"
        rows = [f"{took:.0f} {name}\n" for name, took in self._took.most_common() if took >= 1]
        TIMES.write_text(head + "".join(rows), encoding="utf-8")


def is_fast(item: pytest.Item) -> bool:
    """Whether a test is for use between edits: of no run in real time, and of no long file."""
    return item.get_closest_marker("live") is None and times().get(item.path.name, 0.0) < LONG_S


class ByFixture(LoadScopeScheduling):  # type: ignore[misc]
    """Sends the tests of a file that share a fixture to one worker, and each other test to any."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _shares(Path(file).name) else nodeid


@functools.cache
def _shares(file: str) -> bool:
    text = TIMES.with_name(file).read_text(encoding="utf-8")
    return 'scope="module"' in text or "new_database" in text


def has_room(memory: Path, size: int) -> bool:
    """Whether so many bytes fit into a file system in memory, and into the memory."""
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < size:
        return False
    found = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    return found is not None and int(found[1]) * 1024 > size


@contextmanager
def slots(wanted: int) -> Iterator[None]:
    """Hold so many slots for live runs, all that there are at most."""
    with ExitStack() as held:
        # Whoever collects slots does so alone: two that have half of what they need would wait for each other.
        with _locked(Path(os.environ[PLACE], "turn")):
            free = [Path(os.environ[PLACE], f"slot-{number}") for number in range(SLOTS)]
            for _ in range(min(wanted, SLOTS)):
                free = _take_one(free, held)
        yield


def _take_one(free: list[Path], held: ExitStack) -> list[Path]:
    """Lock the first of these files that nobody has locked; returns the others."""
    while True:
        for path in free:
            try:
                held.enter_context(_locked(path, fcntl.LOCK_NB))
            except BlockingIOError:
                continue
            return [other for other in free if other != path]
        time.sleep(0.02)


@contextmanager
def _locked(path: Path, how: int = 0) -> Iterator[IO[bytes]]:
    with path.open("ab") as file:
        # Python opens files so that programs which a test starts do not inherit the lock.
        fcntl.flock(file, fcntl.LOCK_EX | how)
        yield file
