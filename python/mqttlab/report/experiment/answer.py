"""An experiment's answer: one or two sentences with their certainty, its thresholds by point, and what points cost.

Terminal, page, dashboard, ``--json`` and the list of experiments show this one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from mqttlab.analysis import Analysis, AsGood, Compared, Judged, Recommendation, Response, totals
from mqttlab.comparison import Change, words_of_change
from mqttlab.foreign import visible
from mqttlab.metrics import called_beside_a_value
from mqttlab.plurals import counted
from mqttlab.report.experiment.tables import Table, levels
from mqttlab.report.text import number
from mqttlab.statistics.planning import RUNS_MOST

TOLD = 3
SURE = 0.995
# Names of several words; what is no metric stays as it is.
NAME = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an experiment says first."""

    state: Literal["broken", "undecided", "held", "none"]
    """Of its thresholds together; ``none`` where it has none."""
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """In a line."""
        return " ".join(self.sentences)


def answer(analysis: Analysis) -> Answer:
    """The answer of an experiment."""
    verdicts = [each.verdict for each in analysis.thresholds]
    state: Any = next((word for word in ("broken", "undecided", "held") if word in verdicts), "none")
    said = [_thresholds(analysis.thresholds)] if verdicts else []
    said += [f"{words[:1].upper()}{words[1:]}." for words in analysis.design.found]
    if analysis.recommendations is not None:
        said += _choices(analysis)
    elif not analysis.design.found:
        said += _points(analysis)
    said += _more_runs(analysis)
    return Answer(state=state, sentences=tuple(visible(words) for words in said if words))


def thresholds(analysis: Analysis) -> Table:
    """A row for each threshold and point, the broken ones first."""
    order = ("broken", "undecided", "held")
    rows = sorted(analysis.thresholds, key=lambda each: order.index(each.verdict))
    return ("verdict", "point", "threshold", "measured"), [
        (each.verdict, each.point or "–", in_words(each.threshold), each.words) for each in rows]


def in_words(threshold: str) -> str:
    """A threshold without the names that metrics have in files: ``latency p99 below 250 ms``."""
    return NAME.sub(lambda found: called_beside_a_value(found[0]), threshold)


def costs(analysis: Analysis) -> Table:
    """What each point costs a device; the means over runs."""
    points = {point.key: levels(point.levels) or "all runs" for each in analysis.responses for point in each.points}
    rows = [(name, *(number(cost.mean(key), 3) for cost in analysis.costs)) for key, name in points.items()]
    return ("point", *(cost.title for cost in analysis.costs)), rows if analysis.costs else []


def recommendations(analysis: Analysis) -> Table:
    """What to choose where, how certain that is, and what the choices cost that these runs cannot tell from it."""
    table = analysis.recommendations
    if table is None:
        return (), []
    names = list(table.rows[0].environment)
    rows: list[tuple[str, ...]] = []
    for row in table.rows:
        mean = "–" if row.objective is None else number(row.objective.estimate)
        others = "; ".join(f"{levels(other.levels)}: {_cost(analysis, row, other.levels)}"
                           for other in row.as_good) or "none"
        choice = levels(row.choice) if row.choice else "none delivers enough"
        rows.append((*(row.environment[name] for name in names), choice, others, mean, _percent(row.certainty),
                     str(row.refused)))
    head = ("choose", "also fine, at which cost", f"its {_objective(analysis)}", "certainty", "deliver too little")
    return (*names, *head), rows


def document(analysis: Analysis) -> dict[str, Any]:
    """The answer as JSON has it."""
    found = answer(analysis)
    return {"question": analysis.design.question, "answer": found.text, "state": found.state,
            "thresholds": [{"threshold": each.threshold, "point": each.point, "verdict": each.verdict,
                            "words": each.words} for each in analysis.thresholds],
            "costs": [{"metric": cost.metric, "of": cost.of, "points": {
                levels(point.levels): cost.mean(point.key) for point in _first_points(analysis)}}
                for cost in analysis.costs],
            "costs_unknown": list(analysis.costs_unknown)}


def _thresholds(judged: Sequence[Judged]) -> str:
    total = len(judged)
    by_verdict = {word: [each for each in judged if each.verdict == word] for word in ("broken", "undecided", "held")}
    broken, undecided = by_verdict["broken"], by_verdict["undecided"]
    if len(broken) == total:
        return (f"The threshold is broken: {in_words(broken[0].threshold)}, measured {broken[0].words}."
                if total == 1 else f"All {total} threshold checks are broken.")
    if broken:
        named = "; ".join(in_words(each.threshold) + (f" at {each.point}" if each.point else "")
                          for each in broken[:TOLD])
        more = f"; and {len(broken) - TOLD} more" if len(broken) > TOLD else ""
        return f"{len(broken)} of {total} threshold checks {'is' if len(broken) == 1 else 'are'} broken: {named}{more}."
    if undecided:
        return (f"{len(undecided)} of {counted(total, 'threshold check')} "
                f"{'is' if len(undecided) == 1 else 'are'} undecided: more runs are needed.")
    return "The threshold is held." if total == 1 else f"All {total} threshold checks are held."


