"""Reading an experiment file, and checking all that it makes of its scenario before anything runs.

A scenario file is an experiment of one point, with the scenario's own ``repetitions`` and thresholds.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from mqttlab.errors import MqttlabError
from mqttlab.experiments.factors import Factor, factor_of
from mqttlab.experiments.model import RESERVED, ExperimentFile, Repetitions
from mqttlab.experiments.points import Design, DesignError, Point, design_of, point
from mqttlab.experiments.responses import (
    DEFAULT,
    Response,
    bound,
    judged_of,
    response_of,
    supported,
    wrong,
)
from mqttlab.quantity import shown
from mqttlab.scenario import Scenario, ScenarioError, compile_plan
from mqttlab.scenario.compile import repetition_seed
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.location import Location
from mqttlab.scenario.places import put
from mqttlab.scenario.secret import without_secrets, without_written, written_in
from mqttlab.scenario.threshold import Measured, Threshold, stages_wrong
from mqttlab.scenario.wording import Source, problems_of, read_text, toml_values

if TYPE_CHECKING:
    from mqttlab.plan import Plan

PROBLEMS_MAX = 20
"""More lines than these do not help."""


class ExperimentError(MqttlabError):
    """The file is not an experiment that can be run. ``problems`` are one line each."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment that can be run: the file, its scenario, and the design."""

    file: ExperimentFile
    path: Path
    text: str
    """Of the experiment file, as written, without the secrets in it; so is the scenario's."""
    scenario_path: Path
    scenario_text: str
    base: dict[str, Any]
    """The scenario's values, with those that ``set`` and the command line replace."""
    design: Design
    replaced: dict[str, Any] = field(default_factory=dict)
    """What the command line has set."""

    @property
    def name(self) -> str:
        """Names the directory."""
        return self.file.name

    @property
    def factors(self) -> tuple[Factor, ...]:
        """What is varied."""
        return self.design.factors

    @property
    def thresholds(self) -> list[Threshold]:
        """The scenario's, and the experiment's own."""
        of_scenario = [Threshold.model_validate(value) for value in self.base.get("thresholds", [])]
        return of_scenario + [each for each in self.file.thresholds if each not in of_scenario]

    @property
    def responses(self) -> tuple[Response, ...]:
        """What is measured: those that the file names, or the usual ones; and what thresholds and rules are about."""
        found = [response_of(measured) for measured in self.file.responses] or [Response(name) for name in DEFAULT]
        found += [judged_of(threshold) for threshold in self.thresholds if threshold.stage is None]
        if isinstance(self.file.repetitions, Repetitions):
            found.append(response_of(self.file.repetitions.until))
        if self.file.search is not None:
            found.append(judged_of(self.file.search.criterion))
        return tuple(dict.fromkeys(found))

    @property
    def kept(self) -> tuple[Response, ...]:
        """What is kept of a run: the responses, and what judging them needs."""
        return tuple(dict.fromkeys(supported((*self.responses, *map(judged_of, self.thresholds)))))

    @property
    def seed(self) -> int:
        """Of orders and drawn points, and of the runs."""
        own = self.file.seed
        return int(self.base.get("seed", 1)) if own is None else own

    def scenario_at(self, at: Point) -> Scenario:
        """The scenario of a point.

        Raises:
            ScenarioError: it cannot be run.
        """
        values = self.values_at(at)
        name = f"{self.path}: {at}" if self.factors else str(self.path)
        return parse_values(values, name, directory=self.scenario_path.parent)

    def values_at(self, at: Point) -> dict[str, Any]:
        """The values of a point's scenario."""
        values = copy.deepcopy(self.base)
        for level in at.levels.values():
            for place, value in level.settings:
                put(values, place, copy.deepcopy(value))
        return values

    def plan(self, scenario: Scenario, *, seed: int, repetition: int) -> Plan:
        """The plan of one run of a point's scenario."""
        plan = compile_plan(scenario.model_copy(update={"seed": seed}))
        plan["repetition"] = repetition
        return plan

    def seed_of(self, at: Point, block: int, kind: str) -> int:
        """The seed of a run: common to all points of a block, unless the file asks for independent ones."""
        if kind == "run" and self.file.seeds == "common":
            return repetition_seed(self.seed, block)
        text = f"{self.seed}/{kind}/{at.key}/{block}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def digest_of(plan: Plan) -> str:
    """What tells whether two plans are the same."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def load(path: Path, overrides: dict[str, Any] | None = None, scenario: Path | None = None) -> Experiment:
    """Read an experiment file, or a scenario file as an experiment of one point.

    Args:
        path: a TOML file.
        overrides: values by place that replace the scenario's.
        scenario: where the scenario is, instead of where the file says.

    Raises:
        ExperimentError: it cannot be read, or is not an experiment that can be run.
        ScenarioError: its scenario cannot be run as it is.
    """
    try:
        text = read_text(path)
        values = toml_values(text, str(path))
    except ValueError as error:
        raise ExperimentError(str(error)) from error
    _refuse_secret_levels(values, Source(str(path), text, ()))
    if "groups" in values and "scenario" not in values:
        return _of_one_point(path, text, values, overrides or {})
    source = Source(str(path), text, ())
    try:
        file = ExperimentFile.model_validate(values)
    except ValidationError as error:
        raise ExperimentError(problems_of(error, values, source, ExperimentFile)[:PROBLEMS_MAX]) from error
    scenario_path = scenario or path.parent / file.scenario
    scenario_text, base = _base(file, path, scenario_path, source, overrides or {})
    factors = _factors(file, source)
    _check_measures(file, factors, source, base)
    try:
        seed = file.seed if file.seed is not None else int(base.get("seed", 1))
        design = design_of(file, factors, seed)
    except DesignError as error:
        raise ExperimentError(source.at(error.place) + error.words) from error
    made = Experiment(file=file, path=path, text=without_secrets(text), scenario_path=scenario_path,
                      scenario_text=without_secrets(scenario_text), base=base, design=design,
                      replaced=without_written(overrides or {}))
    _check_points(made, source)
    return made


def _refuse_secret_levels(values: dict[str, Any], source: Source) -> None:
    """Levels stand in tables and names; secrets are varied as references.

    Raises:
        ExperimentError: a level is a secret as text.
    """
    factors = values.get("factors")
    for index, factor in enumerate(factors if isinstance(factors, list) else []):
        written = isinstance(factor, dict) and next(written_in({name: factor[name] for name in (
            "place", "places", "levels", "patches") if name in factor}), None)
        if written:
            raise ExperimentError(source.at(("factors", index)) + "has a secret as a level, which tables and reports "
                                  "would show; write where it is, such as { env = \"NAME\" }")


def _of_one_point(path: Path, text: str, values: dict[str, Any], overrides: dict[str, Any]) -> Experiment:
    _set(values, overrides, lambda place, words: f"{path}: --set {place}: {words}")
    scenario = parse_values(values, str(path), text, set(overrides))
    file = ExperimentFile(name=scenario.name, question=scenario.description, scenario=path.name,
                          repetitions=scenario.repetitions)
    made = Experiment(
        file=file, path=path, text=without_secrets(text), scenario_path=path, scenario_text=without_secrets(text),
        base=values, replaced=without_written(overrides),
        design=Design(kind="full", factors=(), points=(point((), {}),), reference=None))
    problems = measures_wrong((("thresholds", index), threshold) for index, threshold
                              in enumerate(scenario.thresholds))
    if problems:
        source = Source(str(path), text, set(overrides))
        raise ScenarioError([source.at(place) + words for place, words in problems])
    return made


def _base(
    file: ExperimentFile, path: Path, scenario_path: Path, source: Source, overrides: dict[str, Any],
) -> tuple[str, dict[str, Any]]:
    """The scenario's text and its values, with what is replaced at every point."""
    if not scenario_path.is_file():
        near = sorted(other.name for other in scenario_path.parent.glob("*.toml") if other != path)
        hint = f"; there: {', '.join(near[:5])}" if near else ""
        raise ExperimentError(source.at(("scenario",)) + f"is {shown(file.scenario)}, but there is no file "
                              f"{scenario_path}{hint}")
    try:
        text = read_text(scenario_path)
        values = toml_values(text, str(scenario_path))
    except ValueError as error:
        raise ExperimentError(str(error)) from error
    if "scenario" in values and "groups" not in values:
        raise ExperimentError(source.at(("scenario",)) + f"is {shown(file.scenario)}, which is an experiment itself; "
                              "name a scenario")
    if file.backend is not None:
        values["backend"] = file.backend
    _set(values, file.set, lambda place, words: source.at(("set", place)) + words)
    _set(values, overrides, lambda place, words: f"{path}: --set {place}: {words}")
    parse_values(values, str(scenario_path), text, {*file.set, *overrides},
                 "on the command line" if overrides else f"by {path.name}")
    return text, values


