"""The scenario: its parts, their fields and defaults.

Every field says in its description what it does; ``docs/reference/scenario.md`` is generated from them.
"""

from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from mqttlab.networks.link import IN_PARTS, TRACE_END, LinkDirection, Part, TraceFile, Truth, Whole, with_trace
from mqttlab.networks.models import MODELS, NetworkModel
from mqttlab.networks.radio import Radio
from mqttlab.networks.tcp import Tcp
from mqttlab.quantity import (
    HOUR_NS,
    DurationNs,
    MicroDurationNs,
    PositiveDurationNs,
    PositiveShortDurationNs,
    RatioPair,
    SecondsNs,
    SizeBytes,
    shown,
)
from mqttlab.scenario.churn import Churn
from mqttlab.scenario.event import Event
from mqttlab.scenario.limits import Limits
from mqttlab.scenario.location import Location
from mqttlab.scenario.mqtt import MQTT_5, Mqtt, Qos
from mqttlab.scenario.mqtt_sn import MqttSn, PredefinedId
from mqttlab.scenario.phases import Phases
from mqttlab.scenario.publish import Publish, one_or_several
from mqttlab.scenario.secret import Command, Environment, Files
from mqttlab.scenario.threshold import Threshold
from mqttlab.scenario.topics import MQTT_TEXT_MAX, topic_filter, topic_suffix
from mqttlab.scenario.transport import Ports, Transport, Trust, read_transport
from mqttlab.scenario.zeromq import ZeroMq, ZeroMqProxy
from mqttlab.secrets import PersonalText, PlainText

S = 10**9
MS = 10**6


def above_zero(value: tuple[int, int]) -> tuple[int, int]:
    """A ratio above 0."""
    if value[0] == 0:
        raise ValueError("is 0 %, but must be above 0 %: no run is long enough for an exact mean; write \"1 %\"")
    return value


Name = Annotated[PlainText, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=40)]
PROGRAMS_MAX = 1_000
PUBLICATIONS_MAX = 16


class Host(Part):
    """A machine, in a live run a network namespace; or, where it forwards, a router or switch that joins networks."""

    count: Whole = Field(1, ge=1, le=65_534, description=(
        "Number of identical hosts: `name-0`, `name-1`, ... The clients of each group sit on them in turn. When left "
        "out, as many as there are clients where a network has `link = \"each\"`, else one."))
    tcp: Tcp = Field(Tcp(profile="linux"), description="Its TCP.")
    forwards: Truth = Field(
        False, description="A router or switch: frames between other hosts cross it. It runs neither clients nor the "
        "broker, and takes no time; what takes time are the links of its networks.")
    limits: Limits | None = Field(None, description="What its servers and programs have of processor, memory and disk.")


def reason(error: ValueError) -> str:
    """What is wrong, of the first of a validation's problems."""
    told = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return str(told).removeprefix("Value error, ")


class Nat(Part):
    """A translator of addresses (NAT) that forgets TCP connections which are silent for too long (RFC 5382, REQ-5)."""

    timeout: PositiveDurationNs = Field(description=(
        "After so long without a frame of a connection, in either direction, it is forgotten. What comes from outside "
        "is dropped then, and neither end is told."))
    forgotten: Literal["drop", "revive"] = Field("drop", description=(
        "What becomes of a segment from inside then, but for a SYN: it is dropped (`drop`), or makes the mapping anew, "
        "as Linux does (`revive`; `nf_conntrack_tcp_loose`)."))


def read_nat(value: Any) -> Any:
    """A translator from its timeout alone."""
    return {"timeout": value} if isinstance(value, str) else value


