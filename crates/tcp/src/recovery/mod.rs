//! Finding out what was lost, and sending it again.
//!
//! ```text
//!            three duplicates, or RACK              acknowledged up to `point`
//!     Open ─────────────────────────────► Fast ─────────────────────────────► Open
//!       │                                  │
//!       └────────────── timeout ───────────┴──────► Timeout ── up to `point` ─► Open
//! ```
//!
//! | event ╲ phase | Open | Fast | Timeout |
//! |---|---|---|---|
//! | new data acknowledged | window grows (RFC 5681 §3.1) | rate reduction (RFC 6937); without SACK the next hole is lost, too (RFC 6582 §3.2) | window grows: slow start |
//! | acknowledged up to `point` | – | window = threshold, to Open | to Open |
//! | SACK: RACK, or 3 segments above a hole (RFC 8985 §6.2, RFC 6675 §4) | mark, threshold falls, to Fast | mark, rate reduction | mark |
//! | 3rd duplicate, without SACK (RFC 5681 §3.2) | mark the first, threshold falls, to Fast | window inflates by one | nothing: they answer our repetitions |
//! | reordering timer (RFC 8985 §6.3) | mark; if any, to Fast | mark | mark |
//! | tail loss probe timer (RFC 8985 §7.3) | new data or the last segment once more | not set | not set |
//! | retransmission timeout (RFC 6298 §5.4) | threshold falls, the first and what is older than a round trip is lost, one segment, to Timeout | the same, but for the threshold | back off; the threshold falls if the last timeout was answered |
//! | SACK in an overtaken acknowledgement (Linux `old_ack`) | mark, threshold falls, to Fast | mark, the window stays | mark |
//! | RACK: a repetition is lost | – | mark | mark, threshold falls, to Fast |
//! | an older echo than the first repetition (RFC 3522 §3.2) | – | while repetitions are under way: new data, no more repetitions; else undo: window and threshold as before, to Open | undo, to Open |
//! | a D-SACK for each repetition (RFC 3708 §3.2) | undo of the last recovery | undo, to Open | undo, if it advances, to Open |
//! | after a timeout, what was sent once before it (RFC 5682 §3.1 step 3.b) | – | – | undo, to Open |
//!
//! An acknowledgement is worked through in this order, and the order matters: delivered segments leave the scoreboard; a round
//! trip is measured; a needless recovery is undone (before losses are looked for by marks that it takes away); RACK
//! learns the latest delivery; the probe is settled; the recovery ends (so that losses beyond `point` begin another
//! one); losses are marked; the window moves; the timer is set.
//!
mod forward_rto;
mod rack;
mod rate_reduction;
mod rtt;
pub(crate) mod scoreboard;
mod tail_probe;
mod undo;

use mqttlab_units::{Duration, Instant};

use self::forward_rto::{ForwardRto, TimeoutAnswer};
use self::rack::Rack;
use self::rate_reduction::{RateReduction, RecoveryPipe};
use self::rtt::RttEstimator;
use self::scoreboard::{Delivered, Scoreboard, SentSegment};
use self::tail_probe::TailProbe;
use self::undo::Undo;
use crate::congestion::{Congestion, Measured};
use crate::context::{Effects, EndpointContext};
use crate::ecn::WindowReduced;
use crate::profile::{Profile, RtoFloor};
use crate::segment::{Flags, Segment};
use crate::sequence::Seq;
use crate::timers::Purpose;

/// Where in the picture the sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// Nothing is known to be lost.
    Open,
    /// Fast recovery.
    Fast,
    /// After a retransmission timeout.
    Timeout,
}

