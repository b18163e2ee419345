"""How much memory this process may still take: of the machine, of its control groups, and of its own limit.

The libraries that read tables end the process, or fail in the middle of being loaded, where they get none. Commands
that load them ask first.

Raises:
    MemoryShort: there is too little.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from mqttlab.errors import MqttlabError

# Loading Polars, NumPy and Plotly and making one table took 1.1 GB of addresses and 80 MB of memory with two
# processors; most of the addresses are for threads, some for each. Twice the memory leaves room for tables.
ADDRESS_BYTES = 1_000_000_000
ADDRESS_BYTES_OF_A_PROCESSOR = 200_000_000
RESIDENT_BYTES = 200_000_000


class MemoryShort(MqttlabError):
    """There is too little memory for what a command does."""


def need_for_tables() -> None:
    """Refuse to begin what reads tables where they cannot be read.

    Raises:
        MemoryShort: with how much it takes, and how much there is.
    """
    wanted = ADDRESS_BYTES + ADDRESS_BYTES_OF_A_PROCESSOR * (os.cpu_count() or 1)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in (resource.RLIM_INFINITY, -1) and limit < wanted:
        raise MemoryShort(f"this command reads tables, which takes about {wanted / 1e9:.1f} GB of addresses, and "
                          f"`ulimit -v` permits {limit / 1e9:.1f} GB; raise it")
    left = memory_left()
    if left is not None and left < RESIDENT_BYTES:
        raise MemoryShort(f"this command reads tables, which takes about {RESIDENT_BYTES / 1e6:.0f} MB of memory, and "
                          f"{left / 1e6:.0f} MB are left on this machine or in this control group; end other programs, "
                          "or raise the group's limit")


def memory_left(processes: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that programs can still take without swapping; nothing where the kernel does not say."""
    told = [*_of_the_machine(processes), *_of_groups(processes, groups)]
    return min(told, default=None)


def _of_the_machine(processes: Path) -> list[int]:
    text = _text(processes / "meminfo")
    return [1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("MemAvailable:")]


def _of_groups(processes: Path, groups: Path) -> list[int]:
    """What this process's control groups, and those that they are in, leave (cgroups(7))."""
    found = []
    for line in _text(processes / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        # Version 2 has one hierarchy, without names of controllers; version 1 one of its own for memory.
        if controllers and "memory" not in controllers.split(","):
            continue
        top = groups / "memory" if controllers else groups
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        place = top / path.lstrip("/")
        for group in (place, *place.parents):
            if not group.is_relative_to(top):
                break
            limit, used = (_number(group / name) for name in names)
            if limit is not None and used is not None:
                found.append(max(0, limit - used + _reclaimable(group)))
    return found


def _reclaimable(group: Path) -> int:
    """Pages of files, which the kernel gives up first."""
    # Version 1 has a group's own, and those of the groups in it.
    return max((int(line.split()[1]) for line in _text(group / "memory.stat").splitlines()
                if line.startswith(("inactive_file ", "total_inactive_file "))), default=0)


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
