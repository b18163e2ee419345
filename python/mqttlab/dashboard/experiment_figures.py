"""What an experiment says, as its page shows it: its analysis and figures, kept while its journal does not change."""

from __future__ import annotations

import threading

from mqttlab.analysed import analysed
from mqttlab.analysis import Analysis
from mqttlab.dashboard.store import Store, UnknownRun
from mqttlab.experiments import ExperimentDirectory, find_experiments
from mqttlab.figures import experiment as figures
from mqttlab.figures.drawing import Figure
from mqttlab.report.experiment import frames
from mqttlab.report.experiment.page import drawn

KEPT = 4


class Analyses:
    """The analyses of the experiments below the runs. Its methods may be called from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, Analysis, dict[str, Figure]]] = {}
        self._lock = threading.Lock()

    def directory(self, name: str) -> ExperimentDirectory:
        """An experiment's directory.

        Raises:
            UnknownRun: there is none of this name.
            ExperimentError: it cannot be read.
        """
        if name not in {path.name for path in find_experiments(self._store.directory)}:
            raise UnknownRun(f"there is no experiment {name!r} in {self._store.directory}")
        return ExperimentDirectory.open(self._store.directory / name)

    def of(self, name: str) -> tuple[Analysis, dict[str, Figure]]:
        """What an experiment says, and its figures by name.

        Raises:
            UnknownRun: there is none of this name.
            ExperimentError: it cannot be read, or no run of it counts yet.
        """
        directory = self.directory(name)
        stamp = (directory.path / "journal.jsonl").stat().st_mtime_ns
        with self._lock:
            known = self._known.get(name)
            if known is None or known[0] != stamp:
                analysis = analysed(directory)
                known = (stamp, analysis, _figures(analysis))
                self._known[name] = known
                while len(self._known) > KEPT:
                    del self._known[next(iter(self._known))]
        return known[1], known[2]


def _figures(analysis: Analysis) -> dict[str, Figure]:
    """All figures, under names that an address can hold."""
    made = {f"response-{number}-{place}": figure for number, each in enumerate(analysis.responses)
            for place, figure in enumerate(drawn(analysis, each))}
    if any(each.varies and each.model for each in analysis.responses):
        terms = frames.variation(analysis)
        if terms.height:
            made["variation"] = figures.variation(terms.select("response", "term", "percent"))
    return made
