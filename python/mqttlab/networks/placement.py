"""Where a network model is applied between clients and broker.

Papers say "100 ms" and mean one direction, both, or half of each; these presets have names, and each tells the
one-way and round-trip figures that it implies.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqttlab.networks.link import LinkDirection
from mqttlab.networks.models import NetworkModel

PLACEMENTS = {
    "egress-at-broker": "the broker's interface alone: what the broker sends is shaped, what it receives is not",
    "both": "each direction has the model's rate, delay and loss",
    "split": "each direction has the model's rate and loss, and half its delay",
    "shared-medium": "both directions share one transmitter of the downlink's figures, as a half-duplex radio does",
}


@dataclass(frozen=True)
class Placed:
    """Links for both directions; ``None`` for no emulation; ``shared`` when both are the same transmitter."""

    up: LinkDirection | None
    down: LinkDirection | None
    shared: bool = False


@dataclass(frozen=True)
class Implied:
    """What a placement means for an empty network, without serialisation (ms)."""

    up_ms: float
    down_ms: float

    @property
    def round_trip_ms(self) -> float:
        """A TCP segment and its acknowledgement."""
        return self.up_ms + self.down_ms


def place(model: NetworkModel, placement: str) -> Placed:
    """The links of a model under a placement preset."""
    if placement == "egress-at-broker":
        return Placed(None, model.down)
    if placement == "split":
        return Placed(_halved(model.up), _halved(model.down))
    if placement == "shared-medium":
        return Placed(model.down, model.down, shared=True)
    return Placed(model.up, model.down)


def implied(placed: Placed) -> Implied:
    """The delays that a placement implies."""
    return Implied(_delay_ms(placed.up), _delay_ms(placed.down))


def _halved(link: LinkDirection) -> LinkDirection:
    return link.model_copy(update={"delay": link.delay // 2, "jitter": link.jitter // 2})


def _delay_ms(link: LinkDirection | None) -> float:
    return 0.0 if link is None else link.delay / 1e6
