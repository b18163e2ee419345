"""Scenarios: what a person writes, checked, and compiled to the plan that the engine runs.

What is named here is loaded when it is first used: a report tells a plan in words, and needs no reader of scenarios.

Exceptions:
    ScenarioError: the scenario cannot be run; ``problems`` lists what is wrong, one line each, with place and remedy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqttlab.scenario.compile import compile_plan
    from mqttlab.scenario.load import ScenarioError, parse, parse_values, warnings_of
    from mqttlab.scenario.model import Scenario

__all__ = ["Scenario", "ScenarioError", "compile_plan", "parse", "parse_values", "warnings_of"]
HOMES = {"compile": ("compile_plan",), "load": ("ScenarioError", "parse", "parse_values", "warnings_of"),
         "model": ("Scenario",)}


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
