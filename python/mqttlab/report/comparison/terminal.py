"""A comparison on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.text import Text

from mqttlab.comparison import Comparison
from mqttlab.comparison.frames import fates as fates_of_frames
from mqttlab.comparison.words import head, what_happened
from mqttlab.console import Console, print_table, sentence
from mqttlab.digits import plain
from mqttlab.foreign import visible
from mqttlab.recording import RecordingError
from mqttlab.report.comparison import answer, several, tables

COLOURS = {"better": "green", "worse": "bold red", "equivalent": "cyan", "undecided": "yellow", "different": "magenta"}


def print_comparison(
    comparison: Comparison, console: Console, *, by_message: bool = False, limit: int = 10, full: bool = False,
) -> None:
    """Print a comparison: its answer, and what differs, biggest first.

    Args:
        comparison: which.
        console: where.
        by_message: also message by message, so many messages as ``limit`` says.
        limit: see there.
        full: every metric and quantile, and in what the plans differ.

    Raises:
        RecordingError: the two have no metric in common.
        ComparisonError: ``by_message``, and no two runs have the same random streams.
    """
    told = _told(comparison)
    pairs = comparison.by_message if by_message else []
    for remark in told.cautions:
        sentence(console, remark, "bold yellow")
    sentence(console, told.sentence, "bold")
    sentence(console, told.basis)
    _plain(f"First: {visible(comparison.first.label)}, second: {visible(comparison.second.label)}",
           answer.table(told.differing), console, left=2)
    for line in answer.rest(told):
        sentence(console, line)
    if full:
        _whole(comparison, console)
    else:
        console.print("--full: every metric, quantile by quantile, and where the plans differ", highlight=False)
    for pair in pairs:
        name = f"Message by message: {pair.first.directory.name} → {pair.second.directory.name}"
        console.print()
        sentence(console, name, "bold")
        _plain("Fates of the messages", tables.fates(pair), console)
        _plain("Fates of the frames, by name", tables.frame_fates(list(fates_of_frames(pair.frames).iter_rows())),
               console)
        _plain("What made the difference", tables.reasons(pair), console)
        for record in pair.different.head(limit).iter_rows(named=True):
            console.print(f"[bold]{escape(head(record))}[/]", highlight=False, soft_wrap=True)
            for said in what_happened(pair, record):
                console.print(f"  {said}", highlight=False, markup=False, soft_wrap=True)
        if pair.different.height > limit:
            console.print(f"{pair.different.height - limit} more messages differ; --limit shows more, --json has all",
                          highlight=False)


def print_several(comparisons: Sequence[Comparison], console: Console, *, full: bool = False) -> None:
    """Print more than two sides: a sentence for each against the first, then a column for each.

    Raises:
        RecordingError: two of them have no metric in common.
    """
    for each in comparisons:
        _told(each)
    said = several.said(comparisons)
    for remark in said.cautions:
        sentence(console, remark, "bold yellow")
    for words in said.sentences:
        sentence(console, words, "bold")
    for basis in said.bases:
        sentence(console, basis)
    _plain("Each against the first", several.table(said.rows if full else said.differing, several.labels(comparisons)),
           console, left=2)
    for words in said.notes:
        sentence(console, words)
    if full:
        for each in comparisons:
            _whole(each, console)


def _told(comparison: Comparison) -> answer.Answer:
    told = answer.answer(comparison)
    if not told.same and not any(row.first and row.second for row in comparison.rows):
        raise RecordingError(f"{comparison.first.label} and {comparison.second.label} have no metric in common: one of "
                             "them has no delivered message")
    return told


def _whole(comparison: Comparison, console: Console) -> None:
    console.print()
    sentence(console, comparison.title, "bold")
    sentence(console, comparison.design)
    console.print("The plans differ in", highlight=False)
    for line in tables.knobs(comparison):
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    _metrics(comparison, console)
    _plain("Shift of each quantile of the latency", tables.quantiles(comparison.shifts), console)


def _metrics(comparison: Comparison, console: Console) -> None:
    head, rows = tables.metrics(comparison)
    shown: list[list[str | Text]] = []
    before = None
    for row, cells in zip(comparison.rows, rows, strict=True):
        far = row.percent is None or abs(row.percent) > comparison.tolerance_percent
        styled: list[str | Text] = list(cells)
        styled[0] = cells[0] if row.scope != before else ""
        styled[4] = Text(cells[4], style="bold yellow") if far else cells[4]
        if row.verdict is not None:
            styled[5] = Text(cells[5], style=COLOURS[row.verdict.word])
        shown.append(styled)
        before = row.scope
    print_table(console, "Metrics", head, shown, left=(0, 1), keys=2)
    if any(row.verdict for row in comparison.rows):
        judged = sum(row.verdict is not None for row in comparison.rows)
        console.print(f"Verdicts: margin {plain(comparison.tolerance_percent)} % of the first; p values adjusted by "
                      f"Holm's method over {judged} comparisons.", highlight=False)


def _plain(title: str, table: tables.Table, console: Console, left: int = 1) -> None:
    head, rows = table
    if not rows:
        return
    print_table(console, title, head, rows, left=range(left), keys=left)
