//! When received data is acknowledged (RFC 1122 §4.2.3.2, RFC 5681 §4.2; Linux `tcp_input.c`, `tcp_timer.c`).
//!
//! Linux has three modes, and MQTT meets all of them:
//!
//! | mode | begins | an in-order segment is acknowledged |
//! |---|---|---|
//! | *quick* | with the first data, after a pause of an RTO, after old data | at once, up to 16 times |
//! | *one-way* | when the quick ones are used up | small: when the application reads it; else every second one |
//! | *ping-pong* | when data is sent within the timeout after data came | on the answer, or after 40 ms; back to one-way then |
//!
//! | event | `EverySecond` (RFC 1122, the BSDs, lwIP) | `Adaptive` (Linux) |
//! |---|---|---|
//! | in-order segment | owed; the second at once | as the mode says; two full segments at once if the window can open |
//! | beyond a gap (RFC 5681 §4.2) | at once | the first three at once, then together after ≤ 1 ms (SACK) |
//! | a gap ends, old data (RFC 5681 §4.2) | at once | at once; old data makes it quick |
//! | the application reads | at once if the window opens by two segments or half the buffer | small data is acknowledged; at once if the window doubles |
//! | timer | at once | at once; the timeout doubles, or ping-pong ends |
//! | a segment leaves | it carries the acknowledgement: nothing is owed | the same |

use mqttlab_units::{Duration, Instant};

use crate::profile::DelayedAck;

#[derive(Clone, Debug, Default)]
pub(crate) struct Acknowledger {
    /// Data has come that is not acknowledged.
    owed: bool,
    /// It must be at once.
    urgent: bool,
    /// Quick acknowledgements left.
    quick: u8,
    /// The application answers what it receives.
    ping_pong: bool,
    /// Small segments since the last acknowledgement (0, 1, 2 or more).
    pushed: u8,
    /// Segments since the last acknowledgement.
    segments: u8,
    /// The adapting timeout; zero before the first data.
    timeout: Duration,
    last_data_at: Instant,
    /// Estimate of the peer's full segment.
    segment_bytes: u16,
    /// Segments beyond a gap that begins here were answered at once so often.
    gap_at: u64,
    answered: u8,
    /// How many since were not, and wait for one acknowledgement together.
    compressed: u8,
}

/// What the decision needs to know of the rest of the endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub now: Instant,
    pub rto: Duration,
    pub rto_min: Duration,
    pub srtt: Option<Duration>,
    /// Bytes received in order since the last acknowledgement was sent.
    pub unacknowledged: u64,
    /// Bytes that wait for the application.
    pub unread: u64,
    /// The window as last advertised, what is left of it, and the one that could be now.
    pub advertised: u64,
    pub window: u64,
    pub window_now: u64,
    pub buffer: u64,
}

impl Acknowledger {
    pub fn new(mss: u16, window: u64) -> Acknowledger {
        // Linux guesses low, so that small segments are not taken for full ones (`tcp_initialize_rcv_mss`).
        let guess = u64::from(mss.min(536)).min(window / 2).max(88);
        Acknowledger { segment_bytes: guess as u16, ..Acknowledger::default() }
    }

    /// The largest segment that has come, or a low guess before.
    pub fn segment_bytes(&self) -> u16 {
        self.segment_bytes
    }

    /// A segment of `length` bytes came in order. Returns how long its acknowledgement may wait.
    pub fn on_data(
        &mut self,
        length: u16,
        push: bool,
        policy: DelayedAck,
        at: &Circumstances,
    ) -> Option<Duration> {
        self.owed = true;
        self.segments = self.segments.saturating_add(1);
        // Linux counts what is smaller than the largest seen as pushed by its sender (`tcp_measure_rcv_mss`).
        if length >= self.segment_bytes {
            self.segment_bytes = length;
            self.pushed = self.pushed.max(u8::from(push));
        } else {
            self.pushed = (self.pushed + 1).min(2);
        }
        match policy {
            DelayedAck::Off => self.urgent = true,
            DelayedAck::EverySecond { timeout } => {
                // RFC 1122 §4.2.3.2 asks this of full segments only; the BSDs and lwIP count all.
                self.urgent |= self.segments >= 2;
                return Some(timeout);
            }
            DelayedAck::Adaptive { min, max } => {
                // Before the decision: a pause makes it quick, and this segment is the first to profit.
                self.adapt(min, at);
                // More than a full segment, and the right edge would move (`__tcp_ack_snd_check`).
                let two_segments = at.unacknowledged > u64::from(self.segment_bytes);
                self.urgent |= self.is_quick() || two_segments && at.window_now >= at.advertised;
                return Some(self.delay(min, max, at));
            }
        }
        None
    }

