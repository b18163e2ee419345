"""Which tests run beside each other.

A worker of pytest-xdist takes one *group* of tests after the other. A file with a fixture of its module, or with servers
of databases, is one group, so that those are made once; in other files each test is a group. Files that took longest
come first, so that no worker has a long one left at the end: `times.txt` has their seconds, and is only a hint.

Tests with the mark `live` perform real runs. A machine has so many slots for them; a test takes one, or as many as it
performs runs at once (`live(runs=6)`), and waits until they are free. A slot is a lock of a file, which the kernel
frees when its worker ends.
"""

from __future__ import annotations

import fcntl
import functools
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

TIMES = Path(__file__).with_name("times.txt")
PLACE = "MQTTLAB_TEST_SLOTS"
"""The variable that tells workers where the slots' files are."""
SLOTS = 3 * (os.cpu_count() or 1)
"""A live run waits most of its time: three to a processor leave some for everything else."""


def times() -> dict[str, float]:
    """Seconds by file, as `scripts/test-times` saw them last."""
    rows = [line.split() for line in TIMES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {name: float(seconds) for seconds, name in rows}


def longest_first(items: list[pytest.Item]) -> None:
    """Put tests in order: those of the files that took longest come first."""
    took = times()
    items.sort(key=lambda item: -took.get(item.path.name, 0.0))


class ByFixture(LoadScopeScheduling):  # type: ignore[misc]
    """Sends the tests of a file that share a fixture to one worker, and each other test to any."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _shares(file) else nodeid


@functools.cache
def _shares(file: str) -> bool:
    text = Path(file).read_text(encoding="utf-8")
    return 'scope="module"' in text or "new_database" in text


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
