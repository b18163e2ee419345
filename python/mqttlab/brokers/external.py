"""A broker that somebody else runs, at an address."""

from __future__ import annotations

from typing import Any

from mqttlab.brokers.adapter import BrokerPlace, BrokerSettings


class External:
    """Nothing is started; what the scenario says of the broker's settings is only for the report."""

    is_configured = False

    def version(self) -> str:
        return ""

    def found(self, settings: BrokerSettings | None) -> str | None:
        return None

    def process(self, broker: BrokerSettings, place: BrokerPlace) -> dict[str, Any] | None:
        return None
