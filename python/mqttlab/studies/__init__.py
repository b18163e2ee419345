"""Published experiments that can be rerun: their scenarios, their published values, their claims.

A study turns each printed cell into a scenario, simulates every scenario once, and puts published and simulated values
side by side. The published values are files in ``studies/<name>/published``.
"""

from mqttlab.studies.simulate import Simulations, simulate
from mqttlab.studies.study import Study
from mqttlab.studies.table import Cell, Comparison

__all__ = ["Cell", "Comparison", "Simulations", "Study", "simulate"]
