"""Two sides of runs, as an address names them, compared; kept while their recordings do not change.

A side is a list of runs (``first=a,b``), or all runs that a search of the table finds (``first_search=qos=1``).
Nothing is left out silently: a side of more runs than are compared at once is refused, and runs that do not count are
named.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from mqttlab.comparison import Comparison, ComparisonError, compare, side
from mqttlab.dashboard.pages.runs import selected
from mqttlab.dashboard.panels import MARKERS_MAX
from mqttlab.dashboard.store import Store, stamp
from mqttlab.figures.drawing import Figure
from mqttlab.report.comparison import drawn
from mqttlab.report.text import number

RUNS_MAX = 60
KEPT = 4
SIDES = ("first", "second")


class Comparisons:
    """Comparisons of runs of a store. Its methods may be called from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[tuple[object, ...], Shown] = OrderedDict()
        self._lock = threading.Lock()

    def runs_of(self, name: str, query: Mapping[str, str]) -> list[str]:
        """The runs of a side: ``first`` or ``second``.

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
        """The comparison that an address asks for; ``None`` while a side is not chosen.

        Raises:
            UnknownRun: a run is not there.
            ComparisonError: they cannot be compared.
            RecordingError: one of them cannot be read.
        """
        runs = [self.runs_of(name, query) for name in SIDES]
        if not all(runs):
            return None
        places = [[self._store.place(run) for run in names] for names in runs]
        labels = [_label(query.get(f"{name}_search", ""), names) for name, names in zip(SIDES, runs, strict=True)]
        key = (*labels, *(tuple((place, stamp(place)) for place in side) for side in places))
        with self._lock:
            found = self._known.get(key)
            if found is None:
                sides = [side(label, found_at, label) for label, found_at in zip(labels, places, strict=True)]
                found = self._known[key] = Shown(compare(*sides))
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found

    def drawn(self, name: str, query: Mapping[str, str]) -> Figure | None:
        """A figure of a comparison; ``None`` where there is nothing to draw, or no such figure."""
        found = self.of(query)
        return None if found is None else found.figure(name)


class Shown:
    """A comparison with its figures, each made once when it is asked for."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
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
            made = drawn.by_qos(self.comparison)
            self._figures |= {of: made.get(metric) for of, metric in BY_QOS.items()}
            return
        make = {"ratios": drawn.ratios, "latency-cdf": drawn.latency_cdf, "quantile-shifts": drawn.shifts,
                "latency-in-both": _in_both}.get(name)
        self._figures[name] = make(self.comparison) if make else None


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
