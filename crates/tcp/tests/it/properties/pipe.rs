//! Two endpoints and a bad network between them, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use mqttlab_tcp::{ConnectionState, Endpoint, Profile, Role, Segment, Seq, TcpEvent, TcpOutput};
use mqttlab_units::{BitRate, Bytes, Dice, Duration, Instant, Ratio, Seed};

/// What the network does to segments, the same in both directions.
#[derive(Clone, Debug)]
pub struct Path {
    pub delay: Duration,
    pub rate: BitRate,
    pub loss: Ratio,
    pub duplication: Ratio,
    /// Up to this much more delay for each segment by itself, so that they overtake each other.
    pub jitter: Duration,
    /// Segments that may wait for the link.
    pub queue: usize,
}

/// What the applications do.
#[derive(Clone, Debug)]
pub struct Load {
    /// Bytes that each side sends; then it shuts down.
    pub bytes: [u64; 2],
    /// Size of a write.
    pub write: u64,
    /// Pause of the reader between reads of at most `read` bytes; zero reads everything at once.
    pub read: u64,
    pub read_pause: Duration,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Arrive(usize),
    Tick,
    Read,
}

pub struct Run {
    pub ends: [Endpoint; 2],
    pub now: Instant,
    pub read: [u64; 2],
    pub finished_at: Option<Instant>,
    pub segments_lost: u64,
    pub failed: bool,
    pub trace: bool,
    path: Path,
    load: Load,
    written: [u64; 2],
    readable: [u64; 2],
    peer_closed: [bool; 2],
    shut: [bool; 2],
    reading: [bool; 2],
    link_free: [Instant; 2],
    in_queue: [Vec<Instant>; 2],
    payload_max: [u16; 2],
    agenda: BinaryHeap<Reverse<(Instant, u64, usize, Happening)>>,
    in_transit: Vec<Option<Segment>>,
    number: u64,
    dice: Dice,
}

impl Run {
    pub fn new(profiles: [Profile; 2], path: Path, load: Load, seed: u64) -> Run {
        let mut dice = Seed(seed).derive("pipe").dice();
        let mut initial = || Seq(dice.bits() as u32);
        let [a, b] = profiles.map(Arc::new);
        let ends = [
            Endpoint::with_initial_sequence(a, Role::Active, initial()),
            Endpoint::with_initial_sequence(b, Role::Passive, initial()),
        ];
        Run {
            ends,
            now: Instant::ZERO,
            read: [0; 2],
            finished_at: None,
            segments_lost: 0,
            failed: false,
            trace: false,
            path,
            load,
            written: [0; 2],
            readable: [0; 2],
            peer_closed: [false; 2],
            shut: [false; 2],
            reading: [false; 2],
            link_free: [Instant::ZERO; 2],
            in_queue: [Vec::new(), Vec::new()],
            payload_max: [0; 2],
            agenda: BinaryHeap::new(),
            in_transit: Vec::new(),
            number: 0,
            dice,
        }
    }

    /// Runs until nothing is left to happen, or until `end`.
    pub fn until(&mut self, end: Instant) {
        self.ends[0].open(self.now);
        self.drain(0);
        while let Some(Reverse((at, _, side, what))) = self.agenda.pop() {
            if at > end {
                break;
            }
            assert!(at >= self.now, "time ran back");
            self.now = at;
            match what {
                Happening::Arrive(place) => {
                    let segment = self.in_transit[place].take().expect("a segment arrives once");
                    self.ends[side].receive(at, &segment);
                }
                // Deadlines move; only the present one counts.
                Happening::Tick if self.ends[side].next_deadline().is_some_and(|due| due <= at) => {
                    self.ends[side].tick(at);
                }
                Happening::Tick => continue,
                Happening::Read => self.take(side),
            }
            self.drain(side);
        }
    }

    fn drain(&mut self, side: usize) {
        for round in 0.. {
            assert!(round < 100_000, "the drain does not end");
            let o = self.ends[side].poll();
            if let (true, Some(o)) = (self.trace, &o) {
                match o {
                    TcpOutput::Transmit(s) => println!("{} {side} > {s}", self.now),
                    o => println!("{} {side} {o:?}", self.now),
                }
            }
            match o {
                Some(TcpOutput::Transmit(segment)) => self.transmit(side, segment),
                Some(TcpOutput::Event(event)) => self.tell(side, event),
                None => break,
            }
        }
        self.check(side);
        if let Some(due) = self.ends[side].next_deadline() {
            assert!(due >= self.now, "a deadline lies in the past: {due} at {}", self.now);
            self.put(due, side, Happening::Tick);
        }
    }

