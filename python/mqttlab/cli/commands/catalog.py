"""``mqttlab catalog``: recordings are taken in, found again and spoken of."""

from __future__ import annotations

from pathlib import Path

import click

from mqttlab.cli.catalogs import hand_out, home_of, open_catalog, reading, show, table_of, url_of
from mqttlab.cli.main import CATALOG, RUNS, main
from mqttlab.cli.problems import Commands, existing_directory, writable_file
from mqttlab.errors import UsageError
from mqttlab.terminal import say

WHERE = click.option("--where", multiple=True, metavar="CONDITION",
                     help="Only runs for which this holds, such as 'latency_ms_p99 < 250'; repeatable.")
COLUMN = click.option("--column", "columns", multiple=True, metavar="NAME",
                      help="A field, factor, metric or tag.NAME to show; repeatable.")
SORT = click.option("--sort", multiple=True, metavar="NAME", help="Order by this; -NAME from large to small; "
                                                                  "repeatable.")
LIMIT = click.option("--limit", type=click.IntRange(1), metavar="N", help="At most this many runs.")
RUN = click.argument("run", type=click.Path(path_type=Path))


@main.group(cls=Commands)
def catalog() -> None:
    """Find, export and annotate recordings in the catalog, which `run`, `experiment` and `import` add to.

    The catalog is an index over the recordings. Scan builds it again.

    \b
      mqttlab catalog scan runs                                  index all recordings below runs
      mqttlab catalog query --where 'latency_ms_p99 < 250' --column latency_ms_p99
      mqttlab catalog query --long --metric latency_ms_p99 --csv latencies.csv
      mqttlab catalog names                                      all names for --where and --column
      mqttlab catalog tag runs/demo-... nightly
      mqttlab catalog baseline release-1.2 runs/demo-...
    """


@catalog.command()
@click.argument("directories", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path))
@RUNS
@CATALOG
@click.option("--fresh", is_flag=True, help="Forget everything first, also recordings elsewhere.")
def scan(directories: tuple[Path, ...], runs: Path, catalog: str | None, fresh: bool) -> None:
    """Index every recording below DIR..., at any depth, and forget missing ones.

    Recordings elsewhere stay in the catalog. Without --catalog and --runs, the catalog is DIR/catalog.db of the first
    DIR.

    \b
      mqttlab catalog scan runs
      mqttlab catalog scan runs /archive/runs --catalog postgresql://lab@db/mqttlab
      mqttlab catalog scan runs --fresh
    """
    for directory in directories:
        existing_directory(directory, "DIR")
    given = click.get_current_context().get_parameter_source("runs")
    place = runs if given is not None and given.name == "COMMANDLINE" else directories[0]
    with open_catalog(catalog, place) as opened, reading() as observe:
        scanned = opened.scan(directories, observe=observe, fresh=fresh)
    for problem in scanned.problems:
        say(f"mqttlab: {problem}", err=True)
    for copy, original in scanned.copies:
        say(f"mqttlab: {copy} is a copy of {original}; the catalog has the latter", err=True)
    for place in scanned.going_on:
        say(f"mqttlab: {place} is still being written; it is taken in when it has ended", err=True)
    gone = f", {len(scanned.removed)} no longer there" if scanned.removed else ""
    say(f"{len(scanned.added)} recordings indexed{gone}: {opened.name}")


@catalog.command()
@click.argument("directories", nargs=-1, metavar="[DIR...]", type=click.Path(path_type=Path))
@RUNS
@CATALOG
def scrub(directories: tuple[Path, ...], runs: Path, catalog: str | None) -> None:
    """Take secrets out of recordings and experiments below DIR... (RUNS without one), and out of the catalog.

    Earlier versions stored passwords that a scenario has as text. A mark replaces them in plans, scenarios, reports,
    logs and captures. Nothing else is changed. Each changed file is printed.

    \b
      mqttlab catalog scrub
      mqttlab catalog scrub runs /archive/runs
    """
    from mqttlab.cli.catalogs import scrub_all

    for directory in directories or (runs,):
        existing_directory(directory, "DIR" if directories else "--runs")
    scrub_all(directories or (runs,), catalog)


