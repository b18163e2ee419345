//! What a capture is like: what it does not hold and what nobody reads in it, for the verdict and the warnings.

use std::collections::BTreeMap;

use mqttlab_capture::{
    AnalysedConnection, Analysis, CapturedFrame, ConnectionProtocol, FrameContent, ServerDirection,
    UdpHeader, Unread, UnreadReason,
};
use mqttlab_units::Instant;
use serde_json::{Value, json};

use super::clock::CaptureClock;
use super::matcher::Matcher;
use super::options::ImportOrder;
use super::preambles;

/// What the evidence is like.
#[derive(Default)]
pub struct CaptureCompleteness {
    /// Frames, each once.
    pub frames: u64,
    /// Frames that were seen again further along their path.
    pub passed_again: u64,
    /// Control packets.
    pub control_packets: u64,
    /// Of these, packets with bytes that were not captured.
    pub damaged: u64,
    /// PUBLISH packets whose topic is not known.
    pub without_topic: u64,
    /// Of these, packets whose alias was defined before it was captured.
    pub alias_unknown: u64,
    /// Frames that the capture dropped.
    pub dropped: u64,
    /// When the last frame was captured.
    pub last_ns: u64,
    larger_than_ethernet: u64,
    cut: u64,
    shortest_cut: Option<usize>,
    before_start: u64,
    untimed: u64,
    fragments: u64,
    closed: BTreeMap<UnreadReason, u64>,
    /// Datagrams that begin connections of QUIC, by the lower of their ports.
    quic: BTreeMap<u16, u64>,
}

impl CaptureCompleteness {
    /// Takes a frame into account.
    pub fn count_frame(&mut self, frame: &CapturedFrame<'_>, content: &FrameContent, clock: CaptureClock) {
        self.fragments += u64::from(content.is_fragment);
        if let Some(closed) = content.closed {
            *self.closed.entry(closed).or_default() += 1;
        }
        if (frame.data.len() as u64) < u64::from(frame.original_len) {
            self.cut += 1;
            let captured = frame.data.len();
            self.shortest_cut = Some(self.shortest_cut.map_or(captured, |least| least.min(captured)));
        }
        self.larger_than_ethernet += u64::from(frame.original_len > ETHERNET_BYTES);
        self.untimed += u64::from(!frame.is_timed);
        self.before_start += u64::from(clock.is_before(frame.time));
        self.last_ns = self.last_ns.max(clock.at(frame.time).as_ns());
    }

    /// Takes a datagram into account that is no MQTT-SN: MQTT may be in QUIC, whose first packets have long headers with a
    /// version (RFC 9000 §17.2, RFC 9369 §3.1).
    pub fn look_inside(&mut self, datagram: &UdpHeader, payload: &[u8]) {
        if let [0xc0..=0xff, version @ ..] = payload
            && let Some([0, 0, 0, 1] | [0x6b, 0x33, 0x43, 0xcf]) = version.get(..4)
        {
            *self.quic.entry(datagram.source.port.min(datagram.destination.port)).or_default() += 1;
        }
    }

    /// Whether there are frames without a time: then nothing can be timed.
    pub fn is_untimed(&self) -> bool {
        self.untimed > 0
    }

    /// Why the numbers are not the whole truth, each with what to do about it.
    pub fn reasons(&self, analysis: &Analysis, order: &ImportOrder) -> Vec<String> {
        let mut reasons = Vec::new();
        let sealed = self.say_sealed(analysis, &order.broker_ports, &mut reasons);
        self.say_unread(analysis, order, sealed, &mut reasons);
        preambles::reasons(analysis, order, &mut reasons);
        say_missing_directions(analysis, &mut reasons);
        let mut say = |count: u64, words: String| {
            if count > 0 {
                reasons.push(words);
            }
        };
        let (total, impossible) = (&analysis.total, preambles::impossible(analysis));
        say(
            total.missing_bytes,
            format!(
                "{} bytes of the broker's connections were sent and are not in the capture{}: messages in them are not \
                 counted, and what became of messages that may have been in them is unknown.",
                total.missing_bytes,
                self.why_missing()
            ),
        );
        say(
            self.dropped,
            format!(
                "The capture reports {} dropped frames: what became of messages that may have been in them \
                 is unknown. Capture with a larger buffer (tcpdump -B, dumpcap -B), or fewer bytes of each frame.",
                self.dropped
            ),
        );
        let joined = || {
            analysis
                .connections
                .iter()
                .filter(|connection| connection.is_broker_s && connection.is_joined_late)
        };
        let skipped =
            joined().flat_map(|connection| &connection.directions).map(|way| way.skipped_bytes).sum::<u64>();
        let count = joined().count();
        say(
            count as u64,
            format!(
                "{count} of {} connections to the broker were open before the capture began: their subscriptions \
                 and messages in flight are not known, and {skipped} bytes of them were skipped to find their first packets.",
                total.connections
            ),
        );
        say(
            impossible,
            format!(
                "{impossible} times the next bytes of a stream were not a control packet, or no frame of its WebSocket; they \
                 were skipped to find the next one."
            ),
        );
        say(
            self.alias_unknown,
            format!(
                "{} PUBLISH packets name their topic by an alias that was defined where nothing was captured: their \
                 topic is unknown.",
                self.alias_unknown
            ),
        );
        say(
            self.untimed,
            format!(
                "{} frames have no time (simple packet blocks): there are no latencies and no round trips.",
                self.untimed
            ),
        );
        reasons
    }

