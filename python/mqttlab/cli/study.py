"""``mqttlab study``: a published experiment, rerun."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from mqttlab.console import Console, print_table
from mqttlab.errors import UsageError
from mqttlab.plurals import counted
from mqttlab.studies import Comparison, LiveRuns, Study, perform_live, simulate
from mqttlab.studies.agreement import Disagreement, Measured, compared, far, with_parts
from mqttlab.studies.claims import Ran, claims_of, decides, of_short_pass
from mqttlab.studies.document import FIT_COLUMNS, Rerun, columns, fit_rows, heading, rows
from mqttlab.studies.means import mean_charts
from mqttlab.studies.study import Case, LiveCells, live_scenario
from mqttlab.studies.table import Cell, beside_simulated, pooled

VERDICTS = {"held": "[green]held[/]", "refuted": "[bold yellow]refuted[/]",
            "not reproduced": "[yellow]not reproduced[/]", "undecided": "undecided",
            "not judged yet": "[dim]not judged yet[/]"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What of a study is to be rerun, and how."""

    quick: bool = False
    full: bool = False
    """Whether no scenario is cut short."""
    tables: Sequence[str] = ()
    """Only these tables, such as ``5.4``."""
    figures: Sequence[str] = ()
    """Only what is behind these figures, such as ``5.11``."""
    claims: Sequence[str] = ()
    """Only these claims, by their identifiers. Without tables and claims all of both."""
    backend: Literal["sim", "live"] = "sim"
    jobs: int | None = None
    """Simulations at once, or live runs; left out, one for each processor, and what ``live.toml`` says."""
    repeat: bool = True
    """Whether live runs that are there, and that the machine held up, are run again."""
    runs: Path = Path("runs")
    """Where live runs are kept: in ``study-NAME`` there, and with ``quick`` in ``study-NAME-quick``."""
    keep: Path | None = None
    """Where what is measured of simulations is kept; what is there is not simulated again."""

    @property
    def everything(self) -> bool:
        """Whether nothing was left out."""
        return not self.tables and not self.figures and not self.claims

    def shown(self, study: Study) -> Sequence[str]:
        """The tables that are asked for, by whichever of their names.

        Raises:
            UsageError: the study has none of this name.
        """
        found = [table for name in self.tables for table in study.tables_of("table", name)]
        return [*found, *(table for name in self.figures for table in study.tables_of("figure", name))]

    def effort(self, study: Study) -> Any:
        """How long the study's scenarios run, in its own terms."""
        return study.quick if self.quick else study.full if self.full else study.thorough

    def live_runs(self, study: Study) -> Path:
        """Where this study's live runs are kept."""
        return self.runs / f"study-{study.name}{'-quick' if self.quick else ''}"


def list_studies(studies: Iterable[Study], console: Console) -> None:
    """Print the studies, a row each."""
    rows = []
    for study in studies:
        scenarios = {case.name for case in study.cases(study.published, ())}
        live = study.live
        rows.append((study.name, str(len(scenarios)), f"{len(live.cases)} × {live.repetitions}",
                     str(len(claims_of(study.published))), study.title))
    print_table(console, "Studies", ("name", "scenarios", "live", "claims", "published as"), rows, left=(0, 4))


