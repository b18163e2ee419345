"""For all tests: a queue of their own, whose process ends with them, a key for secrets, signals that nobody ignores,
and a machine to themselves: their live runs do not wait for those of other sessions."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import live
import processes
import schedule

# What is started in the background or by nohup ignores some signals, and so would every program that tests start.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# Workers of a run of tests have it; a test alone prints what it prints in a worker.
os.environ["COLUMNS"] = "80"

# Tests write gigabytes of recordings, and a disk takes half a minute to give them back: they go to memory, where that
# has room.
if "TMPDIR" not in os.environ and schedule.has_room(Path("/dev/shm"), 8 << 30):
    os.environ["TMPDIR"] = "/dev/shm"
    tempfile.tempdir = None


@pytest.fixture(scope="session", autouse=True)
def queue_of_the_tests() -> Iterator[Path]:
    """Commands that tests start use it, instead of the user's own."""
    place = Path(tempfile.mkdtemp(prefix="mqttlab-queue-"))
    os.environ["MQTTLAB_QUEUE"] = str(place)
    # Python remembers its own place; what tests start finds the lock of live runs here.
    tempfile.gettempdir()
    (place / "tmp").mkdir()
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    # Servers of databases run as users of their own.
    place.chmod(0o755)
    (place / "tmp").chmod(0o1777)
    os.environ["TMPDIR"] = str(place / "tmp")
    yield place
    for process in processes.queues(place):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    shutil.rmtree(place, ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `make check` leaves out, and the order in which files are taken."""
    parser.addoption("--fast", action="store_true", help="neither live tests nor files of tests that take long")
    parser.addoption("--slow", action="store_true", help="only what --fast leaves out")
    parser.addoption("--write-times", action="store_true", help="write what each file took to tests/python/times.txt")


def pytest_configure(config: pytest.Config) -> None:
    """Make the place of the slots, which workers inherit."""
    config.addinivalue_line("markers", "live(runs=1): performs so many real runs at once, where any are possible")
    if config.getoption("write_times") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(schedule.Times())
    if schedule.PLACE not in os.environ:
        os.environ[schedule.PLACE] = place = tempfile.mkdtemp(prefix="mqttlab-slots-")
        config.add_cleanup(lambda: shutil.rmtree(place, ignore_errors=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest, or leave it out."""
    schedule.arrange(items)
    if config.getoption("fast") or config.getoption("slow"):
        kept = [item for item in items if schedule.is_fast(item) == config.getoption("fast")]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> schedule.ByFixture | None:
    """Give each worker one group after the other, where there are workers."""
    return schedule.ByFixture(config, log) if config.getvalue("dist") == "load" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Wait for a slot before a live test begins, so that the wait is no part of its time-out."""
    mark = item.get_closest_marker("live")
    if mark is None or live.able():
        return (yield)
    with schedule.slots(mark.kwargs.get("runs", 1)):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip live tests where real runs are impossible."""
    if item.get_closest_marker("live") is not None and (reason := live.able()):
        pytest.skip(reason)
