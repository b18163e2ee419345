"""``mqttlab report`` and ``mqttlab export`` of an experiment's directory."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import click
from rich.console import Console

from mqttlab import __version__
from mqttlab.analysis import Analysis, Asked, Factor, analyse, methods
from mqttlab.experiments import ExperimentDirectory, ExperimentError
from mqttlab.experiments.model import Repetitions
from mqttlab.report.experiment import print_experiment, write_csv, write_experiment, write_parquet, write_xlsx
from mqttlab.report.experiment.frames import frames

SCHEMA = 1
WRITERS = {"csv": write_csv, "parquet": write_parquet, "xlsx": write_xlsx}


def show_experiment(path: Path, out: Path | None, as_json: bool) -> None:
    """Print what an experiment says and write its page; or print one object, and write the page only if it is named.

    Raises:
        ExperimentError: the directory is no experiment's, or no run of it counts yet.
    """
    directory = ExperimentDirectory.open(path)
    analysis = _analysed(directory)
    table = directory.table()
    if as_json:
        written = None if out is None else str(write_experiment(analysis, table, out))
        tables = {name: frame.to_dicts() for name, frame in frames(analysis, table).items()}
        whole = {"schema": SCHEMA, "experiment": str(path), "name": analysis.asked.name, "verdicts": analysis.words(),
                 "pending": len(directory.pending()), "methods": methods(analysis), "tables": tables, "page": written}
        click.echo(json.dumps(whole, indent=1, ensure_ascii=False))
        return
    console = Console()
    pending = len(directory.pending())
    if pending:
        console.print(f"[bold yellow]{pending} runs are still to be done; this is of the others.[/]", highlight=False)
    print_experiment(analysis, console)
    page = write_experiment(analysis, table, out or path / "report.html")
    console.print(f"report     {page}", highlight=False, soft_wrap=True, markup=False)


def export_experiment(path: Path, asked_for: dict[str, Path]) -> None:
    """Write an experiment's tables: by form, the place, empty for the default one in the experiment's directory.

    Raises:
        ExperimentError: the directory is no experiment's, or no run of it counts yet.
    """
    directory = ExperimentDirectory.open(path)
    analysis, table = _analysed(directory), directory.table()
    for form, place in asked_for.items():
        default = path / ("experiment.xlsx" if form == "xlsx" else form)
        click.echo(WRITERS[form](analysis, table, place if place.name else default))


def asked(directory: ExperimentDirectory) -> Asked:
    """The experiment's question, as an analysis needs it."""
    experiment, design = directory.experiment, directory.design
    file = experiment.file
    counted = file.analysis
    rule = ""
    if isinstance(file.repetitions, Repetitions):
        until = file.repetitions.until
        rule = (f"at least {file.repetitions.min} and at most {file.repetitions.max} runs of a point, until the half "
                f"width of {until.metric} was {100 * until.half_width[0] / until.half_width[1]:g} % of its mean")
    backends = sorted({record.backend for record in directory.runs()})
    return Asked(
        name=experiment.name, question=file.question, kind=design.kind, order=file.order,
        common_seeds=file.seeds == "common", resolution=design.resolution, aliases=design.aliases,
        reference=design.reference.key if design.reference else None, stopping=rule,
        family=counted.family[0] / counted.family[1], margin=counted.margin[0] / counted.margin[1],
        confidence=counted.confidence[0] / counted.confidence[1],
        lost_most_percent=100 * counted.lost_most[0] / counted.lost_most[1],
        factors=tuple(Factor(
            name=factor.name, unit=factor.unit, kind=factor.kind, scale=factor.scale,
            levels=tuple(level.text for level in factor.levels), values=tuple(level.value for level in factor.levels),
            places=factor.places or tuple(place for level in factor.levels for place, _ in level.settings))
            for factor in design.factors),
        responses=tuple((each.metric, each.scope, each.scope_name) for each in experiment.responses),
        names={"Runs were made by mqttlab": f"version {__version__}, backend {' and '.join(backends) or 'none'}",
               "The report was made with": f"Python {platform.python_version()}"})


def _analysed(directory: ExperimentDirectory) -> Analysis:
    analysis = analyse(asked(directory), directory.table())
    if not analysis.responses:
        raise ExperimentError(f"{directory.path}: no run of it counts yet; mqttlab experiment goes on with it")
    return analysis
