"""An experiment's directory: what it was asked, what was begun, and what it has yielded.

::

    experiment.toml   the file, as last accepted       design.json     factors and points, derived; digests
    scenario.toml     its scenario                     journal.jsonl   the only truth about runs
    runs/             recordings

Who drives an experiment holds a lock on the directory itself; it ends with its holder. Reading takes none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqttlab import scratch
from mqttlab.engine import held, is_being_written
from mqttlab.experiments import journal
from mqttlab.experiments.journal import Journal, RunRecord
from mqttlab.experiments.keep import Kept, adopted
from mqttlab.experiments.load import Experiment, ExperimentError, digest_of, load
from mqttlab.experiments.points import Design, Point
from mqttlab.experiments.schedule import Records, Task, wanted
from mqttlab.files import as_open_as, json_object, make_private
from mqttlab.plan import SCHEMA
from mqttlab.runs.storage import fetch, is_complete, is_url, store
from mqttlab.scenario import ScenarioError
from mqttlab.version import __version__

if TYPE_CHECKING:
    import polars as pl

WAIT_S = 30.0
"""An engine whose parent has died ends within two seconds, and writes its tables."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a changed file means for runs that have ended."""

    stale: tuple[RunRecord, ...]
    """Made by what the file said before."""
    counted: int
    """Runs that count so far."""

    def words(self) -> str:
        """Which points, in a line."""
        points = sorted({record.point for record in self.stale})
        shown = [f"{record.point} ({', '.join(f'{n} {t}' for n, t in record.levels.items()) or 'the scenario'})"
                 for record in {record.point: record for record in self.stale}.values()]
        more = f" and {len(points) - 5} more" if len(points) > 5 else ""
        return f"{len(self.stale)} of {self.counted} runs are stale: point{'s' if len(points) > 1 else ''} " + (
            ", ".join(shown[:5]) + more)