def _choices(analysis: Analysis) -> list[str]:
    """What the recommendation says, with what the alternatives cost."""
    table = analysis.recommendations
    assert table is not None
    if len(table.rows) > TOLD:
        chosen = [levels(row.choice) if row.choice else "none" for row in table.rows]
        shares = "; ".join(f"{choice} in {chosen.count(choice)} of {len(chosen)} cases"
                           for choice in sorted(set(chosen), key=chosen.count, reverse=True)[:TOLD])
        on = ", ".join(table.rows[0].environment)
        if len(set(chosen)) == 1 and chosen[0] != "none":
            return [f"Choose {chosen[0]} in all {len(chosen)} cases of {on}: nothing as good in {table.objective} is "
                    "cheaper."]
        return [f"The choice depends on {on}: {shares}. It is the cheapest of those as good in {table.objective}."]
    said = [words for row in table.rows for words in _choice(analysis, row)]
    if not analysis.costs:
        said.append("What the choices cost is not known.")
    return [f"{words[:1].upper()}{words[1:]}" for words in said]


def _choice(analysis: Analysis, row: Recommendation) -> list[str]:
    """What to choose in one environment, why, and what else is as good."""
    table = analysis.recommendations
    assert table is not None
    where = f"At {levels(row.environment)}: " if row.environment else ""
    if row.choice is None or row.objective is None:
        return [f"{where}no choice delivers enough."]
    figure = partial(_figure, next(each for each in analysis.responses if each.name == table.objective))
    value, certain = figure(row.objective.estimate), _certain(row.certainty)
    broken = _broken(analysis, row)
    none_holds = "no choice holds every threshold; " if broken == "all" else ""
    others = [other for other in row.as_good if other is not row.best]
    if row.best is None:
        verb = {"all": f"{levels(row.choice)} has", "it": f"{levels(row.choice)} breaks a threshold, but has"}.get(
            broken, f"choose {levels(row.choice)}: it has")
        said = [f"{where}{none_holds}{verb} the {table.side} {table.objective}, {value} ({certain})."]
    else:
        same = (f"no difference in {table.objective} that matters" if row.best.word == "equivalent" else
                f"these runs show no difference in {table.objective}")
        cost = _cost(analysis, row, row.choice, than=row.best.levels)
        said = [f"{where}{none_holds}{same}: choose {levels(row.choice)}, {value} ({certain}). It {cost} than "
                f"{levels(row.best.levels)}, {figure(row.best.estimate)}."]
    if row.cheaper is not None:
        said.append(f"It {_cost(analysis, row, row.choice, than=row.cheaper)} than {levels(row.cheaper)}.")
    return said + [f"{_as_good(other)}: {levels(other.levels)}, {_but(_cost(analysis, row, other.levels))}."
                   for other in others[:TOLD]]


def _as_good(other: AsGood) -> str:
    return "Equivalent" if other.word == "equivalent" else "No difference shown"


def _more_runs(analysis: Analysis) -> list[str]:
    """How many more runs would decide what is undecided, and how to have them."""
    table = analysis.recommendations
    undecided = [(table.objective, other.runs_needed) for row in table.rows for other in row.as_good
                 if other.word == "undecided"] if table is not None else []
    # Of what a choice rests on, the choice says what is undecided.
    undecided += [(each.name, found.verdict.runs_needed) for each, found in analysis.comparisons
                  if found.verdict is not None and found.verdict.word == "undecided"
                  and (table is None or each.name != table.objective)]
    most = max((len(point.values) for each in analysis.responses for point in each.points), default=0)
    if not undecided or most < 2:
        return []
    known = [(name, count) for name, count in undecided if count is not None]
    beyond = sorted({name for name, count in undecided if count is None})
    said = [f"Over {RUNS_MOST} more runs of each point would be needed to decide {_listed(beyond)}."] if beyond else []
    if known:
        more = max(count for _, count in known)
        how = ("" if analysis.design.stopping else
               f": write repetitions = {most + more} into its file, then mqttlab experiment FILE")
        decided = _listed(sorted({name for name, _ in known} - set(beyond)) or [f"what is nearest of {beyond[0]}"])
        said.insert(0, f"{counted(more, 'more run')} of each point would decide {decided}{how}.")
    return said


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def words_of_choices(analysis: Analysis) -> int:
    """How many columns of the table of recommendations are words."""
    table = analysis.recommendations
    return 0 if table is None else len(table.rows[0].environment) + 2