/// Decides over what is in flight, and so owns all that the decision needs: the scoreboard, the round trips, the window.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    pub flight: Scoreboard,
    pub congestion: Congestion,
    pub rtt: RttEstimator,
    phase: RecoveryPhase,
    /// SND.NXT when the loss was found: its acknowledgement ends the recovery (RFC 6675 `RecoveryPoint`). Likewise of a mark.
    point: u64,
    /// Duplicate acknowledgements in a row, without SACK.
    duplicates: u8,
    /// The first retransmission goes out whatever the window says (RFC 6675 §5 step 4.3).
    first_is_free: bool,
    undo: Undo,
    /// The last acknowledgement shows that what was repeated first was only late, while repetitions are under way: nothing more
    /// is repeated before the next one (Linux `tcp_try_undo_partial`).
    holds: bool,
    forward_rto: ForwardRto,
    /// Segments that came twice, by D-SACK.
    duplicated: u32,
    reduction: RateReduction,
    /// By ECN.
    pub reduced: WindowReduced,
    pub rack: Rack,
    probe: TailProbe,
    /// Retransmission timeouts without an answer.
    retries: u8,
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug)]
struct News {
    /// It acknowledged new data.
    advanced: bool,
    /// It acknowledged nothing new in any way, and is a duplicate by RFC 5681 §2.
    duplicate: bool,
    /// Units newly delivered.
    units: u64,
    /// It is older than the last that advanced: the window stays as it is.
    outdated: bool,
    /// It echoes a mark of congestion.
    congested: bool,
}

impl Recovery {
    pub fn new(profile: &Profile, initial: Seq) -> Recovery {
        Recovery {
            flight: Scoreboard::new(profile.window_unit, initial),
            congestion: congestion(profile, profile.mss),
            rtt: RttEstimator::new(),
            phase: RecoveryPhase::Open,
            point: 0,
            duplicates: 0,
            first_is_free: false,
            undo: Undo::default(),
            holds: false,
            forward_rto: ForwardRto::Off,
            duplicated: 0,
            reduction: RateReduction::default(),
            reduced: WindowReduced::default(),
            rack: Rack::default(),
            probe: TailProbe::default(),
            retries: 0,
        }
    }

    /// The handshake is done, and has measured this; `lossy` when the window must begin with one segment.
    pub fn establish(&mut self, cx: &EndpointContext, measured: Option<Duration>, lossy: bool) {
        self.flight.una = 1;
        match measured {
            Some(rtt) => self.rtt.sample(rtt, &cx.profile.rto, 1, 1),
            None => self.rtt.syn_was_lost = true,
        }
        // Anew, for only now is the peer's MSS known, which is the unit of the window.
        self.congestion = congestion(&cx.profile, cx.payload_max());
        if lossy {
            self.congestion.on_rto(cx.now, 1);
        }
        self.congestion.on_start(cx.now, self.flight.next);
    }

    /// Where in the picture the sender is.
    pub fn phase(&self) -> RecoveryPhase {
        self.phase
    }

    /// The retransmission timeout, backed off.
    pub fn rto(&self, cx: &EndpointContext) -> Duration {
        self.rtt.timeout(&cx.profile.rto)
    }

    /// The connection is at its end.
    pub fn stop(&mut self) {
        self.probe.due = false;
    }

    /// Takes the acknowledgement of an acceptable segment: `ack` is its position, and `duplicate` whether it may be one.
    /// See the module for the order.
    pub fn on_ack(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        segment: &Segment,
        ack: u64,
        duplicate: bool,
    ) {
        let advanced = ack > self.flight.una;
        // As they were: reordering is measured against what was reported before (`tcp_check_sack_reordering`).
        let (una, highest_sacked) = (self.flight.una, self.flight.highest_sacked());
        let mut delivered = Delivered::default();
        if advanced {
            delivered = self.flight.acknowledge(ack, |sent| undo::is_original(cx, segment, sent));
        }
        let newly_sacked = self.on_sack_blocks(cx, segment, &mut delivered, highest_sacked);
        self.measure(cx, segment, &delivered, advanced);
        self.undo_if_spurious(cx, fx, segment, ack, advanced.then_some(una));
        let reports_loss = newly_sacked || duplicate;
        self.check_forward_rto(cx, fx, &delivered, advanced, reports_loss);
        self.rack.update(cx.now, &delivered, self.rtt.least());
        if self.probe.on_ack(&self.flight, segment, ack, advanced, newly_sacked) {
            // The probe repaired a loss without a recovery, which is still congestion (RFC 8985 §7.4.2).
            self.congestion.on_loss(self.flight.outstanding());
            self.congestion.window.cwnd = self.congestion.window.ssthresh;
            self.reduced.note_other();
        }
        let congested =
            cx.terms.ecn && segment.flags.has(Flags::ECE) && (advanced || !self.flight.is_empty());
        if advanced || newly_sacked || duplicate || congested {
            let duplicate = duplicate && !newly_sacked;
            let news = News { advanced, duplicate, units: delivered.units, outdated: false, congested };
            self.after_delivery(cx, fx, news);
            self.rearm(cx, fx, advanced, &delivered);
        }
    }

