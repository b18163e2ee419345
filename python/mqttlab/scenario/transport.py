"""What carries a group's protocol, and where a broker listens for it."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from mqttlab import secrets
from mqttlab.mistaken import closest, readable
from mqttlab.networks.link import Part, Truth, Whole
from mqttlab.quantity import shown
from mqttlab.scenario.secret import Reference, read_resource
from mqttlab.secrets import MAY_BE_SECRET, PlainPath, PlainText

AUTHORITY_BYTES_MAX = 10_000_000


class Ports(Part):
    """Ports of a broker for transports other than plain TCP."""

    websocket: Whole = Field(8083, ge=1, le=65_535, description="WebSocket.")
    tls: Whole = Field(8883, ge=1, le=65_535, description="TLS.")
    wss: Whole = Field(8084, ge=1, le=65_535, description="WebSocket over TLS.")


class Trust(Part):
    """The certificate of a broker that runs elsewhere, for clients over TLS."""

    authority: PlainPath = Field(description=(
        "A PEM file with the certificates of the authorities that they trust; `/etc/ssl/certs/ca-certificates.crt` has "
        "the system's on Debian."))
    name: PlainText | None = Field(None, min_length=1, max_length=253, description=(
        "What the broker's certificate must be for, and what clients ask for (SNI); its address when left out."))

    def certificates(self) -> str:
        """What is in the file.

        Raises:
            UserFileError: it cannot be read.
        """
        with readable(self.authority, AUTHORITY_BYTES_MAX, "certificates"):
            return self.authority.read_text(encoding="utf-8", errors="replace")


class TcpTransport(Part):
    """The clients' end of a TCP connection."""

    nagle: Truth = Field(True, description="Nagle's algorithm on the clients' sockets (Paho's default).")


def resource(value: str) -> str:
    """A resource of an HTTP request, or the mark of a secret one."""
    told = secrets.value_of(value) or ("/" if secrets.is_mark(value) else value)
    if not told.startswith("/") or not all(33 <= ord(letter) <= 126 for letter in told):
        raise ValueError(f"is {shown(value)}, but must begin with `/` and consist of printable ASCII without blanks, "
                         "such as \"/mqtt\"")
    return value


class Tls(Part):
    """TLS (RFC 5246, RFC 8446), with certificates that are made for the run; a broker that runs elsewhere has its own,
    and `tls` of the broker says how it is known."""

    version: Literal["1.2", "1.3"] = Field("1.3", description="The only version that the clients speak.")
    resumption: Truth = Field(True, description=(
        "A client that connects again resumes its session by a ticket, if it has got one."))
    client_certificate: Truth = Field(False, description=(
        "The broker asks for a certificate, and each client shows one."))


class WebSocket(Part):
    """MQTT over WebSocket (RFC 6455): a binary frame for each packet."""

    path: Annotated[
        str, MAY_BE_SECRET, BeforeValidator(read_resource, json_schema_input_type=str | Reference),
        AfterValidator(resource)] = Field(
        "/mqtt", max_length=1000, description="The resource that the clients ask for; Mosquitto takes any.")


class Transport(Part):
    """What carries the protocol: TCP, and what lies on it. `"websocket"` is short for `{ websocket = {} }`, `"tls"` for
    `{ tls = {} }`, `"wss"` for both."""

    tcp: TcpTransport = Field(TcpTransport(), description="A TCP connection.")
    tls: Tls | None = Field(None, description="TLS on it.")
    websocket: WebSocket | None = Field(None, description="WebSocket on it, or on TLS.")

    @property
    def layers(self) -> str:
        """What lies on TCP, as an endpoint is called that listens for it."""
        if self.tls is not None:
            return "tls" if self.websocket is None else "wss"
        return "tcp" if self.websocket is None else "websocket"


def shows_certificate(transport: Transport | None) -> bool:
    """Whether clients with this transport show a certificate in TLS."""
    return transport is not None and transport.tls is not None and transport.tls.client_certificate


TRANSPORTS: dict[str, dict[str, Any]] = {
    "tcp": {}, "websocket": {"websocket": {}}, "tls": {"tls": {}}, "wss": {"tls": {}, "websocket": {}}}
# As EMQX, HiveMQ and others call it, and as URLs do.
TRANSPORTS |= {"ws": TRANSPORTS["websocket"], "mqtts": TRANSPORTS["tls"]}


def read_transport(value: Any) -> Any:
    """A transport from its name alone."""
    if not isinstance(value, str):
        return value
    if value not in TRANSPORTS:
        close = closest(value, TRANSPORTS, 0.6)
        hint = f"did you mean \"{close}\"?" if close else f"known: {', '.join(TRANSPORTS)}, or a table"
        raise ValueError(f"is the unknown transport {shown(value)}; {hint}")
    return TRANSPORTS[value]
