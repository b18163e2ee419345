//! How much a run holds of messages that strangers publish on its topics, when it makes its tables: nothing that grows with them.

use std::path::Path;

use crate::common::{Scratch, plan};
use mqttlab_counting::peak;
use mqttlab_recording::{
    Client, Ending, Finish, HeaderAnalyser, Identified, Layout, OwnPacket, PacketProtocol, Received,
    Recorder, RunFacts, Sent, Sink, Topic, Towards, finalise,
};
use mqttlab_units::Instant;

const MS: u64 = 1_000_000;
/// Messages of the run, one each 10 ms.
const OWN: u32 = 400;

/// One publisher, whose messages are of a size, and one subscriber.
fn layout() -> Layout {
    let client = |name: &str| Client {
        name: name.into(),
        group: name.into(),
        host: 0,
        session: None,
        is_program: false,
    };
    Layout {
        producer: "live".into(),
        hosts: vec!["field".into()],
        clients: vec![client("p"), client("s")],
        topics: vec![Topic { name: "t".into(), receivers: 1, shares: 0, relayed: false }],
        receivers: vec![vec![], vec![1]],
        measurement_end_ns: u64::MAX,
        ..Layout::default()
    }
}

/// A PUBLISH that comes to the subscriber, of the run where it has a number.
fn arrives(sink: &mut Sink, at_ns: u64, bytes: u32, sequence: Option<u32>, start: u64) {
    let at = Instant::from_ns(at_ns);
    let is_told = bytes >= 9;
    let (publisher, identified) = match sequence {
        Some(_) if is_told => (Some(0), Identified::Payload),
        Some(_) => (Some(0), Identified::Order),
        None => (None, Identified::Unknown),
    };
    let row = Received {
        subscriber: 1,
        publisher,
        sequence: sequence.unwrap_or_default(),
        qos: 0,
        dup: false,
        retained: false,
        payload_bytes: bytes,
        received: at,
        identified,
    };
    sink.received(&row);
    sink.own_packet(&packet(1, Towards::Client, at, bytes, sequence.filter(|_| is_told), start), "t");
}

fn packet(
    client: u32,
    towards: Towards,
    at: Instant,
    bytes: u32,
    sequence: Option<u32>,
    start: u64,
) -> OwnPacket {
    OwnPacket {
        client,
        connection: 0,
        towards,
        kind: 3,
        qos: 0,
        dup: false,
        retain: false,
        packet_id: 0,
        reason: None,
        publisher: sequence.map(|_| 0),
        sequence,
        start,
        fixed_header_bytes: 2,
        topic_bytes: 3,
        packet_id_bytes: 0,
        property_bytes: 0,
        payload_bytes: bytes,
        at,
        protocol: PacketProtocol::Mqtt,
        is_message: true,
    }
}

/// The bytes held while the tables are made of a run with messages of a size, one in a hundred of which does not arrive,
/// beside so many of strangers; and how many fates there are of each kind.
fn held(directory: &Path, bytes: u32, strangers: u64) -> (i64, String) {
    let recorder =
        Recorder::create(directory, &plan(0, false, 10, 4).to_string(), &layout()).expect("a recording");
    let mut sink = recorder.sink();
    for sequence in 0..OWN {
        let at = Instant::from_ns(u64::from(sequence) * 10 * MS);
        let start = u64::from(sequence) * 40;
        let row = Sent {
            publisher: 0,
            sequence,
            topic: 0,
            qos: 0,
            retain: false,
            payload_bytes: bytes,
            intended: at,
            sent: at,
            written: Some(at),
            publication: None,
        };
        sink.sent(&row);
        let told = (bytes >= 9).then_some(sequence);
        sink.own_packet(&packet(0, Towards::Broker, at, bytes, told, start), "t");
        if sequence % 100 != 50 {
            arrives(&mut sink, at.as_ns() + MS, bytes, Some(sequence), start);
        }
    }
    // Those of the run's own size come at any time, all others as well.
    for nth in 0..strangers {
        let size = if nth % 2 == 0 { bytes } else { 200 };
        arrives(&mut sink, nth * u64::from(OWN) * 10 * MS / strangers, size, None, (1 << 30) + nth * 20);
    }
    drop(sink);
    let closed = recorder.close();
    let mut fates = String::new();
    let peak = peak(|| {
        let finish = Finish {
            facts: RunFacts::default(),
            ending: Ending::Complete,
            strain: closed.strain,
            rows_missing: false,
            claim: closed.claim,
            analyser: &mut HeaderAnalyser::default(),
            captures: false,
        };
        fates = format!("{:?}", finalise(directory, finish).expect("tables").messages);
        mqttlab_derived::summarise(directory, directory).expect("derived tables");
    });
    (peak, fates)
}

#[test]
fn a_flood_of_foreign_messages_is_counted_and_not_held() {
    // Messages that say in their payload whose they are, and those too small for it.
    for bytes in [20, 4] {
        let scratch = Scratch::new(&format!("flood-memory-{bytes}"));
        let [few, many] = [50_000, 100_000].map(|strangers| {
            let (peak, fates) = held(&scratch.0.join(strangers.to_string()), bytes, strangers);
            let expected = format!(r#"{{"delivered": 396, "foreign": {strangers}, "unknown": 4}}"#);
            assert_eq!(fates, expected, "{strangers} foreign messages beside some of {bytes} B");
            peak
        });
        assert!(many - few < 50_000 * BYTES_MAX, "{few} and {many} bytes, {bytes} B a message");
    }
}

/// Bytes held of each foreign delivery: its instant, where it is as large as a message of the run, as every second is here, and there is
/// room; and what of tables is being written, the packets' mark by ECN (RFC 3168) with it.
const BYTES_MAX: i64 = 27;
