"""The plan's types, as ``crates/plan`` declares them. Written by ``scripts/plan-types``; not to be edited."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class ArrivalConstant(TypedDict):
    interval_ns: int
    kind: Literal["constant"]


class ArrivalPoisson(TypedDict):
    kind: Literal["poisson"]
    mean_interval_ns: int


class ArrivalBurst(TypedDict):
    gap_ns: int
    interval_ns: int
    kind: Literal["burst"]
    size: int


class ArrivalBackToBack(TypedDict):
    kind: Literal["back_to_back"]


Arrival = ArrivalConstant | ArrivalPoisson | ArrivalBurst | ArrivalBackToBack
"""When messages are due. The schedule is open loop: a late system does not delay it, except for `Arrival::BackToBack`,
which is closed by its nature."""


Backend = Literal["live", "sim"]
"""Live testbed or simulator."""


BitRate = int
"""Bits per second, never zero: a link without a limit has no `BitRate`."""


class BrokerRole(TypedDict):
    """A broker, as the simulator models it."""
    service: ServiceTime
    settings: BrokerSettings


class BrokerSettings(TypedDict):
    """Broker behaviour that decides latency and loss."""
    max_inflight: int
    max_queued: int
    persistence: bool
    retry: RetryPlan | None
    tcp_nodelay: bool
    topic_alias_maximum: int


class ChangedPublication(TypedDict):
    """What an event makes of a publication: another payload, another QoS. Its topics, and when messages are due, are
    those of the publication."""
    publication: int
    publish: Publish


class ChangedRate(TypedDict):
    """A rate in place of a publication's own."""
    interval_ns: int | None


class ChannelSpec(TypedDict):
    """Errors in bursts at every receiver on its own (Gilbert and Elliott's channel in time): good and bad states of
    exponential length. Frames are lost in the bad state only."""
    bad: Ratio
    loss_bad: Ratio
    mean_bad_ns: Duration


class Churn(TypedDict):
    """Clients that come and go: from the begin of publishing to its end each leaves, stays away, comes, and so on. The
    first leave one after another, evenly over the two times together."""
    away_ns: Duration
    hold_ns: Duration
    law: HoldLaw


class ClientProgram(TypedDict):
    """A program that is a client. It publishes and subscribes as it likes, and is observed by the frames that it
    exchanges. In arguments, environment and file texts `{address}` and `{port}` stand for its server's, `{group}` and
    `{client}` for its group and its number there, `{client_id}` for the MQTT client identifier that it should take, and
    `{directory}` for a private scratch directory."""
    command: list[str]
    environment: dict[str, str]
    files: list[ServerFile]
    ready_line: str | None


class ClientsChangeDisconnect(TypedDict):
    kind: Literal["disconnect"]


class ClientsChangeVanish(TypedDict):
    kind: Literal["vanish"]


class ClientsChangeReturn(TypedDict):
    kind: Literal["return"]


class ClientsChangeStopReading(TypedDict):
    kind: Literal["stop_reading"]


class ClientsChangeContinueReading(TypedDict):
    kind: Literal["continue_reading"]


class ClientsChangeSubscribe(TypedDict):
    filter: TopicPattern
    kind: Literal["subscribe"]
    qos: int


class ClientsChangeUnsubscribe(TypedDict):
    filter: TopicPattern
    kind: Literal["unsubscribe"]


class ClientsChangePublish(TypedDict):
    kind: Literal["publish"]
    publications: list[PublicationChange]


class ClientsChangeBurst(TypedDict):
    kind: Literal["burst"]
    messages: int
    publications: list[int]


ClientsChange = (
    ClientsChangeDisconnect
    | ClientsChangeVanish
    | ClientsChangeReturn
    | ClientsChangeStopReading
    | ClientsChangeContinueReading
    | ClientsChangeSubscribe
    | ClientsChangeUnsubscribe
    | ClientsChangePublish
    | ClientsChangeBurst
)
"""What happens to clients."""


class ClientsEvent(TypedDict):
    """Some clients change at once."""
    at_ns: Duration
    begins: NotRequired[int | None]
    change: ClientsChange
    clients: list[int]
    ends: NotRequired[list[int]]
    name: str


