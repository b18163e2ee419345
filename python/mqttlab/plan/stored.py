"""Stored plans of every schema, read as one of the latest.

====== =====================================================================================================
schema what was different
====== =====================================================================================================
1      one ``broker`` with ``address``, ``port``, ``settings`` and ``service`` (imports: ``ports``); groups had
       ``mqtt`` and ``tcp_nodelay``; the plan held the ``directory``
2      ``servers``; groups have ``connects_to``, ``protocol`` and ``transport``; at first one ``publish`` or null in
       place of ``publications``, and no ``events``
====== =====================================================================================================

Imports and hand-made plans know less than a plan that was performed: what they do not say stays away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, cast

if TYPE_CHECKING:
    from mqttlab.plan.types import (
        BrokerSettings,
        Event,
        LinkSpec,
        MediumSpec,
        Phases,
        Protocol,
        ProxyRole,
        Publish,
        RecordingPlan,
        Relay,
        RoleGateway,
        ServiceTime,
        SimPlan,
        Stage,
        TcpPlan,
        TraceSpec,
        Transport,
    )


SCHEMA = 2
"""The schema that the engine performs."""


class StoredBroker(TypedDict):
    """A broker, as far as a recording knows it."""

    settings: NotRequired[BrokerSettings]
    service: NotRequired[ServiceTime]


class StoredRole(TypedDict):
    """What a server that is a broker is for."""

    broker: StoredBroker


class StoredProxy(TypedDict):
    """A proxy's role."""

    proxy: ProxyRole


class StoredEndpoint(TypedDict):
    """Where a server listened."""

    transport: str
    port: int
    address: NotRequired[str]


class StoredServer(TypedDict):
    """A server, as far as a recording knows it."""

    name: str
    kind: str
    version: str
    endpoints: list[StoredEndpoint]
    # Proxies and gateways were words alone until they said to whom they pass packets on.
    role: StoredRole | StoredProxy | RoleGateway | Literal["gateway", "proxy"]
    host: NotRequired[int]


class StoredHost(TypedDict):
    """A host, as far as a recording knows it."""

    name: str
    tcp: NotRequired[TcpPlan]


class StoredNetwork(TypedDict):
    """What lay between the hosts, as far as a recording knows it."""

    kind: str
    description: NotRequired[str]
    mtu_bytes: NotRequired[int]
    links: NotRequired[list[LinkSpec]]
    media: NotRequired[list[MediumSpec]]
    traces: NotRequired[list[TraceSpec]]


class StoredGroup(TypedDict):
    """Clients alike, as far as a recording knows them."""

    name: str
    count: int
    connects_to: int
    protocol: NotRequired[Protocol]
    transport: NotRequired[Transport]
    publications: NotRequired[list[Publish]]
    relay: NotRequired[Relay | None]


class StoredPlan(TypedDict):
    """What ``plan.json`` of any recording says, of whichever schema and whoever made it."""

    name: str
    description: NotRequired[str]
    backend: str
    seed: NotRequired[int]
    phases: Phases
    stages: NotRequired[list[Stage]]
    hosts: list[StoredHost]
    network: StoredNetwork
    servers: list[StoredServer]
    groups: list[StoredGroup]
    events: NotRequired[list[Event]]
    recording: NotRequired[RecordingPlan]
    sim: NotRequired[SimPlan]
    sources: NotRequired[list[str]]


def read_plan(stored: dict[str, Any]) -> StoredPlan:
    """A stored plan as one of the latest schema. What is of the latest already is returned as it is."""
    plan = {name: value for name, value in stored.items() if name != "directory"}
    if "broker" in plan:
        plan["servers"] = [_server(plan.pop("broker"))]
    plan["servers"] = plan.get("servers") or []
    plan["groups"] = [_group(group) for group in plan.get("groups") or []]
    return cast(StoredPlan, plan)


def _server(broker: dict[str, Any]) -> dict[str, Any]:
    first = [broker["port"]] if broker.get("port") else []
    ports = first + [port for port in broker.get("ports") or [] if port not in first]
    address = {"address": broker["address"]} if "address" in broker else {}
    process = broker.get("process")
    if process is not None:
        files = [{"path": file["name"], "text": file["text"]} for file in process.get("files", [])]
        process = {**process, "environment": {}, "files": files, "ready": "tcp_accept"}
    role = {name: broker[name] for name in ("settings", "service") if broker.get(name)}
    return {
        "name": "broker", "kind": broker.get("name", ""), "version": broker.get("version", ""),
        **({"host": broker["host"]} if "host" in broker else {}),
        "endpoints": [{"transport": "tcp", **address, "port": port} for port in ports],
        "process": process, "when_it_dies": "end_run", "role": {"broker": role},
    }


def publications_of(group: Mapping[str, Any]) -> list[Any]:
    """What a group of a stored plan publishes, of whichever schema."""
    if "publications" in group:
        return list(group["publications"])
    return [group["publish"]] if group.get("publish") else []


def topics_of(group: Mapping[str, Any], publication: Mapping[str, Any]) -> str:
    """The topics of a publication, as a regular expression for whole topics."""
    topic = re.escape(str(publication.get("topic", "")).replace("{group}", str(group["name"])))
    numbered = re.sub(r"\\{(client|topic)\\}", "[0-9]+", topic)
    return f"^{numbered}$"


def _group(group: dict[str, Any]) -> dict[str, Any]:
    if "publish" in group:
        rest = {name: value for name, value in group.items() if name != "publish"}
        group = rest | {"publications": publications_of(group)}
    if "protocol" in group:
        return group
    rest = {name: value for name, value in group.items() if name not in ("mqtt", "tcp_nodelay")}
    if group.get("mqtt"):
        rest["protocol"] = {"mqtt": group["mqtt"]}
    if "tcp_nodelay" in group:
        rest["transport"] = {"tcp": {"nodelay": group["tcp_nodelay"]}}
    return {"connects_to": 0, **rest}
