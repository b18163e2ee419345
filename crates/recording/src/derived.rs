//! Derived tables: what the finalising pass makes of the others, so that nobody has to read these to the end again.
//!
//! They can be made again at any time from the tables that a recording is made of, and say nothing that those do not.

use std::path::Path;

use mqttlab_rows::Towards;

use crate::error::Result;
use crate::footer::FileSize;
use crate::table::{Columns, Description, TableWriter, table};

table! {
    /// One row per first delivery of a message whose publisher is known, in the order of `messages`: where its time went.
    /// The parts are never negative and add up to the latency. All of them are empty where they are not known. `undivided_ns` is
    /// one part for network, broker and gateways, where no frames of a client's connection were recorded.
    pub struct AttributionRow<'a> in "attribution", columns AttributionColumns {
        /// The row of `messages`, from 0.
        pub row: u64,
        /// From the intended time until the message was handed to the publisher's session.
        pub schedule_ns: Option<u64>,
        /// Waiting in the sender's session: for its in-flight window (receive maximum) or for its socket to take the
        /// message. For a relay: from its reception until it sends on.
        pub session_ns: Option<u64>,
        /// MQTT-SN: waiting for a sleeping client to be awake, in the client before it published or in the gateway.
        pub sleep_ns: Option<u64>,
        /// MQTT-SN: waiting for the topic's REGISTER to be answered, its repetitions included.
        pub register_ns: Option<u64>,
        /// In the sender's socket, held by Nagle's algorithm until what had been sent before was acknowledged.
        pub sender_nagle_ns: Option<u64>,
        /// In the sender's socket for another reason: congestion window, receive window, the stack's own time.
        pub sender_socket_ns: Option<u64>,
        /// MQTT-SN: from the first sending of the datagram until that of the one that came through.
        pub retry_ns: Option<u64>,
        /// Waiting in the queues of the links to the broker, of the frame that completed the packet. Of a packet of several
        /// segments: of any of its frames, while no other was being transmitted.
        pub queue_to_broker_ns: Option<u64>,
        /// Transmission and propagation of that frame, over all links to the broker. Of a packet of several segments: the
        /// transmission of all its frames.
        pub wire_to_broker_ns: Option<u64>,
        /// From the first sending until that frame's, where the packet or data before it in the stream was lost. Also: waiting at
        /// the receiver's stack for overtaken data, and on a new connection for the losses of an old one.
        pub retransmission_to_broker_ns: Option<u64>,
        /// Inside MQTT-SN gateways, from a packet's arrival until it was passed on, but for sleep and registration.
        pub gateway_ns: Option<u64>,
        /// QoS 2, where the broker hands on at the PUBREL: from the PUBLISH until its PUBREL had come to the broker.
        pub handshake_ns: Option<u64>,
        /// Network and broker in one, where no frames of a client's connection were recorded: from the sender's socket (or the
        /// broker, where recorded) until the subscriber's read (or the broker's first byte, where recorded). In captures of others:
        /// from the PUBLISH that passed to the broker until the one that came back, where the capture was not taken at the broker.
        pub undivided_ns: Option<u64>,
        /// Inside the broker.
        pub broker_ns: Option<u64>,
        /// Waiting in the broker for the in-flight window towards the subscriber.
        pub broker_window_ns: Option<u64>,
        /// In the broker's socket, held by Nagle's algorithm until what had been sent before was acknowledged.
        pub broker_nagle_ns: Option<u64>,
        /// In the broker's socket for another reason: it was sent when an acknowledgement made room in the congestion or
        /// receive window; also the later segments of a message that fills several, while none of it is under way.
        pub broker_socket_ns: Option<u64>,
        /// Waiting in the queues of the links to the subscriber, as on the way to the broker.
        pub queue_to_subscriber_ns: Option<u64>,
        /// Transmission and propagation over all links to the subscriber, as on the way to the broker.
        pub wire_to_subscriber_ns: Option<u64>,
        /// The same as on the way to the broker: from the first sending until that of the frame that completed the packet,
        /// where something had been lost.
        pub retransmission_to_subscriber_ns: Option<u64>,
        /// QoS 2, where the client hands on at the PUBREL: from the PUBLISH until its PUBREL had come to the client.
        pub release_ns: Option<u64>,
        /// From the last byte's arrival at the client's host until the application had it.
        pub delivery_ns: Option<u64>,
        /// At the sender, while it had no connection.
        pub sender_unconnected_ns: Option<u64>,
        /// Before or in a link that an event had taken down.
        pub link_down_ns: Option<u64>,
        /// On a connection that a translator of addresses (NAT) had forgotten, from the first frame that it dropped for that until
        /// the client gave the connection up.
        pub nat_forgot_ns: Option<u64>,
        /// At a broker or gateway that an event had paused.
        pub broker_paused_ns: Option<u64>,
        /// At the broker, while the subscriber had no connection: in its session, or on a connection that was over.
        pub subscriber_unconnected_ns: Option<u64>,
        /// Behind the broker, while an event had the subscriber read nothing.
        pub reader_stopped_ns: Option<u64>,
        /// Sum of the negative differences between neighbouring instants: how far the tables disagree. No part's error is
        /// larger.
        pub adjusted_ns: Option<u64>,
        /// 1, and 1 more for each relay.
        pub legs: u32,
        /// What the parts were read from: `capture`, the frames of all connections that carried the message; `client`, what the
        /// clients at their ends know; `both`.
        pub seen_by: Option<&'a str>,
        /// Why the parts are empty, where they are.
        pub unattributed: Option<&'a str>,
    }
}

