"""``mqttlab report`` and ``mqttlab export`` of an experiment's directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqttlab.analysed import analysed
from mqttlab.analysis import methods
from mqttlab.cli.problems import write_page
from mqttlab.cli.thresholds import baseline_directories
from mqttlab.console import Console
from mqttlab.experiments import ExperimentDirectory
from mqttlab.experiments.found import documents
from mqttlab.report.experiment import document, print_experiment, write_csv, write_experiment, write_parquet, write_xlsx
from mqttlab.report.experiment.frames import TABLES, frames
from mqttlab.schemas import OUTPUT_SCHEMA
from mqttlab.statistics.verdicts import WORDS
from mqttlab.terminal import say, say_json

WRITERS = {"csv": write_csv, "parquet": write_parquet, "xlsx": write_xlsx}


def show_experiment(path: Path, out: Path | None, as_json: bool, *, full: bool = False) -> None:
    """Print what an experiment says and write its page; or print one object, and write the page only if it is named.

    Raises:
        ExperimentError: the directory is no experiment's, or no run of it counts yet.
    """
    directory = ExperimentDirectory.open(path)
    analysis = analysed(directory, lambda name: baseline_directories(name, None, path.absolute().parent))
    table = directory.table()
    if as_json:
        written = None if out is None else str(write_experiment(analysis, table, out))
        tables: dict[str, list[Any]] = {name: [] for name in TABLES}
        tables |= {name: frame.to_dicts() for name, frame in frames(analysis, table).items()}
        whole = {"schema": OUTPUT_SCHEMA, "experiment": str(path), "name": analysis.design.name, **document(analysis),
                 "verdicts": dict.fromkeys(WORDS, 0) | analysis.words(),
                 "pending": len(directory.pending()), "methods": methods(analysis),
                 "search": documents(directory.experiment, directory.answers()), "tables": tables, "page": written}
        say_json(whole, indent=1, ascii_only=False)
        return
    console = Console()
    pending = len(directory.pending())
    if pending:
        console.print(f"[bold yellow]{pending} runs are still to be done; this is of the others.[/]", highlight=False)
    print_experiment(analysis, console, full=full)
    page = write_page(lambda place: write_experiment(analysis, table, place), out, path / "report.html")
    console.print(f"report     {page}", highlight=False, soft_wrap=True, markup=False)


def export_experiment(path: Path, asked_for: dict[str, Path]) -> None:
    """Write an experiment's tables: by form, the place, empty for the default one in the experiment's directory.

    Raises:
        ExperimentError: the directory is no experiment's, or no run of it counts yet.
    """
    directory = ExperimentDirectory.open(path)
    analysis, table = analysed(directory), directory.table()
    for form, place in asked_for.items():
        default = path / ("experiment.xlsx" if form == "xlsx" else form)
        say(WRITERS[form](analysis, table, place if place.name else default))
