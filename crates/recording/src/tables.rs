//! The tables of a recording. Their columns' meanings are the reference in `docs/reference/recording.md`.
//!
//! Times are nanoseconds since the start of the run; clients, hosts and links are numbered as in `layout.json`.

use mqttlab_rows::{
    Cause, Direction, EventKind, FrameFate, Identified, LossCause, MessageFate, Phase, SeenBy, Towards,
};

use crate::table::{Columns, Description, table};

table! {
    /// One row per message and receiver: deliveries with duplicates, messages that were lost on the way to each receiver, and
    /// messages that were offered and not sent.
    pub struct MessageRow<'a> in "messages", columns MessageColumns {
        /// The publishing client; empty when a delivery cannot be traced to one.
        pub publisher: Option<u32>,
        /// The publisher's own count of messages offered, from 0, sent or not.
        pub sequence: Option<u32>,
        /// The topic name.
        pub topic: Option<&'a str>,
        /// Which of the publications of its publisher's group it is of, from 0, in the order of the plan; empty where the group
        /// has one, and of imports, which know none.
        pub publication: Option<u16>,
        /// The receiving client; empty when the message was not sent or has no receiver, and where a shared
        /// subscription's member is not known because none received it.
        pub subscriber: Option<u32>,
        /// The message's fate at this receiver: `delivered`, `duplicate`, `retained`, `lost`, `under_way`, `unknown`, `unsent`,
        /// `no_receiver`, `foreign`, `not_decided` or `will`; "Fates" of the reference defines them.
        pub fate: MessageFate,
        /// Why it is lost, or why its fate is unknown, as the reference lists it under "Fates". Empty in recordings of schema
        /// version 1, and of unknown fates in some later ones.
        pub cause: Option<LossCause>,
        /// By its intended time: `warm_up`, `measurement` (all stages, those that are not measured, too) or
        /// `cool_down`. Foreign messages by the time they were received.
        pub phase: Phase,
        /// Quality of service it was published with.
        pub qos: Option<u8>,
        /// Quality of service it was delivered with.
        pub qos_delivered: Option<u8>,
        /// Size of the application message.
        pub payload_bytes: u32,
        /// Whether it was published with RETAIN.
        pub retain: bool,
        /// Whether it was delivered with RETAIN: from the broker's store.
        pub retained: bool,
        /// Whether it was delivered with DUP.
        pub dup: bool,
        /// Whether a message that the same publisher counted later had reached this receiver before.
        pub out_of_order: bool,
        /// Whether it took longer than the scenario allows.
        pub late: bool,
        /// How the delivery was matched to the message: `payload`, `order` (with what a payload of less than 9 bytes has of its
        /// number), `ambiguous` (by order, as a guess, without a latency), `will`, or `unknown`.
        pub identified: Option<Identified>,
        /// When it was due by the schedule. Latency counts from here.
        pub intended_ns: Option<u64>,
        /// When it was handed to the publisher's session.
        pub sent_ns: Option<u64>,
        /// When the publisher's socket had accepted its last byte.
        pub written_ns: Option<u64>,
        /// When its last acknowledgement was back: PUBACK at QoS 1, PUBCOMP at QoS 2.
        pub acknowledged_ns: Option<u64>,
        /// When the receiver had read its last byte.
        pub received_ns: Option<u64>,
        /// From intended to received.
        pub latency_ns: Option<u64>,
    }
}

