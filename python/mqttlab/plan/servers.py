"""What readers of a plan ask of its servers."""

from __future__ import annotations

from typing import cast

from mqttlab.plan.stored import StoredBroker, StoredGroup, StoredPlan, StoredRole, StoredServer


def brokers(plan: StoredPlan) -> list[StoredServer]:
    """The servers that are brokers, in the plan's order."""
    return [server for server in plan["servers"] if broker_of(server) is not None]


def broker_of(server: StoredServer) -> StoredBroker | None:
    """What is known of a server as a broker; ``None`` for a gateway or a proxy."""
    role = server["role"]
    # Readers of older recordings know roles as words.
    return None if isinstance(role, str) or "broker" not in role else cast(StoredRole, role)["broker"]


def server_of(plan: StoredPlan, group: StoredGroup) -> StoredServer | None:
    """The server that a group connects to; ``None`` where the plan does not say."""
    index = group["connects_to"]
    return plan["servers"][index] if index < len(plan["servers"]) else None


def clients_of(plan: StoredPlan, server: StoredServer) -> list[str]:
    """The names of the groups that connect to a server."""
    return [group["name"] for group in plan["groups"] if server_of(plan, group) is server]


def ports(plan: StoredPlan) -> list[int]:
    """The ports that servers listen on, each once, in the plan's order."""
    return list(dict.fromkeys(endpoint["port"] for server in plan["servers"] for endpoint in server["endpoints"]))
