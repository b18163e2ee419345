//! The captures against `reference_pcap.csv`, `reference_overhead.csv` and `reference_pcap_vs_log.csv`.

use std::collections::BTreeMap;

use mqttlab_capture::metrics::{Distribution, Exchange, MetricTally, SizeExtent};
use mqttlab_capture::mqtt::{CapturedPacket, Kind};
use mqttlab_capture::{
    Analyser, AnalyserSettings, Analysis, Bits, CaptureReader, Completed, Marks, ServerDirection,
    TransportHeader, dissect,
};

use mqttlab_capture::log::match_messages;

use super::logs;
use super::reference::{Data, Verdicts};

/// The reference subtracts times since 1970 as binary64, whose steps are 238 ns in 2018, in every own row. A step is
/// lost at either end.
const EPOCH_STEPS_S: f64 = 2.0 * 238.5e-9;

/// What one capture says.
struct Reading {
    analysis: Analysis,
    packets: Vec<Completed>,
    first_ns: u64,
    last_ns: u64,
    /// Segments that only acknowledge, by direction: no payload, SYN, FIN or RST.
    pure_acks: [u64; 2],
    tcp_frame_bytes: u64,
}

/// The study's clients put this many bytes before each payload.
const IDENTIFIER_LEN: u64 = 6;

/// The relay sends to the topic with this behind it.
const RELAYED: &str = "_2";

fn read(data: &Data, file: &str) -> Reading {
    let mut reader = CaptureReader::new(data.open(file)).expect("a capture");
    let mut analyser = Analyser::new(AnalyserSettings::default());
    let mut packets = Vec::new();
    let (mut first_ns, mut last_ns) = (u64::MAX, 0);
    let mut pure_acks = [0; 2];
    while let Some(frame) = reader.next_frame().expect("a frame") {
        first_ns = first_ns.min(frame.time.as_ns());
        last_ns = last_ns.max(frame.time.as_ns());
        let Some(annotations) = analyser.frame(&frame) else { continue };
        packets.extend_from_slice(annotations.packets);
        if let TransportHeader::Tcp(segment, _) = dissect(&frame)
            && segment.payload_len == 0
            && !segment.bits.any(Bits::SYN.and(Bits::FIN).and(Bits::RST))
        {
            pure_acks[annotations.direction as usize] += 1;
        }
    }
    packets.extend_from_slice(analyser.flush());
    let analysis = analyser.finish();
    let tcp_frame_bytes = analysis.total.tcp_frame_bytes;
    Reading { analysis, packets, first_ns, last_ns, pure_acks, tcp_frame_bytes }
}

pub fn compare_captures(data: &Data) -> Verdicts {
    let rows = data.table("reference_pcap.csv");
    let mut verdicts = Verdicts::default();
    let mut readings: BTreeMap<&str, Reading> = BTreeMap::new();
    let own: BTreeMap<_, _> = rows
        .iter()
        .filter(|row| row["method"] == "own")
        .map(|row| ((&row["file"], &row["metric"], &row["direction"]), &row["value"]))
        .collect();
    for row in &rows {
        let reading = readings.entry(&row["file"]).or_insert_with(|| read(data, &row["file"]));
        let (metric, direction, expected) = (&row["metric"], &row["direction"], &row["value"]);
        let what = format!("{} {metric} {direction} ({})", row["file"], row["method"]);
        let before = verdicts.wrong();
        match metric.as_str() {
            "mqtt_version" => verdicts.text(&what, &version(reading), expected),
            _ => match value(reading, metric, direction) {
                Some(ours) if row["method"] == "own" && row["unit"] == "s" => {
                    verdicts.number_within(&what, ours, expected, EPOCH_STEPS_S);
                }
                Some(ours) => verdicts.number(&what, ours, expected),
                None => panic!("{what}: no such metric here"),
            },
        }
        // Two references for one number: the reader that reassembles streams is the one to trust.
        let trusted = own.get(&(&row["file"], metric, direction));
        let reason = match metric.as_str() {
            "mqtt_type0_bogus" => Some("type 0 does not exist: tshark reads payload bytes as packets"),
            "malformed_frames" => Some("tshark dissects from a wrong offset; there is no such frame"),
            _ if row["method"] != "own" && trusted.is_some_and(|trusted| *trusted != expected) => {
                Some("tshark loses the framing of this stream; its own reassembled row is met")
            }
            _ => None,
        };
        if let Some(reason) = reason
            && let Some(difference) = verdicts.retract(before)
        {
            verdicts.explain(difference, reason);
        }
    }
    verdicts
}

fn version(reading: &Reading) -> String {
    match reading.analysis.total.levels {
        0 => "no CONNECT captured".to_owned(),
        levels => {
            let names = (0..8).filter(|level| levels >> level & 1 == 1).map(|level| level.to_string());
            names.collect::<Vec<_>>().join(",")
        }
    }
}