table! {
    /// One row per frame and link. `repetition` is read from sequence numbers where a frame came to its first link, and is the
    /// same on every link. A copy that a link made has the number of its original: it was not sent again.
    pub struct PacketRow<'a> in "packets", columns PacketColumns {
        /// The link.
        pub link: u16,
        /// `up` from the link's first end to its second, `down` the other way.
        pub direction: Direction,
        /// Which link of the frame's path this is, from 0.
        pub hop: u8,
        /// How many links the path has.
        pub hops: u8,
        /// The frame's number, the same on every link of its path.
        pub frame: u64,
        /// The host that sent it.
        pub from_host: u16,
        /// The host it is for.
        pub to_host: u16,
        /// When it came to the link's queue.
        pub entered_ns: u64,
        /// When its first bit went out.
        pub start_ns: Option<u64>,
        /// When its last bit went out.
        pub sent_ns: Option<u64>,
        /// When its last bit arrived.
        pub delivered_ns: Option<u64>,
        /// `delivered`, `dropped`, `corrupted` (arrived damaged) or `duplicated` (a copy that the link made).
        pub fate: FrameFate,
        /// Why it was dropped or damaged: `queue_full`, `random_loss`, `burst_loss`, `bit_error`, `codel`, `link_down`,
        /// `nat_forgot`, `policer`; on a radio channel also `retry_limit` (the last permitted retry failed) and `unreachable`
        /// (the receiver is out of reach).
        pub cause: Option<Cause>,
        /// Size on the link, with the link's own headers.
        pub frame_bytes: u32,
        /// Size of the IP packet.
        pub ip_bytes: u32,
        /// The IP protocol number: 6 is TCP.
        pub protocol: u8,
        /// The sender's port.
        pub source_port: Option<u16>,
        /// The receiver's port.
        pub destination_port: Option<u16>,
        /// The TCP connection's number, in the order of their first packets.
        pub connection: Option<u32>,
        /// TCP sequence number, as on the wire.
        pub seq: Option<u32>,
        /// TCP acknowledgement number, as on the wire; empty without the ACK flag.
        pub ack: Option<u32>,
        /// TCP flags: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR.
        pub flags: Option<u8>,
        /// TCP window as in the header, not scaled.
        pub window: Option<u16>,
        /// TCP or UDP payload.
        pub payload_bytes: u32,
        /// TCP timestamp value.
        pub tsval: Option<u32>,
        /// TCP timestamp echo.
        pub tsecr: Option<u32>,
        /// Selective acknowledgements: `from-to` pairs of sequence numbers, separated by blanks.
        pub sack: Option<&'a str>,
        /// Position of the payload's first byte in the connection's stream of this direction, from 0.
        pub stream_offset: Option<u64>,
        /// The MQTT control packets whose last byte is in this segment, such as `PUBLISH(1,17) PUBACK(3)`: QoS and
        /// packet identifier. Empty where the segment was sent before.
        pub mqtt: Option<&'a str>,
        /// What the segment is, judged where it came to its first link: words of Wireshark's `tcp.analysis` fields,
        /// separated by commas (`retransmission`, `fast_retransmission`, `duplicate_ack`, `zero_window`).
        pub marks: Option<&'a str>,
        /// From the data segment that this one acknowledges until this one, both where they came to their first
        /// link; the way back is not in it. Empty where the data was sent more than once.
        pub ack_rtt_ns: Option<u64>,
        /// For a segment with data, SYN or FIN: 0 when first sent, else the number of its repetition on this connection, from 1.
        /// Empty for other frames, in imports, and in recordings of schema 1.
        pub repetition: Option<u32>,
        /// ECN field of the IP header (RFC 3168) as the frame left the link: 1 and 2 for ECT(1) and ECT(0), 3 for a mark of
        /// congestion (CE). Empty where the sender does not understand marks.
        pub ecn: Option<u8>,
    }
}

