//! What a producer says: the rows it pushes while the run goes on.
//!
//! They are smaller than the rows of the tables. What can be worked out afterwards (which messages were lost, by
//! whom; what was out of order; who was disconnected how often) is worked out when the recording is finished, so
//! that the simulator, the live run and an import cannot differ in it. Clients, hosts, links and topics are
//! indices into the [`Layout`](crate::Layout).

use mqttlab_net::Cause;
use mqttlab_units::{Duration, GeoPoint, Instant, words};

use crate::packet_protocol::PacketProtocol;
use crate::record::{fields_of_words, record};

record! {
    /// A message that was handed to its publisher's session. A second row with the same publisher and sequence
    /// replaces the first, so that a producer may say it once when it hands over and once when it has written.
    pub struct Sent {
        /// The publishing client.
        pub publisher: u32,
        /// The publisher's own count of messages offered, from 0, sent or not.
        pub sequence: u32,
        /// The topic it was published to.
        pub topic: u32,
        /// Quality of service: 0, 1 or 2.
        pub qos: u8,
        /// Whether RETAIN was set.
        pub retain: bool,
        /// Size of the application message.
        pub payload_bytes: u32,
        /// When the schedule wanted it sent.
        pub intended: Instant,
        /// When it was handed to the session.
        pub sent: Instant,
        /// When the socket accepted its last byte; `None` when it never did.
        pub written: Option<Instant>,
        /// Which of its group's publications it is of, from 0; `None` where the group has one, or nobody knows.
        pub publication: Option<u16>,
    }
}

record! {
    /// The last acknowledgement of a message came back to its publisher: PUBACK at QoS 1, PUBCOMP at QoS 2.
    pub struct Acknowledged {
        /// The publishing client.
        pub publisher: u32,
        /// Which of its messages.
        pub sequence: u32,
        /// When the acknowledgement was read.
        pub at: Instant,
    }
}

record! {
    /// A message that the schedule offered and that was never handed to a session: the client was disconnected,
    /// or its queue was full.
    pub struct Unsent {
        /// The publishing client.
        pub publisher: u32,
        /// Its place in the publisher's count.
        pub sequence: u32,
        /// The topic it would have been published to.
        pub topic: u32,
        /// Quality of service it was offered with.
        pub qos: u8,
        /// Size of the application message.
        pub payload_bytes: u32,
        /// When the schedule wanted it sent.
        pub intended: Instant,
        /// Which of its group's publications it is of, as in [`Sent`].
        pub publication: Option<u16>,
    }
}

impl From<&Sent> for Unsent {
    /// The message when it turns out that it was not sent.
    fn from(row: &Sent) -> Self {
        Unsent {
            publisher: row.publisher,
            sequence: row.sequence,
            topic: row.topic,
            qos: row.qos,
            payload_bytes: row.payload_bytes,
            intended: row.intended,
            publication: row.publication,
        }
    }
}

record! {
    /// A PUBLISH that reached a subscriber, duplicates included.
    pub struct Received {
        /// The receiving client.
        pub subscriber: u32,
        /// The publishing client; `None` when the payload does not say and the order does not tell.
        pub publisher: Option<u32>,
        /// The message's number at its publisher, as in `messages`. Ignored when the publisher is unknown; of a will
        /// ([`Received::with_will`]) its client.
        pub sequence: u32,
        /// Quality of service of the delivery.
        pub qos: u8,
        /// Whether DUP was set.
        pub dup: bool,
        /// Whether RETAIN was set: a stored message, not a fresh one.
        pub retained: bool,
        /// Size of the application message.
        pub payload_bytes: u32,
        /// When the last byte was read.
        pub received: Instant,
        /// How publisher and sequence are known.
        pub identified: Identified,
    }
}

impl Received {
    /// The same delivery as a will of this client, or of one of several.
    pub fn with_will(self, client: Option<u32>) -> Received {
        let sequence = client.unwrap_or(WILL_OF_SEVERAL);
        Received { publisher: None, sequence, identified: Identified::Will, ..self }
    }

    /// The client whose will it is; `None` where it is none, or one of several clients'.
    pub fn will_of(&self) -> Option<u32> {
        (self.identified == Identified::Will && self.sequence != WILL_OF_SEVERAL).then_some(self.sequence)
    }
}

