"""What readers of a plan ask of its servers."""

from __future__ import annotations

from typing import Any


def brokers(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The servers that are brokers, in the plan's order."""
    return [server for server in plan["servers"] if "broker" in server["role"]]


def server_of(plan: dict[str, Any], group: dict[str, Any]) -> dict[str, Any] | None:
    """The server that a group connects to; ``None`` where the plan does not say."""
    index = group.get("connects_to", 0)
    servers: list[dict[str, Any]] = plan["servers"]
    return servers[index] if index < len(servers) else None


def ports(plan: dict[str, Any]) -> list[int]:
    """The ports that servers listen on, each once, in the plan's order."""
    return list(dict.fromkeys(endpoint["port"] for server in plan["servers"] for endpoint in server["endpoints"]))
