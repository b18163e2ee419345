"""Runs: the engine started, watched and ended; run directories named and found.

Exceptions:
    EngineError: the engine is not there, or refused the plan.
    Interrupted: somebody asked for the end before there was anything to keep.
"""

from mqttlab.runs.directory import RunSummary, list_runs, take_directory
from mqttlab.runs.engine import EngineError, doctor, engine_path, is_being_written, measure, probe, recover, snapshot
from mqttlab.runs.interruption import Interrupted, Interruption
from mqttlab.runs.perform import Outcome, perform

__all__ = [
    "EngineError",
    "Interrupted",
    "Interruption",
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
