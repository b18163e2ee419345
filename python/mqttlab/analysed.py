"""An experiment's directory, analysed: from what its file asks and its journal tells to what it says."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from mqttlab.analysis import COSTS, SERVERS, Analysis, Cost, ExperimentDesign, Factor, Judged, analyse, costs_of
from mqttlab.digits import plain
from mqttlab.experiments import ExperimentDirectory, ExperimentError
from mqttlab.experiments.baselines import baseline_values
from mqttlab.experiments.found import sentences
from mqttlab.experiments.model import Repetitions
from mqttlab.experiments.thresholds import judge
from mqttlab.recording import RecordingError
from mqttlab.version import __version__

RECORDINGS_MOST = 60
Named = Callable[[str], list[Path] | None]


def design_of(directory: ExperimentDirectory) -> ExperimentDesign:
    """The experiment's question, as an analysis needs it."""
    experiment, design = directory.experiment, directory.design
    file = experiment.file
    counted = file.analysis
    rule = ""
    if isinstance(file.repetitions, Repetitions):
        until = file.repetitions.until
        rule = (f"at least {file.repetitions.min} and at most {file.repetitions.max} runs of a point, until the half "
                f"width of {until.metric} was {plain(100 * until.half_width[0] / until.half_width[1])} % of its mean")
    backends = sorted({record.backend for record in directory.runs()})
    return ExperimentDesign(
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
        found=tuple(sentences(experiment, directory.answers())), simulated=backends == ["sim"],
        responses=tuple((each.metric, each.scope, each.scope_name) for each in experiment.responses),
        names={"Runs were made by mqttlab": f"version {__version__}, backend {' and '.join(backends) or 'none'}",
               "The report was made with": f"Python {platform.python_version()}"})


def analysed(directory: ExperimentDirectory, named: Named | None = None) -> Analysis:
    """What an experiment says, of the runs that count so far.

    Args:
        directory: the experiment's.
        named: what finds the recordings of a baseline by its name.

    Raises:
        ExperimentError: none does.
    """
    table = directory.table()
    costs = _costs(directory, table)
    analysis = analyse(design_of(directory), table, _judged(directory, named or (lambda name: None)), costs)
    if not analysis.responses:
        raise ExperimentError(f"{directory.path}: no run of it counts yet; mqttlab experiment goes on with it")
    return replace(analysis, costs_unknown=_unknown(directory, table, costs))


def _judged(directory: ExperimentDirectory, named: Named) -> tuple[Judged, ...]:
    """Every threshold at every point; where a baseline is gone, that is said."""
    experiment, found = directory.experiment, []
    records = directory.runs()
    for point in directory.design.points:
        try:
            judged = judge(experiment, [point], records, lambda name, response: baseline_values(name, response, named))
        except ExperimentError as error:
            found.append(Judged(threshold="thresholds", point=str(point), key=point.key, verdict="undecided",
                                words="; ".join(error.problems)))
            continue
        found += [Judged(threshold=each.name, point=each.point, key=point.key, verdict=each.verdict, words=each.words)
                  for each in judged]
    return tuple(found)


def _costs(directory: ExperimentDirectory, table: pl.DataFrame) -> tuple[Cost, ...]:
    """What each point costs: as the journal has it, else as the recordings tell, where they are few."""
    missing = [metric for metric in COSTS if metric not in table["metric"].to_list()]
    try:
        known = missing and not _too_many(table)
        read = [directory.table(missing, tuple(dict.fromkeys(COSTS.values())))] if known else []
    except RecordingError:
        # A recording that cannot be read costs what it costs; its values are in the journal.
        read = []
    return costs_of([table, *read])


def _too_many(table: pl.DataFrame) -> bool:
    return table.filter(pl.col("state") == "done")["run"].n_unique() > RECORDINGS_MOST


def _unknown(directory: ExperimentDirectory, table: pl.DataFrame, costs: Sequence[Cost]) -> tuple[str, ...]:
    """Of what is not known nothing is written, neither a zero: a sentence says it."""
    if _too_many(table):
        return (f"Costs are read of the recordings of up to {RECORDINGS_MOST} runs. For more runs, name the metrics as "
                "responses.",)
    counted = next((cost.values for cost in costs if cost.metric == SERVERS), {})
    done = [record for record in directory.runs() if record.kind == "run" and record.state == "done"]
    without = {record.backend for record in done if record.point_key not in counted}
    why = {"sim": "nothing is known of simulated servers", "live": "the servers took less than 0.1 s, or ran elsewhere"}
    reasons = "; ".join(words for backend, words in why.items() if backend in without)
    return (f"Processor time of the servers is not known: {reasons}.",) if reasons else ()