    /// Takes an acknowledgement that another one has overtaken. What it reports by SACK may be news (Linux `tcp_ack`, `old_ack`):
    /// on a path that reorders, the only word of what has come.
    pub fn on_outdated_ack(&mut self, cx: &EndpointContext, fx: &mut Effects, segment: &Segment, ack: u64) {
        if !cx.terms.sack || !cx.profile.rack || segment.sack.is_empty() {
            return;
        }
        self.holds = false;
        let highest_sacked = self.flight.highest_sacked();
        let mut delivered = Delivered::default();
        self.on_sack_blocks(cx, segment, &mut delivered, highest_sacked);
        self.undo_if_spurious(cx, fx, segment, ack, None);
        self.rack.update(cx.now, &delivered, self.rtt.least());
        let (advanced, duplicate, congested) = (false, false, false);
        let news = News { advanced, duplicate, units: delivered.units, outdated: true, congested };
        self.after_delivery(cx, fx, news);
    }

    /// The retransmission timer ran out for real (RFC 6298 §5.4 to 5.7). `false` when the peer is given up.
    pub fn on_rto(&mut self, cx: &EndpointContext, fx: &mut Effects) -> bool {
        if self.flight.is_empty() {
            return true;
        }
        if u32::from(self.retries) >= cx.profile.retries {
            return false;
        }
        self.retries = self.retries.saturating_add(1);
        fx.counters.timeouts += 1;
        self.holds = false;
        // A timeout while already recovering is no new congestion (RFC 5681 §3.1), unless what is missing now lay behind what an
        // earlier timeout has repaired (`tcp_enter_loss`).
        let is_new = match self.phase {
            // While a mark has the window reduced, nor is it.
            RecoveryPhase::Open => !self.reduced.is_on() || self.flight.una >= self.point,
            RecoveryPhase::Fast => !cx.profile.undo,
            RecoveryPhase::Timeout => self.retries == 1,
        };
        if is_new {
            // Before the marks: the threshold is half of what was outstanding (RFC 5681 eq. 4).
            self.congestion.on_loss(self.flight.outstanding());
            self.begin_undo();
        }
        self.reduced.note_other();
        if self.phase == RecoveryPhase::Open
            && self.flight.sacked_segments() >= u32::from(DUPLICATE_THRESHOLD)
        {
            self.rack.forget_degree();
        }
        // Not where the timeout interrupts a fast recovery (`tcp_enter_loss`).
        let is_asked =
            cx.profile.undo && cx.terms.sack && (self.phase == RecoveryPhase::Open || self.retries > 1);
        // What was sent within the last round trip may still come (`tcp_timeout_mark_lost`).
        let patience = if cx.profile.rack { self.rack.rtt() } else { Duration::ZERO };
        self.flight.mark_all_lost(cx.now, patience);
        self.congestion.on_rto(cx.now, self.flight.next);
        // `tcp_enter_loss`: what was left unmarked is still under way, and the first must fit beside it.
        self.congestion.window.cwnd = self.flight.in_flight() + self.congestion.window.smss;
        self.enter(RecoveryPhase::Timeout, self.flight.next);
        self.forward_rto = if is_asked { ForwardRto::Armed } else { ForwardRto::Off };
        self.first_is_free = true;
        // RFC 6298 §5.5.
        self.rtt.backoff = self.rtt.backoff.saturating_add(1);
        true
    }

