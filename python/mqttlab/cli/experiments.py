"""What ``mqttlab experiment`` does: the dry run, running with its progress, and what is said at the end."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mqttlab import digits, scratch, secrets
from mqttlab.cli.catalogs import catalog_for
from mqttlab.cli.progress import PHASES
from mqttlab.cli.space import size
from mqttlab.cli.status import FAILED, INCOMPLETE, NOT_VALID, worst
from mqttlab.cli.thresholds import baseline_directories, need_baselines, say_judged, statuses
from mqttlab.console import Console, print_table
from mqttlab.digits import plain
from mqttlab.errors import UsageError
from mqttlab.experiments import Experiment, ExperimentDirectory, Finish, RunRecord, drive
from mqttlab.experiments.baselines import baseline_values
from mqttlab.experiments.found import sentences
from mqttlab.experiments.junit import junit as junit_xml
from mqttlab.experiments.keep import Kept, keeping
from mqttlab.experiments.model import Repetitions
from mqttlab.experiments.points import Point
from mqttlab.experiments.responses import Response, chosen, unit_of
from mqttlab.experiments.schedule import Records, Task, most
from mqttlab.experiments.thresholds import Earlier, Judgement, Watch, judge, title
from mqttlab.files import from_here
from mqttlab.foreign import visible
from mqttlab.plurals import counted
from mqttlab.queue import Queue, QueueExecutor
from mqttlab.report.text import number
from mqttlab.runs import Job, LocalPool
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.needs import need_secrets, need_servers
from mqttlab.scenario.secret import without_written
from mqttlab.scenario.unusual import unusual
from mqttlab.scenario.wording import Source
from mqttlab.statistics import mean_interval, smallest_difference
from mqttlab.terminal import say

if TYPE_CHECKING:
    from mqttlab.runs.cluster import DaskCluster
    from mqttlab.runs.executor import Observe

ROWS_MAX = 40
POINTS_WARNED = 200
NUMBERS = re.compile(r"[\d.,]+")
ROMAN = {3: "III", 4: "IV", 5: "V", 6: "VI", 7: "VII"}
SETUP_S = 4.0
"""What a live run takes besides its phases: namespaces, broker, tables."""


def need_all_secrets(experiment: Experiment) -> None:
    """Refuse an experiment of which a point's secrets are not all known.

    Raises:
        ScenarioError: one is not.
    """
    # All points were read when the experiment was loaded; most have no secrets.
    if secrets.any_is_absent():
        for point in experiment.design.points:
            need_secrets(experiment.scenario_at(point), _source(experiment))


def warn(experiment: Experiment) -> None:
    """Say what is unusual in the scenarios of the first ``POINTS_WARNED`` points, each once, with its points."""
    points = experiment.design.points[:POINTS_WARNED]
    source = _source(experiment)
    found: dict[tuple[str, str], tuple[str, list[Point]]] = {}
    for point in points:
        for place, problem in unusual(experiment.scenario_at(point)):
            line = source.at(place) + problem
            # The numbers in it differ by point; the first point's are shown.
            found.setdefault((str(place), NUMBERS.sub("", line)), (line, []))[1].append(point)
    for line, where in found.values():
        more = counted(len(where) - 1, "more point") if len(where) > 1 else ""
        words = "" if len(where) == len(points) else f" (at {where[0]}{' and ' + more if more else ''})"
        say(f"mqttlab: warning: {line}{words}", err=True)


def _source(experiment: Experiment) -> Source:
    return Source(str(experiment.scenario_path), experiment.scenario_text, experiment.replaced)


def perform(
    experiment: Experiment, runs: Path, *, jobs: int | None, redo: bool, junit: Path | None, to: str | None = None,
    cluster: str | None = None, catalog: str | None = None, ignore_disk: bool = False,
    queue: str | None = "none",
) -> int:
    """Run an experiment, say what came of it, and return the exit status."""
    directory, finish = performed(experiment, runs, jobs=jobs, redo=redo, to=to, cluster=cluster, catalog=catalog,
                                  ignore_disk=ignore_disk, queue=queue)
    out = Console()
    _say(out, directory, finish)
    judged = _judged(directory, finish, catalog, runs)
    say_judged(out, judged)
    place = from_here(directory.path)
    out.print(f"experiment {place}", highlight=False, soft_wrap=True, markup=False)
    out.print(f"analysis   mqttlab report {place}", highlight=False, soft_wrap=True, markup=False)
    if junit is not None:
        records = Records(finish.records, experiment.file.attempts)
        lost = [records.of(task)[-1] for task in finish.given_up]
        seconds = math.fsum(record.seconds for record in finish.records)
        with scratch.unfinished(junit) as made:
            made.write_text(junit_xml(experiment.name, judged, lost, seconds), encoding="utf-8")
        out.print(f"junit      {from_here(junit)}", highlight=False, soft_wrap=True, markup=False)
    return status_of(finish, judged, Records(finish.records, experiment.file.attempts))


def performed(
    experiment: Experiment, runs: Path, *, jobs: int | None = None, redo: bool = False, to: str | None = None,
    cluster: str | None = None, catalog: str | None = None, ignore_disk: bool = False, queue: str | None = "none",
) -> tuple[ExperimentDirectory, Finish]:
    """Run an experiment to its end; say nothing but what is unusual in it, and its progress."""
    if cluster is None:
        need_servers(experiment.scenario_at(experiment.design.points[0]))
    need_all_secrets(experiment)
    warn(experiment)
    if not ignore_disk and to is None:
        _need_room(experiment, runs)
    need_baselines(experiment.thresholds, catalog, runs)
    directory = ExperimentDirectory.prepare(experiment, runs, redo=redo)
    console = Console(stderr=True)
    with directory.driven():
        directory.settle()
        finish = _driven(directory, console, jobs, to=to, cluster=cluster, queue=queue,
                         catalog=catalog_for(catalog, runs),
                         known=lambda record: _remember(directory, record, catalog, runs))
    if finish.complete:
        _catch_up(directory, finish, catalog, runs)
    return directory, finish


def _driven(
    directory: ExperimentDirectory, console: Console, jobs: int | None, pilots: Sequence[Task] | None = None, *,
    to: str | None = None, cluster: str | None = None, queue: str | None = "none", catalog: str | None = None,
    known: Callable[[RunRecord], None] = lambda record: None,
) -> Finish:
    experiment = directory.experiment
    watch = Watch(experiment.thresholds)
    if to is not None:
        to = f"{to.rstrip('/')}/{experiment.name}"

    def observe(job: Job, line: dict[str, Any]) -> None:
        watch.observe(job.identifier, line)
        screen.line(job.identifier, line)

    pool, width = _executor(experiment, jobs, observe, to, cluster, queue, catalog)
    # The queue's process takes recordings into the catalog, before the next live run begins.
    screen = _Screen(console, directory, pilots, width,
                     known if queue == "none" or cluster is not None else lambda record: None)
    with pool, screen.shown():
        watch.cancel = pool.cancel
        return drive(directory, pool, observer=screen, stop=lambda: pool.asked is not None, width=width,
                     aborted=watch.ended, tasks=None if pilots is None else lambda _: list(pilots), to=to,
                     alone=cluster is None)


def _executor(
    experiment: Experiment, jobs: int | None, observe: Observe, to: str | None, cluster: str | None,
    queue: str | None, catalog: str | None,
) -> tuple[LocalPool[Kept] | QueueExecutor[Kept] | DaskCluster[Kept], int]:
    """Who performs the runs, and how many at once."""
    if cluster is None:
        keep, width = keeping(experiment.kept, to), jobs or os.cpu_count() or 1
        if queue == "none":
            return LocalPool(keep, jobs=width, observe=observe, live_alone=True), width
        return QueueExecutor(Queue(None if queue is None else Path(queue)), keep, label=experiment.name,
                             observe=observe,
                             catalog=catalog), width
    from mqttlab.runs.cluster import DaskCluster

    assert to is not None
    workers = DaskCluster(cluster, keeping(experiment.kept), to=to, observe=observe)
    live = experiment.base.get("backend", "live") == "live"
    room = workers.room("live" if live else "cpu")
    if room == 0:
        raise UsageError(f"--cluster {cluster}: no worker has the resource {'live' if live else 'cpu'}, which "
                         f"{'live runs' if live else 'simulations'} need")
    return workers, min(room, jobs or room)


class _Screen:
    """The whole and what runs now, on a terminal; a line for each run that ended elsewhere."""

    def __init__(self, console: Console, directory: ExperimentDirectory, pilots: Sequence[Task] | None, width: int,
                 known: Callable[[RunRecord], None]) -> None:
        self._console = console
        self._known = known
        self._total = most(directory.experiment) if pilots is None else len(pilots)
        self._width = width
        self._began = time.monotonic()
        self._running: dict[str, tuple[RunRecord, str]] = {}
        self._phases: dict[str, dict[str, Any]] = {}
        done = [record for record in directory.runs() if record.state == "done"]
        # Pilots are no runs of the design, and its runs are no pilots; of those only so many are asked for.
        blocks = None if pilots is None else {task.block for task in pilots}
        self._before = sum((record.kind == "pilot") is (blocks is not None)
                           and (blocks is None or record.block in blocks) for record in done)
        self._seconds = [record.seconds for record in done]
        self._ended = self._wrong = 0
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """On the terminal meanwhile, where there is one."""
        if self._before:
            self._console.print(f"going on: {self._before} of {self._total} runs are done", highlight=False)
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, get_renderable=self._drawn, refresh_per_second=4, transient=True) as live:
            self._live = live
            yield

    def began(self, record: RunRecord, task: Task) -> None:
        """A run was handed to the executor."""
        self._running[record.run] = record, str(task.point)

    def line(self, run: str, line: dict[str, Any]) -> None:
        """One of an engine's progress lines."""
        if line.get("event") in ("phase", "tick"):
            self._phases[run] = {**self._phases.get(run, {}), **line}

    def ended(self, record: RunRecord) -> None:
        """A run has ended."""
        self._known(record)
        _, words = self._running.pop(record.run, (record, ""))
        self._phases.pop(record.run, None)
        if record.state == "done":
            self._ended += 1
            self._seconds.append(record.seconds)
        else:
            self._wrong += 1
        done = self._before + self._ended
        if self._live is None or record.state != "done":
            what = "" if record.kind == "run" else f"{record.kind}, "
            reason = f": {record.reason}" if record.reason and record.state != "done" else ""
            self._console.print(
                f"{done}/{self._total} {record.state} in {record.seconds:.1f} s: {what}{words}, block {record.block}"
                f"{reason}", highlight=False, markup=False, soft_wrap=True)

    def _left_s(self) -> float | None:
        """Seconds that are left, from those that ended."""
        left = self._total - self._before - self._ended
        if self._ended:
            return left * (time.monotonic() - self._began) / self._ended
        live = any(record.backend == "live" for record, _ in self._running.values())
        return left * statistics.fmean(self._seconds) / (1 if live else self._width) if self._seconds else None

    def _drawn(self) -> RenderableType:
        done, left = self._before + self._ended, self._left_s()
        head = Table.grid(padding=(0, 1))
        wrong = f", [yellow]{self._wrong} without result[/]" if self._wrong else ""
        so_far = duration(time.monotonic() - self._began)
        head.add_row(f"[bold]{done}/{self._total} runs[/]{wrong}",
                     ProgressBar(total=self._total, completed=done, width=30),
                     "" if left is None else f"{duration(left)} left", f"{so_far} so far")
        rows = Table.grid(padding=(0, 1))
        for record, words in list(self._running.values()):
            rows.add_row(" ", escape(words), f"block {record.block}", *self._now(record.run))
        return Group(head, rows)

    def _now(self, run: str) -> tuple[str, str]:
        phase = self._phases.get(run)
        if phase is None:
            return "waiting", ""
        words = PHASES.get(phase.get("phase", ""), "")
        figures = f"{phase['delivered']} delivered" if "delivered" in phase else ""
        if phase.get("latency_p50_ns") is not None:
            figures += f", p50 {digits.duration(phase['latency_p50_ns'])}"
        return words, figures


