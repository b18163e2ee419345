"""``mqttlab list``: the recordings of a directory, of its catalog, or those of them that were asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from mqttlab.catalog.glance import Glimpse, glance
from mqttlab.runs.directory import list_runs

COLUMNS = ("started (UTC)", "backend", "status", "directory")


def show_list(runs: Path) -> None:
    """Print a line for each recording, oldest first: what the catalog knows, and what it does not know yet."""
    known = glance(runs / "catalog.db")
    there = {glimpse.directory for glimpse in known if (glimpse.directory / "plan.json").is_file()}
    others = list_runs(runs, but=there)
    if not known and not others:
        click.echo(f"no runs in {runs}; make one with: mqttlab run scenarios/demo.toml")
        return
    rows = [(glimpse.started, glimpse.backend, _status(glimpse, glimpse.directory in there), _shown(glimpse.directory))
            for glimpse in known]
    rows += [(summary.started, summary.backend, summary.status, str(summary.directory)) for summary in others]
    rows = sorted((started[:16].replace("T", " "), *rest) for started, *rest in rows)  # type: ignore[misc]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    click.secho(_line(COLUMNS, widths), bold=True)
    for row in rows:
        click.secho(_line(row, widths), fg=None if row[2] == "complete" else "yellow")


def show_found(
    url: str | None, runs: Path, where: Sequence[str], columns: Sequence[str], sort: Sequence[str], limit: int | None,
) -> None:
    """Print the runs of the catalog for which all conditions hold, with these columns beside the usual ones."""
    import polars as pl

    from mqttlab.catalog import Catalog, url_for
    from mqttlab.cli.catalogs import show

    with Catalog.open(url or url_for(runs), read_only=True) as opened:
        found = opened.runs(where, columns=list(dict.fromkeys(("started", "backend", "state", *columns, "directory"))),
                            sort=sort, limit=limit)
        known = opened.runs(columns=("directory",))["directory"].to_list() if url is None else None
    shown = [_shown(Path(directory)) for directory in found["directory"]]
    show(found.with_columns(pl.Series("directory", shown, dtype=pl.String)))
    new = [] if known is None else list_runs(runs, but={Path(directory) for directory in known})
    if new:
        click.echo(f"mqttlab: {len(new)} recordings below {runs} are not in the catalog; mqttlab catalog scan {runs} "
                   "adds "
                   "them", err=True)


def _status(glimpse: Glimpse, there: bool) -> str:
    if not there:
        return "gone"
    return "not valid" if glimpse.valid is False and glimpse.state == "complete" else glimpse.state


def _shown(directory: Path) -> str:
    here = Path.cwd()
    return os.fspath(directory.relative_to(here) if directory.is_relative_to(here) else directory)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
