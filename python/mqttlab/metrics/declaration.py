"""What a declaration of a metric says. The declarations are in :mod:`mqttlab.metrics.catalogue`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Better = Literal["lower", "higher", "neither"]
Shown = Literal["narrow", "wide", "page", "data"]
# Each shows what the one before shows, and more.
PLACES: tuple[Shown, ...] = ("narrow", "wide", "page", "data")
Window = Literal["due", "measurement", "run", "frames", "slice", "radio", "event"]
WINDOWS: dict[Window, str] = {
    "due": "messages that were due within the measurement, whenever they arrived",
    "measurement": "what happened within the measurement",
    "run": "the whole run, connecting and cooling down included",
    "frames": "from the row's first frame to its last, over the whole run",
    "slice": "each time slice of the run",
    "radio": "what happened within the measurement; the whole run where a radio counted",
    "event": "from an event of the scenario until the next one that begins after its end, else until the measurement's "
             "end; the first 50 events",
}
"""What a metric covers. Numerator and denominator of a rate or share cover the same."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A quantity that a recording yields."""

    name: str
    unit: str
    title: str
    meaning: str
    source: str = "mqttlab"
    better: Better = "neither"
    shown: Shown = "page"
    """Where a table has room for it: ``narrow`` in every terminal, ``wide`` in wide ones, ``page`` in the report's
    page, ``data`` in exports only."""
    window: Window | None = None
    """What it covers; of a metric in a family, that family's window where it has none of its own."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Metrics that one implementation computes."""

    table: str
    """Its name in :func:`mqttlab.metrics.summary`, in exports and here."""
    title: str
    scopes: tuple[str, ...]
    """What a row may be about: ``run``, ``direction``, ``link``, ``group``, ``groups`` (a flow: a publishing and a
    subscribing group, the publication where the group has several, and the QoS), ``qos``, ``station``, ``event``,
    ``connection``, ``topic``, ``packet_type``, ``time``, ``message``."""
    implementation: str
    window: Window
    """What its metrics cover unless they say otherwise."""
    metrics: tuple[Metric, ...]

    def __post_init__(self) -> None:
        own = (metric if metric.window else replace(metric, window=self.window) for metric in self.metrics)
        object.__setattr__(self, "metrics", tuple(own))

    def columns(self, place: Shown = "data") -> tuple[str, ...]:
        """The names of those that have room in this place, in order."""
        room = PLACES[:PLACES.index(place) + 1]
        return tuple(metric.name for metric in self.metrics if metric.shown in room)
