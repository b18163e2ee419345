"""What jobs in the queue need and its file must not have: the values of secrets, in memory of this user alone.

A file for each job, 0600, in a directory of a file system that is in memory (``$XDG_RUNTIME_DIR``, else ``/dev/shm``),
from when the job is handed in until it has ended. After a start of the machine they are gone, and the job says so.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Collection
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
ABANDONED_S = 60
ATTEMPTS = 50


class Handed:
    """The secrets of one queue's jobs."""

    def __init__(self, queue: Path) -> None:
        self._directory = _memory(queue) / hashlib.sha256(str(queue).encode()).hexdigest()[:16]

    def give(self, job: str, secrets: dict[str, str]) -> None:
        """Keep secrets for a job.

        Raises:
            OSError: there is no place for them.
        """
        if not secrets:
            return
        with os.fdopen(self._new(job), "w") as out:
            json.dump(secrets, out)

    def _new(self, job: str) -> int:
        """A file for a job, with its mode from its first instant on."""
        for attempt in range(ATTEMPTS):
            # Who forgets the last job's secrets removes the directory.
            with contextlib.suppress(FileNotFoundError):
                for place in (self._directory.parent, self._directory):
                    with contextlib.suppress(FileExistsError):
                        place.mkdir(mode=0o700)
                    _own(place)
                return os.open(self._directory / job, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            time.sleep(0.001 * attempt)
        raise FileNotFoundError(errno.ENOENT, "removed again and again by another process", str(self._directory))

    def of(self, job: str) -> dict[str, str]:
        """The secrets of a job; none where they are gone."""
        try:
            _own(self._directory)
            found = json.loads((self._directory / job).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def forget(self, jobs: Collection[str]) -> None:
        """Remove the secrets of jobs that have ended."""
        for job in jobs:
            with contextlib.suppress(OSError):
                (self._directory / job).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._directory.rmdir()

    def forget_others(self, jobs: Collection[str]) -> None:
        """Remove what was kept for other jobs than these, whose end nobody has seen."""
        with contextlib.suppress(OSError):
            # A job has its secrets a moment before it is in the queue.
            self.forget([file.name for file in self._directory.iterdir()
                         if file.name not in jobs and time.time() - file.stat().st_mtime > ABANDONED_S])


def _memory(queue: Path) -> Path:
    """A directory in memory; beside the queue where there is none."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "mqttlab"
    return SHARED_MEMORY / f"mqttlab-{os.getuid()}" if SHARED_MEMORY.is_dir() else queue / "secrets"


def _own(place: Path) -> None:
    """Refuse a directory that another user has put there, or can read.

    Raises:
        OSError: it is not this user's alone.
    """
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{place} is not a directory of this user alone; remove it")
