"""D. Borsatti et al., From IoT to Cloud: Applications and Performance of the MQTT Protocol, 2020.

Its scenarios can be rerun; tables and claims are not held against them yet.
"""

from pathlib import Path

from mqttlab.studies import files

STUDY = files.study(
    Path(__file__).parent,
    "D. Borsatti et al., From IoT to Cloud: Applications and Performance of the MQTT Protocol, 2020",
)

__all__ = ["STUDY"]
