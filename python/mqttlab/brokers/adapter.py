"""What an adapter is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class ProgramSettings(Protocol):
    """A program that the scenario describes."""

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables, in addition."""

    @property
    def files(self) -> dict[str, str]:
        """Texts of files by path."""


class BrokerSettings(Protocol):
    """What a scenario says of its broker, as far as programs can be told."""

    @property
    def program(self) -> ProgramSettings | None:
        """What to start, for a broker that the scenario describes itself."""

    @property
    def nagle(self) -> bool:
        """Whether Nagle's algorithm is on."""

    @property
    def max_inflight(self) -> int:
        """Messages under way to a client; 0: no limit."""

    @property
    def max_queued(self) -> int:
        """Messages that wait for a client; 0: no limit."""

    @property
    def topic_alias_maximum(self) -> int:
        """Topic aliases that a client may give."""

    @property
    def persistence(self) -> bool:
        """Whether sessions outlive the program."""


@dataclass(frozen=True, kw_only=True)
class BrokerPlace:
    """Where the server is to listen; of a gateway also where its broker does, and its part of the plan; of a proxy of
    ZeroMQ where subscribers connect to (0 for other servers), and its high-water mark."""

    address: str
    port: int
    # Further transports (`websocket`, `tls`, `wss`) and their ports.
    listeners: tuple[tuple[str, int], ...] = ()
    # Whether those with TLS ask for certificates of clients.
    client_certificates: bool = False
    broker_address: str = ""
    broker_port: int = 0
    gateway: Mapping[str, Any] | None = None
    subscriber_port: int = 0
    high_water_mark: int = 0


class Adapter(Protocol):
    """How to run one kind of broker."""

    @property
    def is_configured(self) -> bool:
        """Whether the broker is started with the settings of the scenario, its defaults too."""

    def version(self) -> str:
        """The program's version as it prints it; empty when there is no program, or it cannot be asked."""

    def found(self, settings: BrokerSettings | None) -> str | None:
        """The program's path; ``None`` when it is not installed or there is none to install. Without settings, that of
        a server as it comes."""

    def process(self, broker: BrokerSettings, place: BrokerPlace) -> dict[str, Any] | None:
        """What to start: ``command``, ``environment``, ``files`` and ``ready`` of the plan's ``ServerProcess``.

        ``None`` for a server that runs already.

        ``{directory}`` in commands and texts stands for the server's private directory, ``{engine}`` for the engine
        that performs the run.
        """