def _set(values: dict[str, Any], settings: dict[str, Any], words_of: Any) -> None:
    for place, value in settings.items():
        try:
            put(values, place, value)
        except ValueError as error:
            raise ExperimentError(words_of(place, str(error))) from None


def _factors(file: ExperimentFile, source: Source) -> list[Factor]:
    problems: list[str] = []
    factors: list[Factor] = []
    for index, written in enumerate(file.factors):
        try:
            factor = factor_of(written)
        except ValueError as error:
            where, words = error.args
            problems.append(source.at(("factors", index)) + f"`{where}` {words}")
            continue
        if factor.name in RESERVED:
            problems.append(source.at(("factors", index, "name")) + f"is {shown(factor.name)}, which is a column of "
                            "the table of runs; add another `name`")
        if factor.name in [other.name for other in factors]:
            problems.append(source.at(("factors", index, "name")) + f"is {shown(factor.name)}, which is the name of "
                            "another factor; add another `name`")
        factors.append(factor)
    if problems:
        raise ExperimentError(problems[:PROBLEMS_MAX])
    return factors


def measures_wrong(measures: Iterable[tuple[Location, Measured]], *, named: bool = True) -> list[tuple[Location, str]]:
    """What is wrong with metrics, their scopes and the bounds on them: the field, and words."""
    found: list[tuple[Location, str]] = []
    for place, measured in measures:
        problem = wrong(measured, named=named)
        if problem is not None:
            found.append(((*place, problem[0]), problem[1]))
            continue
        for name in ("below", "above"):
            written = getattr(measured, name, None)
            if written is not None:
                try:
                    bound(measured.metric, written)
                except ValueError as error:
                    found.append(((*place, name), str(error)))
    return found