table! {
    /// One row per row of `attribution`: the last leg of the message's way, and the evidence of its parts. Instants are those of
    /// the tables, before they were put in order. Packets are rows of `control_packets`, from 0.
    pub struct LegRow<'a> in "legs", columns LegColumns, Default {
        /// The leg, a row of this table, by which a relay had received what it sent on in this one.
        pub before: Option<u64>,
        /// Whether a relay sent it: somebody else than its publisher.
        pub relayed: Option<bool>,
        /// Who sent it.
        pub up_client: Option<u32>,
        /// The topic it was delivered on.
        pub topic: Option<&'a str>,
        /// From when on the leg's time counts.
        pub begins_ns: Option<u64>,
        /// When it was handed to the sender's session.
        pub handed_ns: Option<u64>,
        /// The PUBLISH to the broker.
        pub up_packet: Option<u64>,
        /// Its connection.
        pub up_connection: Option<u32>,
        /// Its packet identifier.
        pub up_packet_id: Option<u16>,
        /// When its first byte came to the first link.
        pub up_first_sent_ns: Option<u64>,
        /// When the sender could send it: had it, and room for it in its window.
        pub up_ready_ns: Option<u64>,
        /// When its sender's socket had taken it, where no frame shows it.
        pub up_written_ns: Option<u64>,
        /// When the in-flight window of the sender let it through, if that held it.
        pub up_window_ns: Option<u64>,
        /// The acknowledgement that made room in that window.
        pub up_window_packet: Option<u64>,
        /// Until when Nagle's algorithm held its first segment, from `ready` on.
        pub up_nagle_until_ns: Option<u64>,
        /// Until when the socket held it for another reason, after that.
        pub up_socket_until_ns: Option<u64>,
        /// Until when Nagle's algorithm held it again, after that.
        pub up_held_until_ns: Option<u64>,
        /// The frame with the acknowledgement that ended the last of these.
        pub up_release_frame: Option<u64>,
        /// When the first byte of its first copy came to the first link.
        pub up_tried_ns: Option<u64>,
        /// When the segment was due that completed it.
        pub up_resumed_ns: Option<u64>,
        /// As `nagle_until`, of that segment.
        pub up_tail_nagle_until_ns: Option<u64>,
        /// As `socket_until`, of that segment.
        pub up_tail_socket_until_ns: Option<u64>,
        /// As `held_until`, of that segment.
        pub up_tail_held_until_ns: Option<u64>,
        /// As `release_frame`, of that segment.
        pub up_tail_release_frame: Option<u64>,
        /// The frame that brought its last missing byte.
        pub up_frame: Option<u64>,
        /// When that came to its first link.
        pub up_went_ns: Option<u64>,
        /// The same, later by what it waited in queues.
        pub up_started_ns: Option<u64>,
        /// When it had arrived.
        pub up_arrived_ns: Option<u64>,
        /// When the packet was complete.
        pub up_complete_ns: Option<u64>,
        /// The PUBREL that let its receiver hand it on (QoS 2).
        pub up_release_packet: Option<u64>,
        /// When that was complete.
        pub up_release_ns: Option<u64>,
        /// When the broker could hand it on.
        pub ingress_ns: Option<u64>,
        /// The PUBLISH to the subscriber.
        pub down_packet: Option<u64>,
        /// Its connection.
        pub down_connection: Option<u32>,
        /// Its packet identifier.
        pub down_packet_id: Option<u16>,
        /// When its first byte came to the first link.
        pub down_first_sent_ns: Option<u64>,
        /// When the broker could send it: had it, and room for it in its window.
        pub down_ready_ns: Option<u64>,
        /// When the in-flight window of the broker let it through, if that held it.
        pub down_window_ns: Option<u64>,
        /// The acknowledgement that made room in that window.
        pub down_window_packet: Option<u64>,
        /// Until when Nagle's algorithm held its first segment, from `ready` on.
        pub down_nagle_until_ns: Option<u64>,
        /// Until when the socket held it for another reason, after that.
        pub down_socket_until_ns: Option<u64>,
        /// Until when Nagle's algorithm held it again, after that.
        pub down_held_until_ns: Option<u64>,
        /// The frame with the acknowledgement that ended the last of these.
        pub down_release_frame: Option<u64>,
        /// When the first byte of its first copy came to the first link.
        pub down_tried_ns: Option<u64>,
        /// When the segment was due that completed it.
        pub down_resumed_ns: Option<u64>,
        /// As `nagle_until`, of that segment.
        pub down_tail_nagle_until_ns: Option<u64>,
        /// As `socket_until`, of that segment.
        pub down_tail_socket_until_ns: Option<u64>,
        /// As `held_until`, of that segment.
        pub down_tail_held_until_ns: Option<u64>,
        /// As `release_frame`, of that segment.
        pub down_tail_release_frame: Option<u64>,
        /// The frame that brought its last missing byte.
        pub down_frame: Option<u64>,
        /// When that came to its first link.
        pub down_went_ns: Option<u64>,
        /// The same, later by what it waited in queues.
        pub down_started_ns: Option<u64>,
        /// When it had arrived.
        pub down_arrived_ns: Option<u64>,
        /// When the packet was complete.
        pub down_complete_ns: Option<u64>,
        /// When the subscriber had read it, where no frame shows it.
        pub down_read_ns: Option<u64>,
        /// The PUBREL that let its receiver hand it on (QoS 2).
        pub down_release_packet: Option<u64>,
        /// When that was complete.
        pub down_release_ns: Option<u64>,
        /// When the subscriber could hand it on, where it waits for the PUBREL.
        pub handed_on_ns: Option<u64>,
        /// MQTT-SN: the datagram with the PUBLISH to the publisher's gateway.
        pub sn_up_packet: Option<u64>,
        /// When its sender could send it.
        pub sn_up_ready_ns: Option<u64>,
        /// When its sender fell asleep, or the message came to a sleeper.
        pub sn_up_sleep_from_ns: Option<u64>,
        /// When that was awake again, as the client knew it.
        pub sn_up_sleep_until_ns: Option<u64>,
        /// When its topic's REGISTER was first sent, if it waited for that.
        pub sn_up_register_from_ns: Option<u64>,
        /// When the REGACK had come.
        pub sn_up_register_until_ns: Option<u64>,
        /// When the first copy of the PUBLISH was sent.
        pub sn_up_tried_ns: Option<u64>,
        /// When the copy was sent that came through. Empty where no frame shows it: only the client has seen it.
        pub sn_up_first_sent_ns: Option<u64>,
        /// The frame that brought it.
        pub sn_up_frame: Option<u64>,
        /// When that came to its first link.
        pub sn_up_went_ns: Option<u64>,
        /// The same, later by what it waited in queues.
        pub sn_up_started_ns: Option<u64>,
        /// When it had arrived.
        pub sn_up_complete_ns: Option<u64>,
        /// MQTT-SN: the datagram with the PUBLISH from the subscriber's gateway.
        pub sn_down_packet: Option<u64>,
        /// When its receiver fell asleep, or the message came to a sleeper.
        pub sn_down_sleep_from_ns: Option<u64>,
        /// When that was awake again, as the gateway knew it.
        pub sn_down_sleep_until_ns: Option<u64>,
        /// When its topic's REGISTER was first sent, if it waited for that.
        pub sn_down_register_from_ns: Option<u64>,
        /// When the REGACK had come.
        pub sn_down_register_until_ns: Option<u64>,
        /// When the first copy of the PUBLISH was sent.
        pub sn_down_tried_ns: Option<u64>,
        /// When the copy was sent that came through. Empty where no frame shows it: only the client has seen it.
        pub sn_down_first_sent_ns: Option<u64>,
        /// The frame that brought it.
        pub sn_down_frame: Option<u64>,
        /// When that came to its first link.
        pub sn_down_went_ns: Option<u64>,
        /// The same, later by what it waited in queues.
        pub sn_down_started_ns: Option<u64>,
        /// When it had arrived; where only the client has seen it, when that had read it.
        pub sn_down_complete_ns: Option<u64>,
        /// The PUBREL to the subscriber (QoS 2).
        pub sn_down_release_packet: Option<u64>,
        /// When that was complete.
        pub sn_down_release_ns: Option<u64>,
        /// The message's QoS at its publisher.
        pub qos: Option<u8>,
        /// Whether frames were captured at their senders' hosts. Else what a sender's socket held is a part of the time before the
        /// capture.
        pub at_sender: bool,
        /// Whether frames were captured at the broker's host. Else the broker and the way there and back are one part.
        pub at_broker: bool,
    }
}

