"""What ``mqttlab catalog`` prints, and how other commands take recordings into the catalog."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mqttlab.digits import plain
from mqttlab.errors import MqttlabError, UsageError
from mqttlab.files import from_here
from mqttlab.terminal import say

if TYPE_CHECKING:
    import polars as pl

    from mqttlab.catalog import Catalog
    from mqttlab.recording import Recording

# Too many to read on a terminal.
ROWS_MAX = 200


def show(table: pl.DataFrame) -> None:
    """Print a frame as a table that is as wide as it is; of a long one the first rows."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from mqttlab.console import Console

    printed = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, kind in table.schema.items():
        printed.add_column(escape(name), justify="right" if kind.is_numeric() else "left", no_wrap=kind.is_numeric(),
                           overflow="fold")
    for row in table.head(ROWS_MAX).iter_rows():
        printed.add_row(*(escape(_cell(value)) for value in row))
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 240)
    console.print(printed)
    if table.height > ROWS_MAX:
        say(f"mqttlab: {table.height - ROWS_MAX} more rows; --limit, --csv, --parquet and --xlsx have others",
            err=True)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = plain(value, 6) if isinstance(value, float) else str(value)
    return text if len(text) <= 400 else f"{text[:397]}..."


def hand_out(table: pl.DataFrame, csv: Path | None, parquet: Path | None, xlsx: Path | None) -> None:
    if csv is None and parquet is None and xlsx is None:
        show(table)
        return
    from mqttlab import scratch
    from mqttlab.sheets import workbook, write_csv, write_sheet

    if csv is not None:
        with scratch.unfinished(csv) as made:
            write_csv(table, made)
    if parquet is not None:
        with scratch.unfinished(parquet) as made:
            table.write_parquet(made)
    if xlsx is not None:
        from mqttlab.export import ExportError
        from mqttlab.export.tables import XLSX_ROWS_MAX

        if table.height > XLSX_ROWS_MAX:
            raise ExportError(f"{table.height} rows, but a worksheet holds {XLSX_ROWS_MAX}; export with --csv or "
                              "--parquet")
        with workbook(xlsx) as book:
            write_sheet(book, table, "catalog")


def table_of(opened: Catalog, name: str) -> pl.DataFrame:
    from mqttlab.catalog import TABLES

    if name not in TABLES:
        from mqttlab.mistaken import did_you_mean

        raise UsageError(f"--table {name}: the catalog has no such table; {did_you_mean(name, TABLES)}")
    return opened.table(name)


@contextlib.contextmanager
def reading() -> Iterator[Callable[[int, int, Path], None]]:
    """How many recordings were read, on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from mqttlab.console import Console

    console = Console(stderr=True)
    with Progress(TextColumn("reading recordings"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                  TextColumn("{task.fields[place]}", markup=False), console=console, transient=True,
                  disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None, place="")
        yield lambda done, of, place: bar.update(task, completed=done, total=of, place=place.name)


def home_of(run: Path, runs: Path) -> Path:
    """The directory whose catalog a recording is in: --runs, where it was given, or the one the recording lies in.

    Raises:
        UsageError: it is no recording; no catalog is made for it.
    """
    if not (run / "plan.json").is_file():
        raise UsageError(f"{run} is not a recording: it has no plan.json")
    source = click.get_current_context().get_parameter_source("runs")
    if source is not None and source.name == "COMMANDLINE":
        return runs
    above = [place for place in run.absolute().parents if (place / "catalog.db").is_file()]
    return above[0] if above else run.absolute().parent


def url_of(url: str | None, runs: Path) -> str:
    from mqttlab.catalog import url_for

    return url if url is not None else url_for(runs)


def open_catalog(url: str | None, runs: Path, *, read_only: bool = False) -> Catalog:
    from mqttlab.catalog import Catalog

    if url is None and not runs.is_dir():
        raise UsageError(f"there is no directory {runs}; name the directory of the runs with --runs, or a --catalog")
    return Catalog.open(url_of(url, runs), read_only=read_only)


def known_below(directory: Path, url: str | None, runs: Path) -> set[Path]:
    """The recordings below a directory that the catalog has; none where there is no catalog."""
    if url == "none":
        return set()
    try:
        from mqttlab.catalog import Catalog

        with Catalog.open(url_of(url, runs)) as opened:
            found = [Path(place).resolve() for place in opened.runs()["directory"]]
    except (MqttlabError, OSError):
        # Whoever adds to it says what is wrong.
        return set()
    return {place for place in found if place.is_relative_to(directory.resolve())}


def remember(directory: Path, url: str | None, runs: Path | None = None, *, recording: Recording | None = None) -> None:
    """Take a recording into the catalog; what goes wrong is a warning, because the recording is what matters.

    Args:
        directory: the recording.
        url: the catalog; when left out ``catalog.db`` in ``runs``; ``none`` for none at all.
        runs: the directory of the runs; when left out, the nearest one above the recording that has a catalog, if any.
        recording: the same, where it is open already.
    """
    home = runs or next((place for place in directory.absolute().parents if (place / "catalog.db").is_file()), None)
    if url == "none" or (url is None and home is None):
        return
    try:
        # The catalog without its questions, which need SQLAlchemy.
        from mqttlab.catalog.adding import add
        from mqttlab.catalog.database import Database

        with contextlib.closing(Database(url_of(url, home or directory))) as database:
            add(database, directory, recording)
    except MqttlabError as error:
        for problem in error.problems:
            say(f"mqttlab: warning: not in the catalog: {problem}", err=True)
    except OSError as error:
        say(f"mqttlab: warning: not in the catalog: {error.strerror or error}", err=True)


def catalog_for(url: str | None, runs: Path) -> str | None:
    """The URL of the catalog that runs below a directory go into; none for ``none``."""
    from mqttlab.catalog.place import url_for, url_of

    return None if url == "none" else url_of(url or url_for(runs.absolute()))


def scrub_all(directories: Sequence[Path], catalog: str | None) -> None:
    """Take secrets out of what lies below some directories, out of their catalogs, and out of the queue's list; print
    what was changed."""
    from mqttlab.catalog.origin import read_again
    from mqttlab.catalog.place import FILE
    from mqttlab.plurals import counted
    from mqttlab.queue.client import Queue, default_directory
    from mqttlab.scrubbing import scrub_below, scrub_text

    values: dict[str, str] = {}
    count = 0
    for changed in scrub_below(directories, values):
        count += 1
        say(f"{from_here(changed.file)}: {changed.what}")
    read_again()
    for place in [None] if catalog is not None else directories:
        if place is not None and not (place / FILE).is_file():
            continue
        with open_catalog(catalog, place or directories[0]) as opened, reading() as observe:
            opened.scan(directories if place is None else [place], observe=observe)
            opened.overwrite()
            say(f"{opened.name}: indexed again")
    queue = Path(os.environ.get("MQTTLAB_QUEUE") or default_directory())
    if (queue / "queue.db").is_file():
        jobs = Queue(queue).rewrite(lambda text: scrub_text(text, values))
        say(f"{from_here(queue / 'queue.db')}: {counted(jobs, 'job')} changed")
    known = [value.encode() for value in values]
    for copy in (file for place in directories for file in place.glob(f"{FILE}.*")):
        if any(value in copy.read_bytes() for value in known):
            say(f"mqttlab: {from_here(copy)} is a copy of an older catalog and still has secrets; remove it", err=True)
    say(f"{counted(count, 'file')} changed, {counted(len(values), 'secret')} found")
    if values:
        say("mqttlab: change these secrets: others may have read them", err=True)
