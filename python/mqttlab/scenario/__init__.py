"""Scenarios: what a person writes, checked, and compiled to the plan that the engine runs.

Exceptions:
    ScenarioError: the scenario cannot be run; ``problems`` lists what is wrong, one line each, with place and remedy.
"""

from mqttlab.scenario.compile import compile_plan
from mqttlab.scenario.load import ScenarioError, load, parse, parse_values, warnings_of
from mqttlab.scenario.model import Scenario
from mqttlab.scenario.sentence import sentence

__all__ = ["Scenario", "ScenarioError", "compile_plan", "load", "parse", "parse_values", "sentence", "warnings_of"]
