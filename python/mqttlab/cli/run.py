"""``mqttlab run``: a scenario's repetitions one after the other, each with its progress and its report."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from mqttlab.brokers import ADAPTERS
from mqttlab.cli.check import warn
from mqttlab.cli.problems import writable_directory
from mqttlab.cli.progress import RunProgress
from mqttlab.cli.space import need_room
from mqttlab.cli.status import status_of, worst
from mqttlab.runs import Job, LocalPool, Outcome, take_directory
from mqttlab.scenario import Scenario, ScenarioError, compile_plan, load

if TYPE_CHECKING:
    from mqttlab.recording import Recording

OUTPUT_SCHEMA = 1
"""Of what ``--json`` prints; docs/output.md describes it."""


def run_scenario(
    scenario: Path, overrides: dict[str, Any], runs: Path, *, html: bool, ignore_disk: bool, as_json: bool,
) -> int:
    """Run all repetitions of a scenario file, report each, and return the exit status.

    Raises:
        ScenarioError: the scenario cannot be run.
        UsageError: the disk has no room for what it would record, or nothing can be written to ``runs``.
    """
    loaded = load(scenario, overrides)
    writable_directory(runs, "--runs")
    need_servers(loaded)
    if not ignore_disk:
        need_room(loaded, runs)
    warn(loaded, scenario, overrides)
    statuses, documents = [], []
    for repetition in range(loaded.repetitions):
        directory = take_directory(loaded.name, repetition, loaded.repetitions, runs).absolute()
        try:
            outcome = _one_run(loaded, directory, repetition)
        finally:
            # A run that failed before it started leaves nothing.
            with contextlib.suppress(OSError):
                directory.rmdir()
        if as_json:
            documents.append(run_document(outcome, html))
        else:
            report_run(outcome, html)
        statuses.append(status_of(outcome))
        if outcome.verdict != "complete":
            break
    status = worst(statuses)
    if as_json:
        print_document(documents, status)
    return status


def _one_run(loaded: Scenario, directory: Path, repetition: int) -> Outcome:
    console = Console(stderr=True)
    title = loaded.name if loaded.repetitions == 1 else f"{loaded.name} {repetition + 1}/{loaded.repetitions}"
    with RunProgress(console, title) as progress:
        job = Job(compile_plan(loaded, repetition), directory)
        with LocalPool(lambda _, outcome: outcome, jobs=1, observe=lambda _, line: progress.observe(line)) as pool:
            pool.submit(job)
            [finished] = pool.results()
    return finished.result()


def report_run(outcome: Outcome, html: bool) -> None:
    """Print the tables of a run or an import, and write its page beside them."""
    from mqttlab.recording import Recording
    from mqttlab.report import terminal

    console = Console()
    if outcome.verdict == "failed":
        click.echo(f"mqttlab: the run failed: {outcome.reason}", err=True)
        return
    if not _has_tables(outcome):
        place = _relative(outcome.directory)
        console.print(f"ended early: {outcome.reason}", highlight=False, soft_wrap=True, markup=False)
        console.print(f"recording  {place} (incomplete; `mqttlab report {place}` makes its tables)", highlight=False,
                      soft_wrap=True)
        return
    recording = Recording.open(outcome.directory)
    terminal(recording, console)
    console.print(f"recording  {_relative(outcome.directory)}", highlight=False, soft_wrap=True, markup=False)
    if outcome.reason:
        console.print(f"ended early: {outcome.reason}", highlight=False, soft_wrap=True, markup=False)
    page = _page(recording, outcome) if html else None
    if page is not None:
        console.print(f"report     {_relative(page)}", highlight=False, soft_wrap=True, markup=False)


def run_document(outcome: Outcome, html: bool) -> dict[str, Any]:
    """What ``--json`` prints of a run or an import: ``report``'s object, or how it ended where there is none."""
    from mqttlab.recording import Recording
    from mqttlab.report.document import document

    if outcome.verdict == "failed" or not _has_tables(outcome):
        where = None if outcome.verdict == "failed" else str(outcome.directory)
        return {"recording": where, "status": outcome.verdict, "reasons": [outcome.reason or ""], "metrics": []}
    recording = Recording.open(outcome.directory)
    page = _page(recording, outcome) if html else None
    return document(recording) | {"page": None if page is None else str(page)}


def print_document(documents: list[dict[str, Any]], status: int) -> None:
    """Print the one object of ``run --json`` and ``import … --json``."""
    click.echo(json.dumps({"schema": OUTPUT_SCHEMA, "exit_status": status, "runs": documents}, indent=2))


def _has_tables(outcome: Outcome) -> bool:
    """Whether there was time for tables: who has asked for the end does not wait for them now."""
    return outcome.verdict != "incomplete" or (outcome.directory / "incomplete.json").exists()


def _page(recording: Recording, outcome: Outcome) -> Path | None:
    from mqttlab.report import write_html

    out = outcome.directory / "report.html"
    try:
        return write_html(recording, out)
    except OSError as error:
        # The recording is what matters, and it is there.
        click.echo(f"mqttlab: {out} cannot be written: {error.strerror}; write the report elsewhere with "
                   f"mqttlab report {outcome.directory} --html FILE", err=True)
        return None


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def need_servers(loaded: Scenario) -> None:
    """Refuse a live run whose servers are not installed.

    Raises:
        ScenarioError: one is not.
    """
    problems = []
    for where, server in loaded.all_servers:
        if loaded.backend == "sim" or server.kind == "external" or ADAPTERS[server.kind].found(server) is not None:
            continue
        words = where[0] if len(where) == 1 else f"{where[0]}[{where[1]}]"
        if server.program is not None:
            problems.append(f"`{words}.program.command` is {server.program.command[0]!r}, which is not installed")
        else:
            problems.append(f"`{words}.kind` is {server.kind!r}, but {server.kind} is not installed; run `make setup`, "
                            f"or install it (Debian: apt-get install {server.kind})")
    if problems:
        raise ScenarioError(problems)
