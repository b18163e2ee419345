"""What an experiment was asked: factors, points and how to judge, as far as an analysis needs it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

ENVIRONMENT = ("networks", "trunk", "radio", "hosts", "paths", "events")
LOAD = ("phases", "groups.count", "groups.churn", *(f"groups.publish.{field}" for field in (
    "payload", "interval", "rate", "arrival", "burst", "stages", "start_phase", "messages", "topics", "replay")))
"""Places of what devices have to say, and when: nobody can choose to have less of it."""
INDEX = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, kw_only=True)
class Factor:
    """What was varied. ``levels`` are texts in their order, ``values`` their numbers in a base unit."""

    name: str
    unit: str = ""
    kind: Literal["numeric", "categorical"] = "categorical"
    scale: str = "linear"
    levels: tuple[str, ...] = ()
    values: tuple[float | None, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def environment(self) -> bool:
        """Whether it is what one has to live with, a network or a load, and not what one can choose."""
        return bool(self.places) and all(_given(INDEX.sub("", place)) for place in self.places)


@dataclass(frozen=True, kw_only=True)
class ExperimentDesign:
    """An experiment's question."""

    name: str
    question: str = ""
    factors: tuple[Factor, ...] = ()
    reference: str | None = None
    """The key of the point that others are compared with."""
    kind: str = "full"
    order: str = "random-blocks"
    common_seeds: bool = True
    family: float = 0.05
    margin: float = 0.05
    """The largest relative difference that does not matter."""
    confidence: float = 0.95
    lost_most_percent: float = 1.0
    """What an acceptable choice may leave undelivered, for recommendations."""
    found: tuple[str, ...] = ()
    """What a search has found, a sentence for each combination of the other factors."""
    resolution: int | None = None
    aliases: tuple[str, ...] = ()
    responses: tuple[tuple[str, str, str | None], ...] = ()
    """Metric, scope and name of what was asked for, in that order; the first one is the objective of
    recommendations."""
    stopping: str = ""
    """The rule by which repetitions ended, where they were not a fixed number."""
    simulated: bool = False
    """Whether every run was simulated: virtual time does not drift."""
    names: dict[str, str] = field(default_factory=dict)
    """Facts for the methods paragraph: program version, machine, backend."""


def _given(place: str) -> bool:
    return place.split(".")[0] in ENVIRONMENT or any(f"{place}.".startswith(f"{load}.") for load in LOAD)