table! {
    /// One row per time in which something that the recording names held a leg: a client without a connection, or an event. In
    /// the order of `legs`. Other parts of the leg do not have this time.
    pub struct HoldRow<'a> in "holds", columns HoldColumns {
        /// The row of `legs`, from 0.
        pub leg: u64,
        /// The column of `attribution` that has this time.
        pub part: &'a str,
        /// From when.
        pub from_ns: u64,
        /// Until when.
        pub until_ns: u64,
    }
}

table! {
    /// One row per control packet that carries no identity and whose order tells its message.
    pub struct NamedPacketRow<'a> in "named_packets", columns NamedPacketColumns {
        /// The row of `control_packets`, from 0.
        pub packet: u64,
        /// The publishing client.
        pub publisher: u32,
        /// The message's number at its publisher.
        pub sequence: u32,
        /// How it was found: `order`, or, of what a program published, `time`: the instants at which frames show it.
        pub identified: &'a str,
    }
}

table! {
    /// Sums over the frames of brokers' connections, without the copies that links make. There is one row for the run, each
    /// direction, each link and direction, each group and direction, and each connection and direction. Frames are counted where
    /// they came to their first link, those of a link on that link.
    pub struct FrameSumRow<'a> in "frame_sums", columns FrameSumColumns, Default {
        /// `run`, `direction`, `link`, `group` or `connection`.
        pub scope: &'a str,
        /// Of a connection: its number, as in `packets`.
        pub connection: Option<u32>,
        /// Of a connection: its client.
        pub client: Option<u32>,
        /// Of a link.
        pub link: Option<u16>,
        /// Of a group: its name.
        pub group: Option<&'a str>,
        /// `to_broker` or `to_client`; of a link `up` or `down`.
        pub direction: Option<&'a str>,
        /// Frames.
        pub frames: u64,
        /// Their bytes.
        pub bytes: u64,
        /// Bytes of their IP packets.
        pub ip_bytes: u64,
        /// Bytes of TCP payload in them.
        pub tcp_payload_bytes: u64,
        /// Bytes of those that the link's transmitter let out.
        pub sent_bytes: u64,
        /// When the first one came.
        pub first_ns: u64,
        /// When the last one came, or had been sent.
        pub last_ns: u64,
        /// The smallest frame.
        pub frame_bytes_min: Option<u32>,
        /// The largest frame.
        pub frame_bytes_max: Option<u32>,
        /// Frames in which a PUBLISH became complete.
        pub publish_segments: u64,
        /// Their bytes.
        pub publish_frame_bytes: u64,
        /// The smallest of them.
        pub publish_frame_bytes_min: Option<u32>,
        /// The largest of them.
        pub publish_frame_bytes_max: Option<u32>,
        /// TCP connections.
        pub connections: u64,
        /// Segments with RST.
        pub resets: u64,
        /// Segments with CWR and without SYN: their sender says that it has reduced its congestion window (RFC 3168 §6.1.2).
        pub window_reductions: u64,
        /// Segments with payload.
        pub segments_with_payload: u64,
        /// Segments with data, SYN or FIN; empty where it is not recorded what was sent again.
        pub segments_with_data: Option<u64>,
        /// Of these, what the sender sent again; empty likewise, as are the next ones.
        pub retransmissions: Option<u64>,
        /// Of these, those after three repeated or selective acknowledgements.
        pub retransmissions_fast: Option<u64>,
        /// Of these, those of a timer or a probe.
        pub retransmissions_timer_or_probe: Option<u64>,
        /// Of these, those of what had arrived.
        pub retransmissions_spurious: Option<u64>,
        /// Of these, those of which nothing can be said.
        pub retransmissions_unknown: Option<u64>,
        /// Wireshark's mark of this name, as are the next ones.
        pub tcp_analysis_retransmissions: u64,
        /// Likewise.
        pub tcp_analysis_fast_retransmissions: u64,
        /// Likewise.
        pub tcp_analysis_spurious_retransmissions: u64,
        /// Likewise.
        pub tcp_analysis_out_of_order: u64,
        /// Likewise.
        pub tcp_analysis_duplicate_acks: u64,
        /// Likewise.
        pub tcp_analysis_zero_windows: u64,
        /// Control packets that became complete in the frames.
        pub mqtt_packets: u64,
        /// Of these, PUBLISH.
        pub publish_packets: u64,
        /// Round trips, as `round_trips` has them; links have none.
        pub round_trips: u64,
        /// The least, in milliseconds.
        pub rtt_ms_min: Option<f64>,
        /// Their mean, in milliseconds.
        pub rtt_ms_mean: Option<f64>,
        /// Their 95th percentile, in milliseconds.
        pub rtt_ms_p95: Option<f64>,
        /// The greatest, in milliseconds.
        pub rtt_ms_max: Option<f64>,
        /// Mean of the time-outs that follow from them, in milliseconds.
        pub rto_ms_mean: Option<f64>,
    }
}

