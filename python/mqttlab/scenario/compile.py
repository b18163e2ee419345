"""From a scenario to the plan: every default and seed filled in, nothing left to choose.

The plan's fields are those of ``crates/plan``; the engine refuses what it does not know, and a test has it read what
is made here.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, cast

from mqttlab.brokers import ADAPTERS, BrokerPlace
from mqttlab.networks import stacks
from mqttlab.plan import SCHEMA
from mqttlab.scenario.access import first_hosts, host_counts, host_names
from mqttlab.scenario.credentials import listed_credentials
from mqttlab.scenario.event_plan import planned_events, publishing_of
from mqttlab.scenario.event_publish import Publishing
from mqttlab.scenario.model import Group, Host, Readiness, Scenario, Server, Subscription
from mqttlab.scenario.mqtt import Mqtt, Will
from mqttlab.scenario.mqtt_sn import MqttSn
from mqttlab.scenario.publish import SIZES, Publish, Replay
from mqttlab.scenario.routes import LaidLinks, network, planned_traces
from mqttlab.scenario.template import parts_of
from mqttlab.scenario.transport import Transport, shows_certificate
from mqttlab.scenario.zeromq import ZeroMq

if TYPE_CHECKING:
    from mqttlab.plan import types

S = 10**9
SESSION_EXPIRY_DEFAULT = 3600 * S
RECEIVE_MAXIMUM_DEFAULT = 65_535
TRANSPORT_DEFAULT = Transport()
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
# Rows of messages that are added up at once, and rows of the sample.
FOLD_BYTES, SAMPLE_ROWS = 32 << 20, 200_000
# Addresses exist only inside the namespaces that the run makes.
FIRST_ADDRESS = (10 << 24) + (77 << 16) + 1


def compile_plan(scenario: Scenario, repetition: int = 0) -> types.Plan:
    """The plan of one repetition, as the JSON object that the engine reads.

    Args:
        scenario: as loaded and checked.
        repetition: from 0; each has a seed of its own.
    """
    hosts = _Hosts(scenario)
    between, laid = network(scenario, hosts, hosts.servers)
    publishing = publishing_of(scenario)
    events = planned_events(scenario, laid, publishing) if scenario.events else []
    between["traces"] = planned_traces(laid, scenario.phases.warm_up)
    plan: types.Plan = {
        "schema": SCHEMA,
        "name": scenario.name,
        "description": scenario.description,
        "backend": scenario.backend,
        "seed": repetition_seed(scenario.seed, repetition),
        "repetition": repetition,
        "phases": {
            "connect_timeout_ns": scenario.phases.connect_timeout,
            "warm_up_ns": scenario.phases.warm_up,
            "duration_ns": scenario.phases.duration,
            "cool_down_ns": scenario.phases.cool_down,
        },
        "hosts": hosts.plan(),
        "network": cast("types.Network", between),
        "servers": [_server(scenario, server, hosts) for _, server in scenario.all_servers],
        "groups": [_group(scenario, group, hosts, first, publishing.get(group.name))
                   for group, first in zip(scenario.groups, first_hosts(scenario), strict=True)],
        "events": events,
        "recording": _recording(scenario),
        "live": {
            "real_time": scenario.live.real_time,
            "latency_compensation_ns": scenario.live.latency_compensation,
            "probe_ns": scenario.live.probe,
            "port": scenario.live.port,
            "workers": scenario.live.workers,
            "parts": scenario.live.parts,
        },
        "sim": _sim(scenario, hosts),
    }
    # A measurement that is one whole has none, as in plans of before.
    if scenario.phases.stages:
        plan["stages"] = _run_stages(scenario)
    return plan


def _run_stages(scenario: Scenario) -> list[types.Stage]:
    """The stages of the measurement, since publishing began."""
    begins = scenario.phases.warm_up
    return [{"name": stage.name, "from_ns": begins + begin, "until_ns": begins + end, "measured": stage.measured}
            for stage, begin, end in scenario.phases.spans()]


def _recording(scenario: Scenario) -> types.RecordingPlan:
    recording = scenario.recording
    plan: dict[str, Any] = {
        "packets": recording.packets,
        "pcapng": recording.pcapng,
        "payloads": recording.payloads,
        "resource_interval_ns": recording.resource_interval,
        "tcp_state_interval_ns": recording.tcp_state_interval,
    }
    if recording.detail == "summary":
        plan["summary"] = {"fold_bytes": FOLD_BYTES, "rows_most": SAMPLE_ROWS}
    return cast("types.RecordingPlan", plan)


def laid_links(scenario: Scenario) -> LaidLinks:
    """Which of the plan's links are whose in the scenario."""
    hosts = _Hosts(scenario)
    return network(scenario, hosts, hosts.servers)[1]


