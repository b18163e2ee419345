"""``mqttlab check --sensitivity``: how much a simulation's latencies depend on what hosts take.

Where two things happen in the same microsecond, the first one decides, and in cycles of one period that stays so: with
Nagle's algorithm and delayed acknowledgements over two equal ways, for example. Seeds do not draw it. So the scenario
is simulated again with other times of hosts, a draw of each: the range is what a real host may show.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mqttlab import metrics, scratch
from mqttlab.digits import plain
from mqttlab.errors import UsageError
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import load
from mqttlab.terminal import say

DRAWS = 12
# From a fast program on an idle machine to a slow one on a busy machine, µs.
LEAST_US, MOST_US = 5.0, 200.0
SENSITIVE_PERCENT = 5.0
AT_ONCE = 2
COLUMNS = ("latency_ms_mean", "latency_ms_p50", "latency_ms_p99")
Values = dict[str, float | None]


def drawn(number: int) -> dict[str, str]:
    """The times of hosts of one draw, as settings of a scenario: the same for ever."""
    return {field: f"{LEAST_US * (MOST_US / LEAST_US) ** _uniform(number, field):.1f} us"
            for field in ("sim.client_wake_up", "broker.service.per_packet")}


def ranges(scenario: Path, overrides: dict[str, Any]) -> tuple[Values, list[Values]]:
    """Latencies of the scenario as it is written, and of each draw.

    Raises:
        UsageError: it has several servers, or its simulation does not come to its end.
    """
    with scratch.directory("sensitivity") as directory, ThreadPoolExecutor(AT_ONCE) as pool:
        def simulate(number: int) -> Values:
            other = {} if number < 0 else drawn(number)
            plan = compile_plan(load(scenario, {**overrides, **other, "backend": "sim"}))
            outcome = perform(Job(plan, directory / str(number)), lambda event: None)
            if outcome.verdict != "complete":
                raise UsageError(f"{scenario}: the simulation ended early: {outcome.reason}")
            table = metrics.application(Recording.open(outcome.directory), ())
            return {column: None if table.is_empty() else table.row(0, named=True)[column] for column in COLUMNS}

        written, *others = pool.map(simulate, range(-1, DRAWS))
    return written, others


def show_sensitivity(scenario: Path, overrides: dict[str, Any]) -> None:
    """Print the latencies as written, and their ranges over the draws."""
    loaded = load(scenario, overrides)
    if loaded.servers:
        raise UsageError("--sensitivity draws `broker.service.per_packet`; the scenario has `servers`")
    written, others = ranges(scenario, overrides)
    say(f"  {DRAWS} simulations with hosts that take {plain(LEAST_US)} to {plain(MOST_US)} us for a packet or to "
        "wake up:")
    widest = 0.0
    for column in COLUMNS:
        values = [value for each in others if (value := each[column]) is not None]
        here = written[column]
        if not values or here is None:
            continue
        low, high = min([*values, here]), max([*values, here])
        widest = max(widest, 100 * (high - low) / here if here else 0.0)
        say(f"    {column.removeprefix('latency_ms_')}: {plain(here, 4)} ms as written, "
            f"{plain(low, 4)} to {plain(high, 4)} ms")
    if widest > SENSITIVE_PERCENT:
        say(
            f"  sensitive: latencies differ by up to {widest:.0f} % with microseconds of a host's time. Quote the "
            "range, measure live, or vary `sim.client_wake_up` and `broker.service.per_packet` in an experiment")
    else:
        say(f"  not sensitive: latencies differ by {widest:.1f} % at most")


def _uniform(number: int, field: str) -> float:
    digest = blake2b(f"{number}/{field}".encode(), digest_size=8).digest()
    return math.ldexp(int.from_bytes(digest, "big") >> 11, -53)
