//! The simulator's segments, judged by the analyser that judges captures.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};

use mqttlab_recording::{Judgement, NetworkMetricRow, SeenPacket, SeenSegment, SegmentAnalyser};

use crate::analysis::{self, Analyser, AnalyserSettings};
use crate::metrics::MetricTally;
use crate::mqtt::{Lengths, PacketDescriptor};
use crate::reassembly::SegmentPayload;
use crate::segment::{Bits, Options, SocketEndpoint, TcpHeader};

/// Judges segments that have no bytes.
pub struct SegmentWitness {
    analyser: Analyser,
    /// The simulator's number and the client of each connection, by the analyser's number.
    known: HashMap<u32, (u32, Option<u32>)>,
    /// What layers between TCP and MQTT add, which stands in no packet, by connection and direction.
    layer_bytes: BTreeMap<(u32, usize), LayerBytes>,
    packets: Vec<PacketDescriptor>,
    marks: String,
}

#[derive(Clone, Copy, Default)]
struct LayerBytes {
    tls: u64,
    websocket: u64,
}

impl SegmentWitness {
    /// A witness that has seen nothing, for brokers that listen on these ports.
    pub fn new(broker_ports: Vec<u16>) -> Self {
        SegmentWitness {
            analyser: Analyser::new(AnalyserSettings { broker_ports, ..AnalyserSettings::default() }),
            known: HashMap::new(),
            layer_bytes: BTreeMap::new(),
            packets: Vec::new(),
            marks: String::new(),
        }
    }
}

impl SegmentAnalyser for SegmentWitness {
    fn segment(&mut self, seen: &SeenSegment<'_>) -> Judgement<'_> {
        self.packets.clear();
        self.packets.extend(seen.packets.iter().map(describe));
        let annotations = self.analyser.segment(&read(seen), SegmentPayload::Packets(&self.packets));
        let verdict = annotations.verdict;
        if Bits(seen.flags).has(Bits::SYN) {
            self.known.insert(annotations.connection as u32, (seen.connection, seen.client));
        }
        if seen.websocket_bytes > 0 || seen.tls_bytes > 0 {
            let key = (annotations.connection as u32, annotations.direction as usize);
            let sum = self.layer_bytes.entry(key).or_default();
            sum.tls += u64::from(seen.tls_bytes);
            sum.websocket += u64::from(seen.websocket_bytes);
        }
        self.marks.clear();
        if verdict.marks.0 != 0 {
            self.marks = verdict.marks.to_string();
        }
        Judgement {
            marks: Some(self.marks.as_str()).filter(|marks| !marks.is_empty()),
            ack_rtt: verdict.ack_rtt.filter(|_| !verdict.ack_rtt_ambiguous),
        }
    }

    fn network_metrics(&mut self, emit: &mut dyn FnMut(&NetworkMetricRow<'_>)) {
        let analyser = std::mem::replace(&mut self.analyser, Analyser::new(AnalyserSettings::default()));
        let who = |number| match self.known.get(&number) {
            Some(&(connection, client)) => (connection, client),
            None => (number, None),
        };
        let mut analysis = analyser.finish();
        for (&(number, direction), bytes) in &self.layer_bytes {
            let add = |tally: &mut MetricTally| {
                tally.tls_bytes += bytes.tls;
                tally.websocket_bytes += bytes.websocket;
            };
            add(&mut analysis.total);
            add(&mut analysis.directions[direction]);
            let connection = analysis.connections.iter_mut().find(|one| one.number == u64::from(number));
            connection.into_iter().for_each(|one| add(&mut one.directions[direction]));
        }
        analysis::rows(&analysis, who, emit);
    }
}

fn read(seen: &SeenSegment<'_>) -> TcpHeader {
    let end = |side: usize| SocketEndpoint {
        // Hosts have numbers here; any addresses that tell them apart will do.
        address: IpAddr::V4(Ipv4Addr::from(HOSTS + u32::from(seen.hosts[side]))),
        port: seen.ports[side],
    };
    let mut options = Options {
        mss: seen.mss,
        window_scale: seen.window_scale,
        timestamps: seen.timestamps,
        ..Options::default()
    };
    for (place, block) in options.sack.iter_mut().zip(seen.sack) {
        *place = *block;
        options.sack_blocks += 1;
    }
    TcpHeader {
        time: seen.at,
        source: end(0),
        destination: end(1),
        sequence: seen.seq,
        acknowledgment: seen.ack,
        bits: Bits(seen.flags),
        window: seen.window,
        options,
        payload_len: seen.payload_bytes,
        header_len: seen.header_bytes,
        ip_len: IPV4_HEADER + seen.header_bytes + seen.payload_bytes,
        frame_len: seen.frame_bytes,
    }
}

fn describe(packet: &SeenPacket) -> PacketDescriptor {
    PacketDescriptor {
        offset: packet.offset,
        kind: packet.kind,
        qos: packet.qos,
        dup: packet.dup,
        retain: packet.retain,
        id: packet.id,
        lengths: Lengths {
            fixed_header: packet.fixed_header_bytes,
            topic: packet.topic_bytes,
            id: packet.packet_id_bytes,
            properties: packet.property_bytes,
            payload: packet.payload_bytes,
        },
        message: 0,
    }
}

/// 10.0.0.0.
const HOSTS: u32 = 10 << 24;
const IPV4_HEADER: u32 = 20;
