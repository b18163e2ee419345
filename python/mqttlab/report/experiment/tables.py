"""The tables of an experiment's report, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mqttlab.analysis import Analysis, Compared, PointEstimate, Response
from mqttlab.digits import plain
from mqttlab.plurals import counted
from mqttlab.report.text import number
from mqttlab.statistics import Interval, proportion_interval

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
WORDS = ("better", "worse", "equivalent", "different", "undecided")


def headline(analysis: Analysis) -> str:
    """The verdict in one line."""
    counts = analysis.words()
    if not counts:
        return f"{counted(analysis.runs, 'run')}, without a reference to compare with"
    reference = next((levels(point.levels) for each in analysis.responses for point in each.points
                      if point.key == analysis.design.reference), "")
    return f"Compared with {reference or 'the reference'}: " + ", ".join(
        f"{counts[word]} {word}" for word in WORDS if word in counts)


def facts(analysis: Analysis) -> list[str]:
    """What stands beside the verdict: how many runs, what was left out, drift, warnings."""
    said = [f"{counted(analysis.runs, 'run counts', 'runs count')}"
            + (f", and {counted(analysis.controls, 'control run')}" if analysis.controls else "")
            + f"; {counted(len(analysis.left_out), 'was', 'were')} left out."]
    said += [f"{words}." for words in analysis.design.found]
    for each in analysis.responses:
        said += [f"{each.name}: {words}" for words in each.warnings]
        if each.drift is not None and each.drift.p <= 0.05:
            said.append(f"{each.name}: {each.drift.words()} Looked for in {each.drift_of}.")
    return said


def points(analysis: Analysis, each: Response) -> Table:
    """Each point with its interval and n, and how it compares with the reference."""
    names = [factor.name for factor in analysis.design.factors]
    compared = {found.point.key: found for found in each.compared}
    head = ("point", *names, "n", "mean", "95 % interval", "difference %", "ratio, 95 %", "Cliff's δ", "verdict")
    rows: list[tuple[str, ...]] = []
    for point in each.points:
        found = compared.get(point.key)
        beside = ("reference" if point.key == analysis.design.reference else "–",) if found is None else ()
        rows.append((
            str(point.point), *(point.levels[name] for name in names), str(len(point.values)),
            number(point.interval.estimate), of_point(each, point),
            *(("–", "–", "–", *beside) if found is None else _compared(found))))
    return head, rows


def constant(each: Response) -> str:
    """What is to say of a response that no two runs differ in."""
    runs, value = each.rows.height, float(each.rows["value"][0])
    bound = ""
    if value == 0:
        bound = (f"; with 95 % confidence fewer than {plain(100 * proportion_interval(0, runs).high, 2)} % of runs "
            "have any")
        messages = [point.expected for point in each.points if point.expected]
        if len(messages) == len(each.points):
            bound += (f", and where each is lost or not by itself, fewer than {_share_of_none(sum(messages))} of the "
                      f"{number(sum(messages))} deliveries that were expected")
    return f"{each.name}: {number(value)} {each.unit} in all {runs} runs{bound}."


def of_point(each: Response, point: PointEstimate) -> str:
    """A point's interval; of a share that is zero in every run, a bound instead of an interval of no width."""
    if each.unit == "%" and len(point.values) > 1 and max(map(abs, point.values)) == 0:
        bound = proportion_interval(0, len(point.values)).high
        of_messages = f", < {_share_of_none(point.expected)} of {number(point.expected)}" if point.expected else ""
        return f"0 in all: in < {100 * bound:.0f} % of runs any{of_messages}"
    return interval(point.interval)


def _share_of_none(of: int) -> str:
    """The upper bound of a share that none of so many showed; losses come in bursts, and then it may be higher."""
    return f"{number(100 * proportion_interval(0, of).high, 2)} %"


def _compared(found: Compared) -> tuple[str, ...]:
    ratio = found.ratio.estimate
    percent = f"{100 * (ratio - 1):+.1f}" if math.isfinite(ratio) else "–"
    return (percent, interval(found.ratio), interval(found.overlap, 2), found.verdict.words() if found.verdict else "–")


def variation(each: Response) -> Table:
    """The allocation of variation."""
    rows: list[tuple[str, ...]] = []
    for term in each.model.terms if each.model else ():
        confounded = f"confounded with {', '.join(term.aliases)}" if term.confounded else ""
        also = f"or {', '.join(term.aliases)}" if term.aliases and not term.confounded else ""
        rows.append((f"{term.name} {also}".strip(), str(term.freedom), confounded or f"{term.percent:.1f}",
                     "–" if term.f is None else number(term.f, 3), probability(term.p)))
    return ("term", "degrees of freedom", "% of the variation", "F", "p"), rows


def effects(each: Response, *, pairs: bool = False) -> Table:
    """The effect of each level, or of each pair of levels."""
    rows: list[tuple[str, ...]] = []
    for effect in each.model.effects if each.model else ():
        if (len(effect.factors) == 2) == pairs:
            found = effect.interval
            shown = [math.exp(end) if each.logarithm else end for end in (found.estimate, found.low, found.high)]
            sign = "× " if each.logarithm else ""
            rows.append((" × ".join(effect.factors), " × ".join(effect.levels), sign + number(shown[0]),
                         f"{number(shown[1], 3)} … {number(shown[2], 3)}"))
    what = "effect (factor)" if each.logarithm else f"effect ({each.unit})"
    return ("of", "level", what, "95 % interval"), rows


def trends(each: Response) -> Table:
    """The trends over numeric factors."""
    rows: list[tuple[str, ...]] = []
    for line in each.lines:
        fit = line.trend.chosen
        knee = "–" if fit.knee is None else f"{number(fit.knee.estimate)} ({interval(fit.knee)})"
        rows.append((line.factor, ", ".join(f"{name} {level}" for name, level in line.others.items()) or "–", fit.shape,
                     fit.words(), line.trend.why.partition(": ")[2], knee, interval(line.trend.slope)))
    return ("over", "at", "shape", "line (in base units)", "why", "knee", "Theil–Sen slope"), rows


def left_out(analysis: Analysis) -> Table:
    """Runs that do not count."""
    return ("point", "run", "state", "reason"), [
        (str(run.point), run.run, run.state, run.reason) for run in analysis.left_out]


def levels(chosen: dict[str, str]) -> str:
    """Levels in words."""
    return ", ".join(f"{name} {level}" for name, level in chosen.items())


def interval(found: Interval, digits: int = 3) -> str:
    """An interval's ends, or why there are none."""
    if not found.bounded:
        return found.note or "unbounded"
    return f"{number(found.low, digits)} … {number(found.high, digits)}"


def probability(p: float | None) -> str:
    """A p value."""
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def shortened(rows: Sequence[tuple[str, ...]], most: int) -> tuple[list[tuple[str, ...]], int]:
    """The first rows, and how many are not among them."""
    return list(rows[:most]), max(len(rows) - most, 0)
