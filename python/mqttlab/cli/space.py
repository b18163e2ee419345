"""Whether the disk has room for what a run would record."""

from __future__ import annotations

from pathlib import Path

from mqttlab.errors import UsageError
from mqttlab.scenario import Scenario
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.needs import room

MEGABYTE = 1e6


def need_room(scenario: Scenario, runs: Path) -> None:
    """Refuse a scenario whose recordings are estimated to take more than the disk of ``runs`` has free.

    Raises:
        UsageError: there is not enough room.
    """
    load = estimate(scenario)
    wanted, free = room(scenario, runs)
    if wanted > free:
        runs_words = "" if scenario.repetitions == 1 else f" in {scenario.repetitions} repetitions"
        raise UsageError(
            f"the recording would take about {size(wanted)}{runs_words} ({load.words()}), and the disk of {runs} "
            f"has {size(free)} free; shorten `phases.duration`, set `recording.detail = \"messages\"`, or choose "
            "another disk with `--runs`; `--ignore-disk` starts it all the same")


def size(count: float) -> str:
    """Bytes as people read them."""
    return f"{count / MEGABYTE:,.1f} MB" if count < 1000 * MEGABYTE else f"{count / MEGABYTE / 1000:,.1f} GB"