    /// RFC 8985 §7.3: something must be sent that makes the peer answer. While a probe is out the retransmission timeout goes
    /// on instead: Linux asks here, and not when the timer starts (`tcp_send_loss_probe`), so that an answer in between counts.
    pub fn on_probe_timer(&mut self, cx: &EndpointContext, fx: &mut Effects) {
        if self.probe.is_out() && !self.flight.is_empty() {
            return fx.arm(cx, Purpose::Timeout, self.rto_left(cx));
        }
        self.probe.due = !self.flight.is_empty();
    }

    /// RFC 8985 §6.3: what has not come by now is lost.
    pub fn on_reordering_timer(&mut self, cx: &EndpointContext, fx: &mut Effects) {
        self.holds = false;
        self.rack.look_again();
        let news = News { advanced: false, duplicate: false, units: 0, outdated: false, congested: false };
        self.after_delivery(cx, fx, news);
        self.rearm(cx, fx, false, &Delivered::default());
    }

    /// Whether a tail loss probe must be sent now; asked once.
    pub fn take_probe_due(&mut self) -> bool {
        std::mem::take(&mut self.probe.due)
    }

    /// Takes the last segment to send again, as a tail loss probe.
    pub fn repeat_last(&mut self, cx: &EndpointContext, fx: &mut Effects) -> Option<SentSegment> {
        let last = self.flight.resend_last(cx.now)?;
        fx.counters.retransmissions += 1;
        self.count_sent(last.length);
        Some(last)
    }

    /// A tail loss probe has left, which repeats data or sends new. The timeout goes on from it (RFC 8985 §7.3).
    pub fn on_probe_sent(&mut self, cx: &EndpointContext, fx: &mut Effects, repeats: bool) {
        fx.counters.tail_probes += 1;
        self.probe.on_sent(self.flight.next, repeats);
        fx.arm(cx, Purpose::Timeout, self.rto(cx));
    }

    /// Whether the congestion window lets the next retransmission go.
    pub fn may_retransmit(&self, cx: &EndpointContext) -> bool {
        let waits = self.forward_rto == ForwardRto::Waits || self.holds;
        !waits && (self.first_is_free || self.has_room_for(cx, self.congestion.window.smss))
    }

    /// Whether new data goes before what counts as lost (RFC 5682 §3.1 step 2.b).
    pub fn prefers_new_data(&self) -> bool {
        self.forward_rto == ForwardRto::Sends || self.holds
    }

    /// No more new data can leave.
    pub fn end_new_data(&mut self) {
        self.forward_rto.on_sent(self.flight.next > self.point);
    }

    /// Takes the next lost segment to send again, with at most so many bytes.
    pub fn retransmit(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        length_max: u16,
    ) -> Option<SentSegment> {
        let again = self.flight.resend_lost(length_max, cx.now)?;
        fx.counters.retransmissions += 1;
        self.first_is_free = false;
        self.undo.on_repetition(cx.timestamp());
        // The timer watches the first segment, from its latest sending on (RFC 6675 §6, Linux, the BSDs): what is
        // repeated now must not be repeated again before its acknowledgement can be here.
        let is_first = again.start == self.flight.una;
        if is_first && !fx.timers.runs_for(Purpose::Reordering) || fx.timers.is_free_or(Purpose::TailProbe) {
            fx.arm(cx, Purpose::Timeout, self.rto(cx));
        }
        self.count_sent(again.length);
        Some(again)
    }

    /// Whether the congestion window lets `units` more into the network.
    pub fn has_room_for(&self, cx: &EndpointContext, units: u64) -> bool {
        let mut in_flight = self.flight.in_flight();
        if !cx.profile.limited_transmit && self.phase == RecoveryPhase::Open {
            // Without RFC 3042, duplicates make no room before the third.
            in_flight = self.flight.outstanding();
        }
        // An empty network takes a segment whatever the window says, or nothing would ever open it.
        in_flight + units <= self.congestion.window.cwnd || in_flight == 0
    }