def dry(experiment: Experiment, runs: Path, pilot: int | None, jobs: int | None) -> None:
    """Print what would run; run pilots first, where they are asked for."""
    console = Console()
    records: list[RunRecord] = []
    path = runs / experiment.name
    if pilot is not None:
        records = _piloted(experiment, runs, pilot, jobs)
    elif path.is_dir():
        records = ExperimentDirectory.open(path).runs()
    done = [record for record in records if record.state == "done"]
    _say_design(console, experiment)
    lines = [*_lines(experiment), *_costs(experiment, done, jobs or os.cpu_count() or 1)]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    _say_detectable(console, experiment, done)
    pending = None if not done else sum(1 for _ in ExperimentDirectory(path, experiment).pending())
    if pending is not None and pilot is None:
        console.print(f"  of these {pending} are left", highlight=False)


def _piloted(experiment: Experiment, runs: Path, pilot: int, jobs: int | None) -> list[RunRecord]:
    at = experiment.design.reference or experiment.design.points[0]
    directory = ExperimentDirectory.prepare(experiment, runs)
    tasks = [Task(kind="pilot", point=at, block=number) for number in range(pilot)]
    with directory.driven():
        directory.settle()
        return _driven(directory, Console(stderr=True), jobs, tasks).records


def _say_design(console: Console, experiment: Experiment) -> None:
    design, file = experiment.design, experiment.file
    console.print(f"[bold]{escape(file.name)}[/]: {escape(file.question or 'no question is stated')}", highlight=False)
    if not design.factors:
        return
    rows: list[list[str | Text]] = []
    reference = design.reference.key if design.reference is not None else None
    for point in design.points[:ROWS_MAX]:
        style = "bold" if point.key == reference else ""
        texts = ["from " + point.levels[factor.name].text
                 if file.search is not None and file.search.factor == factor.name else point.levels[factor.name].text
                 for factor in design.factors]
        rows.append([str(point.number), *(Text(visible(text), style=style) for text in texts)])
    names = [factor.name for factor in design.factors]
    print_table(console, "Design", ["point", *names], rows, left=range(1, len(names) + 1))
    if len(design.points) > ROWS_MAX:
        console.print(f"  and {len(design.points) - ROWS_MAX} more points; design.json has all of them once it runs")
    if reference is not None and reference not in {point.key for point in design.points}:
        console.print(f"  reference (not a point of the design): {escape(str(design.reference))}", highlight=False)


