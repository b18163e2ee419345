"""Control groups that runs with limited hosts have left because their engine was killed.

The engine makes them (``crates/live/src/host/limit_groups.rs``) and locks each as long as it lives; :func:`sweep`
removes what nobody has locked. It is called whenever a command begins.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
PREFIX = "mqttlab-"
CONTROLLERS = {"cpu", "memory", "blkio"}


def sweep(mount: Path = MOUNT, groups: str | None = None) -> None:
    """Remove the groups of engines that are no more. What cannot be removed stays."""
    with contextlib.suppress(OSError):
        for above in places(mount, groups):
            with contextlib.suppress(OSError):
                if any(entry.name.startswith(PREFIX) for entry in os.scandir(above)):
                    _remove_abandoned(above)


def places(mount: Path = MOUNT, groups: str | None = None) -> Iterator[Path]:
    """Where the engine makes groups: in version 1 below this process's own one, in version 2 below any above it."""
    listed = Path("/proc/self/cgroup").read_text(encoding="utf-8") if groups is None else groups
    for line in listed.splitlines():
        _, controllers, path = line.split(":", 2)
        own = Path(path.lstrip("/"))
        if not controllers:
            yield from (mount / above for above in (own, *own.parents))
        elif CONTROLLERS & set(controllers.split(",")):
            yield mount / controllers / own


def _remove_abandoned(above: Path) -> None:
    with _locked(above, fcntl.LOCK_EX):
        for entry in [entry for entry in os.scandir(above) if entry.name.startswith(PREFIX)]:
            with contextlib.suppress(OSError), _locked(Path(entry.path), fcntl.LOCK_EX | fcntl.LOCK_NB):
                Path(entry.path).rmdir()


@contextlib.contextmanager
def _locked(directory: Path, operation: int) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)