def _objective(analysis: Analysis) -> str:
    table = analysis.recommendations
    return "" if table is None else next(
        (each.label for each in analysis.responses if each.name == table.objective), table.objective)


def _certain(share: float | None) -> str:
    if share is None:
        return "too few runs to say how certain that is"
    return f"{_percent(share)} certain"


def _but(cost: str) -> str:
    """What an alternative costs, as a reason against it or for it."""
    return f"{'but' if 'more' in cost else 'and'} it {cost}"


def _broken(analysis: Analysis, row: Recommendation) -> str:
    """Whether all points of a row break a threshold, or the one that it chooses."""
    here = [point for point in _first_points(analysis) if row.environment.items() <= point.levels.items()]
    bad = {each.key for each in analysis.thresholds if each.verdict == "broken"}
    if here and all(point.key in bad for point in here):
        return "all"
    chosen = [point.key for point in here if (row.choice or {}).items() <= point.levels.items()]
    return "it" if any(key in bad for key in chosen) else ""


def _cost(
    analysis: Analysis, row: Recommendation, other: dict[str, str], than: dict[str, str] | None = None,
) -> str:
    """What a choice costs, against another one, by default against the one that is recommended."""
    keys = [next((point.key for point in _first_points(analysis)
                  if (row.environment | of).items() <= point.levels.items()), "")
            for of in (than or row.choice or {}, other)]
    known = totals(analysis.costs)
    changes = [(total, total.means[keys[1]] / total.means[keys[0]] - 1) for total in known
               if total.means.get(keys[0]) and keys[1] in total.means]
    if not changes:
        return "may cost more or less: no cost is known"
    far = [(total, change) for total, change in changes if abs(change) > analysis.design.margin]
    if not far:
        return "costs the same"
    # Bytes come before energy, and energy before the processor, as they do where the cheapest is looked for.
    total, change = max(far, key=lambda one: (-one[0].kind, abs(one[1])))
    what = COST_WORDS[total.kind] + (f" of {total.of}" if len(known) > 1 and total.of else "")
    return (f"costs {100 * change:.0f} % more {what}" if change > 0 else
            f"needs {-100 * change:.0f} % {'fewer' if 'bytes' in what else 'less'} {what}")


def _points(analysis: Analysis) -> list[str]:
    """Without anything to choose: the first response, beside the reference or from end to end."""
    first = next((each for each in analysis.responses if each.points), None)
    if first is None:
        return []
    figure = partial(_figure, first)
    if len(first.points) == 1:
        [point] = first.points
        return [f"{first.name}: {figure(point.interval.estimate)}, over {counted(len(point.values), 'run')}."]
    if len(first.compared) == 1:
        [found] = first.compared
        reference = next(point for point in first.points if point.key == analysis.design.reference)
        change = words_of_change(_change(found, reference.values), "lower", "higher", figure)
        return [f"{levels(found.point.levels)} against {levels(reference.levels)}: {first.name} {change}."]
    ordered = sorted(first.points, key=lambda point: point.interval.estimate)
    low, high = ordered[0], ordered[-1]
    name = first.name[:1].upper() + first.name[1:]
    return [f"{name} is lowest at {levels(low.levels)} ({figure(low.interval.estimate)}) and highest at "
            f"{levels(high.levels)} ({figure(high.interval.estimate)})."]


def _change(found: Compared, reference: tuple[float, ...]) -> Change:
    word = "undecided" if found.verdict is None else {"equivalent": "same", "undecided": "undecided"}.get(
        found.verdict.word, "differs")
    known = found.ratio.bounded
    return Change(first=reference, second=found.point.values, word=word, ratio=found.ratio.estimate if known else None,
                  low=found.ratio.low if known else None, high=found.ratio.high if known else None)


def _figure(of: Response, value: float | None) -> str:
    return f"{number(value, 3)} {of.unit}".strip()


def _first_points(analysis: Analysis) -> Sequence[Any]:
    return analysis.responses[0].points if analysis.responses else ()


def _percent(share: float | None) -> str:
    if share is None:
        return "too few runs"
    # 2,000 draws of few runs do not make anything certain.
    return "over 99 %" if share >= SURE else f"{100 * share:.0f} %"


COST_WORDS = ("bytes", "energy a delivery", "processor time a delivery")
"""By their weight, as :func:`mqttlab.analysis.totals` has it."""
