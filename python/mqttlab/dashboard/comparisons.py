"""Two to six sides of runs, as an address names them, compared; kept while their recordings do not change.

A side is a list of runs (``first=a,b``), or all runs that a search of the table finds (``first_search=qos=1``).
Nothing is left out silently: a side of more runs than are compared at once is refused, and runs that do not count are
named.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from mqttlab.comparison import Comparison, ComparisonError, compare, side
from mqttlab.dashboard.pages.runs import selected
from mqttlab.dashboard.panels import MARKERS_MAX
from mqttlab.dashboard.store import Store, stamp
from mqttlab.figures.drawing import Figure
from mqttlab.report.comparison import drawn
from mqttlab.report.text import number

RUNS_MAX = 60
KEPT = 4
SIDES = drawn.ORDINALS


def chosen(name: str, query: Mapping[str, str]) -> bool:
    """Whether an address has a side of this name."""
    return bool(query.get(name) or query.get(f"{name}_search"))


def without_gaps(query: Mapping[str, str]) -> dict[str, str]:
    """An address whose sides behind the first follow each other: a third one without a second is the second."""
    rest = {key: value for key, value in query.items() if key.removesuffix("_search") not in SIDES[1:]}
    for name, old in zip(SIDES[1:], (name for name in SIDES[1:] if chosen(name, query)), strict=False):
        rest |= {f"{name}{of}": query.get(f"{old}{of}", "") for of in ("", "_search")}
    return rest


class Comparisons:
    """Comparisons of runs of a store. Its methods may be called from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[object, ...], Shown] = OrderedDict()
        self._lock = threading.Lock()

    def runs_of(self, name: str, query: Mapping[str, str]) -> list[str]:
        """The runs of a side, one of :data:`SIDES`.

        Raises:
            ComparisonError: there are too many, or a search finds none.
        """
        search = query.get(f"{name}_search", "")
        if search:
            found = selected(self._store.runs(), {"search": search})["run"].to_list()
            if not found:
                raise ComparisonError(f"the {name} side: no run is found by {search!r}")
        else:
            found = [run for run in query.get(name, "").split(",") if run]
        if len(found) > RUNS_MAX:
            raise ComparisonError(f"the {name} side has {number(len(found))} runs, but at most {RUNS_MAX} are compared "
                                  "at once; narrow the search")
        return found

    def of(self, query: Mapping[str, str]) -> Shown | None:
        """The comparison that an address asks for; ``None`` while the first or every other side is not chosen.

        Raises:
            UnknownRun: a run is not there.
            ComparisonError: they cannot be compared.
            RecordingError: one of them cannot be read.
        """
        asked = {name: runs for name in SIDES if (runs := self.runs_of(name, query))}
        if SIDES[0] not in asked or len(asked) < 2:
            return None
        places = [[self._store.place(run) for run in names] for names in asked.values()]
        labels = [_label(query.get(f"{name}_search", ""), names) for name, names in asked.items()]
        key = (*labels, *(tuple((place, stamp(place)) for place in side) for side in places))
        with self._lock:
            found = self._known.get(key)
            if found is None:
                first, *others = [side(label, found_at, label) for label, found_at in zip(labels, places, strict=True)]
                found = self._known[key] = Shown([compare(first, other) for other in others])
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found

    def drawn(self, name: str, query: Mapping[str, str]) -> Figure | None:
        """A figure of a comparison; ``None`` where there is nothing to draw, or no such figure."""
        found = self.of(query)
        return None if found is None else found.figure(name)


class Shown:
    """Sides compared with the first, and their figures, each made once when it is asked for."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        self.comparisons = comparisons
        self._figures: dict[str, Figure | None] = {}
        self._lock = threading.Lock()

    def figure(self, name: str) -> Figure | None:
        """One of :data:`FIGURES`; ``None`` where there is nothing to draw, or no such figure."""
        with self._lock:
            if name not in self._figures:
                self._make(name)
        return self._figures[name]

    def _make(self, name: str) -> None:
        if name in BY_QOS:
            made = drawn.by_qos(*self.comparisons)
            self._figures |= {of: made.get(metric) for of, metric in BY_QOS.items()}
            return
        if name == "latency-cdf":
            self._figures[name] = drawn.latency_cdf(*self.comparisons)
            return
        # The others are of two sides.
        make = {"ratios": drawn.ratios, "quantile-shifts": drawn.shifts, "latency-in-both": _in_both}.get(name)
        self._figures[name] = make(self.comparisons[0]) if make and len(self.comparisons) == 1 else None


def _in_both(comparison: Comparison) -> Figure | None:
    """Of several pairs the first."""
    try:
        return drawn.latency_in_both(comparison.by_message[0], MARKERS_MAX)
    except ComparisonError:
        return None


def _label(search: str, runs: list[str]) -> str:
    return search or (runs[0] if len(runs) == 1 else f"{number(len(runs))} runs")


BY_QOS = {f"{metric.replace('_', '-')}-by-qos": metric for metric in drawn.BY_QOS}
FIGURES = (*BY_QOS, "latency-cdf", "quantile-shifts", "ratios", "latency-in-both")
