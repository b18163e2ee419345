"""The scenario: its parts, their fields and defaults.

Every field says in its description what it does; ``docs/scenario.md`` is generated from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from mqttlab.networks.link import LinkDirection, Part
from mqttlab.networks.radio import Radio
from mqttlab.quantity import DurationNs, IntervalNs, PositiveDurationNs, RatioPair, size_bytes

S = 10**9
MS = 10**6
Qos = Annotated[Literal[0, 1, 2], Field(description="Quality of service: 0, 1 or 2.")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=40)]
SizeField = Annotated[int, BeforeValidator(size_bytes)]
PAYLOAD_BYTES_MAX = 10_000_000


class Phases(Part):
    """When the run warms up, measures and cools down."""

    connect_timeout: PositiveDurationNs = Field(
        60 * S, description="How long clients may take to connect and subscribe before publishing begins.")
    warm_up: DurationNs = Field(0, description="Publishing that is not counted.")
    duration: PositiveDurationNs = Field(description="Publishing that is counted.")
    cool_down: DurationNs = Field(
        10 * S, description="Waiting for what is under way; ends early when nothing is.")


class Tcp(Part):
    """A host's TCP: a profile, and what differs from it."""

    profile: str = Field("linux", description="Where the fields below start from; `mqttlab networks --tcp` lists them.")
    congestion_control: Literal["reno", "cubic", "bbr"] | None = Field(None, description="Congestion control.")
    sack: bool | None = Field(None, description="Selective acknowledgements.")
    timestamps: bool | None = Field(None, description="Timestamps option.")
    window_scaling: bool | None = Field(None, description="Window scaling.")
    rto_min: PositiveDurationNs | None = Field(
        None, description="Minimum retransmission timeout. On Linux it caps the delayed acknowledgement too.")
    rto_max: PositiveDurationNs | None = Field(None, description="Maximum retransmission timeout.")
    delayed_ack: bool | None = Field(None, description="`false` acknowledges every segment at once.")
    delayed_ack_max: PositiveDurationNs | None = Field(
        None, description="Longest delay of an acknowledgement. A simulated stack that acknowledges at the beats of a "
        "clock (netbsd-2005, microcontroller) gets this period.")
    initial_window: int | None = Field(None, ge=1, le=100, description="Initial congestion window in segments.")
    mss: SizeField | None = Field(None, ge=88, le=65_495, description="Maximum segment size.")
    send_buffer: SizeField | None = Field(None, ge=2048, description="Send buffer; automatic when left out.")
    receive_buffer: SizeField | None = Field(None, ge=2048, description="Receive buffer; automatic when left out.")
    tail_loss_probe: bool | None = Field(None, description="Tail loss probes. They need `sack`.")
    syn_retries: int | None = Field(None, ge=0, le=127, description="How often a SYN is repeated.")
    syn_linear_retries: int | None = Field(
        None, ge=0, le=127, description="How many of these come at intervals of 1 s before the interval doubles.")


class Host(Part):
    """A machine; in a live run a network namespace."""

    count: int = Field(1, ge=1, le=100_000, description="So many hosts alike: `name-0`, `name-1`, ...")
    tcp: Tcp = Field(Tcp(profile="linux"), description="Its TCP.")


class NetworkBetween(Part):
    """What lies between two hosts: a named model, or both directions in full."""

    between: tuple[Name, Name] = Field(description="The two hosts. `up` leads from the first to the second.")
    model: str | None = Field(None, description="A named model; `mqttlab networks` lists them.")
    placement: Literal["egress-at-broker", "both", "split", "shared-medium"] | None = Field(
        None, description="Where a model is applied; each model has a default.")
    up: LinkDirection | None = Field(None, description="From the first host to the second.")
    down: LinkDirection | None = Field(None, description="From the second host to the first.")
    shared: bool = Field(
        True, description="Hosts of one name (`count`) share the link; `false` gives each its own.")

    @model_validator(mode="after")
    def _model_or_links(self) -> Self:
        if (self.model is None) == (self.up is None and self.down is None):
            raise ValueError("needs either `model` or `up` and `down`")
        if self.model is None and self.placement is not None:
            raise ValueError("`placement` goes with a `model`; `up` and `down` say it all")
        if self.between[0] == self.between[1]:
            raise ValueError("joins a host to itself; name two hosts in `between`")
        return self