class NetworkBetween(Part):
    """A network between two hosts: a named model, or a link for each direction."""

    between: tuple[Name, Name] = Field(
        description="The two hosts, one of them the broker's or one that forwards. `up` is the link from the first to "
        "the second.")
    name: Name | None = Field(None, description="What events call it; unique among the networks.")
    model: PlainText | None = Field(None, description="A named model; `mqttlab networks` lists them.")
    placement: Literal["egress-at-broker", "both", "split", "shared-medium"] | None = Field(
        None, description="Where the model is applied; each model has a default.")
    up: LinkDirection | None = Field(
        None, description="Link from the first host to the second; not emulated when left out, `{}` on purpose. With a "
        "`model`: what is otherwise on its link towards the broker, such as `up.loss = \"2 %\"`.")
    down: LinkDirection | None = Field(
        None, description="Link from the second host to the first; not emulated when left out, `{}` on purpose. With a "
        "`model`: what is otherwise on its link from the broker.")
    link: Literal["each", "shared"] | None = Field(
        None, description="`each`: every client of the groups behind the links has links and a host of its own; where "
                          "a host has a `count`, every one of these hosts has, and clients of one host share its "
                          "links. `shared`: all share the links. This is the "
                          "default, with a warning where there are several clients.")
    trace: TraceFile | None = Field(None, description=(
        "What both links follow over time, as `up.trace`; a trace of mqttlab has values for each direction."))
    trace_end: Literal["loop", "hold"] | None = TRACE_END

    nat: Annotated[Nat, BeforeValidator(read_nat, json_schema_input_type=Nat | str)] | None = Field(
        None, description="A translator of addresses between the two hosts that forgets silent TCP connections: its "
        "timeout, such as `\"5 min\"`, or a table. The host that is farther from the broker is inside.")

    @property
    def named(self) -> NetworkModel | None:
        """The named model, as it is adjusted here; none without one, or of an unknown name."""
        model = None if self.model is None else MODELS.get(self.model)
        return None if model is None else model.adjusted(self.up, self.down)

    @model_validator(mode="before")
    @classmethod
    def _was_shared(cls, values: Any) -> Any:
        if isinstance(values, dict) and isinstance(values.get("shared"), bool):
            link = "shared" if values["shared"] else "each"
            raise ValueError(f"has `shared = {str(values['shared']).lower()}`; write `link = \"{link}\"`")
        return values

    @model_validator(mode="before")
    @classmethod
    def _links_follow(cls, values: Any, info: ValidationInfo) -> Any:
        """A trace of the network is one of each of its links."""
        return with_trace(values, MODELS, info)

    @model_validator(mode="after")
    def _model_or_links(self) -> Self:
        if self.model is None and self.up is None and self.down is None:
            raise ValueError("needs either a `model`, or `up` and `down`")
        model = None if self.model is None else MODELS.get(self.model)
        if model is not None:
            for name in ("up", "down"):
                try:
                    model.adjusted(**{"up": None, "down": None, name: getattr(self, name)})
                except ValueError as error:
                    raise ValueError(f"has a `{name}` that does not go with its `model`: it {reason(error)}") from None
            placement = self.placement or model.placement
            if self.up is not None and placement in ("egress-at-broker", "shared-medium"):
                raise ValueError(f"has `up`, but `placement` is \"{placement}\", which takes the link from the broker "
                                 "alone; write it in `down`, or use another `placement`")
        if self.placement == "split" and any("delay" in link.trace.sets for link in (self.up, self.down)
                                             if link is not None and link.trace is not None):
            raise ValueError("has a trace with delays, which `placement = \"split\"` would halve; use \"both\"")
        if self.model is None and self.placement is not None:
            raise ValueError("has a `placement` without a `model`; leave `placement` out, or name a model")
        if self.between[0] == self.between[1]:
            raise ValueError(f"joins the host {shown(self.between[0])} to itself; name two hosts in `between`")
        return self


class Trunk(Part):
    """The link between a switch and the broker, behind the networks that lead to the switch."""

    up: LinkDirection = Field(description="From the switch to the broker.")
    down: LinkDirection = Field(description="From the broker to the switch.")
    trace: TraceFile | None = Field(None, description="What both links follow over time, as `up.trace`.")
    trace_end: Literal["loop", "hold"] | None = TRACE_END

    @model_validator(mode="before")
    @classmethod
    def _links_follow(cls, values: Any, info: ValidationInfo) -> Any:
        return with_trace(values, {}, info)


class Service(Part):
    """How long the simulated broker works on a message."""

    per_packet: MicroDurationNs = Field(20_000, le=HOUR_NS, description="For every control packet that arrives.")
    per_copy: MicroDurationNs = Field(10_000, le=HOUR_NS, description="For every copy that it sends.")
    jitter: RatioPair = Field((0, 1), description="Relative standard deviation of both.")


class Readiness(Part):
    """How a live run knows that a server serves."""

    kind: Literal["tcp-accept", "connack", "udp-bound", "log-line"] = Field(description=(
        "`tcp-accept`: it accepts a connection; `connack`: it answers a CONNECT; `udp-bound`: its host has "
        "a UDP socket at its endpoint; `log-line`: its output says so."))
    line: PlainText | None = Field(None, min_length=1, description="For `log-line`: a part of the line.")

    @model_validator(mode="after")
    def _line(self) -> Self:
        if (self.line is not None) != (self.kind == "log-line"):
            raise ValueError(f"is of kind \"{self.kind}\", which {'needs' if self.line is None else 'has no'} `line`")
        return self


