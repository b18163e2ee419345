"""``mqttlab queue``: runs that wait their turn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mqttlab.cli.main import BACKEND, CATALOG, RUNS, SET, main, overrides_of
from mqttlab.cli.problems import Commands
from mqttlab.terminal import say

if TYPE_CHECKING:
    from mqttlab.queue import Queue

QUEUE = click.option("--queue", "place", type=click.Path(path_type=Path), envvar="MQTTLAB_QUEUE", show_envvar=True,
                     metavar="DIR", help="Another queue than the user's own.")
NAMES = click.argument("names", nargs=-1, metavar="[NAME...]")


@main.group(cls=Commands)
def queue() -> None:
    """List, pause, cancel or add queued runs.

    The queue is a process of its own, which ends when the queue is empty. `run --detach` and `experiment --detach` add
    to it. Simulations share the processors; a live run has the machine to itself. A NAME is
    an experiment or a scenario, or the last six letters or more of a run's identifier.

    \b
      mqttlab queue list
      mqttlab queue add scenarios/demo.toml
      mqttlab queue pause                     begin nothing more
      mqttlab queue resume
      mqttlab queue cancel demo
    """


@queue.command(name="list")
@QUEUE
@click.option("--all", "everything", is_flag=True, help="Runs that have ended, too.")
def list_(place: Path | None, everything: bool) -> None:
    """List queued and running jobs, in their order.

    \b
      mqttlab queue list
      mqttlab queue list --all
    """
    from mqttlab.cli.queues import show_queue

    show_queue(place, everything)


@queue.command()
@click.argument("scenario", type=click.Path(path_type=Path))
@SET
@BACKEND
@RUNS
@CATALOG
@QUEUE
@click.option("--html/--no-html", default=True, show_default=True, help="Write report.html into the run directory.")
@click.option("--ignore-disk", is_flag=True, help="Start even if the disk seems too small for the recording.")
def add(
    scenario: Path, settings: tuple[str, ...], backend: str | None, runs: Path, catalog: str | None, place: Path | None,
    html: bool, ignore_disk: bool,
) -> None:
    """Add SCENARIO, all its repetitions, to the queue, and return at once; the same as `run --detach`.

    \b
      mqttlab queue add scenarios/demo.toml --backend sim
    """
    from mqttlab.cli.queues import hand_over

    hand_over(scenario, overrides_of(settings, backend), runs, catalog=catalog, queue=place, html=html,
              ignore_disk=ignore_disk)


@queue.command()
@NAMES
@QUEUE
def pause(names: tuple[str, ...], place: Path | None) -> None:
    """Begin none of these, or nothing at all. Running jobs go on.

    \b
      mqttlab queue pause
      mqttlab queue pause qos-loss
    """
    _queue_of(place, names).pause(names)


@queue.command()
@NAMES
@QUEUE
def resume(names: tuple[str, ...], place: Path | None) -> None:
    """Let these begin again, or everything. Also restarts the jobs of a queue that was killed.

    \b
      mqttlab queue resume
    """
    _queue_of(place, names).resume(names)


@queue.command()
@NAMES
@QUEUE
@click.option("--all", "everything", is_flag=True, help="End everything.")
def cancel(names: tuple[str, ...], place: Path | None, everything: bool) -> None:
    """End these: running jobs keep their recordings, queued jobs do not begin.

    \b
      mqttlab queue cancel demo
      mqttlab queue cancel 7Q3D2K
      mqttlab queue cancel --all
    """
    from mqttlab.errors import UsageError

    if everything == bool(names):
        raise UsageError("name what to cancel, or write --all; mqttlab queue list shows what there is")
    count = _queue_of(place, names).cancel(None if everything else names)
    say(f"{count} cancelled")


@queue.command()
@NAMES
@QUEUE
def wait(names: tuple[str, ...], place: Path | None) -> None:
    """Wait until these have ended, or everything in the queue now. Exit status: that of the worst run.

    \b
      mqttlab run scenarios/demo.toml --detach && mqttlab queue wait demo
    """
    from mqttlab.cli.queues import wait_for

    sys.exit(wait_for(place, names))


def _queue_of(place: Path | None, names: tuple[str, ...]) -> Queue:
    """The queue in which these are to be found. One that is not there has nothing, and is not made for that."""
    from mqttlab.queue import Queue, QueueError

    if names and place is not None and not place.is_dir():
        raise QueueError(f"{names[0]!r} is not in the queue; nothing is")
    return Queue(place)
