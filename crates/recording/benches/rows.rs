//! What a row costs: `cargo bench -p mqttlab-recording`.
//!
//! Times are the processor time of this thread, or of the whole process where the writer's thread takes part, so
//! that other work on the machine does not count.

use std::fs;
use std::path::PathBuf;

use mqttlab_recording::{
    Acknowledged, Client, DirectRecorder, Direction, Ending, Finish, Frame, FrameFate, HeaderAnalyser,
    Identified, Layout, PacketRow, Received, Recorder, RunFacts, Sent, Topic, finalise,
};
use mqttlab_units::{Dice, Instant, Seed};

fn main() {
    // Cargo adds arguments of its own, which name nothing here.
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|named| named == name);
    let benches: [(&str, fn()); 3] = [
        ("packets", packets_of_a_simulation),
        ("messages", messages_of_a_simulation),
        ("frames", frames_of_a_live_run),
    ];
    benches.iter().filter(|(name, _)| wanted(name)).for_each(|(_, bench)| bench());
}

fn packets_of_a_simulation() {
    let dir = scratch("packets");
    let mut recorder = DirectRecorder::create(&dir, "{}", &layout()).unwrap();
    let mut traffic = Traffic::new();
    let mut sum = 0;
    let only_made = cpu(|| (0..PACKETS).for_each(|_| sum ^= traffic.next().seq.unwrap_or(1)));
    let mut traffic = Traffic::new();
    let pushed = cpu(|| (0..PACKETS).for_each(|_| recorder.packet(&traffic.next()).unwrap()));
    let finished = cpu(|| drop(recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap()));
    let size = fs::metadata(dir.join("packets.parquet")).unwrap().len();
    std::hint::black_box(sum);
    let row = (pushed - only_made + finished) / f64::from(PACKETS);
    println!("packet, simulated: {row:.1} ns and {:.1} B a row, all in", size as f64 / f64::from(PACKETS));
    fs::remove_dir_all(dir).unwrap();
}

fn messages_of_a_simulation() {
    let dir = scratch("messages");
    let mut recorder = DirectRecorder::create(&dir, "{}", &layout()).unwrap();
    let pushed = cpu(|| {
        for sequence in 0..MESSAGES {
            let at = u64::from(sequence) * 10_000;
            recorder.sent(&sent(sequence, at)).unwrap();
            recorder.received(&received(sequence, at + 5_000_000)).unwrap();
            let at = Instant::from_ns(at + 6_000_000);
            recorder
                .acknowledged(&Acknowledged { publisher: sequence % 100, sequence: sequence / 100, at })
                .unwrap();
        }
    });
    let finished = cpu(|| drop(recorder.finish(None, &RunFacts::default(), &Ending::Complete).unwrap()));
    let each = |ns: f64| ns / f64::from(MESSAGES);
    println!(
        "message, simulated: {:.1} ns pushed (three rows), {:.1} ns joined",
        each(pushed),
        each(finished)
    );
    fs::remove_dir_all(dir).unwrap();
}

fn frames_of_a_live_run() {
    let dir = scratch("frames");
    let recorder = Recorder::create(&dir, "{}", &layout()).unwrap();
    let mut sink = recorder.sink();
    let bytes = [0x45; 150];
    let pushed = cpu(|| (0..FRAMES).for_each(|number| sink.frame(&frame(number), &bytes)));
    drop(sink);
    let strain = recorder.close().strain;
    let mut analyser = HeaderAnalyser::default();
    let finished = cpu(|| {
        let (facts, ending) = (RunFacts::default(), Ending::Complete);
        let finish = Finish {
            facts,
            ending,
            strain,
            rows_missing: false,
            claim: None,
            analyser: &mut analyser,
            captures: false,
        };
        finalise(&dir, finish).unwrap();
    });
    let each = |ns: f64| ns / f64::from(FRAMES);
    println!(
        "frame of 150 B, live: {:.1} ns pushed, {:.1} ns converted; {strain:?}",
        each(pushed),
        each(finished)
    );
    fs::remove_dir_all(dir).unwrap();
}

/// Segments as a simulator sees them: many connections, in turn a PUBLISH and its acknowledgement.
struct Traffic {
    dice: Dice,
    now_ns: u64,
    frame: u64,
    seq: Vec<u32>,
}

