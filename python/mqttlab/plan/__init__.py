"""The plan: what was to be run, as run. What the scenario is compiled to, the engine reads, and every recording keeps.

Its type is declared once, in ``crates/plan``. Recordings outlive the program that made them: :func:`read_plan` reads a
stored plan of every schema as one of the latest.
"""

from typing import TYPE_CHECKING

from mqttlab.plan.servers import broker_of, brokers, clients_of, ports, server_of
from mqttlab.plan.stored import (
    SCHEMA,
    StoredGroup,
    StoredPlan,
    StoredServer,
    publications_of,
    read_plan,
    topics_of,
)

if TYPE_CHECKING:
    from mqttlab.plan.types import Plan

__all__ = [
    "SCHEMA",
    "Plan",
    "StoredGroup",
    "StoredPlan",
    "StoredServer",
    "broker_of",
    "brokers",
    "clients_of",
    "ports",
    "publications_of",
    "read_plan",
    "server_of",
    "topics_of",
]