    /// A segment came beyond a gap that begins at `next`. The sender should hear of it at once (RFC 5681 §4.2); but Linux
    /// says so for the first three only, and then lets selective acknowledgements wait for each other
    /// (`__tcp_ack_snd_check`). Returns for how long, if this one begins to.
    pub fn on_gap(
        &mut self,
        next: u64,
        sack: bool,
        policy: DelayedAck,
        at: &Circumstances,
    ) -> Option<Duration> {
        self.owed = true;
        // RCV.NXT has moved, so that this is another gap (`compressed_ack_rcv_nxt`).
        if self.gap_at != next {
            (self.gap_at, self.answered) = (next, 0);
        }
        // Without SACK the sender counts duplicates, and none may be left out (`__tcp_ack_snd_check`).
        let compresses = sack && matches!(policy, DelayedAck::Adaptive { .. }) && !self.is_quick();
        if !compresses || self.answered < ANSWERED_AT_ONCE || self.compressed >= COMPRESSED_MAX {
            self.answered = self.answered.saturating_add(1);
            self.urgent = true;
            return None;
        }
        self.compressed += 1;
        let share = Duration::from_ns(at.srtt.unwrap_or_default().as_ns() / 20);
        (self.compressed == 1).then(|| share.min(COMPRESSION_MAX) + COMPRESSION_SLACK)
    }

    /// Compressed acknowledgements have waited long enough.
    pub fn on_compression_timer(&mut self) {
        self.urgent |= self.compressed > 0;
    }

    /// Whether an acknowledgement must leave now, by itself if need be.
    pub fn is_due(&self) -> bool {
        self.urgent
    }

    /// The peer must hear at once what is expected.
    pub fn at_once(&mut self) {
        (self.owed, self.urgent) = (true, true);
    }

    /// The connection is at its end.
    pub fn stop(&mut self) {
        (self.owed, self.urgent) = (false, false);
    }

    /// Something came that the sender should hear of at once: the end of a gap, or old data (RFC 5681 §4.2).
    pub fn on_disorder(&mut self, duplicate: bool, policy: DelayedAck) {
        self.at_once();
        if let (true, DelayedAck::Adaptive { min, .. }) = (duplicate, policy) {
            // The acknowledgement may have been lost: Linux becomes quick again.
            self.ping_pong = false;
            self.quick = QUICK_MAX;
            self.timeout = min;
        }
    }

    /// The application has read something.
    pub fn on_read(&mut self, policy: DelayedAck, at: &Circumstances) {
        let adaptive = matches!(policy, DelayedAck::Adaptive { .. });
        if adaptive && self.owed {
            // `tcp_cleanup_rbuf`: nothing is left to read, so that no answer is to be expected from what is.
            let read_all = at.unread == 0;
            let small = self.pushed == 2 || self.pushed == 1 && !self.ping_pong;
            self.urgent |= read_all && small || at.unacknowledged > u64::from(self.segment_bytes);
        }
        // A window that has opened wide is worth a segment of its own.
        let doubled = 2 * at.window <= at.buffer && at.window_now >= 2 * at.window.max(1);
        let two_segments = at.window_now >= at.window + 2 * u64::from(self.segment_bytes)
            || at.window_now >= at.window + at.buffer / 2;
        self.urgent |= if adaptive { doubled } else { two_segments };
        self.owed |= self.urgent;
    }

    /// The network has marked data, or it was sent again: the next two are acknowledged at once (Linux
    /// `tcp_enter_quickack_mode`).
    pub fn on_congestion(&mut self, policy: DelayedAck) {
        if let DelayedAck::Adaptive { min, .. } = policy {
            self.ping_pong = false;
            self.quick = self.quick.max(2);
            self.timeout = min;
        }
    }

