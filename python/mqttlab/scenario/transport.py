"""What carries a group's protocol, and where a broker listens for it."""

import difflib
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from mqttlab.networks.link import Part, Truth, Whole
from mqttlab.quantity import shown


class Ports(Part):
    """Where a broker listens for what is not MQTT over plain TCP."""

    websocket: Whole = Field(8083, ge=1, le=65_535, description="WebSocket.")


class TcpTransport(Part):
    """The clients' end of a TCP connection."""

    nagle: Truth = Field(True, description="Nagle's algorithm on the clients' sockets (Paho's default).")


def resource(value: str) -> str:
    """A resource of an HTTP request."""
    if not value.startswith("/") or not all(33 <= ord(letter) <= 126 for letter in value):
        raise ValueError(f"is {shown(value)}, but must begin with `/` and consist of printable ASCII without blanks, "
                         "such as \"/mqtt\"")
    return value


class WebSocket(Part):
    """MQTT over WebSocket (RFC 6455): a binary frame for each packet."""

    path: Annotated[str, AfterValidator(resource)] = Field(
        "/mqtt", max_length=1000, description="The resource that the clients ask for; Mosquitto takes any.")


class Transport(Part):
    """What carries the protocol: TCP, and what lies on it. `"websocket"` is short for `{ websocket = {} }`."""

    tcp: TcpTransport = Field(TcpTransport(), description="A TCP connection.")
    websocket: WebSocket | None = Field(None, description="WebSocket on it.")


TRANSPORTS: dict[str, dict[str, Any]] = {"tcp": {}, "websocket": {"websocket": {}}}
# As EMQX, HiveMQ and others call it.
TRANSPORTS["ws"] = TRANSPORTS["websocket"]


def read_transport(value: Any) -> Any:
    """A transport from its name alone."""
    if not isinstance(value, str):
        return value
    if value not in TRANSPORTS:
        close = difflib.get_close_matches(value, TRANSPORTS, n=1)
        hint = f"did you mean \"{close[0]}\"?" if close else f"known: {', '.join(TRANSPORTS)}, or a table"
        raise ValueError(f"is the unknown transport {shown(value)}; {hint}")
    return TRANSPORTS[value]
