//! Opening a connection (RFC 9293 §3.5): when the SYN is sent and repeated, and what it says.

use mqttlab_units::{Duration, Instant};

use crate::context::{Effects, EndpointContext};
use crate::segment::{Flags, Segment, Timestamps};

/// How far the SYN (or SYN-ACK) of this end has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpHandshake {
    /// It must be sent (again).
    due: bool,
    /// It answers the peer's.
    answers: bool,
    /// How often it was repeated because nobody answered.
    repeated: u32,
    /// It was repeated, for whatever reason.
    is_ambiguous: bool,
    /// When it was first sent.
    first_at: Instant,
}

impl TcpHandshake {
    /// The SYN is to be sent, or the SYN-ACK.
    pub fn begin(now: Instant, answers: bool) -> TcpHandshake {
        TcpHandshake { due: true, answers, repeated: 0, is_ambiguous: false, first_at: now }
    }

    /// The peer asks for it again.
    pub fn repeat(&mut self) {
        (self.due, self.is_ambiguous) = (true, true);
    }

    /// The connection is at its end.
    pub fn stop(&mut self) {
        self.due = false;
    }

    /// The timer ran out. `false` when that has happened too often.
    pub fn on_timeout(&mut self, cx: &EndpointContext, fx: &mut Effects) -> bool {
        // `tcp_write_timeout`: repetitions at the initial interval do not use up `tcp_syn_retries`.
        if self.repeated >= cx.profile.syn.retries + self.linear_retries(cx) {
            return false;
        }
        self.repeated += 1;
        (self.due, self.is_ambiguous) = (true, true);
        fx.counters.retransmissions += 1;
        true
    }

    /// When it is due: how long to wait for the answer.
    pub fn take_due(&mut self, cx: &EndpointContext) -> Option<Duration> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let doublings = self.repeated.saturating_sub(self.linear_retries(cx)).min(20);
        Some((cx.profile.rto.initial * (1 << doublings)).min(cx.profile.rto.max))
    }

    /// The round trip that the answer measures. Of a repeated SYN only its timestamp can tell which copy was answered
    /// (Karn's algorithm, RFC 6298 §3); likewise of a SYN-ACK, also where the peer's repeated SYN asked for it.
    pub fn round_trip(&self, cx: &EndpointContext, answer: &Segment) -> Option<Duration> {
        match self.is_ambiguous {
            false => Some(cx.now.since(self.first_at)),
            true => cx.echoed_round_trip(answer),
        }
    }

    /// Whether so many copies were lost that the connection has to begin with one segment (RFC 5681 §3.1). Linux forgives
    /// the first.
    pub fn path_is_lossy(&self) -> bool {
        self.repeated > 1
    }

    /// The segment, but for what the two streams say: sequence number, acknowledgement, echo.
    pub fn segment(&self, cx: &EndpointContext) -> Segment {
        let (profile, terms) = (&cx.profile, &cx.terms);
        // A SYN offers what this end can; a SYN-ACK repeats what both can.
        let timestamps = if self.answers { terms.timestamps } else { profile.timestamps };
        let scales = if self.answers { terms.own_scale > 0 || terms.peer_scale > 0 } else { true };
        let flags = match self.answers {
            true if terms.ecn => Flags::SYN.with(Flags::ACK).with(Flags::ECE),
            true => Flags::SYN.with(Flags::ACK),
            // A SYN that was lost may have been dropped because of these flags (RFC 3168 §6.1.1.1; Linux
            // `tcp_ecn_clear_syn`).
            false if profile.ecn && self.repeated == 0 => Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            false => Flags::SYN,
        };
        Segment {
            flags,
            window: profile.first_window(if self.answers { cx.payload_max() } else { profile.mss }) as u16,
            mss: Some(profile.mss),
            sack_permitted: if self.answers { terms.sack } else { profile.sack },
            window_scale: profile.window_scale.filter(|_| scales),
            timestamps: timestamps.then(|| Timestamps { value: cx.timestamp(), echo: 0 }),
            ..Segment::default()
        }
    }

    /// Linux repeats a SYN some times at the initial interval; a SYN-ACK always doubles it.
    fn linear_retries(&self, cx: &EndpointContext) -> u32 {
        if self.answers { 0 } else { cx.profile.syn.linear_retries }
    }
}
