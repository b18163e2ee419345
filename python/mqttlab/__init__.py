"""mqttlab: the MQTT performance laboratory.

A scenario becomes a plan, a plan becomes a run, a run leaves a recording, a recording yields metrics, metrics make a
report. This package writes plans and reads recordings; the engine, a program of its own, does the rest.

For notebooks and programs: ``mqttlab.open``, ``mqttlab.compare``, ``mqttlab.experiment`` (:mod:`mqttlab.interface`).
They are loaded when they are first used: commands need less.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqttlab.interface import Comparison, Experiment, MqttlabError, Run, compare, experiment, open

from mqttlab.version import __version__

__all__ = ["Comparison", "Experiment", "MqttlabError", "Run", "__version__", "compare", "experiment", "open"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("mqttlab.interface"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