def read_readiness(value: Any) -> Any:
    """A readiness from its kind alone."""
    return {"kind": value} if isinstance(value, str) else value


class Program(Part):
    """A server's program. `{directory}` stands for a private directory, `{address}` and `{port}` for its endpoint. A
    gateway also has `{broker_address}` and `{broker_port}`, a proxy of ZeroMQ `{subscriber_port}` and
    `{high_water_mark}`. A broker listens for its clients' transports at `{websocket_port}`, `{tls_port}` and
    `{wss_port}`. Its certificate and key are in `{directory}/tls/server.pem` and `server.key`,
    the authority in `ca.pem`."""

    command: Annotated[Command, IN_PARTS] = Field(
        min_length=1, description="The program and its arguments, which others see in a list of processes.")
    environment: Environment = Field(default_factory=dict, description="Environment variables, in addition.")
    files: Files = Field(
        default_factory=dict, description="Files that it reads: their texts by path in `{directory}`.")


class Broker(Part):
    """The broker: a server named `broker`."""

    kind: PlainText = Field("mosquitto", description=(
        "`mosquitto`, `program` for one that `program` starts, or `external` for one that is running already."))
    host: Name = Field("broker", description="The host it runs on.")
    address: PlainText | None = Field(None, description="Address of an external broker.")
    port: Whole = Field(1883, ge=1, le=65_535, description="TCP port.")
    ports: Ports = Field(Ports(), description=(
        "Further ports of a broker, which it listens on where a group's `transport` asks for that."))
    tls: Trust | None = Field(None, description="For an external broker: how clients over TLS know it.")
    program: Program | None = Field(None, description="For `kind = \"program\"`: what to start.")
    ready: Annotated[Readiness, BeforeValidator(read_readiness, json_schema_input_type=Readiness | str)] | None = Field(
        None, description="How to know that it serves, such as `\"connack\"`; each kind has a default.")
    start_timeout: PositiveDurationNs = Field(10 * S, le=HOUR_NS, description="How long that may take.")
    when_it_dies: Literal["end-run", "go-on"] = Field(
        "end-run", description="What its end means: the run ends and is incomplete, or it goes on.")
    nagle: Truth = Field(True, description="Nagle's algorithm on the broker's sockets (Mosquitto's default).")
    max_inflight: Whole = Field(20, ge=0, le=65_535, description=(
        "Window of unacknowledged messages to a client; 0: no limit. Mosquitto sends a whole window of queued messages "
        "for one acknowledgement, so that up to 86 have been unacknowledged with 20: a subscriber behind can get more "
        "than window / round trip. The default is Mosquitto's; of another broker that runs live no limit is known "
        "without it."))
    max_queued: Whole = Field(
        1000, ge=0, le=2**32 - 1, description=(
            "Messages queued for a client beyond these; 0: no limit. QoS 0 messages for a client that is away are not "
            "queued (Mosquitto's `queue_qos0_messages false`)."))
    retry: PositiveDurationNs | None = Field(None, ge=MS, description=(
        "Interval of timed retransmission by the simulated broker, as in MQTT 3.1; Mosquitto repeats only when a "
        "client comes back."))
    topic_alias_maximum: Whole = Field(10, ge=0, le=65_535, description=(
        "Topic aliases that a client of MQTT 5 may give (3.2.2.3.8), Mosquitto's `max_topic_alias`; 0: none."))
    persistence: Truth = Field(False, description="Sessions and retained messages survive a restart of the broker.")
    service: Service = Field(Service(), description="Service time of the simulated broker.")

    @model_validator(mode="after")
    def _program(self) -> Self:
        if (self.program is not None) != (self.kind == "program"):
            raise ValueError(f"is of kind \"{self.kind}\", which {'needs a' if self.program is None else 'has no'} "
                             "`program`")
        return self