fn value(reading: &Reading, metric: &str, direction: &str) -> Option<Option<f64>> {
    let analysis = &reading.analysis;
    let tally = match direction {
        "to_broker" => &analysis.directions[0],
        "from_broker" => &analysis.directions[1],
        _ => &analysis.total,
    };
    // The table has round trips in the direction of the acknowledgments, we have them in that of the data.
    let acknowledged = match direction {
        "to_broker" => &analysis.directions[1],
        "from_broker" => &analysis.directions[0],
        _ => &analysis.total,
    };
    mark(tally, metric)
        .or_else(|| frames(reading, tally, metric))
        .or_else(|| times(if metric.starts_with("ack_rtt") { acknowledged } else { tally }, metric))
        .or_else(|| mqtt(tally, metric))
}

fn mark(tally: &MetricTally, metric: &str) -> Option<Option<f64>> {
    let name = metric.strip_prefix("tcp_")?;
    let (mark, _) = Marks::ALL.iter().find(|(_, text)| *text == name)?;
    Some(Some(tally.marked(*mark) as f64))
}

fn frames(reading: &Reading, tally: &MetricTally, metric: &str) -> Option<Option<f64>> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let everything = &reading.analysis.everything;
    let link = if std::ptr::eq(tally, &raw const reading.analysis.total) { everything } else { tally };
    let number = match metric {
        "capture_first_epoch" => return Some(Some(seconds(reading.first_ns))),
        "capture_duration" => return Some(Some(seconds(reading.last_ns - reading.first_ns))),
        "frame_len_mean" => return Some(link.frames.mean()),
        "frame_len_min" => link.frames.min,
        "frame_len_max" => link.frames.max,
        "frames_larger_than_1514" => link.frames_larger_than_1514,
        "packets_total" => everything.frames.count,
        "bytes_total_frames" | "bytes_ethernet" => link.frames.sum,
        "packets" => link.frames.count,
        "tcp_packets" => tally.segments,
        "non_tcp_packets" => everything.frames.count - reading.analysis.total.segments,
        "tcp_frame_len_mean" => {
            return Some((tally.segments > 0).then(|| tally.tcp_frame_bytes as f64 / tally.segments as f64));
        }
        "tcp_connections" => tally.connections,
        "tcp_connections_with_syn_captured" => tally.connections_with_syn,
        "syn_packets" => tally.syn,
        "synack_packets" => tally.syn_ack,
        "fin_packets" => tally.fin,
        "rst_packets" => tally.rst,
        "bytes_ip" => tally.ip_bytes,
        "bytes_tcp" => tally.tcp_bytes,
        "bytes_tcp_payload" => tally.payload_bytes,
        "bytes_tcp_payload_unique" => tally.payload_bytes_unique,
        "bytes_tcp_payload_retransmitted" => tally.payload_bytes - tally.payload_bytes_unique,
        "stream_bytes_missing" => tally.missing_bytes,
        "tcp_segments_with_payload" => tally.segments_with_payload,
        "segments_entirely_below_highest_seq" => tally.segments_below_highest,
        "seq_holes_when_captured" => tally.holes,
        _ => return None,
    };
    Some(Some(number as f64))
}

fn times(tally: &MetricTally, metric: &str) -> Option<Option<f64>> {
    let (name, statistic) = metric.rsplit_once('_')?;
    let samples = match name {
        "ack_rtt" => &tally.ack_rtt_ns,
        "initial_rtt" => &tally.initial_rtt_ns,
        "publish_puback" => tally.exchanged_ns(Exchange::PublishPuback),
        "publish_pubrec" => tally.exchanged_ns(Exchange::PublishPubrec),
        "pubrel_pubcomp" => tally.exchanged_ns(Exchange::PubrelPubcomp),
        _ => return None,
    };
    let seconds = |value: Option<f64>| value.map(|ns| ns / 1e9);
    let summary = samples.summary();
    let extreme = |ns: u64| (summary.count > 0).then_some(ns as f64);
    Some(match statistic {
        "count" => Some(samples.count() as f64),
        "mean" => seconds(summary.mean()),
        "median" => seconds(summary.quantile(0.5)),
        "min" => seconds(extreme(summary.min)),
        "max" => seconds(extreme(summary.max)),
        _ => return None,
    })
}

