"""When a live and a simulated run of one drawn scenario agree, and how a scenario that does not is made smaller.

With one seed a side two runs are *alike* where deliveries, mean and p95 lie near each other. Where they are not, five
seeds a side decide: the pooled difference of pairs with its 95 % interval (``judgement.py``). It *differs*
where a whole interval lies beyond its bound; it is *undecided* where an interval reaches across the bound, for chance
does that to so few runs; else it *agrees*.

Bursts of loss and overload have tails that a dozen seconds do not average. They are judged by frames dropped and sent
again, by the median, and by the survival of all latencies of the pooled seeds (the largest distance between the two
distributions, beyond what the medians may differ by).
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgement import Bound, difference

Word = Literal["agrees", "differs", "undecided"]
Row = Mapping[str, Any]

ALIKE = {
    "messages_delivered": Bound(relative=0.02, absolute=2.0),
    "latency_ms_mean": Bound(relative=0.10, absolute=0.3),
    "latency_ms_p95": Bound(relative=0.15, absolute=0.5),
}
"""How near two single runs lie."""
POOLED = {
    "messages_delivered": Bound(relative=0.02, absolute=2.0),
    "latency_ms_mean": Bound(relative=0.05, absolute=0.2),
    "latency_ms_p95": Bound(relative=0.10, absolute=0.4),
}
"""How near the pooled runs lie: of a program and a kernel, both take some tenths of a millisecond that vary."""
HEAVY = {
    "messages_delivered": Bound(relative=0.02, absolute=2.0),
    "latency_ms_p50": Bound(relative=0.10, absolute=0.4),
    "frames_dropped": Bound(relative=0.10, absolute=5.0),
    "segments_sent_again": Bound(relative=0.15, absolute=5.0),
}
"""The same for scenarios with tails."""
SURVIVAL_MAX = 0.1
"""How far apart the distributions of all latencies may lie."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What is said of a scenario: the word, and each metric with what decided it."""

    word: Word
    metrics: dict[str, str]


def has_tails(values: Mapping[str, Any], rows: Sequence[Row]) -> bool:
    """Whether losses come in bursts, or more is offered than can be delivered in time."""
    links = [network.get(way) or {} for network in [*values.get("networks", []), values.get("trunk", {})]
             for way in ("up", "down")]
    bursts = any("burst_loss" in link or "bit_errors" in link for link in links)
    channel = bool({"channel", "shadowing", "fading"} & set(values.get("radio", {})))
    return bursts or channel or any(row.get("undelivered", 0) > 0.01 * row.get("expected", 0)
                                    or row.get("latency_ms_p95", 0) > 1000 for row in rows)


def alike(live: Row, sim: Row) -> bool:
    """Whether two single runs lie near each other."""
    return all(abs(_of(live, metric) - _of(sim, metric)) <= bound.around(_of(live, metric))
               for metric, bound in ALIKE.items())


def judge(values: Mapping[str, Any], live: Sequence[Row], sim: Sequence[Row]) -> Judged:
    """Judge runs of both backends, paired by seed.

    Raises:
        ValueError: fewer than two pairs.
    """
    tails = has_tails(values, [*live, *sim])
    words: dict[str, tuple[Word, str]] = {}
    for metric, bound in (HEAVY if tails else POOLED).items():
        found = difference([_of(row, metric) for row in live], [_of(row, metric) for row in sim], bound)
        word: Word = "agrees" if found.agrees else "undecided"
        if found.low > found.bound or found.high < -found.bound:
            word = "differs"
        words[metric] = word, found.words()
    if tails and all(row["latencies_ms"] for row in (*live, *sim)):
        apart = distance([row["latencies_ms"] for row in live], [row["latencies_ms"] for row in sim])
        # Runs of one backend lie so far apart by themselves.
        own = max(distance([one], [other]) for side in (live, sim) for one, other in _pairs(side))
        word = "agrees" if apart <= SURVIVAL_MAX else "differs" if apart > own else "undecided"
        words["latency survival"] = word, f"{apart:.2f} apart, {own:.2f} among runs of one backend"
    order: tuple[Word, ...] = ("differs", "undecided", "agrees")
    worst = next(word for word in order if any(word == found for found, _ in words.values()))
    return Judged(word=worst, metrics={name: f"{word}: {said}" for name, (word, said) in words.items()})


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Sequence[float], Sequence[float]]]:
    for index, one in enumerate(rows):
        for other in rows[:index]:
            yield one["latencies_ms"], other["latencies_ms"]


