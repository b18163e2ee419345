//! One station's MAC: its queue, its turn, and what it waits for.

use std::collections::VecDeque;

use mqttlab_units::{Dice, Duration, Instant, Seed};

use super::backoff::{Backoff, Carrier};
use super::counters::StationCounters;
use super::receiver::{Reception, Spoilt};
use super::spec::{MacSpec, PhySpec};
use super::timing::{DATA_OVERHEAD_BYTES, FrameKind, Timing};

/// A station.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    pub(crate) carrier: Carrier,
    pub(crate) backoff: Backoff,
    /// What it must hear before this time.
    pub(crate) waiting: Option<AwaitedAnswer>,
    /// What it sends when a short interframe space has passed.
    pub(crate) response: Option<DueResponse>,
    /// When its turn is on the agenda.
    pub(crate) armed: Option<Instant>,
    /// What it is sending.
    pub(crate) air: Air,
    /// The first one is being sent.
    pub(crate) queue: VecDeque<Job>,
    pub(crate) window: u32,
    /// Its radio is to be off whenever it has nothing to do.
    pub(crate) rests: bool,
    /// Its radio is off, by an event.
    pub(crate) off: bool,
    pub(crate) dice: Dice,
    pub(crate) counters: StationCounters,
}

/// A frame that a station is to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) frame: u64,
    pub(crate) to: u32,
    pub(crate) mac_bytes: u32,
    pub(crate) entered: Instant,
    pub(crate) start: Option<Instant>,
    pub(crate) sent: Option<Instant>,
    pub(crate) arrived: Option<Instant>,
    pub(crate) attempts: u32,
    pub(crate) air_bytes: u64,
    /// Failures of short frames: RTS, and data that was not announced.
    pub(crate) short_retries: u32,
    /// Failures of announced data.
    pub(crate) long_retries: u32,
}

/// A station has sent RTS or data, and waits for CTS or ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AwaitedAnswer {
    pub(crate) answer: FrameKind,
    pub(crate) from: u32,
    pub(crate) until: Instant,
}

/// A frame that follows another after a short interframe space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DueResponse {
    pub(crate) kind: FrameKind,
    pub(crate) to: u32,
    /// For a CTS: how long the medium is still needed after it.
    pub(crate) reserved: Duration,
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Air {
    pub(crate) kind: FrameKind,
    pub(crate) to: u32,
    pub(crate) bytes: u32,
    /// How long the medium is still needed after it.
    pub(crate) reserved: Duration,
}

impl Station {
    pub(crate) fn new(phy: &PhySpec, seed: Seed) -> Self {
        Station {
            carrier: Carrier::default(),
            backoff: Backoff::default(),
            waiting: None,
            response: None,
            armed: None,
            air: Air { kind: FrameKind::Data, to: 0, bytes: 0, reserved: Duration::ZERO },
            queue: VecDeque::new(),
            window: phy.cw_min_slots,
            rests: false,
            off: false,
            dice: seed.dice(),
            counters: StationCounters::default(),
        }
    }

    /// Whether nothing is to be said, answered or awaited.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.waiting.is_none() && self.response.is_none()
    }

    /// The medium is busy.
    pub(crate) fn freeze(&mut self, now: Instant, timing: &Timing) {
        self.backoff.freeze(now, !self.queue.is_empty(), &mut self.dice, self.window, timing);
    }

    /// When to put the station's turn on the agenda, if it is not there yet. An entry that comes too early is put
    /// back when it is due.
    pub(crate) fn arm(&mut self, timing: &Timing) -> Option<Instant> {
        if self.queue.is_empty() || self.off {
            return None;
        }
        let expiry = self.backoff.expiry(timing)?;
        if self.armed.is_some_and(|armed| armed <= expiry) {
            return None;
        }
        self.armed = Some(expiry);
        self.armed
    }

    /// The window after another failure (§10.3.3).
    pub(crate) fn widen(&mut self, phy: &PhySpec) {
        self.window = (self.window * 2 + 1).min(phy.cw_max_slots);
    }

    /// Takes note of a frame that it was receiving.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        heard: Reception,
        lost: bool,
        air: &Air,
        for_it: bool,
        timing: &Timing,
    ) {
        match heard {
            Reception::Spoilt(Spoilt::Collision) => self.counters.collisions += 1,
            Reception::Spoilt(Spoilt::Weak) => self.counters.weak += 1,
            Reception::Frame if lost => self.counters.channel_errors += 1,
            Reception::Frame | Reception::Nothing | Reception::Uncertain(_) => {}
        }
        if heard != Reception::Frame || lost {
            // An error is an error to the MAC, whatever its cause: EIFS follows (§10.3.2.3.7).
            self.carrier.spoil();
            return;
        }
        self.carrier.hear();
        if for_it {
            self.counters.received.count(air.kind, air.bytes);
            return;
        }
        self.counters.overheard.count(air.kind, air.bytes);
        match air.kind {
            // An RTS may fail: its reservation is void where nothing follows (§10.3.2.4).
            FrameKind::Rts => self.carrier.request(now, now + air.reserved, timing),
            _ => self.carrier.reserve(now, now + air.reserved),
        }
    }

    /// Whether it waits for this.
    pub(crate) fn expects(&self, kind: FrameKind, from: u32) -> bool {
        self.waiting.is_some_and(|waiting| waiting.answer == kind && waiting.from == from)
    }
}

impl Job {
    pub(crate) fn new(now: Instant, frame: u64, to: u32, packet_bytes: u64) -> Self {
        Job {
            frame,
            to,
            mac_bytes: packet_bytes as u32 + DATA_OVERHEAD_BYTES,
            entered: now,
            start: None,
            sent: None,
            arrived: None,
            attempts: 0,
            air_bytes: 0,
            short_retries: 0,
            long_retries: 0,
        }
    }

    /// Whether it is announced by RTS.
    pub(crate) fn is_announced(&self, mac: &MacSpec) -> bool {
        mac.rts_threshold_bytes.is_some_and(|threshold| self.mac_bytes > threshold)
    }

    /// An attempt failed; whether it was the last one.
    pub(crate) fn fail(&mut self, answer: FrameKind, mac: &MacSpec) -> bool {
        // A lost CTS is a short retry of the RTS, a lost ACK of announced data a long one (§10.3.4.4).
        if answer == FrameKind::Ack && self.is_announced(mac) {
            self.long_retries += 1;
        } else {
            self.short_retries += 1;
        }
        self.short_retries >= mac.short_retry_limit || self.long_retries >= mac.long_retry_limit
    }
}
