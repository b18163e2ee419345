"""The machine, for one live run at a time.

A live run measures what the machine does in real time; another one beside it would be measured along with it. The lock
is a file of this user in the directory for temporary files. Its descriptor is handed on to the engine, and by it to the
broker: it is free again when the last of them has ended, whoever was killed before.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LOOK_S = 0.1


def lock_path() -> Path:
    """The file that is locked."""
    return Path(tempfile.gettempdir(), f"mqttlab-{os.getuid()}-live.lock")


@contextlib.contextmanager
def live_alone(stop: Callable[[], bool] = lambda: False) -> Iterator[int | None]:
    """Wait until no other live run holds the machine, and hold it.

    Args:
        stop: asked while waiting; ends it.

    Yields:
        The descriptor that an engine inherits; ``None`` where waiting was ended.
    """
    descriptor = os.open(lock_path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if stop():
                    yield None
                    return
                time.sleep(LOOK_S)
                continue
            yield descriptor
            return
    finally:
        os.close(descriptor)


def is_held() -> bool:
    """Whether a live run that was started so is going on."""
    try:
        descriptor = os.open(lock_path(), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
