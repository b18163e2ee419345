"""``mqttlab study``: a published experiment, rerun."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from mqttlab.errors import UsageError
from mqttlab.studies import Cell, Comparison, Study, simulate
from mqttlab.studies.claims import claims_of
from mqttlab.studies.table import INFINITE, fits

VERDICTS = {True: "[green]holds[/]", False: "[bold yellow]does not hold[/]", None: "not decided"}
FIT_COLUMNS = ("table", "values", "median ratio", "within 10 %", "within 25 %")


def list_studies(studies: Iterable[Study]) -> Table:
    """The studies, a row each."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True)
    for column in ("scenarios", "claims"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("published as", overflow="fold")
    for study in studies:
        scenarios = {case.name for case in study.cases(study.published, ())}
        table.add_row(study.name, str(len(scenarios)), str(len(claims_of(study.published))), study.title)
    return table


def run_study(study: Study, console: Console, *, quick: bool, tables: Sequence[str], jobs: int | None) -> str:
    """Rerun a study, print its tables and claims, and return them as Markdown.

    Args:
        study: what to rerun.
        quick: the study's shorter effort.
        tables: only these tables, such as ``5.4``; all, and the claims, when empty.
        jobs: simulations at once.
    """
    directory = study.published
    if not study.cases(directory, ()):
        raise UsageError(f"{study.name} has no scenarios yet; its published values are in {directory}")
    for table in tables:
        if not study.cases(directory, [table]):
            known = [name for name in _numbers(directory) if study.cases(directory, [name])]
            raise UsageError(f"--table {table}: {study.name} has no such table; known: {', '.join(known)}")
    effort = study.quick if quick else study.thorough
    scenarios = {case.name: case.scenario(effort) for case in study.cases(directory, tables)}
    began = time.monotonic()
    with _progress(console) as progress:
        task = progress.add_task("simulating", total=len(scenarios))
        results = simulate(scenarios, study.measure, jobs=jobs, progress=lambda _: progress.advance(task))
    took_s = time.monotonic() - began
    cells = [cell for cell in study.compare(directory, results) if not tables or cell.table in tables]
    judged = study.claims(directory, results) if not tables else []
    for table in dict.fromkeys(cell.table for cell in cells):
        console.print(_table(table, [cell for cell in cells if cell.table == table]))
    console.print(_fits(cells))
    if judged:
        console.print(_claims(judged))
    console.print(f"{len(scenarios)} simulations in {took_s:.1f} s", highlight=False)
    return markdown(cells, judged)


def _numbers(directory: Path) -> list[str]:
    """The numbers of the published tables, such as 5.4, from the names of their files."""
    found: set[tuple[int, int]] = set()
    for path in directory.glob("table*.csv"):
        for chapter, first, last in re.findall(r"(\d+)_(\d+)(?:_to_\1_(\d+))?", path.stem):
            found |= {(int(chapter), number) for number in range(int(first), int(last or first) + 1)}
    return [f"{chapter}.{number}" for chapter, number in sorted(found)]


def _progress(console: Console) -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                    console=console, transient=True)


def _table(name: str, cells: list[Cell]) -> Table:
    table = Table(title=f"Table {name}", title_justify="left", title_style="bold")
    for column in ("scenario", "metric"):
        table.add_column(column)
    for column in ("published", "simulated", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for cell in cells:
        table.add_row(cell.place, cell.metric, _number(cell.published), _number(cell.simulated), _ratio(cell))
    return table


def _fits(cells: Sequence[Cell]) -> Table:
    table = Table(title="Fit", title_justify="left", title_style="bold")
    for column in FIT_COLUMNS:
        table.add_column(column, justify="right")
    for row in _fit_rows(cells):
        table.add_row(*row)
    return table


def _fit_rows(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    return [(fit.table, str(fit.cells), f"{fit.median_ratio:.2f}", *(f"{share:.0%}" for share in fit.within))
            for fit in fits(cells)]


def _claims(judged: Sequence[Comparison]) -> Table:
    table = Table(title="Claims", title_justify="left", title_style="bold", show_lines=True)
    for column in ("claim", "verdict", "numbers"):
        table.add_column(column)
    for claim in judged:
        numbers = claim.evidence + (f"\n[dim]{claim.reason}[/]" if claim.reason else "")
        table.add_row(claim.text, VERDICTS[claim.holds], numbers)
    return table


def _number(value: float) -> str:
    return "∞" if value == INFINITE else "–" if value != value else f"{value:.4g}"


def _ratio(cell: Cell) -> str:
    return "" if cell.ratio is None or cell.ratio != cell.ratio else f"{cell.ratio:.2f}"


def markdown(cells: Sequence[Cell], judged: Sequence[Comparison]) -> str:
    """The tables and the claims as Markdown."""
    lines: list[str] = []
    if judged:
        lines += ["## Claims", "", "| claim | verdict | numbers | reason |", "|---|---|---|---|"]
        words = {True: "holds", False: "**does not hold**", None: "not decided"}
        lines += [f"| {c.text} | {words[c.holds]} | {c.evidence} | {c.reason} |" for c in judged]
        lines.append("")
    lines += ["## Fit", "", "Simulated over published; half of the last digit printed counts as equal.", "",
              "| " + " | ".join(FIT_COLUMNS) + " |", "|---" + "|---:" * (len(FIT_COLUMNS) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in _fit_rows(cells)]
    lines.append("")
    for table in dict.fromkeys(cell.table for cell in cells):
        lines += [f"## Table {table}", "", "| scenario | metric | published | simulated | ratio |",
                  "|---|---|---:|---:|---:|"]
        lines += [f"| {cell.place} | {cell.metric} | {_number(cell.published)} | {_number(cell.simulated)} "
                  f"| {_ratio(cell)} |" for cell in cells if cell.table == table]
        lines.append("")
    return "\n".join(lines)
