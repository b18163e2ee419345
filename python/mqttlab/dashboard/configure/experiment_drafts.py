"""An experiment as the page Configure has it: its file beside the scenario that it varies, checked and queued.

What a browser may not ask of a scenario it may not ask of any point of an experiment: every point's scenario is checked
as one that is started alone. Its scenario is the one on the page, and no other file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqttlab import scratch
from mqttlab.dashboard.configure import drafts
from mqttlab.dashboard.jobs import Jobs
from mqttlab.digits import plain
from mqttlab.experiments import Experiment, ExperimentError, load
from mqttlab.experiments.scenarios import scenarios
from mqttlab.files import make_private
from mqttlab.runs.job import ulid
from mqttlab.scenario import ScenarioError
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.needs import need_secrets, need_servers, room
from mqttlab.toml_reader import read_toml

FILE, SCENARIO = "experiment.toml", "scenario.toml"
POINTS_MAX = 200
TEMPLATE = '''name = "from-the-dashboard"
question = "How do QoS and the publish delay change the latency?"
scenario = "scenario.toml"
design = "full"
repetitions = 3
responses = ["latency_ms_p99", "undelivered_percent"]

[[factors]]
name = "delay"
place = "groups[*].publish.interval"
levels = ["1 s", "2 s"]

[[factors]]
name = "network"
place = "networks[0].model"
levels = ["satcom", "dsl"]
'''


def check(text: str, scenario: str) -> Experiment:
    """The experiment of two texts, if it can be run, and may be from a browser.

    Raises:
        ExperimentError: one line for each problem.
        ScenarioError: the scenario, or a point's, cannot be run.
    """
    drafts.check(scenario)
    if len(text) > drafts.TOML_LETTERS_MAX:
        raise ExperimentError(f"{FILE}: has more than {drafts.TOML_LETTERS_MAX} characters")
    _only_this_scenario(text)
    with scratch.directory("draft") as place:
        _write(place, text, scenario)
        try:
            experiment = load(place / FILE)
        except (ExperimentError, ScenarioError) as error:
            words = [problem.replace(f"{place}/", "") for problem in error.problems]
            raise ExperimentError(words) from None
    if len(experiment.design.points) > POINTS_MAX:
        raise ExperimentError(f"{FILE}: has {len(experiment.design.points)} points; from the browser at most "
                              f"{POINTS_MAX}")
    for values in scenarios(experiment).values():
        drafts.check_values(values)
    return experiment


def _only_this_scenario(text: str) -> None:
    """Refuse an experiment that names another file."""
    try:
        values: dict[str, Any] = read_toml(text)
    except ValueError:
        # The reader says at which line.
        return
    if values.get("scenario") != SCENARIO:
        raise ExperimentError(f"{FILE}: `scenario` must be \"{SCENARIO}\" here: the scenario on this page")
    thresholds = values.get("thresholds")
    for threshold in thresholds if isinstance(thresholds, list) else ():
        worse = threshold.get("not_worse_than") if isinstance(threshold, dict) else None
        if isinstance(worse, dict) and drafts.is_path("baseline", worse.get("baseline")):
            raise ExperimentError(f"{FILE}: a baseline is named here, not given by its path")


def start(text: str, scenario: str, jobs: Jobs) -> str:
    """Hand an experiment over to the queue, and return its name.

    Raises:
        ExperimentError: it cannot be run.
        QueueError: one of this name is in the queue.
    """
    experiment = check(text, scenario)
    first = parse_values(next(iter(scenarios(experiment).values())))
    need_servers(first)
    need_secrets(first)
    wanted, free = room(first, jobs.runs)
    if wanted * planned_runs(experiment) > free:
        raise ExperimentError(f"{FILE}: its recordings would take about {wanted * planned_runs(experiment) / 1e6:,.0f} "
                              f"MB, and the disk has {free / 1e6:,.0f} MB free; shorten `phases.duration`")
    place = jobs.runs / ".dashboard" / "experiments" / f"{experiment.name}-{ulid()}"
    make_private(place)
    _write(place, text, scenario)
    jobs.queue.add_driver(
        ["experiment", str(place / FILE), "--runs", str(jobs.runs), "--queue", str(jobs.queue.directory)],
        label=experiment.name, directory=place)
    return experiment.name


def planned_runs(experiment: Experiment) -> int:
    """How many runs it has at most, as far as that is fixed."""
    repetitions = experiment.file.repetitions
    each = repetitions if isinstance(repetitions, int) else repetitions.max
    return len(experiment.design.points) * each


def facts_of(experiment: Experiment) -> list[tuple[str, str]]:
    """What it would run: points, runs, how long and how much."""
    seconds = size = 0.0
    each = planned_runs(experiment) // max(1, len(experiment.design.points))
    for values in scenarios(experiment).values():
        scenario = parse_values(values)
        phases = scenario.phases
        seconds += each * (phases.warm_up + phases.duration + phases.cool_down) / 1e9
        size += each * estimate(scenario).recording_bytes
    live = parse_values(next(iter(scenarios(experiment).values()))).backend == "live"
    return [("name", experiment.name), ("design", experiment.design.kind),
            ("points", str(len(experiment.design.points))),
            ("runs", f"at most {planned_runs(experiment)}"), ("recordings", f"about {plain(size / 1e6, 3)} MB"),
            ("run time", f"at most {seconds:.0f} s" + (", one after the other" if live else " of simulated time"))]


def _write(place: Path, text: str, scenario: str) -> None:
    (place / FILE).write_text(text, encoding="utf-8")
    (place / SCENARIO).write_text(scenario, encoding="utf-8")
