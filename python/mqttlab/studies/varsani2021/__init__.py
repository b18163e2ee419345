"""B. J. Varsani, Edge Class MQTT Broker Pipeline Performance Evaluation, 2021.

Its published values; it has no scenarios yet.
"""

from pathlib import Path

from mqttlab.studies import files

STUDY = files.study(
    Path(__file__).parent,
    "B. J. Varsani, Edge Class MQTT Broker Pipeline Performance Evaluation, 2021",
)

__all__ = ["STUDY"]
