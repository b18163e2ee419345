"""B. J. Varsani, Edge Class MQTT Broker Pipeline Performance Evaluation, 2021.

Rerun: its table, its figures, its claims, and what it left open, by changing one thing alone.
"""

from pathlib import Path

from mqttlab.studies.study import Study
from mqttlab.studies.varsani2021 import experiment, judges

STUDY = Study(
    title="B. J. Varsani, Edge Class MQTT Broker Pipeline Performance Evaluation, 2021",
    directory=Path(__file__).parent,
    thorough=experiment.THOROUGH,
    quick=experiment.QUICK,
    cases=experiment.cases,
    measure=experiment.measure,
    tables=lambda _: list(experiment.FAMILIES),
    compare=experiment.compare,
    claims=judges.evaluate,
    charts=judges.charts,
    probes=(
        "single-1B-1ms", "burst-1000-1024B-plain", "several-1-1B", "listed-10",
    ),
    aliases=experiment.ALIASES,
)

__all__ = ["STUDY"]