    /// Before anything leaves, the last of which left at `last_sent_at`: with everything acknowledged, or known to be lost,
    /// the network is empty (RFC 9438 §5.8; Linux `CA_EVENT_TX_START`).
    pub fn before_sending(&mut self, cx: &EndpointContext, last_sent_at: Instant) {
        if self.flight.in_flight() == 0 {
            self.congestion.on_pause(cx.now.since(last_sent_at), cx.now);
        }
    }

    /// So many bytes of new data leave, the FIN included, with PSH or without; returns where they begin.
    pub fn on_new_data(&mut self, cx: &EndpointContext, fx: &mut Effects, length: u16, pushed: bool) -> u64 {
        let start = self.flight.push(length, pushed, cx.now);
        self.count_sent(length);
        if self.may_probe_tail(cx) {
            fx.arm(cx, Purpose::TailProbe, TailProbe::timeout(cx, &self.flight, &self.rtt));
        } else if fx.timers.is_free_or(Purpose::WindowProbe) {
            // RFC 6298 §5.1: a timer that runs goes on.
            fx.arm(cx, Purpose::Timeout, self.rto(cx));
        }
        start
    }

    fn count_sent(&mut self, length: u16) {
        if self.phase == RecoveryPhase::Fast || self.reduced.is_on() {
            self.reduction.on_sent(self.congestion.units(length));
        }
    }

    /// Whether a tail loss probe may be scheduled (RFC 8985 §7.2): nothing may say yet that something is lost.
    fn may_probe_tail(&self, cx: &EndpointContext) -> bool {
        cx.profile.tail_loss_probe
            && cx.terms.sack
            && self.phase == RecoveryPhase::Open
            && !self.flight.has_sacked()
    }

    /// What SACK blocks report joins what was acknowledged; whether any of it is new. `highest_sacked` is of before both: a hole
    /// below it that was filled by what was sent once was only late (RFC 8985 §6.2 step 3).
    fn on_sack_blocks(
        &mut self,
        cx: &EndpointContext,
        segment: &Segment,
        delivered: &mut Delivered,
        highest_sacked: u64,
    ) -> bool {
        let acknowledged = delivered.units;
        let (initial, una) = (self.flight.initial, self.flight.una);
        for (start, end) in segment.sack.iter().filter(|_| cx.terms.sack) {
            // What lies below SND.UNA is a D-SACK (RFC 2883 §4), and what lies above SND.NXT was never sent.
            if let (Some(start), Some(end)) = (start.position(initial, una), end.position(initial, una))
                && start >= una
                && end <= self.flight.next
            {
                delivered.merge(self.flight.sack(start, end));
            }
        }
        if let Some((start, _)) = delivered.original.filter(|(start, _)| *start < highest_sacked) {
            self.see_reordering(cx, start);
        }
        delivered.units > acknowledged
    }

    /// What begins here came after the highest that was selectively acknowledged.
    fn see_reordering(&mut self, cx: &EndpointContext, start: u64) {
        let bytes = self.flight.highest_sacked().saturating_sub(start);
        if bytes > 0 {
            self.rack.see_reordering(bytes.div_ceil(cx.payload_max().into()));
        }
    }

    /// A round trip: of a segment sent once (Karn), selectively acknowledged ones too, as Linux does; else by the echoed
    /// timestamp (RFC 7323 §4), which only an acknowledgement that advances may be measured by. Linux has it cover a whole
    /// segment: small ones are merged when they are sent again, and the first one's late acknowledgement is a part of them.
    fn measure(&mut self, cx: &EndpointContext, segment: &Segment, delivered: &Delivered, advanced: bool) {
        let is_linux = cx.profile.rto.floor == RtoFloor::Variance;
        let rtts = match delivered.once_sent {
            Some((oldest, youngest)) => Some((cx.now.since(oldest), cx.now.since(youngest))),
            None if advanced && (delivered.whole || !is_linux) => {
                cx.echoed_round_trip(segment).map(|rtt| (rtt, rtt))
            }
            None => None,
        };
        let Some((rtt, least)) = rtts else { return };
        let (una, next) = (self.flight.una, self.flight.next);
        self.rtt.sample(rtt, &cx.profile.rto, una, next);
        self.rtt.note_least(least);
        self.congestion.on_round_trip(&Measured { now: cx.now, rtt: least, una, next });
    }

