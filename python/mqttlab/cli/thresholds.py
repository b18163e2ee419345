"""Thresholds of a scenario: checked before it runs, watched while it runs, judged over its repetitions.

Loaded only where a scenario has some, for judging needs the metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from mqttlab.cli.status import BROKEN, DONE, UNDECIDED
from mqttlab.console import Console
from mqttlab.errors import MqttlabError
from mqttlab.experiments.baselines import baseline_values
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.junit import junit
from mqttlab.experiments.keep import Kept, keep
from mqttlab.experiments.load import measures_wrong
from mqttlab.experiments.responses import Response, judged_of, supported
from mqttlab.experiments.thresholds import Earlier, Judgement, Watch, judge_runs
from mqttlab.runs import Job, Outcome
from mqttlab.scenario import Scenario, ScenarioError
from mqttlab.scenario.threshold import Threshold
from mqttlab.scenario.wording import Source, read_text

SHOWN = {"held": "[green]held[/]", "broken": "[bold red]broken[/]", "undecided": "[yellow]undecided[/]"}
STATUSES = {"held": DONE, "broken": BROKEN, "undecided": UNDECIDED}


def check_thresholds(scenario: Scenario, path: Path, replaced: Collection[str] = ()) -> None:
    """Refuse metrics, scopes and bounds that there are not.

    Raises:
        ScenarioError: with the place of each.
    """
    found = measures_wrong((("thresholds", index), each) for index, each in enumerate(scenario.thresholds))
    found += [(("thresholds", index, "at"), "belongs to experiments, which have levels; leave it out")
              for index, each in enumerate(scenario.thresholds) if each.at]
    if found:
        source = Source(str(path), read_text(path), replaced)
        raise ScenarioError([source.at(place) + words for place, words in found])


def need_baselines(thresholds: Iterable[Threshold], catalog: str | None, runs: Path) -> None:
    """Refuse baselines that there are not, before anything runs.

    Raises:
        ExperimentError: there is no such recording, experiment or name.
    """
    for each in thresholds:
        if each.not_worse_than is not None:
            baseline_values(each.not_worse_than.baseline, judged_of(each),
                            lambda name: baseline_directories(name, catalog, runs))


class Repetitions:
    """The repetitions of a scenario with thresholds."""

    def __init__(self, scenario: Scenario, catalog: str | None, runs: Path) -> None:
        self._scenario = scenario
        self._catalog, self._runs = catalog, runs
        self._watch = Watch(scenario.thresholds)
        self._responses = supported(judged_of(each) for each in scenario.thresholds)
        self._records: list[RunRecord] = []

    def watching(self, cancel: Callable[[str], None]) -> Callable[[Job, dict[str, Any]], None]:
        """What looks at a run's progress lines, and ends it where a threshold says so."""
        self._watch.cancel = cancel
        return lambda job, line: self._watch.observe(job.identifier, line)

    def add(self, job: Job, outcome: Outcome) -> str | None:
        """A repetition that has ended; the threshold that has ended it, if one did."""
        aborted = self._watch.ended(job.identifier) if outcome.verdict == "incomplete" else None
        self._records.append(_record(job, keep(job, outcome, self._responses), aborted, len(self._records)))
        return aborted

    def judged(self) -> list[Judgement]:
        """Every threshold, over the repetitions there are."""
        counted = [record for record in self._records if record.state in ("done", "aborted")]
        return [judge_runs(each, "", counted, self._baseline) for each in self._scenario.thresholds]

    def _baseline(self, name: str, response: Response) -> list[Earlier]:
        return baseline_values(name, response, lambda name: baseline_directories(name, self._catalog, self._runs))

    def junit(self, judged: Sequence[Judgement]) -> str:
        """The thresholds as JUnit XML."""
        lost = [record for record in self._records if record.state not in ("done", "aborted")]
        return junit(self._scenario.name, judged, lost, sum(record.seconds for record in self._records))


def _record(job: Job, kept: Kept, aborted: str | None, repetition: int) -> RunRecord:
    return RunRecord(
        run=job.identifier, kind="run", point=0, point_key="", levels={}, block=repetition, repetition=repetition,
        order_no=repetition, seed=job.plan["seed"], attempt=1, plan_digest="", backend=job.plan["backend"],
        directory=str(job.directory), began="", verdict=kept.verdict, valid=kept.valid, reason=aborted or kept.reason,
        aborted=aborted is not None, seconds=kept.seconds, bytes=kept.bytes, responses=kept.responses)


def baseline_directories(name: str, catalog: str | None, runs: Path) -> list[Path] | None:
    """The recordings of a baseline of the catalog, if there is a catalog that has it."""
    from mqttlab.catalog import Catalog, url_for

    if catalog is None and not (runs / "catalog.db").is_file():
        return None
    with Catalog.open(catalog or url_for(runs), read_only=True) as opened:
        try:
            return list(opened.baseline(name))
        except MqttlabError:
            return None


def say_judged(console: Console, judged: Iterable[Judgement]) -> None:
    """A line for each threshold."""
    for each in judged:
        where = f"{each.point}: " if each.point else ""
        console.print(f"{SHOWN[each.verdict]}  {escape(where + each.name)}: {escape(each.words)}", highlight=False)


def statuses(judged: Iterable[Judgement]) -> list[int]:
    """Exit statuses of thresholds."""
    return [STATUSES[each.verdict] for each in judged]


def documents(judged: Iterable[Judgement]) -> list[dict[str, Any]]:
    """Thresholds as ``--json`` has them."""
    return [{"threshold": each.name, "metric": each.threshold.metric, "stage": each.threshold.stage,
             "verdict": each.verdict,
             "estimate": each.estimate, "low": _finite(each.low), "high": _finite(each.high), "runs": each.n,
             "words": each.words} for each in judged]


def _finite(value: float | None) -> float | None:
    return None if value is None or abs(value) == float("inf") else value