CongestionControl = Literal["reno", "cubic", "bbr"]
"""Congestion control algorithms that a scenario may name. The simulator has those that are
[modelled](CongestionControl::is_modelled)."""


DelayLaw = Literal["constant", "uniform", "normal", "pareto", "paretonormal"]
"""Laws of delay."""


class DelaySpec(TypedDict):
    """Propagation delay."""
    correlation: Ratio
    jitter_ns: Duration
    keep_order: bool
    law: DelayLaw
    mean_ns: Duration


class DelayedAckOff(TypedDict):
    kind: Literal["off"]


class DelayedAckEverySecond(TypedDict):
    kind: Literal["every_second"]
    timeout_ns: Duration


class DelayedAckAdaptive(TypedDict):
    kind: Literal["adaptive"]
    max_ns: Duration
    min_ns: Duration


DelayedAck = DelayedAckOff | DelayedAckEverySecond | DelayedAckAdaptive
"""When received data is acknowledged."""


class DisciplineTailDrop(TypedDict):
    kind: Literal["tail_drop"]


class DisciplineCodel(TypedDict):
    ecn: bool
    interval_ns: Duration
    kind: Literal["codel"]
    largest_frame_bytes: int
    target_ns: Duration


class DisciplineFqCodel(TypedDict):
    ecn: bool
    flows: int
    interval_ns: Duration
    kind: Literal["fq_codel"]
    largest_frame_bytes: int
    quantum_bytes: int
    target_ns: Duration


Discipline = DisciplineTailDrop | DisciplineCodel | DisciplineFqCodel
"""Which frame leaves a queue next, and which is dropped."""


DownQueue = Literal["keep", "drop"]
"""What becomes of frames that wait when a link goes down, and of those that come while it is down."""


Duration = int
"""A length of time in nanoseconds, never negative."""


class DutySpecConstant(TypedDict):
    kind: Literal["constant"]


class DutySpecRegular(TypedDict):
    kind: Literal["regular"]
    off_ns: Duration
    on_ns: Duration


class DutySpecExponential(TypedDict):
    kind: Literal["exponential"]
    off_ns: Duration
    on_ns: Duration


DutySpec = DutySpecConstant | DutySpecRegular | DutySpecExponential
"""When an interferer that is switched on radiates."""


class Endpoint(TypedDict):
    """An address that a server listens on."""
    address: str
    port: int
    transport: EndpointTransport


EndpointTransport = Literal["tcp", "udp", "websocket", "tls", "wss"]
"""What carries packets to an endpoint."""


class EnergyProfile(TypedDict):
    """A radio's supply and currents."""
    idle_ua: int
    name: str
    receive_ua: int
    sleep_na: int
    transmit_ua: int
    voltage_mv: int


ErrorModel = Literal["threshold", "snr"]
"""How a frame that stands out of noise and interference is lost."""


class FadingSpecRayleigh(TypedDict):
    coherence_ns: Duration
    kind: Literal["rayleigh"]


class FadingSpecNakagami(TypedDict):
    coherence_ns: Duration
    kind: Literal["nakagami"]
    m_milli: int


FadingSpec = FadingSpecRayleigh | FadingSpecNakagami
"""Block fading."""


ForgottenFlow = Literal["drop", "revive"]
"""What becomes of a frame from inside whose mapping is forgotten, and that begins no connection."""


GatewayMode = Literal["transparent", "aggregating"]
"""How clients reach the broker through a gateway."""


class GatewayRole(TypedDict):
    """A gateway: what it does, for the program and for the simulator."""
    advertise_ns: Duration | None
    broker: int
    broker_queue: int
    broker_window: int
    buffer: int
    client_id: str
    clients_max: int
    filter_duplicates: bool
    id: int
    keep_alive_s: int
    mode: GatewayMode
    predefined_topics: list[PredefinedTopic]
    retries: int
    retry_ns: Duration
    service: ServiceTime
    window: int


class GranularityExact(TypedDict):
    kind: Literal["exact"]


class GranularityFastSlow(TypedDict):
    fast_ns: Duration
    kind: Literal["fast_slow"]
    slow_ns: Duration


