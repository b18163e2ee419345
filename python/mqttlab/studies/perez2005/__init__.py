"""J. Perez, MQTT Performance Analysis with OMNeT++, 2005.

Rerun, with tables and claims beside ours.
"""

from pathlib import Path

from mqttlab.studies.perez2005 import beyond, charts, experiment, judges, readings
from mqttlab.studies.study import Study

STUDY = Study(
    title="J. Perez, MQTT Performance Analysis with OMNeT++, 2005",
    directory=Path(__file__).parent,
    thorough=experiment.THOROUGH,
    quick=experiment.QUICK,
    full=experiment.FULL,
    cases=judges.cases,
    measure=experiment.measure,
    tables=judges.tables,
    compare=judges.compare,
    claims=judges.evaluate,
    charts=charts.charts,
    readings=readings.readings,
    aliases=beyond.ALIASES,
)

__all__ = ["STUDY"]