/// Stands for the client of a will that several have announced.
const WILL_OF_SEVERAL: u32 = u32::MAX;

record! {
    /// What a PUBLISH that reached a subscriber carried. Its bytes travel beside it.
    pub struct Payload {
        /// When its last byte was read.
        pub received: Instant,
        /// The receiving client.
        pub subscriber: u32,
        /// The publishing client; `None` when the payload does not say and the order does not tell.
        pub publisher: Option<u32>,
        /// The message's number at its publisher. Ignored when the publisher is unknown.
        pub sequence: u32,
        /// Where the bytes are from.
        pub source: PayloadSource,
    }
}

record! {
    /// A control packet as the client at the connection's end knows it, where no frame of the connection is recorded. The
    /// topic of a message travels beside it, behind the name of its kind where that has no number.
    pub struct OwnPacket {
        /// The client.
        pub client: u32,
        /// Which of the client's connections, from 0.
        pub connection: u32,
        /// Which way it went.
        pub towards: Towards,
        /// Its type, as MQTT numbers it (MQTT 5 §2.1.2); [`OwnPacket::NAMED`] where its name stands beside it.
        pub kind: u8,
        /// Quality of service of a message; 0 of others.
        pub qos: u8,
        /// DUP flag of a message.
        pub dup: bool,
        /// RETAIN flag of a message.
        pub retain: bool,
        /// Packet identifier; 0: it has none.
        pub packet_id: u16,
        /// Reason code or return code, when it has one.
        pub reason: Option<u16>,
        /// The client that published the message, where the payload says.
        pub publisher: Option<u32>,
        /// The message's number at its publisher, or what a small payload has of it.
        pub sequence: Option<u32>,
        /// Position of its first byte among the bytes of packets that went this way.
        pub start: u64,
        /// Fixed header.
        pub fixed_header_bytes: u8,
        /// Topic name with its length.
        pub topic_bytes: u32,
        /// Packet identifier.
        pub packet_id_bytes: u8,
        /// MQTT 5 properties with their length.
        pub property_bytes: u32,
        /// Application message; of other packets all that is left.
        pub payload_bytes: u32,
        /// To the broker: when the socket had taken its last byte; from it: when the read returned that brought that.
        pub at: Instant,
        /// What the client speaks.
        pub protocol: PacketProtocol,
        /// Of a kind with a name: whether it carries a message.
        pub is_message: bool,
    }
}

impl OwnPacket {
    /// The kind of a packet whose name stands first in what travels beside it, and a line feed behind it.
    pub const NAMED: u8 = u8::MAX;

    /// How long it is.
    pub fn bytes(&self) -> u64 {
        let small = u64::from(self.fixed_header_bytes) + u64::from(self.packet_id_bytes);
        let large = [self.topic_bytes, self.property_bytes, self.payload_bytes];
        small + large.into_iter().map(u64::from).sum::<u64>()
    }
}

impl Payload {
    /// Of a message that was received.
    pub fn of(row: &Received, source: PayloadSource) -> Payload {
        let Received { received, subscriber, publisher, sequence, .. } = *row;
        Payload { received, subscriber, publisher, sequence, source }
    }
}

words! {
    /// Where the bytes of a payload are from.
    pub enum PayloadSource {
        /// The client read them.
        Read = "read",
        /// A simulation made them from the plan: none of its bytes ever travelled.
        Made = "made",
    }
}

record! {
    /// A message that will not reach a receiver any more, as the broker's model, its log or the client's own socket
    /// knows. A delivery that was made nevertheless is what counts.
    pub struct Dropped {
        /// The publishing client.
        pub publisher: u32,
        /// Which of its messages.
        pub sequence: u32,
        /// Who will not receive it; `None`: nobody who has not.
        pub subscriber: Option<u32>,
        /// Why.
        pub cause: LossCause,
        /// When it was dropped.
        pub at: Instant,
    }
}

record! {
    /// A time of which the evidence is not whole: frames that a capture did not hold, a log that was cut. What a
    /// client sent or received then may be missing from the rows without having been lost.
    pub struct Gap {
        /// Whose evidence it is; `None`: everybody's.
        pub client: Option<u32>,
        /// From here.
        pub from: Instant,
        /// To here.
        pub until: Instant,
    }
}