table! {
    /// One row per control packet of any protocol, in the order in which they were complete. Greetings and READY of ZeroMQ
    /// come when their client has said its name. Packets of captures come first, then packets that clients saw, in the order in
    /// which each recorded them.
    pub struct ControlPacketRow<'a> in "control_packets", columns ControlPacketColumns {
        /// The connection's number, as in `packets`.
        pub connection: u32,
        /// `capture`: seen in the frames of the connection; `client`: recorded by the client at its end, where no frames were
        /// recorded. Schema versions 1 to 3 do not say it, and have only `capture`.
        pub seen_by: SeenBy,
        /// What the connection is: `tcp`; `udp` under MQTT-SN, between a client and a gateway. Schema versions 1 and 2 do not say it, and have no other.
        pub transport: &'a str,
        /// The packet's protocol: `mqtt`, `mqtt-sn`, `zeromq`. Schema versions 1 and 2 do not say it, and have no other.
        pub protocol: &'a str,
        /// `to_broker` or `to_client`.
        pub direction: Towards,
        /// The client at the connection's end, when it is known.
        pub client: Option<u32>,
        /// The packet's type as its protocol's specification writes it: `CONNECT`, `PUBLISH`, `PUBACK`.
        pub kind: &'a str,
        /// Quality of service of a PUBLISH.
        pub qos: Option<u8>,
        /// DUP flag of a PUBLISH.
        pub dup: bool,
        /// RETAIN flag of a PUBLISH.
        pub retain: bool,
        /// Packet identifier, when the packet has one.
        pub packet_id: Option<u16>,
        /// Reason code or return code, when the packet has one.
        pub reason: Option<u8>,
        /// The topic of a PUBLISH.
        pub topic: Option<&'a str>,
        /// The client that published the message, for a PUBLISH whose payload or order tells.
        pub publisher: Option<u32>,
        /// The message's number at its publisher, as in `messages`. Without a publisher (own live runs): what a payload of 1 to
        /// 8 bytes has of it, which the order completes (`named_packets`).
        pub sequence: Option<u32>,
        /// Position of its first byte in the connection's stream of this direction; seen by the client, among the bytes of
        /// packets alone, without what layers between them and TCP add.
        pub stream_start: u64,
        /// Position behind its last byte.
        pub stream_end: u64,
        /// Fixed header.
        pub fixed_header_bytes: u32,
        /// Topic name with its length.
        pub topic_bytes: u32,
        /// Packet identifier.
        pub packet_id_bytes: u32,
        /// MQTT 5 properties with their length.
        pub property_bytes: u32,
        /// Application message.
        pub payload_bytes: u32,
        /// When the first segment with a byte of it came to the first link; empty where no frame shows it.
        pub first_sent_ns: Option<u64>,
        /// When every byte of it had arrived; empty when that did not happen, and where no frame shows it.
        pub complete_ns: Option<u64>,
        /// Segments that carried a byte of it until it was complete, lost ones and retransmissions too; empty where no frame
        /// shows them.
        pub segments: Option<u32>,
        /// Seen by the client, to the broker: when its socket had taken the last byte.
        pub written_ns: Option<u64>,
        /// Seen by the client, from the broker: when its read returned that brought the last byte.
        pub read_ns: Option<u64>,
    }
}

table! {
    /// One row per network-layer metric with a value: for the whole run, for each of its directions, and for each
    /// direction of each TCP connection. The metrics are described in `docs/explanation/capture.md`.
    pub struct NetworkMetricRow<'a> in "network_metrics", columns NetworkMetricColumns {
        /// `run`, `direction` or `connection`.
        pub scope: &'a str,
        /// The TCP connection's number, as in `packets`.
        pub connection: Option<u32>,
        /// The client at the connection's end, when it is known.
        pub client: Option<u32>,
        /// `to_broker` or `to_client`; empty for both.
        pub direction: Option<Towards>,
        /// The metric's name; its unit is the name's last word, or stands in the reference.
        pub metric: &'a str,
        /// Its value. Zeros of single connections are not written.
        pub value: f64,
    }
}

