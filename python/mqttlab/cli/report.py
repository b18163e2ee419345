"""``mqttlab report``: the tables and the page of a recording or an experiment, or one object for programs."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from mqttlab.errors import MqttlabError
from mqttlab.recording import Recording
from mqttlab.report import terminal, write_html
from mqttlab.report.document import document


class PageError(MqttlabError):
    """The page cannot be written where it should be."""

    exit_status = 1


def show_report(run: Path, out: Path | None, as_json: bool) -> None:
    """Print the tables of a recording and write its page; or print its object, and write the page only if it is named.

    Raises:
        RecordingError: the directory is not a recording, or a table cannot be read.
    """
    if (run / "journal.jsonl").is_file():
        from mqttlab.cli.experiment_report import show_experiment

        show_experiment(run, out, as_json)
        return
    recording = Recording.open(run)
    if as_json:
        written = None if out is None else str(write_html(recording, out))
        click.echo(json.dumps(document(recording) | {"page": written}, indent=2))
        return
    console = Console()
    terminal(recording, console)
    try:
        page = write_html(recording, out or run / "report.html")
    except OSError as error:
        raise PageError(f"{out or run / 'report.html'} cannot be written: {error.strerror}; write the report elsewhere "
                        f"with mqttlab report {run} --html FILE") from error
    console.print(f"report     {page}", highlight=False, soft_wrap=True, markup=False)
