"""``mqttlab export``: a recording, or an experiment, in other forms, with progress where somebody watches."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from mqttlab import export
from mqttlab.cli.problems import writable_file
from mqttlab.errors import UsageError
from mqttlab.recording import Recording

WRITERS = {"csv": export.csv, "parquet": export.parquet, "xlsx": export.xlsx}


def export_tables(run: Path, wanted: dict[str, Path | None]) -> None:
    """Write what is wanted: by form, the place, empty for the default one in the recording; ``None`` for not at all.

    Raises:
        UsageError: nothing is wanted, or a place cannot be written to.
        ExportError: the recording does not fit into the form.
    """
    asked = {form: place for form, place in wanted.items() if place is not None}
    if not asked:
        raise UsageError("nothing to export to; add --csv, --parquet or --xlsx")
    for form, place in asked.items():
        if place.name:
            _writable(form, place)
    if (run / "journal.jsonl").is_file():
        from mqttlab.cli.experiment_report import export_experiment

        export_experiment(run, asked)
        return
    going_on = Recording.open(run).going_on
    if going_on:
        click.echo(f"mqttlab: {going_on}", err=True)
    console = Console(stderr=True)
    for form, place in asked.items():
        out = place if place.name else run / ("run.xlsx" if form == "xlsx" else form)
        with Progress(TextColumn("{task.description}"), BarColumn(), console=console, transient=True,
                      disable=not console.is_terminal) as bar:
            task = bar.add_task(form, total=None)
            written = WRITERS[form](run, out, lambda name, done, total, bar=bar, task=task: bar.update(  # type: ignore[misc]
                task, completed=done, total=total, description=name))
        click.echo(written)


def _writable(form: str, place: Path) -> None:
    option = f"--{form}"
    if form == "xlsx":
        writable_file(place, option)
        return
    if place.is_file():
        raise UsageError(f"{option} {place}: this is a file; name a directory")
    writable_file(place / f"messages.{form}" if place.is_dir() else place, option)