class GranularityWheel(TypedDict):
    kind: Literal["wheel"]
    tick_ns: Duration


Granularity = GranularityExact | GranularityFastSlow | GranularityWheel
"""When a timer that is due at some instant really fires: never earlier, often later."""


class Group(TypedDict):
    """Clients alike. A client may publish, subscribe, relay, or several of these."""
    changed_publications: list[ChangedPublication]
    churn: NotRequired[Churn | None]
    connect_over_ns: Duration
    connects_to: int
    count: int
    host: int
    host_step: int
    hosts_in_turn: NotRequired[int | None]
    late_after_ns: Duration | None
    name: str
    program: ClientProgram | None
    protocol: Protocol
    publications: list[Publish]
    reconnect: Reconnect
    relay: Relay | None
    subscriptions: list[Subscription]
    transport: Transport


HoldLaw = Literal["constant", "exponential"]
"""How long clients that come and go stay."""


class HopLink(TypedDict):
    link: int


HopRadioFields = TypedDict("HopRadioFields", {
    "from": "int",
    "medium": "int",
    "to": "int",
})


class HopRadio(TypedDict):
    radio: HopRadioFields


Hop = HopLink | HopRadio
"""One thing that a frame crosses."""


class Host(TypedDict):
    """A machine: in a live run a network namespace, in the simulator a node."""
    address: str
    limits: NotRequired[HostLimits | None]
    name: str
    tcp: TcpPlan


class HostLimits(TypedDict):
    """What the servers and programs of a host have together; what is left out is no limit."""
    disk_bytes_s: int | None
    memory_bytes: int | None
    processor: Ratio | None


class InterfererSpec(TypedDict):
    """A source of power."""
    duty: DutySpec
    name: str
    on: bool
    position: Position
    power_mdbm: int


class KeepAlive(TypedDict):
    """Keep-alive probes."""
    idle_ns: Duration
    interval_ns: Duration
    probes: int


class LinkChangeDown(TypedDict):
    kind: Literal["down"]
    queue: DownQueue


class LinkChangeUp(TypedDict):
    kind: Literal["up"]


class LinkChangeSpec(TypedDict):
    kind: Literal["spec"]
    spec: LinkSpec


LinkChange = LinkChangeDown | LinkChangeUp | LinkChangeSpec
"""A change of a link."""


class LinkSpec(TypedDict):
    """One direction of a link."""
    corruption: Ratio
    delay: DelaySpec
    duplication: Ratio
    loss: LossSpec
    loss_at: LossPlace
    minimum_frame_bytes: int
    name: str
    overhead_bytes: int
    policer: PolicerSpec | None
    queue: QueueSpec
    rate_bit_s: BitRate | None
    reordering: ReorderSpec


class LinksEvent(TypedDict):
    """Some links change at once."""
    at_ns: Duration
    begins: NotRequired[int | None]
    change: LinkChange
    ends: NotRequired[list[int]]
    links: list[str]
    name: str


class LivePlan(TypedDict):
    """How the live testbed performs the plan."""
    latency_compensation_ns: Duration | None
    parts: int
    port: PortKind
    probe_ns: Duration | None
    real_time: bool
    workers: int


LossPlace = Literal["entry", "exit"]
"""Where loss happens."""


class LossSpecNone(TypedDict):
    kind: Literal["none"]


class LossSpecBernoulli(TypedDict):
    kind: Literal["bernoulli"]
    probability: Ratio


class LossSpecGilbertElliott(TypedDict):
    bad_to_good: Ratio
    good_to_bad: Ratio
    kind: Literal["gilbert_elliott"]
    loss_bad: Ratio
    loss_good: Ratio


class LossSpecBitGilbertElliott(TypedDict):
    bad_to_bad: Ratio
    error_bad: Ratio
    error_good: Ratio
    good_to_bad: Ratio
    kind: Literal["bit_gilbert_elliott"]


LossSpec = LossSpecNone | LossSpecBernoulli | LossSpecGilbertElliott | LossSpecBitGilbertElliott
"""Loss."""


class MacSpec(TypedDict):
    """Access, retries and queues."""
    difs_from_queueing: bool
    long_retry_limit: int
    queue_limit_frames: int | None
    rts_threshold_bytes: int | None
    short_retry_limit: int


