"""Runs: jobs performed by the engine, one or many at once; run directories named and found.

A :class:`Job` is one run to be made, an :class:`Executor` makes many. What the engine can do besides and its errors
are in :mod:`mqttlab.engine`.
"""

from mqttlab.runs.announced import Announced, going_on
from mqttlab.runs.directory import RunSummary, list_runs, run_places, summary_of, taken_directory
from mqttlab.runs.executor import Executor, Finished, LocalPool
from mqttlab.runs.job import Job
from mqttlab.runs.machine import live_alone
from mqttlab.runs.perform import Outcome, perform

__all__ = [
    "Announced",
    "Executor",
    "Finished",
    "Job",
    "LocalPool",
    "Outcome",
    "RunSummary",
    "going_on",
    "list_runs",
    "live_alone",
    "perform",
    "run_places",
    "summary_of",
    "taken_directory",
]