def repetition_seed(seed: int, repetition: int) -> int:
    """The scenario's own seed for the first repetition, an unrelated one for each other."""
    if repetition == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{repetition}".encode()).digest()[:8], "big") >> 1


class _Hosts:
    """The plan's hosts in order, and where each name's first one is."""

    def __init__(self, scenario: Scenario) -> None:
        self.servers = list(dict.fromkeys(server.host for _, server in scenario.all_servers))
        self.first: dict[str, int] = {}
        self.count: dict[str, int] = {}
        self.named: dict[str, Host] = {}
        self.entries: list[tuple[str, str]] = []
        counts = host_counts(scenario)
        for name in host_names(scenario):
            host = scenario.hosts.get(name, Host())
            self.named[name] = host
            self.first[name] = len(self.entries)
            count = self.count[name] = counts.get(name, 1)
            labels = [name] if count == 1 else [f"{name}-{index}" for index in range(count)]
            self.entries += [(label, name) for label in labels]

    def plan(self) -> list[types.Host]:
        # Hosts of one name have one TCP: made once, for there may be tens of thousands.
        tcp = {name: cast("types.TcpPlan", host.tcp.plan()) for name, host in self.named.items()}
        limits = {name: {} if host.limits is None else {"limits": cast("types.HostLimits", host.limits.plan())}
                  for name, host in self.named.items()}
        return [cast("types.Host", {"name": label, "address": _address(index), "tcp": tcp[name], **limits[name]})
                for index, (label, name) in enumerate(self.entries)]

    def stacks(self) -> dict[str, types.Stack]:
        return cast("dict[str, types.Stack]", stacks({host.tcp.profile for host in self.named.values()}))

    def members(self, name: str) -> range:
        return range(self.first[name], self.first[name] + self.count[name])

    def label(self, index: int) -> str:
        return self.entries[index][0]


def _address(index: int) -> str:
    number = FIRST_ADDRESS + index
    return ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))


def _server(scenario: Scenario, server: Server, hosts: _Hosts) -> types.Server:
    index = hosts.first[server.host]
    # On a loopback network all hosts are one; several servers still need an address each.
    alone = scenario.network == "loopback" and len(scenario.all_servers) == 1
    address = server.address or ("127.0.0.1" if alone else _address(index))
    adapter = ADAPTERS[server.kind]
    simulated = scenario.backend == "sim"
    place = _place(scenario, server, address, hosts)
    process = None if simulated else adapter.process(server, place)
    return {
        "name": server.name,
        "kind": server.kind,
        "version": "" if simulated else adapter.version(),
        "host": index,
        "endpoints": _endpoints(scenario, server, address),
        "process": None if process is None else {
            "command": process["command"],
            "environment": process["environment"],
            "files": process["files"],
            "ready": process["ready"] if server.ready is None else _readiness(server.ready),
            "start_timeout_ns": server.start_timeout,
        },
        "trust": None if simulated or server.tls is None else {
            "authorities": _certificates(server.tls.certificates()),
            "name": server.tls.name},
        "when_it_dies": "go_on" if server.when_it_dies == "go-on" else "end_run",
        "role": _role(scenario, server),
    }


def _certificates(text: str) -> str:
    """What a file of authorities has of certificates: a file that has a key, too, keeps that."""
    return "\n".join(CERTIFICATE.findall(text)) + "\n" if "PRIVATE KEY-----" in text else text


def _endpoints(scenario: Scenario, server: Server, address: str) -> list[types.Endpoint]:
    """Where a server listens: for MQTT over plain TCP first, and for what its clients' transports ask. A proxy of
    ZeroMQ for publishers first."""
    first = "udp" if server.role == "gateway" else "tcp"
    listeners = [(first, server.port), *scenario.listeners(server)]
    if server.role == "zeromq":
        listeners = [("tcp", server.port), ("tcp", server.subscriber_port)]
    return [{"transport": cast("types.EndpointTransport", transport), "address": address, "port": port}
            for transport, port in listeners]


def _role(scenario: Scenario, server: Server) -> types.Role:
    if server.role == "broker":
        return {"broker": _broker(server, simulated=scenario.backend == "sim")}
    if server.role == "gateway":
        return {"gateway": _gateway(scenario, server)}
    if server.role == "zeromq":
        return {"zeromq": {"high_water_mark": server.zeromq.high_water_mark, "service": _service(server)}}
    to = None if server.passes_to is None else scenario.server_numbers[server.passes_to]
    return {"proxy": {"to": to, "service": _service(server)}}


