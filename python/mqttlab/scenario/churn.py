"""Clients that come and go all the time: how often all of a group's connect together, and how long each stays.

::

    connects = "50 /s"   with 1,000 clients: each comes every 20 s
    hold = "12 s"        so it stays 12 s, and is away for 8 s
"""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from mqttlab.networks.link import Part
from mqttlab.quantity import IntervalNs, PositiveDurationNs
from mqttlab.scenario.held_words import words_of_churn

if TYPE_CHECKING:
    from mqttlab.plan import types

MS = 10**6


class Churn(Part):
    """Clients that connect, subscribe, publish, disconnect and come again, from the begin of publishing to its end."""

    connects: IntervalNs = Field(description=(
        "Connections per time of the whole group, such as `\"50 /s\"`: on average and whatever the broker takes for "
        "them. With `count` it says how often each client comes."))
    hold: PositiveDurationNs = Field(ge=MS, description="From a client's coming to its DISCONNECT, from 1 ms.")
    law: Literal["constant", "exponential"] = Field(
        "constant", description="Whether `hold` is always as long, or the mean of an exponential distribution.")

    def words(self) -> str:
        """As `check` tells it."""
        return words_of_churn(self.plan(1), 1)

    def away_ns(self, clients: int) -> int:
        """From a client's leaving to its coming."""
        return clients * self.connects - self.hold

    def plan(self, clients: int) -> "types.Churn":
        """As the plan has it."""
        return {"hold_ns": self.hold, "law": self.law, "away_ns": self.away_ns(clients)}