    /// F-RTO: what an acknowledgement after a timeout says of it.
    fn check_forward_rto(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        delivered: &Delivered,
        advanced: bool,
        reports_loss: bool,
    ) {
        if self.phase != RecoveryPhase::Timeout || !cx.profile.undo {
            return;
        }
        let answer = TimeoutAnswer {
            advanced,
            reports_loss,
            delivers_original: delivered.original.is_some_and(|(_, end)| end <= self.point),
            is_last: self.flight.una >= self.point,
            sent_new: self.flight.next > self.point,
        };
        if self.forward_rto.on_ack(answer) {
            self.undo_reduction(fx, true);
        } else if self.forward_rto == ForwardRto::Sends {
            // Step 2.b: what is acknowledged beyond this point was sent after the timeout (`high_seq`).
            self.point = self.flight.next;
        }
    }

    fn after_delivery(&mut self, cx: &EndpointContext, fx: &mut Effects, news: News) {
        let delivered = news.units + self.inflate(cx, news);
        let phase_before = self.phase;
        if phase_before != RecoveryPhase::Open && self.flight.una >= self.point {
            self.end_recovery();
        }
        if self.reduced.is_on() && self.flight.una > self.point {
            self.reduced.end();
            self.congestion.window.cwnd = self.congestion.window.ssthresh;
        }
        let (waited, resent) = (self.flight.waiting(), self.flight.resent());
        if !self.holds {
            self.find_losses(cx, fx, news.advanced);
        }
        let safe = news.advanced && self.flight.waiting() == waited;
        // A repetition after a timeout was lost, too, which is congestion again (`FLAG_LOST_RETRANS`).
        let is_lost_again =
            self.phase == RecoveryPhase::Timeout && cx.profile.rack && self.flight.resent() < resent;
        if news.congested {
            self.on_congestion_echo(cx);
        }
        match self.phase {
            RecoveryPhase::Open | RecoveryPhase::Timeout
                if self.flight.has_lost() && (self.phase == RecoveryPhase::Open || is_lost_again) =>
            {
                self.begin_fast_recovery(cx, fx);
                self.first_is_free = !news.outdated;
                if !news.outdated {
                    // A loss that only time has shown counts as one delivery (Linux).
                    self.reduce_rate(cx, delivered.max(self.congestion.window.smss), safe);
                }
            }
            _ if news.outdated => {}
            RecoveryPhase::Open if self.reduced.is_on() => self.reduce_rate(cx, delivered, safe),
            // Without SACK, the acknowledgement that ends a fast recovery does not grow the window (RFC 6582 §3.2).
            // Where segments come far out of order, it grows by what is delivered (`tcp_may_raise_cwnd`).
            RecoveryPhase::Open | RecoveryPhase::Timeout
                if news.advanced && (phase_before != RecoveryPhase::Fast || cx.terms.sack)
                    || news.units > 0 && self.rack.reorders_far() =>
            {
                self.duplicates = 0;
                self.congestion.on_ack(news.units, cx.now);
            }
            RecoveryPhase::Fast => self.reduce_rate(cx, delivered, safe),
            _ => {}
        }
    }

    /// Without SACK: a duplicate says that some segment has arrived (RFC 5681 §3.2 step 4). Returns the units.
    fn inflate(&mut self, cx: &EndpointContext, news: News) -> u64 {
        if cx.terms.sack {
            return 0;
        }
        let smss = self.congestion.window.smss;
        let inflation = self.flight.dupack_inflation;
        if news.duplicate && self.phase != RecoveryPhase::Timeout {
            self.duplicates = self.duplicates.saturating_add(1);
            self.flight.dupack_inflation = (inflation + smss).min(self.flight.outstanding());
            return smss;
        }
        if news.advanced {
            // One unit filled the hole; the rest had come before, as duplicates said (RFC 6582 §3.2 step 3).
            self.flight.dupack_inflation = inflation.saturating_sub(news.units.saturating_sub(smss));
        }
        0
    }