fn mqtt(tally: &MetricTally, metric: &str) -> Option<Option<f64>> {
    let per_segment = |samples: &Distribution| samples.summary().mean();
    let messages: &SizeExtent = &tally.messages;
    let number = match metric {
        "bytes_mqtt" => tally.mqtt_bytes,
        "bytes_publish_payload" => messages.sum,
        "bytes_publish_overhead" => (0..3).map(|qos| tally.published(qos).overhead()).sum(),
        "mqtt_PUBLISH_dup" => tally.publish_dup,
        "mqtt_bytes_skipped_unsynced" => tally.skipped_bytes,
        "mqtt_partial_at_end" => tally.partial,
        "mqtt_type0_bogus" | "malformed_frames" => 0,
        "segments_with_publish" => tally.publish_per_segment.count(),
        "publish_per_segment_mean" => return Some(per_segment(&tally.publish_per_segment)),
        "publish_per_segment_max" => {
            let summary = tally.publish_per_segment.summary();
            return Some((summary.count > 0).then_some(summary.max as f64));
        }
        "publish_headers_per_segment_mean" => return Some(per_segment(&tally.publish_starts_per_segment)),
        _ => {
            let name = metric.strip_prefix("mqtt_")?;
            match name.strip_prefix("PUBLISH_qos") {
                Some(qos) => tally.published(qos.parse::<usize>().ok()?).count,
                None => {
                    tally.packets_of((1..=15).filter_map(Kind::from_number).find(|kind| kind.name() == name)?)
                }
            }
        }
    };
    Some(Some(number as f64))
}

/// A capture's packets by the frame that completed them.
fn by_frame(reading: &Reading) -> BTreeMap<(u64, ServerDirection), Vec<&CapturedPacket>> {
    let mut frames: BTreeMap<(u64, ServerDirection), Vec<&CapturedPacket>> = BTreeMap::new();
    for completed in &reading.packets {
        frames
            .entry((completed.packet.complete.frame, completed.direction))
            .or_default()
            .push(&completed.packet);
    }
    frames
}

