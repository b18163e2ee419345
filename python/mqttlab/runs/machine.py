"""The machine, for one live run at a time.

A live run measures what the machine does in real time; another one beside it would be measured along with it. The lock
is a file in this user's place for temporary files. Its descriptor is handed on to the engine, and by it to the
broker: it is free again when the last of them has ended, whoever was killed before.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from mqttlab import scratch
from mqttlab.engine import is_locked

LOOK_S = 0.1
# A path.
WHAT_BYTES = 4096


def lock_path() -> Path:
    """The file that is locked.

    Raises:
        ScratchError: there is no place for it.
    """
    return scratch.own() / "live.lock"


@contextlib.contextmanager
def live_alone(
    stop: Callable[[], bool] = lambda: False, *, what: str = "",
    waiting: Callable[[str], None] = lambda words: None,
) -> Iterator[int | None]:
    """Wait until no other live run holds the machine, and hold it.

    Args:
        stop: asked while waiting; ends it.
        what: what holds it then, for whoever waits: the run's directory.
        waiting: told once for what this waits, where it has to.

    Yields:
        The descriptor that an engine inherits; ``None`` where waiting was ended.
    """
    descriptor = os.open(lock_path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    said = False
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if stop():
                    yield None
                    return
                if not said:
                    said = True
                    waiting(_holder(descriptor))
                time.sleep(LOOK_S)
                continue
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, what.encode(), 0)
            yield descriptor
            return
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """What this waits for, as its holder has said."""
    what = os.pread(descriptor, WHAT_BYTES, 0).decode(errors="replace")
    whose = f"the live run in {what}" if what else "another live run"
    return f"waiting for {whose} to end: live runs have the machine to themselves"


def is_held() -> bool:
    """Whether a live run that was started so is going on."""
    try:
        return is_locked(lock_path())
    except FileNotFoundError:
        return False