class Gateway(Part):
    """An MQTT-SN gateway: our own obeys all of this, for another program it says what that one is told."""

    broker: Name | None = Field(
        None, description="The broker that it connects to; may be left out where there is only one.")
    mode: Literal["transparent", "aggregating"] = Field(
        "transparent", description="Whether each client has a connection to the broker of its own, or all have one.")
    id: Whole = Field(1, ge=0, le=255, description="GwId of ADVERTISE and GWINFO.")
    client_id: PersonalText = Field("gateway", min_length=1, max_length=MQTT_TEXT_MAX, description=(
        "Client identifier of its own connection: all of an aggregating gateway, QoS -1 of a transparent one."))
    keep_alive: SecondsNs = Field(60 * S, le=65_535 * S, description="Keep-alive of that connection; `0 s`: off.")
    retry: PositiveShortDurationNs = Field(
        10 * S, ge=MS, le=HOUR_NS, description="T_retry towards clients (10 to 15 s, MQTT-SN 1.2, §7.2).")
    retries: Whole = Field(3, ge=0, le=1000, description="N_retry: repetitions before a client is given up.")
    window: Whole = Field(
        1, ge=0, le=2**32 - 1, description="Unacknowledged messages to a client at QoS 1 and 2; 0: no limit.")
    buffer: Whole = Field(1000, ge=1, le=2**32 - 1, description="Messages kept for a client, asleep or slow.")
    clients_max: Whole = Field(10_000, ge=1, le=1_000_000, description="Clients at once; others meet congestion.")
    broker_window: Whole = Field(
        20, ge=1, le=65_535, description="Unacknowledged messages of its own connection, which all clients share.")
    broker_queue: Whole = Field(1000, ge=0, le=2**32 - 1, description="Messages that wait for that connection.")
    filter_duplicates: Truth = Field(
        True, description="A repeated PUBLISH of QoS 1 is acknowledged again and not published twice.")
    advertise: PositiveDurationNs | None = Field(None, ge=MS, description="From one ADVERTISE to the next.")
    predefined_topics: dict[PlainText, PredefinedId] = Field(
        default_factory=dict, description="Identifiers of topics that clients and gateway know beforehand, by name.")


class Server(Broker):
    """A server: a broker, a gateway or a proxy. `[broker]` is short for one named `broker`."""

    name: Name = Field(description="Unique among the servers; groups connect to it by this name.")
    role: Literal["broker", "gateway", "proxy", "zeromq"] = Field(
        "broker", description="`gateway`: of MQTT-SN, port 1884. `proxy`: a program. `zeromq`: a proxy of ZeroMQ, port "
        "5559, and 5560 for subscribers. Gateway and `zeromq` are our own by default. Simulated, each takes "
        "`service.per_packet` for a packet.")
    passes_to: Name | None = Field(
        None, description="For a proxy: the server that it passes packets on to, by name. Simulations need it; in a "
        "live run its clients' messages are then known to be those of that server's other clients, too.")
    gateway: Gateway = Field(Gateway(), description="For `role = \"gateway\"`.")
    zeromq: ZeroMqProxy = Field(ZeroMqProxy(), description="For `role = \"zeromq\"`.")

    @model_validator(mode="before")
    @classmethod
    def _host(cls, values: Any) -> Any:
        """Each server has a host of its own unless the scenario says otherwise, called as it is."""
        if isinstance(values, dict) and "name" in values and "host" not in values:
            values = {**values, "host": values["name"]}
        if isinstance(values, dict) and values.get("role") == "gateway":
            values = {"kind": "mqttlab", "port": 1884, **values}
        if isinstance(values, dict) and values.get("role") == "zeromq":
            values = {"kind": "mqttlab", "port": 5559, **values}
        return values

    @model_validator(mode="after")
    def _is_started(self) -> Self:
        if self.role != "broker" and self.kind == "mosquitto":
            raise ValueError(f"is a {self.role}, but of kind \"mosquitto\"; use `kind = \"program\"` with a `program`, "
                             "or \"external\"")
        if self.passes_to is not None and self.role != "proxy":
            raise ValueError(f"is a {self.role}, which has no `passes_to`; leave it out, or say `role = \"proxy\"`")
        if "gateway" in self.model_fields_set and self.role != "gateway":
            raise ValueError(f"has a table `gateway`, but is a {self.role}; use `role = \"gateway\"`, or leave it out")
        if "zeromq" in self.model_fields_set and self.role != "zeromq":
            raise ValueError(f"has a table `zeromq`, but is a {self.role}; use `role = \"zeromq\"`, or leave it out")
        return self

    @property
    def subscriber_port(self) -> int:
        """Where subscribers of ZeroMQ connect to; everybody else connects to `port`."""
        return self.zeromq.subscriber_port or self.port + 1