words! {
    /// How a received message was matched to a sent one.
    pub enum Identified {
        /// The payload says so.
        Payload = "payload",
        /// The payload is too small to say; the n-th arrival on a topic with one publisher is its n-th message.
        Order = "order",
        /// Not at all.
        Unknown = "unknown",
        /// It is no message of a client's, but the will that a CONNECT has announced.
        Will = "will",
        /// By order, as a guess: of several messages with the same content not all arrived, or their order is not promised. Which
        /// delivery is of which message cannot be told, and neither can its latency.
        Ambiguous = "ambiguous",
    }
}

record! {
    /// Something that happened once. Its words travel beside it.
    pub struct Event {
        /// When.
        pub at: Instant,
        /// What.
        pub kind: EventKind,
        /// To which client; `None` when it is the run's or the broker's.
        pub client: Option<u32>,
        /// How long it took, where that is a question.
        pub took: Option<Duration>,
    }
}

words! {
    /// What an [`Event`] says. `took` is the time between request and answer for the answers.
    pub enum EventKind {
        /// A CONNECT was sent.
        Connect = "connect",
        /// A CONNACK that accepts was read; `took` counts from the start of the TCP connection's opening.
        Connack = "connack",
        /// A connection ended that should not have; the detail says how.
        Disconnect = "disconnect",
        /// A client set out to connect again after a disconnect.
        Reconnect = "reconnect",
        /// A SUBSCRIBE was sent.
        Subscribe = "subscribe",
        /// A SUBACK was read; `took` counts from the SUBSCRIBE.
        Suback = "suback",
        /// A connection, subscription or publication was refused; the detail holds the reason code.
        Refused = "refused",
        /// The run entered a phase; the detail names it.
        Phase = "phase",
        /// A server was started; the detail is its name and its version.
        ServerStart = "server_start",
        /// A server ended; the detail is its name and its exit status.
        ServerExit = "server_exit",
        /// Read this before you trust the numbers.
        Warning = "warning",
        /// Anything else worth a line.
        Note = "note",
        /// A connection was closed as planned.
        Close = "close",
        /// What the kernel had counted of a client's connection just before its socket was closed; the detail is a JSON
        /// object: `port` (the client's), `total_retrans`, `rtt_us`, `rto_us` (`tcpi_…` of tcp(7)).
        TcpInfo = "tcp_info",
        /// A part of a client's connection is open, where it has layers above TCP: the detail begins with `tcp`, `tls` (then
        /// version, `full` or `resumed`, cipher suite) or `websocket`; `took` counts from when the part below was, of TCP from the start of its opening.
        LayerOpen = "layer_open",
        /// A client's session ended, and its subscriptions with it.
        SessionEnd = "session_end",
        /// The program that performs a client was started; the detail is the file that keeps its output.
        ProgramStart = "program_start",
        /// It ended; the detail is its exit status.
        ProgramExit = "program_exit",
        /// A client of MQTT-SN fell asleep.
        Asleep = "asleep",
        /// It woke up, or its connection was over; `took` is how long it slept.
        Awake = "awake",
        /// A server's log says that it began to drop messages for the client, whose queue was full; the detail is the server's
        /// name. Which messages it does not say. Without a client: for one that the plan does not know.
        QueueFull = "queue_full",
        /// An event of the plan took place: a link, a server or clients changed. The detail is its name; rows are in the
        /// order of the plan's events.
        Change = "change",
        /// An event that somebody fired by hand took place. The detail is its name; `by-hand.jsonl` has what changed.
        ChangeByHand = "change_by_hand",
        /// An UNSUBSCRIBE was sent; the detail is the filter. So is that of `subscribe` and `suback` where an event of the scenario
        /// has the client subscribe to one more.
        Unsubscribe = "unsubscribe",
        /// An UNSUBACK was read; `took` counts from the UNSUBSCRIBE.
        Unsuback = "unsuback",
    }
}

