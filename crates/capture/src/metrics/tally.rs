//! What is counted of one direction of a connection, of a connection, or of everything.

use mqttlab_units::{Duration, Instant};

use super::Distribution;
use crate::layers::LayerCounts;
use crate::marks::Marks;
use crate::mqtt::{CapturedPacket, Kind};
use crate::segment::{Bits, TcpHeader};

/// Kinds of answers that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Exchange {
    /// CONNECT to CONNACK.
    Connect,
    /// PUBLISH at QoS 1 to PUBACK.
    PublishPuback,
    /// PUBLISH at QoS 2 to PUBREC.
    PublishPubrec,
    /// PUBREC to PUBREL.
    PubrecPubrel,
    /// PUBREL to PUBCOMP.
    PubrelPubcomp,
    /// SUBSCRIBE to SUBACK.
    Subscribe,
    /// UNSUBSCRIBE to UNSUBACK.
    Unsubscribe,
    /// PINGREQ to PINGRESP.
    Ping,
}

/// Bytes of PUBLISH packets and their acknowledgments at one quality of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishBytes {
    /// PUBLISH packets.
    pub count: u64,
    /// Fixed headers.
    pub fixed_header: u64,
    /// Topics with their lengths.
    pub topic: u64,
    /// Packet identifiers.
    pub id: u64,
    /// Properties with their lengths.
    pub properties: u64,
    /// Application payloads.
    pub payload: u64,
    /// PUBACK, PUBREC, PUBREL and PUBCOMP that belong to packets of this quality of service, in this direction.
    pub acknowledgments: u64,
}

impl PublishBytes {
    const NONE: PublishBytes = PublishBytes {
        count: 0,
        fixed_header: 0,
        topic: 0,
        id: 0,
        properties: 0,
        payload: 0,
        acknowledgments: 0,
    };

    /// Everything of the PUBLISH packets but their payload.
    pub fn overhead(&self) -> u64 {
        self.fixed_header + self.topic + self.id + self.properties
    }
}

/// Minimum, mean and maximum of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeExtent {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The smallest, 0 when there are none.
    pub min: u64,
    /// The largest.
    pub max: u64,
}

/// Counters and distributions; they merge.
#[derive(Clone, Debug, Default)]
pub struct MetricTally {
    /// First and last frame.
    pub span: Option<(Instant, Instant)>,
    /// Frames on the link, by size in bytes.
    pub frames: SizeExtent,
    /// Frames larger than an untagged Ethernet frame without check sequence.
    pub frames_larger_than_1514: u64,
    /// IP packet bytes.
    pub ip_bytes: u64,
    /// TCP segments.
    pub segments: u64,
    /// Frames that carry TCP, bytes on the link.
    pub tcp_frame_bytes: u64,
    /// TCP header and payload bytes.
    pub tcp_bytes: u64,
    /// TCP payload bytes, every copy.
    pub payload_bytes: u64,
    /// TCP payload bytes, each byte of the stream once.
    pub payload_bytes_unique: u64,
    /// Bytes of the streams that were never captured.
    pub missing_bytes: u64,
    /// Times that what came could not be a control packet, so that the next one was searched.
    pub impossible: u64,
    /// Segments with payload.
    pub segments_with_payload: u64,
    /// Segments with payload that end at or below the highest sequence number seen.
    pub segments_below_highest: u64,
    /// Segments that start above the highest sequence number seen.
    pub holes: u64,
    /// SYN without ACK.
    pub syn: u64,
    /// SYN with ACK.
    pub syn_ack: u64,
    /// FIN.
    pub fin: u64,
    /// RST.
    pub rst: u64,
    /// How often each mark was set, by its bit; nothing before the first.
    marks: Option<Box<[u64; Marks::ALL.len()]>>,
    /// Connections (counted in the direction to the server).
    pub connections: u64,
    /// Connections whose SYN was captured (likewise).
    pub connections_with_syn: u64,
    /// Completed handshakes (likewise).
    pub handshakes: u64,
    /// Data of this direction to its acknowledgment, ns.
    pub ack_rtt_ns: Distribution,
    /// SYN to the acknowledgment that completes the handshake, ns (in the direction to the server).
    pub initial_rtt_ns: Distribution,
    /// Bytes in flight after each segment with payload.
    pub in_flight_bytes: Distribution,
    /// MQTT packets by type; index 0 is unused.
    pub packets: [u64; 16],
    /// MQTT packet bytes.
    pub mqtt_bytes: u64,
    /// What TLS adds to them, bytes, where it was opened.
    pub tls_bytes: u64,
    /// What WebSocket adds to them, bytes.
    pub websocket_bytes: u64,
    /// PUBLISH packets whose DUP flag is set.
    pub publish_dup: u64,
    /// PUBLISH packets and acknowledgments by quality of service, where there are any.
    publish: [Option<Box<PublishBytes>>; 3],
    /// Application payload of PUBLISH packets, by size in bytes.
    pub messages: SizeExtent,
    /// PUBLISH packets per segment that completes any.
    pub publish_per_segment: Distribution,
    /// PUBLISH packets per segment that holds the first byte of any.
    pub publish_starts_per_segment: Distribution,
    /// Request to answer, ns, of the kinds that were seen; in the direction of the request.
    exchange_ns: Vec<(Exchange, Distribution)>,
    /// Bytes passed over to find the next MQTT packet, the rest of a damaged one included.
    pub skipped_bytes: u64,
    /// MQTT packets of which only a part was captured.
    pub partial: u64,
    /// MQTT protocol levels seen in CONNECT packets: bit n is level n.
    pub levels: u8,
}