@catalog.command()
@RUNS
@CATALOG
@WHERE
@COLUMN
@SORT
@LIMIT
@click.option("--long", "long_form", is_flag=True, help="A row for each metric value instead of each run.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="With --long: only this metric; repeatable.")
@click.option("--table", "table", metavar="NAME", help="One of the catalog's own tables instead, such as experiment.")
@click.option("--csv", "csv", type=click.Path(path_type=Path), help="Write CSV into this file instead of printing.")
@click.option("--parquet", "parquet", type=click.Path(path_type=Path), help="Write Parquet.")
@click.option("--xlsx", "xlsx", type=click.Path(path_type=Path), help="Write a workbook.")
def query(
    runs: Path, catalog: str | None, where: tuple[str, ...], columns: tuple[str, ...], sort: tuple[str, ...],
    limit: int | None, long_form: bool, metrics: tuple[str, ...], table: str | None, csv: Path | None,
    parquet: Path | None, xlsx: Path | None,
) -> None:
    """Print or export the catalog's data of runs.

    A name is a field (state, backend, started, …), a factor of an experiment, tag.NAME, or a metric, of the whole run
    or of a scope: 'latency_ms_p99[qos 1]'. A condition is a name, one of = != < <= > >= ~ (contains) and a value;
    levels of factors have their units. `mqttlab catalog names` lists all names.

    \b
      mqttlab catalog query --where 'experiment = loss' --where 'loss >= 2 %' --column loss --column latency_ms_p99
      mqttlab catalog query --where tag.nightly --sort -latency_ms_p99 --limit 10 --xlsx slowest.xlsx
      mqttlab catalog query --long --metric latency_ms_p99 --parquet latencies.parquet
      mqttlab catalog query --table experiment
    """
    for path, option in ((csv, "--csv"), (parquet, "--parquet"), (xlsx, "--xlsx")):
        if path is not None:
            writable_file(path, option)
    if metrics and not long_form:
        raise UsageError("--metric goes with --long; --column NAME adds a metric to the rows of runs")
    with open_catalog(catalog, runs, read_only=True) as opened:
        if table is not None:
            found = table_of(opened, table)
        elif long_form:
            found = opened.values(metrics or None, where=where)
        else:
            from mqttlab.catalog import DEFAULT_COLUMNS

            names = [*(name for name in DEFAULT_COLUMNS if name != "directory"), *columns, "directory"]
            found = opened.runs(where, columns=list(dict.fromkeys(names)), sort=sort, limit=limit)
    hand_out(found, csv, parquet, xlsx)


@catalog.command()
@RUNS
@CATALOG
def names(runs: Path, catalog: str | None) -> None:
    """List every name that --where, --column and --sort take: fields, factors, tags, metrics with their scopes.

    \b
      mqttlab catalog names
    """
    with open_catalog(catalog, runs, read_only=True) as opened:
        show(opened.names())


@catalog.command()
@RUN
@click.argument("tags", nargs=-1, required=True, metavar="NAME[=VALUE]...")
@RUNS
@CATALOG
@click.option("--remove", is_flag=True, help="Take these tags away.")
def tag(run: Path, tags: tuple[str, ...], runs: Path, catalog: str | None, remove: bool) -> None:
    """Tag the recording RUN. Tags are also in RUN/annotations.json, and outlive the catalog.

    \b
      mqttlab catalog tag runs/demo-... nightly site=lab2
      mqttlab catalog tag runs/demo-... nightly --remove
    """
    pairs = dict(word.partition("=")[::2] for word in tags)
    for name in pairs:
        if not name or len(name) > 100 or any(letter in name for letter in " <>=!~[]'\""):
            raise UsageError(f"{name!r} is no name of a tag; write letters, digits, '-', '_', '.' (at most 100)")
    with open_catalog(catalog, home_of(run, runs)) as opened:
        if remove:
            opened.untag(run, pairs)
        else:
            opened.tag(run, pairs)


@catalog.command()
@RUN
@click.argument("text", required=False)
@RUNS
@CATALOG
def note(run: Path, text: str | None, runs: Path, catalog: str | None) -> None:
    """Add the note TEXT to the recording RUN; without TEXT, print its notes.

    \b
      mqttlab catalog note runs/demo-... 'the antenna was wet'
      mqttlab catalog note runs/demo-...
    """
    if text is not None:
        if not text.strip():
            raise UsageError("the note is empty; write a sentence")
        with open_catalog(catalog, home_of(run, runs)) as opened:
            opened.note(run, text)
        return
    from mqttlab.catalog.run_annotations import Annotations

    for written in Annotations.read(run).notes:
        say(f"{written.at[:16].replace('T', ' ')}  {written.author}  {written.text}")


@catalog.command()
@click.argument("name", required=False)
@click.argument("run", type=click.Path(path_type=Path), required=False)
@RUNS
@CATALOG
@click.option("--point", is_flag=True, help="All runs of the experiment's point that RUN is of, not this one alone.")
@click.option("--remove", is_flag=True, help="Take the name away.")
def baseline(name: str | None, run: Path | None, runs: Path, catalog: str | None, point: bool, remove: bool) -> None:
    """Name the recording RUN as the baseline NAME, for thresholds and comparisons.

    With NAME alone, print its recordings; without NAME, all baselines. A name given again moves to
    the new run.

    \b
      mqttlab catalog baseline release-1.2 runs/demo-...
      mqttlab catalog baseline release-1.2 runs/loss/runs/3-0-... --point
      mqttlab catalog baseline
    """
    with open_catalog(catalog, runs if run is None else home_of(run, runs),
                      read_only=run is None and not remove) as opened:
        if name is None:
            show(opened.baselines())
        elif remove:
            if not opened.remove_baseline(name):
                from mqttlab.mistaken import did_you_mean

                raise UsageError(f"no baseline {name!r}; {did_you_mean(name, opened.baselines()['name'].to_list())}")
        elif run is None:
            for directory in opened.baseline(name):
                say(directory)
        else:
            opened.set_baseline(name, run, "point" if point else "run")


@catalog.command()
@RUNS
@CATALOG
@click.option("--backup", type=click.Path(path_type=Path), metavar="FILE",
              help="Where the copy goes, an SQLite file; needed for catalogs on servers.")
def upgrade(runs: Path, catalog: str | None, backup: Path | None) -> None:
    """Bring the catalog to this program's schema, after a copy of it was made.

    SQLite files are brought up to date by whatever writes to them first; on a server, which others use, you decide
    when.

    \b
      mqttlab catalog upgrade --catalog postgresql://lab@db/mqttlab --backup before.db
    """
    from mqttlab.catalog.database import Database

    if backup is not None:
        writable_file(backup, "--backup")
    database = Database(url_of(catalog, runs), as_it_is=True)
    schema = database.schema()
    if schema is None:
        raise UsageError(f"there is no catalog in {database.name}; mqttlab catalog scan DIR makes it")
    made = database.upgrade(backup)
    say(f"schema {schema} is the present one" if made is None else
        f"upgraded from schema {schema}; a copy of what it was is in {made}")
