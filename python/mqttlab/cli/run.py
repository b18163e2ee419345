"""``mqttlab run``: a scenario's repetitions one after the other, each with its progress and its report."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqttlab import scratch
from mqttlab.cli.catalogs import remember
from mqttlab.cli.check import warn
from mqttlab.cli.openmetrics import Watched, served
from mqttlab.cli.outcome import print_document, report_run, run_document
from mqttlab.cli.problems import writable_directory
from mqttlab.cli.progress import RunProgress
from mqttlab.cli.space import need_room
from mqttlab.cli.sql import followed, need_database
from mqttlab.cli.status import DONE, status_of, worst
from mqttlab.console import Console
from mqttlab.errors import UsageError
from mqttlab.files import from_here
from mqttlab.runs import Job, LocalPool, Outcome, taken_directory
from mqttlab.scenario import Scenario, compile_plan
from mqttlab.scenario.load import load
from mqttlab.scenario.needs import need_secrets, need_servers
from mqttlab.scenario.secret import without_secrets, without_written
from mqttlab.scenario.secret_places import secrets_of
from mqttlab.scenario.wording import Source, read_text
from mqttlab.terminal import say

if TYPE_CHECKING:
    from mqttlab.cli.thresholds import Repetitions

def run_scenario(
    scenario: Path, overrides: dict[str, Any], runs: Path, *, html: bool, ignore_disk: bool, as_json: bool,
    junit: Path | None = None, catalog: str | None = None, sql: str | None = None, full: bool = False,
    metrics: str | None = None,
) -> int:
    """Run all repetitions of a scenario file, report each, judge its thresholds, and return the exit status.

    Raises:
        ScenarioError: the scenario cannot be run.
        UsageError: the disk has no room for what it would record, nothing can be written to ``runs``, or nothing can
            listen at ``metrics``.
    """
    loaded, origin = prepared(scenario, overrides, runs, ignore_disk=ignore_disk, sql=sql)
    repetitions = thresholds_of(loaded, scenario, overrides, catalog, runs)
    with served(metrics) as (watched, url):
        if watched is not None:
            say(f"metrics    {url}", err=True)
        statuses, documents = run_all(loaded, origin, runs, html=html, as_json=as_json, repetitions=repetitions,
                                      catalog=catalog, sql=sql, full=full, watched=watched)
    return _concluded(repetitions, statuses, documents if as_json else None, junit)


def run_all(
    loaded: Scenario, origin: dict[str, Any], runs: Path, *, html: bool, as_json: bool,
    repetitions: Repetitions | None = None, catalog: str | None = None, sql: str | None = None, full: bool = False,
    watched: Watched | None = None,
) -> tuple[list[int], list[dict[str, Any]]]:
    """Run all repetitions and report each; returns their exit statuses, and what ``--json`` prints of them."""
    statuses, documents = list[int](), list[dict[str, Any]]()
    for repetition in range(loaded.repetitions):
        with (taken_directory(loaded.name, repetition, loaded.repetitions, runs) as (directory, _),
              followed(sql, directory)):
            job, outcome = _one_run(loaded, directory, repetition, repetitions, origin, watched)
        if loaded.backend == "sim" and loaded.recording.pcapng and outcome.verdict == "complete":
            _capture(outcome)
        if as_json:
            document, recording = run_document(outcome, html)
            documents.append(document)
        else:
            recording = report_run(outcome, html, full=full)
        if recording is not None:
            remember(outcome.directory, catalog, runs, recording=recording)
        ended_by_threshold = repetitions is not None and repetitions.add(job, outcome) is not None
        # A run that a threshold has ended is no accident: the threshold is broken.
        statuses.append(DONE if ended_by_threshold else status_of(outcome))
        if outcome.verdict != "complete":
            break
    return statuses, documents


def prepared(
    scenario: Path, overrides: dict[str, Any], runs: Path, *, ignore_disk: bool, sql: str | None = None,
) -> tuple[Scenario, dict[str, Any]]:
    """A scenario that can be run here, after its warnings were printed, and what its runs keep of where they come from.

    Raises:
        ScenarioError: the scenario cannot be run.
        UsageError: the disk has no room for what it would record, nothing can be written to ``runs``, or ``sql`` is no
            database.
    """
    loaded = load(scenario, overrides)
    writable_directory(runs, "--runs")
    need_database(sql)
    if sql and loaded.recording.detail == "summary":
        raise UsageError("--sql writes every message, but `recording.detail` is \"summary\", which keeps a sample of "
                         "them; use \"messages\", or leave --sql out")
    need_servers(loaded)
    text = read_text(scenario)
    need_secrets(loaded, Source(str(scenario), text, overrides))
    if not ignore_disk:
        need_room(loaded, runs)
    warn(loaded, scenario, overrides)
    if any(secrets_of(loaded)) and runs.is_dir() and runs.stat().st_mode & 0o044:
        say(f"mqttlab: warning: others can read {from_here(runs)}; recordings have no secrets of the scenario, "
            f"but what programs and payloads say: chmod 700 {from_here(runs)}, unless it is shared on purpose",
            err=True)
    return loaded, {"scenario": {
        "toml": without_secrets(text), "settings": without_written(overrides)}}


def thresholds_of(
    loaded: Scenario, path: Path, replaced: Collection[str], catalog: str | None, runs: Path,
) -> Repetitions | None:
    """What judges the thresholds of a scenario that has some, after checking them.

    Raises:
        ScenarioError: a threshold names what there is not.
    """
    if not loaded.thresholds:
        return None
    from mqttlab.cli.thresholds import Repetitions, check_thresholds, need_baselines

    check_thresholds(loaded, path, replaced)
    need_baselines(loaded.thresholds, catalog, runs)
    return Repetitions(loaded, catalog, runs)


def _concluded(
    repetitions: Repetitions | None, statuses: list[int], documents: list[dict[str, Any]] | None, junit: Path | None,
) -> int:
    """Judge, print, and return the exit status."""
    if repetitions is None:
        status = worst(statuses)
        if documents is not None:
            print_document(documents, status)
        return status
    from mqttlab.cli import thresholds

    judged = repetitions.judged()
    status = worst([*statuses, *thresholds.statuses(judged)])
    if documents is None:
        thresholds.say_judged(Console(), judged)
    else:
        print_document(documents, status, thresholds.documents(judged))
    if junit is not None:
        with scratch.unfinished(junit) as made:
            made.write_text(repetitions.junit(judged), encoding="utf-8")
        say(f"junit      {from_here(junit)}", err=documents is not None)
    return status


def _one_run(
    loaded: Scenario, directory: Path, repetition: int, repetitions: Repetitions | None,
    origin: dict[str, Any], watched: Watched | None,
) -> tuple[Job, Outcome]:
    console = Console(stderr=True)
    title = loaded.name if loaded.repetitions == 1 else f"{loaded.name} {repetition + 1}/{loaded.repetitions}"
    with RunProgress(console, title) as progress:
        job = Job(compile_plan(loaded, repetition), directory, origin=origin)
        watch: Callable[[Job, dict[str, Any]], None] | None = None
        if watched is not None:
            watched.begin(loaded.name, loaded.backend, directory.name, job.plan)

        def observe(job: Job, line: dict[str, Any]) -> None:
            progress.observe(line)
            if watched is not None:
                watched.observe(line)
            if watch is not None:
                watch(job, line)

        with LocalPool(lambda _, outcome: outcome, jobs=1, observe=observe, live_alone=True,
                       waiting=progress.say) as pool:
            if repetitions is not None:
                watch = repetitions.watching(pool.cancel)
            pool.submit(job)
            [finished] = pool.results()
    return job, finished.result()


def _capture(outcome: Outcome) -> None:
    """Write what a capture of all links of a simulation would be."""
    from mqttlab import export
    from mqttlab.recording import Recording

    try:
        export.pcapng(Recording.open(outcome.directory), outcome.directory / "run.pcapng")
    except export.ExportError as error:
        say(f"mqttlab: warning: run.pcapng is not written: {error}", err=True)
    except OSError as error:
        # The recording is what matters, and it is there.
        say(f"mqttlab: warning: run.pcapng is not written: {error.strerror}; write it elsewhere with mqttlab export "
            f"{from_here(outcome.directory)} --pcapng FILE", err=True)
