"""``mqttlab report``: the tables and the page of a recording or an experiment, or one object for programs."""

from __future__ import annotations

from pathlib import Path

from mqttlab.cli.problems import write_page
from mqttlab.console import Console
from mqttlab.recording import Recording
from mqttlab.report import answer, terminal, write_html
from mqttlab.report.document import document
from mqttlab.terminal import say_json


def show_report(run: Path, out: Path | None, as_json: bool, *, full: bool = False) -> None:
    """Print the headline of a recording, with ``full`` its tables, too, and write its page; or print its object, and
    write the page only if it is named.

    Raises:
        RecordingError: the directory is not a recording, or a table cannot be read.
    """
    if (run / "journal.jsonl").is_file():
        from mqttlab.cli.experiment_report import show_experiment

        show_experiment(run, out, as_json, full=full)
        return
    recording = Recording.open(run)
    if as_json:
        written = None if out is None else str(write_html(recording, out))
        say_json(document(recording) | {"page": written})
        return
    console = Console()
    answer(recording, console)
    if full:
        terminal(recording, console)
    page = write_page(lambda place: write_html(recording, place), out, run / "report.html")
    console.print(f"report     {page}", highlight=False, soft_wrap=True, markup=False)