def run_study(study: Study, console: Console, asked: Asked) -> Rerun:
    """Rerun a study, and print its tables and claims."""
    if asked.full and study.full is None:
        raise UsageError(f"--full: nothing of {study.name} is cut short; leave it out")
    cases = _cases(study, asked)
    began = time.monotonic()
    ran = _perform(study, cases, asked, console)
    every = _repetitions(ran.results)
    took_s = time.monotonic() - began
    directory = study.published
    every_cell = pooled([list(study.compare(directory, results)) for results in every])
    apart: list[Disagreement] = []
    if asked.backend == "live":
        simulated = _simulate_too(study, cases, asked)
        every_cell = beside_simulated(every_cell, pooled(
            [list(study.compare(directory, each)) for each in _repetitions(simulated)]))
        apart = list(compared(ran.results, simulated))
    tables = asked.shown(study)
    cells = [cell for cell in every_cell
             if asked.everything or cell.table in tables or (asked.claims and not tables)]
    judged = [claim for claim in _agreed([study.claims(directory, results) for results in every])
              if asked.everything or claim.claim in asked.claims]
    if asked.quick:
        judged = of_short_pass(directory, judged, _shortened(study, cases, asked))
    print_results(judged, cells, console)
    runs = len(cases) * len(every)
    words = "simulations" if asked.backend == "sim" else "live runs"
    console.print(f"{runs} {words} in {took_s:.1f} s", highlight=False)
    for name, doubt in ran.doubts.items():
        console.print(f"[yellow]{name} is not valid[/]: {escape(doubt)}", highlight=False)
    if apart:
        console.print(f"mean latencies more than 10 % off their simulations: {len(far(apart))} of {len(apart)}",
                      highlight=False)
    # A short live pass has too few cells for curves.
    few = asked.backend == "live" and asked.quick
    charts = [] if few else mean_charts([study.charts(directory, results) for results in every])
    return Rerun(study=study, how=_how(study, asked, runs, words), cells=cells, judged=judged, charts=charts,
                 doubts=ran.doubts, apart=apart,
                 # Effects are differences between simulations.
                 readings=study.readings(directory, every[0]) if asked.backend == "sim" else ())


def _shortened(study: Study, cases: Sequence[Case], asked: Asked) -> list[str]:
    """The cases that a pass with --quick runs otherwise than the whole pass; live, all of them."""
    return [case.name for case in cases
            if asked.backend == "live" or case.scenario(study.quick) != case.scenario(study.thorough)]


def _how(study: Study, asked: Asked, runs: int, words: str) -> str:
    options = [*(["--quick"] if asked.quick else []), *(["--full"] if asked.full else []),
               *(["--backend live"] if asked.backend == "live" else []), *([] if asked.repeat else ["--no-repeat"]),
               *(f"--table {table}" for table in asked.tables), *(f"--figure {figure}" for figure in asked.figures),
               *(f"--claim {claim}" for claim in asked.claims)]
    return f"`{' '.join(['mqttlab study', study.name, *options])}`: {runs} {words}"


def _cases(study: Study, asked: Asked) -> list[Case]:
    """The cases that are to be run, each once."""
    directory = study.published
    everything = {case.name: case for case in study.cases(directory, ())}
    if not everything:
        raise UsageError(f"{study.name} has no scenarios yet; its published values are in {directory}")
    wanted: dict[str, Case] = dict(everything) if asked.everything else {}
    for table in asked.shown(study):
        wanted |= {case.name: case for case in study.cases(directory, [table])}
    claims = {claim["id"]: claim for claim in claims_of(directory)}
    for name in asked.claims:
        if name not in claims:
            raise UsageError(f"--claim {name}: {study.name} has no such claim; known: {', '.join(claims)}")
        wanted |= {case: everything[case] for case in everything if decides(claims[name], case)}
    if asked.backend == "live":
        chosen = [name for name in _live(study, asked).cases if name in wanted]
        if not chosen:
            raise UsageError(f"--backend live: none of these is run live; {study.directory / 'live.toml'} lists the "
                             f"cells of {study.name} that are")
        return [wanted[name] for name in chosen]
    return list(wanted.values())


def _perform(study: Study, cases: Sequence[Case], asked: Asked, console: Console) -> LiveRuns[Measured[Any]]:
    """What was measured, for each repetition: one when simulated."""
    effort = asked.effort(study)
    form = live_scenario if asked.backend == "live" else _simulated
    scenarios = {case.name: form(case, effort) for case in cases}
    live = _live(study, asked)
    with _progress(console) as progress:
        if asked.backend == "sim":
            task = progress.add_task("simulating", total=len(scenarios))
            done = simulate(scenarios, study.measure, jobs=asked.jobs, keep=asked.keep,
                            progress=lambda _: progress.advance(task))
            results = {name: [Measured(value=value, parts={})] for name, value in done.items()}
            return LiveRuns(results=results, doubts={})
        task = progress.add_task("running live", total=len(scenarios) * live.repetitions)
        for values in scenarios.values():
            as_live(values, live)
        return perform_live(scenarios, with_parts(study.measure), directory=asked.live_runs(study),
                            repetitions=live.repetitions, jobs=asked.jobs or live.together, repeat=asked.repeat,
                            progress=lambda _: progress.advance(task))