def _asks_for_certificates(scenario: Scenario, server: Server) -> bool:
    """Whether a server's clients over TLS have certificates: all of them, as is checked."""
    return any(shows_certificate(group.transport) for group in scenario.groups_of(server))


def _place(scenario: Scenario, server: Server, address: str, hosts: _Hosts) -> BrokerPlace:
    """Where a server listens, and a gateway's broker."""
    if server.role == "zeromq":
        return BrokerPlace(
            address=address, port=server.port, subscriber_port=server.subscriber_port,
            high_water_mark=server.zeromq.high_water_mark)
    if server.role != "gateway":
        return BrokerPlace(address=address, port=server.port, listeners=tuple(scenario.listeners(server)),
                           client_certificates=_asks_for_certificates(scenario, server))
    broker = scenario.broker_of(server)
    return BrokerPlace(
        address=address, port=server.port, broker_address=broker.address or _address(hosts.first[broker.host]),
        broker_port=broker.port, gateway=dict(_gateway(scenario, server)))


def _gateway(scenario: Scenario, server: Server) -> types.GatewayRole:
    gateway = server.gateway
    return {
        "broker": scenario.server_numbers[scenario.broker_of(server).name],
        "mode": gateway.mode,
        "id": gateway.id,
        "client_id": gateway.client_id,
        "keep_alive_s": gateway.keep_alive // S,
        "retry_ns": gateway.retry,
        "retries": gateway.retries,
        "window": gateway.window,
        "buffer": gateway.buffer,
        "clients_max": gateway.clients_max,
        "broker_window": gateway.broker_window,
        "broker_queue": gateway.broker_queue,
        "filter_duplicates": gateway.filter_duplicates,
        "advertise_ns": gateway.advertise,
        "predefined_topics": _predefined(gateway.predefined_topics),
        "service": _service(server),
    }


def _predefined(topics: dict[str, int]) -> list[types.PredefinedTopic]:
    return [{"id": number, "name": name} for name, number in topics.items()]


def _readiness(ready: Readiness) -> types.Readiness:
    if ready.line is not None:
        return {"log_line": ready.line}
    if ready.kind == "connack":
        return "connack"
    return "udp_bound" if ready.kind == "udp-bound" else "tcp_accept"


def _broker(server: Server, *, simulated: bool) -> types.BrokerRole:
    # The default is Mosquitto's. Of a broker that is started otherwise no window is known but what the scenario says.
    is_known = simulated or ADAPTERS[server.kind].is_configured or "max_inflight" in server.model_fields_set
    return {
        "settings": {
            "tcp_nodelay": not server.nagle,
            "max_inflight": server.max_inflight if is_known else 0,
            "max_queued": server.max_queued,
            "retry": None if server.retry is None else {"interval_ns": server.retry},
            "persistence": server.persistence,
            "topic_alias_maximum": server.topic_alias_maximum,
        },
        "service": _service(server),
    }


def _service(server: Server) -> types.ServiceTime:
    return {
        "per_packet_ns": server.service.per_packet,
        "per_copy_ns": server.service.per_copy,
        "jitter": list(server.service.jitter),
    }


def _group(
    scenario: Scenario, group: Group, hosts: _Hosts, first_host: int, publishing: Publishing | None,
) -> types.Group:
    connect_over = group.connect_over if group.connect_over is not None else group.count * 2_000_000
    plan: types.Group = {
        "name": group.name,
        "count": group.count,
        "host": hosts.first[group.host] + first_host,
        "host_step": 1 if hosts.count[group.host] > 1 else 0,
        "connects_to": scenario.server_numbers[scenario.server_of(group).name],
        "protocol": _protocol(scenario, group),
        "transport": "udp" if group.protocol == "mqtt-sn" else {"tcp": _tcp(group)},
        "reconnect": {
            "enabled": group.reconnect.enabled,
            "initial_ns": group.reconnect.initial,
            "maximum_ns": group.reconnect.maximum,
            "jitter": list(group.reconnect.jitter),
            "connect_timeout_ns": group.reconnect.timeout,
        },
        "connect_over_ns": connect_over,
        "publications": [_publish(publish, group) for _, publish in group.publications],
        "changed_publications": [] if publishing is None else [
            {"publication": number, "publish": _publish(publish, group)}
            for number, publish in publishing.contents],
        "subscriptions": [_subscribed(subscription) for subscription in group.subscribe],
        "relay": None if group.relay is None else {"topic_suffix": group.relay.suffix, "qos": group.relay.qos},
        "late_after_ns": group.late_after,
        "program": None if group.client is None else {
            "command": group.client.command,
            "environment": group.client.environment,
            "files": [{"path": path, "text": text} for path, text in group.client.files.items()],
            "ready_line": group.client.ready_line,
        },
    }
    if 1 < hosts.count[group.host] < group.count:
        plan["hosts_in_turn"] = hosts.count[group.host]
    if group.churn is not None:
        plan["churn"] = group.churn.plan(group.count)
    return plan