record! {
    /// What a process had used, counted from its start, and how contended the machine was.
    pub struct Resource {
        /// When it was read.
        pub at: Instant,
        /// Whose it is.
        pub process: Process,
        /// Processor time in user mode.
        pub cpu_user: Duration,
        /// Processor time in the kernel.
        pub cpu_system: Duration,
        /// Memory resident.
        pub rss_bytes: u64,
        /// Voluntary context switches.
        pub switches_voluntary: u64,
        /// Involuntary context switches.
        pub switches_involuntary: u64,
        /// The machine's time with some task waiting for a processor (`/proc/pressure/cpu`, some, total).
        pub pressure_cpu: Duration,
        /// Time in which at least one task of the machine waited for memory.
        pub pressure_memory: Duration,
        /// Time in which at least one task of the machine waited for a disk.
        pub pressure_io: Duration,
        /// How long its threads could have run and had no processor.
        pub run_queue: Option<Duration>,
        /// Page faults that needed no disk.
        pub faults_minor: Option<u64>,
        /// Page faults that waited for a disk.
        pub faults_major: Option<u64>,
        /// Processor time that the hypervisor gave to others; of the machine only.
        pub steal: Option<Duration>,
        /// Which server it is, by its place in the plan; `None` of others, and in spools of before there were several.
        pub server: Option<u16>,
    }
}

words! {
    /// Whose resources are counted.
    pub enum Process {
        /// A server, with the processes that it has started.
        Server = "server",
        /// The engine, with emulator and clients.
        Engine = "engine",
        /// The emulator's thread alone.
        Emulator = "emulator",
        /// The whole machine.
        Machine = "machine",
    }
}

record! {
    /// What became of a frame on one link. Its bytes, if they are recorded, travel beside it.
    pub struct Frame {
        /// The link.
        pub link: u16,
        /// Which way it went.
        pub direction: Direction,
        /// Which link of its path this is, from 0.
        pub hop: u8,
        /// How many links its path has.
        pub hops: u8,
        /// A number that a frame keeps over all links of its path. Unique in the run.
        pub frame: u64,
        /// The host that sent it.
        pub from_host: u16,
        /// The host that it is for.
        pub to_host: u16,
        /// Its size as the link counts it, with the link's own headers.
        pub frame_bytes: u32,
        /// When it came to the link's queue.
        pub entered: Instant,
        /// When its first bit went out; `None` when it was dropped before.
        pub start: Option<Instant>,
        /// When its last bit went out.
        pub sent: Option<Instant>,
        /// When its last bit arrived; `None` when it did not.
        pub delivered: Option<Instant>,
        /// What became of it.
        pub fate: FrameFate,
        /// Why, where the fate is not that it was delivered.
        pub cause: Option<Cause>,
        /// For a segment with data, SYN or FIN: 0, or which of its sender's repetitions on this connection it is.
        pub repetition: Option<u32>,
    }
}

words! {
    /// Which way a frame goes on a link.
    pub enum Direction {
        /// From the link's first end to its second: from the clients towards the broker.
        Up = "up",
        /// From the second end to the first.
        Down = "down",
    }
}

words! {
    /// What became of a frame on a link.
    pub enum FrameFate {
        /// It arrived as it was sent.
        Delivered = "delivered",
        /// It did not arrive.
        Dropped = "dropped",
        /// It arrived damaged.
        Corrupted = "corrupted",
        /// It is a copy which the link made of another frame, and it arrived.
        Duplicated = "duplicated",
    }
}

