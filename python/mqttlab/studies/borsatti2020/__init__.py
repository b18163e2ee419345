"""D. Borsatti et al., From IoT to Cloud: Applications and Performance of the MQTT Protocol, 2020.

Rerun: its figures, its claims, and what its numbers come from.
"""

from pathlib import Path

from mqttlab.studies.borsatti2020 import experiment, judges
from mqttlab.studies.study import Study

STUDY = Study(
    title="D. Borsatti et al., From IoT to Cloud: Applications and Performance of the MQTT Protocol, 2020",
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
        "20-20ms-normal-qos1", "60-60ms-normal-qos2-spread-0_5-any-order",
        "5g-mmtc-broker-at-edge-qos1",
    ),
    aliases=experiment.ALIASES,
)

__all__ = ["STUDY"]
