//! Finding out what was lost, and sending it again: fast retransmit and NewReno (RFC 6582), SACK recovery
//! (RFC 6675), loss detection by time and tail loss probes (RFC 8985), rate reduction (RFC 6937), timeouts
//! (RFC 6298 §5) and taking back what was needless (RFC 3522).
//!
//! ```text
//!            three duplicates, or RACK              acknowledged up to `point`
//!     Open ─────────────────────────────► Fast ─────────────────────────────► Open
//!       │                                  │
//!       └────────────── timeout ───────────┴──────► Timeout ── up to `point` ─► Open
//! ```
//!
//! What it does not model: F-RTO (RFC 5682), taking back by D-SACK, the adaptive part of RACK's reordering window.

use mqttlab_units::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::scoreboard::Delivered;
use crate::segment::Segment;
use crate::timers::Purpose;

/// Where in the picture the sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery.
    Fast,
    /// After a retransmission timeout.
    Timeout,
}

#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    pub phase: Phase,
    /// SND.NXT when the loss was found: its acknowledgement ends the recovery.
    point: u64,
    duplicates: u8,
    /// The first retransmission goes out whatever the window says (RFC 6675 §5 step 4.3).
    pub first_is_free: bool,
    /// Timestamp of the first retransmission of this recovery.
    resent_stamp: Option<u32>,
    /// Units delivered and sent since the recovery began (RFC 6937).
    delivered: u64,
    sent: u64,
    /// Latest delivered segment: when sent, its end (RFC 8985 `RACK.xmit_ts`, `RACK.end_seq`), its round trip.
    latest: (Instant, u64),
    latest_rtt: Duration,
    /// A tail loss probe is out: SND.NXT then, and whether it repeated data.
    probe: Option<(u64, bool)>,
}

impl Recovery {
    pub fn new() -> Recovery {
        Recovery {
            phase: Phase::Open,
            point: 0,
            duplicates: 0,
            first_is_free: false,
            resent_stamp: None,
            delivered: 0,
            sent: 0,
            latest: (Instant::ZERO, 0),
            latest_rtt: Duration::ZERO,
            probe: None,
        }
    }

    /// Notes that units left for the network.
    pub fn on_sent(&mut self, units: u64) {
        if self.phase == Phase::Fast {
            self.sent += units;
        }
    }

    fn begin(&mut self, phase: Phase, point: u64) {
        let keep = (self.latest, self.latest_rtt);
        *self = Recovery { phase, point, ..Recovery::new() };
        (self.latest, self.latest_rtt) = keep;
    }
}

impl Endpoint {
    /// Takes the acknowledgement of an acceptable segment: `ack` is its position.
    pub(crate) fn take_acknowledgement(&mut self, segment: &Segment, ack: u64) {
        let advanced = ack > self.tx.acknowledged;
        let duplicate = !advanced
            && segment.sequence_length() == 0
            && self.tx.edge_unchanged(segment, ack, self.terms.peer_scale)
            && !self.board.is_empty();
        self.tx.update_window(segment, ack, self.terms.peer_scale);
        let mut delivered = if advanced { self.advance(ack) } else { Delivered::default() };
        let sacked = self.take_sack_blocks(segment);
        let newly_sacked = sacked.units > 0;
        delivered.merge(sacked);
        if advanced {
            self.measure(segment, &delivered);
            self.take_back_if_needless(segment);
        }
        self.note_latest(&delivered);
        self.settle_probe(segment, ack, advanced, newly_sacked);
        if advanced || newly_sacked || duplicate {
            self.after_delivery(advanced, duplicate && !newly_sacked, delivered.units);
            self.rearm_after_acknowledgement(advanced);
        }
        self.after_our_fin();
    }

    /// The retransmission timer ran out for real (RFC 6298 §5.4 to 5.7).
    pub(crate) fn on_retransmission_timeout(&mut self) {
        if self.board.is_empty() {
            return;
        }
        if u32::from(self.retries) >= self.profile.retries {
            self.give_up();
            return;
        }
        self.retries = self.retries.saturating_add(1);
        self.counters.timeouts += 1;
        // A timeout while already recovering from one is no new congestion (RFC 5681 §3.1).
        let again = self.recovery.phase == Phase::Timeout && self.board.first_was_resent();
        if !again {
            self.congestion.reduce(self.board.outstanding());
        }
        let stamp = self.recovery.resent_stamp.filter(|_| again);
        self.board.mark_all_lost();
        self.congestion.collapse();
        self.recovery.begin(Phase::Timeout, self.tx.next);
        self.recovery.resent_stamp = stamp;
        self.recovery.first_is_free = true;
        self.rtt.backoff = self.rtt.backoff.saturating_add(1);
    }

    /// RFC 8985 §7.3: sends something that makes the peer answer. Returns the segment.
    pub(crate) fn on_tail_probe(&mut self) {
        self.tail_probe_due = !self.board.is_empty();
    }

