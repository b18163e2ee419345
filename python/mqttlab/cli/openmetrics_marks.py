"""The marks of a run that is watched: its events, those that are fired by hand too, and its stages.

Label values are names of the scenario, or of what was fired. Of each, the first :data:`EVENTS_SERVED` names are served.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqttlab.foreign import visible
from mqttlab.plan.events import Course, kind_of, lasts, target

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from mqttlab.plan.types import Event

EVENTS_SERVED = 64
"""As of links. A reader keeps each name as a series of its own, for as long as it keeps anything."""
LABELS = ("event", "kind", "target", "by")
SCENARIO, HAND = "scenario", "hand"


@dataclass
class _Told:
    """An event, however often it takes place."""

    times: int = 0
    going_on: set[int] = field(default_factory=set)
    """Its changes that last."""
    last_s: float | None = None


class Marks:
    """The events and stages of one run, as its progress lines tell them."""

    def __init__(self, plan: Mapping[str, Any], clock: Callable[[], float] = time.time) -> None:
        self._events: list[Event] = plan.get("events") or []
        self._groups = plan.get("groups") or []
        self._stages = plan.get("stages") or []
        self._warm_up_ns = plan["phases"]["warm_up_ns"] if self._stages else 0
        self._clock = clock
        self._course = Course()
        # Of each change, whose number it is; none of an event that is not served.
        self._whose: list[_Told | None] = []
        self._told: dict[tuple[str, ...], _Told] = {}
        self._taken = 0
        self._measured_ns: int | None = None
        self._now_ns = 0
        planned = Course()
        for event in self._events:
            known = len(planned.changes)
            if planned.take(event["at_ns"], event).began == known:
                self._of(event, SCENARIO)

    def observe(self, line: dict[str, Any]) -> None:
        """Take a progress line."""
        kind = line.get("event")
        if kind == "change":
            self._change(line)
        elif kind == "phase":
            self._measured_ns = line["at_ns"] if line["phase"] == "measurement" else None
        elif kind == "done":
            self._measured_ns = None
            for told in self._told.values():
                told.going_on.clear()
        self._now_ns = max(self._now_ns, line.get("at_ns") or 0)

    def _change(self, line: dict[str, Any]) -> None:
        event: Event | None = line.get("by_hand")
        by_hand = event is not None
        if event is None:
            # They come in the plan's order.
            if self._taken >= len(self._events):
                return
            event = self._events[self._taken]
            self._taken += 1
        taken = self._course.take(line["at_ns"], event, by_hand=by_hand)
        for place in taken.ended:
            if (ended := self._whose[place]) is not None:
                ended.going_on.discard(place)
        if taken.began == len(self._whose):
            self._whose.append(told := self._of(event, HAND if by_hand else SCENARIO))
            if told is not None:
                told.times, told.last_s = told.times + 1, self._clock()
                told.going_on |= {taken.began} if lasts(self._course.changes[taken.began].kind) else set()

    def _of(self, event: Event, by: str) -> _Told | None:
        labels = (visible(event["name"]), kind_of(event), visible(target(event, self._groups)), by)
        if labels not in self._told and sum(each[-1] == by for each in self._told) >= EVENTS_SERVED:
            return None
        return self._told.setdefault(labels, _Told())

    def _stage(self) -> str | None:
        """The stage of the last line. In a plan they begin so long after publishing does."""
        if self._measured_ns is None:
            return None
        at_ns = self._now_ns - self._measured_ns + self._warm_up_ns
        return next((each["name"] for each in self._stages if each["from_ns"] <= at_ns < each["until_ns"]), None)

    def collect(self) -> Iterator[Metric]:
        """What is known now: families of metrics; none of a run without events or stages."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, StateSetMetricFamily

        if self._stages:
            stage = self._stage()
            yield StateSetMetricFamily("mqttlab_stage", "The stage of the measurement that the run is in.",
                                       {each["name"]: each["name"] == stage for each in self._stages})
        if not self._told:
            return
        active = GaugeMetricFamily("mqttlab_event_active", "1 while what the event changed lasts.", labels=LABELS)
        times = CounterMetricFamily("mqttlab_events", "How often the event took place.", labels=LABELS)
        last = GaugeMetricFamily("mqttlab_event_timestamp_seconds", "When the event took place last, in Unix time.",
                                 labels=LABELS)
        # The lines of a run come in another thread than a reader's request.
        for labels, told in list(self._told.items()):
            active.add_metric(labels, float(bool(told.going_on)))
            times.add_metric(labels, told.times)
            if told.last_s is not None:
                last.add_metric(labels, told.last_s)
        yield from (active, times, last)