    /// Connections with TLS that were not read: those to brokers, those that the key log should open, and all of them where
    /// there is no other MQTT. Says whether there were any.
    fn say_sealed(&self, analysis: &Analysis, broker_ports: &[u16], reasons: &mut Vec<String>) -> bool {
        let before = reasons.len();
        for (&(port, unread), sealed) in &analysis.sealed {
            let should_open = matches!(unread, Unread::Suite(_) | Unread::Sealed);
            let is_brokers = port == MQTT_OVER_TLS || broker_ports.contains(&port);
            if !(should_open || is_brokers || self.control_packets == 0) {
                continue;
            }
            let remedy = match unread {
                Unread::NoKeyLog => {
                    "Give the secrets that a client or the broker has logged (SSLKEYLOGFILE) with --key-log FILE."
                }
                Unread::NoSecret => "Log the secrets at either end while the connections open.",
                Unread::Suite(_) | Unread::Version(_) => {
                    "Let clients or broker use TLS 1.2 or 1.3 with AES-GCM or ChaCha20-Poly1305."
                }
                Unread::Begun => "Begin to capture before the clients connect.",
                Unread::Sealed => "The key log is of another run, or damaged.",
            };
            let numbers: Vec<String> = sealed.numbers.iter().map(u64::to_string).collect();
            let count = sealed.connections;
            let (s, more) = (
                if count == 1 { "" } else { "s" },
                if count > sealed.numbers.len() as u64 { ", …" } else { "" },
            );
            reasons.push(format!(
                "{count} connection{s} to port {port} (number {}{more}) with TLS: the messages are not imported, because \
                 {unread}. {remedy}",
                numbers.join(", ")
            ));
        }
        reasons.len() > before
    }

    /// What may carry MQTT and is not read.
    fn say_unread(&self, analysis: &Analysis, order: &ImportOrder, sealed: bool, reasons: &mut Vec<String>) {
        for (&protocol, &count) in &analysis.on_broker_ports {
            let remedy = match protocol {
                ConnectionProtocol::WebSocket => {
                    " There is no MQTT in their frames: another protocol, or compressed (permessage-deflate)."
                }
                ConnectionProtocol::ZeroMq => " Of ZeroMQ only runs of mqttlab's own are read, not captures.",
                // Who has named the port has no better one to name.
                ConnectionProtocol::Http | ConnectionProtocol::Other if order.are_ports_given => "",
                ConnectionProtocol::Http | ConnectionProtocol::Other => {
                    " Say with --broker-port where the broker listens."
                }
                ConnectionProtocol::Mqtt | ConnectionProtocol::Tls | ConnectionProtocol::Unknown => continue,
            };
            let name = protocol.name();
            reasons.push(format!(
                "{count} connections to the broker's port carry {name}: their messages are not imported.{remedy}"
            ));
        }
        for (closed, frames) in &self.closed {
            reasons.push(format!("{closed}: {frames} frames not read."));
        }
        if self.control_packets == 0 && !sealed {
            let quic = self.quic.iter().take(SHOWN).map(|(port, count)| {
                format!("QUIC on UDP port {port} ({count} datagrams with a long header), which is not read")
            });
            let others: Vec<String> = analysis
                .others
                .iter()
                .filter(|((_, protocol), _)| *protocol != ConnectionProtocol::Unknown)
                .take(SHOWN)
                .map(|((port, protocol), others)| {
                    let unread = if *protocol == ConnectionProtocol::ZeroMq {
                        ", of which only own runs are read"
                    } else {
                        ""
                    };
                    format!("{} on port {port} ({} connections){unread}", protocol.name(), others.connections)
                })
                .chain(quic)
                .collect();
            // Of these a port says nothing new.
            let told = |protocol: &ConnectionProtocol| {
                matches!(protocol, ConnectionProtocol::ZeroMq | ConnectionProtocol::Unknown)
            };
            let is_told = !others.is_empty() && analysis.others.keys().all(|(_, protocol)| told(protocol));
            let is_told = is_told || order.are_ports_given;
            let ports = order.broker_ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            let remedy = if is_told { "" } else { " Say where the broker listens with --broker-port." };
            let found =
                if others.is_empty() { String::new() } else { format!(" There is {}.", others.join(", ")) };
            reasons.push(format!(
                "No MQTT was found on port {ports}, nor a CONNECT on any other.{found}{remedy}"
            ));
        }
    }

