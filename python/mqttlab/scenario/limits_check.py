"""On which hosts there may be limits: crates/plan, limits.rs, has the same rules."""

from __future__ import annotations

from collections.abc import Iterator

from mqttlab.scenario.location import Location, Problem
from mqttlab.scenario.model import Scenario


def limit_problems(scenario: Scenario) -> Iterator[Problem]:
    """What is wrong with the limits of hosts."""
    for name, host in scenario.hosts.items():
        if host.limits is not None:
            yield from _of_host(scenario, name, ("hosts", name, "limits"))


def _of_host(scenario: Scenario, name: str, place: Location) -> Iterator[Problem]:
    limits = scenario.hosts[name].limits
    assert limits is not None
    ours = next((group.name for group in scenario.groups if group.host == name and group.client is None), None)
    if ours is not None:
        yield place, (f"holds servers and programs, but the clients of group `{ours}` are mqttlab's own; give the "
                      "group another host")
    servers = [server for _, server in scenario.all_servers if server.host == name]
    if scenario.backend == "live":
        elsewhere = next((server.name for server in servers if server.kind == "external"), None)
        if elsewhere is not None:
            yield place, f"is set, but `{elsewhere}` runs elsewhere, out of reach; leave it out"
        return
    if len(servers) > 1:
        names = " and ".join(f"`{server.name}`" for server in servers[:2])
        yield place, f"is shared by {names}, but a simulated host with limits has one server; give each a host"
    other = next((server for server in servers if server.role != "broker"), None)
    if other is not None and "memory" in limits.in_force:
        yield (*place, "memory"), (f"is set, but of simulated servers only a broker has memory, and `{other.name}` is "
                                   f"a {other.role}; leave it out, or use `backend = \"live\"`")