    fn check(&mut self, side: usize) {
        let (info, peer) = (self.ends[side].info(), &self.ends[1 - side]);
        assert!(info.congestion_window >= 1);
        assert!(info.rto >= Duration::from_ms(1));
        assert!(info.unacknowledged_bytes <= self.written[side] + 2);
        assert!(peer.readable() + self.read[1 - side] <= self.written[side], "bytes out of nothing");
    }

    fn tell(&mut self, side: usize, event: TcpEvent) {
        match event {
            TcpEvent::Connected | TcpEvent::Writable(_) => self.write(side),
            TcpEvent::Readable(offset) => {
                assert!(offset > self.readable[side], "a stream ran back");
                self.readable[side] = offset;
                if self.load.read_pause.is_zero() {
                    self.take(side);
                } else if !std::mem::replace(&mut self.reading[side], true) {
                    self.put(self.now + self.load.read_pause, side, Happening::Read);
                }
            }
            TcpEvent::Acknowledged(offset) => assert!(offset <= self.written[side]),
            TcpEvent::PeerClosed => self.peer_closed[side] = true,
            TcpEvent::Closed => self.finished_at = Some(self.now),
            // The acknowledgement of the last FIN was lost so often that the peer's TIME-WAIT is over.
            TcpEvent::Refused | TcpEvent::Reset | TcpEvent::TimedOut
                if self.peer_closed[side] && self.shut[side] => {}
            TcpEvent::Refused | TcpEvent::Reset | TcpEvent::TimedOut => self.failed = true,
        }
    }

    fn write(&mut self, side: usize) {
        while self.written[side] < self.load.bytes[side] {
            let wanted = self.load.write.min(self.load.bytes[side] - self.written[side]);
            let accepted = self.ends[side].write(self.now, wanted);
            self.written[side] += accepted;
            if accepted < wanted {
                return;
            }
        }
        if !std::mem::replace(&mut self.shut[side], true) {
            self.ends[side].shutdown(self.now);
        }
    }

    fn take(&mut self, side: usize) {
        let most = if self.load.read_pause.is_zero() { u64::MAX } else { self.load.read };
        self.read[side] += self.ends[side].read(self.now, most);
        self.reading[side] = self.ends[side].readable() > 0 && !self.load.read_pause.is_zero();
        if self.reading[side] {
            self.put(self.now + self.load.read_pause, side, Happening::Read);
        }
    }

    fn transmit(&mut self, side: usize, segment: Segment) {
        self.payload_max[side] = self.payload_max[side].max(segment.length);
        let now = self.now;
        self.in_queue[side].retain(|left| *left > now);
        if self.dice.chance(self.path.loss) || self.in_queue[side].len() >= self.path.queue {
            self.segments_lost += 1;
            return;
        }
        let bytes = Bytes(u64::from(segment.length + segment.header_bytes() + 20));
        let left = self.link_free[side].max(now) + self.path.rate.serialization_time(bytes);
        self.link_free[side] = left;
        self.in_queue[side].push(left);
        let copies = 1 + u64::from(self.dice.chance(self.path.duplication));
        for _ in 0..copies {
            let extra = Duration::from_ns((self.path.jitter.as_ns() as f64 * self.dice.uniform()) as u64);
            self.in_transit.push(Some(segment));
            let place = self.in_transit.len() - 1;
            self.put(left + self.path.delay + extra, 1 - side, Happening::Arrive(place));
        }
    }

    fn put(&mut self, at: Instant, side: usize, what: Happening) {
        self.number += 1;
        self.agenda.push(Reverse((at, self.number, side, what)));
    }

    /// What must hold once nothing is left to happen.
    pub fn assert_complete(&self) {
        assert!(!self.failed, "the connection failed at {}", self.now);
        for side in 0..2 {
            assert_eq!(self.read[1 - side], self.load.bytes[side], "bytes sent by side {side} and read");
            assert!(self.peer_closed[side], "side {side} has not seen the end");
            assert_eq!(self.ends[side].state(), ConnectionState::Closed);
        }
    }
}