table! {
    /// One row per event: connects, disconnects, phases, changes, warnings.
    pub struct EventRow<'a> in "events", columns EventColumns {
        /// When.
        pub at_ns: u64,
        /// Its type: `connect`, `connack`, `disconnect`, `reconnect`, `subscribe`, `suback`, `refused`, `phase`,
        /// `server_start`, `server_exit`, `program_start`, `program_exit`, `asleep`, `awake`, `warning`, `note`, `close`,
        /// `layer_open`, `tcp_info`, `queue_full`, `session_end`, `change`, `change_by_hand`, `unsubscribe` or `unsuback`.
        pub kind: EventKind,
        /// The client; empty for events of the run or the broker.
        pub client: Option<u32>,
        /// How long it took, for answers: from the request.
        pub took_ns: Option<u64>,
        /// Description.
        pub detail: Option<&'a str>,
    }
}

table! {
    /// One row per process and reading: what it had used since it started.
    pub struct ResourceRow<'a> in "resources", columns ResourceColumns {
        /// When it was read.
        pub at_ns: u64,
        /// `server` (with the processes that it has started; in earlier recordings `broker`, which stands for all servers
        /// together), `engine`, `emulator` (a thread of the engine) or `machine`.
        pub process: &'a str,
        /// Processor time in user mode.
        pub cpu_user_s: f64,
        /// Processor time in the kernel.
        pub cpu_system_s: f64,
        /// Memory resident.
        pub rss_bytes: u64,
        /// Voluntary context switches.
        pub switches_voluntary: u64,
        /// Involuntary context switches.
        pub switches_involuntary: u64,
        /// Time in which at least one task of the machine waited for a processor (pressure stall information).
        pub pressure_cpu_us: u64,
        /// Time in which at least one task of the machine waited for memory.
        pub pressure_memory_us: u64,
        /// Time in which at least one task of the machine waited for a disk.
        pub pressure_io_us: u64,
        /// Time that its threads were ready to run and waited for a processor; empty in recordings of schema version 1.
        pub run_queue_s: Option<f64>,
        /// Page faults that needed no disk; empty in recordings of schema version 1.
        pub faults_minor: Option<u64>,
        /// Page faults that waited for a disk; empty in recordings of schema version 1.
        pub faults_major: Option<u64>,
        /// Of the machine: processor time that the hypervisor gave to other machines; empty for processes, and in
        /// recordings of schema version 1.
        pub steal_s: Option<f64>,
        /// Which server it is, by its place in the plan's `servers`; empty for others, and in earlier recordings.
        pub server: Option<u16>,
    }
}

table! {
    /// One row per client: counted from the other tables over the whole run, all phases.
    pub struct ClientRow<'a> in "clients", columns ClientColumns {
        /// The client's number.
        pub client: u32,
        /// Its name, which is also its MQTT client identifier.
        pub name: &'a str,
        /// The scenario's group that it belongs to.
        pub group: &'a str,
        /// The host it runs on.
        pub host: &'a str,
        /// From the start of its first connection to the CONNACK.
        pub connect_ns: Option<u64>,
        /// From its first SUBSCRIBE to the SUBACK.
        pub suback_ns: Option<u64>,
        /// Messages it sent.
        pub sent: u64,
        /// Messages that were due and not sent.
        pub unsent: u64,
        /// Messages it sent that were acknowledged.
        pub acknowledged: u64,
        /// From sent to the last acknowledgement, mean of the acknowledged messages.
        pub acknowledged_mean_ns: Option<f64>,
        /// Messages delivered to it, without duplicates.
        pub delivered: u64,
        /// Messages that should have been delivered to it and were lost.
        pub lost: u64,
        /// Messages that were under way to it when the recording ended. Empty in recordings of schema version 1, which
        /// count them as lost.
        pub under_way: u64,
        /// Messages for it of which the evidence does not show whether they arrived. Empty in recordings of schema
        /// version 1.
        pub unknown: u64,
        /// Deliveries of a message that it had already.
        pub duplicates: u64,
        /// Deliveries out of order.
        pub out_of_order: u64,
        /// Deliveries later than the scenario allows.
        pub late: u64,
        /// Deliveries that match no message that a client of the run sent.
        pub foreign: u64,
        /// Connections that ended unplanned.
        pub disconnects: u64,
        /// Attempts to connect again.
        pub reconnects: u64,
    }
}