table! {
    /// One row per link: sums over all frames on it.
    pub struct LinkSumRow<'a> in "link_sums", columns LinkSumColumns {
        /// The link.
        pub link: u16,
        /// Frames, the copies that the link made left out.
        pub frames: u64,
        /// Their bytes.
        pub bytes: u64,
        /// Frames and copies that arrived at its end.
        pub frames_delivered: u64,
        /// Frames that it lost.
        pub frames_dropped: u64,
        /// Frames that it marked instead of dropping them (ECN).
        pub frames_marked: u64,
        /// Bytes of the frames that its transmitter let out.
        pub sent_bytes: u64,
        /// How long its transmitter was busy; empty where it is not known when transmissions began.
        pub busy_ns: Option<u64>,
        /// From the first frame's coming until the last one's coming or sending.
        pub span_ns: u64,
        /// Frames and copies whose transmission's beginning is known.
        pub frames_waited: u64,
        /// What they waited in all for that.
        pub wait_ns: u64,
        /// The longest wait.
        pub wait_max_ns: Option<u64>,
        /// Frames and copies.
        pub rows: u64,
        /// Their bytes.
        pub rows_bytes: u64,
        /// How many were lost for which cause, the most frequent first: `3 queue_full, 1 random_loss`.
        pub drops_by_cause: Option<&'a str>,
    }
}

