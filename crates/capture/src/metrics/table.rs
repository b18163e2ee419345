//! Every metric of the network layer, declared once: name, unit, meaning, where the meaning comes from, and how it
//! is read off a [`MetricTally`]. The catalogue of metrics takes them from here.

use super::{Distribution, Exchange, MetricTally, PublishBytes, SizeExtent};
use crate::marks::Marks;
use crate::mqtt::Kind;

/// The unit of a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// How many of what the name says.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Bits per second.
    BitsPerSecond,
    /// A share of one.
    Ratio,
}

/// How a metric is read off a tally.
#[derive(Clone, Copy)]
pub enum MetricReading {
    /// A sum.
    Count(fn(&MetricTally) -> u64),
    /// A quotient; absent when its divisor is zero.
    Quotient(fn(&MetricTally) -> Option<f64>),
    /// Minimum, mean and maximum: `_min`, `_mean` and `_max` are appended to the name.
    Extent(fn(&MetricTally) -> &SizeExtent),
    /// As above with `_count`, `_p50`, `_p95` and `_p99`. The factor turns samples into the unit.
    Distribution(fn(&MetricTally) -> &Distribution, f64),
}

/// A metric.
pub struct Metric {
    /// Its name; a unit follows the quantity, what is singled out (`_qos1`) follows the unit.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// What it means, in a line.
    pub definition: &'static str,
    /// Who defines it so.
    pub source: &'static str,
    /// How it is read.
    pub reading: MetricReading,
}

/// A metric's value in a tally.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    /// The metric's name with the statistic's suffix.
    pub name: String,
    /// The value in the metric's unit; absent when nothing was observed.
    pub value: Option<f64>,
}

impl Metric {
    /// Its values in a tally: one, or one for each statistic.
    pub fn values(&self, tally: &MetricTally) -> Vec<MetricValue> {
        let named = self.names().zip(self.read(tally));
        named.map(|(name, value)| MetricValue { name, value }).collect()
    }

    /// The names of its values.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.suffixes().iter().map(|suffix| format!("{}{suffix}", self.name))
    }

    /// What is appended to its name, for each statistic.
    pub fn suffixes(&self) -> &'static [&'static str] {
        match self.reading {
            MetricReading::Count(_) | MetricReading::Quotient(_) => &[""],
            MetricReading::Extent(_) => &["_min", "_mean", "_max"],
            MetricReading::Distribution(..) => &["_count", "_min", "_mean", "_p50", "_p95", "_p99", "_max"],
        }
    }

    /// Its values, in the order of their names; what is beyond these is empty.
    pub fn read(&self, tally: &MetricTally) -> [Option<f64>; VALUES_MAX] {
        match self.reading {
            MetricReading::Count(read) => padded([Some(read(tally) as f64)]),
            MetricReading::Quotient(read) => padded([read(tally)]),
            MetricReading::Extent(read) => {
                let extent = read(tally);
                let present = extent.count > 0;
                padded([
                    present.then_some(extent.min as f64),
                    extent.mean(),
                    present.then_some(extent.max as f64),
                ])
            }
            MetricReading::Distribution(read, factor) => {
                let samples = read(tally).summary();
                let scaled = |value: Option<f64>| value.map(|value| value * factor);
                let present = samples.count > 0;
                [
                    Some(samples.count as f64),
                    scaled(present.then_some(samples.min as f64)),
                    scaled(samples.mean()),
                    scaled(samples.quantile(0.5)),
                    scaled(samples.quantile(0.95)),
                    scaled(samples.quantile(0.99)),
                    scaled(present.then_some(samples.max as f64)),
                ]
            }
        }
    }
}

fn padded<const N: usize>(values: [Option<f64>; N]) -> [Option<f64>; VALUES_MAX] {
    let mut padded = [None; VALUES_MAX];
    padded[..N].copy_from_slice(&values);
    padded
}

