"""What an adapter is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class BrokerSettings(Protocol):
    """What a scenario says of its broker, as far as programs can be told."""

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
    def persistence(self) -> bool:
        """Whether sessions outlive the program."""


@dataclass(frozen=True, kw_only=True)
class BrokerPlace:
    """Where the broker is to listen."""

    address: str
    port: int


class Adapter(Protocol):
    """How to run one kind of broker."""

    def version(self) -> str:
        """The program's version as it prints it; empty when there is no program, or it cannot be asked."""

    def found(self) -> str | None:
        """The program's path; ``None`` when it is not installed or there is none to install."""

    def process(self, broker: BrokerSettings, place: BrokerPlace) -> dict[str, Any] | None:
        """What to start, as the plan's ``BrokerProcess``; ``None`` for a broker that runs already.

        ``{directory}`` in commands and texts stands for the broker's private directory.
        """