table! {
    /// One row per end of a TCP connection and sample in which anything had changed: the state of that end. It is sampled
    /// every `recording.tcp_state_interval`. It is sampled less often where asking the kernel would take more than half a percent
    /// of a processor, and in large simulations. Imports have no rows.
    pub struct TcpStateRow<'a> in "tcp_state", columns TcpStateColumns {
        /// When.
        pub at_ns: u64,
        /// The client at the connection's end, when it is known.
        pub client: Option<u32>,
        /// The connection's number, as in `packets`, when it is known.
        pub connection: Option<u32>,
        /// Whose state this is: `client`, who opened the connection, or `server`, who accepted it.
        pub end: &'a str,
        /// Retransmission time-out, with its back-off.
        pub rto_ns: u64,
        /// Smoothed round-trip time; empty before the first measurement.
        pub srtt_ns: Option<u64>,
        /// Congestion window.
        pub congestion_window_bytes: u64,
        /// Slow-start threshold; empty before the first loss.
        pub slow_start_threshold_bytes: Option<u64>,
        /// Written by the application, and not sent yet.
        pub unsent_bytes: u64,
        /// Sent, and not acknowledged yet.
        pub unacknowledged_bytes: u64,
    }
}

table! {
    /// One row per known position. Radio stations are sampled every `recording.tcp_state_interval`, and less often where there are
    /// many. A station has a row for every sample in which it had moved, the same in simulated and live runs. A client has a row
    /// for every message that gives its position (GeoJSON, coordinates in a JSON object, NMEA 0183). Earlier recordings have none.
    pub struct PositionRow<'a> in "positions", columns PositionColumns {
        /// When.
        pub at_ns: u64,
        /// The client; empty for a station whose host has no clients, such as the broker's or an access point.
        pub client: Option<u32>,
        /// The client's host, or the station's: an access point counts as the host behind it. Empty in imports.
        pub host: Option<u16>,
        /// How it is known: `station`, from a radio station in its channel's plane, or `payload`, from what the client
        /// published.
        pub source: &'a str,
        /// Of a station, its radio channel: numbered as `link` of `packets`.
        pub link: Option<u16>,
        /// Metres to the east of the plane's origin; empty for a payload.
        pub x_m: Option<f64>,
        /// Metres to the north of the plane's origin; empty for a payload.
        pub y_m: Option<f64>,
        /// Degrees east of Greenwich (WGS 84); empty for a station.
        pub longitude_deg: Option<f64>,
        /// Degrees north of the equator (WGS 84); empty for a station.
        pub latitude_deg: Option<f64>,
        /// Height in metres, where the payload says it.
        pub altitude_m: Option<f64>,
    }
}

table! {
    /// One row per delivery whose payload was kept (`recording.payloads`), in the order of recording: the place of its bytes in
    /// `payloads.bin`. Clients that are programs, imports, and earlier recordings have none. Where no payload was kept, neither file
    /// exists.
    pub struct PayloadRow<'a> in "payloads", columns PayloadColumns {
        /// When its last byte was read, as in `messages`.
        pub received_ns: u64,
        /// The receiving client.
        pub subscriber: u32,
        /// The publishing client, when it is known.
        pub publisher: Option<u32>,
        /// The message's number at its publisher, when that is known.
        pub sequence: Option<u32>,
        /// Where its bytes are from: `read` by the client, or `made` by a simulation from the plan.
        pub source: &'a str,
        /// Where its bytes begin.
        pub start_bytes: u64,
        /// How many there are: all of the payload, or the first 8 MiB.
        pub kept_bytes: u32,
    }
}

