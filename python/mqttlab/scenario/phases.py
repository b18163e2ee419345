"""The phases of a run, and the stages of its measurement."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from mqttlab.digits import plain
from mqttlab.mistaken import did_you_mean
from mqttlab.networks.link import Part, Truth
from mqttlab.quantity import DURATION, DURATION_NS_MAX, DurationNs, PositiveDurationNs, shown
from mqttlab.scenario.location import Problem
from mqttlab.secrets import PlainText

S = 10**9
END_OF = "end of "
# As in the engine (crates/plan, stages.rs).
STAGES_MAX = 100


class Stage(Part):
    """A stretch of the measurement with a name. Stages follow each other; reports have a column for each. The guide is
    [Look at a run stage by stage](../how-to/stages.md)."""

    name: Annotated[PlainText, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=40)] = Field(
        description="What reports and events call it; unique among the stages.")
    for_: PositiveDurationNs = Field(alias="for", description="How long it lasts.")
    measured: Truth = Field(True, description=(
        "Whether its messages count. The first and the last stage are measured: `warm_up` and `cool_down` are not."))


def _has_length(schema: dict[str, Any]) -> None:
    """For editors: either of them says how long the measurement is."""
    schema.pop("required", None)
    schema["anyOf"] = [{"required": ["duration"]}, {"required": ["stages"]}]


class Phases(Part):
    """When the run warms up, measures and cools down."""

    model_config = ConfigDict(json_schema_extra=_has_length)

    connect_timeout: PositiveDurationNs = Field(
        60 * S, description="How long clients may take to connect and subscribe before publishing begins.")
    warm_up: DurationNs = Field(0, description="Publishing that is not counted.")
    duration: PositiveDurationNs = Field(
        description="Publishing that is counted. With `stages` it is left out: it is how long they last in all.")
    cool_down: DurationNs = Field(
        10 * S, description="Waiting for messages under way; ends early when there are none.")
    stages: list[Stage] = Field(default_factory=list, max_length=STAGES_MAX, description=(
        "The measurement in parts with names, instead of `duration`."))

    @model_validator(mode="before")
    @classmethod
    def _lasts_as_long_as_its_stages(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "stages" not in values:
            return values
        if values["stages"] == []:
            raise ValueError("has `stages` without a stage; add one, such as { name = \"busy\", for = \"30 s\" }, or "
                             "leave `stages` out and say the `duration`")
        if "duration" in values:
            raise ValueError("has both `duration` and `stages`; keep one: the measurement lasts as long as its stages")
        lengths = _lengths(values["stages"])
        if sum(lengths) > DURATION_NS_MAX:
            raise ValueError(f"has `stages` of {sum(lengths) // (3600 * S)} h in all, but must be 8784 h (366 days) or "
                             "less")
        # Where none can be read, that is what is said.
        return {**values, "duration": f"{sum(lengths) or S} ns"}

    @model_validator(mode="after")
    def _stages_are_apart(self) -> Self:
        names = [stage.name for stage in self.stages]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise ValueError(f"has two stages called {shown(twice)}; give each its own `name`")
        if self.stages and not any(stage.measured for stage in self.stages):
            raise ValueError("has no stage that is measured; leave `measured = false` out of one")
        if self.stages and not self.stages[0].measured:
            raise ValueError(f"has a first stage, `{names[0]}`, that is not measured; write `warm_up = "
                             f"\"{_seconds(self.stages[0].for_)}\"` instead of it")
        if self.stages and not self.stages[-1].measured:
            raise ValueError(f"has a last stage, `{names[-1]}`, that is not measured; leave it out: publishing ends "
                             "with the last stage, and `cool_down` follows")
        return self

    def spans(self) -> Iterator[tuple[Stage, int, int]]:
        """Each stage with its begin and end, in ns of the measurement."""
        begin = 0
        for stage in self.stages:
            yield stage, begin, begin + stage.for_
            begin += stage.for_

    def instant(self, words: str) -> int | None:
        """When a stage begins, by its name, or ends (``end of NAME``), in ns of the measurement; none that there is
        not."""
        for stage, begin, end in self.spans():
            if words in (stage.name, END_OF + stage.name):
                return begin if words == stage.name else end
        return None

    def near(self, words: str, events: list[str]) -> str:
        """What somebody may mean who writes the name of no stage and no event."""
        return did_you_mean(words, [*(stage.name for stage in self.stages), *events])

    @property
    def measured(self) -> int:
        """How long is measured, in ns: of stages those that count."""
        return sum(stage.for_ for stage in self.stages if stage.measured) or self.duration

    def told(self) -> str:
        """The stages in a line; empty without."""
        each = (f"{stage.name} from {_seconds(begin)} to {_seconds(end)}{'' if stage.measured else ' (not measured)'}"
                for stage, begin, end in self.spans())
        return ", ".join(each)


def _lengths(stages: Any) -> list[int]:
    """The lengths of stages, as far as they can be read."""
    found = []
    for stage in stages if isinstance(stages, list) else ():
        try:
            found.append(int(DURATION.read(stage.get("for") if isinstance(stage, dict) else None)))
        except ValueError:
            continue
    return found


def _seconds(ns: int) -> str:
    return f"{plain(ns / S)} s" if ns == 0 or ns >= S else f"{plain(ns / 10**6)} ms"


def stage_problems(phases: Phases, *, detect_transient: bool, stops: bool) -> Iterator[Problem]:
    """What else would say when the measurement begins and ends."""
    if phases.stages and detect_transient:
        yield ("sim", "detect_transient"), ("is true, but `phases.stages` say when the measurement begins; leave one "
                                            "of them out")
    if phases.stages and stops:
        yield ("sim", "stop"), "is set, but `phases.stages` say when the measurement ends; leave one of them out"