class Reconnect(Part):
    """Reconnection after a lost connection."""

    enabled: Truth = Field(True, description="Whether a client reconnects.")
    initial: DurationNs = Field(1 * S, description="Wait before the first attempt.")
    maximum: PositiveDurationNs = Field(120 * S, description="Each wait is twice as long as the last, up to this.")
    jitter: RatioPair = Field((1, 10), description="Each wait varies at random by up to this share.")
    timeout: PositiveDurationNs = Field(60 * S, description="Time for an attempt, CONNACK included.")


class Subscription(Part):
    """A subscription."""

    filter: Annotated[PlainText, AfterValidator(topic_filter)] = Field(
        description="Topic filter; `{group}` and `{client}` are filled in.")
    qos: Qos = 0
    retain_handling: Literal["send", "new", "never"] | None = Field(None, json_schema_extra=MQTT_5, description=(
        "Retain handling (MQTT 5, 3.8.3.1): what is retained comes at each SUBSCRIBE, only if the session did not have "
        "the subscription, or never. Without it `send`. Events that subscribe to the same filter have it too."))
    retain_as_published: Truth | None = Field(None, json_schema_extra=MQTT_5, description=(
        "Retain As Published (MQTT 5, 3.8.3.1): what is published comes with the RETAIN flag that its publisher set. "
        "Without it the flag is cleared. Events that subscribe to the same filter have it too."))
    no_local: Truth | None = Field(None, json_schema_extra=MQTT_5, description=(
        "No Local (MQTT 5, 3.8.3.1): a client does not get what it publishes itself. Not for shared subscriptions, and "
        "not where a group relays. Events that subscribe to the same filter have it too."))


def read_subscription(value: Any) -> Any:
    """A subscription at QoS 0 from its filter alone."""
    return {"filter": value} if isinstance(value, str) else value


class Relay(Part):
    """Republishes every message that the client receives."""

    suffix: Annotated[PlainText, AfterValidator(topic_suffix)] = Field("_2", description="Appended to the topic.")
    qos: Qos = 0


class ClientProgram(Part):
    """A program that is a client. `{address}` and `{port}` stand for its server's, `{client_id}` for the client
    identifier that it should take, `{group}` and `{client}` for its group and its number there, `{directory}` for a
    private directory."""

    command: Annotated[Command, IN_PARTS] = Field(
        min_length=1, description="The program and its arguments, which others see in a list of processes.")
    environment: Environment = Field(default_factory=dict, description="Environment variables, in addition.")
    files: Files = Field(
        default_factory=dict, description="Files that it reads: their texts by path in `{directory}`.")
    ready_line: PlainText | None = Field(
        None, min_length=1, description="A part of the line of its output that says that it has connected and "
        "subscribed; without one it counts as ready when it has been started.")