impl Unit {
    /// As printed.
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::Count => "1",
            Unit::Bytes => "B",
            Unit::Seconds => "s",
            Unit::BitsPerSecond => "bit/s",
            Unit::Ratio => "ratio",
        }
    }
}

const LINK: &str = "this project";
const WIRESHARK: &str = "Wireshark 4.0 User's Guide §7.5";
const MQTT: &str = "MQTT 5 §2.1";
const IP: &str = "RFC 791, RFC 8200";
const TCP: &str = "RFC 9293";
const PEREZ: &str = "Perez 2005";

const NS: f64 = 1e-9;
/// Values that one metric may have.
const VALUES_MAX: usize = 7;

/// All of them.
pub const METRICS: &[Metric] = &[
    count(
        "frames",
        "Frames that came to their first link, those of a link's own making excepted.",
        LINK,
        |t| t.frames.count,
    ),
    bytes("frame_bytes", "Bytes of those frames on the link, without check sequence.", LINK, |t| {
        t.frames.sum
    }),
    extent(
        "frame_size_bytes",
        "Size of a frame. Above 1514 B it is an offloaded aggregate, not a frame of the wire.",
        LINK,
        |t| &t.frames,
    ),
    count(
        "frames_larger_than_1514",
        "Frames larger than an untagged Ethernet frame: offloaded aggregates.",
        LINK,
        |t| t.frames_larger_than_1514,
    ),
    quotient(
        "link_rate_bit_s",
        Unit::BitsPerSecond,
        "Bits of frames over the time from the first frame to the last.",
        LINK,
        |t| rate(t, t.frames.sum),
    ),
    bytes("ip_bytes", "Bytes of the frames' IP packets, headers included.", IP, |t| t.ip_bytes),
    quotient("ip_rate_bit_s", Unit::BitsPerSecond, "Bits of those IP packets over time.", IP, |t| {
        rate(t, t.ip_bytes)
    }),
    count("segments", "TCP segments.", TCP, |t| t.segments),
    bytes("tcp_bytes", "Bytes of TCP headers and payloads.", TCP, |t| t.tcp_bytes),
    bytes("tcp_payload_bytes", "Bytes of TCP payload, every copy.", TCP, |t| t.payload_bytes),
    bytes("tcp_payload_unique_bytes", "Bytes of TCP payload, each byte of the stream once.", TCP, |t| {
        t.payload_bytes_unique
    }),
    bytes("tcp_payload_repeated_bytes", "Bytes of TCP payload that had been seen before.", TCP, |t| {
        t.payload_bytes.saturating_sub(t.payload_bytes_unique)
    }),
    bytes("tcp_missing_bytes", "Bytes of the streams that the capture does not have.", TCP, |t| {
        t.missing_bytes
    }),
    quotient(
        "tcp_rate_bit_s",
        Unit::BitsPerSecond,
        "Bits of new TCP payload over time (goodput).",
        TCP,
        |t| rate(t, t.payload_bytes_unique),
    ),
    count("segments_with_payload", "TCP segments that carry payload, every copy.", TCP, |t| {
        t.segments_with_payload
    }),
    count(
        "segments_below_highest",
        "Segments with payload that end at or below the highest number seen.",
        TCP,
        |t| t.segments_below_highest,
    ),
    count("segments_after_hole", "Segments that start above the highest number seen.", TCP, |t| t.holes),
    count("syn", "Segments with SYN and without ACK.", TCP, |t| t.syn),
    count("syn_ack", "Segments with SYN and ACK.", TCP, |t| t.syn_ack),
    count("fin", "Segments with FIN.", TCP, |t| t.fin),
    count("resets", "Segments with the RST flag.", TCP, |t| t.rst),
    count(
        "connections",
        "TCP connections: pairs of addresses and ports, from one SYN to the next.",
        TCP,
        |t| t.connections,
    ),
    count("connections_with_syn", "Connections whose SYN was captured.", TCP, |t| t.connections_with_syn),
    count("handshakes", "Connections whose handshake was captured to its last acknowledgment.", TCP, |t| {
        t.handshakes
    }),
    count(
        "tcp_analysis_retransmissions",
        "Segments that Wireshark calls retransmissions, of all kinds.",
        WIRESHARK,
        |t| t.marked(Marks::RETRANSMISSION),
    ),
    count(
        "tcp_analysis_fast_retransmissions",
        "Of these, those that answer three equal acknowledgements within 20 ms.",
        WIRESHARK,
        |t| t.marked(Marks::FAST_RETRANSMISSION),
    ),
    count(
        "tcp_analysis_spurious_retransmissions",
        "Of these, those of bytes whose acknowledgement had been sent before.",
        WIRESHARK,
        |t| t.marked(Marks::SPURIOUS_RETRANSMISSION),
    ),
    count(
        "tcp_analysis_out_of_order",
        "Segments below the highest number that Wireshark takes for reordered, because they came within the \
         initial round trip; many were sent again.",
        WIRESHARK,
        |t| t.marked(Marks::OUT_OF_ORDER),
    ),
    count(
        "tcp_analysis_duplicate_acks",
        "Segments without data that repeat the acknowledgement before.",
        WIRESHARK,
        |t| t.marked(Marks::DUPLICATE_ACK),
    ),
    count(
        "tcp_analysis_lost_segments",
        "Segments before which something was not captured.",
        WIRESHARK,
        |t| t.marked(Marks::LOST_SEGMENT),
    ),
    count(
        "tcp_analysis_ack_lost_segments",
        "Acknowledgments of bytes that were never captured.",
        WIRESHARK,
        |t| t.marked(Marks::ACK_LOST_SEGMENT),
    ),
    count("tcp_analysis_zero_windows", "Segments that offer no receive window.", WIRESHARK, |t| {
        t.marked(Marks::ZERO_WINDOW)
    }),
    count("tcp_analysis_zero_window_probes", "Single bytes sent against a closed window.", WIRESHARK, |t| {
        t.marked(Marks::ZERO_WINDOW_PROBE)
    }),
    count(
        "tcp_analysis_windows_full",
        "Segments that fill the window offered by the other side.",
        WIRESHARK,
        |t| t.marked(Marks::WINDOW_FULL),
    ),
    count("tcp_analysis_window_updates", "Segments that change only the window.", WIRESHARK, |t| {
        t.marked(Marks::WINDOW_UPDATE)
    }),
    count("tcp_analysis_keep_alives", "TCP keep-alive segments.", WIRESHARK, |t| t.marked(Marks::KEEP_ALIVE)),
    count("tcp_analysis_keep_alive_acks", "Answers to TCP keep-alive segments.", WIRESHARK, |t| {
        t.marked(Marks::KEEP_ALIVE_ACK)
    }),
    count("tcp_analysis_reused_ports", "SYNs between ends that had a connection before.", WIRESHARK, |t| {
        t.marked(Marks::REUSED_PORTS)
    }),
    seconds(
        "tcp_analysis_ack_rtt_s",
        "From a data segment's oldest copy to its exact acknowledgment, both where they were captured; in \
         the direction of the data, as every round trip.",
        WIRESHARK,
        |t| &t.ack_rtt_ns,
    ),
    seconds(
        "tcp_analysis_initial_rtt_s",
        "From the last SYN to the acknowledgment that completes the handshake.",
        WIRESHARK,
        |t| &t.initial_rtt_ns,
    ),
    Metric {
        name: "in_flight_bytes",
        unit: Unit::Bytes,
        definition: "Bytes sent and not acknowledged, after each segment with payload.",
        source: WIRESHARK,
        reading: MetricReading::Distribution(|t| &t.in_flight_bytes, 1.0),
    },
    count("mqtt_packets", "MQTT control packets that were captured whole.", MQTT, |t| t.packets.iter().sum()),
    count("mqtt_connect", "CONNECT packets.", MQTT, |t| t.packets_of(Kind::Connect)),
    count("mqtt_connack", "CONNACK packets.", MQTT, |t| t.packets_of(Kind::Connack)),
    count("mqtt_publish", "PUBLISH packets.", MQTT, |t| t.packets_of(Kind::Publish)),
    count("mqtt_puback", "PUBACK packets.", MQTT, |t| t.packets_of(Kind::Puback)),
    count("mqtt_pubrec", "PUBREC packets.", MQTT, |t| t.packets_of(Kind::Pubrec)),
    count("mqtt_pubrel", "PUBREL packets.", MQTT, |t| t.packets_of(Kind::Pubrel)),
    count("mqtt_pubcomp", "PUBCOMP packets.", MQTT, |t| t.packets_of(Kind::Pubcomp)),
    count("mqtt_subscribe", "SUBSCRIBE packets.", MQTT, |t| t.packets_of(Kind::Subscribe)),
    count("mqtt_suback", "SUBACK packets.", MQTT, |t| t.packets_of(Kind::Suback)),
    count("mqtt_unsubscribe", "UNSUBSCRIBE packets.", MQTT, |t| t.packets_of(Kind::Unsubscribe)),
    count("mqtt_unsuback", "UNSUBACK packets.", MQTT, |t| t.packets_of(Kind::Unsuback)),
    count("mqtt_pingreq", "PINGREQ packets.", MQTT, |t| t.packets_of(Kind::Pingreq)),
    count("mqtt_pingresp", "PINGRESP packets.", MQTT, |t| t.packets_of(Kind::Pingresp)),
    count("mqtt_disconnect", "DISCONNECT packets.", MQTT, |t| t.packets_of(Kind::Disconnect)),
    count("mqtt_auth", "AUTH packets.", MQTT, |t| t.packets_of(Kind::Auth)),
    count("mqtt_publish_qos0", "PUBLISH packets at QoS 0.", MQTT, |t| t.published(0).count),
    count("mqtt_publish_qos1", "PUBLISH packets at QoS 1.", MQTT, |t| t.published(1).count),
    count("mqtt_publish_qos2", "PUBLISH packets at QoS 2.", MQTT, |t| t.published(2).count),
    count("mqtt_publish_dup", "PUBLISH packets with the DUP flag.", MQTT, |t| t.publish_dup),
    count("mqtt_partial", "MQTT packets of which only a part was captured.", LINK, |t| t.partial),
    bytes("mqtt_skipped_bytes", "Bytes skipped to find the next MQTT packet.", LINK, |t| t.skipped_bytes),
    bytes("mqtt_bytes", "Bytes of MQTT packets that were captured whole.", MQTT, |t| t.mqtt_bytes),
    bytes(
        "tls_bytes",
        "What TLS adds, where it was opened: handshakes, records' headers, what sealing adds, alerts.",
        "RFC 8446",
        |t| t.tls_bytes,
    ),
    bytes(
        "websocket_bytes",
        "What WebSocket adds to MQTT packets: upgrade, frame headers with masks, control frames.",
        "RFC 6455",
        |t| t.websocket_bytes,
    ),
    quotient("mqtt_rate_bit_s", Unit::BitsPerSecond, "Bits of MQTT packets over time.", MQTT, |t| {
        rate(t, t.mqtt_bytes)
    }),
    bytes("publish_payload_bytes", "Bytes of application payload in PUBLISH packets.", MQTT, |t| {
        t.messages.sum
    }),
    bytes("publish_overhead_bytes", "Bytes of PUBLISH packets without their payloads.", MQTT, |t| {
        (0..3).map(|qos| t.published(qos).overhead()).sum()
    }),
    extent("message_size_bytes", "Application payload of a PUBLISH packet.", MQTT, |t| &t.messages),
    packets(
        "publish_per_segment",
        "PUBLISH packets that become complete in a segment, of segments with any.",
        |t| &t.publish_per_segment,
    ),
    packets(
        "publish_starts_per_segment",
        "PUBLISH packets whose first byte is in a segment, of segments with any.",
        |t| &t.publish_starts_per_segment,
    ),
    overhead("overhead_fixed_header_bytes_qos0", "Fixed header bytes per PUBLISH at QoS 0.", |t| {
        per(t, 0, |b| b.fixed_header)
    }),
    overhead("overhead_fixed_header_bytes_qos1", "Fixed header bytes per PUBLISH at QoS 1.", |t| {
        per(t, 1, |b| b.fixed_header)
    }),
    overhead("overhead_fixed_header_bytes_qos2", "Fixed header bytes per PUBLISH at QoS 2.", |t| {
        per(t, 2, |b| b.fixed_header)
    }),
    overhead("overhead_topic_bytes_qos0", "Topic bytes with their length per PUBLISH at QoS 0.", |t| {
        per(t, 0, |b| b.topic)
    }),
    overhead("overhead_topic_bytes_qos1", "Topic bytes with their length per PUBLISH at QoS 1.", |t| {
        per(t, 1, |b| b.topic)
    }),
    overhead("overhead_topic_bytes_qos2", "Topic bytes with their length per PUBLISH at QoS 2.", |t| {
        per(t, 2, |b| b.topic)
    }),
    overhead("overhead_id_bytes_qos1", "Packet identifier bytes per PUBLISH at QoS 1.", |t| {
        per(t, 1, |b| b.id)
    }),
    overhead("overhead_id_bytes_qos2", "Packet identifier bytes per PUBLISH at QoS 2.", |t| {
        per(t, 2, |b| b.id)
    }),
    overhead("overhead_properties_bytes_qos0", "Property bytes per PUBLISH at QoS 0.", |t| {
        per(t, 0, |b| b.properties)
    }),
    overhead("overhead_properties_bytes_qos1", "Property bytes per PUBLISH at QoS 1.", |t| {
        per(t, 1, |b| b.properties)
    }),
    overhead("overhead_properties_bytes_qos2", "Property bytes per PUBLISH at QoS 2.", |t| {
        per(t, 2, |b| b.properties)
    }),
    overhead(
        "overhead_acknowledgments_bytes_qos1",
        "PUBACK bytes per PUBLISH at QoS 1; of both directions together.",
        |t| per(t, 1, |b| b.acknowledgments),
    ),
    overhead(
        "overhead_acknowledgments_bytes_qos2",
        "PUBREC, PUBREL and PUBCOMP bytes per PUBLISH at QoS 2; of both \
         directions together.",
        |t| per(t, 2, |b| b.acknowledgments),
    ),
    exchange(
        "connect_connack_s",
        "CONNECT to CONNACK: from the last byte of the one to that of the other.",
        |t| t.exchanged_ns(Exchange::Connect),
    ),
    exchange(
        "publish_puback_s",
        "PUBLISH at QoS 1 to PUBACK: from the last byte of the one to that of the other.",
        |t| t.exchanged_ns(Exchange::PublishPuback),
    ),
    exchange(
        "publish_pubrec_s",
        "PUBLISH at QoS 2 to PUBREC: from the last byte of the one to that of the other.",
        |t| t.exchanged_ns(Exchange::PublishPubrec),
    ),
    exchange(
        "pubrec_pubrel_s",
        "PUBREC to PUBREL: from the last byte of the one to that of the other.",
        |t| t.exchanged_ns(Exchange::PubrecPubrel),
    ),
    exchange(
        "pubrel_pubcomp_s",
        "PUBREL to PUBCOMP: from the last byte of the one to that of the other.",
        |t| t.exchanged_ns(Exchange::PubrelPubcomp),
    ),
    exchange(
        "subscribe_suback_s",
        "SUBSCRIBE to SUBACK: from the last byte of the one to that of the other.",
        |t| t.exchanged_ns(Exchange::Subscribe),
    ),
    exchange(
        "unsubscribe_unsuback_s",
        "UNSUBSCRIBE to UNSUBACK: from the last byte of the one to that of the other.",
        |t| t.exchanged_ns(Exchange::Unsubscribe),
    ),
    exchange("ping_s", "PINGREQ to PINGRESP: from the last byte of the one to that of the other.", |t| {
        t.exchanged_ns(Exchange::Ping)
    }),
    quotient(
        "b_efficiency_ratio",
        Unit::Ratio,
        "Application bytes (topic, payload and one more per PUBLISH) over link bytes. In a \
         sender's direction it is S, in a receiver's R, over everything a station's radio hears T.",
        PEREZ,
        |t| {
            share(
                (0..3)
                    .map(|qos| t.published(qos))
                    .map(|b| b.topic.saturating_sub(2 * b.count) + b.payload + b.count)
                    .sum(),
                t.frames.sum,
            )
        },
    ),
    quotient(
        "m_efficiency_ratio",
        Unit::Ratio,
        "PUBLISH packets over frames; S, R and T as above.",
        PEREZ,
        |t| share(t.packets_of(Kind::Publish), t.frames.count),
    ),
];

