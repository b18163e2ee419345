"""An experiment on the terminal: the verdict first."""

from __future__ import annotations

import textwrap

from rich.markup import escape
from rich.text import Text

from mqttlab.analysis import Analysis, methods
from mqttlab.console import Console, print_table, sentence
from mqttlab.report.experiment import answer, tables

ROWS_SHOWN = 60
TEXT = ("verdict", "point", "threshold", "measured", "choose", "also fine, at which cost",
        "level", "of", "term", "shape", "why", "reason", "at", "over")
STATES = {"broken": "bold red", "undecided": "bold yellow", "held": "green", "none": "bold"}
COLOURS = {"better": "green", "worse": "bold red", "equivalent": "cyan", "undecided": "yellow", "different": "magenta"}


def print_experiment(analysis: Analysis, console: Console, *, full: bool = False) -> None:
    """Print what an experiment says: the answer, thresholds, costs; with ``full`` the statistics of each response."""
    design = analysis.design
    console.print(f"[bold]{escape(design.name)}[/]: {escape(design.question)}", highlight=False, soft_wrap=True)
    told = answer.answer(analysis)
    for place, words in enumerate(told.sentences or (tables.headline(analysis),)):
        sentence(console, words, STATES[told.state] if place == 0 else "")
    _print("Thresholds", answer.thresholds(analysis), console)
    _print("What it costs", answer.costs(analysis), console)
    for words in analysis.costs_unknown:
        sentence(console, words)
    if analysis.recommendations is not None:
        _print("Recommendation", answer.recommendations(analysis), console)
        sentence(console, analysis.recommendations.rule)
    for words in [tables.headline(analysis) + ".", *tables.facts(analysis)]:
        console.print(words, highlight=False, markup=False, soft_wrap=True)
    _print("Runs that were left out", tables.left_out(analysis), console)
    if full:
        _statistics(analysis, console)
    else:
        console.print("--full: each response with intervals, effects and trends, and the methods", highlight=False)


def _statistics(analysis: Analysis, console: Console) -> None:
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
    console.print()
    console.print("[bold]Methods[/]")
    for line in textwrap.wrap(methods(analysis), min(console.width, 120)):
        console.print(line, highlight=False, markup=False)


def _print(title: str, table: tables.Table, console: Console) -> None:
    head, rows = table
    if not rows:
        return
    shown: list[list[str | Text]] = []
    kept, more = tables.shortened(rows, ROWS_SHOWN)
    for cells in kept:
        word = cells[-1].split(" ")[0]
        styled: list[str | Text] = list(cells)
        if cells[0] in STATES and head[0] == "verdict":
            styled[0] = Text(cells[0], style=STATES[cells[0]])
        if word in COLOURS and head[-1] == "verdict":
            styled[-1] = Text(cells[-1], style=COLOURS[word])
        shown.append(styled)
    print_table(console, title, head, shown, left=[place for place, name in enumerate(head) if name in TEXT])
    if more:
        console.print(f"{more} more rows are in the page and in --csv", highlight=False)
