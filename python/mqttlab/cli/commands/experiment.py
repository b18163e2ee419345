"""``mqttlab experiment``: a scenario varied on purpose, run point by point."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mqttlab.cli.main import BACKEND, CATALOG, JUNIT, RUNS, SET, main, overrides_of
from mqttlab.cli.problems import WithTables, writable_directory, writable_file
from mqttlab.terminal import say


@main.command(cls=WithTables)
@click.argument("file", type=click.Path(path_type=Path))
@SET
@BACKEND
@RUNS
@click.option("--dry-run", is_flag=True, help="Print design, runs, time and disk; start nothing.")
@click.option("--pilot", type=click.IntRange(min=1), metavar="N",
              help="With --dry-run: run the reference N times, and print the expected time and differences.")
@click.option("--scenarios", type=click.Path(path_type=Path), metavar="DIR",
              help="Write each point's scenario into DIR, as TOML; start nothing.")
@click.option("--jobs", type=click.IntRange(1), help="Number of simulations at once  [default: one per processor]")
@click.option("--redo", is_flag=True, help="Rerun results of an earlier version of this file.")
@JUNIT
@CATALOG
@click.option("--to", metavar="URL", help="Move recordings to this place, such as s3://bucket/runs; file://, s3:// and "
              "all others of fsspec.")
@click.option("--cluster", metavar="ADDRESS", help="Run on the workers of this Dask cluster, such as tcp://host:8786; "
              "needs --to, a place that all workers reach.")
@click.option("--detach", is_flag=True, help="Hand it over to the queue and return at once; mqttlab queue shows it.")
@click.option("--queue", metavar="DIR|none", envvar="MQTTLAB_QUEUE", show_envvar=True,
              help="Another queue than the user's own; none: perform the runs in this command.")
@click.option("--ignore-disk", is_flag=True, help="Start even if the disk seems too small for the recordings.")
def experiment(
    file: Path, settings: tuple[str, ...], backend: str | None, runs: Path, dry_run: bool, pilot: int | None,
    scenarios: Path | None, jobs: int | None, redo: bool, junit: Path | None, to: str | None, cluster: str | None,
    catalog: str | None, detach: bool, queue: str | None, ignore_disk: bool,
) -> None:
    """Run the experiment FILE: every point of its design, in blocks.

    FILE (TOML) names a scenario, factors and a design; docs/how-to/experiment.md describes it. A scenario is an
    experiment of one point. Recordings and the journal go to RUNS/<name of the experiment>. After an interruption
    (Ctrl-C or kill -9) the same command continues. Simulations share the processors; a live run has the machine to
    itself.

    \b
      mqttlab experiment experiments/mosquitto/qos-delay-loss.toml --dry-run
      mqttlab experiment experiments/mosquitto/qos-delay-loss.toml --backend sim
      mqttlab experiment qos-loss.toml --junit thresholds.xml
      mqttlab experiment qos-loss.toml --detach
    """
    from mqttlab.cli.experiments import dry, perform
    from mqttlab.errors import UsageError
    from mqttlab.experiments import load
    from mqttlab.experiments.scenarios import write_scenarios

    if pilot is not None and not dry_run:
        raise UsageError("--pilot belongs to --dry-run; add it, or leave --pilot out")
    if to is not None and "://" not in to:
        raise UsageError(f"--to {to}: this is not a URL; write one, such as file://{Path(to).absolute()}")
    if cluster is not None and to is None:
        raise UsageError("--cluster needs --to, a place that all workers reach, such as s3://bucket/runs")
    loaded = load(file, overrides_of(settings, backend))
    writable_directory(runs, "--runs")
    if junit is not None:
        writable_file(junit, "--junit")
    if scenarios is not None:
        for path in write_scenarios(loaded, writable_directory(scenarios, "--scenarios")):
            say(path)
        return
    if dry_run:
        dry(loaded, runs, pilot, jobs)
        return
    if detach:
        if cluster is not None:
            raise UsageError("--detach hands over to the queue of this machine; leave --cluster out")
        from mqttlab.cli.queues import hand_over_experiment

        hand_over_experiment(loaded.name, file, settings, backend, runs, jobs=jobs, redo=redo, junit=junit,
                             to=to, catalog=catalog, queue=queue, ignore_disk=ignore_disk)
        return
    sys.exit(perform(loaded, runs, jobs=jobs, redo=redo, junit=junit, to=to, cluster=cluster, catalog=catalog,
                     ignore_disk=ignore_disk, queue=queue))