    /// RFC 8985 §6.3: what has not come by now is lost.
    pub(crate) fn on_reordering_timeout(&mut self) {
        self.after_delivery(false, false, 0);
        self.rearm_after_acknowledgement(false);
    }

    /// Notes the transmission of a probe that repeats data or not.
    pub(crate) fn probe_sent(&mut self, repeats: bool) {
        self.counters.tail_probes += 1;
        self.recovery.probe = Some((self.tx.next, repeats));
    }

    /// Notes a retransmission.
    pub(crate) fn note_resent(&mut self) {
        self.counters.retransmissions += 1;
        self.recovery.first_is_free = false;
        let stamp = self.timestamp();
        self.recovery.resent_stamp.get_or_insert(stamp);
    }

    /// Whether a tail loss probe may be scheduled (RFC 8985 §7.2).
    pub(crate) fn may_probe_tail(&self) -> bool {
        self.profile.tail_loss_probe
            && self.terms.sack
            && self.recovery.phase == Phase::Open
            && self.recovery.probe.is_none()
            && !self.board.has_sacked()
    }

    fn advance(&mut self, ack: u64) -> Delivered {
        self.tx.acknowledged = ack;
        self.events.acknowledged = true;
        self.board.acknowledge(ack)
    }

    fn take_sack_blocks(&mut self, segment: &Segment) -> Delivered {
        let mut delivered = Delivered::default();
        if !self.terms.sack {
            return delivered;
        }
        for (start, end) in segment.sack.iter() {
            let near = self.tx.acknowledged;
            let positions = (start.position(self.tx.initial, near), end.position(self.tx.initial, near));
            if let (Some(start), Some(end)) = positions
                && start >= near
                && end <= self.tx.next
            {
                delivered.merge(self.board.sack(start, end));
            }
        }
        delivered
    }