const ETHERNET_FRAME_MAX: u32 = 1514;

impl MetricTally {
    /// A frame of any kind.
    pub(crate) fn frame(&mut self, time: Instant, len: u32) {
        self.span = Some(self.span.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
        self.frames.record(u64::from(len));
        self.frames_larger_than_1514 += u64::from(len > ETHERNET_FRAME_MAX);
    }

    /// The headers of a TCP segment.
    pub(crate) fn segment(&mut self, segment: &TcpHeader) {
        self.segments += 1;
        self.tcp_frame_bytes += u64::from(segment.frame_len);
        self.ip_bytes += u64::from(segment.ip_len);
        self.tcp_bytes += u64::from(segment.header_len) + u64::from(segment.payload_len);
        self.payload_bytes += u64::from(segment.payload_len);
        self.segments_with_payload += u64::from(segment.payload_len > 0);
        let syn = segment.bits.has(Bits::SYN);
        self.syn += u64::from(syn && !segment.bits.has(Bits::ACK));
        self.syn_ack += u64::from(syn && segment.bits.has(Bits::ACK));
        self.fin += u64::from(segment.bits.has(Bits::FIN));
        self.rst += u64::from(segment.bits.has(Bits::RST));
    }

    /// What layers between TCP and MQTT added, and what could not be read in them.
    pub(crate) fn add_layers(&mut self, counts: &LayerCounts) {
        self.tls_bytes += counts.tls_bytes;
        self.websocket_bytes += counts.websocket_bytes;
        self.skipped_bytes += counts.skipped_bytes;
        self.impossible += counts.impossible;
    }

    pub(crate) fn mark(&mut self, marks: Marks) {
        if marks == Marks::default() {
            return;
        }
        let counts = self.marks.get_or_insert_with(Box::default);
        for (count, (mark, _)) in counts.iter_mut().zip(Marks::ALL) {
            *count += u64::from(marks.has(*mark));
        }
    }

    /// A packet of MQTT, and what it is.
    pub(crate) fn packet(&mut self, packet: &CapturedPacket, kind: Kind) {
        self.packets[kind as usize] += 1;
        self.mqtt_bytes += packet.lengths.total();
        match kind {
            Kind::Publish => self.publish(packet),
            Kind::Puback => self.publish_mut(1).acknowledgments += packet.lengths.total(),
            Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp => {
                self.publish_mut(2).acknowledgments += packet.lengths.total();
            }
            Kind::Connect => self.levels |= 1_u8.checked_shl(packet.level.into()).unwrap_or(0),
            _ => {}
        }
    }

    fn publish(&mut self, packet: &CapturedPacket) {
        let lengths = &packet.lengths;
        self.publish_dup += u64::from(packet.dup);
        self.messages.record(u64::from(lengths.payload));
        // QoS 3 does not exist, but a capture may contain it.
        if packet.qos < 3 {
            let bytes = self.publish_mut(packet.qos.into());
            bytes.count += 1;
            bytes.fixed_header += u64::from(lengths.fixed_header);
            bytes.topic += u64::from(lengths.topic);
            bytes.id += u64::from(lengths.id);
            bytes.properties += u64::from(lengths.properties);
            bytes.payload += u64::from(lengths.payload);
        }
    }

    /// How often a mark was set.
    pub fn marked(&self, mark: Marks) -> u64 {
        self.marks.as_ref().map_or(0, |counts| counts[mark.0.trailing_zeros() as usize])
    }

    /// PUBLISH packets and acknowledgments of a quality of service: 0, 1 or 2.
    pub fn published(&self, qos: usize) -> &PublishBytes {
        static NONE: PublishBytes = PublishBytes::NONE;
        self.publish[qos].as_deref().unwrap_or(&NONE)
    }

    fn publish_mut(&mut self, qos: usize) -> &mut PublishBytes {
        self.publish[qos].get_or_insert_with(Box::default)
    }

    /// Request to answer, ns; in the direction of the request.
    pub fn exchanged_ns(&self, exchange: Exchange) -> &Distribution {
        static NONE: Distribution = Distribution::EMPTY;
        let found = self.exchange_ns.iter().find(|(kind, _)| *kind == exchange);
        found.map_or(&NONE, |(_, distribution)| distribution)
    }

    pub(crate) fn exchanged_ns_mut(&mut self, exchange: Exchange) -> &mut Distribution {
        let known = self.exchange_ns.iter().position(|(kind, _)| *kind == exchange);
        let place = known.unwrap_or_else(|| {
            // There are few kinds, and many tallies.
            self.exchange_ns.reserve_exact(1);
            self.exchange_ns.push((exchange, Distribution::default()));
            self.exchange_ns.len() - 1
        });
        &mut self.exchange_ns[place].1
    }

    /// MQTT packets of a type.
    pub fn packets_of(&self, kind: Kind) -> u64 {
        self.packets[kind as usize]
    }

    /// From the first frame to the last.
    pub fn duration(&self) -> Option<Duration> {
        self.span.map(|(first, last)| last.since(first))
    }

    /// Adds everything of another tally.
    pub fn merge(&mut self, other: &MetricTally) {
        self.span = match (self.span, other.span) {
            (Some(ours), Some(theirs)) => Some((ours.0.min(theirs.0), ours.1.max(theirs.1))),
            (ours, theirs) => ours.or(theirs),
        };
        self.merge_counters(other);
        self.frames.merge(&other.frames);
        self.messages.merge(&other.messages);
        self.levels |= other.levels;
        self.merge_distributions(other);
        add_all(&mut self.packets, &other.packets);
        if let Some(theirs) = &other.marks {
            add_all(self.marks.get_or_insert_with(Box::default), theirs);
        }
        for (qos, theirs) in other.publish.iter().enumerate() {
            if let Some(theirs) = theirs {
                self.publish_mut(qos).merge(theirs);
            }
        }
    }

    fn merge_counters(&mut self, other: &MetricTally) {
        macro_rules! add {
            ($($field:ident)*) => { $(self.$field += other.$field;)* };
        }
        add!(frames_larger_than_1514 ip_bytes segments tcp_frame_bytes tcp_bytes payload_bytes);
        add!(payload_bytes_unique missing_bytes segments_with_payload segments_below_highest holes);
        add!(syn syn_ack fin rst connections connections_with_syn handshakes);
        add!(mqtt_bytes tls_bytes websocket_bytes publish_dup skipped_bytes partial impossible);
    }

    fn merge_distributions(&mut self, other: &MetricTally) {
        macro_rules! merge {
            ($($field:ident)*) => { $(self.$field.merge(&other.$field);)* };
        }
        merge!(ack_rtt_ns initial_rtt_ns in_flight_bytes publish_per_segment publish_starts_per_segment);
        for (exchange, theirs) in &other.exchange_ns {
            self.exchanged_ns_mut(*exchange).merge(theirs);
        }
    }
}

impl PublishBytes {
    fn merge(&mut self, other: &PublishBytes) {
        self.count += other.count;
        self.fixed_header += other.fixed_header;
        self.topic += other.topic;
        self.id += other.id;
        self.properties += other.properties;
        self.payload += other.payload;
        self.acknowledgments += other.acknowledgments;
    }
}

impl SizeExtent {
    fn record(&mut self, value: u64) {
        self.merge(&SizeExtent { count: 1, sum: value, min: value, max: value });
    }

    fn merge(&mut self, other: &SizeExtent) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Their mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

fn add_all<const N: usize>(ours: &mut [u64; N], theirs: &[u64; N]) {
    for (ours, theirs) in ours.iter_mut().zip(theirs) {
        *ours += theirs;
    }
}