class Group(Part):
    """A group of identical clients."""

    name: Name = Field(description="Name, unique among the groups.")
    host: Name = Field(description=(
        "Host they run on. Where its `count` is above 1, the clients sit on these hosts in turn: client `i` on "
        "`name-i`, and the first client beyond the last host on `name-0` again. Else, where its network has `link = "
        "\"each\"`, each client has a host of its own."))
    count: Whole = Field(1, ge=1, le=100_000, description="Number of clients.")
    connects_to: Name | None = Field(
        None, description="The server they connect to; may be left out where there is only one.")
    protocol: Literal["mqtt", "mqtt-sn", "zeromq"] = Field(
        "mqtt", description="What they speak; it has a table of its own. `mqtt-sn` needs a gateway to connect to, "
        "`zeromq` a proxy of ZeroMQ.")
    transport: Annotated[
        Transport, BeforeValidator(read_transport, json_schema_input_type=Transport | str)] | None = Field(
            None, description="What carries it, and how: `\"tcp\"` when left out, `\"websocket\"`, "
            "`\"tls\"`, `\"wss\"`, or a table. MQTT-SN goes over UDP.")
    nagle: Truth | None = Field(
        None, description="Short for `transport = { tcp = { nagle = ... } }`; `true` (Paho's default) when left out.")
    mqtt: Mqtt | None = Field(None, description="Protocol and session; the scenario's `mqtt` when left out.")
    mqtt_sn: MqttSn = Field(MqttSn(), description="For `protocol = \"mqtt-sn\"`: the session.")
    zeromq: ZeroMq = Field(ZeroMq(), description="For `protocol = \"zeromq\"`: the sockets.")
    reconnect: Reconnect = Field(Reconnect(), description="What happens after a connection is lost.")
    churn: Churn | None = Field(None, description=(
        "Clients that come and go all the time: connections per time, and how long each stays."))
    connect_over: DurationNs | None = Field(
        None, description="Connections are opened evenly over this time; 2 ms per client when left out.")
    publish: Annotated[
        Annotated[Publish, Tag("function-one")] | Annotated[
            list[Publish], Field(min_length=1, max_length=PUBLICATIONS_MAX), Tag("function-several")],
        Discriminator(one_or_several)] | None = Field(
            None, description="Messages that each client publishes: a table, or an array of up to 16 tables.")
    subscribe: Annotated[
        list[Annotated[Subscription, BeforeValidator(read_subscription, json_schema_input_type=Subscription | str)]],
        IN_PARTS] = Field(default_factory=list, description="Topic filters that each client subscribes to.")
    relay: Relay | None = Field(None, description="Republish what is received.")
    late_after: PositiveDurationNs | None = Field(
        None, description="Deliveries from or to the group that take longer count as late; if both of their groups say "
        "so, the shorter time counts.")
    client: ClientProgram | None = Field(
        None, description="The program that performs the clients, one process each, in live runs. It publishes and "
        "subscribes by itself, and is observed by the frames that it exchanges: see docs/explanation/live.md.")

    @property
    def publications(self) -> list[tuple[Location, Publish]]:
        """What each client publishes, with its place in the group's table."""
        if isinstance(self.publish, list):
            return [(("publish", number), publish) for number, publish in enumerate(self.publish)]
        return [] if self.publish is None else [(("publish",), self.publish)]

    @property
    def uses_nagle(self) -> bool:
        """Whether Nagle's algorithm is on, however that is written."""
        if self.nagle is not None or self.transport is None:
            return self.nagle is not False
        return self.transport.tcp.nagle

    @property
    def layers(self) -> str:
        """What lies on TCP, as an endpoint is called that listens for it."""
        return "tcp" if self.transport is None else self.transport.layers

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if self.transport is not None and "tcp" in self.transport.model_fields_set and self.nagle is not None:
            raise ValueError("has both `transport.tcp` and `nagle`, which is short for it; keep one")
        return self

    @model_validator(mode="after")
    def _protocol(self) -> Self:
        spoken = {"mqtt": "MQTT", "mqtt-sn": "MQTT-SN", "zeromq": "ZeroMQ"}.get(self.protocol, self.protocol)
        for field, protocol in (("mqtt_sn", "mqtt-sn"), ("zeromq", "zeromq")):
            if protocol != self.protocol and field in self.model_fields_set:
                raise ValueError(
                    f"has a table `{field}`, but speaks {spoken}; use `protocol = \"{protocol}\"`, or leave it out")
        if self.protocol != "mqtt":
            kin = "MQTT" if self.protocol == "zeromq" else "MQTT over TCP"
            for field in ("mqtt", "transport", "nagle", "relay"):
                if getattr(self, field) is not None:
                    raise ValueError(f"speaks {spoken}, but has `{field}`, which goes with {kin}; leave it out")
        return self

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.client is not None:
            return self._leaves_the_rest_to_its_program()
        if self.publish is None and not self.subscribe and self.churn is None:
            raise ValueError("has neither `publish` nor `subscribe`; add one")
        if self.relay is not None and not self.subscribe:
            raise ValueError("has a `relay`, but no `subscribe`; add the topics to relay")
        return self

    def _leaves_the_rest_to_its_program(self) -> Self:
        theirs = self.model_fields_set & {
            "publish", "subscribe", "relay", "reconnect", "transport", "nagle", "protocol"}
        theirs |= {"mqtt"} if self.mqtt is not None and self.mqtt.model_fields_set - {"client_id"} else set()
        if theirs:
            raise ValueError(f"has a `client`, a program that does as it likes, and `{min(theirs)}`; leave that out, "
                             "and give it to the program in its `command`")
        if self.count > PROGRAMS_MAX:
            raise ValueError(f"has a `client` and `count = {self.count}`, but at most {PROGRAMS_MAX} processes perform "
                             "a group")
        return self