def _lines(experiment: Experiment) -> list[str]:
    """The design in words."""
    file, design = experiment.file, experiment.design
    lines = [f"  design {design.kind}: {len(design.points)} points"]
    if design.resolution is not None:
        lines[0] += f", resolution {ROMAN.get(design.resolution, design.resolution)}"
        lines += [f"    confounded: {words}" for words in design.aliases] or [
            "    no main effect or two-way interaction is confounded with another"]
    rule = file.repetitions
    if isinstance(rule, Repetitions):
        share = 100 * rule.until.half_width[0] / rule.until.half_width[1]
        lines.append(f"  repetitions: {rule.min} to {rule.max}, until the 95 % interval of {rule.until.metric} is ± "
                     f"{plain(share)} % of its mean, looked at after every block")
    elif file.search is not None:
        holds, of = file.search.counts
        side = "below" if file.search.criterion.below is not None else "above"
        lines.append(f"  search: the largest {file.search.factor} at which {file.search.criterion.metric} is {side} "
                     f"{file.search.criterion.below or file.search.criterion.above} in {holds} of {of} runs")
    else:
        lines.append(f"  repetitions: {rule}")
    lines.append(f"  order: {'random within blocks' if file.order == 'random-blocks' else 'as listed'}; seeds: "
                 f"{'common to all points of a block' if file.seeds == 'common' else 'independent'} (from "
                 f"{experiment.seed})")
    if file.control:
        lines.append(f"  control: the reference again after every {file.control} runs")
    lines.append(f"  responses: {', '.join(map(str, experiment.responses))}")
    lines += [f"  {words}" for words in _replaced(experiment)]
    lines += [f"  threshold: {title(threshold)}" for threshold in experiment.thresholds]
    return lines


