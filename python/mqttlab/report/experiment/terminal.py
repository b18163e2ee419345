"""An experiment on the terminal: the verdict first."""

from __future__ import annotations

import textwrap

from rich.markup import escape
from rich.table import Table as Printed

from mqttlab.analysis import Analysis, methods
from mqttlab.console import Console
from mqttlab.report.experiment import tables

WIDTH_OF_FILES = 180
ROWS_SHOWN = 60
TEXT = ("verdict", "choose", "as good", "level", "of", "term", "shape", "why", "reason", "at", "over")
COLOURS = {"better": "green", "worse": "bold red", "equivalent": "cyan", "undecided": "yellow", "different": "magenta"}


def print_experiment(analysis: Analysis, console: Console) -> None:
    """Print what an experiment says."""
    if not console.is_terminal:
        console.width = max(console.width, WIDTH_OF_FILES)
    asked = analysis.asked
    console.print(f"[bold]{escape(asked.name)}[/]: {escape(asked.question)}", highlight=False, soft_wrap=True)
    console.print(f"[bold]{escape(tables.headline(analysis))}[/]", highlight=False)
    for words in tables.facts(analysis):
        console.print(f"  {words}", highlight=False, markup=False, soft_wrap=True)
    if analysis.recommendations is not None:
        _print("Recommendation", tables.recommendations(analysis), console)
        console.print(analysis.recommendations.rule, highlight=False, markup=False)
    for each in analysis.responses:
        note = "" if each.declared else " (exploratory)"
        if not each.varies:
            console.print(tables.constant(each), highlight=False, markup=False)
            continue
        _print(f"{each.label}{note}", tables.points(analysis, each), console)
        _print(f"{each.name}: allocation of variation", tables.variation(each), console)
        _print(f"{each.name}: effects of levels", tables.effects(each), console)
        _print(f"{each.name}: trends", tables.trends(each), console)
        if each.drift is not None:
            console.print(f"{each.drift.words()} Looked for in {each.drift_of}.", highlight=False, markup=False)
    _print("Runs that were left out", tables.left_out(analysis), console)
    console.print()
    console.print("[bold]Methods[/]")
    for line in textwrap.wrap(methods(analysis), min(console.width, 120)):
        console.print(line, highlight=False, markup=False)


def _print(title: str, table: tables.Table, console: Console) -> None:
    head, rows = table
    if not rows:
        return
    shown = Printed(title=escape(title), title_justify="left", title_style="bold")
    for column in head:
        shown.add_column(escape(column), justify="left" if column in TEXT else "right", overflow="fold")
    kept, more = tables.shortened(rows, ROWS_SHOWN)
    for cells in kept:
        word = cells[-1].split(" ")[0]
        styled = [escape(cell) for cell in cells]
        if word in COLOURS and head[-1] == "verdict":
            styled[-1] = f"[{COLOURS[word]}]{styled[-1]}[/]"
        shown.add_row(*styled)
    console.print(shown)
    if more:
        console.print(f"{more} more rows are in the page and in --csv", highlight=False)
