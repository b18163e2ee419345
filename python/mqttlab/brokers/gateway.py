"""The engine's own servers as programs beside the clients: MQTT-SN gateway, proxy of ZeroMQ."""

from __future__ import annotations

import json
from typing import Any

from mqttlab.brokers.adapter import BrokerPlace, BrokerSettings

READY_LINE = "mqttlab gateway listens on"
PROXY_READY_LINE = "mqttlab proxy listens on"


class Gateway:
    """``mqttlab-engine gateway``: the machine that simulations drive, over a UDP socket and TCP to the broker. And
    ``mqttlab-engine proxy``, likewise, over TCP sockets."""

    is_configured = True

    def version(self) -> str:
        return ""

    def found(self, settings: BrokerSettings | None) -> str | None:
        # The engine that performs the run is there.
        return "mqttlab-engine"

    def process(self, broker: BrokerSettings, place: BrokerPlace) -> dict[str, Any] | None:
        if place.subscriber_port:
            return _proxy(place)
        settings = {
            "listen": f"{place.address}:{place.port}",
            "broker": f"{place.broker_address}:{place.broker_port}",
            "role": place.gateway,
        }
        return {
            "command": ["{engine}", "gateway", "--settings", "{directory}/gateway.json"],
            "environment": {},
            "files": [{"path": "gateway.json", "text": json.dumps(settings, indent=2) + "\n"}],
            "ready": {"log_line": READY_LINE},
        }


def _proxy(place: BrokerPlace) -> dict[str, Any]:
    settings = {
        "publishers": f"{place.address}:{place.port}",
        "subscribers": f"{place.address}:{place.subscriber_port}",
        "high_water_mark": place.high_water_mark,
    }
    return {
        "command": ["{engine}", "proxy", "--settings", "{directory}/proxy.json"],
        "environment": {},
        "files": [{"path": "proxy.json", "text": json.dumps(settings, indent=2) + "\n"}],
        "ready": {"log_line": PROXY_READY_LINE},
    }