def _replaced(experiment: Experiment) -> list[str]:
    """What the experiment's file and the command line set at every point, in a line, if anything."""
    values = {**without_written(experiment.file.set), **experiment.replaced}
    told = ", ".join(f"{place} = {json.dumps(value, ensure_ascii=False)}" for place, value in values.items()
                     if place != "repetitions")
    return [f"set at every point: {told}"] if told else []


def _costs(experiment: Experiment, done: Sequence[RunRecord], width: int) -> list[str]:
    """Runs, time and disk: from runs that there are, from the phases of live ones, and from the estimate."""
    total = most(experiment)
    at_most = "at most " if isinstance(experiment.file.repetitions, Repetitions) or experiment.file.search else ""
    scenarios = [experiment.scenario_at(point) for point in experiment.design.points[:200]]
    live = [scenario for scenario in scenarios if scenario.backend == "live"]
    seconds = statistics.fmean(record.seconds for record in done) if done else None
    if seconds is None and live:
        phases = [scenario.phases for scenario in live]
        seconds = statistics.fmean((each.warm_up + each.duration + each.cool_down) / 1e9 for each in phases) + SETUP_S
    disk = statistics.fmean(record.bytes for record in done) if done else statistics.fmean(
        estimate(scenario).recording_bytes for scenario in scenarios)
    kept = "" if experiment.file.keep_recordings else " at a time (recordings are not kept)"
    lines = [f"  runs: {at_most}{total}, {len(live) * 100 // len(scenarios)} % of them live"]
    if seconds is None:
        lines.append("  time: not known before a simulation has run; --pilot 3 runs the reference 3 times")
    else:
        at_once = 1 if live else width
        whence = f"from {len(done)} runs" if done else "at most, from the phases"
        lines.append(f"  time: {at_most}{duration(total * seconds / at_once)} ({seconds:.1f} s a run, {at_once} at "
                     f"once; {whence})")
    shown = size(disk if kept else total * disk)
    whence = f"from {len(done)} runs" if done else "estimated"
    lines.append(f"  disk: about {at_most}{shown}{kept} ({whence})")
    return lines