def _check_measures(file: ExperimentFile, factors: list[Factor], source: Source, base: Mapping[str, Any]) -> None:
    """Metrics that are there, factors that thresholds and searches name."""
    problems = measures_wrong(((("responses", i), measured) for i, measured in enumerate(file.responses)), named=False)
    one: list[tuple[Location, Measured]] = [
        (("thresholds", index), threshold) for index, threshold in enumerate(file.thresholds)]
    if isinstance(file.repetitions, Repetitions):
        one.append((("repetitions", "until"), file.repetitions.until))
    if file.search is not None:
        one.append((("search", "criterion"), file.search.criterion))
    problems += measures_wrong(one)
    problems += stages_wrong(file.thresholds, _stages_of(base))
    problems += _levels_that_are_not(file, factors)
    if file.control is not None and not factors:
        problems.append((("control",), "needs a reference to run again, and there are no factors; leave it out"))
    if isinstance(file.repetitions, Repetitions) and file.design.kind == "search":
        problems.append((("repetitions",), "is a rule, but a search runs each level as often as `search.holds` says; "
                                           "leave it out"))
    if problems:
        raise ExperimentError([source.at(place) + words for place, words in problems][:PROBLEMS_MAX])


def _stages_of(base: Mapping[str, Any]) -> list[str]:
    """The names of a scenario's stages, as far as they can be read before it is."""
    phases = base.get("phases")
    stages = phases.get("stages") if isinstance(phases, dict) else None
    return [str(each["name"]) for each in stages if isinstance(each, dict) and "name" in each] if (
        isinstance(stages, list)) else []


