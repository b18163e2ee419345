//! What the tests of recordings share: scratch directories, a small cast, and tables as text.
#![allow(dead_code)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use expect_test::Expect;
use mqttlab_recording::{
    Acknowledged, Cause, Client, DirectRecorder, Direction, Ending, Event, EventKind, Finish, Frame,
    FrameFate, HeaderAnalyser, Identified, Layout, Received, RunFacts, Sent, Session, Sink, Strain, Summary,
    Topic, Unsent, finalise,
};
use mqttlab_units::{Duration, Instant};
use parquet::file::reader::{FileReader, SerializedFileReader};

/// A directory that is gone when the test is.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("mqttlab-recording-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Two publishers, two subscribers to the first of two topics, nobody to the second.
pub fn layout() -> Layout {
    let client = |name: &str, group: &str, host| Client {
        name: name.into(),
        group: group.into(),
        host,
        session: None,
        is_program: false,
    };
    Layout {
        producer: "live".into(),
        seed: 7,
        machine: serde_json::json!({"kernel": "none"}),
        started_unix_ns: 1_735_689_600_000_000_000,
        hosts: vec!["broker".into(), "field".into()],
        links: vec!["satcom".into()],
        clients: vec![
            client("pub-0", "sensors", 1),
            client("pub-1", "sensors", 1),
            client("sub-0", "viewers", 0),
            client("sub-1", "viewers", 0),
        ],
        topics: vec![
            Topic { name: "a/b".into(), receivers: 1, shares: 0, relayed: false },
            Topic { name: "nobody".into(), receivers: 0, shares: 0, relayed: false },
        ],
        receivers: vec![vec![], vec![3, 2, 3]],
        warm_up_end_ns: 1_000,
        measurement_end_ns: 10_000,
        late_after_ns: [("sensors".into(), 500)].into(),
        ..Layout::default()
    }
}

pub fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

pub fn sent(publisher: u32, sequence: u32, topic: u32, intended_ns: u64) -> Sent {
    Sent {
        publisher,
        sequence,
        topic,
        qos: 1,
        retain: false,
        payload_bytes: 20,
        intended: at(intended_ns),
        sent: at(intended_ns + 1),
        written: Some(at(intended_ns + 2)),
        publication: None,
    }
}

pub fn received(subscriber: u32, publisher: Option<u32>, sequence: u32, ns: u64) -> Received {
    Received {
        subscriber,
        publisher,
        sequence,
        qos: 1,
        dup: false,
        retained: false,
        payload_bytes: 20,
        received: at(ns),
        identified: if publisher.is_some() { Identified::Payload } else { Identified::Unknown },
    }
}

pub fn unsent(publisher: u32, sequence: u32, intended_ns: u64) -> Unsent {
    Unsent {
        publisher,
        sequence,
        topic: 0,
        qos: 1,
        payload_bytes: 20,
        intended: at(intended_ns),
        publication: None,
    }
}

pub fn acknowledged(publisher: u32, sequence: u32, ns: u64) -> Acknowledged {
    Acknowledged { publisher, sequence, at: at(ns) }
}

pub fn frame(number: u64, entered_ns: u64, direction: Direction) -> Frame {
    Frame {
        link: 0,
        direction,
        hop: 0,
        hops: 1,
        frame: number,
        from_host: 1,
        to_host: 0,
        frame_bytes: 60,
        entered: at(entered_ns),
        start: Some(at(entered_ns)),
        sent: Some(at(entered_ns + 10)),
        delivered: Some(at(entered_ns + 100)),
        fate: FrameFate::Delivered,
        cause: None,
        repetition: None,
    }
}