impl Traffic {
    fn new() -> Traffic {
        Traffic { dice: Seed(1).dice(), now_ns: 0, frame: 0, seq: vec![0; 200] }
    }

    fn next(&mut self) -> PacketRow<'static> {
        let draw = self.dice.bits();
        self.now_ns += draw % 20_000;
        self.frame += 1;
        let connection = (draw >> 32) % 100;
        let data = self.frame.is_multiple_of(2);
        let payload_bytes = if data { 164 } else { 0 };
        let seq = self.seq[connection as usize];
        self.seq[connection as usize] += payload_bytes;
        PacketRow {
            link: connection as u16 % 4,
            direction: if data { Direction::Up } else { Direction::Down },
            hop: 0,
            hops: 1,
            frame: self.frame,
            from_host: if data { connection as u16 } else { 0 },
            to_host: if data { 0 } else { connection as u16 },
            entered_ns: self.now_ns,
            start_ns: Some(self.now_ns + draw % 3 * 7_000),
            sent_ns: Some(self.now_ns + draw % 3 * 7_000 + 16_000),
            delivered_ns: Some(self.now_ns + draw % 3 * 7_000 + 1_016_000),
            fate: FrameFate::Delivered,
            cause: None,
            frame_bytes: payload_bytes + 66,
            ip_bytes: payload_bytes + 52,
            protocol: 6,
            source_port: Some(if data { 40_000 + connection as u16 } else { 1883 }),
            destination_port: Some(if data { 1883 } else { 40_000 + connection as u16 }),
            connection: Some(connection as u32),
            seq: Some(seq),
            ack: Some(seq.wrapping_add(17)),
            flags: Some(if data { 24 } else { 16 }),
            window: Some(502),
            payload_bytes,
            tsval: Some((self.now_ns / 1_000_000) as u32),
            tsecr: Some((self.now_ns / 1_000_000) as u32 - 4.min((self.now_ns / 1_000_000) as u32)),
            sack: None,
            stream_offset: data.then_some(u64::from(seq)),
            mqtt: data.then_some("PUBLISH"),
            marks: None,
            ack_rtt_ns: None,
            repetition: None,
            ecn: None,
        }
    }
}

fn sent(sequence: u32, at_ns: u64) -> Sent {
    Sent {
        publisher: sequence % 100,
        sequence: sequence / 100,
        topic: 0,
        qos: 1,
        retain: false,
        payload_bytes: 100,
        intended: Instant::from_ns(at_ns),
        sent: Instant::from_ns(at_ns + 50),
        written: Some(Instant::from_ns(at_ns + 100)),
        publication: None,
    }
}

fn received(sequence: u32, at_ns: u64) -> Received {
    Received {
        subscriber: 100,
        publisher: Some(sequence % 100),
        sequence: sequence / 100,
        qos: 1,
        dup: false,
        retained: false,
        payload_bytes: 100,
        received: Instant::from_ns(at_ns),
        identified: Identified::Payload,
    }
}

fn frame(number: u32) -> Frame {
    let at = |offset: u64| Instant::from_ns(u64::from(number) * 10_000 + offset);
    Frame {
        link: 0,
        direction: Direction::Up,
        hop: 0,
        hops: 1,
        frame: u64::from(number),
        from_host: 1,
        to_host: 0,
        frame_bytes: 150,
        entered: at(0),
        start: Some(at(0)),
        sent: Some(at(1_000)),
        delivered: Some(at(1_001_000)),
        fate: FrameFate::Delivered,
        cause: None,
        repetition: None,
    }
}

fn layout() -> Layout {
    let client = |number: u32| Client {
        name: format!("c{number}"),
        group: "g".into(),
        host: 0,
        session: None,
        is_program: false,
    };
    Layout {
        clients: (0..101).map(client).collect(),
        topics: vec![Topic { name: "t".into(), receivers: 0, shares: 0, relayed: false }],
        receivers: vec![vec![100]],
        measurement_end_ns: u64::MAX,
        ..Layout::default()
    }
}

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("mqttlab-bench-{}-{name}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Nanoseconds of processor time that `work` took this thread.
fn cpu(work: impl FnOnce()) -> f64 {
    let ns = || {
        let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        stat.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let before = ns();
    work();
    ns() - before
}

const PACKETS: u32 = 2_000_000;
const MESSAGES: u32 = 1_000_000;
const FRAMES: u32 = 1_000_000;
