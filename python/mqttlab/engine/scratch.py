"""Private directories that go with whoever made them, and those of processes that were killed at the next start.

As the engine's (``crates/live/src/scratch.rs``): a directory is locked (flock(2)) while its owner lives, and gets its
name only when it is locked, so that one with the name and without a lock belongs to nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mqttlab.engine.locks import is_locked

PREFIX = "mqttlab-scratch-"
NEW = "mqttlab-fresh-"
NEW_FOR_S = 60
"""How long a directory may be without its lock, which it is just about to get."""


@contextmanager
def directory(purpose: str) -> Iterator[Path]:
    """A directory below the system's place for temporary files, for as long as the block takes; first, those that
    nobody has any more are removed.

    Raises:
        OSError: none can be made.
    """
    parent = Path(tempfile.gettempdir())
    _remove_abandoned(parent)
    unlocked = Path(tempfile.mkdtemp(prefix=f"{NEW}{purpose}-"))
    place = parent / unlocked.name.replace(NEW, PREFIX, 1)
    # Not for processes that it starts: these may live on, and the lock with them.
    lock = os.open(unlocked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unlocked.rename(place)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(unlocked, ignore_errors=True)
        os.close(lock)


def _remove_abandoned(parent: Path) -> None:
    for prefix, patience_s in ((PREFIX, 0), (NEW, NEW_FOR_S)):
        for place in parent.glob(f"{prefix}*"):
            # One of another user, or that is being removed already.
            with contextlib.suppress(OSError):
                is_young = patience_s and time.time() - place.stat().st_mtime < patience_s
                if not is_young and not is_locked(place):
                    shutil.rmtree(place, ignore_errors=True)