class Trunk(Part):
    """The link between a switch and the broker, behind the networks that lead to the switch."""

    up: LinkDirection = Field(description="From the switch to the broker.")
    down: LinkDirection = Field(description="From the broker to the switch.")


class Service(Part):
    """How long the simulated broker works on a message."""

    per_packet: DurationNs = Field(20_000, description="For every control packet that arrives.")
    per_copy: DurationNs = Field(10_000, description="For every copy that it sends.")
    jitter: RatioPair = Field((0, 1), description="Relative standard deviation of both.")


class Broker(Part):
    """The broker."""

    kind: str = Field("mosquitto", description="`mosquitto`, or `external` for one that is running already.")
    host: Name = Field("broker", description="The host it runs on.")
    address: str | None = Field(None, description="Address of an external broker.")
    port: int = Field(1883, ge=1, le=65_535, description="TCP port.")
    nagle: bool = Field(True, description="Nagle's algorithm on the broker's sockets (Mosquitto's default).")
    max_inflight: int = Field(20, ge=0, le=65_535, description="Unacknowledged messages to a client; 0: no limit.")
    max_queued: int = Field(1000, ge=0, description="Messages waiting behind these for a client; 0: no limit.")
    persistence: bool = Field(False, description="Sessions and retained messages outlive the broker.")
    service: Service = Field(Service(), description="Service time of the simulated broker.")


class Will(Part):
    """A message that the broker publishes when the client vanishes."""

    topic: str = Field(min_length=1, description="Topic.")
    payload: str = Field("", description="Payload as text.")
    qos: Qos = 0
    retain: bool = Field(False, description="Retained.")


class Mqtt(Part):
    """Protocol and session."""

    version: Literal["3.1", "3.1.1", "5"] = Field("3.1.1", description="Protocol version.")
    keep_alive: DurationNs = Field(60 * S, le=65_535 * S, description="Keep-alive, whole seconds; `0 s`: off.")
    clean_session: bool = Field(True, description="`false` asks the broker to keep the session.")
    session_expiry: DurationNs = Field(3600 * S, description="How long MQTT 5 keeps a session that is not clean.")
    max_inflight: int = Field(20, ge=1, le=65_535, description="Unacknowledged messages that a client sends ahead.")
    max_queued: int = Field(
        100_000, ge=0, description="Messages waiting in a client; what exceeds it counts as unsent.")
    deliver_qos2_on: Literal["release", "publish"] = Field(
        "release", description="When a subscriber counts a QoS 2 message as delivered: at its PUBREL, as Paho does, "
        "or already at its PUBLISH; MQTT allows both (3.1.1, 4.3.3).")
    receive_maximum: int = Field(65_535, ge=1, le=65_535, description="Receive maximum announced (MQTT 5).")
    retry: PositiveDurationNs | None = Field(None, description="Timed repetition, as MQTT 3.1 had it.")
    client_id: str = Field("{group}-{client}", min_length=1, description="Client identifier.")
    username: str | None = Field(None, description="User name.")
    password: str | None = Field(None, description="Password.")
    will: Will | None = Field(None, description="Last will.")


class Reconnect(Part):
    """What happens after a connection is lost."""

    enabled: bool = Field(True, description="Try again at all.")
    initial: DurationNs = Field(1 * S, description="Wait before the first attempt.")
    maximum: PositiveDurationNs = Field(120 * S, description="Each wait is twice the last, up to this.")
    jitter: RatioPair = Field((1, 10), description="Each wait varies by this part of itself.")
    timeout: PositiveDurationNs = Field(60 * S, description="Time for an attempt, CONNACK included.")


class Payload(Part):
    """What is in a message."""

    kind: Literal["fixed", "random", "gps", "image", "file"] = Field("fixed", description="What is in it.")
    size: SizeField | None = Field(None, le=PAYLOAD_BYTES_MAX, description="For `fixed` and `random`: up to 10 MB.")
    path: Path | None = Field(None, description="For `file`.")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if (self.size is not None) != (self.kind in ("fixed", "random")):
            raise ValueError(f"a `{self.kind}` payload {'needs' if self.size is None else 'has no'} `size`")
        if (self.path is not None) != (self.kind == "file"):
            raise ValueError(f"a `{self.kind}` payload {'needs' if self.path is None else 'has no'} `path`")
        return self