    /// A round trip: of a segment sent once (Karn), else by the echoed timestamp (RFC 7323 §4).
    fn measure(&mut self, segment: &Segment, delivered: &Delivered) {
        let rtt = match delivered.once_sent_at {
            Some(sent_at) => Some(self.now.since(sent_at)),
            None => self.echoed_round_trip(segment),
        };
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, &self.profile.rto, self.tx.acknowledged, self.tx.next);
        }
    }

    pub(crate) fn echoed_round_trip(&self, segment: &Segment) -> Option<Duration> {
        let echo = segment.timestamps.filter(|_| self.terms.timestamps)?.echo;
        let ticks = self.timestamp().wrapping_sub(echo);
        // A clock coarser than the least timeout measures nothing.
        let useful = ticks < 1 << 31 && self.profile.timestamp_tick <= self.profile.rto.min;
        useful.then(|| self.profile.timestamp_tick * u64::from(ticks.max(1)))
    }

    /// The Eifel detection (RFC 3522 §3.2): the acknowledgement was for the original, so that nothing was lost.
    fn take_back_if_needless(&mut self, segment: &Segment) {
        let (Some(resent), Some(stamps)) = (self.recovery.resent_stamp, segment.timestamps) else { return };
        let older = stamps.echo.wrapping_sub(resent) > 1 << 31;
        if self.profile.undo && self.recovery.phase != Phase::Open && older {
            self.counters.undone += 1;
            self.board.forgive();
            self.congestion.restore();
            self.recovery.begin(Phase::Open, self.tx.next);
        }
    }

    /// RFC 8985 §6.2 step 2.
    fn note_latest(&mut self, delivered: &Delivered) {
        let Some((at, end, resent)) = delivered.latest else { return };
        let rtt = self.now.since(at);
        // Too soon for the retransmission: the original was acknowledged.
        if resent && self.rtt.least().is_some_and(|least| rtt < least) {
            return;
        }
        if (at, end) > self.recovery.latest {
            self.recovery.latest = (at, end);
            self.recovery.latest_rtt = rtt;
        }
    }

    /// RFC 8985 §7.4.2: what the answer to a tail loss probe says.
    fn settle_probe(&mut self, segment: &Segment, ack: u64, advanced: bool, newly_sacked: bool) {
        let Some((end, repeats)) = self.recovery.probe else { return };
        if ack < end {
            return;
        }
        // A D-SACK that ends there is sent by who has seen both.
        let told = segment.sack.iter().next().is_some_and(|(_, last)| last == self.tx.initial.at(end));
        let both_came = told || !advanced && !newly_sacked && segment.sequence_length() == 0;
        if repeats && ack > end && !both_came {
            // The probe itself repaired a loss, which is still congestion.
            self.congestion.reduce(self.board.outstanding());
            self.congestion.window = self.congestion.threshold;
        }
        if !repeats || ack > end || both_came {
            self.recovery.probe = None;
        }
    }

    fn after_delivery(&mut self, advanced: bool, duplicate: bool, units: u64) {
        let smss = self.congestion.smss();
        let mut delivered = units;
        if duplicate && !self.terms.sack && self.recovery.phase != Phase::Timeout {
            self.recovery.duplicates = self.recovery.duplicates.saturating_add(1);
            self.board.presumed = (self.board.presumed + smss).min(self.board.outstanding());
            delivered += smss;
        } else if advanced && !self.terms.sack {
            // One unit filled the hole; the rest had come before, as duplicates said (RFC 6582 §3.2 step 3).
            self.board.presumed = self.board.presumed.saturating_sub(units.saturating_sub(smss));
        }
        let phase_before = self.recovery.phase;
        if phase_before != Phase::Open && self.tx.acknowledged >= self.recovery.point {
            self.end_recovery();
        }
        let waited = self.board.waiting();
        self.find_losses(advanced);
        let safe = advanced && self.board.waiting() == waited;
        match self.recovery.phase {
            Phase::Open if self.board.has_lost() => {
                self.begin_fast_recovery();
                // A loss that only time has shown counts as one delivery (Linux).
                self.reduce_rate(delivered.max(smss), safe);
            }
            // Without SACK, the acknowledgement that ends a fast recovery does not grow the window (RFC 6582 §3.2).
            Phase::Open | Phase::Timeout if advanced && (phase_before != Phase::Fast || self.terms.sack) => {
                self.recovery.duplicates = 0;
                let rtt = self.rtt.least().unwrap_or_default();
                self.congestion.grow(units, self.now, rtt);
            }
            Phase::Fast => self.reduce_rate(delivered, safe),
            _ => {}
        }
    }

    fn find_losses(&mut self, advanced: bool) {
        if !self.terms.sack {
            let third = self.recovery.duplicates >= DUPLICATE_THRESHOLD;
            // Duplicates of what was sent before the last recovery are no new loss (RFC 6582 §3.2 step 2).
            let fresh = self.tx.acknowledged >= self.recovery.point;
            let partial = self.recovery.phase == Phase::Fast && advanced;
            if self.recovery.phase == Phase::Open && third && fresh || partial {
                self.board.mark_first_lost();
            }
        } else if self.profile.rack {
            self.find_losses_by_time();
        } else if self.board.has_sacked() {
            self.board.mark_lost_below(u32::from(DUPLICATE_THRESHOLD));
        }
    }

    fn find_losses_by_time(&mut self) {
        if self.timers.is_running_for(Purpose::Reordering) {
            self.timers.retransmission = None;
        }
        if !self.board.has_sacked() && self.recovery.phase == Phase::Open {
            return;
        }
        let sure = self.recovery.phase != Phase::Open
            || self.board.sacked_segments() >= u32::from(DUPLICATE_THRESHOLD);
        let least = self.rtt.least().unwrap_or_default().as_ns();
        let srtt = self.rtt.srtt().unwrap_or_default();
        let window = if sure { Duration::ZERO } else { Duration::from_ns(least / 4).min(srtt) };
        let patience = self.recovery.latest_rtt + window;
        if let Some(wait) = self.board.mark_lost_before(self.recovery.latest, patience, self.now) {
            let at = self.profile.granularity.deadline(self.now, wait + REORDERING_ALLOWANCE);
            self.timers.retransmission = Some((Purpose::Reordering, at));
        }
    }

    fn begin_fast_recovery(&mut self) {
        self.counters.fast_recoveries += 1;
        self.congestion.reduce(self.board.outstanding());
        self.recovery.begin(Phase::Fast, self.tx.next);
        self.recovery.first_is_free = true;
        if !self.profile.rate_reduction {
            self.congestion.window = self.congestion.threshold;
        }
    }

    /// Proportional rate reduction (RFC 6937 §3) with the slow-start bound, which as in Linux grows only on a `safe`
    /// acknowledgement: one that advances and shows no further loss.
    fn reduce_rate(&mut self, delivered: u64, safe: bool) {
        if !self.profile.rate_reduction || delivered == 0 {
            return;
        }
        let (smss, threshold) = (self.congestion.smss(), self.congestion.threshold);
        self.recovery.delivered += delivered;
        let in_flight = self.board.in_flight();
        let (total, sent) = (self.recovery.delivered, self.recovery.sent);
        let mut allowed = if in_flight > threshold {
            let share = total * threshold;
            share.div_ceil(self.congestion.window_before().max(1)).saturating_sub(sent)
        } else {
            let bound = total.saturating_sub(sent).max(delivered) + if safe { smss } else { 0 };
            (threshold - in_flight).min(bound)
        };
        if sent == 0 {
            allowed = allowed.max(smss);
        }
        self.congestion.window = in_flight + allowed;
    }

    fn end_recovery(&mut self) {
        if self.recovery.phase == Phase::Fast {
            self.congestion.window = self.congestion.threshold;
        }
        self.board.presumed = 0;
        let point = self.recovery.point;
        self.recovery.begin(Phase::Open, point);
    }
}

/// What Linux adds to timeouts of its own making (`TCP_TIMEOUT_MIN_US`).
const REORDERING_ALLOWANCE: Duration = Duration::from_ms(2);
/// RFC 5681 §3.2.
const DUPLICATE_THRESHOLD: u8 = 3;
