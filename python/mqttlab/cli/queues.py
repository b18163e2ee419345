"""What ``mqttlab queue`` prints, and how runs are handed over to it."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mqttlab.catalog.place import url_of
from mqttlab.cli.catalogs import catalog_for
from mqttlab.cli.status import DONE, FAILED, INCOMPLETE, NOT_VALID, worst
from mqttlab.errors import UsageError
from mqttlab.files import from_here
from mqttlab.queue import Queue, QueuedJob
from mqttlab.queue.client import OPEN, Driver
from mqttlab.runs import Job, Outcome, taken_directory
from mqttlab.terminal import say

COLUMNS = ("run", "of", "backend", "state", "since (UTC)", "directory")
LOOK_S = 0.1
LEFT = "the queue was killed"


def hand_over(
    scenario: Path, overrides: dict[str, Any], runs: Path, *, catalog: str | None, queue: Path | None, html: bool,
    ignore_disk: bool,
) -> None:
    """Hand all repetitions of a scenario file over to the queue.

    Raises:
        ScenarioError: the scenario cannot be run.
        UsageError: the disk has no room for what it would record, or nothing can be written to ``runs``.
    """
    from mqttlab.cli.run import prepared
    from mqttlab.scenario import compile_plan

    loaded, origin = prepared(scenario, overrides, runs, ignore_disk=ignore_disk)
    where = catalog_for(catalog, runs)
    waiting = Queue(queue)
    for repetition in range(loaded.repetitions):
        with taken_directory(loaded.name, repetition, loaded.repetitions, runs) as (directory, promise):
            job = Job(compile_plan(loaded, repetition), directory, origin=origin)
            waiting.submit(job, label=loaded.name, catalog=where, keep=functools.partial(keep_page, html))
            promise.of(None)
        say(f"{job.identifier}  {from_here(directory)}")
    say("mqttlab: in the queue; mqttlab queue list shows it", err=True)


def hand_over_experiment(
    name: str, file: Path, settings: Sequence[str], backend: str | None, runs: Path, *, jobs: int | None, redo: bool,
    junit: Path | None, to: str | None, catalog: str | None, queue: str | None, ignore_disk: bool,
) -> None:
    """Hand an experiment over: the queue runs the same command as its child, again where it was killed.

    Raises:
        QueueError: an experiment of this name is in the queue.
        UsageError: there is no queue to hand it over to.
    """
    if queue == "none":
        raise UsageError("--detach hands over to the queue; leave --queue none out")
    waiting = Queue(None if queue is None else Path(queue))
    words = ["experiment", str(file.absolute()), "--runs", str(runs.absolute()), "--queue", str(waiting.directory)]
    for setting in settings:
        words += ["--set", setting]
    place = None if catalog is None else url_of(catalog)
    for option, value in (("--backend", backend), ("--jobs", jobs), ("--catalog", place), ("--to", to),
                          ("--junit", None if junit is None else junit.absolute())):
        words += [] if value is None else [option, str(value)]
    words += [option for option, given in (("--redo", redo), ("--ignore-disk", ignore_disk)) if given]
    identifier = waiting.add_driver(words, label=name, directory=Path.cwd())
    say(f"{identifier}  {name}")
    say(f"mqttlab: in the queue; mqttlab queue list shows it, and what it says goes to "
        f"{waiting.directory / 'logs' / identifier}.log", err=True)


def keep_page(html: bool, _job: Job, outcome: Outcome) -> bool | None:
    """What is kept of a run that was handed over: whether it is valid, and its page beside it."""
    if not (outcome.directory / "plan.json").is_file():
        return None
    from mqttlab.cli.status import is_valid
    from mqttlab.recording import Recording

    recording = Recording.open(outcome.directory)
    if html:
        from mqttlab.report import write_html

        write_html(recording, outcome.directory / "report.html")
    return is_valid(recording)


def show_queue(place: Path | None, everything: bool) -> None:
    """Print the queue, a line for each run and each command that was handed over."""
    queue = Queue(place)
    is_alive = queue.is_running
    jobs, drivers = queue.jobs(all_=everything), queue.drivers(all_=everything)
    if any(job.state in OPEN for job in jobs) or any(driver.state in OPEN for driver in drivers):
        queue.start()
    if not jobs and not drivers:
        say("nothing is in the queue; add to it with: mqttlab run scenarios/demo.toml --detach")
        return
    rows = [_driver(driver, is_alive) for driver in drivers] + [_row(job, is_alive) for job in jobs]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    for number, row in enumerate([COLUMNS, *rows]):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        say(text, bold=number == 0)


def wait_for(place: Path | None, names: tuple[str, ...]) -> int:
    """Wait until these, or all that are in the queue now, have ended; returns the exit status."""
    queue = Queue(place)
    wanted = set(queue.named(names)) if names else None
    ours = {job.identifier for job in queue.jobs() if wanted is None or wanted & {job.identifier, job.label}}
    drivers = {one.identifier for one in queue.drivers() if wanted is None or wanted & {one.identifier, one.label}}
    while True:
        queue.start()
        jobs = [job for job in queue.jobs(all_=True) if job.identifier in ours]
        commands = [one for one in queue.drivers(all_=True) if one.identifier in drivers]
        if not any(job.state in (*OPEN, "held") for job in jobs) and not any(one.state in OPEN for one in commands):
            statuses = [_status(job) for job in jobs] + [one.status or 0 for one in commands]
            return worst(status if status in range(7) else FAILED for status in statuses)
        time.sleep(LOOK_S)


def _status(job: QueuedJob) -> int:
    if job.state == "cancelled" or job.verdict == "incomplete":
        return INCOMPLETE
    if job.verdict != "complete":
        return FAILED
    from mqttlab.cli.status import is_valid
    from mqttlab.recording import Recording

    return DONE if is_valid(Recording.open(job.directory)) else NOT_VALID


def _row(job: QueuedJob, is_alive: bool) -> tuple[str, ...]:
    """A line of a job; ``is_alive`` says whether the queue's process was there as it was read."""
    state = job.state if job.verdict is None else f"{job.state}, {job.verdict}" if job.state != "done" else job.verdict
    if job.state == "running" and not is_alive:
        state = LEFT
    elif job.state == "running" and (done := _done(job)):
        state = f"running {done}"
    since = job.ended_at or job.started_at or job.submitted_at
    return job.run[-8:], job.label, job.backend, state, since[:19].replace("T", " "), str(from_here(job.directory))


def _done(job: QueuedJob) -> str:
    """How far a run is: the phase that its engine said last, and when of the run that was."""
    from mqttlab.cli.progress import PHASES

    phase, at = job.progress.get("phase"), job.progress.get("at_ns")
    words = PHASES.get(str(phase), "") if phase else ""
    return words or (f"{at / 1e9:.0f} s" if isinstance(at, int) else "")


def _driver(driver: Driver, is_alive: bool) -> tuple[str, ...]:
    state = driver.state if driver.status is None else f"done ({driver.status})"
    state = LEFT if state == "running" and not is_alive else state
    return driver.identifier[-8:], driver.label, driver.command[0], state, "", str(driver.log)
