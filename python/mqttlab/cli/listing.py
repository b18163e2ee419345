"""``mqttlab list``: the recordings below a directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from mqttlab.runs.directory import list_runs

COLUMNS = ("started (UTC)", "backend", "status", "directory")


def show_list(runs: Path) -> None:
    """Print a line for each recording, oldest first."""
    found = list_runs(runs)
    if not found:
        click.echo(f"no runs in {runs}; make one with: mqttlab run scenarios/demo.toml")
        return
    rows = [(summary.started[:16].replace("T", " "), summary.backend, summary.status, str(summary.directory))
            for summary in found]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    click.secho(_line(COLUMNS, widths), bold=True)
    for row in rows:
        click.secho(_line(row, widths), fg=None if row[2] == "complete" else "yellow")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