class RecordingOptions(Part):
    """What is recorded besides events and resources."""

    detail: Literal["full", "messages", "summary"] = Field("full", description=(
        "`full`: every message, every frame on every link with its fate, every control packet. `messages`: every "
        "message, but no frames and no control packets; their metrics and the parts of latencies are then unknown. "
        "`summary`: sums of all messages and a sample of about 200,000, for runs of any length; what needs each "
        "message is then unknown, too."))
    pcapng: Truth = Field(False, description="Write captures for Wireshark: of a live run one for each link, of a "
                                             "simulation `run.pcapng` with all links.")
    payloads: Truth = Field(False, description="Keep what every message that arrives carries, up to 8 MiB each, to be "
                                               "looked at: as much disk as was received.")
    resource_interval: PositiveShortDurationNs = Field(
        500 * MS, ge=MS, description="How often CPU and memory are sampled.")
    tcp_state_interval: PositiveShortDurationNs = Field(
        1000 * MS, ge=10 * MS, description="How often both ends of every TCP connection are asked for their state: "
                                           "time-out, windows, waiting bytes. More rarely where that would cost much.")

    @model_validator(mode="before")
    @classmethod
    def _was_packets(cls, values: Any) -> Any:
        """Read what scenarios said before there was `detail`: those of recordings and of experiments that go on."""
        if not isinstance(values, dict) or not isinstance(values.get("packets"), bool):
            return values
        if "detail" in values:
            raise ValueError("has both `detail` and `packets`, the older word for it; keep `detail`")
        kept = {name: value for name, value in values.items() if name != "packets"}
        return {**kept, "detail": "full" if values["packets"] else "messages"}

    @property
    def packets(self) -> bool:
        """Whether frames and control packets are recorded."""
        return self.detail == "full"


class Live(Part):
    """How the live testbed performs the scenario."""

    real_time: Truth = Field(True, description="Ask for real-time priority.")
    latency_compensation: MicroDurationNs | None = Field(
        None, le=HOUR_NS, description="Subtracted from every emulated delay; calibrated at the start when left out.")
    probe: PositiveDurationNs | None = Field(
        None, description="Measure each emulated path for this long before the run, and keep it beside its model.")
    port: Literal["auto", "tun", "packet"] = Field("auto", description="Device between namespaces and emulator.")
    workers: Whole = Field(1, ge=1, le=64, description="Threads that run the clients, in each part.")
    parts: Whole = Field(1, ge=1, le=64, description=(
        "Engines that share the clients, for more than one machine drives: with `--cluster` a worker each, else all on "
        "this machine. Needs `network = \"external\"`; see docs/explanation/live.md."))


class Stop(Part):
    """When a simulation may stop early."""

    relative_accuracy: Annotated[RatioPair, AfterValidator(above_zero)] | None = Field(
        None, description="Half width of the mean latency's 95 % confidence interval, relative to the mean.")
    messages_per_subscriber: Whole | None = Field(
        None, ge=1, lt=2**63, description="Stop when every subscriber has received this many messages.")
    deliveries_outstanding: Whole | None = Field(None, ge=1, lt=2**63, description=(
        "Stop when so many deliveries are expected and have not been made: a backlog, whose latency has no mean."))


class Sim(Part):
    """How the simulator performs the scenario."""

    stop: Stop | None = Field(None, description="Stop early.")
    detect_transient: Truth = Field(
        False, description="Detect the end of the initial transient instead of using `warm_up`.")
    client_wake_up: MicroDurationNs = Field(50_000, le=HOUR_NS, description=(
        "Time from the arrival of data at a client until its program reads it, together with all data that has "
        "arrived by then."))


