//! Memory does not grow with a capture's length: what is held at once is as much for ten times the frames. And a message
//! costs few calls of the allocator.

use std::io::{self, Read};

use mqttlab_capture::mqtt::Kind;
use mqttlab_capture::{Analyser, AnalyserSettings, CaptureReader, FrameWitness, Marks};
use mqttlab_counting::{calls, peak};
use mqttlab_recording::{Direction, Frame, FrameAnalyser, FrameFate};
use mqttlab_units::{Duration, Instant};

/// A client that publishes at QoS 1, a message each millisecond; some are sent again.
struct Conversation {
    message: u32,
    messages: u32,
    waiting: Vec<Sent>,
}

/// An IP packet that came to the wire.
struct Sent {
    at: Instant,
    up: bool,
    bytes: Vec<u8>,
}

/// A packet's size in the client's stream, and of its acknowledgement in the broker's.
const PUBLISH: u32 = 60;
const PUBACK: u32 = 4;
const SYN: u8 = 2;
const ACK: u8 = 16;

impl Conversation {
    fn new(messages: u32) -> Self {
        Conversation { message: 0, messages, waiting: Vec::new() }
    }

    /// The segments of a message: sometimes twice, sometimes behind those of the next one.
    fn publish(&mut self) {
        let message = self.message;
        let at = Instant::ZERO + Duration::from_ms(u64::from(message));
        if message == 0 {
            self.push(at, true, SYN, (0, 0), &[]);
            self.push(at, false, SYN | ACK, (0, 1), &[]);
        }
        let acked = 1 + message * PUBACK;
        let send = |this: &mut Self, message: u32| {
            this.push(at, true, ACK, (1 + message * PUBLISH, acked), &publish(message as u16));
        };
        // One in fifty is lost before the capture and sent again behind the next one; one is sent twice.
        if message % 50 != 7 {
            send(self, message);
        }
        match message % 50 {
            8 => send(self, message - 1),
            20 => send(self, message),
            _ => {}
        }
        let puback = [0x40, 2, (message >> 8) as u8, message as u8];
        self.push(at + Duration::from_us(700), false, ACK, (acked, 1 + (message + 1) * PUBLISH), &puback);
        self.message += 1;
    }

    fn push(&mut self, at: Instant, up: bool, flags: u8, numbers: (u32, u32), payload: &[u8]) {
        self.waiting.push(Sent { at, up, bytes: packet(up, flags, numbers, payload) });
    }
}

impl Iterator for Conversation {
    type Item = Sent;

    fn next(&mut self) -> Option<Sent> {
        if self.waiting.is_empty() && self.message < self.messages {
            self.publish();
            self.waiting.reverse();
        }
        self.waiting.pop()
    }
}

fn publish(id: u16) -> Vec<u8> {
    let mut bytes = vec![0x32, PUBLISH as u8 - 2, 0, 4];
    bytes.extend(b"a/bc");
    bytes.extend(id.to_be_bytes());
    bytes.resize(PUBLISH as usize, b'x');
    bytes
}

