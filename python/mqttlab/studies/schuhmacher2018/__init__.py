"""S. Schuhmacher, L. Stolz, QoS-Eigenschaften von MQTT, 2018.

Rerun: its tables in both readings, its claims, and its future work.
"""

from pathlib import Path

from mqttlab.studies.schuhmacher2018 import experiment, judges, tables
from mqttlab.studies.study import Study

STUDY = Study(
    title="S. Schuhmacher, L. Stolz, QoS-Eigenschaften von MQTT, 2018",
    directory=Path(__file__).parent,
    thorough=experiment.THOROUGH,
    quick=experiment.QUICK,
    cases=experiment.cases,
    measure=experiment.measure,
    tables=lambda _: list(experiment.FAMILIES),
    compare=tables.compare,
    claims=judges.evaluate,
    charts=judges.charts,
    probes=(
        "trip-1B-qos2-5.3ms", "trip-10240B-qos0-1000ms-100kbps", "trip-10240B-qos1-1000ms-loss25-seed1",
        "trip-10240B-qos1-1000ms-loss25-persistent-keep-alive-5s-seed1", "connecting-loss25-syn2",
    ),
    aliases=experiment.ALIASES,
)

__all__ = ["STUDY"]