const fn metric(
    name: &'static str,
    unit: Unit,
    definition: &'static str,
    source: &'static str,
    reading: MetricReading,
) -> Metric {
    Metric { name, unit, definition, source, reading }
}

const fn count(
    name: &'static str,
    what: &'static str,
    source: &'static str,
    read: fn(&MetricTally) -> u64,
) -> Metric {
    metric(name, Unit::Count, what, source, MetricReading::Count(read))
}

const fn bytes(
    name: &'static str,
    what: &'static str,
    source: &'static str,
    read: fn(&MetricTally) -> u64,
) -> Metric {
    metric(name, Unit::Bytes, what, source, MetricReading::Count(read))
}

const fn extent(
    name: &'static str,
    what: &'static str,
    source: &'static str,
    read: fn(&MetricTally) -> &SizeExtent,
) -> Metric {
    metric(name, Unit::Bytes, what, source, MetricReading::Extent(read))
}

const fn quotient(
    name: &'static str,
    unit: Unit,
    what: &'static str,
    source: &'static str,
    read: fn(&MetricTally) -> Option<f64>,
) -> Metric {
    metric(name, unit, what, source, MetricReading::Quotient(read))
}

const fn seconds(
    name: &'static str,
    what: &'static str,
    source: &'static str,
    read: fn(&MetricTally) -> &Distribution,
) -> Metric {
    metric(name, Unit::Seconds, what, source, MetricReading::Distribution(read, NS))
}

