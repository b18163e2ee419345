"""Experiments: a scenario varied on purpose; its points, its runs in order, and one tidy table of what they yield.

An experiment file names a scenario, factors and a design (:mod:`~mqttlab.experiments.model`). The design makes points,
points in blocks make runs, and :func:`drive` has an executor perform them. What was begun and how it ended stands in a
journal (:mod:`~mqttlab.experiments.journal`), so that the same command goes on wherever it was interrupted.

Exceptions:
    ExperimentError: the file is not an experiment that can be run, or its directory is of another one.
"""

from mqttlab.experiments.directory import ExperimentDirectory, find_experiments
from mqttlab.experiments.drive import Finish, drive
from mqttlab.experiments.factors import Factor, Level
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.keep import Kept, keep
from mqttlab.experiments.load import Experiment, ExperimentError, load
from mqttlab.experiments.points import Design, Point

__all__ = [
    "Design",
    "Experiment",
    "ExperimentDirectory",
    "ExperimentError",
    "Factor",
    "Finish",
    "Kept",
    "Level",
    "Point",
    "RunRecord",
    "drive",
    "find_experiments",
    "keep",
    "load",
]
