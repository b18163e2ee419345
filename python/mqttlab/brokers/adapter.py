"""What an adapter is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mqttlab.scenario.model import Broker


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

    def process(self, broker: Broker, place: BrokerPlace) -> dict[str, Any] | None:
        """What to start, as the plan's ``BrokerProcess``; ``None`` for a broker that runs already.

        ``{directory}`` in commands and texts stands for the broker's private directory.
        """
