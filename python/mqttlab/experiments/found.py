"""What a search has found, in words and for programs; and what a rule of repetitions could not judge."""

from __future__ import annotations

from typing import Any

from mqttlab.experiments.load import Experiment
from mqttlab.experiments.model import Repetitions
from mqttlab.experiments.responses import response_of, too_few, too_few_in_words
from mqttlab.experiments.schedule import Answers, Found, found_by, wanted
from mqttlab.plurals import counted


def sentences(experiment: Experiment, answers: Answers) -> list[str]:
    """Of a search a sentence for each combination of the other factors; of a rule of repetitions why it was undecided;
    else none."""
    search = experiment.file.search
    if search is None:
        return _undecided(experiment, answers)
    others = [factor.name for factor in experiment.factors if factor.name != search.factor]
    said = []
    for found in found_by(experiment, search, answers).values():
        where = ", ".join(f"{name} {found.start.levels[name].text}" for name in others)
        said.append(f"{where + ': ' if where else ''}{search.factor}: the criterion {words(found)}"
                    + (" (not finished)" if found.open else ""))
    return said


def _undecided(experiment: Experiment, answers: Answers) -> list[str]:
    """Why ``until`` has ended the repetitions of no point that has too few deliveries for its percentile."""
    rule = experiment.file.repetitions
    if not isinstance(rule, Repetitions):
        return []
    response = response_of(rule.until)
    runs = [(task, record) for task in wanted(experiment, answers) if (record := answers.values(task)) is not None]
    few = {(task.point.key, task.block): n for task, record in runs
           if (n := too_few(record.responses, response)) is not None}
    points = {key for key, _ in few}
    where = "" if len(experiment.design.points) == 1 else f" at {counted(len(points), 'point')}"
    return [f"repetitions: undecided by {response}{where}, so that the most are made: "
            f"{too_few_in_words(list(few.values()), response)}"] if few else []


def words(found: Found) -> str:
    """Where it holds, where it does not, and where no valid result says."""
    low, high, void = (None if level is None else level.text for level in (found.holds_at, found.fails_at,
                                                                            found.void_at))
    why = ", where runs have too few deliveries for this percentile" if found.too_few else ""
    unknown = f"has no valid result at {void}{why}" if void else ""
    if low is None:
        if void:
            return f"has no valid result at the lowest level, {void}{why}"
        return f"does not hold at the lowest level, {high}" if high else "is not decided yet"
    if void:
        return f"holds at {low}, {unknown}" + (f", does not hold at {high}" if high else "")
    return f"holds at {low}, not at {high}" if high else f"holds up to the highest level, {low}"


def documents(experiment: Experiment, answers: Answers) -> list[dict[str, Any]]:
    """The same for ``--json``."""
    search = experiment.file.search
    if search is None:
        return []
    return [{
        "factor": search.factor,
        "levels": {name: level.text for name, level in found.start.levels.items() if name != search.factor},
        "holds_at": found.holds_at.text if found.holds_at else None,
        "fails_at": found.fails_at.text if found.fails_at else None,
        "no_valid_result_at": found.void_at.text if found.void_at else None,
        "decided": found.decided,
        "words": words(found),
    } for found in found_by(experiment, search, answers).values()]