class MediumChangeInterfererOn(TypedDict):
    interferer: str
    kind: Literal["interferer_on"]


class MediumChangeInterfererOff(TypedDict):
    interferer: str
    kind: Literal["interferer_off"]


class MediumChangeStationsOff(TypedDict):
    kind: Literal["stations_off"]
    stations: list[int]


class MediumChangeStationsOn(TypedDict):
    kind: Literal["stations_on"]
    stations: list[int]


class MediumChangeStationMoved(TypedDict):
    kind: Literal["station_moved"]
    position: Position
    station: int


MediumChange = (
    MediumChangeInterfererOn
    | MediumChangeInterfererOff
    | MediumChangeStationsOff
    | MediumChangeStationsOn
    | MediumChangeStationMoved
)
"""A change of a medium."""


class MediumEvent(TypedDict):
    """A radio channel changes."""
    at_ns: Duration
    begins: NotRequired[int | None]
    change: MediumChange
    ends: NotRequired[list[int]]
    medium: str
    name: str


class MediumSpec(TypedDict):
    """A radio channel and the stations on it."""
    channel: ChannelSpec | None
    energy: EnergyProfile
    interferers: list[InterfererSpec]
    mac: MacSpec
    mobility: MobilitySpec
    name: str
    phy: PhySpec
    placement: PlacementSpec
    radio: RadioSpec


class MessageProperties(TypedDict):
    """Properties of a publication's messages (MQTT 5 §3.3.2.3), which brokers forward unaltered, but for the expiry
    interval."""
    content_type: str | None
    correlation_data: TopicPattern | None
    expiry_s: NotRequired[int | None]
    payload_is_text: bool | None
    response_topic: TopicPattern | None
    user: list[UserProperty]


class MobilitySpecNone(TypedDict):
    kind: Literal["none"]


class MobilitySpecRandomWaypoint(TypedDict):
    height_mm: int
    kind: Literal["random_waypoint"]
    pause_ns: Duration
    refresh_ns: Duration
    speed_max_mm_s: int
    speed_min_mm_s: int
    width_mm: int


MobilitySpec = MobilitySpecNone | MobilitySpecRandomWaypoint
"""How stations move."""


Modulation = Literal["dsss", "erp_ofdm"]
"""How bits become time."""


class MqttPlan(TypedDict):
    """A client's session."""
    clean_session: bool
    client_id: str
    credentials: NotRequired[str | None]
    deliver_on_release: bool
    keep_alive_s: int
    max_inflight: int
    max_queued: int
    password: str | None
    ping: PingPlan
    receive_maximum: int
    retry: RetryPlan | None
    session_expiry_s: int
    topic_alias_maximum: int
    topic_aliases: int
    username: str | None
    version: ProtocolVersion
    will: Will | None


class MqttSnPlan(TypedDict):
    """A client's session of MQTT-SN 1.2."""
    clean_session: bool
    client_id: str
    deliver_on_release: bool
    keep_alive_s: int
    max_queued: int
    predefined_topics: list[PredefinedTopic]
    retries: int
    retry_ns: Duration
    search_radius: int | None
    short_topics: bool
    sleep: SleepPlan | None
    wait_ns: Duration
    will: Will | None
    without_connection: bool


Nagle = Literal["off", "classic", "minshall"]
"""When a segment that is not full waits for acknowledgements."""


class NatPlan(TypedDict):
    """A translator of addresses, between the links of one network."""
    forgotten: ForgottenFlow
    inward: list[str]
    outward: list[str]
    timeout_ns: Duration


class Network(TypedDict):
    """Links, and which of them each direction between two hosts crosses."""
    description: str
    kind: NetworkKind
    links: list[LinkSpec]
    media: list[MediumSpec]
    mtu_bytes: int
    nats: list[NatPlan]
    paths: list[PathPlan]
    traces: list[TraceSpec]


NetworkKind = Literal["loopback", "veth", "emulated", "external"]
"""How frames get from host to host."""