def _subscribed(subscription: Subscription) -> types.Subscription:
    planned: types.Subscription = {"filter": subscription.filter, "qos": subscription.qos}
    if subscription.retain_handling is not None:
        planned["retain_handling"] = subscription.retain_handling
    if subscription.retain_as_published:
        planned["retain_as_published"] = True
    if subscription.no_local:
        planned["no_local"] = True
    return planned


def _tcp(group: Group) -> types.TcpTransport:
    transport = group.transport or TRANSPORT_DEFAULT
    tls, websocket = transport.tls, transport.websocket
    return {
        # libzmq sets TCP_NODELAY on all of its sockets.
        "nodelay": group.protocol == "zeromq" or not group.uses_nagle,
        "tls": None if tls is None else {
            "version": tls.version, "resumption": tls.resumption, "client_certificate": tls.client_certificate},
        "websocket": None if websocket is None else {"path": websocket.path},
    }


def _protocol(scenario: Scenario, group: Group) -> types.Protocol:
    if group.protocol == "mqtt-sn":
        return {"mqtt_sn": _mqtt_sn(group.mqtt_sn)}
    if group.protocol == "zeromq":
        return {"zeromq": _zeromq(group.zeromq)}
    return {"mqtt": _mqtt(group.mqtt or scenario.mqtt, group)}


def _zeromq(sockets: ZeroMq) -> types.ZeroMqPlan:
    return {"client_id": sockets.client_id, "high_water_mark": sockets.high_water_mark}


def _mqtt(mqtt: Mqtt, group: Group) -> types.MqttPlan:
    plan: types.MqttPlan = {
        "version": mqtt.version,
        "client_id": mqtt.client_id,
        "keep_alive_s": mqtt.keep_alive // S,
        "clean_session": mqtt.clean_session,
        "session_expiry_s": _session_expiry(mqtt) // S,
        "max_inflight": mqtt.max_inflight,
        "max_queued": mqtt.max_queued,
        "deliver_on_release": mqtt.deliver_qos2_on == "release",
        "receive_maximum": mqtt.receive_maximum or RECEIVE_MAXIMUM_DEFAULT,
        "topic_aliases": mqtt.topic_aliases or 0,
        "topic_alias_maximum": mqtt.topic_alias_maximum or 0,
        "retry": None if mqtt.retry is None else {"interval_ns": mqtt.retry},
        "ping": mqtt.ping,
        "username": mqtt.username,
        "password": mqtt.password,
        "will": _will(mqtt.will),
    }
    if (listed := listed_credentials(mqtt, group.name, group.count)) is not None:
        plan["credentials"] = listed.mark()
    return plan


def _session_expiry(mqtt: Mqtt) -> int:
    """Below version 5 it means nothing; a clean session of MQTT 5 ends with its connection unless it says otherwise."""
    if mqtt.session_expiry is not None:
        return mqtt.session_expiry
    return 0 if mqtt.clean_session else SESSION_EXPIRY_DEFAULT


def _mqtt_sn(session: MqttSn) -> types.MqttSnPlan:
    sleep = session.sleep
    return {
        "client_id": session.client_id,
        "keep_alive_s": session.keep_alive // S,
        "clean_session": session.clean_session,
        "without_connection": session.without_connection,
        "retry_ns": session.retry,
        "retries": session.retries,
        "wait_ns": session.wait,
        "max_queued": session.max_queued,
        "deliver_on_release": session.deliver_qos2_on == "release",
        "short_topics": session.short_topics,
        "predefined_topics": _predefined(session.predefined_topics),
        "search_radius": session.search_radius,
        "sleep": None if sleep is None else {
            "duration_s": sleep.duration // S,
            "wake_every_ns": sleep.wake_every,
            "linger_ns": sleep.linger,
            "publish_when_awake": sleep.publish == "when-awake",
        },
        "will": _will(session.will),
    }


def _will(will: Will | None) -> types.Will | None:
    if will is None:
        return None
    return {"topic": will.topic, "payload": will.payload, "qos": will.qos, "retain": will.retain}