    fn why_missing(&self) -> String {
        match (self.shortest_cut, self.fragments) {
            (Some(bytes), _) if self.cut > 0 => {
                format!(
                    " ({} frames are cut, the shortest to {bytes} B: capture whole frames, tcpdump -s 0)",
                    self.cut
                )
            }
            (_, 1..) => format!(" ({} frames are IP fragments, which are not put together)", self.fragments),
            _ => String::new(),
        }
    }

    /// What to know besides.
    pub fn warnings(&self, analysis: &Analysis, matcher: &Matcher, files: usize) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |count: u64, words: &str| {
            if count > 0 {
                warnings.push(words.replace("{}", &count.to_string()));
            }
        };
        warn(
            self.larger_than_ethernet,
            "{} frames are larger than 1514 B: jumbo frames, frames of a loopback interface, or frames that \
             segmentation offload joined on the capturing host. In the last case numbers and sizes of frames are \
             not those on the wire.",
        );
        if analysis.total.missing_bytes == 0 {
            warn(
                self.cut,
                "{} frames were captured in part (snap length); nothing of the broker's streams is missing.",
            );
            warn(self.fragments, "{} frames are IP fragments, which are not put together.");
        }
        warn(
            self.damaged,
            "{} MQTT packets have bytes that were not captured; they are in control_packets without \
              a time of completion.",
        );
        warn(self.without_topic - self.alias_unknown, "The topics of {} PUBLISH packets were not captured.");
        warn(
            self.before_start,
            "{} frames have times before that of the first frame; they are put at the start.",
        );
        if files > 1 {
            warnings.push(
                "The clocks of the captures are assumed to agree; where they do not, latencies between captures \
                 are off by the difference."
                    .into(),
            );
        }
        warnings.append(&mut matcher.servers.warnings());
        warnings.append(&mut matcher.subscriptions.warnings());
        warnings.extend(matcher.delays.warning());
        preambles::warnings(analysis, &mut warnings);
        let traced = matcher.traced();
        let mut warn = |count: u64, words: &str| {
            if count > 0 {
                warnings.push(words.replace("{}", &count.to_string()));
            }
        };
        warn(
            traced.by_order,
            "{} deliveries were matched to their messages by order, because several had the same content; as many arrived as \
             were published.",
        );
        warn(
            traced.ambiguous,
            "{} deliveries are of messages with the same content, of which not all arrived, or whose order is not promised: which \
             is which cannot be told, and they have no latency.",
        );
        warn(
            traced.foreign,
            "{} deliveries belong to no message that was captured on its way to the broker.",
        );
        warnings.append(&mut matcher.strangers.warnings());
        warnings
    }

    /// The numbers behind it, for `run.json`.
    pub fn as_json(&self, analysis: &Analysis, matcher: &Matcher) -> Value {
        let traced = matcher.traced();
        let others: Vec<Value> = analysis
            .others
            .iter()
            .map(|((port, protocol), others)| {
                json!({
                    "port": port,
                    "protocol": protocol.name(),
                    "connections": others.connections,
                    "frames": others.frames,
                    "bytes": others.bytes,
                })
            })
            .collect();
        let without_tcp = analysis.without_tcp;
        let closed: BTreeMap<String, u64> =
            self.closed.iter().map(|(closed, frames)| (closed.to_string(), *frames)).collect();
        json!({
            "frames": self.frames,
            "frames_seen_on_another_link": self.passed_again,
            "frames_cut": self.cut,
            "frames_dropped_by_capture": self.dropped,
            "frames_without_time": self.untimed,
            "frames_ip_fragments": self.fragments,
            "frames_not_read": closed,
            "frames_without_tcp": {"frames": without_tcp.frames, "bytes": without_tcp.bytes},
            "other_connections": others,
            "servers": matcher.servers.as_json(),
            "tls": secured(analysis),
            "control_packets": self.control_packets,
            "control_packets_damaged": self.damaged,
            "tcp_missing_bytes": analysis.total.missing_bytes,
            "mqtt_skipped_bytes": analysis.total.skipped_bytes,
            "connections_without_rows_of_their_own": analysis.connections_unlisted,
            "deliveries_matched_by_order": traced.by_order,
            "deliveries_ambiguous": traced.ambiguous,
            "deliveries_foreign": traced.foreign,
        })
    }
}