PathPlan = TypedDict("PathPlan", {
    "from": "int",
    "hops": "list[Hop]",
    "to": "int",
})
"""The links from one host to another, in order."""


class PayloadFixed(TypedDict):
    bytes: int
    kind: Literal["fixed"]


class PayloadRandom(TypedDict):
    bytes: int
    kind: Literal["random"]


class PayloadGps(TypedDict):
    kind: Literal["gps"]


class PayloadImage(TypedDict):
    kind: Literal["image"]


class PayloadFile(TypedDict):
    bytes: int
    kind: Literal["file"]
    path: str


class PayloadPicture(TypedDict):
    bytes: int
    format: PictureFormat
    kind: Literal["picture"]


class PayloadTemplate(TypedDict):
    bytes: int | None
    kind: Literal["template"]
    name: str
    parts: list[TemplatePart]


Payload = PayloadFixed | PayloadRandom | PayloadGps | PayloadImage | PayloadFile | PayloadPicture | PayloadTemplate
"""What is in a message. Every payload of 9 B or more carries its identity, a smaller one the end of its number."""


class Phases(TypedDict):
    """The run's three phases, one after the other. Publishing begins when every client has connected and subscribed (or
    `connect_timeout` has passed) and ends with the measurement."""
    connect_timeout_ns: Duration
    cool_down_ns: Duration
    duration_ns: Duration
    warm_up_ns: Duration


class PhySpec(TypedDict):
    """The physical layer: one data rate, one control rate."""
    ack_rate_bit_s: BitRate | None
    control_rate_bit_s: BitRate
    cw_max_slots: int
    cw_min_slots: int
    data_rate_bit_s: BitRate
    modulation: Modulation
    preamble_ns: Duration
    sifs_ns: Duration
    slot_ns: Duration


PictureFormat = Literal["jpeg", "png"]
"""The format of a picture."""


PingPlan = Literal["sent", "silence", "interval"]
"""What makes a client ping its broker, and leave one that does not answer."""


class PlacementSpecExplicit(TypedDict):
    kind: Literal["explicit"]
    positions: list[Position]


class PlacementSpecGrid(TypedDict):
    kind: Literal["grid"]
    spacing_mm: int
    stations: int


class PlacementSpecRandom(TypedDict):
    height_mm: int
    kind: Literal["random"]
    stations: int
    width_mm: int


PlacementSpec = PlacementSpecExplicit | PlacementSpecGrid | PlacementSpecRandom
"""Where the stations are at the start."""


class Plan(TypedDict):
    """Everything one run needs."""
    backend: Backend
    description: str
    events: list[Event]
    groups: list[Group]
    hosts: list[Host]
    live: LivePlan
    name: str
    network: Network
    phases: Phases
    recording: RecordingPlan
    repetition: int
    schema: int
    seed: Seed
    servers: list[Server]
    sim: SimPlan
    stages: NotRequired[list[Stage]]


class PolicerSpec(TypedDict):
    """A token bucket without a queue: frames that exceed it are dropped (RFC 2697 with an excess burst of 0)."""
    burst_bytes: int
    rate_bit_s: BitRate


PortKind = Literal["auto", "tun", "packet"]
"""The device between a namespace and the emulator."""


class Position(TypedDict):
    """A point of the plane."""
    x_mm: int
    y_mm: int


class PredefinedTopic(TypedDict):
    """A topic that both sides know beforehand."""
    id: int
    name: str


class ProtocolMqtt(TypedDict):
    mqtt: MqttPlan


class ProtocolMqttSn(TypedDict):
    mqtt_sn: MqttSnPlan


class ProtocolZeromq(TypedDict):
    zeromq: ZeroMqPlan


Protocol = ProtocolMqtt | ProtocolMqttSn | ProtocolZeromq
"""A protocol, and a client's session of it."""


ProtocolVersion = Literal["3.1", "3.1.1", "5"]
"""Protocol version."""


class ProxyRole(TypedDict):
    """A proxy, and what the simulator must know to stand in for it."""
    service: ServiceTime
    to: int | None


class PublicationChange(TypedDict):
    """What a publication is from an event on."""
    content: int
    publication: int
    rate: ChangedRate | None