def _repetitions(results: Mapping[str, Sequence[Measured[Any]]]) -> list[Mapping[str, Any]]:
    """What the study kept, by repetition and scenario."""
    number = len(next(iter(results.values())))
    return [Ran({name: values[at].value for name, values in results.items()}) for at in range(number)]


def _live(study: Study, asked: Asked) -> LiveCells:
    return study.live_quick if asked.quick else study.live


def as_live(values: dict[str, Any], live: LiveCells) -> None:
    """Set a scenario to what ``live.toml`` says, with its packets: frames tell why live and simulated times differ."""
    values["phases"] |= live.phases
    values["recording"] = {**values.get("recording", {}), "detail": "full"}


def _simulate_too(study: Study, cases: Sequence[Case], asked: Asked) -> dict[str, list[Measured[Any]]]:
    """What was run live, simulated for as long, as often and with the same seeds, to stand beside it."""
    effort, live = asked.effort(study), _live(study, asked)
    wanted: dict[tuple[str, int], dict[str, Any]] = {}
    for case in cases:
        values = case.scenario(effort)
        as_live(values, live)
        wanted |= {(case.name, seed): {**values, "seed": seed} for seed in range(1, live.repetitions + 1)}
    found = simulate({f"{name}-r{seed}": values for (name, seed), values in wanted.items()}, with_parts(study.measure),
                     jobs=asked.jobs)
    return {case.name: [found[f"{case.name}-r{seed}"] for seed in range(1, live.repetitions + 1)] for case in cases}


def _simulated(case: Case, effort: Any) -> dict[str, Any]:
    return case.scenario(effort)


def _agreed(repetitions: Sequence[Sequence[Comparison]]) -> list[Comparison]:
    """Verdicts of several repetitions as one: undecided where they do not agree."""
    agreed = []
    for verdicts in zip(*repetitions, strict=True):
        first = verdicts[0]
        if len({verdict.holds for verdict in verdicts}) > 1:
            held = sum(verdict.holds is True for verdict in verdicts)
            first = replace(first, holds=None, reason=f"it held in {held} of {len(verdicts)} repetitions")
        agreed.append(first)
    return agreed


def _progress(console: Console) -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                    console=console, transient=True)


def print_results(judged: Sequence[Comparison], cells: Sequence[Cell], console: Console) -> None:
    """Print the verdicts in a line, each claim in one, then the claims with their numbers, and the tables."""
    if judged:
        counts = Counter[str](claim.verdict for claim in judged)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        console.print(f"Of {counted(len(judged), 'claim')}: {said}.", highlight=False)
        for claim in judged:
            verdict = Text.from_markup(VERDICTS[claim.verdict])
            verdict.pad_right(max(map(len, counts)) - len(claim.verdict))
            console.print(Text("  ") + verdict + Text(f"  {claim.text}"), highlight=False, soft_wrap=True)
        _print_claims(judged, console)
    for table in dict.fromkeys(cell.table for cell in cells):
        its = [cell for cell in cells if cell.table == table]
        print_table(console, heading(table), columns(its), list(rows(its)), left=(0, 1), keys=2)
    if fitted := fit_rows(cells):
        print_table(console, "Fit", FIT_COLUMNS, fitted, left=(), keys=1)


def _print_claims(judged: Sequence[Comparison], console: Console) -> None:
    rows = [(claim.text, Text.from_markup(VERDICTS[claim.verdict]), claim.rule, Text("\n").join([
        *map(Text, claim.evidence.splitlines()), *(Text(line, style="dim") for line in claim.reason.splitlines())]))
        for claim in judged]
    print_table(console, "Claims", ("claim", "verdict", "held, if", "numbers"), rows, left=range(4), keys=2, lines=True)