def _say_detectable(console: Console, experiment: Experiment, done: Sequence[RunRecord]) -> None:
    """The smallest difference that the repetitions can show, from the spread of runs of one point."""
    by_point: dict[str, list[RunRecord]] = {}
    for record in done:
        by_point.setdefault(record.point_key, []).append(record)
    largest = max(by_point.values(), key=len, default=[])
    n = experiment.file.repetitions
    n = n.min if isinstance(n, Repetitions) else n
    if len(largest) < 2:
        console.print("  smallest difference that can be shown: needs 2 or more runs of a point; --pilot 3",
                      highlight=False, soft_wrap=True)
        return
    if n < 2:
        return
    console.print(f"  smallest difference between two points that {n} runs each show with 80 % power at 5 % (from "
                  f"{len(largest)} runs of one point; unpaired):", highlight=False)
    for response in experiment.responses:
        values = [value for record in largest if (value := chosen(record.responses, response)) is not None]
        if len(values) < 2:
            continue
        spread = statistics.stdev(values)
        mean = statistics.fmean(values)
        # Sums of the same numbers differ by rounding.
        if spread <= 1e-9 * abs(mean):
            console.print(f"    {response}: no spread; {plain(mean, 4)} {unit_of(response.metric)} in all of them",
                          highlight=False)
            continue
        least = smallest_difference(spread, n)
        share = f" ({plain(100 * least / abs(mean), 2)} % of {plain(mean, 4)})" if mean else ""
        console.print(f"    {response}: {plain(least, 3)} {unit_of(response.metric)}{share}", highlight=False)