class Publish(TypedDict):
    """A publication: messages of one kind that a client publishes."""
    arrival: Arrival
    messages: int | None
    payload: Payload
    properties: MessageProperties
    qos: int
    replay: Replay | None
    retain: bool
    stages: list[RateStage]
    start_phase: StartPhase
    topic: TopicPattern
    topics: int


class QueueSpec(TypedDict):
    """Limits of the queue; a frame that exceeds one is dropped."""
    counts_delay_line: bool
    discipline: Discipline
    limit_bytes: int | None
    limit_packets: int | None


class RadioSpec(TypedDict):
    """Powers and thresholds, the same at every station. Path loss is free space up to 1 m (from the frequency), and
    grows by ten times the exponent a decade from there."""
    capture_mdb: int | None
    carrier_sense_mdbm: int
    errors: ErrorModel
    exponent_milli: int
    fading: FadingSpec | None
    frequency_hz: int
    interference_floor_mdbm: int
    noise_mdbm: int
    sensitivity_mdbm: int
    shadowing: ShadowingSpec | None
    snir_control_mdb: int
    snir_data_mdb: int
    snir_preamble_mdb: int
    transmit_power_mdbm: int


class RateStage(TypedDict):
    """A part of the time in which a rate stays, or changes evenly from one to another."""
    from_interval_ns: int | None
    length_ns: Duration
    to_interval_ns: int | None


Ratio = list[int]
"""A fraction between 0 and 1. JSON: `[numerator, denominator]`."""


class ReadinessLogLine(TypedDict):
    log_line: str


Readiness = Literal["tcp_accept", "connack", "udp_bound"] | ReadinessLogLine
"""How to know that a server serves."""


class Reconnect(TypedDict):
    """What happens after a connection is lost: wait, then try again."""
    connect_timeout_ns: Duration
    enabled: bool
    initial_ns: Duration
    jitter: Ratio
    maximum_ns: Duration


class RecordingPlan(TypedDict):
    """What is written down beside messages, events and resources."""
    packets: bool
    payloads: bool
    pcapng: bool
    resource_interval_ns: Duration
    summary: NotRequired[SummaryPlan | None]
    tcp_state_interval_ns: Duration


class Relay(TypedDict):
    """Republishing: every message received goes out again."""
    qos: int
    topic_suffix: str


class ReorderSpec(TypedDict):
    """Reordering, as netem does it: a frame skips the delay and overtakes those before it."""
    gap: int
    probability: Ratio


class Replay(TypedDict):
    """A table of messages, and how it is replayed."""
    bytes: int
    clients: list[str]
    columns: ReplayColumns
    delimiter: str
    path: str
    period_ns: int | None
    rows: int
    second_us: int
    time: ReplayTime


class ReplayColumns(TypedDict):
    """Where a table has what. What it does not have is the publication's."""
    client: int | None
    payload: int | None
    qos: int | None
    retain: int | None
    sequence: NotRequired[int | None]
    size: int | None
    time: int
    topic: int | None


ReplayTime = Literal["s", "ms", "us", "ns", "iso"]
"""How a table writes times."""


RetainHandling = Literal["send", "new", "never"]
"""When a subscription is sent what was retained."""


class RetryPlan(TypedDict):
    """MQTT 3.1's timed repetition."""
    interval_ns: Duration


class RoleBroker(TypedDict):
    broker: BrokerRole


class RoleGateway(TypedDict):
    gateway: GatewayRole


class RoleProxy(TypedDict):
    proxy: ProxyRole


class RoleZeromq(TypedDict):
    zeromq: ZeroMqRole


Role = RoleBroker | RoleGateway | RoleProxy | RoleZeromq
"""What a server is for."""


RtoFloor = Literal["timeout", "variance"]
"""What the minimum RTO bounds."""


Seed = int
"""What a random stream grows from."""


class Server(TypedDict):
    """A program inside a host, or an address where one is running already."""
    endpoints: list[Endpoint]
    host: int
    kind: str
    name: str
    process: ServerProcess | None
    role: Role
    trust: Trust | None
    version: str
    when_it_dies: WhenItDies


class ServerChange(TypedDict):
    """What happens to a server."""
    kind: ServerChangeKind
    persistence: bool