words! {
    /// What became of a message at one receiver. Those whose `counts` is `expected` are what a receiver should have had.
    pub enum MessageFate {
        /// It arrived.
        Delivered = "delivered" { counts: "expected" },
        /// It arrived, and had arrived before.
        Duplicate = "duplicate",
        /// It arrived from the broker's store, because its receiver subscribed: a copy of what was published before.
        Retained = "retained",
        /// It was sent and will not arrive: it was dropped, or the session that owed it ended, or a later message of
        /// the same publisher, topic and QoS arrived (MQTT 5 §4.6).
        Lost = "lost" { counts: "expected" },
        /// It was sent, and had neither arrived nor been lost when the recording ended.
        UnderWay = "under_way" { counts: "expected", absent: "still under way" },
        /// It was sent, and the evidence does not show what became of it.
        Unknown = "unknown" { counts: "expected", absent: "of unknown fate" },
        /// It was offered and not sent.
        Unsent = "unsent",
        /// It was sent, and nobody subscribes to its topic.
        NoReceiver = "no_receiver" { absent: "without a receiver" },
        /// It arrived, and nobody is known to have sent it.
        Foreign = "foreign",
        /// It did not arrive, and nobody can tell whether it should have: the receiver was about to subscribe or to unsubscribe
        /// when its broker had it. Or it arrived with RETAIN, and nobody can tell whether from the broker's store: the receiver asks
        /// for Retain As Published.
        NotDecided = "not_decided" { absent: "of a subscription that was changing" },
        /// It arrived, and is the will of a client whose connection ended, which no client publishes.
        Will = "will",
    }
}

words! {
    /// Why a message is lost, or what else may have become of one whose fate is unknown.
    pub enum LossCause {
        /// As many messages waited at the broker for the receiver as may. Unknown: the broker does not say which it dropped.
        QueueFull = "queue_full" {
            lost: "the broker's queue was full",
            unknown: "the broker dropped messages and does not say which",
        },
        /// QoS 0: as many packets waited at the broker's socket to the receiver as may.
        SocketFull = "socket_full" { lost: "the broker's socket had no room" },
        /// The session in which it waited for its receiver ended.
        SessionEnded = "session_ended" {
            lost: "the receiver's session had ended",
            unknown: "the receiver's session ended before or after the broker had it",
        },
        /// The receiver had no subscription when the broker had the message. Unknown: nobody says when it had it.
        NotSubscribed = "not_subscribed" {
            lost: "the receiver had not subscribed yet",
            unknown: "the receiver was subscribed for a part of the time",
        },
        /// A connection broke, and nobody repeats what it carried. Unknown: nobody says whether it carried it.
        ConnectionLost = "connection_lost" {
            lost: "a connection broke",
            unknown: "a connection broke that may have carried it",
        },
        /// A gateway did not know what its topic was called, or the receiver did not want to.
        UnknownTopic = "unknown_topic" { lost: "a gateway did not know its topic" },
        /// A later message of the same publisher, topic and QoS reached the receiver.
        Overtaken = "overtaken" { lost: "a later message arrived before it" },
        /// Unknown: a delivery that nothing traces to a message may be this one.
        Untraced = "untraced" { unknown: "a delivery that nothing traces to a message may be it" },
        /// Unknown: what would tell was not recorded.
        NotRecorded = "not_recorded" { unknown: "what would tell was not recorded" },
        /// It waited at the broker for longer than its expiry interval.
        Expired = "expired" { lost: "it waited at the broker for longer than its expiry" },
        /// The broker acknowledged it and forwarded it to nobody: its publisher had more in flight than `max_inflight`.
        OverInflight = "over_inflight" {
            lost: "acknowledged by the broker, which then dropped it: over max_inflight_messages",
        },
        /// Its packet was sent, and the receiver's host never acknowledged it (TCP).
        NotAcknowledged = "not_acknowledged" {
            lost: "the receiving host never acknowledged it (TCP), and its connection ended",
        },
        /// Unknown: its packet was sent, its connection ended, and no acknowledgement of TCP was captured.
        NoAcknowledgement = "no_acknowledgement" {
            unknown: "it was sent, its connection ended, and no acknowledgement of TCP was captured",
        },
        /// The broker refused the PUBLISH, by the reason code of its PUBACK or PUBREC.
        Refused = "refused" { lost: "the broker refused it" },
        /// The broker answered that no subscription matches it, although there is one.
        NoMatchingSubscribers = "no_matching_subscribers" {
            lost: "the broker knew of no subscriber, although there was one",
        },
        /// Its packet is larger than its receiver takes, or than its broker takes of its publisher.
        TooLarge = "too_large" { lost: "larger than its receiver or its broker takes" },
        /// QoS 2: the session that would have released it ended before.
        NotReleased = "not_released" { lost: "QoS 2, and never released by PUBREL" },
        /// Its receiver had as many messages unacknowledged as it takes, until its session ended.
        WindowFull = "window_full" {
            lost: "its receiver acknowledged nothing more and had as much in flight as it takes",
        },
        /// Unknown: not all of several messages with the same content arrived, and which of them did not cannot be told.
        EqualContent = "equal_content" {
            unknown: "of several with equal contents; which of them did not arrive cannot be told",
        },
        /// A link's queue had no room for the datagram that carried it, or gave it up (CoDel), and nobody sends it again.
        LinkQueueFull = "link_queue_full" { lost: "a link's queue dropped it" },
        /// The datagram that carried it exceeded a policer's rate and burst.
        Policer = "policer" { lost: "a link's policer dropped it" },
        /// The link was down for the datagram that carried it.
        LinkDown = "link_down" { lost: "the link was down" },
        /// A link lost or damaged the datagram that carried it.
        LinkLoss = "link_loss" { lost: "a link lost or damaged it" },
    }
}

