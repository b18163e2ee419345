"""What a comparison says: a sentence with the difference, and for each point the figures behind it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mqttlab.comparison import change, words_of_change
from mqttlab.comparison.changes import TOLERANCE_PERCENT, by
from mqttlab.digits import latency_in_words, plain
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.responses import Response, chosen, too_few
from mqttlab.plurals import counted
from mqttlab.statistics import mean_interval
from mqttlab.trial.experiment import BYTES_DOWN, BYTES_UP, DISCONNECTS, LATE, UNDELIVERED
from mqttlab.trial.options import Trial

P50, P99 = Response("latency_ms_p50"), Response("latency_ms_p99")
# So many points are named where they are not told apart.
NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Point:
    """The runs of one combination of values."""

    levels: dict[str, str]
    records: tuple[RunRecord, ...]
    """Those with a result, by block."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {text}" for name, text in self.levels.items())

    def values(self, response: Response) -> list[float]:
        """A number for each run that has one."""
        return [value for record in self.records if (value := chosen(record.responses, response)) is not None]

    def too_few(self, response: Response) -> list[int]:
        """Of how many messages the percentiles of those runs are that have too few."""
        return [n for record in self.records if (n := too_few(record.responses, response)) is not None]

    def mean(self, response: Response) -> float | None:
        """The mean over runs."""
        values = self.values(response)
        return statistics.fmean(values) if values else None

    def half_width(self, response: Response) -> float | None:
        """Of the 95 % interval of that mean; none of a single run."""
        values = self.values(response)
        if len(values) < 2:
            return None
        interval = mean_interval(values)
        return (interval.high - interval.low) / 2


def answer(trial: Trial, points: Sequence[Point]) -> str:
    """The difference in a sentence."""
    few = [n for point in points for n in point.too_few(P99)]
    name, response = ("p50", P50) if few else ("p99", P99)
    measured = [point for point in points if point.mean(response) is not None]
    if len(measured) < 2:
        return "No comparison: fewer than two points have a result."
    runs = min(len(point.records) for point in measured)
    basis = "one run each; --repetitions 5 adds intervals" if runs == 1 else f"{runs} runs each"
    if few:
        basis += f"; {counted(min(few), 'delivery is', 'deliveries are')} too few for a p99"
    if len(points) == 2:
        pair = "; ".join(_pair(trial, name, response, *measured))
        return f"{_title(measured[1])} against {_title(measured[0])}: {pair} ({basis})."
    said = [_extremes(name, response, measured, several=runs > 1), _losses(measured), *_counts(measured),
            *_most_bytes(trial, measured)]
    return f"{'; '.join(said)} ({basis})."


def _extremes(name: str, response: Response, points: Sequence[Point], *, several: bool) -> str:
    """With which points a latency is lowest and highest; those that several runs do not tell from the lowest are named
    with it."""
    ordered = sorted(points, key=lambda point: point.mean(response) or 0.0)
    first, last = ordered[0], ordered[-1]
    alike = [point for point in ordered if point is first or (several and not _is_apart(first, point, response))]
    ends = [latency_in_words(point.mean(response)) for point in (first, alike[-1])]
    between = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    if alike[-1] is last:
        return f"no difference of {name} is shown ({between})"
    lowest = f"{first} ({ends[0]})" if len(alike) == 1 else f"{_named(alike)}, which are not told apart ({between}),"
    return f"{name} is lowest with {lowest} and highest with {last} ({latency_in_words(last.mean(response))})"


def _named(points: Sequence[Point]) -> str:
    return " and ".join(map(str, points)) if len(points) <= NAMED else f"{points[0]} and {len(points) - 1} more"


def _is_apart(first: Point, second: Point, response: Response) -> bool:
    found = change(first.values(response), second.values(response), paired=_are_paired(first, second))
    return found.word not in ("same", "undecided")


def _most_bytes(trial: Trial, points: Sequence[Point]) -> list[str]:
    """Which points need fewest and most bytes, where they carry the same load and differ by more than the tolerance."""
    if not {"clients", "every", "rate", "payload"}.isdisjoint(trial.varied):
        return []
    way, response = ("down", BYTES_DOWN) if trial.shape == "fan-out" else ("up", BYTES_UP)
    known = sorted((point for point in points if point.mean(response)), key=lambda point: point.mean(response) or 0.0)
    if len(known) < 2:
        return []
    first, last = known[0], known[-1]
    ratio = (last.mean(response) or 0.0) / (first.mean(response) or 1.0)
    if 100 * (ratio - 1) <= TOLERANCE_PERCENT:
        return []
    return [f"fewest bytes {way} with {first}, {by(ratio, '', 'more')} with {last}"]


def _title(point: Point) -> str:
    """A point at the beginning of a sentence, or within."""
    return str(point).replace("qos ", "QoS ")


def _pair(trial: Trial, name: str, latency: Response, first: Point, second: Point) -> list[str]:
    said = [f"{name} {_change(first, second, latency, 'lower', 'higher')}", _losses([first, second]),
            *_counts([first, second])]
    ways = {"fan-in": (("up", BYTES_UP),), "fan-out": (("down", BYTES_DOWN),),
            "own": (("up", BYTES_UP), ("down", BYTES_DOWN))}[trial.shape]
    # Of different loads the bytes differ by intent.
    if {"clients", "every", "rate", "payload"}.isdisjoint(trial.varied):
        said += [_bytes(first, second, response, f"bytes {way}") for way, response in ways
                 if first.mean(response) and second.mean(response)]
    return said


def _bytes(first: Point, second: Point, response: Response, noun: str) -> str:
    text = _change(first, second, response, f"fewer {noun}", f"more {noun}")
    return text if noun in text else f"{noun} {text}"


def _change(first: Point, second: Point, response: Response, less: str, more: str) -> str:
    """How much the second differs from the first, in the words of every comparison."""
    found = change(first.values(response), second.values(response), paired=_are_paired(first, second))
    return words_of_change(found, less, more, figure)


def _are_paired(first: Point, second: Point) -> bool:
    return [record.block for record in first.records] == [record.block for record in second.records]


def _losses(points: Sequence[Point]) -> str:
    shares = [point.mean(UNDELIVERED) or 0.0 for point in points]
    if not any(shares):
        return "all messages delivered"
    if len(points) == 2:
        return f"not delivered {figure(shares[1])} % instead of {figure(shares[0])} %"
    worst = max(points, key=lambda point: point.mean(UNDELIVERED) or 0.0)
    return f"most not delivered with {worst} ({figure(max(shares))} %)"


def _counts(points: Sequence[Point]) -> list[str]:
    """Deliveries that were later than asked for, and connections that ended unplanned, where there are any."""
    said = []
    for noun, response in (("late", LATE), ("disconnects", DISCONNECTS)):
        means = [point.mean(response) or 0.0 for point in points]
        if not any(means):
            continue
        worst = [point for point, mean in zip(points, means, strict=True) if mean == max(means)]
        said.append(f"{noun} {figure(means[1])} instead of {figure(means[0])}" if len(points) == 2 else
                    f"most {noun} with {_named(worst)} ({figure(max(means))})")
    return said


def figure(value: float | None) -> str:
    """A number with three digits, as people read it."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    return plain(value, 3)