table! {
    /// One row per link, direction and slice of time in which there is something: what was sent on it.
    pub struct SliceRow<'a> in "slices", columns SliceColumns {
        /// The link.
        pub link: u16,
        /// `up` or `down`.
        pub direction: &'a str,
        /// When the slice begins.
        pub at_ns: u64,
        /// How long all slices are.
        pub length_ns: u64,
        /// How long the transmitter was busy.
        pub busy_ns: u64,
        /// Bytes of all frames that were let out in it, the copies that the link made left out.
        pub link_bytes: u64,
        /// Bytes of those of brokers' connections. A frame counts where its last bit went out.
        pub frame_bytes: u64,
        /// Of their IP packets.
        pub ip_bytes: u64,
        /// Of their TCP payload.
        pub payload_bytes: u64,
        /// Application payload, of messages that were complete on this link with one of the frames.
        pub mqtt_payload_bytes: u64,
    }
}

table! {
    /// One row per round trip as the sender of data saw it, in the order in which the acknowledgements were sent.
    pub struct RoundTripRow<'a> in "round_trips", columns RoundTripColumns {
        /// The connection's number.
        pub connection: u32,
        /// The client at its end.
        pub client: Option<u32>,
        /// Where the data went: `to_broker` or `to_client`.
        pub towards: &'a str,
        /// When the acknowledgement had arrived.
        pub at_ns: u64,
        /// From the segment's coming to its first link until then.
        pub rtt_ns: u64,
        /// The time-out that follows from the round trips so far (RFC 6298 §2), in milliseconds.
        pub rto_ms: f64,
    }
}