    /// The timer of the delayed acknowledgement has run out.
    pub fn on_timer(&mut self, policy: DelayedAck, at: &Circumstances) {
        if !self.owed {
            return;
        }
        self.urgent = true;
        if let DelayedAck::Adaptive { min, .. } = policy {
            // `tcp_delack_timer_handler`: the answer did not come, so the application is not interactive after all.
            if self.ping_pong {
                self.ping_pong = false;
                self.timeout = min;
            } else {
                self.timeout = (self.timeout * 2).min(at.rto);
            }
        }
    }

    /// An acknowledgement has left, by itself or on data.
    pub fn on_acknowledged(&mut self, policy: DelayedAck) {
        // Any segment uses up a quick acknowledgement (`tcp_dec_quickack_mode`).
        if self.owed && self.quick > 0 {
            self.quick -= 1;
            if let (0, DelayedAck::Adaptive { min, .. }) = (self.quick, policy) {
                self.timeout = min;
            }
        }
        (self.owed, self.urgent, self.pushed, self.segments) = (false, false, 0, 0);
        self.compressed = 0;
    }

    /// Data was sent: if soon after data came, the application answers it.
    pub fn on_data_sent(&mut self, now: Instant) {
        // `tcp_event_data_sent`: within the present timeout (`icsk_ack.ato`), or it answers something else.
        if now.since(self.last_data_at) < self.timeout {
            self.ping_pong = true;
        }
    }

    fn is_quick(&self) -> bool {
        self.quick > 0 && !self.ping_pong
    }

    /// `tcp_event_data_recv`: the timeout follows the time between segments; after a pause, quick again.
    fn adapt(&mut self, min: Duration, at: &Circumstances) {
        let least = min.as_ns();
        let gap = at.now.since(self.last_data_at);
        self.last_data_at = at.now;
        // The first data: the peer is in slow start, and each acknowledgement grows its window.
        if self.timeout.is_zero() {
            self.become_quick(at);
            self.timeout = min;
        } else if gap.as_ns() <= least / 2 {
            self.timeout = Duration::from_ns(self.timeout.as_ns() / 2 + least / 2);
        } else if gap < self.timeout {
            self.timeout = (Duration::from_ns(self.timeout.as_ns() / 2) + gap).min(at.rto);
        // After so long the sender may have gone back to its initial window (RFC 5681 §4.1).
        } else if gap > at.rto {
            self.become_quick(at);
        }
    }

    fn become_quick(&mut self, at: &Circumstances) {
        // Half a window's worth of them: enough to get the sender's slow start going (`tcp_incr_quickack`).
        let half_a_window = at.window / (2 * u64::from(self.segment_bytes));
        let quick = if half_a_window == 0 { 2 } else { half_a_window.min(u64::from(QUICK_MAX)) as u8 };
        self.quick = self.quick.max(quick);
    }

    /// `tcp_send_delayed_ack`.
    fn delay(&self, min: Duration, max: Duration, at: &Circumstances) -> Duration {
        let mut delay = self.timeout;
        if delay > min {
            // `TCP_DELACK_MAX` where an answer or a pushed segment may follow, half a second else.
            let patient = self.ping_pong || self.pushed > 0;
            let mut bound = if patient { max } else { Duration::from_ms(500) };
            if let Some(srtt) = at.srtt {
                bound = bound.min(srtt.max(min));
            }
            delay = delay.min(bound);
        }
        // A peer alike would retransmit after its minimum timeout: the acknowledgement must be there before.
        delay.min(max).min(at.rto_min)
    }
}

/// `TCP_MAX_QUICKACKS`.
const QUICK_MAX: u8 = 16;
/// `TCP_FASTRETRANS_THRESH`.
const ANSWERED_AT_ONCE: u8 = 3;
/// `tcp_comp_sack_nr`, `tcp_comp_sack_delay_ns` and `tcp_comp_sack_slack_ns`. The timer runs for a twentieth of a round
/// trip, and fires as late as it may.
const COMPRESSED_MAX: u8 = 44;
const COMPRESSION_MAX: Duration = Duration::from_ms(1);
const COMPRESSION_SLACK: Duration = Duration::from_us(100);