ServerChangeKind = Literal["stop", "kill", "pause", "continue", "start"]
"""The changes of a server."""


class ServerEvent(TypedDict):
    """A server changes."""
    at_ns: Duration
    begins: NotRequired[int | None]
    change: ServerChange
    ends: NotRequired[list[int]]
    name: str
    server: str


Event = LinksEvent | MediumEvent | ServerEvent | ClientsEvent
"""One change, by what it acts on: the field `links`, `medium`, `server` or `clients` tells which."""


class ServerFile(TypedDict):
    """A text file in a server's scratch directory."""
    path: str
    text: str


class ServerProcess(TypedDict):
    """A program to start. In arguments, environment and file texts `{directory}` stands for a private scratch
    directory, and `{engine}` for the engine's own program. A server with an endpoint for TLS finds a certificate that
    was made for the run in `{directory}/tls/server.pem`, its key in `server.key` and the authority's certificate in
    `ca.pem`."""
    command: list[str]
    environment: dict[str, str]
    files: list[ServerFile]
    ready: Readiness
    start_timeout_ns: Duration


class ServiceTime(TypedDict):
    """Service time of the simulated broker, as a live run calibrates it."""
    jitter: Ratio
    per_copy_ns: Duration
    per_packet_ns: Duration


class ShadowingSpec(TypedDict):
    """Log-normal shadowing: a gain for each pair of stations, in decibels normally distributed."""
    decorrelation_mm: int | None
    sigma_mdb: int


class SimPlan(TypedDict):
    """How the simulator performs the plan."""
    client_wake_up_ns: Duration
    detect_transient: bool
    stop: StopRule | None
    tcp_stacks: dict[str, Stack]


class SleepPlan(TypedDict):
    """How a client sleeps."""
    duration_s: int
    linger_ns: Duration
    publish_when_awake: bool
    wake_every_ns: Duration


class Stack(TypedDict):
    """A stack's behaviour that no kernel lets be set. What a field means is said at the `Profile`'s of the same
    name."""
    delayed_ack: DelayedAck
    dsack: bool
    echoes_repetitions: bool
    fresh_is_no_duplicate: bool
    granularity: Granularity
    half_window_segments: bool
    keep_alive: KeepAlive | None
    limited_transmit: bool
    nagle: Nagle
    rack: bool
    rate_reduction: bool
    receive_buffer_bytes: int
    retries: int
    rto_floor: RtoFloor
    rto_initial_ns: Duration
    send_buffer_bytes: int
    send_buffer_bytes_max: int
    skb_coalescing: bool
    slow_start_after_idle: bool
    syn_echoes_latest: bool
    time_wait_ns: Duration
    timestamp_tick_ns: Duration
    truesize: bool
    undo: bool
    window_scale: int
    window_unit: WindowUnit


class Stage(TypedDict):
    """A stretch of the measurement with a name. Times count from when publishing begins."""
    from_ns: Duration
    measured: bool
    name: str
    until_ns: Duration


StartPhase = Literal["random", "even", "synchronised"]
"""When the first message is due, within the first interval."""


class StopRule(TypedDict):
    """When a simulation may stop early: when any of these is reached."""
    deliveries_outstanding: int | None
    messages_per_subscriber: int | None
    relative_accuracy_ppm: int | None


class Subscription(TypedDict):
    """A subscription."""
    filter: TopicPattern
    no_local: NotRequired[bool]
    qos: int
    retain_as_published: NotRequired[bool]
    retain_handling: NotRequired[RetainHandling | None]


class SummaryPlan(TypedDict):
    """How messages are added up while a run goes on."""
    fold_bytes: int
    rows_most: int


class TcpPlan(TypedDict):
    """One host's TCP: a profile, and what differs from it. The same fields set the kernel's TCP in a live run and the
    simulator's. The defaults are those of Linux; a profile has others."""
    congestion_control: CongestionControl
    delayed_ack: bool
    delayed_ack_max_ns: Duration | None
    ecn: bool
    initial_window_segments: int
    mss_bytes: int | None
    profile: str
    receive_buffer_bytes: int | None
    rto_max_ns: Duration
    rto_min_ns: Duration
    sack: bool
    send_buffer_bytes: int | None
    syn_linear_retries: int
    syn_retries: int
    tail_loss_probe: bool
    timestamps: bool
    window_scaling: bool