/// Frames with several packets: how many, and of which types.
fn several(reading: &Reading) -> String {
    let several = by_frame(reading).into_values().filter(|packets| packets.len() > 1).map(|packets| {
        let mut names: Vec<&str> = packets.iter().map(|packet| packet.kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        format!("'{}x{}'", packets.len(), names.join("+"))
    });
    format!("[{}]", several.collect::<Vec<_>>().join(", "))
}

pub fn compare_overhead(data: &Data) -> Verdicts {
    let mut verdicts = Verdicts::default();
    let folder = data.files("overhead");
    for row in data.table("reference_overhead.csv") {
        let start = format!("qos{}-{}.pcapng", row["qos"], row["payload"]);
        let stored = folder.iter().find(|name| name.starts_with(&start)).expect("the row's capture");
        let file = if stored.ends_with(".tar.gz") {
            format!("logs/overhead/{stored}!{start}")
        } else {
            format!("logs/overhead/{stored}")
        };
        let reading = read(data, &file);
        overhead_row(&mut verdicts, &row, &reading);
    }
    verdicts
}

fn overhead_row(verdicts: &mut Verdicts, row: &BTreeMap<String, String>, reading: &Reading) {
    let what = |column: &str| format!("overhead QoS {} {} {column}", row["qos"], row["payload"]);
    let sent = |kind: Kind, direction: ServerDirection| {
        let of_kind =
            reading.packets.iter().filter(move |c| c.direction == direction && c.packet.kind == kind);
        of_kind.map(|completed| &completed.packet).collect::<Vec<_>>()
    };
    let publishes = sent(Kind::Publish, ServerDirection::ToServer);
    let publish = publishes.first().expect("a PUBLISH");
    let connect = sent(Kind::Connect, ServerDirection::ToServer)[0];
    let fields = connect.connect.as_ref().expect("a CONNECT that can be read");
    let lengths = &publish.lengths;
    let qos = usize::from(publish.qos);
    let tallies = &reading.analysis.directions;
    let acknowledgments: u64 = tallies.iter().map(|tally| tally.published(qos).acknowledgments).sum();
    let per_publish = acknowledgments as f64 / publishes.len() as f64;
    let overhead = lengths.total() - u64::from(lengths.payload);
    let first_ns = publishes.iter().map(|packet| packet.first.time.as_ns()).min().expect("a PUBLISH");
    let last_ns = publishes.iter().map(|packet| packet.first.time.as_ns()).max().expect("a PUBLISH");
    let mut number = |column: &str, ours: f64| verdicts.number(&what(column), Some(ours), &row[column]);
    number("connect", connect.lengths.total() as f64);
    number("ver", fields.level.into());
    number("keepalive", fields.keep_alive_s.into());
    number("connflags", fields.flags.into());
    number("connack", sent(Kind::Connack, ServerDirection::FromServer)[0].lengths.total() as f64);
    number("disconnect", sent(Kind::Disconnect, ServerDirection::ToServer)[0].lengths.total() as f64);
    number("fixed_hdr", lengths.fixed_header.into());
    number("rl_bytes", (lengths.fixed_header - 1).into());
    number("topic_len", (lengths.topic - 2).into());
    number("pktid", lengths.id.into());
    number("publish_overhead", overhead as f64);
    number("app_payload", lengths.payload.into());
    number("with_id_overhead", (overhead + IDENTIFIER_LEN) as f64);
    number("ack_bytes_per_publish", per_publish);
    number("total_overhead", overhead as f64 + per_publish);
    number("pure_ack_up", reading.pure_acks[0] as f64);
    number("pure_ack_dn", reading.pure_acks[1] as f64);
    number("eth_bytes", reading.tcp_frame_bytes as f64);
    number("span_10_publish_s", (last_ns - first_ns) as f64 / 1e9);
    verdicts.text(&what("clientid"), &fields.client_id, &row["clientid"]);
    verdicts.text(&what("topic"), publish.topic.as_deref().unwrap_or(""), &row["topic"]);
    let id = String::from_utf8_lossy(&publish.payload_head.as_slice()[..6]).into_owned();
    verdicts.text(&what("id0"), &id, &row["id0"]);
    verdicts.text(&what("multi"), &several(reading), &row["multi"]);
}

/// The identifier before a payload.
fn identifier(packet: &CapturedPacket) -> Option<u64> {
    std::str::from_utf8(packet.payload_head.as_slice().get(..IDENTIFIER_LEN as usize)?).ok()?.parse().ok()
}

/// The messages of a topic as a capture shows them.
#[derive(Default)]
struct Trips {
    /// PUBLISH packets to the broker, repeated ones included.
    publishes: usize,
    /// When the first byte of each message was first sent, and when its relayed copy was whole, ns, by identifier.
    by_id: BTreeMap<u64, (u64, Option<u64>)>,
}

/// A capture may hold messages of an earlier run to other topics.
fn trips(reading: &Reading, topic: &str) -> Trips {
    let relayed = format!("{topic}{RELAYED}");
    let mut trips = Trips::default();
    for Completed { direction, packet, .. } in &reading.packets {
        let is = |topic: &str| packet.topic.as_deref() == Some(topic) && !packet.damaged;
        let Some(id) = identifier(packet) else { continue };
        if *direction == ServerDirection::ToServer && is(topic) {
            trips.publishes += 1;
            trips.by_id.entry(id).or_insert((packet.first.time.as_ns(), None));
        } else if *direction == ServerDirection::FromServer
            && is(&relayed)
            && let Some((_, back)) = trips.by_id.get_mut(&id)
        {
            back.get_or_insert(packet.complete.time.as_ns());
        }
    }
    trips
}

pub fn compare_with_logs(data: &Data) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for row in data.table("reference_pcap_vs_log.csv") {
        let (folder, capture) = row["file"].split_once('/').expect("a folder and a file");
        let qos = capture.trim_end_matches(".pcapng");
        let is_log =
            |name: &&String| name.starts_with(&format!("mqtt-roundtrip-{qos}-")) && name.contains("client1");
        let names = data.files(folder);
        let log = names.iter().find(is_log).expect("the sender's log");
        let messages = match_messages(&logs::events(data, &format!("logs/{folder}/{log}")));
        let reading = read(data, &format!("logs/{}", row["file"]));
        let trips = trips(&reading, &messages.sent[0].topic);
        let (mut captured, mut logged, mut apart, mut send) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for message in &messages.sent {
            let Some(&(sent, back)) = trips.by_id.get(&message.id) else { continue };
            send.push((message.sent.as_ns() as i128 - i128::from(sent)) as f64 / 1e9);
            if let (Some(back), Some(trip)) = (back, message.round_trip()) {
                captured.push((back as i128 - i128::from(sent)) as f64 / 1e9);
                logged.push(trip.as_s_f64());
                apart.push(trip.as_s_f64() - captured[captured.len() - 1]);
            }
        }
        let mut number = |column: &str, ours: f64| {
            let what = format!("{} against its log: {column}", row["file"]);
            verdicts.number_within(&what, Some(ours), &row[column], 2.0 * EPOCH_STEPS_S);
        };
        number("n", captured.len() as f64);
        number("pcap_rtt_mean", captured.iter().sum::<f64>() / captured.len() as f64);
        number("log_rtt_mean", logged.iter().sum::<f64>() / logged.len() as f64);
        number("diff_med", median(&mut apart));
        number("diff_max", apart[apart.len() - 1]);
        number("log_minus_pcap_send_med", median(&mut send));
        number("log_sent", messages.sent.len() as f64);
        number("pcap_pub", trips.publishes as f64);
        number("sent_min", send[0]);
    }
    verdicts
}

/// Sorts, then takes the middle.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    let last = samples.len() - 1;
    (samples[last / 2] + samples[last.div_ceil(2)]) / 2.0
}
