"""Broker adapters: how a broker is configured, started and asked for its version.

An adapter is an object with the members of :class:`Adapter`, registered in :data:`ADAPTERS`. It says what to start;
the engine starts it inside the broker's host and ends it with the run.
"""

from mqttlab.brokers.adapter import Adapter, BrokerPlace
from mqttlab.brokers.external import External
from mqttlab.brokers.gateway import Gateway
from mqttlab.brokers.mosquitto import Mosquitto
from mqttlab.brokers.program import Program

ADAPTERS: dict[str, Adapter] = {
    "mosquitto": Mosquitto(), "mqttlab": Gateway(), "program": Program(), "external": External()}

__all__ = ["ADAPTERS", "Adapter", "BrokerPlace"]