    fn find_losses(&mut self, cx: &EndpointContext, fx: &mut Effects, advanced: bool) {
        if !cx.terms.sack {
            let third = self.duplicates >= DUPLICATE_THRESHOLD;
            // Duplicates of what was sent before the last recovery are no new loss (RFC 6582 §3.2 step 2).
            let fresh = self.flight.una >= self.point || self.reduced.is_on();
            // A partial acknowledgement: what follows it was lost, too (RFC 6582 §3.2 step 3).
            let partial = self.phase == RecoveryPhase::Fast && advanced;
            if self.phase == RecoveryPhase::Open && third && fresh || partial {
                self.flight.mark_first_lost();
            }
        } else if cx.profile.rack {
            self.find_losses_by_time(cx, fx);
        } else if self.flight.has_sacked() {
            self.flight.mark_lost_below(u32::from(DUPLICATE_THRESHOLD));
        }
    }

    fn find_losses_by_time(&mut self, cx: &EndpointContext, fx: &mut Effects) {
        // Without a hole nothing that was sent earlier is missing.
        let may_miss = self.flight.has_sacked() || self.phase != RecoveryPhase::Open;
        if may_miss && !self.rack.take_advanced() {
            return;
        }
        // What it was set for is worked out anew below.
        if fx.timers.runs_for(Purpose::Reordering) {
            fx.timers.retransmission = None;
        }
        if !may_miss {
            return;
        }
        // RFC 8985 §6.2 step 4.
        let sure = self.phase != RecoveryPhase::Open
            || self.flight.sacked_segments() >= u32::from(DUPLICATE_THRESHOLD);
        let least = self.rtt.least().unwrap_or_default();
        let srtt = self.rtt.srtt().unwrap_or_default();
        let window = self.rack.reordering_window(sure, least, srtt);
        if let Some(wait) = self.rack.detect_loss(&mut self.flight, cx.now, window) {
            fx.arm(cx, Purpose::Reordering, wait + TCP_TIMEOUT_MIN);
        }
    }

    fn begin_fast_recovery(&mut self, cx: &EndpointContext, fx: &mut Effects) {
        fx.counters.fast_recoveries += 1;
        if self.reduced.note_other() {
            // A mark has reduced the window already, and the same reduction goes on (`tcp_enter_recovery`).
            let reduction = self.reduction;
            self.enter(RecoveryPhase::Fast, self.point);
            self.reduction = reduction;
        } else {
            self.congestion.on_loss(self.flight.outstanding());
            self.begin_undo();
            self.enter(RecoveryPhase::Fast, self.flight.next);
        }
        self.first_is_free = true;
        if !cx.profile.rate_reduction {
            // RFC 6675 §5 step 4.2: the window halves at once.
            self.congestion.window.cwnd = self.congestion.window.ssthresh;
        }
    }

    /// The receiver echoes a mark of congestion: the window is reduced, once for a window of data, and not where a loss has
    /// reduced it (RFC 3168 §6.1.2). No reduction is taken back then: there was congestion (`tcp_fastretrans_alert`).
    fn on_congestion_echo(&mut self, cx: &EndpointContext) {
        if self.phase != RecoveryPhase::Open || self.reduced.is_on() || self.flight.has_lost() {
            return self.congestion.keep_reduction();
        }
        self.congestion.on_loss(self.flight.outstanding());
        self.undo.forget();
        self.reduced.begin();
        self.point = self.flight.next;
        self.reduction = RateReduction::default();
        if !cx.profile.rate_reduction {
            self.congestion.window.cwnd = self.congestion.window.ssthresh;
        }
    }

    /// What is under way again may still cause a D-SACK (`tcp_init_undo`).
    fn begin_undo(&mut self) {
        let under_way = self.flight.resent() as u32 + u32::from(self.probe.repeats());
        self.undo.begin(self.flight.una, under_way);
    }