def _say(console: Console, directory: ExperimentDirectory, finish: Finish) -> None:
    """Means with intervals by point, and what has no result."""
    experiment = directory.experiment
    of_run = [response for response in experiment.responses if response.scope == "run" or response.scope_name]
    heads = [f"{response} ({unit})" if (unit := unit_of(response.metric)) else str(response) for response in of_run]
    rows: list[list[str]] = []
    points: dict[str, list[RunRecord]] = {}
    for record in finish.records:
        if record.state == "done" and record.kind == "run":
            points.setdefault(record.point_key, []).append(record)
    order = sorted(points.values(), key=lambda records: (records[0].point, records[0].order_no))
    for records in order[:ROWS_MAX]:
        words = ", ".join(f"{name} {text}" for name, text in records[0].levels.items()) or experiment.name
        cells = [_cell([value for record in records if (value := chosen(record.responses, response)) is not None])
                 for response in of_run]
        rows.append([words, str(len(records)), *cells])
    if points:
        print_table(console, "Means", ["point", "runs", *heads], rows)
        console.print("mean ± half width of the 95 % interval over runs", highlight=False)
        for words in _replaced(experiment):
            console.print(words, highlight=False, markup=False, soft_wrap=True)
    if len(order) > ROWS_MAX:
        console.print(f"and {len(order) - ROWS_MAX} more points", highlight=False)
    answers = Records(finish.records, experiment.file.attempts)
    for said in sentences(experiment, answers):
        console.print(said, highlight=False, markup=False)
    for task in finish.given_up:
        last = answers.of(task)[-1]
        console.print(f"without result: {task.point}, block {task.block}: {last.state} "
                      f"{counted(len(answers.of(task)), 'time')}, last: {last.reason}", highlight=False, markup=False,
                      soft_wrap=True)
    for task in finish.left_out:
        console.print(f"not begun: {task.point}, block {task.block}: a threshold has ended a run of this point",
                      highlight=False, markup=False, soft_wrap=True)
    if finish.pending:
        console.print(f"{len(finish.pending)} runs are left; the same command goes on", highlight=False)


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    mean = statistics.fmean(values)
    if len(values) < 2:
        return number(mean)
    interval = mean_interval(list(values))
    return f"{number(mean)} ± {number((interval.high - interval.low) / 2, 2)}"


def _remember(directory: ExperimentDirectory, record: RunRecord, catalog: str | None, runs: Path) -> None:
    """Take a run into the catalog, if its recording is here and stays."""
    place = directory.path / record.directory
    if place.is_dir() and record.state in ("done", "invalid", "aborted"):
        from mqttlab.cli.catalogs import remember

        remember(place, catalog, runs)


def _catch_up(directory: ExperimentDirectory, finish: Finish, catalog: str | None, runs: Path) -> None:
    """Take in what was not taken in when it ended: runs of before, and those that were cut short."""
    from mqttlab.cli.catalogs import known_below, remember

    known = known_below(directory.path, catalog, runs)
    for record in finish.records:
        place = directory.path / record.directory
        if (place / "plan.json").is_file() and place.resolve() not in known:
            remember(place, catalog, runs)


def _judged(
    directory: ExperimentDirectory, finish: Finish, catalog: str | None, runs: Path,
) -> list[Judgement]:
    experiment = directory.experiment
    points = {task.point.key: task.point for task in finish.given_up + finish.left_out + finish.pending}
    points |= {point.key: point for point in experiment.design.points}

    def baselines(name: str, response: Response) -> list[Earlier]:
        return baseline_values(name, response, lambda name: baseline_directories(name, catalog, runs))

    return judge(experiment, points.values() if experiment.file.search is None else experiment.design.points,
                 finish.records, baselines)


def status_of(finish: Finish, judged: Sequence[Judgement], records: Records) -> int:
    """The exit status of an experiment."""
    states = {"failed": FAILED, "incomplete": INCOMPLETE, "invalid": NOT_VALID}
    found = [states[records.of(task)[-1].state] for task in finish.given_up] + statuses(judged)
    return worst([*found, INCOMPLETE] if finish.pending else found)


def _need_room(experiment: Experiment, runs: Path) -> None:
    loads = [estimate(experiment.scenario_at(point)).recording_bytes for point in experiment.design.points[:200]]
    wanted = statistics.fmean(loads) * (most(experiment) if experiment.file.keep_recordings else os.cpu_count() or 1)
    there = next(place for place in (runs.absolute(), *runs.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    if wanted > free:
        raise UsageError(
            f"the recordings would take about {size(wanted)} in {most(experiment)} runs, and the disk of {runs} has "
            f"{size(free)} free; set keep_recordings = false, or recording.detail = \"messages\", or choose another "
            "disk with --runs; --ignore-disk starts it all the same")


def duration(seconds: float) -> str:
    """A length of time as people read it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
