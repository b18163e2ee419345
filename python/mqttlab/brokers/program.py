"""A server that the scenario itself describes: any program, with its files and its environment."""

from __future__ import annotations

import shutil
from typing import Any

from mqttlab import secrets
from mqttlab.brokers.adapter import BrokerPlace, BrokerSettings


class Program:
    """What the scenario's ``program`` says, with `{address}` and `{port}` filled in, of a gateway its broker's
    `{broker_address}` and `{broker_port}`, of a broker whose clients ask for these `{websocket_port}`, `{tls_port}` and
    `{wss_port}` (`tls/server.pem`, `tls/server.key` and `tls/ca.pem` in its directory are made for
    it), and of a proxy of ZeroMQ `{subscriber_port}` and `{high_water_mark}`.

    The scenario's settings (``nagle``, ``max_inflight``, ...) say what the program's own files say: reports and the
    simulator read them, and nothing here can check that they agree. A window (``max_inflight``) that it does not say
    is not known: Mosquitto's default is not the program's.
    """

    is_configured = False

    def version(self) -> str:
        return ""

    def found(self, settings: BrokerSettings | None) -> str | None:
        return None if settings is None or settings.program is None else shutil.which(settings.program.command[0])

    def process(self, broker: BrokerSettings, place: BrokerPlace) -> dict[str, Any] | None:
        program = broker.program
        assert program is not None

        def filled(text: str) -> str:
            text = text.replace("{address}", place.address).replace("{port}", str(place.port))
            text = text.replace("{broker_address}", place.broker_address)
            for transport, port in place.listeners:
                text = text.replace(f"{{{transport}_port}}", str(port))
            text = text.replace("{subscriber_port}", str(place.subscriber_port))
            text = text.replace("{high_water_mark}", str(place.high_water_mark))
            return text.replace("{broker_port}", str(place.broker_port))

        def file(text: str) -> str:
            value = secrets.value_of(text)
            return filled(text) if value is None else secrets.mark(filled(value))

        return {
            "command": [filled(argument) for argument in program.command],
            "environment": {name: filled(value) for name, value in program.environment.items()},
            "files": [{"path": path, "text": file(text)} for path, text in program.files.items()],
            # Gateways listen for datagrams, which nobody accepts.
            "ready": "tcp_accept" if place.gateway is None else "udp_bound",
        }
