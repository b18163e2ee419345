"""For all tests: a queue of their own, whose process ends with them."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def queue_of_the_tests() -> Iterator[Path]:
    """Commands that tests start use it, instead of the user's own."""
    place = Path(tempfile.mkdtemp(prefix="mqttlab-queue-"))
    os.environ["MQTTLAB_QUEUE"] = str(place)
    yield place
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if line.read_bytes().decode(errors="replace").split("\0")[1:4] == ["-m", "mqttlab.queue", str(place)]:
                os.kill(int(line.parent.name), signal.SIGTERM)
    shutil.rmtree(place, ignore_errors=True)
