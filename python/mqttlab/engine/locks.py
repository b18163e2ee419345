"""Locks on files and directories, as engines, queues and live runs lock what they hold. One ends with its holder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def is_locked(path: Path) -> bool:
    """Whether somebody holds an exclusive lock (flock) on a file or a directory.

    The lock ends with its holder, however that ends.

    Raises:
        OSError: it is not there, may not be opened, or is on a file system without locks.
    """
    # A pipe without a writer would be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Shared, so that two who ask at the same time do not see each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def held(directory: Path, refusal: Exception) -> Iterator[None]:
    """Hold a directory.

    Raises:
        Exception: the refusal, where somebody else holds it.
        OSError: it is not there, may not be opened, or is on a file system without locks.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refusal from None
        yield
    finally:
        os.close(descriptor)
