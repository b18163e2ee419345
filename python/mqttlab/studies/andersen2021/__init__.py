"""E. P. Andersen, Creating an Analysis Tool for Testing and Evaluating the MQTT Protocol, 2021.

Rerun, with tables and claims beside ours.
"""

from pathlib import Path

from mqttlab.studies.andersen2021 import case, charts, experiment, judges
from mqttlab.studies.study import Study

STUDY = Study(
    title="E. P. Andersen, Creating an Analysis Tool for Testing and Evaluating the MQTT Protocol, 2021",
    directory=Path(__file__).parent,
    thorough=case.THOROUGH,
    quick=case.QUICK,
    cases=experiment.cases,
    measure=experiment.measure,
    tables=experiment.tables,
    compare=experiment.compare,
    claims=judges.evaluate,
    charts=charts.charts,
    probes=(
        "tactical-broadband-image", "satcom-gps-mqtt-sn", "cnr-10-image", "cnr-1-gps-paho-1-5-run-1", "lee-2000B-1",
    ),
    aliases=experiment.ALIASES,
)

__all__ = ["STUDY"]