def _of(row: Row, metric: str) -> float:
    """A metric of a run; 0 where nothing arrived."""
    value = row.get(metric)
    return 0.0 if value is None or math.isnan(value) else float(value)


def distance(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> float:
    """How far apart two empirical distributions lie, each pooled from runs of equal weight.

    The largest difference of the shares up to a latency (Kolmogorov), where latencies nearer than the bound of the
    median count as equal: of messages that all take 144 ms a tenth of a millisecond would be the largest distance.

    Args:
        first: for each run its latencies, or evenly spaced quantiles of them.
        second: the same of the other side.
    """
    one, other = _shares(first), _shares(second)
    return max(_exceeds(one, other), _exceeds(other, one))


def _shares(runs: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Latencies in order, and the share that lies up to each."""
    weighted = sorted((value, 1 / (len(run) * len(runs))) for run in runs for value in run)
    return [value for value, _ in weighted], list(itertools.accumulate(weight for _, weight in weighted))


def _exceeds(one: tuple[list[float], list[float]], other: tuple[list[float], list[float]]) -> float:
    """By how much the share of one up to a latency is at most larger than that of the other up to a bound later."""
    bound = HEAVY["latency_ms_p50"]
    largest = 0.0
    for value, share in zip(*one, strict=True):
        reached = bisect.bisect_right(other[0], value + bound.around(value))
        largest = max(largest, share - (other[1][reached - 1] if reached else 0.0))
    return largest


def smaller(values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The scenario without one of its parts, each in turn, the largest parts first; with what was left out."""
    found = sorted(_parts(values, ()), key=lambda place: (len(place), str(place)))
    for place in found:
        yield ".".join(map(str, place)), _without(values, place)


KEPT = {"name", "phases", "between", "topic", "filter", "host", "groups", "publish", "subscribe", "networks", "delay",
        "servers", "protocol", "connects_to", "role", "count", "payload", "rate", "interval", "arrival", "forwards"}
"""What says who and where, and what a scenario cannot be without."""


def _parts(value: Any, here: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in KEPT:
                yield (*here, name)
            yield from _parts(inner, (*here, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _parts(inner, (*here, index))


def _without(value: Any, place: tuple[str | int, ...]) -> Any:
    first, *rest = place
    if isinstance(value, list):
        return [_without(inner, tuple(rest)) if index == first else inner for index, inner in enumerate(value)]
    return {name: _without(inner, tuple(rest)) if name == first else inner for name, inner in value.items()
            if rest or name != first}


def shrink(values: Mapping[str, Any], still_differs: Callable[[Mapping[str, Any]], bool], *, trials: int
           ) -> tuple[dict[str, Any], list[str]]:
    """Leave out what the difference does not need, part by part, until nothing more can go or the trials are used up.

    Args:
        values: a scenario that differs.
        still_differs: runs a smaller one; false, too, where it is not complete.
        trials: how many are run at most.

    Returns:
        The smallest scenario, and what was left out.
    """
    smallest, left_out = dict(values), []
    again = True
    while again:
        again = False
        for part, candidate in smaller(smallest):
            if trials <= 0:
                return smallest, left_out
            trials -= 1
            if still_differs(candidate):
                smallest, again = candidate, True
                left_out.append(part)
                break
    return smallest, left_out
