"""A comparison on the terminal."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table as Printed

from mqttlab.comparison import Comparison
from mqttlab.comparison.frames import fates as fates_of_frames
from mqttlab.comparison.words import head, what_happened
from mqttlab.console import Console
from mqttlab.recording import RecordingError
from mqttlab.report.comparison import tables

WIDTH_OF_FILES = 200
COLOURS = {"better": "green", "worse": "bold red", "equivalent": "cyan", "undecided": "yellow", "different": "magenta"}


def print_comparison(comparison: Comparison, console: Console, *, by_message: bool = False, limit: int = 10) -> bool:
    """Print a comparison, and say whether every metric lies within the tolerance.

    Raises:
        RecordingError: the two have no metric in common.
        ComparisonError: ``by_message``, and no two runs have the same random streams.
    """
    if not console.is_terminal:
        console.width = max(console.width, WIDTH_OF_FILES)
    if not any(row.first and row.second for row in comparison.rows):
        raise RecordingError(f"{comparison.first.label} and {comparison.second.label} have no metric in common: one of "
                             "them has no delivered message")
    pairs = comparison.by_message if by_message else []
    for remark in tables.remarks(comparison):
        console.print(f"[bold yellow]{escape(remark)}[/]", highlight=False, soft_wrap=True)
    console.print(f"[bold]{escape(comparison.title)}[/]", highlight=False)
    console.print(comparison.design, highlight=False, markup=False)
    console.print("The plans differ in", highlight=False)
    for line in tables.knobs(comparison):
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    agreed = _metrics(comparison, console)
    _plain("Shift of each quantile of the latency", tables.quantiles(comparison.shifts), console)
    for pair in pairs:
        name = f"Message by message: {pair.first.directory.name} → {pair.second.directory.name}"
        console.print()
        console.print(f"[bold]{escape(name)}[/]", highlight=False)
        _plain("Fates of the messages", tables.fates(pair), console)
        _plain("Fates of the frames, by name", tables.frame_fates(list(fates_of_frames(pair.frames).iter_rows())),
               console)
        _plain("What made the difference", tables.reasons(pair), console)
        for record in pair.different.head(limit).iter_rows(named=True):
            console.print(f"[bold]{escape(head(record))}[/]", highlight=False, soft_wrap=True)
            for sentence in what_happened(pair, record):
                console.print(f"  {sentence}", highlight=False, markup=False, soft_wrap=True)
        if pair.different.height > limit:
            console.print(f"{pair.different.height - limit} more messages differ; --limit shows more, --json has all",
                          highlight=False)
    return agreed


def _metrics(comparison: Comparison, console: Console) -> bool:
    head, rows = tables.metrics(comparison)
    shown = Printed(title="Metrics", title_justify="left", title_style="bold")
    for place, column in enumerate(head):
        shown.add_column(escape(column), justify="left" if place < 2 else "right", overflow="fold",
                         no_wrap=place < 2 or column == "verdict")
    before, agreed = None, True
    for row, cells in zip(comparison.rows, rows, strict=True):
        far = row.percent is None or abs(row.percent) > comparison.tolerance_percent
        agreed &= not far
        styled = [escape(cell) for cell in cells]
        styled[0] = styled[0] if row.scope != before else ""
        styled[4] = f"[bold yellow]{styled[4]}[/]" if far else styled[4]
        if row.verdict is not None:
            styled[5] = f"[{COLOURS[row.verdict.word]}]{styled[5]}[/]"
        shown.add_row(*styled)
        before = row.scope
    console.print(shown)
    if any(row.verdict for row in comparison.rows):
        judged = sum(row.verdict is not None for row in comparison.rows)
        console.print(f"Verdicts: margin {comparison.tolerance_percent:g} % of the first; p values adjusted by Holm's "
                      f"method over {judged} comparisons.", highlight=False)
    return agreed


def _plain(title: str, table: tables.Table, console: Console) -> None:
    head, rows = table
    if not rows:
        return
    shown = Printed(title=title, title_justify="left", title_style="bold")
    for place, column in enumerate(head):
        shown.add_column(column, justify="left" if place == 0 else "right", no_wrap=place == 0)
    for cells in rows:
        shown.add_row(*map(escape, cells))
    console.print(shown)