def _levels_that_are_not(file: ExperimentFile, factors: list[Factor]) -> Iterator[tuple[Location, str]]:
    by_name = {factor.name: factor for factor in factors}
    for index, threshold in enumerate(file.thresholds):
        for name, written in threshold.at.items():
            place: Location = ("thresholds", index, "at", name)
            if name not in by_name:
                yield place, f"is no factor; known: {', '.join(by_name) or 'there are none'}"
            elif by_name[name].levels and by_name[name].find(written) is None:
                known = ", ".join(shown(level.text) for level in by_name[name].levels[:10])
                yield place, f"is {shown(written)}, which is no level of {name}; its levels: {known}"
    if file.search is None:
        return
    factor = by_name.get(file.search.factor)
    if factor is None:
        yield ("search", "factor"), (f"is {shown(file.search.factor)}, which is no factor; known: "
                                     f"{', '.join(by_name) or 'there are none'}")
        return
    values = [level.value for level in factor.levels if level.value is not None]
    if factor.kind != "numeric" or values != sorted(values):
        yield ("search", "factor"), (f"is {shown(factor.name)}, whose levels are not numbers that rise; give it a "
                                     "`range`, or sort its levels")


def _check_points(experiment: Experiment, source: Source) -> None:
    """Every level alone, then every point: what is wrong at many points is said once."""
    problems: list[str] = []
    design = experiment.design
    searched = experiment.file.search.factor if experiment.file.search is not None else None
    for index, factor in enumerate(design.factors):
        levels = factor.levels or (factor.at(0), factor.at(1)) if factor.ends or factor.levels else ()
        for level in levels:
            values = copy.deepcopy(experiment.base)
            for place, value in level.settings:
                try:
                    put(values, place, copy.deepcopy(value))
                except ValueError as error:
                    problems.append(_place_line(source, index, factor, place, level.text, str(error)))
    if not problems:
        ends = [_at_end(design, start, searched) for start in design.points] if searched else []
        reference = [design.reference] if design.reference is not None else []
        for each in (*design.points, *reference, *ends):
            try:
                experiment.scenario_at(each)
            except ScenarioError as error:
                problems += _blamed(experiment, source, each, error)
    if problems:
        distinct = list(dict.fromkeys(problems))
        more = [f"{experiment.path}: and {len(distinct) - PROBLEMS_MAX} more"] if len(distinct) > PROBLEMS_MAX else []
        raise ExperimentError(distinct[:PROBLEMS_MAX] + more)


def _at_end(design: Design, start: Point, searched: str) -> Point:
    [factor] = [factor for factor in design.factors if factor.name == searched]
    return point(design.factors, {**start.levels, searched: factor.at(1)})


def _place_line(source: Source, index: int, factor: Factor, place: str, level: str, words: str) -> str:
    if not factor.places:
        return source.at(("factors", index, "patches", level, place)) + words
    key = "place" if len(factor.places) == 1 else "places"
    return source.at(("factors", index, key)) + words


def _blamed(experiment: Experiment, source: Source, at: Point, error: ScenarioError) -> list[str]:
    """A point's problems, with the one level that alone makes each of them, where one does."""
    prefix = f"{experiment.path}: {at}: "
    lines = []
    for problem in error.problems:
        words = problem.removeprefix(prefix)
        guilty = [(index, factor) for index, factor in enumerate(experiment.factors)
                  if _alone(experiment, factor.name, at, words)]
        if len(guilty) == 1:
            index, factor = guilty[0]
            level = at.levels[factor.name]
            lines.append(source.at(("factors", index)) + f"at {shown(level.text)}: {words}")
        else:
            lines.append(f"{experiment.path}: at {at}: {words}")
    return lines


def _alone(experiment: Experiment, name: str, at: Point, words: str) -> bool:
    values = copy.deepcopy(experiment.base)
    for place, value in at.levels[name].settings:
        put(values, place, copy.deepcopy(value))
    try:
        parse_values(values, "x", directory=experiment.scenario_path.parent)
    except ScenarioError as error:
        return f"x: {words}" in error.problems
    return False