    fn reduce_rate(&mut self, cx: &EndpointContext, delivered: u64, safe: bool) {
        // An acknowledgement that delivers nothing moves nothing (`tcp_cwnd_reduction`).
        if !cx.profile.rate_reduction || delivered == 0 {
            return;
        }
        let pipe = RecoveryPipe {
            in_flight: self.flight.in_flight(),
            ssthresh: self.congestion.window.ssthresh,
            cwnd_before: self.congestion.window_before(),
            smss: self.congestion.window.smss,
        };
        self.congestion.window.cwnd = self.reduction.on_delivered(&pipe, delivered, safe);
    }

    fn end_recovery(&mut self) {
        if self.phase == RecoveryPhase::Fast {
            // Rate reduction may have left it below, inflation above (RFC 6937 §3, RFC 6582 §3.2 step 3).
            self.congestion.window.cwnd = self.congestion.window.ssthresh;
        }
        self.flight.dupack_inflation = 0;
        self.rack.on_recovery_end(false);
        self.enter(RecoveryPhase::Open, self.point);
    }

    /// Begins another phase; what belonged to the last one is forgotten.
    fn enter(&mut self, phase: RecoveryPhase, point: u64) {
        // The repetition that a late acknowledgement shows to be needless is the first of the whole recovery, and of the next one
        // while it is under way (`retrans_stamp`, `tcp_any_retrans_done`).
        let is_other = self.phase == RecoveryPhase::Open || phase == RecoveryPhase::Open;
        if is_other && !self.flight.has_repetitions() {
            self.undo.retransmit_ts = None;
        }
        (self.phase, self.point) = (phase, point);
        (self.duplicates, self.first_is_free) = (0, false);
        self.forward_rto = ForwardRto::Off;
        self.reduction = RateReduction::default();
        self.probe.forget();
    }

    /// Starts the right timer after acknowledgements moved or did not (RFC 6298 §5.2 and §5.3, RFC 8985 §8).
    fn rearm(&mut self, cx: &EndpointContext, fx: &mut Effects, advanced: bool, delivered: &Delivered) {
        if advanced {
            // Only an acknowledgement that advances shows that repetitions get through (`tcp_ack`,
            // `icsk_retransmits`).
            self.retries = 0;
        }
        // RFC 6298 §5.2; a window probe's timer runs with nothing in flight.
        if self.flight.is_empty() {
            if !fx.timers.runs_for(Purpose::WindowProbe) {
                fx.timers.retransmission = None;
            }
            return;
        }
        // The reordering timer is the shortest, and looks at the rest when it fires.
        if fx.timers.runs_for(Purpose::Reordering) {
            return;
        }
        if self.may_probe_tail(cx) {
            if advanced {
                fx.arm(cx, Purpose::TailProbe, TailProbe::timeout(cx, &self.flight, &self.rtt));
            }
        // RFC 6298 §5.3; Linux also when a repetition cannot have been answered yet (`FLAG_SET_XMIT_TIMER`).
        } else if advanced || cx.profile.rack && self.flight.was_first_resent_after(delivered) {
            fx.arm(cx, Purpose::Timeout, self.rto(cx));
        } else if !fx.timers.runs_for(Purpose::Timeout) {
            // A probe's or the reordering timer had taken its place: it goes on from the first segment's sending.
            fx.arm(cx, Purpose::Timeout, self.rto_left(cx));
        }
    }

    /// What is left of the retransmission timeout of the first segment.
    fn rto_left(&self, cx: &EndpointContext) -> Duration {
        let sent_at: Option<Instant> = self.flight.first().map(|first| first.at);
        let waited = sent_at.map_or(Duration::ZERO, |at| cx.now.since(at));
        self.rto(cx).saturating_sub(waited)
    }
}

fn congestion(profile: &Profile, payload_max: u16) -> Congestion {
    Congestion::new(profile.congestion_control, profile.window_unit, profile.initial_window, payload_max)
}

/// What Linux adds to timeouts of its own making (`TCP_TIMEOUT_MIN_US`).
const TCP_TIMEOUT_MIN: Duration = Duration::from_ms(2);
/// RFC 5681 §3.2.
const DUPLICATE_THRESHOLD: u8 = 3;