def _properties(publish: Publish) -> types.MessageProperties:
    said: types.MessageProperties = {
        "user": [{"name": name, "value": value} for name, value in publish.user_properties or ()],
        "content_type": publish.content_type,
        "payload_is_text": None if publish.payload_format is None else publish.payload_format == "utf-8",
        "response_topic": publish.response_topic,
        "correlation_data": publish.correlation_data,
    }
    if publish.expiry is not None:
        said["expiry_s"] = publish.expiry // S
    return said


def _publish(publish: Publish, group: Group) -> types.Publish:
    return {
        "topic": publish.topic,
        "topics": publish.topics if publish.replay is None else len(publish.topic_patterns),
        "qos": publish.qos,
        "retain": publish.retain,
        "properties": _properties(publish),
        "payload": _payload(publish, group.name),
        "arrival": _arrival(publish),
        "start_phase": publish.start_phase,
        "stages": _stages(publish),
        "messages": publish.messages,
        "replay": None if publish.replay is None else _replay(publish.replay, group.count),
    }


def _replay(replay: Replay, clients: int) -> types.Replay:
    table = replay.table
    place = table.columns.get
    columns: types.ReplayColumns = {
        "time": table.columns["time"], "topic": place("topic"), "payload": place("payload"), "size": place("size"),
        "client": place("client"), "qos": place("qos"), "retain": place("retain"),
    }
    if "sequence" in table.columns:
        columns["sequence"] = table.columns["sequence"]
    return {
        "path": str(replay.file.resolve()),
        "bytes": replay.file.stat().st_size,
        "rows": table.rows,
        "delimiter": table.delimiter,
        "columns": columns,
        "time": table.time,
        "clients": list(table.names(clients)),
        "second_us": replay.second_us,
        "period_ns": table.period_ns * replay.second_us // 1_000_000 if replay.loop else None,
    }


def _stages(publish: Publish) -> list[types.RateStage]:
    """Each stage with both of its ends."""
    stages: list[types.RateStage] = []
    last = publish.first_interval
    if publish.burst is not None:
        last = max(1_000, publish.burst.every // publish.burst.size)
    for stage in publish.stages:
        begins = last if stage.rate is None else stage.rate or None
        last = begins if stage.to is None else stage.to or None
        stages.append({"length_ns": stage.for_, "from_interval_ns": begins, "to_interval_ns": last})
    return stages


def _payload(publish: Publish, group: str) -> types.Payload:
    payload = publish.payload
    if payload.text is not None:
        template, size = payload.text
        return {"kind": "template", "name": payload.kind, "parts": list(parts_of(template, group)), "bytes": size}
    if payload.kind == "jpeg" or payload.kind == "png":
        return {"kind": "picture", "format": payload.kind, "bytes": payload.size or SIZES[payload.kind]}
    if payload.path is not None:
        return {"kind": "file", "path": str(payload.path.resolve()), "bytes": payload.path.stat().st_size}
    if payload.size is not None:
        size = payload.size
        return {"kind": "random", "bytes": size} if payload.kind == "random" else {"kind": "fixed", "bytes": size}
    return {"kind": "image"} if payload.kind == "image" else {"kind": "gps"}


def _arrival(publish: Publish) -> types.Arrival:
    if publish.arrival == "back-to-back":
        return {"kind": "back_to_back"}
    if publish.replay is not None:
        # Nothing is due by it: the table says when.
        return {"kind": "constant", "interval_ns": S}
    if publish.burst is not None:
        burst = publish.burst
        return {"kind": "burst", "size": burst.size, "interval_ns": burst.every, "gap_ns": burst.gap}
    interval = publish.first_interval
    assert interval is not None, "the scenario was checked"
    if publish.arrival == "poisson":
        return {"kind": "poisson", "mean_interval_ns": interval}
    return {"kind": "constant", "interval_ns": interval}


def _sim(scenario: Scenario, hosts: _Hosts) -> types.SimPlan:
    stop = scenario.sim.stop
    accuracy = None if stop is None or stop.relative_accuracy is None else stop.relative_accuracy
    return {
        "stop": None if stop is None else {
            "relative_accuracy_ppm": None if accuracy is None else round(10**6 * accuracy[0] / accuracy[1]),
            "messages_per_subscriber": stop.messages_per_subscriber,
            "deliveries_outstanding": stop.deliveries_outstanding,
        },
        "detect_transient": scenario.sim.detect_transient,
        "client_wake_up_ns": scenario.sim.client_wake_up,
        "tcp_stacks": hosts.stacks(),
    }