def read_payload(value: Any) -> Any:
    """A payload from ``"gps"``, ``"image"`` or a size."""
    if not isinstance(value, str):
        return value
    if value in ("gps", "image"):
        return {"kind": value}
    try:
        size_bytes(value)
    except ValueError:
        raise ValueError(
            f"{value!r} is not a payload; write a size such as \"200 B\", \"gps\", \"image\", or a table") from None
    return {"kind": "fixed", "size": value}


class Burst(Part):
    """Several messages at once, then a pause."""

    size: int = Field(ge=1, description="Messages in a burst.")
    every: PositiveDurationNs = Field(description="From the start of one burst to the start of the next.")
    gap: DurationNs = Field(0, description="Between the messages of a burst.")


class Publish(Part):
    """What each client of a group publishes."""

    topic: str = Field(min_length=1, description="`{group}`, `{client}` and `{topic}` are filled in.")
    topics: int = Field(1, ge=1, le=1_000_000, description="How many topics `{topic}` runs through.")
    qos: Qos = 0
    retain: bool = Field(False, description="Retained.")
    payload: Annotated[Payload, BeforeValidator(read_payload)] = Field(description="What is in a message.")
    interval: PositiveDurationNs | None = Field(None, description="Time between messages.")
    rate: IntervalNs | None = Field(None, description="Messages per time, such as `\"100 /s\"`; instead of `interval`.")
    arrival: Literal["constant", "poisson", "burst", "back-to-back"] = Field(
        "constant", description="When messages are due.")
    burst: Burst | None = Field(None, description="For `arrival = \"burst\"`.")
    start_phase: Literal["random", "even", "synchronised"] = Field(
        "random", description="When the first message is due within the first interval.")
    messages: int | None = Field(None, ge=1, description="At most so many messages, warm-up included.")

    @model_validator(mode="after")
    def _when(self) -> Self:
        given = [self.interval is not None, self.rate is not None, self.burst is not None]
        if self.arrival == "back-to-back":
            if any(given):
                raise ValueError("back-to-back has no `interval`, `rate` or `burst`: each message follows the last")
        elif self.arrival == "burst":
            if given != [False, False, True]:
                raise ValueError("`arrival = \"burst\"` needs `burst`, and no `interval` or `rate`")
        elif given not in ([True, False, False], [False, True, False]):
            raise ValueError(f"`arrival = \"{self.arrival}\"` needs either `interval` or `rate`")
        if any(character in self.topic for character in "+#"):
            raise ValueError(f"the topic {self.topic!r} has a wildcard; only subscriptions may have `+` and `#`")
        if self.topics > 1 and "{topic}" not in self.topic:
            raise ValueError("`topics` is above 1, but `topic` has no `{topic}` to fill in")
        return self


class Subscription(Part):
    """A subscription."""

    filter: str = Field(min_length=1, description="Topic filter; `{group}` and `{client}` are filled in.")
    qos: Qos = 0

    @model_validator(mode="after")
    def _valid_filter(self) -> Self:
        levels = self.filter.removeprefix("$share/").split("/")
        for index, level in enumerate(levels):
            if (level != "+" and "+" in level) or (level != "#" and "#" in level):
                raise ValueError(f"the filter {self.filter!r} is invalid; `+` and `#` stand alone in their level")
            if level == "#" and index != len(levels) - 1:
                raise ValueError(f"the filter {self.filter!r} is invalid; `#` is only allowed in the last level")
        return self


def read_subscription(value: Any) -> Any:
    """A subscription at QoS 0 from its filter alone."""
    return {"filter": value} if isinstance(value, str) else value


class Relay(Part):
    """Republishes every message that the client receives."""

    suffix: str = Field("_2", min_length=1, description="Appended to the topic.")
    qos: Qos = 0