table! {
    /// One row per frame whose segment its sender sent again.
    pub struct SentAgainRow<'a> in "sent_again", columns SentAgainColumns {
        /// The frame.
        pub frame: u64,
        /// What for: `fast`, `timer_or_probe`, `spurious` or `unknown`.
        pub sent_again: &'a str,
    }
}

table! {
    /// One row per direction and number of PUBLISH packets that became complete in one segment.
    pub struct CarrierRow<'a> in "carriers", columns CarrierColumns {
        /// `to_broker` or `to_client`.
        pub direction: Option<&'a str>,
        /// PUBLISH packets in a segment.
        pub packets: u32,
        /// Segments with so many.
        pub segments: u64,
        /// Of these, those of the measurement.
        pub segments_measured: u64,
    }
}

table! {
    /// One row per group of clients: frames at their own ends during the measurement.
    pub struct GroupFrameRow<'a> in "group_frames", columns GroupFrameColumns {
        /// The group.
        pub group: &'a str,
        /// Frames that they sent.
        pub frames_sent: u64,
        /// Their bytes.
        pub frames_sent_bytes: u64,
        /// Frames that they received.
        pub frames_received: u64,
        /// Their bytes.
        pub frames_received_bytes: u64,
    }
}

table! {
    /// One row per direction, kind and QoS of control packets: sums over them.
    pub struct PacketSumRow<'a> in "packet_sums", columns PacketSumColumns {
        /// `to_broker` or `to_client`.
        pub direction: Towards,
        /// The kind.
        pub kind: &'a str,
        /// Quality of service of a PUBLISH.
        pub qos: Option<u8>,
        /// Segments that carried one of them, until it was complete; 0 where no frame shows them.
        pub segments: u32,
        /// Packets.
        pub packets: u64,
        /// Bytes of their fixed headers.
        pub fixed_header_bytes: u64,
        /// Bytes of topic names with their lengths.
        pub topic_bytes: u64,
        /// Bytes of packet identifiers.
        pub packet_id_bytes: u64,
        /// Bytes of MQTT 5 properties with their lengths.
        pub property_bytes: u64,
        /// Bytes of application messages.
        pub payload_bytes: u64,
        /// Bytes in the stream.
        pub stream_bytes: u64,
    }
}

