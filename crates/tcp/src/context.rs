//! What the parts of an endpoint share: what they may look at, and what they may do beside keeping their own state.

use std::sync::Arc;

use mqttlab_units::{Duration, Instant};

use crate::output::Events;
use crate::profile::Profile;
use crate::segment::{Segment, TIMESTAMPS_BYTES};
use crate::terms::Terms;
use crate::timers::{EndpointTimers, Purpose};

/// What a part may look at.
#[derive(Clone, Debug)]
pub(crate) struct EndpointContext {
    pub now: Instant,
    pub profile: Arc<Profile>,
    /// What the SYNs agreed on.
    pub terms: Terms,
}

/// What a part may do to the rest of the endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub timers: EndpointTimers,
    pub events: Events,
    pub counters: EndpointCounters,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Segments sent, of all kinds.
    pub segments: u64,
    /// Segments with payload sent for the first time.
    pub data_segments: u64,
    /// Segments sent again, SYNs and probes included.
    pub retransmissions: u64,
    /// Retransmission timeouts after the handshake.
    pub timeouts: u32,
    /// Fast recoveries begun.
    pub fast_recoveries: u32,
    /// Tail loss probes sent.
    pub tail_probes: u32,
    /// Window reductions taken back.
    pub undone: u32,
}

impl EndpointContext {
    /// The timestamp clock (RFC 7323 §4.1).
    pub fn timestamp(&self) -> u32 {
        self.timestamp_at(self.now)
    }

    /// What the timestamp clock showed at an instant.
    pub fn timestamp_at(&self, at: Instant) -> u32 {
        (at.as_ns() / self.profile.timestamp_tick.as_ns().max(1)) as u32
    }

    /// The round trip that an echoed timestamp measures (RFC 7323 §4.1), if one does.
    pub fn echoed_round_trip(&self, segment: &Segment) -> Option<Duration> {
        let echo = segment.timestamps.filter(|_| self.terms.timestamps)?.echo;
        let ticks = self.timestamp().wrapping_sub(echo);
        // A clock coarser than the least timeout measures nothing.
        let useful = ticks < 1 << 31 && self.profile.timestamp_tick <= self.profile.rto.min;
        useful.then(|| self.profile.timestamp_tick * u64::from(ticks.max(1)))
    }

    /// Largest payload of a segment without SACK blocks. The MSS option counts the timestamps as payload (RFC 6691).
    pub fn payload_max(&self) -> u16 {
        let mss = if self.terms.mss == 0 { self.profile.mss } else { self.terms.mss };
        mss - if self.terms.timestamps { TIMESTAMPS_BYTES } else { 0 }
    }

    /// When a timer that is set for `wait` fires.
    pub fn deadline(&self, wait: Duration) -> Instant {
        self.profile.deadline(self.now, wait)
    }
}

impl Effects {
    /// Starts the retransmission timer anew, whatever it was running for.
    pub fn arm(&mut self, cx: &EndpointContext, purpose: Purpose, wait: Duration) {
        self.timers.retransmission = Some((purpose, cx.deadline(wait)));
    }

    /// Something was heard from the peer: the keep-alive timer starts anew.
    pub fn touch_keep_alive(&mut self, cx: &EndpointContext) {
        if let Some(policy) = cx.profile.keep_alive {
            self.timers.keep_alive = cx.deadline(policy.idle).into();
        }
    }

    /// TIME-WAIT, or FIN-WAIT-2 without a reader, begins.
    pub fn arm_last_wait(&mut self, cx: &EndpointContext) {
        self.timers.time_wait = cx.deadline(cx.profile.time_wait).into();
    }
}
