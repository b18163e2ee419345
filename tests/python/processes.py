"""Programs that run on this machine, by their words."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path


def processes(wanted: Callable[[list[str]], bool]) -> list[int]:
    """Those whose words are wanted, but for the ended ones that nobody has waited for yet."""
    return list(_with_parents(wanted))


def queues(place: Path | str) -> list[int]:
    """Processes of the queue in a directory; not what they have just forked, which has their words until it is a
    program of its own."""
    found = _with_parents(lambda words: words[1:4] == ["-m", "mqttlab.queue", str(place)])
    return [process for process, parent in found.items() if parent not in found]


def engines(words_of_them: Callable[[list[str]], bool]) -> list[int]:
    """Engines with such words."""
    return processes(lambda words: words[0].endswith("mqttlab-engine") and words_of_them(words[1:]))


def children(parents: list[int], wanted: Callable[[list[str]], bool]) -> list[int]:
    """Processes with such words that these have started."""
    return [process for process, parent in _with_parents(wanted).items() if parent in parents]


def _with_parents(wanted: Callable[[list[str]], bool]) -> dict[int, int]:
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if wanted(words):
                state, parent = (place / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
                if state != "Z":
                    found[int(place.name)] = int(parent)
    return found