class Group(Part):
    """Clients alike."""

    name: Name = Field(description="Unique.")
    host: Name = Field(description="Where they run. With as many hosts of this name as clients, each has its own.")
    count: int = Field(1, ge=1, le=100_000, description="How many clients.")
    nagle: bool = Field(True, description="Nagle's algorithm on the clients' sockets (Paho's default).")
    mqtt: Mqtt | None = Field(None, description="Protocol and session; the scenario's `mqtt` when left out.")
    reconnect: Reconnect = Field(Reconnect(), description="What happens after a connection is lost.")
    connect_over: DurationNs | None = Field(
        None, description="Connections are opened evenly over this time; 2 ms a client when left out.")
    publish: Publish | None = Field(None, description="What each client publishes.")
    subscribe: list[Annotated[Subscription, BeforeValidator(read_subscription)]] = Field(
        default_factory=list, description="What each client subscribes to.")
    relay: Relay | None = Field(None, description="Republish what is received.")
    late_after: PositiveDurationNs | None = Field(None, description="Deliveries later than this count as late.")

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.publish is None and not self.subscribe:
            raise ValueError("neither publishes nor subscribes; add `publish` or `subscribe`")
        if self.relay is not None and not self.subscribe:
            raise ValueError("relays, but subscribes to nothing; add `subscribe`")
        return self


class RecordingOptions(Part):
    """What is written down beside messages, events and resources."""

    packets: bool = Field(True, description="Every frame on every link, with its fate.")
    pcapng: bool = Field(False, description="A capture for each link that Wireshark opens.")
    resource_interval: PositiveDurationNs = Field(500 * MS, description="How often CPU and memory are sampled.")


class Live(Part):
    """How the live testbed performs the scenario."""

    real_time: bool = Field(True, description="Ask for real-time priority.")
    latency_compensation: DurationNs | None = Field(
        None, description="Subtracted from every emulated delay; calibrated at the start when left out.")
    port: Literal["auto", "tun", "packet"] = Field("auto", description="Device between namespaces and emulator.")
    workers: int = Field(1, ge=1, le=64, description="Threads that run the clients.")


class Stop(Part):
    """When a simulation may stop early."""

    relative_accuracy: RatioPair | None = Field(
        None, description="Half width of the mean latency's 95 % confidence interval, relative to the mean.")
    messages_per_subscriber: int | None = Field(None, ge=1, description="Every subscriber has received so many.")


class Sim(Part):
    """How the simulator performs the scenario."""

    stop: Stop | None = Field(None, description="Stop early.")
    detect_transient: bool = Field(
        False, description="Find the end of the initial transient instead of trusting `warm_up`.")
    client_wake_up: DurationNs = Field(50_000, description=(
        "From data's arrival to the moment that a client's program reads it, with whatever has come by then."))


class Scenario(Part):
    """A scenario: who publishes what to whom, over which network and which protocol stack."""

    name: Name = Field(description="Names run directories and reports.")
    description: str = Field("", description="A sentence for the report.")
    backend: Literal["live", "sim"] = Field("live", description="Real brokers in real time, or virtual time.")
    seed: int = Field(1, ge=0, lt=2**63, description="What every random stream is derived from.")
    repetitions: int = Field(1, ge=1, le=1000, description="Runs, each with a seed of its own.")
    phases: Phases = Field(description="When the run warms up, measures and cools down.")
    broker: Broker = Field(Broker(), description="The broker.")
    hosts: dict[Name, Host] = Field(
        default_factory=dict, description="Machines by name. Those that are named elsewhere exist with defaults.")
    network: Literal["emulated", "direct", "loopback", "veth", "external"] = Field(
        "emulated", description="`direct` (plain veth) and `loopback` have no emulator in the path.")
    networks: list[NetworkBetween] = Field(default_factory=list, description="What lies between hosts.")
    trunk: Trunk | None = Field(
        None, description="Behind all of these: from a switch to the broker and back, shared by everybody.")
    radio: Radio | None = Field(
        None, description="An 802.11 channel that joins all hosts, instead of `networks`. Only simulated.")
    mtu: int = Field(1500, ge=576, le=65_535, description="Largest IP packet in bytes.")
    mqtt: Mqtt = Field(Mqtt(), description="Protocol and session of groups that say nothing else.")
    groups: list[Group] = Field(min_length=1, description="Clients alike.")
    recording: RecordingOptions = Field(RecordingOptions(), description="What is written down.")
    live: Live = Field(Live(), description="How the live testbed performs it.")
    sim: Sim = Field(Sim(), description="How the simulator performs it.")
