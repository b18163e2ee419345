"""Runs: jobs performed by the engine, one or many at once; run directories named and found.

A :class:`Job` is one run to be made, an :class:`Executor` makes many. What the engine can do besides is in
:mod:`mqttlab.engine`, and is offered here, too.

Exceptions:
    EngineError: the engine is not there, or refused the plan.
    Interrupted: the end was asked for before there was anything to keep.
"""

from mqttlab.engine import (
    EngineError,
    Interrupted,
    Interruption,
    doctor,
    engine_path,
    is_being_written,
    measure,
    probe,
    recover,
    snapshot,
)
from mqttlab.runs.directory import RunSummary, list_runs, take_directory
from mqttlab.runs.executor import Executor, Finished, LocalPool
from mqttlab.runs.job import Job
from mqttlab.runs.perform import Outcome, perform

__all__ = [
    "EngineError",
    "Executor",
    "Finished",
    "Interrupted",
    "Interruption",
    "Job",
    "LocalPool",
    "Outcome",
    "RunSummary",
    "doctor",
    "engine_path",
    "is_being_written",
    "list_runs",
    "measure",
    "perform",
    "probe",
    "recover",
    "snapshot",
    "take_directory",
]