table! {
    /// One row per publishing group, subscribing group, QoS, phase, fate and cause, with the sums of their rows in `messages`:
    /// of all messages, where `messages` has a sample (`recording.detail = "summary"`). Other recordings have none.
    pub struct MessageSumRow<'a> in "message_sums", columns MessageSumColumns {
        /// The publishers' group; empty where no publisher is known.
        pub publisher_group: Option<&'a str>,
        /// As in `messages`; empty, too, of a copy that came after its message was added up.
        pub publication: Option<u16>,
        /// The receivers' group; empty where `subscriber` of `messages` is.
        pub subscriber_group: Option<&'a str>,
        /// Quality of service they were published with. Of a copy that came after its message was added up, and of foreign
        /// messages, as `messages` has it.
        pub qos: Option<u8>,
        /// As in `messages`. Of a copy that came after its message was added up, by the publisher's messages before and after.
        pub phase: Phase,
        /// As in `messages`.
        pub fate: MessageFate,
        /// As in `messages`.
        pub cause: Option<LossCause>,
        /// How many rows.
        pub count: u64,
        /// Messages of which the first row with this group of receivers is among them; duplicates and foreign messages are not
        /// counted.
        pub messages: u64,
        /// Messages of which the first row of all is among them.
        pub messages_first: u64,
        /// The sum of their sizes.
        pub payload_bytes: u64,
        /// How many are out of order.
        pub out_of_order: u64,
        /// How many are late.
        pub late: u64,
        /// First deliveries that were received in the measurement, whenever they were due.
        pub received: u64,
        /// The sum of their sizes.
        pub received_bytes: u64,
        /// Topic name, payload and one byte of each of `messages` that was written in the measurement.
        pub written_bytes: u64,
        /// The same of each of `messages_first`.
        pub written_first_bytes: u64,
        /// Of messages that were not sent: deliveries that they would have had.
        pub wanted: u64,
        /// When the first one was due.
        pub intended_first_ns: Option<u64>,
        /// When the last one was due.
        pub intended_last_ns: Option<u64>,
        /// When the last one was received.
        pub received_last_ns: Option<u64>,
        /// Of copies from the broker's store: the mean time since they were sent.
        pub age_mean_ns: Option<f64>,
        /// How many latencies of first deliveries are known.
        pub latencies: u64,
        /// Their sum.
        pub latency_sum_ns: u64,
        /// Their standard deviation.
        pub latency_deviation_ns: Option<f64>,
        /// The smallest.
        pub latency_least_ns: Option<u64>,
        /// The largest.
        pub latency_most_ns: Option<u64>,
        /// How many of `messages_first` were acknowledged.
        pub acknowledged: u64,
    }
}

table! {
    /// One row per range of times that occurred in a row of `message_sums`: a histogram with 128 ranges for each doubling. Its
    /// quantiles are off by 1/256 at most.
    pub struct LatencySumRow<'a> in "latency_sums", columns LatencySumColumns {
        /// The row of `message_sums`, from 0.
        pub sum: u32,
        /// `latency`: from intended to received, of first deliveries; `acknowledgement`: from sent to the last acknowledgement, of
        /// `messages_first`.
        pub quantity: &'a str,
        /// The range's first time.
        pub from_ns: u64,
        /// Its last time.
        pub to_ns: u64,
        /// How often one of them occurred.
        pub count: u64,
    }
}

/// Every table of a recording.
pub static TABLES: [Description; 12] = [
    MessageColumns::DESCRIPTION,
    PacketColumns::DESCRIPTION,
    ControlPacketColumns::DESCRIPTION,
    NetworkMetricColumns::DESCRIPTION,
    EventColumns::DESCRIPTION,
    ResourceColumns::DESCRIPTION,
    ClientColumns::DESCRIPTION,
    TcpStateColumns::DESCRIPTION,
    PositionColumns::DESCRIPTION,
    PayloadColumns::DESCRIPTION,
    MessageSumColumns::DESCRIPTION,
    LatencySumColumns::DESCRIPTION,
];