table! {
    /// One row per topic of PUBLISH packets.
    pub struct TopicSumRow<'a> in "topic_sums", columns TopicSumColumns {
        /// The topic, where it is known.
        pub topic: Option<&'a str>,
        /// PUBLISH packets to a broker.
        pub publish_to_broker: u64,
        /// PUBLISH packets from a broker.
        pub publish_to_client: u64,
        /// Bytes of their application messages.
        pub payload_bytes: u64,
    }
}

/// Gives each table a writer.
macro_rules! writers {
    ($($(#[doc = $about:literal])* $writer:ident: $row:ident, $columns:ident;)*) => {$(
        $(#[doc = $about])*
        pub struct $writer(TableWriter<$columns<'static>>);

        impl $writer {
            /// Begins the table in a directory.
            pub fn create(dir: &Path) -> Result<$writer> {
                Ok($writer(TableWriter::create(dir)?))
            }

            /// Adds a row.
            pub fn push(&mut self, row: &$row<'_>) -> Result<()> {
                self.0.push(|columns, place| columns.set(place, row))
            }

            /// Ends the table, which is there from now on.
            pub fn finish(self) -> Result<FileSize> {
                self.0.finish()
            }
        }
    )*};
}
writers! {
    /// Writes `attribution`.
    AttributionWriter: AttributionRow, AttributionColumns;
    /// Writes `legs`.
    LegWriter: LegRow, LegColumns;
    /// Writes `holds`.
    HoldWriter: HoldRow, HoldColumns;
    /// Writes `named_packets`.
    NamedPacketWriter: NamedPacketRow, NamedPacketColumns;
    /// Writes `frame_sums`.
    FrameSumWriter: FrameSumRow, FrameSumColumns;
    /// Writes `link_sums`.
    LinkSumWriter: LinkSumRow, LinkSumColumns;
    /// Writes `slices`.
    SliceWriter: SliceRow, SliceColumns;
    /// Writes `round_trips`.
    RoundTripWriter: RoundTripRow, RoundTripColumns;
    /// Writes `sent_again`.
    SentAgainWriter: SentAgainRow, SentAgainColumns;
    /// Writes `carriers`.
    CarrierWriter: CarrierRow, CarrierColumns;
    /// Writes `group_frames`.
    GroupFrameWriter: GroupFrameRow, GroupFrameColumns;
    /// Writes `packet_sums`.
    PacketSumWriter: PacketSumRow, PacketSumColumns;
    /// Writes `topic_sums`.
    TopicSumWriter: TopicSumRow, TopicSumColumns;
}

/// Every derived table.
pub static DERIVED_TABLES: [Description; 13] = [
    AttributionColumns::DESCRIPTION,
    LegColumns::DESCRIPTION,
    HoldColumns::DESCRIPTION,
    NamedPacketColumns::DESCRIPTION,
    FrameSumColumns::DESCRIPTION,
    LinkSumColumns::DESCRIPTION,
    SliceColumns::DESCRIPTION,
    RoundTripColumns::DESCRIPTION,
    SentAgainColumns::DESCRIPTION,
    CarrierColumns::DESCRIPTION,
    GroupFrameColumns::DESCRIPTION,
    PacketSumColumns::DESCRIPTION,
    TopicSumColumns::DESCRIPTION,
];