class TcpTransport(TypedDict):
    """The clients' end of a TCP connection; the rest is its host's."""
    nodelay: bool
    tls: TlsPlan | None
    websocket: WebSocketPlan | None


class TemplatePartText(TypedDict):
    kind: Literal["text"]
    text: str


class TemplatePartIdentity(TypedDict):
    kind: Literal["identity"]


class TemplatePartClient(TypedDict):
    kind: Literal["client"]
    width: int


class TemplatePartSequence(TypedDict):
    kind: Literal["sequence"]
    width: int


class TemplatePartTime(TypedDict):
    format: TimeFormat
    kind: Literal["time"]


class TemplatePartNumber(TypedDict):
    decimals: int
    high: int
    kind: Literal["number"]
    low: int


class TemplatePartHex(TypedDict):
    digits: int
    kind: Literal["hex"]


class TemplatePartChoice(TypedDict):
    choices: list[str]
    kind: Literal["choice"]


class TemplatePartUuid(TypedDict):
    kind: Literal["uuid"]


TemplatePart = (
    TemplatePartText
    | TemplatePartIdentity
    | TemplatePartClient
    | TemplatePartSequence
    | TemplatePartTime
    | TemplatePartNumber
    | TemplatePartHex
    | TemplatePartChoice
    | TemplatePartUuid
)
"""A part of a template. What is random follows from the seed, the client, and the number of the message."""


TimeFormat = Literal["s", "ms", "us", "ns", "iso"]
"""How a time is written in a template."""


class TlsPlan(TypedDict):
    """TLS, with certificates that are made for the run, or with whom a server that runs elsewhere says to trust."""
    client_certificate: bool
    resumption: bool
    version: TlsVersion


TlsVersion = Literal["1.2", "1.3"]
"""A version of TLS."""


TopicPattern = str
"""A topic or filter in which `{group}`, `{client}` (index within the group) and `{topic}` (running index below the
number of topics) are filled in. Other braces stand for themselves."""


class TraceCourseOpportunities(TypedDict):
    at_ms: list[int]
    bytes: int
    kind: Literal["opportunities"]


class TraceCourseValues(TypedDict):
    at_ns: list[Duration]
    delay_ns: list[Duration] | None
    jitter_ns: list[Duration] | None
    kind: Literal["values"]
    loss_ppb: list[int] | None
    rate_bit_s: list[int] | None


TraceCourse = TraceCourseOpportunities | TraceCourseValues
"""The table of a trace."""


class TraceSpec(TypedDict):
    """A trace, and the links that follow it."""
    begins_at_ns: Duration
    course: TraceCourse
    links: list[str]
    name: str
    period_ns: Duration | None


class TransportTcp(TypedDict):
    tcp: TcpTransport


Transport = Literal["udp"] | TransportTcp
"""What carries a protocol's packets."""


class Trust(TypedDict):
    """Who vouches for a server that somebody else runs."""
    authorities: str
    name: str | None


class UserProperty(TypedDict):
    """A user property (MQTT 5 §3.3.2.3.7)."""
    name: str
    value: str


class WebSocketPlan(TypedDict):
    """WebSocket (RFC 6455), a binary frame for each packet."""
    path: str


WhenItDies = Literal["end_run", "go_on"]
"""What the end of a server means for the run."""


class Will(TypedDict):
    """A message that the broker publishes when the client vanishes."""
    payload: str
    qos: int
    retain: bool
    topic: str


WindowUnit = Literal["segments", "bytes"]
"""What the congestion window counts: a small segment fills a window of segments as much as a large one."""


class ZeroMqPlan(TypedDict):
    """A client's socket: a PUB where the group publishes, a SUB where it subscribes."""
    client_id: str
    high_water_mark: int


class ZeroMqRole(TypedDict):
    """A ZeroMQ proxy: an XSUB socket at its first endpoint, to which publishers connect, and an XPUB socket at its
    second one."""
    high_water_mark: int
    service: ServiceTime
