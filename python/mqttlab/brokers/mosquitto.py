"""Eclipse Mosquitto, with a configuration generated from the scenario's fields."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from typing import Any

from mqttlab.brokers.adapter import BrokerPlace, BrokerSettings

READY_LINE = " running"
CERTIFICATES = {"cafile": "ca.pem", "certfile": "server.pem", "keyfile": "server.key"}
# Debian puts daemons where a user's PATH does not look.
SEARCH_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


class Mosquitto:
    """Mosquitto 2.x, as its manual page mosquitto.conf(5) describes the options."""

    is_configured = True

    def found(self, settings: BrokerSettings | None = None) -> str | None:
        return shutil.which("mosquitto") or shutil.which("mosquitto", path=SEARCH_PATH)

    def version(self) -> str:
        program = self.found()
        return "" if program is None else _version(program)

    def process(self, broker: BrokerSettings, place: BrokerPlace) -> dict[str, Any] | None:
        return {
            "command": [self.found() or "mosquitto", "-c", "{directory}/mosquitto.conf"],
            "environment": {},
            "files": [{"path": "mosquitto.conf", "text": configuration(broker, place)}],
            # Written once it listens on all of its listeners.
            "ready": {"log_line": READY_LINE},
        }


def configuration(broker: BrokerSettings, place: BrokerPlace) -> str:
    """The text of ``mosquitto.conf``."""
    lines = [
        "per_listener_settings false",
        # Debian's 2.0.11 ends when all of its listeners are WebSocket's; a plain one is always there.
        f"listener {place.port} {place.address}",
        # Of a listener, and not of the broker.
        f"max_topic_alias {broker.topic_alias_maximum}",
        *(line for transport, port in place.listeners for line in listener(broker, transport, port, place)),
        "allow_anonymous true",
        # Inside a user namespace only this user exists.
        "user root",
        f"set_tcp_nodelay {_word(not broker.nagle)}",
        f"max_inflight_messages {broker.max_inflight}",
        f"max_queued_messages {broker.max_queued}",
        "max_keepalive 65535",
        f"persistence {_word(broker.persistence)}",
        "log_dest stderr",
        "log_type error",
        "log_type warning",
        "log_type notice",
        "log_type information",
        "connection_messages true",
    ]
    if broker.persistence:
        # Written after every change, so that a killed broker has its sessions when it comes back.
        lines += ["persistence_location {directory}/", "autosave_interval 1", "autosave_on_changes true"]
    return "\n".join(lines) + "\n"


def listener(broker: BrokerSettings, transport: str, port: int, place: BrokerPlace) -> list[str]:
    """The lines of a listener for what is not MQTT over plain TCP. The engine makes the certificates."""
    lines = [f"listener {port} {place.address}", f"max_topic_alias {broker.topic_alias_maximum}"]
    if transport in ("websocket", "wss"):
        lines.append("protocol websockets")
    if transport in ("tls", "wss"):
        lines += [f"{word} {{directory}}/tls/{file}" for word, file in CERTIFICATES.items()]
        lines.append(f"require_certificate {_word(place.client_certificates)}")
    return lines


@cache
def _version(program: str) -> str:
    try:
        shown = subprocess.run([program, "-h"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"mosquitto version (\S+)", shown.stdout + shown.stderr)
    return match[1] if match else ""


def _word(value: bool) -> str:
    return "true" if value else "false"
