"""Named networks and TCP profiles: what people mean by "a SATCOM link" or "Linux of 2021", with sources.

``up`` leads from the clients to the broker, ``down`` from the broker to the clients.
"""

from mqttlab.networks.models import ALSO_CALLED, MODELS, WITHOUT_MODEL, NetworkModel
from mqttlab.networks.placement import PLACEMENTS, Implied, implied, place
from mqttlab.networks.tcp import PROFILES, Tcp, TcpProfile, stacks

__all__ = ["ALSO_CALLED", "MODELS", "PLACEMENTS", "PROFILES", "WITHOUT_MODEL", "Implied", "NetworkModel", "Tcp",
           "TcpProfile", "implied", "place", "stacks"]
