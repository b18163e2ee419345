"""The experiment file: its parts, their fields and defaults.

Every field says in its description what it does; ``docs/how-to/experiment.md`` has the reference generated from them.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from mqttlab.networks.link import Part, Truth, Whole
from mqttlab.quantity import RatioPair, shown
from mqttlab.scenario.model import Name
from mqttlab.scenario.threshold import Bound, Measured, Threshold

DesignKind = Literal["full", "fractional", "one-at-a-time", "latin-hypercube", "sobol", "list", "search"]
# Columns of the tidy table, which a factor's column must not hide.
RESERVED = ("point", "key", "kind", "block", "repetition", "order_no", "seed", "run", "directory", "state", "verdict",
            "reason", "metric", "scope", "scope_name", "value", "unit", "declared")
FRACTIONS_MAX = 15


def scalar(value: Any) -> Any:
    """A number or a text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"is {shown(value)}, but must be a number, or text with a unit, such as \"10 ms\"")
    return value


Scalar = Annotated[int | float | str, BeforeValidator(scalar)]


class Range(Part):
    """Levels between two ends."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    from_: Scalar = Field(alias="from", description="First level: a number, or text with a unit.")
    to: Scalar = Field(description="Last level, in the same unit.")
    levels: Whole | None = Field(None, ge=2, le=1000, description=(
        "Number of levels, both ends included; Latin hypercubes, Sobol sequences and searches need none."))
    scale: Literal["linear", "logarithmic", "integer"] = Field("linear", description=(
        "`linear`: equal steps; `logarithmic`: equal ratios; `integer`: equal steps, rounded to whole numbers."))


class FactorFile(Part):
    """What is varied: a place in the scenario, several that move together, or named patches."""

    name: Name | None = Field(None, description="Its column in tables; the last part of `place` when left out.")
    place: str | None = Field(None, min_length=1, description=(
        "A field of the scenario, such as `networks[0].up.loss`; `groups[*]` is every group that has the field, "
        "`groups[map]` the one with this name."))
    places: list[str] | None = Field(None, min_length=1, description="Several fields that get the same value.")
    levels: list[Any] | None = Field(None, min_length=1, description="Its values, as the scenario would have them.")
    range: Range | None = Field(None, description="Levels between two ends, instead of `levels`.")
    patches: dict[Name, dict[str, Any]] | None = Field(None, min_length=1, description=(
        "Named levels, each with values by place, such as networks or brokers; a table as a value replaces a table."))

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [name for name in ("place", "places", "patches") if getattr(self, name) is not None]
        if len(ways) != 1:
            raise ValueError("needs one of `place`, `places` and `patches`" if not ways else
                             f"has {' and '.join(f'`{name}`' for name in ways)}; keep one")
        if self.levels is not None and self.range is not None:
            raise ValueError("has `levels` and a `range`; keep one")
        if self.patches is not None and (self.levels is not None or self.range is not None):
            raise ValueError("has `patches`, which are its levels, and `levels` or a `range`; keep one")
        return self


class DesignFile(Part):
    """Which combinations of levels are run."""

    kind: DesignKind = Field(description=(
        "`full`: every combination; `fractional`: a fraction of two levels each; `one-at-a-time`: the reference, and "
        "each other level alone; `latin-hypercube`, `sobol`: points that fill the space; `list`: `[[points]]`; "
        "`search`: the largest level at which a criterion holds."))
    resolution: Literal[3, 4, 5] | None = Field(None, description=(
        "For `fractional`: 3: main effects are free of each other; 4: and of two-way interactions; 5: these are free "
        "of each other, too (default)."))
    points: Whole | None = Field(None, ge=2, le=100_000, description="For `latin-hypercube` and `sobol`: how many.")

    @model_validator(mode="after")
    def _what_belongs(self) -> Self:
        filling = self.kind in ("latin-hypercube", "sobol")
        if self.resolution is not None and self.kind != "fractional":
            raise ValueError(f"has a `resolution`, which belongs to a fractional design; leave it out for {self.kind}")
        if self.points is not None and not filling:
            raise ValueError(f"has `points`, which belong to latin-hypercube and sobol; leave them out for {self.kind}")
        if self.points is None and filling:
            raise ValueError(f"needs `points`, how many there are; write {{ kind = \"{self.kind}\", points = 64 }}")
        if self.kind == "sobol" and self.points is not None and self.points & (self.points - 1):
            near = 1 << max(1, round(self.points.bit_length() - 0.5))
            raise ValueError(f"has {self.points} points, but a Sobol sequence is balanced for powers of two only; "
                             f"write {near}")
        return self


def read_design(value: Any) -> Any:
    """A design from its kind alone."""
    return {"kind": value} if isinstance(value, str) else value


class Until(Measured):
    """When a point has enough repetitions."""

    half_width: RatioPair = Field(description=(
        "Of the 95 % confidence interval of the mean over runs, relative to the mean, such as \"5 %\"."))


class Repetitions(Part):
    """How often each point is run."""

    min: Whole = Field(5, ge=2, le=10_000, description="At least this many, before the first look.")
    max: Whole = Field(30, ge=2, le=10_000, description="At most this many.")
    until: Until = Field(description="The half width that is enough, looked at after every block.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"has a `max` of {self.max}, less than its `min` of {self.min}; raise it")
        return self


def read_repetitions(value: Any) -> Any:
    """A number, or the table of a rule."""
    if isinstance(value, dict):
        return Repetitions.model_validate(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"is {shown(value)}, but must be a whole number, or a table, such as {{ min = 5, max = 30, "
                         "until = { metric = \"latency_ms_p99\", half_width = \"5 %\" } }")
    if not 1 <= value <= 10_000:
        raise ValueError(f"is {value}, but must be from 1 to 10000")
    return value


def read_control(value: Any) -> Any:
    """A number of runs, from ``"every 10 runs"``."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*every\s+([0-9]{1,6})\s+runs?\s*", value)):
        value = int(match[1])
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000:
        raise ValueError(f"is {shown(value)}, but must be a number of runs from 1 to 100000, such as \"every 10 runs\"")
    return value


