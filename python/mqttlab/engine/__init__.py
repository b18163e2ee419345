"""The engine's program: where it is, its small commands, and how engines that run are told to end.

Runs of plans are in :mod:`mqttlab.runs`; this package is below it and below :mod:`mqttlab.recording`, which lets the
engine finish what a killed run has left.

Exceptions:
    EngineError: the engine is not there, or refused what it was given.
    Interrupted: the end was asked for before there was anything to keep.
"""

from mqttlab.engine.hiding import hide, hide_abandoned, hide_in_files
from mqttlab.engine.interruption import Interrupted, Interruption
from mqttlab.engine.locks import held, is_locked
from mqttlab.engine.program import (
    EngineError,
    MachineError,
    cannot_be_written,
    doctor,
    engine_path,
    is_being_written,
    measure,
    probe,
    recover,
    snapshot,
    summarise,
)

__all__ = [
    "EngineError",
    "Interrupted",
    "Interruption",
    "MachineError",
    "cannot_be_written",
    "doctor",
    "engine_path",
    "held",
    "hide",
    "hide_abandoned",
    "hide_in_files",
    "is_being_written",
    "is_locked",
    "measure",
    "probe",
    "recover",
    "snapshot",
    "summarise",
]
