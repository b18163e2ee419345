"""Experiment files: places, factors, designs, schedules, thresholds; nothing is run here."""

from __future__ import annotations

import itertools
import json
import math
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from mqttlab.experiments import ExperimentDirectory, ExperimentError, load
from mqttlab.experiments.factors import UNITS, factor_of, number
from mqttlab.experiments.found import documents, sentences, words
from mqttlab.experiments.fractional import fraction
from mqttlab.experiments.journal import Journal, RunRecord, read, runs
from mqttlab.experiments.junit import junit
from mqttlab.experiments.load import Experiment, digest_of
from mqttlab.experiments.model import FactorFile
from mqttlab.experiments.responses import Response, Value, bound, judged_of, wrong
from mqttlab.experiments.scenarios import toml, write_scenarios
from mqttlab.experiments.schedule import Found, Records, Task, found_by, met, most, wanted
from mqttlab.experiments.thresholds import ABORT_NS, Earlier, Judgement, Watch, judge, judge_runs, side
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import load as load_scenario
from mqttlab.scenario.places import put
from mqttlab.scenario.threshold import Measured, Threshold
from wrong_experiments import GOOD, PAGE, SCENARIO, experiment_message, page
from wrong_experiments import WRONG as CASES


def loaded(tmp_path: Path, text: str = GOOD) -> Experiment:
    (tmp_path / "field.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "loss.toml").write_text(text, encoding="utf-8")
    return load(tmp_path / "loss.toml")


def changed(*pairs: tuple[str, str]) -> str:
    text = GOOD
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def record(task: Task, value: float | None = 1.0, **more: Any) -> RunRecord:
    values = () if value is None else (
        Value(metric="latency_ms_p99", scope="run", scope_name=None, value=value, unit="ms"),)
    given: dict[str, Any] = {
        "run": f"{task.key}/{more.get('attempt', 1)}", "kind": task.kind, "point": task.point.number,
        "point_key": task.point.key, "levels": {}, "block": task.block, "repetition": task.block, "order_no": 0,
        "seed": 1, "attempt": 1, "plan_digest": "", "backend": "sim", "directory": "", "began": "",
        "verdict": "complete", "valid": True, "responses": values}
    return RunRecord(**{**given, **more})


def performed(experiment: Experiment, value_of: Callable[[Task], float | None]) -> list[RunRecord]:
    """All runs of an experiment whose values are known, as a driver would perform them."""
    done: list[RunRecord] = []
    while True:
        answers = Records(done, experiment.file.attempts)
        left = [task for task in wanted(experiment, answers) if not answers.settled(task)]
        if not left:
            return done
        done.append(record(left[0], value_of(left[0])))


# Places

def values() -> dict[str, Any]:
    return {
        "networks": [{"between": ["field", "broker"], "up": {"loss": "0 %"}}],
        "groups": [{"name": "map", "publish": {"qos": 0}}, {"name": "log", "publish": {"qos": 0}},
                   {"name": "reader", "subscribe": ["a/+", {"filter": "b", "qos": 0}]}],
    }


@pytest.mark.parametrize(("place", "count"), [
    ("networks[0].up.loss", 1), ("networks[field].up.loss", 1), ("groups[*].publish.qos", 2),
    ("groups[map].publish.qos", 1), ("groups[*].subscribe[*].qos", 2), ("phases.duration", 1),
    ("networks[0].down.loss", 1),
])
def test_a_value_is_written_at_every_place_that_is_meant(place: str, count: int) -> None:
    given = values()
    assert put(given, place, 2) == count
    assert json.dumps(given).count(": 2") == count


def test_a_short_subscription_becomes_a_table() -> None:
    given = values()
    put(given, "groups[*].subscribe[*].qos", 2)
    assert given["groups"][2]["subscribe"] == [{"filter": "a/+", "qos": 2}, {"filter": "b", "qos": 2}]


@pytest.mark.parametrize("place", [
    "groups[3].publish.qos", "groups[mpa].publish.qos", "groups.publish", "networks[0].between.x",
    "groups[*].relay.qos", "a..b", "[0]", "", "groups[0", "name.x", "networks[*].between[x]",
])
def test_a_place_that_is_not_there_is_refused_in_words(place: str) -> None:
    with pytest.raises(ValueError, match=r"^is .*"):
        put({**values(), "name": "x"}, place, 1)


# Factors

def test_a_unit_belongs_to_one_kind() -> None:
    assert UNITS["ms"] == ("s", pytest.approx(1e-3)) and UNITS["km/h"][1] == pytest.approx(1 / 3.6)
    assert [number(text).value for text in ("250 kbit/s", "1 %", "30 /min")] == pytest.approx([250e3, 0.01, 0.5])  # type: ignore[union-attr]
    assert number("satcom") is None and number(True) is None and number("5") is None


def ranged(**fields: Any) -> list[str]:
    factor = factor_of(FactorFile.model_validate({"place": "a.b", "range": fields}))
    return [level.text for level in factor.levels]


@pytest.mark.parametrize(("fields", "texts"), [
    ({"from": "0 ms", "to": "100 ms", "levels": 5}, ["0 ms", "25 ms", "50 ms", "75 ms", "100 ms"]),
    ({"from": "1 ms", "to": "1 s", "levels": 4, "scale": "logarithmic"}, ["1 ms", "10 ms", "100 ms", "1000 ms"]),
    ({"from": 1, "to": 100, "levels": 3, "scale": "logarithmic"}, ["1", "10", "100"]),
    ({"from": 1, "to": 4, "levels": 4}, ["1", "2", "3", "4"]),
    ({"from": 0.5, "to": 1.5, "levels": 3}, ["0.5", "1", "1.5"]),
    ({"from": "10 B", "to": "15 B", "levels": 3}, ["10 B", "12 B", "15 B"]),
    ({"from": "1 kB", "to": "2 kB", "levels": 4}, ["1 kB", "1.333 kB", "1.667 kB", "2 kB"]),
    ({"from": "1 s", "to": "2 s", "levels": 2, "scale": "integer"}, ["1 s", "2 s"]),
    ({"from": "0.0001 %", "to": "1 %", "levels": 3, "scale": "logarithmic"}, ["0.0001 %", "0.01 %", "1 %"]),
])
def test_a_range_has_its_levels_as_a_scenario_writes_them(fields: dict[str, Any], texts: list[str]) -> None:
    assert ranged(**fields) == texts


def test_levels_of_names_are_categories_and_levels_of_quantities_numbers() -> None:
    named = factor_of(FactorFile.model_validate({"place": "networks[0].model", "levels": ["satcom", "lte-m"]}))
    mixed = factor_of(FactorFile.model_validate({"place": "x", "levels": ["1 ms", "off"]}))
    numbers = factor_of(FactorFile.model_validate({"place": "x", "levels": ["1 ms", "2 s"]}))
    assert (named.kind, mixed.kind, numbers.kind, numbers.unit) == ("categorical", "categorical", "numeric", "s")
    assert [level.value for level in mixed.levels] == [None, None]
    assert numbers.find("2000 ms") is numbers.levels[1]


# Designs

def test_a_full_design_has_every_combination_once(tmp_path: Path) -> None:
    experiment = loaded(tmp_path)
    combinations = {tuple(level.text for level in point.levels.values()) for point in experiment.design.points}
    assert combinations == set(itertools.product(("0 %", "1 %", "5 %"), ("0", "1", "2")))
    for point in experiment.design.points:
        scenario = experiment.scenario_at(point)
        assert [group.publish.qos for group in scenario.groups if group.publish] == [int(point.levels["qos"].text)]
        assert 100 * scenario.networks[0].up.loss[0] == scenario.networks[0].up.loss[1] * int(  # type: ignore[union-attr]
            point.levels["loss"].text.split()[0])


# Box, Hunter and Hunter 2005, table 6.22: the fewest runs in which k factors have this resolution.
@pytest.mark.parametrize(("factors", "resolution", "points"), [
    (3, 3, 4), (4, 4, 8), (5, 5, 16), (6, 4, 16), (7, 3, 8), (7, 4, 16), (8, 4, 16), (8, 5, 64), (11, 3, 16),
    (15, 3, 16), (2, 5, 4), (3, 5, 8), (10, 5, 128),
])
def test_a_fraction_is_as_small_as_the_published_one(factors: int, resolution: int, points: int) -> None:
    found = fraction(factors, resolution)
    rows = np.array(found.rows()) * 2 - 1
    assert rows.shape == (points, factors) and len({tuple(row) for row in rows}) == points
    # Balanced, and main effects free of each other, whatever the generators say of themselves.
    assert not rows.sum(axis=0).any()
    assert np.array_equal(rows.T @ rows, points * np.eye(factors))
    if resolution >= 4:
        for first, second in itertools.combinations(range(factors), 2):
            both = rows[:, first] * rows[:, second]
            assert not any(both @ rows[:, other] for other in range(factors))


def test_what_is_confounded_is_said_and_is_all_that_is() -> None:
    found = fraction(4, 4)
    rows = np.array(found.rows()) * 2 - 1
    said = {frozenset(frozenset(pair.split(" × ")) for pair in line.split(" = ")) for line in found.aliases("ABCD")}
    true = set()
    pairs = list(itertools.combinations(range(4), 2))
    for (a, b), (c, d) in itertools.combinations(pairs, 2):
        if abs((rows[:, a] * rows[:, b]) @ (rows[:, c] * rows[:, d])) == len(rows):
            true.add(frozenset((frozenset("ABCD"[i] for i in (a, b)), frozenset("ABCD"[i] for i in (c, d)))))
    assert said == true and len(true) == 3


def test_one_at_a_time_changes_one_factor_at_a_time(tmp_path: Path) -> None:
    design = loaded(tmp_path, changed(('design = "full"', 'design = "one-at-a-time"'))).design
    assert design.reference is not None and design.points[0].key == design.reference.key
    assert len(design.points) == 1 + 2 + 2
    for point in design.points[1:]:
        assert sum(point.levels[name].text != design.reference.levels[name].text for name in point.levels) == 1


@pytest.mark.parametrize("kind", ["latin-hypercube", "sobol"])
def test_a_filling_design_takes_each_share_of_a_range_once(tmp_path: Path, kind: str) -> None:
    text = changed(('design = "full"', f'design = {{ kind = "{kind}", points = 16 }}'),
                   ('levels = ["0 %", "1 %", "5 %"]', 'range = { from = "0 %", to = "16 %" }'))
    experiment = loaded(tmp_path, text)
    shares = sorted(math.floor(100 * (point.levels["loss"].value or 0)) for point in experiment.design.points)
    assert shares == list(range(16))
    assert {point.levels["qos"].text for point in experiment.design.points} == {"0", "1", "2"}
    again = load(tmp_path / "loss.toml").design
    assert [point.key for point in again.points] == [point.key for point in experiment.design.points]


def test_listed_points_are_taken_as_they_are(tmp_path: Path) -> None:
    text = changed(('design = "full"', 'design = "list"'), ('levels = ["0 %", "1 %", "5 %"]\n', "")) + (
        '\n[[points]]\nloss = "3 %"\nqos = 2\n\n[[points]]\nloss = "4 %"\nqos = 0\n')
    design = loaded(tmp_path, text.replace('reference = { loss = "0 %" }\n', "")).design
    assert [[level.text for level in point.levels.values()] for point in design.points] == [["3 %", "2"], ["4 %", "0"]]


def test_patches_are_levels_and_replace_whole_tables(tmp_path: Path) -> None:
    text = changed(('name = "loss"\nplaces = ["networks[0].up.loss", "networks[0].down.loss"]\n'
                    'levels = ["0 %", "1 %", "5 %"]\n',
                    'name = "network"\n[factors.patches.satellite]\n'
                    '"networks[0]" = { between = ["field", "broker"], model = "satcom" }\n[factors.patches.lan]\n'
                    '"networks[0].up.delay" = "1 ms"\n'), ('{ loss = "0 %" }', "{ qos = 1 }"))
    experiment = loaded(tmp_path, text)
    scenarios = {point.levels["network"].text: experiment.scenario_at(point) for point in experiment.design.points}
    assert scenarios["satellite"].networks[0].model == "satcom"
    assert scenarios["lan"].networks[0].up.delay == 10**6  # type: ignore[union-attr]


def test_a_scenario_is_an_experiment_of_one_point(tmp_path: Path) -> None:
    (tmp_path / "field.toml").write_text("repetitions = 4\n" + SCENARIO, encoding="utf-8")
    experiment = load(tmp_path / "field.toml")
    assert len(experiment.design.points) == 1 and len(wanted(experiment, Records([], 1))) == 4
    assert experiment.name == "field"


def test_a_thousand_points_are_checked_in_seconds(tmp_path: Path) -> None:
    text = changed(('design = "full"', 'design = { kind = "sobol", points = 1024 }'),
                   ('levels = ["0 %", "1 %", "5 %"]', 'range = { from = "0 %", to = "16 %" }'))
    began = time.process_time()
    loaded(tmp_path, text)
    # It takes two seconds of processor time.
    assert time.process_time() - began < 30


# Schedules

def test_blocks_hold_every_point_once_in_an_order_of_their_own(tmp_path: Path) -> None:
    experiment = loaded(tmp_path)
    tasks = [task for task in wanted(experiment, Records([], 3)) if task.kind == "run"]
    blocks = [[task.point.number for task in tasks[at : at + 9]] for at in range(0, 45, 9)]
    assert len(tasks) == 45 and all(sorted(each) == list(range(9)) for each in blocks)
    assert len({tuple(each) for each in blocks}) == 5 and blocks[0] != list(range(9))
    assert [task.key for task in wanted(experiment, Records([], 3))] == [
        task.key for task in wanted(load(experiment.path), Records([], 3))]


def test_control_runs_are_the_reference_and_have_seeds_of_their_own(tmp_path: Path) -> None:
    experiment = loaded(tmp_path)
    tasks = wanted(experiment, Records([], 3))
    controls = [index for index, task in enumerate(tasks) if task.kind == "control"]
    assert controls == [10, 21, 32, 43] and len(tasks) == 49 == most(experiment)
    assert {task.point.key for task in tasks if task.kind == "control"} == {experiment.design.reference.key}  # type: ignore[union-attr]
    seeds = {experiment.seed_of(task.point, task.block, task.kind) for task in tasks}
    # One for each block, and one for each control run.
    assert len(seeds) == 5 + 4


def test_seeds_are_common_to_a_block_unless_they_are_to_be_independent(tmp_path: Path) -> None:
    common = loaded(tmp_path)
    independent = loaded(tmp_path, changed(('repetitions = 5', 'repetitions = 5\nseeds = "independent"')))
    for experiment, count in ((common, 5), (independent, 45)):
        tasks = [task for task in wanted(experiment, Records([], 3)) if task.kind == "run"]
        assert len({experiment.seed_of(task.point, task.block, "run") for task in tasks}) == count


UNTIL = ('repetitions = 5',
         'repetitions = { min = 3, max = 12, until = { metric = "latency_ms_p99", half_width = "5 %" } }')


def test_repetitions_go_on_until_the_interval_is_narrow_and_for_wide_points_only(tmp_path: Path) -> None:
    experiment = loaded(tmp_path, changed(UNTIL, ('control = "every 10 runs"\n', "")))
    noise = np.random.default_rng(7)

    def value(task: Task) -> float:
        # Without loss the runs are alike; at 5 % they differ too much for any number of repetitions.
        return 100 + {"0 %": 0.1, "1 %": 6.0, "5 %": 300.0}[task.point.levels["loss"].text] * noise.standard_normal()

    done = performed(experiment, value)
    counts = {loss: {sum(run.point == point.number for run in done) for point in experiment.design.points
                     if point.levels["loss"].text == loss} for loss in ("0 %", "1 %", "5 %")}
    assert counts["0 %"] == {3} and counts["5 %"] == {12}
    assert all(3 <= count <= 12 for count in counts["1 %"]) and len(counts["1 %"]) > 1


def test_a_point_that_yields_nothing_ends_at_the_maximum(tmp_path: Path) -> None:
    experiment = loaded(tmp_path, changed(UNTIL))
    assert sum(run.kind == "run" for run in performed(experiment, lambda _: None)) == 9 * 12


SEARCH = changed(
    ('design = "full"', 'design = "search"'), ('control = "every 10 runs"\n', ""),
    ('levels = ["0 %", "1 %", "5 %"]', 'range = { from = "0 %", to = "40 %" }')) + (
    '\n[search]\nfactor = "loss"\ncriterion = { metric = "latency_ms_p99", below = "100 ms" }\nholds = "2 of 3"\n'
    'tolerance = "5 %"\n')


@pytest.mark.parametrize(("edge", "low", "high"), [(0.13, 0.13, 0.13), (-1.0, None, 0.0), (1.0, 0.4, None)])
def test_a_search_finds_the_interval_in_which_the_criterion_stops_to_hold(
    tmp_path: Path, edge: float, low: float | None, high: float | None
) -> None:
    experiment = loaded(tmp_path, SEARCH)
    assert experiment.file.search is not None
    done = performed(experiment, lambda task: 50.0 if (task.point.levels["loss"].value or 0) <= edge else 200.0)
    found = list(found_by(experiment, experiment.file.search, Records(done, 3)).values())
    # One for each QoS.
    assert len(found) == 3 and all(each.decided for each in found) and len(done) <= most(experiment)
    for each in found:
        below = None if each.holds_at is None else each.holds_at.value
        above = None if each.fails_at is None else each.fails_at.value
        assert (below is None, above is None) == (low is None, high is None)
        if low and high:
            assert below is not None and above is not None
            assert below <= edge < above and above - below <= 0.05 * above + 1e-9


def test_a_search_over_levels_ends_between_neighbours(tmp_path: Path) -> None:
    text = SEARCH.replace('range = { from = "0 %", to = "40 %" }',
                          'levels = ["0 %", "1 %", "2 %", "4 %", "8 %", "16 %"]')
    experiment = loaded(tmp_path, text)
    assert experiment.file.search is not None
    done = performed(experiment, lambda task: 50.0 if (task.point.levels["loss"].value or 0) < 0.03 else 200.0)
    for found in found_by(experiment, experiment.file.search, Records(done, 3)).values():
        assert (found.holds_at.text, found.fails_at.text) == ("2 %", "4 %")  # type: ignore[union-attr]


@pytest.mark.parametrize(("backend", "state", "attempts"), [
    ("sim", "invalid", 1), ("live", "invalid", 3), ("sim", "failed", 3), ("sim", "incomplete", 3),
])
def test_a_simulation_that_is_not_valid_is_not_repeated(
    tmp_path: Path, backend: str, state: str, attempts: int,
) -> None:
    """Its seed is the same, and so is its result. A machine that failed, or was too slow, may do better."""
    experiment = loaded(tmp_path)
    task = wanted(experiment, Records([], 3))[0]
    ended = {"verdict": "complete", "valid": False} if state == "invalid" else {"verdict": state, "valid": None}
    done: list[RunRecord] = []
    while not Records(done, 3).settled(task):
        done.append(record(task, None, backend=backend, attempt=len(done) + 1, **ended))
    assert [each.state for each in done] == [state] * attempts
    # Who stops it from outside says nothing of it.
    assert not Records([record(task, None, backend=backend, interrupted=True, **ended)], 1).given_up(task)


def searched(tmp_path: Path, outcome: Callable[[float], str]) -> list[Found]:
    """What a search finds whose runs hold, fail or have no valid result by their level; and what it says."""
    experiment = loaded(tmp_path, SEARCH.replace('range = { from = "0 %", to = "40 %" }',
                                                 'levels = ["0 %", "1 %", "2 %", "4 %", "8 %", "16 %"]'))
    assert experiment.file.search is not None
    done: list[RunRecord] = []
    while True:
        answers = Records(done, experiment.file.attempts)
        left = [task for task in wanted(experiment, answers) if not answers.settled(task)]
        if not left:
            break
        word = outcome(left[0].point.levels["loss"].value or 0)
        attempt = len(answers.of(left[0])) + 1
        done.append(record(left[0], 50.0 if word == "holds" else 200.0, valid=word != "void", attempt=attempt))
    said = sentences(experiment, answers)
    told = documents(experiment, answers)
    found = list(found_by(experiment, experiment.file.search, answers).values())
    assert len(said) == len(told) == len(found) == 3
    assert all(words(each) in sentence and words(each) == document["words"]
               for each, sentence, document in zip(found, said, told, strict=True))
    return found


@pytest.mark.parametrize(("outcome", "levels", "told"), [
    (lambda loss: "holds" if loss < 0.03 else "void", ("2 %", None, "4 %"), "holds at 2 %, has no valid result at 4 %"),
    (lambda loss: "holds" if loss < 0.03 else "void" if loss < 0.1 else "fails", ("2 %", "16 %", "4 %"),
     "holds at 2 %, has no valid result at 4 %, does not hold at 16 %"),
    (lambda loss: "void", (None, None, "0 %"), "has no valid result at the lowest level, 0 %"),
    (lambda loss: "holds" if loss < 0.03 else "fails" if loss < 0.1 else "void", ("2 %", "4 %", None),
     "holds at 2 %, not at 4 %"),
])
def test_a_search_tells_a_level_that_does_not_hold_from_one_without_a_valid_result(
    outcome: Callable[[float], str], levels: tuple[str | None, ...], told: str, tmp_path: Path,
) -> None:
    """A machine that is too slow is not the broker's limit."""
    for found in searched(tmp_path, outcome):
        ends = (found.holds_at, found.fails_at, found.void_at)
        assert tuple(None if end is None else end.text for end in ends) == levels
        assert words(found) == told
        assert found.decided == (levels[2] is None) and not found.open


def test_what_fails_is_tried_again_and_then_given_up_and_interruptions_do_not_count(tmp_path: Path) -> None:
    task = wanted(loaded(tmp_path), Records([], 3))[0]
    failed = [record(task, None, verdict="failed", attempt=number) for number in (1, 2, 3)]
    invalid = [record(task, valid=False, backend="live", attempt=number) for number in (1, 2, 3)]
    stopped = [record(task, None, verdict="incomplete", interrupted=True, attempt=number) for number in range(1, 9)]
    assert not Records(failed[:2], 3).settled(task) and Records(failed, 3).given_up(task)
    assert Records(invalid, 3).given_up(task)
    assert not Records(stopped, 3).settled(task)
    assert Records([*failed[:2], record(task, attempt=3)], 3).values(task) is not None
    assert not Records([replace(record(task), stale=True)], 3).settled(task)


# The journal

def test_a_torn_line_costs_nothing_but_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append("note", text="one")
    with path.open("ab") as file:
        file.write(b'{"event": "note", "te')
    Journal(path).append("note", text="two")
    assert [event["text"] for event in read(path)] == ["one", "two"]
    assert runs([{"event": "ended", "run": "nobody", "verdict": "complete"}]) == {}


def test_a_changed_file_says_what_is_stale_and_a_new_threshold_makes_nothing_stale(tmp_path: Path) -> None:
    experiment = loaded(tmp_path)
    directory = ExperimentDirectory.prepare(experiment, tmp_path / "runs")
    for order, task in enumerate(wanted(experiment, Records([], 3))[:12]):
        seed = experiment.seed_of(task.point, task.block, task.kind)
        plan = experiment.plan(experiment.scenario_at(task.point), seed=seed, repetition=task.block)
        directory.journal.append(
            "began", run=str(order), kind=task.kind, point=task.point.number, point_key=task.point.key,
            levels={name: level.text for name, level in task.point.levels.items()}, block=task.block,
            repetition=task.block, order_no=order, seed=seed, attempt=1, plan_digest=digest_of(plan), backend="sim",
            directory=f"runs/{order}")
        directory.journal.append("ended", run=str(order), verdict="complete", valid=True)
    looser = changed(("below = \"250 ms\"", "below = \"300 ms\""))
    assert ExperimentDirectory.prepare(loaded(tmp_path, looser), tmp_path / "runs").changed().stale == ()
    fewer = loaded(tmp_path, looser.replace('levels = ["0 %", "1 %", "5 %"]', 'levels = ["0 %", "5 %"]'))
    with pytest.raises(ExperimentError, match=r"of 12 runs are stale: points .*loss 1 %.*--redo"):
        ExperimentDirectory.prepare(fewer, tmp_path / "runs")
    longer = loaded(tmp_path, looser.replace("repetitions = 5", 'repetitions = 5\nset = { "phases.duration" = "7 s" }'))
    with pytest.raises(ExperimentError, match="12 of 12 runs are stale"):
        ExperimentDirectory.prepare(longer, tmp_path / "runs")
    again = ExperimentDirectory.prepare(longer, tmp_path / "runs", redo=True)
    assert {run.state for run in again.runs()} == {"stale"} and len(again.pending()) == 49
    assert ExperimentDirectory.open(again.path).experiment.factors == again.experiment.factors


# Thresholds

@pytest.mark.parametrize(("low", "high", "verdict"), [
    (1, 2, "held"), (1, 10, "undecided"), (10, 11, "broken"), (9, 11, "undecided"), (10, 10, "broken"), (0, 0, "held")])
def test_a_bound_is_judged_on_the_confidence_limit(low: float, high: float, verdict: str) -> None:
    assert side(low, high, 10, below=True) == verdict
    mirrored = {"held": "held", "broken": "broken", "undecided": "undecided"}[verdict]
    assert side(-high, -low, -10, below=False) == mirrored


def judged(values: list[float], baseline: list[float] | None = None, *, seeds: int | None = None,
           **fields: Any) -> Judgement:
    """A threshold over runs with these values; ``seeds`` is the seed of the baseline's runs, where they have one."""
    threshold = Threshold.model_validate({"metric": "latency_ms_p99", **fields})
    made = [RunRecord(
        run=str(i), kind="run", point=0, point_key="", levels={}, block=i, repetition=i, order_no=i, seed=1, attempt=1,
        plan_digest="", backend="sim", directory="", began="", verdict="complete", valid=True,
        responses=(Value(metric=judged_of(threshold).metric, scope="run", scope_name=None, value=value, unit=""),
                   Value(metric="deliveries_expected", scope="run", scope_name=None, value=1000, unit="deliveries"),
                   Value(metric="latency_ms_mean_ci95", scope="run", scope_name=None, value=5, unit="ms")))
        for i, value in enumerate(values)]
    before = [Earlier(value=value, draw=None if seeds is None else (seeds, i))
              for i, value in enumerate(baseline or [])]
    return judge_runs(threshold, "", made, lambda name, response: before)


@pytest.mark.parametrize(("values", "fields", "verdict"), [
    ([100, 101, 102], {"below": "250 ms"}, "held"), ([100, 101, 102], {"below": 50}, "broken"),
    ([240, 250, 260], {"below": "0.25 s"}, "undecided"), ([100], {"below": "250 ms"}, "undecided"),
    ([], {"below": "250 ms"}, "undecided"), ([100, 101, 102], {"above": 50}, "held"),
    ([100], {"metric": "latency_ms_mean", "below": 106}, "held"),
    ([100], {"metric": "latency_ms_mean", "below": 104}, "undecided"),
    ([3], {"metric": "disconnects", "below": 3}, "broken"), ([0], {"metric": "disconnects", "below": 1}, "held"),
    # None of 1000 lost is below 0.3 %, not below 0.1 %.
    ([0], {"metric": "messages_lost_percent", "below": "0.5 %"}, "held"),
    ([0], {"metric": "messages_lost_percent", "below": "0.1 %"}, "undecided"),
    ([0, 0, 0], {"metric": "messages_lost_percent", "below": "0.11 %"}, "held"),
    ([0, 0, 0], {"metric": "messages_lost_percent", "below": "0.09 %"}, "undecided"),
    ([0], {"metric": "undelivered_percent", "below": "0.5 %"}, "held"),
    ([70.2, 70.2, 70.3], {"metric": "undelivered_percent", "below": "1 %"}, "broken"),
])
def test_thresholds_are_held_broken_or_undecided(values: list[float], fields: dict[str, Any], verdict: str) -> None:
    assert judged(values, **fields).verdict == verdict


@pytest.mark.parametrize("metric", ["messages_lost_percent", "undelivered_percent"])
def test_what_was_under_way_at_the_end_is_no_success(metric: str, tmp_path: Path) -> None:
    """None is lost, and 702 of 1,000 have not arrived."""
    run = replace(record(wanted(loaded(tmp_path), Records([], 1))[0]), responses=tuple(
        Value(metric=name, scope="run", scope_name=None, value=value, unit="") for name, value in (
            ("messages_lost_percent", 0.0), ("undelivered_percent", 70.2), ("deliveries_expected", 1000.0))))
    threshold = Threshold.model_validate({"metric": metric, "below": "1 %"})
    one, several = (judge_runs(threshold, "", runs, lambda name, response: []) for runs in ([run], [run] * 3))
    assert one.verdict != "held" and several.verdict == "broken" and one.estimate == 70.2
    assert ("judged by undelivered_percent" in one.name) == (metric == "messages_lost_percent")


@pytest.mark.parametrize("metric", ["latency_ms_p50", "latency_ms_p95", "latency_ms_p99", "latency_ms_max",
                                    "latency_ms_mean"])
def test_a_latency_of_what_was_delivered_holds_no_bound_while_more_was_under_way(metric: str, tmp_path: Path) -> None:
    """A third of the messages had not arrived when the runs ended; of those that had, all were in time."""
    task = wanted(loaded(tmp_path), Records([], 1))[0]

    def runs(missing: float, lost: float) -> list[RunRecord]:
        found = {metric: 7954.0, "undelivered_percent": missing, "messages_lost_percent": lost}
        values = tuple(Value(metric=name, scope="run", scope_name=None, value=value, unit="")
                       for name, value in found.items())
        return [replace(record(task), responses=values)] * 3

    def verdict(below: str, missing: float, lost: float = 0.0) -> Judgement:
        threshold = Threshold.model_validate({"metric": metric, "below": below})
        return judge_runs(threshold, "", runs(missing, lost), lambda name, response: [])

    assert verdict("10 s", 0.0).verdict == "held"
    open_ = verdict("10 s", 60.0)
    assert open_.verdict == "undecided" and "60 % were still under way" in open_.words
    assert verdict("5 s", 60.0).verdict == "broken", "the rest would be later still"
    # What was lost never comes: bounds on losses are about that.
    assert verdict("10 s", 60.0, lost=60.0).verdict == "held"
    few = {"latency_ms_p50": 49.0, "latency_ms_p95": 4.9, "latency_ms_max": 0.0}.get(metric, 0.9)
    assert verdict("10 s", few).verdict == "held", "the quantile leaves so many out"
    text = SEARCH.replace('metric = "latency_ms_p99", below = "100 ms" }\nholds',
                          f'metric = "{metric}", below = "10 s" }}\nholds')
    search = loaded(tmp_path, text).file.search
    assert search is not None
    assert met(search, runs(few, 0.0)[0]) and not met(search, runs(60.0, 0.0)[0])


def test_one_run_breaks_a_bound_on_a_share_that_its_count_lies_beyond(tmp_path: Path) -> None:
    def judged_share(share: float, expected: float) -> Judgement:
        run = replace(record(wanted(loaded(tmp_path), Records([], 1))[0]), responses=tuple(
            Value(metric=name, scope="run", scope_name=None, value=value, unit="") for name, value in (
                ("undelivered_percent", share), ("deliveries_expected", expected))))
        threshold = Threshold.model_validate({"metric": "undelivered_percent", "below": "1 %"})
        return judge_runs(threshold, "", [run], lambda name, response: [])

    assert judged_share(22.7, 1000).verdict == "broken"
    assert judged_share(2.0, 50).verdict == "undecided", "one of fifty"
    assert judged_share(0.2, 5000).verdict == "undecided", "losses cluster: one run does not hold it"
    assert judged_share(0.0, 5000).verdict == "held"


@pytest.mark.parametrize(("now", "before", "verdict"), [
    ([100, 101, 102], [100, 101, 102], "held"), ([120, 121, 122], [100, 101, 102], "broken"),
    ([103, 106, 109], [100, 103, 98], "undecided"), ([100], [100, 101], "undecided"), ([100, 101], [], "undecided"),
    ([90, 91, 92], [100, 101, 102], "held"), ([100], [100], "held")])
def test_not_worse_than_a_baseline(now: list[float], before: list[float], verdict: str) -> None:
    assert judged(now, before, not_worse_than={"baseline": "v1", "by": "5 %"}).verdict == verdict


def test_runs_with_the_baselines_random_streams_are_compared_in_pairs() -> None:
    """What chance did to a run it did to its partner: 1 % is seen where the runs differ by 50 %."""
    before = [100.0, 150.0, 80.0, 120.0]
    now = [value * 1.01 + add for value, add in zip(before, (0.1, -0.1, 0.05, 0.0), strict=True)]
    limit = {"baseline": "v1", "by": "5 %"}
    paired, apart = (judged(now, before, seeds=seed, not_worse_than=limit) for seed in (1, None))
    assert (paired.verdict, apart.verdict) == ("held", "undecided")
    assert "4 pairs of runs with the same random streams" in paired.words
    assert "4 and 4 runs" in apart.words
    # Other seeds have other streams; of fewer runs of the baseline some would have no partner.
    assert judged(now, before, seeds=2, not_worse_than=limit).words == apart.words
    assert "4 and 3 runs" in judged(now, before[:3], seeds=1, not_worse_than=limit).words
    # The order of the baseline's runs does not matter, and fewer runs than it has still have their partners.
    assert "2 pairs" in judged(now[:2], before, seeds=1, not_worse_than=limit).words


def test_a_threshold_may_be_about_some_levels_only(tmp_path: Path) -> None:
    text = changed(('below = "250 ms"', 'below = "250 ms"\nat = { loss = "1 %" }'))
    experiment = loaded(tmp_path, text)
    made = judge(experiment, experiment.design.points, [], lambda name, response: [])
    assert sorted(each.point for each in made) == [f"loss 1 %, qos {qos}" for qos in range(3)]


def tick(at_s: float, p99_ms: float | None) -> dict[str, Any]:
    return {"event": "tick", "at_ns": int(at_s * 1e9), "latency_p50_ns": 1, "disconnects": 0,
            "latency_p99_ns": None if p99_ms is None else int(p99_ms * 1e6)}


def test_a_run_is_ended_when_its_figure_stays_beyond_the_bound() -> None:
    cancelled: list[str] = []
    watch = Watch([Threshold.model_validate({"metric": "latency_ms_p99", "below": "100 ms", "abort": True})],
                  cancelled.append)
    assert ABORT_NS == 2e9
    watch.observe("a", tick(1, 900))
    watch.observe("a", {"event": "phase", "phase": "measurement", "at_ns": 0, "length_ns": 0})
    for second, value in enumerate([900, 50, 900, 900, 50, None, 900, None]):
        watch.observe("a", tick(2 + second, value))
    assert cancelled == []
    # Nothing delivered is no sign that it got better.
    watch.observe("a", tick(10, 900))
    assert cancelled == ["a"] and "latency_ms_p99 below 100 ms" in (watch.ended("a") or "")
    assert watch.ended("b") is None


def test_an_aborted_run_has_broken_its_threshold_and_its_point_is_left(tmp_path: Path) -> None:
    experiment = loaded(tmp_path, changed(('below = "250 ms"', 'below = "250 ms"\nabort = true')))
    task = wanted(experiment, Records([], 3))[0]
    ended = record(task, None, verdict="incomplete", aborted=True, reason="p99")
    answers = Records([ended], 3)
    assert answers.settled(task) and all(
        answers.left_out(other) for other in wanted(experiment, answers)
        if other.point.key == task.point.key and other.kind == "run" and other.key != task.key)
    made = judge(experiment, [task.point], [ended], lambda name, response: [])
    assert [each.verdict for each in made] == ["broken"]


def test_junit_is_what_a_pipeline_reads(tmp_path: Path) -> None:
    experiment = loaded(tmp_path)
    done = performed(experiment, lambda task: {"0": 100.0, "1": 400.0, "2": 240.0 + 10 * task.block}[
        task.point.levels["qos"].text])
    made = judge(experiment, experiment.design.points, done, lambda name, response: [])
    text = junit("loss \x00<&>", made, [replace(done[0], verdict="failed", reason='no "broker"')], 12.5)
    suite = ElementTree.fromstring(text.encode())
    assert suite.attrib == {"name": "loss ?<&>", "tests": "10", "failures": "3", "errors": "1", "skipped": "3",
                            "time": "12.500"}
    assert len(suite.findall("testcase/failure")) == 3 and len(suite.findall("testcase/skipped")) == 3
    assert suite.find("testcase/error") is not None


# Metrics and what is wrong

def test_bounds_are_in_the_metrics_own_unit() -> None:
    assert [bound("latency_ms_p99", "0.25 s"), bound("messages_lost_percent", "0.5 %"),
            bound("goodput_kbit_s", "1 Mbit/s"), bound("throughput_per_s", "90 /min"), bound("disconnects", 3),
            ] == pytest.approx([250, 0.5, 1000, 1.5, 3])
    for metric, written in (("latency_ms_p99", "5 %"), ("disconnects", "3 s"), ("latency_ms_p99", "soon")):
        with pytest.raises(ValueError, match=f"but {metric} is in"):
            bound(metric, written)


def test_a_metric_is_of_scopes_that_there_are() -> None:
    assert wrong(Measured(metric="latency_ms_p99", scope="qos", name="1")) is None
    assert wrong(Measured(metric="latency_ms_p99")) is None
    assert "did you mean" in (wrong(Measured(metric="latency_p99")) or ("", ""))[1]
    assert (wrong(Measured(metric="frames", scope="qos", name="1")) or ("", ""))[0] == "scope"
    assert (wrong(Measured(metric="latency_ms_p99", scope="qos")) or ("", ""))[0] == "scope"


def test_the_page_of_messages_is_what_mqttlab_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/python/wrong_experiments.py"


def test_sixty_wrong_files_are_refused_in_lines_that_name_them() -> None:
    cases = [case for group in CASES.values() for case in group]
    assert len(cases) >= 60
    for old, new in cases:
        said = experiment_message(old, new)
        assert said, new
        for line in said:
            assert line.startswith(("loss.toml", "field.toml")), (new, line)
            assert len(line) < 400 and "Input should" not in line, line


def test_the_good_experiment_is_good(tmp_path: Path) -> None:
    experiment = loaded(tmp_path)
    assert Response("latency_ms_p99") in experiment.responses and len(experiment.thresholds) == 1


@pytest.mark.parametrize("path", sorted((PAGE.parents[1] / "experiments").rglob("*.toml")), ids=lambda path: path.stem)
def test_every_committed_experiment_is_right(path: Path) -> None:
    experiment = load(path)
    assert most(experiment) >= 1


def test_points_are_scenarios_of_their_own_when_they_are_written(tmp_path: Path) -> None:
    experiment = loaded(tmp_path)
    paths = write_scenarios(experiment, tmp_path / "points")
    assert [path.stem for path in paths][:4] == ["loss0-qos0", "loss0-qos1", "loss0-qos2", "loss1-qos0"]
    for path, at in zip(paths, experiment.design.points, strict=True):
        written, meant = load_scenario(path), experiment.scenario_at(at)
        plans = [compile_plan(each.model_copy(update={"name": "x"})) for each in (written, meant)]
        assert plans[0] == plans[1]


def test_what_toml_quotes_comes_back() -> None:
    given = {
        "a": 'say "no" \\ \n \x7f é', "b": [1, 2.5, True], "c d": {"e.f": {"g": []}}, "h": [{"i": {"j": "k"}}], "l": []}
    assert tomllib.loads(toml(given)) == given


def test_an_experiment_that_is_taken_for_a_scenario_is_named_as_one(tmp_path: Path) -> None:
    loaded(tmp_path)
    with pytest.raises(ScenarioError, match="mqttlab experiment"):
        load_scenario(tmp_path / "loss.toml")
