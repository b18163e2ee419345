"""Recordings in Python, for notebooks and programs: :func:`open`, :func:`compare`, :func:`experiment`.

    import mqttlab

    run = mqttlab.open("runs/demo-20260101-120000")
    run.flows()                      # a row for each flow
    run.messages                     # a row for each message and receiver

Tables are Polars data frames; ``.to_pandas()`` makes one of pandas of each. What is named in docs/how-to/notebook.md is
promised; columns may change until 0.1, and come with a note in the changelog then.

Exceptions:
    MqttlabError: of all functions here; its text is one line that says what to do. What they raise are kinds of it:
        RecordingError, ComparisonError, ExperimentError.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab import comparison, metrics
from mqttlab.analysed import analysed
from mqttlab.analysis import Analysis
from mqttlab.errors import MqttlabError
from mqttlab.experiments import ExperimentDirectory
from mqttlab.metrics.flow import by_name, numbered
from mqttlab.recording import SUM_TABLES, TABLES, Recording, named
from mqttlab.report import headline
from mqttlab.report.comparison import document as comparison_document
from mqttlab.report.experiment import document as experiment_document
from mqttlab.report.experiment.frames import frames
from mqttlab.report.text import verdict

__all__ = ["Comparison", "Experiment", "MqttlabError", "Run", "compare", "experiment", "open"]

MESSAGES = ("publisher", "publisher_group", "publication", "sequence", "topic", "subscriber", "subscriber_group",
            "phase", "fate", "cause", "qos", "payload_bytes", "intended_s", "sent_s", "received_s", "latency_ms")
WORDS = ("topic", "phase", "fate", "cause")
INSTANTS = ("intended", "sent", "received")
QUANTILES = {"flow": pl.String, "quantile": pl.Float64, "first_ms": pl.Float64, "second_ms": pl.Float64,
             "shift_ms": pl.Float64}
PERCENT = dict.fromkeys(("percent", "low_percent", "high_percent"), pl.Float64)


@dataclass(frozen=True)
class Run:
    """One recording: a live run, a simulation, or an import."""

    directory: Path
    """Where it is."""
    _recording: Recording = field(repr=False)

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self._recording.name

    @property
    def verdict(self) -> str:
        """``valid``, ``not valid`` or ``incomplete``: how far its numbers can be trusted."""
        return verdict(self._recording)[0]

    @property
    def reasons(self) -> list[str]:
        """Why, and what else to read before a number is used."""
        return verdict(self._recording)[1]

    @property
    def headline(self) -> dict[str, Any]:
        """What a report says first, as ``mqttlab report --json`` has it (docs/reference/output.md)."""
        return headline.document(self._recording)

    @cached_property
    def messages(self) -> pl.DataFrame:
        """A row for each message and receiver, in the order of publishers and their counts.

        Columns: ``publisher`` and ``subscriber`` (names of clients), ``publisher_group``, ``publication`` (its topic,
        where the group has several), ``sequence`` (the publisher's own count), ``topic``, ``subscriber_group``,
        ``phase``, ``fate``, ``cause``, ``qos``, ``payload_bytes``; ``intended_s``, ``sent_s`` and ``received_s`` in
        seconds of the run; ``latency_ms``. What is not known is null. docs/reference/recording.md has the meaning of
        each. Of a run with ``recording.detail = "summary"`` these are the messages of the sample.

        Raises:
            RecordingError: the table cannot be read.
        """
        table = self._recording.scan("messages")
        if not table.collect_schema():
            return pl.DataFrame(schema=dict.fromkeys(MESSAGES, pl.String))
        clients = self._recording.layout["clients"].names
        rows = numbered(table, self._recording).with_columns(
            *by_name(self._recording),
            named("publisher", clients), named("subscriber", clients), pl.col(WORDS).cast(pl.String),
            *((pl.col(f"{instant}_ns") / 1e9).alias(f"{instant}_s") for instant in INSTANTS),
            latency_ms=pl.col("latency_ns") / 1e6)
        return self._recording.collect(rows.select(MESSAGES))

    def flows(self) -> pl.DataFrame:
        """A row for each flow: who publishes what for whom at which QoS, with its counts and latencies.

        Columns: ``publisher_group``, ``publication``, ``subscriber_group``, ``qos``, then the metrics of messages that
        docs/reference/metrics.md lists; times in ms. Empty where no message was measured.

        Raises:
            RecordingError: a table cannot be read.
        """
        return metrics.application(self._recording, metrics.FLOW)

    def clients(self) -> pl.DataFrame:
        """A row for each client with the messages of the measurement, the worst first: least delivered, then slowest.

        Raises:
            RecordingError: a table cannot be read.
        """
        each = metrics.messages_by_device(self._recording)
        return each if each.is_empty() else metrics.worst_first(each).drop("number")

    def summary(self, scope: str | None = None) -> pl.DataFrame:
        """A row for each metric that is one number: ``scope``, ``name``, ``metric``, ``value``, ``unit``.

        Args:
            scope: of this scope alone, such as ``run``, ``qos``, ``groups`` or ``link`` (docs/reference/metrics.md).

        Raises:
            RecordingError: a table cannot be read.
        """
        return metrics.summary(self._recording, scopes=None if scope is None else [scope])

    def table(self, name: str) -> pl.DataFrame:
        """A table of the recording as it is stored, such as ``packets`` or ``events`` (docs/reference/recording.md).

        Raises:
            MqttlabError: there is no table of this name.
            RecordingError: the table cannot be read.
        """
        known = (*TABLES, *SUM_TABLES)
        if name not in known:
            raise MqttlabError(f"a recording has no table {name!r}; it has {', '.join(known)}")
        return self._recording.table(name)

    def stage(self, name: str) -> Run:
        """The same recording, of whose measurement one stage is looked at alone.

        Raises:
            RecordingError: its scenario has no such stage.
        """
        return Run(self.directory, self._recording.of_stage(name))

    def compare(self, other: Run | str | Path, *, tolerance_percent: float = 5.0) -> Comparison:
        """What differs in another run; this one is the reference. See :func:`compare`."""
        return compare(self, other, tolerance_percent=tolerance_percent)


@dataclass(frozen=True)
class Comparison:
    """Two runs, or groups of runs, side by side; the first one is the reference."""

    answer: str
    """What differs, in a sentence."""
    basis: str
    """How many runs that rests on."""
    cautions: list[str]
    """What to read first: sides that are not valid, incomplete, or to which nothing was delivered."""
    headlines: pl.DataFrame
    """A row for each number of the headlines: ``of``, ``measure``, ``state`` (``differs``, ``undecided``, ``same``),
    ``first`` and ``second`` (lists, a value for each run), ``percent``, ``low_percent``, ``high_percent``."""
    metrics: pl.DataFrame
    """The same of each metric that is one number, with its interval and verdict, as ``mqttlab compare --json`` has
    it."""
    quantiles: pl.DataFrame
    """A row for each flow and quantile of the latency: ``flow``, ``quantile``, ``first_ms``, ``second_ms``,
    ``shift_ms``."""


@dataclass(frozen=True)
class Experiment:
    """An experiment: its runs, points and what it says."""

    directory: Path
    """Where it is."""
    answer: str
    """One or two sentences."""
    runs: pl.DataFrame
    """The tidy table: a row for each run and response, with the levels of its point beside it."""
    _analysis: Analysis = field(repr=False)

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """What ``mqttlab export`` writes of it, by name: ``runs``, ``points``, ``effects`` and others."""
        return frames(self._analysis, self.runs)


def open(directory: str | Path) -> Run:
    """A recording.

    Args:
        directory: the recording's, such as ``runs/demo-20260101-120000``.

    Raises:
        RecordingError: there is none, or it is of a later version.
    """
    place = Path(directory)
    return Run(place, Recording.open(place))


def compare(
    first: Run | str | Path, second: Run | str | Path, *, tolerance_percent: float = 5.0,
) -> Comparison:
    """What differs between two sides.

    Args:
        first: the reference: a run, the directory of a recording or of several, a pattern, or a point of an experiment
            (``runs/NAME#12``), as on the command line.
        second: the other side. Where one side is a stage of a run, that stage of the other one is taken.
        tolerance_percent: differences below this are none.

    Raises:
        ComparisonError: the runs cannot be compared.
        RecordingError: one of them is no recording.
    """
    stages = {one._recording.stage for one in (first, second) if isinstance(one, Run)} - {None}
    if len(stages) > 1:
        raise comparison.ComparisonError(f"two stages, {' and '.join(map(str, stages))}, are no sides of a comparison; "
                                         "take one stage of both runs")
    made = comparison.compare(_side(first), _side(second), tolerance_percent=tolerance_percent,
                              stage=next(iter(stages), None))
    said, data = comparison_document(made), made.data(by_message=False)
    return Comparison(
        answer=said["answer"], basis=said["basis"], cautions=said["cautions"],
        headlines=pl.DataFrame(said["headlines"], schema_overrides=PERCENT, infer_schema_length=None),
        metrics=pl.DataFrame(data["metrics"], infer_schema_length=None),
        quantiles=pl.DataFrame([{name: row[name] for name in QUANTILES} for row in data["quantiles"]], QUANTILES))


def _side(one: Run | str | Path) -> comparison.Side:
    if isinstance(one, Run):
        return comparison.Side(one.directory.name, (one._recording,))
    return comparison.gather(str(one))


def experiment(directory: str | Path) -> Experiment:
    """An experiment that has runs.

    Args:
        directory: the experiment's.

    Raises:
        ExperimentError: it is no experiment's, or no run of it counts yet.
    """
    place = Path(directory)
    opened = ExperimentDirectory.open(place)
    analysis = analysed(opened)
    return Experiment(place, experiment_document(analysis)["answer"], opened.table(), analysis)