class Scenario(Part):
    """A scenario: publishers, subscribers, network and protocol stack."""

    name: Name = Field(description="Names run directories and reports.")
    description: PlainText = Field("", description="A sentence for the report.")
    backend: Literal["live", "sim"] = Field(
        "live", description="`live`: real brokers in real time; `sim`: simulation in virtual time.")
    seed: Whole = Field(1, ge=0, lt=2**63, description="Seed of all random numbers.")
    repetitions: Whole = Field(1, ge=1, le=1000, description="Number of runs, each with its own seed.")
    phases: Phases = Field(description="When the run warms up, measures and cools down.")
    broker: Broker = Field(Broker(), description="The broker: short for a server named `broker`.")
    servers: Annotated[list[Server], IN_PARTS] = Field(
        default_factory=list, description="Servers: brokers, gateways, proxies. Without any, there is the broker.")
    hosts: dict[Name, Host] = Field(
        default_factory=dict, description="Hosts by name. A host that is only named elsewhere has the defaults.")
    network: Literal["emulated", "direct", "loopback", "external"] = Field(
        "emulated", description="`direct` (plain veth) and `loopback` have no emulator in the path; live runs record "
        "no packets there.")
    networks: Annotated[list[NetworkBetween], IN_PARTS] = Field(
        default_factory=list, description="Networks between hosts.")
    trunk: Trunk | None = Field(
        None, description="A link behind all networks, from a switch to the broker and back, shared by all hosts.")
    radio: Radio | None = Field(
        None, description="An 802.11 channel that joins all hosts, instead of `networks`.")
    mtu: SizeBytes = Field(1500, ge=576, le=65_535, description="Largest IP packet, from 576 B.")
    mqtt: Mqtt = Field(Mqtt(), description="Protocol and session of groups that have no `mqtt` of their own.")
    groups: Annotated[list[Group], Field(min_length=1), IN_PARTS] = Field(
        description="Groups of identical clients.")
    events: Annotated[list[Event], IN_PARTS] = Field(
        default_factory=list, description="What changes while the run goes on: networks, servers, clients.")
    recording: RecordingOptions = Field(RecordingOptions(), description="What is recorded.")
    thresholds: Annotated[list[Threshold], IN_PARTS] = Field(default_factory=list, description=(
        "What must hold: judged over the repetitions, exit status 4 when broken, 5 when undecided."))
    live: Live = Field(Live(), description="Settings of the live testbed.")
    sim: Sim = Field(Sim(), description="Settings of the simulator.")

    @cached_property
    def all_servers(self) -> list[tuple[tuple[int | str, ...], Server]]:
        """The servers with their places in the scenario; `[broker]` first, where it is written or there is no other."""
        # Asked for by every check of every group and host, and a copy of the broker's fields each time.
        listed: list[tuple[tuple[int | str, ...], Server]] = [
            (("servers", index), server) for index, server in enumerate(self.servers)]
        if self.servers and "broker" not in self.model_fields_set:
            return listed
        fields = {name: getattr(self.broker, name) for name in type(self.broker).model_fields}
        # What is written stays told from what has its default.
        written = self.broker.model_fields_set | {"name", "role"}
        short = Server.model_construct(written, name="broker", role="broker", passes_to=None, **fields)
        return [(("broker",), short), *listed]

    @cached_property
    def server_numbers(self) -> dict[str, int]:
        """The number of each server among all of them, by name."""
        return {server.name: number for number, (_, server) in reversed([*enumerate(self.all_servers)])}

    def server_named(self, name: str) -> Server:
        """A server that there is."""
        return self.all_servers[self.server_numbers[name]][1]

    @cached_property
    def _served_by(self) -> dict[str, Server]:
        """The server behind each one, by name, as far as it was asked for."""
        return {}

    def serving(self, group: Group) -> Server:
        """The server that a group's messages come to: behind proxies the one that these pass on to."""
        first = self.server_of(group)
        if first.name not in self._served_by:
            server, passed = first, set[str]()
            while (behind := self.behind(server)) is not None and server.name not in passed:
                passed.add(server.name)
                server = self.server_named(behind)
            self._served_by[first.name] = server
        return self._served_by[first.name]

    def behind(self, server: Server) -> str | None:
        """The server that a proxy or a gateway passes packets on to, where it is known."""
        if server.role == "gateway":
            broker = self.broker_of(server)
            return broker.name if broker.name != server.name else None
        return server.passes_to if server.passes_to in self.server_numbers else None

    def broker_of(self, server: Server) -> Server:
        """The broker that a gateway connects to; the first one, where it does not say. Others' are themselves."""
        brokers = [other for _, other in self.all_servers if other.role == "broker"]
        if server.role != "gateway" or not brokers:
            return server
        return next((other for other in brokers if other.name == server.gateway.broker), brokers[0])

    def listeners(self, server: Server) -> list[tuple[str, int]]:
        """What a server listens for beside its first port, as its clients' transports ask: transports and ports."""
        asked = dict.fromkeys(group.layers for group in self.groups_of(server))
        return [(layers, getattr(server.ports, layers)) for layers in asked if layers != "tcp"]

    def groups_of(self, server: Server) -> list[Group]:
        """The groups that connect to a server."""
        return self._groups_by_server.get(server.name, [])

    @cached_property
    def _groups_by_server(self) -> dict[str, list[Group]]:
        found: dict[str, list[Group]] = {}
        for group in self.groups:
            found.setdefault(self.server_of(group).name, []).append(group)
        return found

    def server_of(self, group: Group) -> Server:
        """The server that a group connects to; the first one, where it does not say."""
        return self.all_servers[self.server_numbers.get(group.connects_to or "", 0)][1]
