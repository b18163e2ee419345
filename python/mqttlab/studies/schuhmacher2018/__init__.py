"""S. Schuhmacher, L. Stolz, QoS-Eigenschaften von MQTT, 2018.

Its scenarios can be rerun; tables and claims are not held against them yet.
"""

from pathlib import Path

from mqttlab.studies import files

STUDY = files.study(
    Path(__file__).parent,
    "S. Schuhmacher, L. Stolz, QoS-Eigenschaften von MQTT, 2018",
)

__all__ = ["STUDY"]
