"""Names of hosts with a slip: a network joins a host with nothing on it, and none joins one of nearly that name."""

from __future__ import annotations

from dataclasses import dataclass

from mqttlab.mistaken import closest
from mqttlab.quantity import shown
from mqttlab.scenario.model import Scenario

LIKENESS = 0.6


@dataclass(frozen=True, kw_only=True)
class HostSlip:
    """Two names that are one host's."""

    host: str
    """That of the group or server, which no network joins."""
    words: str
    """What is wrong, behind the place of the network's ``between``."""


def host_slips(scenario: Scenario) -> dict[int, HostSlip]:
    """The networks whose hosts have such a name, by number. Which of the two names is meant nobody knows."""
    users = {group.host: f"group `{group.name}`" for group in reversed(scenario.groups)}
    users |= {server.host: f"server `{server.name}`" for _, server in scenario.all_servers}
    if scenario.network != "emulated" or scenario.radio is not None:
        return {}
    # Who is on one host needs no network.
    ends = {host for group in scenario.groups if group.host != (other := scenario.server_of(group).host)
            for host in (group.host, other)}
    unjoined = ends - {name for network in scenario.networks for name in network.between}
    forwarding = {name for name, host in scenario.hosts.items() if host.forwards}
    found = {}
    for index, network in enumerate(scenario.networks):
        for name in network.between:
            near = None if name in users or name in forwarding else closest(name, unjoined, LIKENESS)
            if near is not None:
                found[index] = HostSlip(host=near, words=(
                    f"is {shown(list(network.between))}, but nothing is on `{name}`, and no network joins `{near}`, "
                    f"the host of {users[near]}; use one name for both"))
    return found