def read_response(value: Any) -> Any:
    """A response from its metric alone."""
    return {"metric": value} if isinstance(value, str) else value


class Criterion(Measured):
    """What must hold at a level."""

    below: Bound | None = Field(None, description="Upper bound: a number in the metric's unit, or text with a unit.")
    above: Bound | None = Field(None, description="Lower bound.")

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.below is None) == (self.above is None):
            raise ValueError("needs `below` or `above`" if self.below is None else "has `below` and `above`; keep one")
        return self


def read_holds(value: Any) -> Any:
    """Runs that must hold, and runs at a level, from ``"4 of 5"``."""
    match = re.fullmatch(r"\s*([0-9]{1,4})\s+of\s+([0-9]{1,4})\s*", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"is {shown(value)}, but must be written as \"4 of 5\"")
    if not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"is {shown(value)}, but the first number must be from 1 to {int(match[2])}")
    return value


class Search(Part):
    """The largest level of a factor at which a criterion holds, by bisection, for each combination of the others."""

    factor: str = Field(description="The factor; its levels rise, or it has a range.")
    criterion: Criterion = Field(description="What must hold.")
    holds: Annotated[str, BeforeValidator(read_holds)] = Field("4 of 5", description=(
        "In how many of how many runs it must hold, such as \"4 of 5\"."))
    tolerance: RatioPair = Field((1, 20), description=(
        "Where to stop: the interval's width, relative to its upper end (on a logarithmic scale, too)."))

    @property
    def counts(self) -> tuple[int, int]:
        """Runs that must hold, and runs at a level."""
        first, _, last = self.holds.partition("of")
        return int(first), int(last)


class Analysis(Part):
    """How results are judged."""

    confidence: RatioPair = Field((19, 20), description="Of every interval.")
    family: RatioPair = Field((1, 20), description="Chance of one wrong finding over all comparisons (Holm).")
    margin: RatioPair = Field((1, 20), description="Relative difference that counts as equivalent.")
    lost_most: RatioPair = Field((1, 100), description=(
        "In recommendations: the largest share of deliveries that an acceptable choice may leave undelivered."))


# What may be written is more than what is read, and the JSON Schema is of what may be written.
DESIGN = BeforeValidator(read_design, json_schema_input_type=DesignFile | DesignKind)
CONTROL = BeforeValidator(read_control, json_schema_input_type=int | str)
RESPONSE = BeforeValidator(read_response, json_schema_input_type=Measured | str)


class ExperimentFile(Part):
    """An experiment: which scenario is varied, how, how often, and what is asked of it."""

    name: Name = Field(description="Names its directory and reports; the same name goes on with the same experiment.")
    question: str = Field("", description="What it is to answer, for the report.")
    scenario: str = Field(min_length=1, description="The scenario file, from the experiment file's directory.")
    backend: Literal["live", "sim"] | None = Field(None, description="Replaces the scenario's backend.")
    set: dict[str, Any] = Field(default_factory=dict, description=(
        "Fields of the scenario that are replaced at every point, such as { \"phases.duration\" = \"10 s\" }."))
    factors: list[FactorFile] = Field(default_factory=list, description="What is varied.")
    design: Annotated[DesignFile, DESIGN] = Field(DesignFile(kind="full"), description=(
        "Which combinations are run: a kind, or a table."))
    points: list[dict[str, Any]] = Field(default_factory=list, description=(
        "For the design `list`: a level of every factor each."))
    search: Search | None = Field(None, description="For the design `search`: what is looked for.")
    repetitions: Annotated[int | Repetitions, BeforeValidator(read_repetitions)] = Field(5, description=(
        "Runs of each point: a number, or `min`, `max` and `until`."))
    order: Literal["random-blocks", "as-listed"] = Field("random-blocks", description=(
        "`random-blocks`: each block holds every point once, in random order; a block is a repetition."))
    seeds: Literal["common", "independent"] = Field("common", description=(
        "`common`: the same dice at every point of a block, so that points are compared by pairs."))
    seed: Whole | None = Field(None, ge=0, lt=2**63, description=(
        "Seed of orders, of points that are drawn, and of the runs; the scenario's when left out."))
    reference: dict[str, Any] = Field(default_factory=dict, description=(
        "The point that others are compared with: a level by factor; first levels for factors that are left out."))
    control: Annotated[int, CONTROL] | None = Field(None, description=(
        "The reference is run again after so many runs, such as \"every 10 runs\": drift is measured."))
    attempts: Whole = Field(3, ge=1, le=100, description=(
        "How often a run is tried that fails or is not valid; then it is reported as missing. A simulation that is not "
        "valid is not repeated: the same seed gives the same."))
    responses: list[Annotated[Measured, RESPONSE]] = Field(default_factory=list, description=(
        "What is measured: metrics, or tables with `metric`, `scope` and `name`. Named before the runs, they count as "
        "confirmatory."))
    thresholds: list[Threshold] = Field(default_factory=list, description="What must hold, judged at every point.")
    analysis: Analysis = Field(Analysis(), description="How results are judged.")
    keep_recordings: Truth = Field(True, description=(
        "`false`: a run's recording is deleted when its responses are in the journal."))
