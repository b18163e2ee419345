"""How far each quantile of the latency is shifted: a mean says nothing of a tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqttlab import statistics
from mqttlab.comparison.roles import Roles
from mqttlab.comparison.sides import Side, runs_of
from mqttlab.metrics.application import flow_latencies
from mqttlab.metrics.flow import Key
from mqttlab.recording import Recording

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
# Beyond this many samples from the end a quantile is the sample's largest value, and says nothing of the quantile.
SAMPLES_BEYOND = 5


@dataclass(frozen=True, kw_only=True)
class Shift:
    """One quantile of one flow's latency on both sides, in milliseconds."""

    flow: str
    q: float
    first_ms: float
    second_ms: float
    interval: statistics.Interval | None
    """Of the shift over runs: each run's quantile is one value. ``None`` with fewer than two runs on a side."""
    within: tuple[statistics.Interval, statistics.Interval] | None
    """Of the quantile within each run, where there is one run on each side."""

    @property
    def shift_ms(self) -> float:
        """Second less first."""
        return self.second_ms - self.first_ms


def shifts(first: Side, second: Side, roles: Roles) -> list[Shift]:
    """The shift of every quantile that the smaller side's runs have samples for, flow by flow."""
    *sides, paired = runs_of(first, second)
    samples = [[_by_flow(recording) for recording in runs] for runs in sides]
    found = []
    for role in roles.matched:
        runs = [[run[key] for run in side if key in run and run[key].size]
                for side, key in zip(samples, (role.first, role.second), strict=True) if key is not None]
        if not all(runs):
            continue
        fewest = min(run.size for side in runs for run in side)
        told = [q for q in QUANTILES if fewest * min(q, 1 - q) >= SAMPLES_BEYOND or q == 0.5]
        found += _shifts(role.title, told, runs, paired and len(runs[0]) == len(runs[1]))
    return found


def _shifts(flow: str, told: list[float], runs: list[list[np.ndarray]], paired: bool) -> list[Shift]:
    """Of these quantiles of one flow."""
    if all(len(side) == 1 for side in runs):
        within = zip(*(statistics.quantile_intervals(run, told, correlated=True) for (run,) in runs), strict=True)
        return [Shift(flow=flow, q=q, first_ms=one.estimate, second_ms=other.estimate, interval=None,
                      within=(one, other)) for q, (one, other) in zip(told, within, strict=True)]
    several = all(len(side) >= 2 for side in runs)
    # Each run is put in order once: a row for each run, a column for each quantile.
    first, second = ([np.quantile(run, told) for run in side] for side in runs)
    return [
        Shift(flow=flow, q=q, first_ms=float(np.mean(values[0])), second_ms=float(np.mean(values[1])), within=None,
              interval=statistics.difference(*values, paired=paired).interval if several else None)
        for at, q in enumerate(told)
        for values in ([[float(run[at]) for run in side] for side in (first, second)],)]


def _by_flow(recording: Recording) -> dict[Key, np.ndarray]:
    """Latencies in milliseconds of each flow, in the order of intended sending."""
    return {key: latencies.to_numpy() for key, latencies in flow_latencies(recording)}
