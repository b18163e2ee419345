//! Opening a connection (RFC 9293 §3.5) and what both sides agree on in their SYNs.

use mqttlab_units::{Duration, Instant};

use crate::congestion::Congestion;
use crate::endpoint::{Endpoint, State};
use crate::segment::{Flags, Segment, TIMESTAMPS_BYTES, Timestamps};
use crate::sequence::Seq;
use crate::timers::Purpose;

/// What the SYNs agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// Largest segment to send, payload and options; 0 before the peer's SYN.
    pub mss: u16,
    /// Timestamps in every segment.
    pub timestamps: bool,
    /// The peer's latest timestamp, to be echoed (RFC 7323 `TS.Recent`).
    pub recent: u32,
    /// Both know SACK.
    pub sack: bool,
    /// Shift of windows that come, and of windows that go.
    pub peer_scale: u8,
    pub own_scale: u8,
    /// The peer's initial sequence number.
    pub peer_initial: Seq,
}

/// How far the SYN has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Handshake {
    /// The SYN must be sent (again).
    pub due: bool,
    /// How often it was repeated.
    pub repeated: u32,
    /// When it was first sent.
    pub first_at: Instant,
}

impl Endpoint {
    /// Sends the SYN. Nothing happens unless the endpoint is active and closed.
    pub fn open(&mut self, now: Instant) {
        self.advance_clock(now);
        if self.state == State::Closed && self.tx.next == 0 {
            self.state = State::SynSent;
            self.begin_handshake();
        }
    }

    /// LISTEN (RFC 9293 §3.10.7.2).
    pub(crate) fn receive_in_listen(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if segment.flags.has(Flags::ACK) {
            self.refuse(segment);
        } else if segment.flags.has(Flags::SYN) {
            self.take_syn(segment);
            self.state = State::SynReceived;
            self.begin_handshake();
        }
    }

    /// SYN-SENT (RFC 9293 §3.10.7.3).
    pub(crate) fn receive_in_syn_sent(&mut self, segment: &Segment) {
        let acknowledges = segment.flags.has(Flags::ACK);
        if acknowledges && segment.ack != self.tx.initial.at(1) {
            if !segment.flags.has(Flags::RST) {
                self.refuse(segment);
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            if acknowledges {
                self.end_by_reset();
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.take_syn(segment);
        if acknowledges {
            self.establish(segment);
            (self.ack.owed, self.ack.urgent) = (true, true);
        } else {
            // Both have opened at once (RFC 9293 figure 7).
            self.state = State::SynReceived;
            self.begin_handshake();
        }
    }

    /// The peer has acknowledged the SYN.
    pub(crate) fn establish(&mut self, segment: &Segment) {
        self.state = if self.tx.fin { State::FinWait1 } else { State::Established };
        self.tx.acknowledged = 1;
        self.events.connected = true;
        self.timers.retransmission = None;
        let measured = match self.handshake.repeated {
            0 => Some(self.now.since(self.handshake.first_at)),
            _ => self.echoed_round_trip(segment),
        };
        match measured {
            Some(rtt) => self.rtt.sample(rtt, &self.profile.rto, 1, 1),
            None => self.rtt.syn_was_lost = true,
        }
        self.congestion = Congestion::new(&self.profile, self.payload_max());
        if self.handshake.repeated > 1 {
            // The path is lossy: begin with one segment (RFC 5681 §3.1; Linux forgives the first repetition).
            self.congestion.collapse();
        }
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.terms.peer_scale };
        self.tx.begin_window(segment, scale);
        self.touch_keep_alive();
    }

    /// The SYN's timer ran out.
    pub(crate) fn on_handshake_timeout(&mut self) {
        let policy = self.profile.syn;
        let linear = if self.state == State::SynSent { policy.linear_retries } else { 0 };
        if self.handshake.repeated >= policy.retries + linear {
            self.give_up();
            return;
        }
        self.handshake.repeated += 1;
        self.handshake.due = true;
        self.counters.retransmissions += 1;
    }

    /// The SYN or SYN-ACK, when one is due.
    pub(crate) fn next_syn(&mut self) -> Option<Segment> {
        if !std::mem::take(&mut self.handshake.due) {
            return None;
        }
        let answers = self.state == State::SynReceived;
        self.tx.next = self.tx.next.max(1);
        let linear = if answers { 0 } else { self.profile.syn.linear_retries };
        let doublings = self.handshake.repeated.saturating_sub(linear).min(20);
        let wait = (self.profile.rto.initial * (1 << doublings)).min(self.profile.rto.max);
        self.arm(Purpose::Handshake, wait);
        Some(self.make_syn(answers))
    }

    /// Largest payload of a segment without SACK blocks.
    pub(crate) fn payload_max(&self) -> u16 {
        let mss = if self.terms.mss == 0 { self.profile.mss } else { self.terms.mss };
        mss - if self.terms.timestamps { TIMESTAMPS_BYTES } else { 0 }
    }

    fn begin_handshake(&mut self) {
        self.handshake = Handshake { due: true, repeated: 0, first_at: self.now };
    }

    fn make_syn(&mut self, answers: bool) -> Segment {
        let profile = &self.profile;
        let buffer = u64::from(profile.receive_buffer);
        let timestamps = if answers { self.terms.timestamps } else { profile.timestamps };
        let scales = if answers { self.terms.own_scale > 0 || self.terms.peer_scale > 0 } else { true };
        let segment = Segment {
            seq: self.tx.initial,
            ack: if answers { self.terms.peer_initial.at(self.rx.next) } else { Seq(0) },
            flags: if answers { Flags::SYN.with(Flags::ACK) } else { Flags::SYN },
            // Windows in SYNs are never scaled (RFC 7323 §2.2).
            window: buffer.min(65_535) as u16,
            mss: Some(profile.mss),
            sack_permitted: if answers { self.terms.sack } else { profile.sack },
            window_scale: profile.window_scale.filter(|_| scales),
            timestamps: timestamps.then(|| Timestamps { value: self.timestamp(), echo: self.terms.recent }),
            ..Segment::default()
        };
        self.rx.edge = self.rx.next + u64::from(segment.window);
        self.rx.acknowledged = self.rx.next;
        segment
    }

    fn take_syn(&mut self, segment: &Segment) {
        let profile = &self.profile;
        // Without the option a peer takes 536 bytes (RFC 9293 §3.7.1).
        let mss = profile.mss.min(segment.mss.unwrap_or(536)).max(MSS_LEAST);
        let stamps = segment.timestamps.filter(|_| profile.timestamps);
        let scales = segment.window_scale.zip(profile.window_scale);
        let (peer_scale, own_scale) = scales.map_or((0, 0), |(peer, own)| (peer.min(14), own.min(14)));
        self.terms = Terms {
            mss,
            timestamps: stamps.is_some(),
            recent: stamps.map_or(0, |stamps| stamps.value),
            sack: segment.sack_permitted && profile.sack,
            peer_scale,
            own_scale,
            peer_initial: segment.seq,
        };
        self.rx.next = 1;
        self.rx.acknowledged = 0;
        self.rx.edge = self.rx.edge.max(1 + u64::from(profile.receive_buffer.min(65_535)));
    }

    pub(crate) fn arm(&mut self, purpose: Purpose, wait: Duration) {
        let at = self.profile.granularity.deadline(self.now, wait);
        self.timers.retransmission = Some((purpose, at));
    }
}

/// Smaller would leave no room beside timestamps and SACK blocks (Linux: `TCP_MIN_MSS`).
const MSS_LEAST: u16 = 88;
