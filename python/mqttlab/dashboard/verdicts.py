"""A run's thresholds: what its scenario asks for, and what this one run says of it."""

from __future__ import annotations

from mqttlab.dashboard.run_annotations import scenario_of
from mqttlab.dashboard.store import Store
from mqttlab.digits import LONG_NS, plain
from mqttlab.errors import MqttlabError
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.responses import bound, judged_of, supported, values_of
from mqttlab.experiments.thresholds import Judgement, judge_runs
from mqttlab.figures.drawing import Axis, Figure
from mqttlab.metrics import called
from mqttlab.recording import Recording
from mqttlab.scenario.load import parse
from mqttlab.scenario.threshold import Threshold

# On which axis of which figure a bound of the latency is a line.
AXES: dict[str, Axis] = {"latency-over-time": "y", "latency-box": "y", "latency-cdf": "x"}


def thresholds(store: Store, run: str) -> list[Threshold]:
    """The thresholds of the scenario that a run was made from; none where it is not known."""
    try:
        toml, replaced = scenario_of(store, run)
        return list(parse(toml, "scenario", replaced).thresholds)
    except MqttlabError:
        # Older scenarios may name what there is no more; the run is what matters.
        return []


def judged(store: Store, run: str, recording: Recording) -> list[Judgement]:
    """What this run alone says of each; those that hold it against a baseline are left to the command line."""
    asked = [one for one in thresholds(store, run) if one.not_worse_than is None]
    if not asked or not recording.complete:
        return []
    responses = tuple(values_of(recording, supported(judged_of(one) for one in asked)))
    record = RunRecord(
        run=recording.run_id or run, kind="run", point=0, point_key="", levels={}, block=0, repetition=0, order_no=0,
        seed=0, attempt=1, plan_digest="", backend=str(recording.plan.get("backend", "")), directory=run, began="",
        verdict="complete", valid=True, responses=responses)
    return [judge_runs(one, "", [record], lambda name, response: []) for one in asked]


def mark(figure: Figure, name: str, asked: list[Threshold]) -> Figure:
    """Draw the bounds of latencies as lines into a figure of latencies."""
    axis = AXES.get(name)
    if axis is None:
        return figure
    for one in asked:
        for written, words in ((one.below, "below"), (one.above, "above")):
            if written is None or not one.metric.startswith("latency_ms"):
                continue
            value = bound(one.metric, written)
            limit = f"{plain(value / 1e3)} s" if value * 1e6 >= LONG_NS else f"{plain(value)} ms"
            label = f"{called(one.metric)} {words} {limit}"
            label += f"{'' if one.stage is None else f' in stage {one.stage}'}"
            figure.add_line(axis, value, {"color": "#A5123A", "width": 1.5, "dash": "dash"},
                            {"text": label, "font": {"color": "#A5123A"}})
    return figure
