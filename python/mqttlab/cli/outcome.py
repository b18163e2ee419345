"""What `run` and `import` say of a recording that has come to its end: headline and page, or the object of `--json`.

Apart from :mod:`mqttlab.cli.run`: an import needs no scenario, and reading scenarios takes long to load.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqttlab.console import Console
from mqttlab.files import from_here
from mqttlab.schemas import OUTPUT_SCHEMA
from mqttlab.terminal import say, say_json

if TYPE_CHECKING:
    from mqttlab.recording import Recording
    from mqttlab.runs import Outcome



def report_run(outcome: Outcome, html: bool, *, full: bool = False) -> Recording | None:
    """Print the headline of a run or an import, with ``full`` its tables, too, and write its page beside them; returns
    what there is to read."""
    from mqttlab.recording import Recording
    from mqttlab.report import answer, captured, terminal

    console = Console()
    if outcome.verdict == "failed":
        say(f"mqttlab: the run failed: {outcome.reason}", err=True)
        return None
    if not _has_tables(outcome):
        place = from_here(outcome.directory)
        console.print(f"ended early: {outcome.reason}", highlight=False, soft_wrap=True, markup=False)
        console.print(f"recording  {place} (incomplete; `mqttlab report {place}` makes its tables)", highlight=False,
                      soft_wrap=True, markup=False)
        return None
    recording = Recording.open(outcome.directory)
    answer(recording, console)
    if full:
        terminal(recording, console)
    console.print(f"recording  {from_here(outcome.directory)}", highlight=False, soft_wrap=True, markup=False)
    if outcome.reason:
        console.print(f"ended early: {outcome.reason}", highlight=False, soft_wrap=True, markup=False)
    page = _page(recording, outcome) if html else None
    if page is not None:
        console.print(f"report     {from_here(page)}", highlight=False, soft_wrap=True, markup=False)
    if command := captured.what_if(recording, str(from_here(outcome.directory))):
        console.print(f"what if    {command}", highlight=False, soft_wrap=True, markup=False)
    return recording


def run_document(outcome: Outcome, html: bool) -> tuple[dict[str, Any], Recording | None]:
    """What ``--json`` prints of a run or an import: ``report``'s object, or how it ended where there is none.

    Returns that, and what there is to read.
    """
    from mqttlab.recording import Recording
    from mqttlab.report.document import document, ended

    if outcome.verdict == "failed" or not _has_tables(outcome):
        return ended(outcome.directory, outcome.verdict, outcome.reason) | {"page": None}, None
    recording = Recording.open(outcome.directory)
    page = _page(recording, outcome) if html else None
    return document(recording) | {"page": None if page is None else str(page)}, recording


def print_document(
    documents: list[dict[str, Any]], status: int, thresholds: list[dict[str, Any]] | None = None,
) -> None:
    """Print the one object of ``run --json`` and ``import … --json``."""
    say_json({"schema": OUTPUT_SCHEMA, "exit_status": status, "runs": documents,
                           "thresholds": thresholds or []})


def _has_tables(outcome: Outcome) -> bool:
    """Whether there was time for tables: who has asked for the end does not wait for them now. Who has pressed Ctrl-C
    sits there, and may press it again."""
    if outcome.verdict == "incomplete" and outcome.asked not in (None, signal.SIGINT):
        return False
    return outcome.verdict != "incomplete" or (outcome.directory / "incomplete.json").exists()


def _page(recording: Recording, outcome: Outcome) -> Path | None:
    from mqttlab.report import write_html

    out = outcome.directory / "report.html"
    try:
        return write_html(recording, out)
    except OSError as error:
        # The recording is what matters, and it is there.
        say(f"mqttlab: warning: there is no report: {from_here(out)}: {error.strerror}; write it elsewhere with "
            f"mqttlab report {from_here(outcome.directory)} --html FILE", err=True)
        return None