/// Connections with TLS by version, suite and what became of them.
fn secured(analysis: &Analysis) -> Vec<Value> {
    let mut kinds: BTreeMap<_, [u64; 3]> = BTreeMap::new();
    for tls in analysis.connections.iter().filter_map(|connection| connection.tls.as_deref()) {
        let unread = tls.unread.map(|unread| unread.to_string());
        let counts = kinds.entry((tls.version.clone(), tls.suite.clone(), unread)).or_default();
        for (count, is_so) in counts.iter_mut().zip([true, tls.is_resumed, tls.has_early_data]) {
            *count += u64::from(is_so);
        }
    }
    let rows = kinds.into_iter().map(|((version, suite, unread), [connections, resumed, early])| {
        json!({
            "version": version,
            "suite": suite,
            "connections": connections,
            "resumed": resumed,
            "with_early_data": early,
            "unread": unread,
        })
    });
    rows.collect()
}

/// Directions of connections of which nothing was captured.
fn say_missing_directions(analysis: &Analysis, reasons: &mut Vec<String>) {
    for missing in ServerDirection::BOTH {
        let broker_s = || analysis.connections.iter().filter(|connection| connection.is_broker_s);
        let count = broker_s().filter(|connection| missing_direction(connection) == Some(missing)).count();
        let [what, unknown] = match missing {
            ServerDirection::ToServer => [
                "what clients sent to the broker is",
                "what they published and subscribed to is not known, and messages from the broker may be theirs",
            ],
            ServerDirection::FromServer => {
                ["what the broker sent is", "what it acknowledged, granted and delivered there is not known"]
            }
        };
        if count > 0 {
            reasons.push(format!(
                "One direction is missing: {what} not in the capture of {count} of {} connections to the broker; \
                 {unknown}. Capture both directions.",
                broker_s().count()
            ));
        }
    }
}

/// The direction of which nothing was captured although the other one shows that it was there.
pub fn missing_direction(connection: &AnalysedConnection) -> Option<ServerDirection> {
    let [up, down] = &connection.directions;
    match (up.segments, down.segments) {
        // Who was never answered has sent nothing but SYNs.
        (1.., 0) if connection.is_broker_s && up.segments > up.syn => Some(ServerDirection::FromServer),
        (0, 1..) if connection.is_broker_s && down.segments > down.rst => Some(ServerDirection::ToServer),
        _ => None,
    }
}

/// Since when the client at a broker's connection may have subscribed unseen: its CONNECT was not captured, and where its
/// SYN was not either, it was open before the capture began.
pub fn unseen_subscriptions_since(connection: &AnalysedConnection) -> Option<Instant> {
    let [up, down] = &connection.directions;
    // Behind a proxy that refuses there is no broker.
    let is_refused = connection.preamble.as_ref().is_some_and(|preamble| preamble.refusal.is_some());
    if !connection.is_broker_s || connection.connect.is_some() || is_refused {
        return None;
    }
    if up.connections_with_syn == 0 {
        return Some(Instant::ZERO);
    }
    let carries_anything = up.payload_bytes + down.payload_bytes > 0;
    up.span.map(|(first, _)| first).filter(|_| carries_anything)
}

/// The largest untagged Ethernet frame, without its check sequence (IEEE 802.3).
const ETHERNET_BYTES: u32 = 1514;
/// What IANA has registered for MQTT over TLS.
const MQTT_OVER_TLS: u16 = 8883;
/// Kinds of other connections that a sentence names.
const SHOWN: usize = 5;
