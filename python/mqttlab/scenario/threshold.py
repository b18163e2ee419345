"""A threshold: what a metric may be, in scenarios and in experiments. :mod:`mqttlab.experiments` judges it."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from mqttlab.mistaken import did_you_mean
from mqttlab.networks.link import Part, Truth
from mqttlab.quantity import RatioPair, shown
from mqttlab.scenario.location import Problem
from mqttlab.secrets import PLAIN, PlainText

Scope = Literal["run", "qos", "groups", "group", "direction", "link", "station", "event"]
# What the engine tells while a run goes on, four times a second.
PROGRESS_METRICS = ("latency_ms_p50", "latency_ms_p99", "disconnects")


def read_bound(value: Any) -> Any:
    """A number in the metric's unit, or a text with a unit."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"is {shown(value)}, but must be a number in the metric's unit, or text with a unit, such as "
                         "\"250 ms\"")
    return value


Bound = Annotated[int | float | PlainText, BeforeValidator(read_bound)]


class Baseline(Part):
    """What a threshold compares with."""

    baseline: PlainText = Field(min_length=1, description=(
        "A recording or an experiment's directory (`DIRECTORY#3` for its point 3), or the name of a baseline in the "
        "catalog."))
    by: RatioPair = Field((0, 1), description="How much worse it may be, relative to the baseline's mean.")


class Measured(Part):
    """A metric of something."""

    metric: PlainText = Field(description="Name of a metric; docs/reference/metrics.md lists them.")
    scope: Scope = Field("run", description="What it is measured of.")
    name: PlainText | None = Field(None, description=(
        "Which of that scope, such as \"1\" for `qos`, or the name of a group or an event; needed "
        "unless the scope is `run`."))


class Threshold(Measured):
    """A bound on a metric, judged on the confidence limit: held, broken or undecided."""

    below: Bound | None = Field(None, description="Upper bound: a number in the metric's unit, or text with a unit.")
    above: Bound | None = Field(None, description="Lower bound.")
    not_worse_than: Baseline | None = Field(None, description="Bound relative to earlier runs.")
    stage: PlainText | None = Field(None, description=(
        "Only of this stage of the measurement (`phases.stages`); of all that are measured when left out."))
    at: dict[PlainText, Annotated[Any, PLAIN]] = Field(default_factory=dict, description=(
        "In experiments: only at points with these levels, such as { loss = \"0 %\" }."))
    abort: Truth = Field(False, description=(
        "End a run when its progress figure has been beyond the bound for 2 s of the measurement; for "
        "`latency_ms_p50`, `latency_ms_p99` and `disconnects`."))

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        given = [name for name in ("below", "above", "not_worse_than") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("needs one of `below`, `above` and `not_worse_than`" if not given else
                             f"has {' and '.join(f'`{name}`' for name in given)}; keep one")
        return self

    @model_validator(mode="after")
    def _abort_is_possible(self) -> Self:
        if self.abort and (self.below is None or self.metric not in PROGRESS_METRICS or self.scope != "run"):
            raise ValueError("has `abort`, which needs `below`, the scope `run`, and one of "
                             f"{', '.join(PROGRESS_METRICS)}")
        if self.abort and self.stage is not None:
            raise ValueError("has `abort` and `stage`; keep one: a run is ended by its progress figures, which are of "
                             "the whole measurement")
        return self


def stages_wrong(thresholds: Sequence[Threshold], stages: Sequence[str]) -> Iterator[Problem]:
    """Stages that thresholds name and that there are not."""
    for number, each in enumerate(thresholds):
        if each.stage is not None and each.stage not in stages:
            known = did_you_mean(each.stage, stages) if stages else (
                "there are no `phases.stages`; leave it out, or name the parts of the measurement there")
            yield ("thresholds", number, "stage"), f"is {shown(each.stage)}, which is no stage; {known}"
