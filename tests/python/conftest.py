"""For all tests: a queue of their own, whose process ends with them, signals that nobody ignores, and a machine to
themselves: their live runs do not wait for those of other sessions."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import processes

# What is started in the background or by nohup ignores some signals, and so would every program that tests start.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def queue_of_the_tests() -> Iterator[Path]:
    """Commands that tests start use it, instead of the user's own."""
    place = Path(tempfile.mkdtemp(prefix="mqttlab-queue-"))
    os.environ["MQTTLAB_QUEUE"] = str(place)
    # Python remembers its own place; what tests start finds the lock of live runs here.
    tempfile.gettempdir()
    (place / "tmp").mkdir()
    # Servers of databases run as users of their own.
    place.chmod(0o755)
    (place / "tmp").chmod(0o1777)
    os.environ["TMPDIR"] = str(place / "tmp")
    yield place
    for process in processes.queues(place):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    shutil.rmtree(place, ignore_errors=True)