words! {
    /// Which part of a run something belongs to.
    pub enum Phase {
        /// Before measuring: queues fill and congestion windows open.
        WarmUp = "warm_up",
        /// What counts.
        Measurement = "measurement",
        /// After measuring: what is under way arrives.
        CoolDown = "cool_down",
    }
}

words! {
    /// Who saw a control packet.
    pub enum SeenBy {
        /// Whoever recorded the frames of its connection.
        Capture = "capture",
        /// The client at the connection's end, where no frame of it was recorded.
        Client = "client",
    }
}

words! {
    /// Which way a control packet goes.
    pub enum Towards {
        /// From the client.
        Broker = "to_broker",
        /// From the broker.
        Client = "to_client",
    }
}

words! {
    /// One of the two ends of a connection.
    pub enum End {
        /// Who opened it.
        Client = "client",
        /// Who accepted it.
        Server = "server",
    }
}

record! {
    /// What one end of a TCP connection knew of it at one time.
    pub struct TcpSample {
        /// When.
        pub at: Instant,
        /// The client at the connection's end.
        pub client: Option<u32>,
        /// The connection's number, as in `packets`; `None` where it is not known.
        pub connection: Option<u32>,
        /// Whose state this is.
        pub end: End,
        /// Retransmission time-out, backed off as it is.
        pub rto: Duration,
        /// Smoothed round-trip time; `None` before the first measurement.
        pub srtt: Option<Duration>,
        /// Congestion window.
        pub congestion_window_bytes: u64,
        /// Slow-start threshold; `None` before the first loss.
        pub slow_start_threshold_bytes: Option<u64>,
        /// Written by the application, and not sent yet.
        pub unsent_bytes: u64,
        /// Sent, and not acknowledged yet.
        pub unacknowledged_bytes: u64,
    }
}

words! {
    /// How a position is known.
    pub enum PositionSource {
        /// A radio station is there.
        Station = "station",
        /// Its client has said so, in the payload of a message.
        Payload = "payload",
    }
}

record! {
    /// Where somebody was at one time.
    pub struct PositionSample {
        /// When.
        pub at: Instant,
        /// How it is known.
        pub source: PositionSource,
        /// Whose it is; `None` of a station whose host has no clients.
        pub client: Option<u32>,
        /// The station's host.
        pub host: Option<u16>,
        /// The station's radio channel, as links are numbered.
        pub link: Option<u16>,
        /// Of a station: millimetres to the east of its plane's origin. In a payload: 10⁻⁷ degrees of longitude.
        pub east: i64,
        /// Of a station: millimetres to the north. In a payload: 10⁻⁷ degrees of latitude.
        pub north: i64,
        /// Height in millimetres.
        pub altitude_mm: Option<i64>,
    }
}

impl PositionSample {
    /// Where a client says that it is.
    pub fn said(at: Instant, client: u32, place: GeoPoint) -> PositionSample {
        PositionSample {
            at,
            source: PositionSource::Payload,
            client: Some(client),
            host: None,
            link: None,
            east: place.longitude_e7,
            north: place.latitude_e7,
            altitude_mm: place.altitude_mm,
        }
    }
}

fields_of_words! {
    PayloadSource, Identified, EventKind, Process, Direction, FrameFate, MessageFate, LossCause, Phase, SeenBy, Towards, End,
    PositionSource,
}