/// An IP packet with a TCP segment.
fn packet(up: bool, flags: u8, (seq, ack): (u32, u32), payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend((40 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let (source, destination) = if up { ((1, 40_000), (2, 1883)) } else { ((2, 1883), (1, 40_000)) };
    for (host, _) in [source, destination] {
        bytes.extend([10, 0, 0, host]);
    }
    for (_, port) in [source, destination] {
        bytes.extend(u16::to_be_bytes(port));
    }
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([5 << 4, flags, 1, 0, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

/// The conversation as a pcap file that nobody ever holds whole.
struct Capture {
    frames: Conversation,
    ready: Vec<u8>,
    taken: usize,
}

impl Capture {
    fn new(messages: u32) -> Self {
        // Nanoseconds, version 2.4, no limit to a frame's size, raw IP.
        let header = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 0xffff, 101];
        let ready = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        Capture { frames: Conversation::new(messages), ready, taken: 0 }
    }
}

impl Read for Capture {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ready.len() {
            let Some(sent) = self.frames.next() else { return Ok(0) };
            self.ready.clear();
            self.taken = 0;
            let ns = sent.at.as_ns();
            let size = sent.bytes.len() as u32;
            for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, size, size] {
                self.ready.extend(word.to_le_bytes());
            }
            self.ready.extend(&sent.bytes);
        }
        let left = &self.ready[self.taken..];
        let size = left.len().min(out.len());
        out[..size].copy_from_slice(&left[..size]);
        self.taken += size;
        Ok(size)
    }
}

/// Reads a capture; how many messages it held.
fn analyse(messages: u32) -> u64 {
    let mut reader = CaptureReader::new(Capture::new(messages)).expect("a capture");
    let mut analyser = Analyser::new(AnalyserSettings::default());
    while let Some(frame) = reader.next_frame().expect("a frame") {
        analyser.frame(&frame);
    }
    let analysis = analyser.finish();
    assert!(analysis.total.marked(Marks::RETRANSMISSION) > 0);
    assert!(analysis.total.holes > 0);
    analysis.total.packets_of(Kind::Publish)
}

/// Witnesses the conversation over a link of 20 ms; how many control packets were complete.
fn witness(messages: u32) -> u64 {
    let mut witness = FrameWitness::new(vec![1883]);
    let mut complete = 0;
    for (number, sent) in Conversation::new(messages).enumerate() {
        let frame = Frame {
            link: u16::from(!sent.up),
            direction: if sent.up { Direction::Up } else { Direction::Down },
            hop: 0,
            hops: 1,
            frame: number as u64,
            from_host: u16::from(sent.up),
            to_host: u16::from(!sent.up),
            frame_bytes: sent.bytes.len() as u32,
            entered: sent.at,
            start: Some(sent.at),
            sent: Some(sent.at),
            delivered: Some(sent.at + Duration::from_ms(20)),
            fate: FrameFate::Delivered,
            cause: None,
            repetition: None,
        };
        witness.frame(&frame, &sent.bytes);
        witness.control_packets(false, &mut |row| complete += u64::from(row.complete_ns.is_some()));
    }
    witness.control_packets(true, &mut |row| complete += u64::from(row.complete_ns.is_some()));
    complete
}

/// Enough for every distribution to have begun to forget single samples.
const MESSAGES: u32 = 10_000;

#[test]
fn the_analysis_of_ten_times_the_frames_holds_no_more() {
    let mut messages = 0;
    let once = peak(|| messages = analyse(MESSAGES));
    assert_eq!(messages, u64::from(MESSAGES));
    let tenfold = peak(|| messages = analyse(10 * MESSAGES));
    assert_eq!(messages, u64::from(10 * MESSAGES));
    println!("{once} B held at most, {tenfold} B for ten times the frames");
    assert!(tenfold * 10 <= once * 11, "{once} B, but {tenfold} B for ten times the frames");
}

#[test]
fn the_witness_of_ten_times_the_frames_holds_no_more() {
    let mut packets = 0;
    let once = peak(|| packets = witness(MESSAGES));
    assert_eq!(packets, 2 * u64::from(MESSAGES));
    let tenfold = peak(|| packets = witness(10 * MESSAGES));
    assert_eq!(packets, 20 * u64::from(MESSAGES));
    println!("{once} B held at most, {tenfold} B for ten times the frames");
    assert!(tenfold * 10 <= once * 11, "{once} B, but {tenfold} B for ten times the frames");
}

/// Calls a message that `work` makes beyond those that make its frames.
fn calls_a_message(work: impl Fn(u32) -> u64) -> f64 {
    per_message(|messages| {
        work(messages);
    }) - per_message(|messages| Conversation::new(messages).for_each(drop))
}

/// What a message more costs, in calls: what is paid once falls out of the difference.
fn per_message(work: impl Fn(u32)) -> f64 {
    let [once, twice] = [MESSAGES, 2 * MESSAGES].map(|messages| {
        let before = calls();
        work(messages);
        calls() - before
    });
    (twice - once) as f64 / f64::from(MESSAGES)
}

#[test]
fn a_message_costs_no_more_calls_of_the_allocator_than_it_did() {
    let found = [calls_a_message(analyse), calls_a_message(witness)];
    let within = found.iter().zip(CALLS_MAX).all(|(calls, most)| *calls <= most);
    assert!(
        within,
        "{found:.3?} calls a message to analyse a capture and to witness frames, {CALLS_MAX:?} allowed"
    );
}

/// What was measured, and a quarter more: of each message two packets, a topic, and sometimes a retransmission.
const CALLS_MAX: [f64; 2] = [6.6, 6.6];