/// A TCP segment over IPv4, from a client (`up`) or from a broker at port 1883.
pub fn segment(up: bool, seq: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let total = 40 + payload.len() as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let (client, broker) = ([10, 0, 0, 2], [10, 0, 0, 1]);
    bytes.extend(if up { client } else { broker });
    bytes.extend(if up { broker } else { client });
    let checksum = internet_checksum(&bytes);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    let (from, to) = if up { (40_000_u16, 1883_u16) } else { (1883, 40_000) };
    bytes.extend(from.to_be_bytes());
    bytes.extend(to.to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(77_u32.to_be_bytes());
    bytes.extend([0x50, flags, 0x01, 0xf6, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

fn internet_checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// A run in which everything happens that a message can meet.
pub fn play(sink: &mut Sink) {
    // Warm-up; delivered to both, the first subscriber hears it twice.
    sink.sent(&sent(0, 0, 0, 100));
    sink.received(&received(2, Some(0), 0, 200));
    sink.received(&received(3, Some(0), 0, 210));
    sink.received(&Received { dup: true, ..received(2, Some(0), 0, 250) });
    sink.acknowledged(&acknowledged(0, 0, 151));
    // Measurement: 1 is overtaken by 2 and late at one subscriber, lost at the other.
    sink.sent(&Sent { written: None, ..sent(0, 1, 0, 2_000) });
    sink.sent(&sent(0, 1, 0, 2_000));
    sink.sent(&sent(0, 2, 0, 2_100));
    sink.received(&received(2, Some(0), 2, 2_200));
    sink.received(&received(2, Some(0), 1, 2_600));
    sink.received(&received(3, Some(0), 2, 2_300));
    sink.unsent(&unsent(0, 3, 2_200));
    sink.sent(&sent(1, 0, 1, 3_000));
    sink.received(&received(3, None, 0, 12_000));
    sink.sent(&sent(1, 1, 0, 11_000));
    let event = |ns, kind, client, took| Event { at: at(ns), kind, client, took };
    sink.event(&event(10, EventKind::Connack, Some(0), Some(Duration::from_ns(9))), "");
    sink.event(&event(5_000, EventKind::Disconnect, Some(1), None), "keep-alive");
    sink.event(&event(6_000, EventKind::Reconnect, Some(1), None), "");
    sink.frame(&frame(0, 50, Direction::Up), &segment(true, 999, 2, &[]));
    sink.frame(&frame(1, 60, Direction::Down), &segment(false, 5, 18, &[]));
    let lost = FrameFate::Dropped;
    let lost =
        Frame { delivered: None, fate: lost, cause: Some(Cause::QueueFull), ..frame(2, 70, Direction::Up) };
    sink.frame(&lost, &segment(true, 1_000, 24, b"mqtt"));
    sink.frame(&frame(3, 65, Direction::Up), &segment(true, 1_004, 24, b"more"));
}

/// Finishes a live run's recording as complete.
pub fn finish(dir: &Path, captures: bool) -> Summary {
    let mut analyser = HeaderAnalyser::default();
    let (facts, ending) = (RunFacts::default(), Ending::Complete);
    finalise(
        dir,
        Finish {
            facts,
            ending,
            strain: Strain::default(),
            rows_missing: false,
            claim: None,
            analyser: &mut analyser,
            captures,
        },
    )
    .unwrap()
}

/// The chosen columns of a table, a row a line.
pub fn table(dir: &Path, name: &str, columns: &[&str]) -> String {
    let file = File::open(dir.join(format!("{name}.parquet"))).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let mut text = columns.join(" ") + "\n";
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let cells: Vec<String> = columns
            .iter()
            .map(|&column| {
                let cell = row.get_column_iter().find(|(name, _)| *name == column);
                cell.unwrap_or_else(|| panic!("{name} has no column {column}")).1.to_string().replace('"', "")
            })
            .collect();
        text += &(cells.join(" ") + "\n");
    }
    text
}

pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A recording to which `push` adds rows, with what its `messages` table says.
pub fn check_fates(layout: &Layout, push: impl FnOnce(&mut DirectRecorder), expected: &Expect) {
    let scratch = Scratch::new();
    let mut recorder = DirectRecorder::create(scratch.path(), "{}", layout).unwrap();
    push(&mut recorder);
    expected.assert_eq(&fates_of(recorder, scratch.path()));
}

pub const FATE_COLUMNS: [&str; 5] = ["publisher", "sequence", "subscriber", "fate", "cause"];

/// As in a live run: the sessions of all clients are known, and end with their connections.
pub fn sessions(expiry_ns: Option<u64>) -> Layout {
    let mut layout = layout();
    layout.clients.iter_mut().for_each(|client| client.session = Some(Session { expiry_ns }));
    layout.receivers[1] = vec![2];
    layout
}

pub fn event(recorder: &mut DirectRecorder, ns: u64, kind: EventKind, client: u32, detail: &str) {
    recorder.event(&Event { at: at(ns), kind, client: Some(client), took: None }, detail).unwrap();
}

/// A client connects and subscribes.
pub fn join(recorder: &mut DirectRecorder, ns: u64, client: u32) {
    event(recorder, ns, EventKind::Connack, client, "");
    event(recorder, ns + 1, EventKind::Subscribe, client, "");
}

pub fn at_qos(qos: u8, row: Sent) -> Sent {
    Sent { qos, ..row }
}

/// What the `messages` table says of a recording that is ended here.
pub fn fates_of(recorder: DirectRecorder, dir: &Path) -> String {
    recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap();
    table(dir, "messages", &FATE_COLUMNS)
}
