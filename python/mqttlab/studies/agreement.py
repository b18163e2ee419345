"""Where live runs and simulations of one scenario differ, and in which parts of a message's time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mqttlab.metrics.attribution import attribution_by_qos
from mqttlab.recording import Recording
from mqttlab.studies.means import mean_of_runs

T = TypeVar("T")
# What a live run may differ by from its simulation without a word.
NEAR = 0.10
# Parts are named until they come to this share of what all parts differ by.
NAMED = 0.90


@dataclass(frozen=True, kw_only=True)
class Measured(Generic[T]):
    """What a study keeps of a recording, and where the time of its messages went."""

    value: T
    parts: Mapping[int, Mapping[str, float]]
    """By QoS, the mean of each part of the latency in milliseconds; empty where nothing is attributed."""


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A scenario's mean latency at one QoS, live and simulated; milliseconds."""

    scenario: str
    qos: int
    live: float
    live_half: float | None
    """Half width of the 95 % confidence interval between runs."""
    simulated: float
    simulated_half: float | None
    parts: Sequence[tuple[str, float, float]]
    """Part, live, simulated; the largest difference first, and no more than tell nearly all of it."""

    @property
    def within(self) -> bool:
        """Whether the intervals are as wide as the difference: the runs do not tell that there is one."""
        return abs(self.live - self.simulated) <= (self.live_half or 0) + (self.simulated_half or 0)


def with_parts(measure: Callable[[Recording], T]) -> Callable[[Recording], Measured[T]]:
    """A study's measure, and the parts of the latency beside what it keeps."""
    return lambda recording: Measured(value=measure(recording), parts=parts_of(recording))


def parts_of(recording: Recording) -> dict[int, dict[str, float]]:
    """The mean of each part over the measurement, by QoS, in milliseconds."""
    found: dict[int, dict[str, float]] = {}
    means = attribution_by_qos(recording)
    if not means.is_empty():
        for qos, part, mean in means.select("qos", "part", "mean_ms").iter_rows():
            found.setdefault(qos, {})[part.removesuffix("_ns")] = mean or 0.0
    return found


def compared(
    live: Mapping[str, Sequence[Measured[T]]], simulated: Mapping[str, Sequence[Measured[T]]],
) -> Iterable[Disagreement]:
    """Every scenario's latency by QoS, where both say where it went, in the order of the live runs."""
    for name, runs in live.items():
        here, there = [one.parts for one in runs], [one.parts for one in simulated.get(name, ())]
        for qos in sorted(set().union(*here) & set().union(*there)):
            yield _disagreement(name, qos, [parts[qos] for parts in here if qos in parts],
                         [parts[qos] for parts in there if qos in parts])


def far(found: Iterable[Disagreement]) -> list[Disagreement]:
    """Those that differ by more than a tenth of what is simulated."""
    return [one for one in found if abs(one.live - one.simulated) > NEAR * one.simulated]


def _disagreement(
    name: str, qos: int, here: Sequence[Mapping[str, float]], there: Sequence[Mapping[str, float]],
) -> Disagreement:
    (live, live_half), (simulated, simulated_half) = (mean_of_runs([sum(parts.values()) for parts in runs])
                                                      for runs in (here, there))
    means = [(part, statistics.fmean(parts[part] for parts in here), statistics.fmean(parts[part] for parts in there))
             for part in here[0]]
    means.sort(key=lambda mean: -abs(mean[1] - mean[2]))
    every = sum(abs(one - other) for _, one, other in means)
    named: list[tuple[str, float, float]] = []
    while means and sum(abs(one - other) for _, one, other in named) < NAMED * every:
        named.append(means.pop(0))
    return Disagreement(scenario=name, qos=qos, live=live, live_half=live_half, simulated=simulated,
                 simulated_half=simulated_half, parts=named)