class ExperimentDirectory:
    """An experiment on disk. Made by :meth:`prepare`, read by :meth:`open`."""

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.path = path
        self.experiment = experiment
        self.journal = Journal(path / journal.NAME)

    @property
    def design(self) -> Design:
        """Factors and points."""
        return self.experiment.design

    @classmethod
    def open(cls, path: Path) -> ExperimentDirectory:
        """Read an experiment's directory.

        Raises:
            ExperimentError: it is none.
        """
        if not (path / journal.NAME).is_file():
            raise ExperimentError(f"{path} is not an experiment's directory: it has no {journal.NAME}")
        derived = json_object(path / "design.json")
        experiment = load(path / "experiment.toml", derived.get("replaced") or {}, path / "scenario.toml")
        return cls(path, experiment)

    @classmethod
    def prepare(cls, experiment: Experiment, runs: Path, *, redo: bool = False) -> ExperimentDirectory:
        """The directory of an experiment, made or gone on with.

        Args:
            experiment: as loaded.
            runs: where it is, or is to be made.
            redo: runs that another version of the experiment has made are done again.

        Raises:
            ExperimentError: runs are stale, and are not to be done again; the message says which.
        """
        directory = cls(runs / experiment.name, experiment)
        make_private(runs)
        if not directory.journal.path.is_file():
            if directory.path.is_dir():
                directory._begin()
            else:
                # It has its name when it is an experiment's: what is killed before leaves nothing under it.
                with scratch.unfinished(directory.path) as made:
                    made.mkdir(mode=as_open_as(runs))
                    cls(made, experiment)._begin()
            return directory
        if json_object(directory.path / "design.json").get("digest") == _digest(experiment):
            return directory
        change = directory.changed()
        if change.stale and not redo:
            raise ExperimentError(
                f"{experiment.path} has changed since {directory.path} was begun, and {change.words()}; --redo runs "
                "these again (their recordings stay), or give the experiment another name")
        if change.stale:
            directory.journal.append("stale", runs=[record.run for record in change.stale],
                                     why="the experiment has changed")
        directory.journal.append("note", text="the experiment's file, its scenario or the program has changed",
                                 digest=_digest(experiment), version=__version__)
        directory._write()
        return directory

    def changed(self) -> Change:
        """Which runs that count were made by something else than what the experiment says now."""
        counted = [record for record in self.runs() if record.state in ("done", "invalid", "failed", "aborted")]
        points = {point.key: point for point in self._points()}
        digests: dict[tuple[str, str, int], str] = {}
        stale = []
        for record in counted:
            place = (record.kind, record.point_key, record.block)
            if record.point_key in points and place not in digests:
                digests[place] = self._plan_digest(points[record.point_key], record)
            # Of a search, points are met on the way: what is not among them now may be met again.
            gone = record.point_key not in points and self.design.kind != "search"
            if gone or digests.get(place, record.plan_digest) != record.plan_digest:
                stale.append(record)
        return Change(stale=tuple(stale), counted=len(counted))

    def _plan_digest(self, point: Point, record: RunRecord) -> str:
        experiment = self.experiment
        try:
            scenario = experiment.scenario_at(point)
        except ScenarioError:
            return ""
        seed = experiment.seed_of(point, record.block, record.kind)
        return digest_of(experiment.plan(scenario, seed=seed, repetition=record.block))

    def _points(self) -> Iterator[Point]:
        yield from self.design.points
        if self.design.reference is not None:
            yield self.design.reference
        if self.experiment.file.search is not None:
            for task in wanted(self.experiment, self.answers()):
                yield task.point

    def _begin(self) -> None:
        self._write()
        self.journal.append("created", name=self.experiment.name, digest=_digest(self.experiment), version=__version__)

    def _write(self) -> None:
        for name, text in (("experiment.toml", self.experiment.text), ("scenario.toml", self.experiment.scenario_text),
                           ("design.json", json.dumps(_derived(self.experiment), indent=1) + "\n")):
            with scratch.unfinished(self.path / name) as made:
                made.write_text(text, encoding="utf-8")

    def runs(self) -> list[RunRecord]:
        """Every run that was begun, in that order."""
        return list(journal.runs(journal.read(self.journal.path)).values())

    def pending(self) -> list[Task]:
        """Runs that are known to be needed, and are not settled."""
        answers = self.answers()
        return [task for task in wanted(self.experiment, answers) if not answers.settled(task)]

    def answers(self) -> Records:
        """What has become of its runs."""
        return Records(self.runs(), self.experiment.file.attempts)

    def table(self, metrics: Collection[str] = (), scopes: Collection[str] = ("run",)) -> pl.DataFrame:
        """The tidy table: a row for each run and response; see :mod:`mqttlab.experiments.table`."""
        from mqttlab.experiments.table import table

        return table(self.path, self.design, self.runs(), metrics, scopes)

    def driven(self) -> contextlib.AbstractContextManager[None]:
        """Hold the directory.

        Raises:
            ExperimentError: somebody else does.
        """
        return held(self.path, ExperimentError(f"{self.path} is being run by another mqttlab; wait for it, or stop it"))

    def settle(self) -> list[RunRecord]:
        """Say of runs that were begun and not ended what became of them; under the lock.

        A recording that is complete counts, though nobody saw its end; anything else was interrupted, and is done
        again.
        """
        settled = []
        for record in self.runs():
            if record.state != "running":
                continue
            # Where recordings are moved to a URL, one that was not moved yet lies where others stay.
            url = record.directory if is_url(record.directory) else None
            directory = self.path / "runs" / url.rpartition("/")[2] if url else self.path / record.directory
            deadline = time.monotonic() + WAIT_S
            while directory.is_dir() and is_being_written(directory) and time.monotonic() < deadline:
                time.sleep(0.1)
            kept = self._found(directory, url)
            if kept is None:
                begun = (directory / "plan.json").is_file()
                event = self.journal.append(
                    "ended", run=record.run, verdict="incomplete", interrupted=True,
                    reason="what performed it has died" if begun else "it was never begun")
            else:
                event = self.end(record, kept)
            settled.append(journal.ended(record, event))
        return settled

    def _found(self, directory: Path, url: str | None) -> Kept | None:
        """What is kept of a recording that is complete: here, or in the place that it was moved to."""
        wanted = self.experiment.kept
        if url is None:
            return adopted(directory, wanted)
        if is_complete(url):
            shutil.rmtree(directory, ignore_errors=True)
            return adopted(fetch(url), wanted)
        kept = adopted(directory, wanted)
        if kept is not None:
            store(directory, url)
            shutil.rmtree(directory)
        return kept

    def end(self, record: RunRecord, kept: Kept, **more: Any) -> dict[str, Any]:
        """Write down how a run ended."""
        return self.journal.append(
            "ended", run=record.run, verdict=kept.verdict, valid=kept.valid, reason=kept.reason,
            responses=[value.kept for value in kept.responses], seconds=round(kept.seconds, 3), bytes=kept.bytes,
            worker=kept.worker, warnings=list(kept.warnings), **more)


def find_experiments(runs: Path) -> list[Path]:
    """Directories of experiments below a directory, by name."""
    return sorted(path.parent for path in runs.glob(f"*/{journal.NAME}"))


def _digest(experiment: Experiment) -> str:
    """Of everything that the plans are made of."""
    servers = experiment.plan(experiment.scenario_at(experiment.design.points[0]), seed=0, repetition=0)["servers"]
    text = json.dumps([experiment.text, experiment.scenario_text, experiment.replaced, __version__, SCHEMA, servers],
                      sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _derived(experiment: Experiment) -> dict[str, Any]:
    """What others want to know of the design without the scenario's language."""
    design = experiment.design
    return {
        "name": experiment.name, "question": experiment.file.question, "kind": design.kind,
        "digest": _digest(experiment), "seed": experiment.seed, "replaced": experiment.replaced,
        "factors": [{"name": factor.name, "places": list(factor.places), "unit": factor.unit, "kind": factor.kind,
                     "scale": factor.scale, "levels": [{"text": level.text, "value": level.value}
                                                       for level in factor.levels]} for factor in design.factors],
        "points": [{"number": point.number, "key": point.key,
                    "levels": {name: level.text for name, level in point.levels.items()}} for point in design.points],
        "reference": None if design.reference is None else {
            "number": design.reference.number, "key": design.reference.key,
            "levels": {name: level.text for name, level in design.reference.levels.items()}},
        "resolution": design.resolution, "aliases": list(design.aliases),
        "responses": [{"metric": each.metric, "scope": each.scope, "scope_name": each.scope_name}
                      for each in experiment.responses],
    }
