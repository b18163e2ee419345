"""``mqttlab export``: a recording, or an experiment, in other forms, with progress where somebody watches."""

from __future__ import annotations

from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn

from mqttlab import export
from mqttlab.cli.problems import writable_file
from mqttlab.console import Console
from mqttlab.digits import whole
from mqttlab.errors import UsageError
from mqttlab.quantity import duration_ns
from mqttlab.recording import Recording
from mqttlab.terminal import say

WRITERS = {"csv": export.csv, "parquet": export.parquet, "xlsx": export.xlsx}


def export_tables(run: Path, wanted: dict[str, Path | None]) -> None:
    """Write what is wanted: by form, the place, empty for the default one in the recording; ``None`` for not at all.

    Raises:
        UsageError: nothing is wanted, or a place cannot be written to.
        ExportError: the recording does not fit into the form.
    """
    asked = {form: place for form, place in wanted.items() if place is not None}
    if not asked:
        raise UsageError("nothing to export to; add --csv, --parquet, --xlsx or --pcapng")
    for form, place in asked.items():
        if place.name:
            _writable(form, place)
    if (run / "journal.jsonl").is_file():
        from mqttlab.cli.experiment_report import export_experiment

        export_experiment(run, asked)
        return
    going_on = Recording.open(run).going_on
    if going_on:
        say(f"mqttlab: {going_on}", err=True)
    console = Console(stderr=True)
    for form, place in asked.items():
        out = place if place.name else run / ("run.xlsx" if form == "xlsx" else form)
        with Progress(TextColumn("{task.description}"), BarColumn(), console=console, transient=True,
                      disable=not console.is_terminal) as bar:
            task = bar.add_task(form, total=None)
            written = WRITERS[form](run, out, lambda name, done, total, bar=bar, task=task: bar.update(  # type: ignore[misc]
                task, completed=done, total=total, description=name))
        say(written)


def export_capture(run: Path, place: Path, message: str | None, begin: str | None, end: str | None) -> None:
    """Write the frames of a recording, of one message of it, or of a part of its time.

    Raises:
        UsageError: the place cannot be written to, or a time is none.
        ExportError: there are no such frames.
    """
    if place.name:
        writable_file(place, "--pcapng")
    recording = Recording.open(run)
    if message is not None:
        cut = export.cut_of_message(recording, *_message(recording, message))
        name = f"message-{message.replace(':', '-').replace('@', '-to-').replace('/', '-')}.pcapng"
    else:
        whole = export.Cut()
        cut = export.Cut(from_ns=_time("--from", begin, whole.from_ns), to_ns=_time("--to", end, whole.to_ns))
        name = "run.pcapng"
    out = place if place.name else run / name
    console = Console(stderr=True)
    with Progress(TextColumn("{task.description}"), BarColumn(), console=console, transient=True,
                  disable=not console.is_terminal) as bar:
        task = bar.add_task("frames", total=None)
        frames = export.pcapng(
            recording, out, cut, lambda done, total: bar.update(task, completed=done, total=total))
    say(f"{out} ({frames} frames)")


def _message(recording: Recording, words: str) -> tuple[int, int, int | None]:
    """``PUBLISHER:SEQUENCE[@SUBSCRIBER]``; clients by number or by name."""
    first, _, to = words.partition("@")
    publisher, separator, sequence = first.rpartition(":")
    if not separator or (number := whole(sequence)) is None:
        raise UsageError(f"--message {words}: write PUBLISHER:SEQUENCE or PUBLISHER:SEQUENCE@SUBSCRIBER, such as 0:17 "
                         "or client1-0:17@client2-0")
    clients = recording.layout["clients"]

    def client(word: str) -> int:
        place: int | None = clients.number(word)
        if place is not None:
            return place
        raise UsageError(f"--message {words}: there is no client {word!r}; they are numbered from 0 to "
                         f"{len(clients) - 1}, or named such as {clients.names[0]}")

    return client(publisher), number, client(to) if to else None


def _time(option: str, words: str | None, default: int) -> int:
    if words is None:
        return default
    try:
        return duration_ns(words)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from error


def _writable(form: str, place: Path) -> None:
    option = f"--{form}"
    if form == "xlsx":
        writable_file(place, option)
        return
    if place.is_file():
        raise UsageError(f"{option} {place}: this is a file; name a directory")
    writable_file(place / f"messages.{form}" if place.is_dir() else place, option)