const fn packets(name: &'static str, what: &'static str, read: fn(&MetricTally) -> &Distribution) -> Metric {
    metric(name, Unit::Count, what, "Borsatti 2020", MetricReading::Distribution(read, 1.0))
}

const fn overhead(name: &'static str, what: &'static str, read: fn(&MetricTally) -> Option<f64>) -> Metric {
    metric(name, Unit::Bytes, what, "Schuhmacher 2018", MetricReading::Quotient(read))
}

const fn exchange(name: &'static str, what: &'static str, read: fn(&MetricTally) -> &Distribution) -> Metric {
    metric(name, Unit::Seconds, what, MQTT, MetricReading::Distribution(read, NS))
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn rate(tally: &MetricTally, bytes: u64) -> Option<f64> {
    let seconds = tally.duration()?.as_s_f64();
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds)
}

fn per(tally: &MetricTally, qos: usize, read: fn(&PublishBytes) -> u64) -> Option<f64> {
    let bytes = tally.published(qos);
    share(read(bytes), bytes.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_metrics_share_a_name() {
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_empty_tally_has_no_value_that_is_not_a_number() {
        for metric in METRICS {
            for value in metric.values(&MetricTally::default()) {
                assert!(value.value.is_none_or(f64::is_finite), "{}", value.name);
            }
        }
    }
}
