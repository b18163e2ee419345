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
    aliases=experiment.ALIASES,
)

__all__ = ["STUDY"]
