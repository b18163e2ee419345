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
    probes=(
        "ppp-50-per-s-0_0001-qos2", "e2-65B-0_0001-0_8-qos0-536-nots", "w2-200B-0ms-rts-qos0-536",
        "crowd-20-20-per-s-802.11b",
    ),
    aliases=beyond.ALIASES,
)

__all__ = ["STUDY"]
