//! Which segment leaves next: buffer, windows, Nagle, probes.

use mqttlab_units::{Duration, Instant};

use crate::endpoint::{Endpoint, State};
use crate::gathering::Gathering;
use crate::profile::Nagle;
use crate::recovery::Phase;
use crate::scoreboard::Sent;
use crate::segment::{Flags, SackBlocks, Segment, Timestamps};
use crate::sequence::Seq;
use crate::timers::Purpose;

/// The sending half's bookkeeping, in positions.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// ISS.
    pub initial: Seq,
    /// SND.UNA.
    pub acknowledged: u64,
    /// SND.NXT.
    pub next: u64,
    /// One past the last byte that the application has written; the FIN's position.
    pub end: u64,
    /// The buffers of what is written.
    pub gathering: Gathering,
    /// No more will be written.
    pub fin: bool,
    /// Right edge of the peer's window, and the segment that set it (SND.WL1, SND.WL2).
    pub edge: u64,
    edge_seq: Seq,
    edge_ack: u64,
    /// The largest window ever offered.
    window_max: u64,
    /// End of the last segment sent that was not full.
    small_end: u64,
    last_sent_at: Instant,
    /// A window probe may fill a window that is too small to be worth a segment.
    squeeze: bool,
    /// Window probes since something could last be sent, answered or not.
    window_probes: u8,
    /// The congestion window stopped the present drain; something was sent in it.
    held_back: bool,
    sent_any: bool,
}

impl Sender {
    pub fn new(initial: Seq) -> Sender {
        Sender {
            initial,
            acknowledged: 0,
            next: 0,
            end: 1,
            gathering: Gathering::default(),
            fin: false,
            edge: 0,
            edge_seq: Seq(0),
            edge_ack: 0,
            window_max: 0,
            small_end: 0,
            last_sent_at: Instant::ZERO,
            squeeze: false,
            window_probes: 0,
            held_back: false,
            sent_any: false,
        }
    }

    /// The first window, from the segment that completed the handshake.
    pub fn begin_window(&mut self, segment: &Segment, scale: u8) {
        (self.edge, self.edge_seq, self.edge_ack) = (1, segment.seq, 1);
        self.update_window(segment, 1, scale);
    }

    pub fn edge_unchanged(&self, segment: &Segment, ack: u64, scale: u8) -> bool {
        ack + (u64::from(segment.window) << scale) == self.edge
    }

    /// RFC 9293 §3.10.7.4: only from a segment that is newer than the last that set the window.
    pub fn update_window(&mut self, segment: &Segment, ack: u64, scale: u8) {
        let age = segment.seq.0.wrapping_sub(self.edge_seq.0) as i32;
        if age > 0 || age == 0 && ack >= self.edge_ack {
            let window = u64::from(segment.window) << scale;
            (self.edge, self.edge_seq, self.edge_ack) = (ack + window, segment.seq, ack);
            self.window_max = self.window_max.max(window);
        }
    }

    /// Bytes written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }

    fn fin_unsent(&self) -> bool {
        self.fin && self.next <= self.end
    }
}

impl Endpoint {
    /// The next segment, if any must leave now.
    pub(crate) fn next_segment(&mut self) -> Option<Segment> {
        if let Some(reset) = self.next_reset() {
            return Some(reset);
        }
        match self.state {
            State::Closed | State::Listen => return None,
            State::SynSent | State::SynReceived => return self.next_syn(),
            State::TimeWait | State::FinWait2 => {}
            _ => {
                if let Some(segment) = self.next_data() {
                    return Some(segment);
                }
            }
        }
        if std::mem::take(&mut self.window_probe_due) {
            self.counters.retransmissions += 1;
            return Some(self.emit(self.tx.acknowledged - 1, 0, Flags::ACK));
        }
        if self.ack.urgent {
            return Some(self.emit(self.tx.next, 0, Flags::ACK));
        }
        self.settle();
        None
    }

    /// The window was closed for a whole probe interval (RFC 9293 §3.8.6.1).
    pub(crate) fn on_window_probe(&mut self) {
        if u32::from(self.probes) >= self.profile.retries {
            return self.give_up();
        }
        self.probes = self.probes.saturating_add(1);
        self.tx.window_probes = self.tx.window_probes.saturating_add(1);
        // The peer's window is open but too small to be worth it: send what fits (RFC 1122 §4.2.3.4 (4)).
        self.tx.squeeze = self.tx.edge > self.tx.next;
        self.window_probe_due = !self.tx.squeeze;
    }

    /// Starts the right timer after acknowledgements moved or did not.
    pub(crate) fn rearm_after_acknowledgement(&mut self, advanced: bool) {
        if advanced {
            self.retries = 0;
        }
        if self.board.is_empty() {
            if !self.timers.is_running_for(Purpose::WindowProbe) {
                self.timers.retransmission = None;
            }
            return;
        }
        if self.timers.is_running_for(Purpose::Reordering) {
            return;
        }
        if self.may_probe_tail() {
            if advanced {
                self.arm_tail_probe();
            }
        } else if advanced {
            self.arm(Purpose::Timeout, self.rtt.timeout(&self.profile.rto));
        } else if !self.timers.is_running_for(Purpose::Timeout) {
            self.arm(Purpose::Timeout, self.timeout_left());
        }
    }

    fn next_data(&mut self) -> Option<Segment> {
        if std::mem::take(&mut self.tail_probe_due) {
            return self.next_tail_probe();
        }
        if self.board.has_waiting() {
            return self.next_resent();
        }
        let length = self.sendable_now()?;
        let units = if self.congestion.smss() == 1 { 1 } else { u64::from(length).max(1) };
        if !self.has_room_for(units) {
            self.tx.held_back = true;
            return None;
        }
        Some(self.send_new(length))
    }

    /// Whether the congestion window lets `units` more into the network.
    fn has_room_for(&self, units: u64) -> bool {
        let mut in_flight = self.board.in_flight();
        if !self.profile.limited_transmit && self.recovery.phase == Phase::Open {
            // Without RFC 3042, duplicates make no room before the third.
            in_flight = self.board.outstanding();
        }
        in_flight + units <= self.congestion.window || in_flight == 0
    }

    fn next_resent(&mut self) -> Option<Segment> {
        let smss = self.congestion.smss();
        if !self.recovery.first_is_free && !self.has_room_for(smss) {
            self.tx.held_back = true;
            return None;
        }
        let limit = self.payload_limit(&self.sack_blocks());
        let again = self.board.resend_lost(limit, self.now)?;
        self.note_resent();
        // The timer watches the first segment, from its latest sending on (RFC 6675 §6, Linux, the BSDs): what is
        // repeated now must not be repeated again before its acknowledgement can be here.
        let is_first = again.start == self.tx.acknowledged;
        if is_first && !self.timers.is_running_for(Purpose::Reordering)
            || self.timers.retransmission.is_none_or(|(purpose, _)| purpose == Purpose::TailProbe)
        {
            self.arm(Purpose::Timeout, self.rtt.timeout(&self.profile.rto));
        }
        Some(self.emit_again(again))
    }

    /// RFC 8985 §7.3: new data if there is any that fits the peer's window, whatever Nagle's algorithm says, else the
    /// last segment again.
    fn next_tail_probe(&mut self) -> Option<Segment> {
        let length = self.tx.unsent().min(u64::from(self.payload_limit(&self.sack_blocks())));
        let fits = (length > 0 && self.tx.next + length <= self.tx.edge).then_some(length as u16);
        let segment = match fits {
            Some(length) => self.send_new(length),
            None => {
                let last = self.board.resend_last(self.now)?;
                self.counters.retransmissions += 1;
                self.emit_again(last)
            }
        };
        self.probe_sent(fits.is_none());
        self.arm(Purpose::Timeout, self.rtt.timeout(&self.profile.rto));
        Some(segment)
    }

    /// Bytes of the next new segment as far as buffer, peer's window, Nagle and silly-window avoidance
    /// (RFC 1122 §4.2.3.4) let it leave now; zero for a FIN by itself.
    fn sendable_now(&mut self) -> Option<u16> {
        let tx = &self.tx;
        let unsent = tx.unsent();
        if unsent == 0 && !tx.fin_unsent() {
            return None;
        }
        let full = u64::from(self.payload_limit(&self.sack_blocks()));
        let room = tx.edge.saturating_sub(tx.next);
        // A buffer that is closed leaves as it is, and does not wait for more.
        let closed = tx.gathering.closed.saturating_sub(tx.next);
        let gathered = if closed > 0 { closed } else { unsent };
        let length = gathered.min(full).min(room);
        let ends = tx.fin_unsent() && length == unsent && room > length;
        let worthwhile = length == full
            || ends
            || closed > 0 && length == closed
            || length > 0 && length == unsent && self.nagle_lets_go()
            || length > 0 && length < unsent && 2 * length >= tx.window_max;
        let squeezed = tx.squeeze && length > 0;
        (worthwhile || squeezed).then_some(length as u16)
    }

    fn nagle_lets_go(&self) -> bool {
        match self.nagle {
            Nagle::Off => true,
            Nagle::Classic => self.board.is_empty(),
            Nagle::Minshall => self.tx.small_end <= self.tx.acknowledged,
        }
    }

    fn send_new(&mut self, length: u16) -> Segment {
        if self.board.is_empty() {
            let idle = self.now.since(self.tx.last_sent_at);
            let timeout = self.rtt.timeout(&self.profile.rto);
            self.congestion.restart(idle, timeout, &self.profile);
        }
        let start = self.tx.next;
        let emptied = u64::from(length) == self.tx.unsent();
        let pushed = emptied || start + u64::from(length) == self.tx.gathering.closed;
        let fin = self.tx.fin && emptied && self.tx.edge > start + u64::from(length);
        if length < self.payload_limit(&self.sack_blocks()) {
            self.tx.small_end = start + u64::from(length);
        }
        let taken = length + u16::from(fin);
        self.board.push(start, taken, self.now);
        self.tx.next += u64::from(taken);
        self.tx.last_sent_at = self.now;
        (self.tx.squeeze, self.tx.window_probes) = (false, 0);
        self.tx.sent_any = true;
        self.counters.data_segments += u64::from(length > 0);
        self.recovery.on_sent(if self.congestion.smss() == 1 { 1 } else { u64::from(taken) });
        self.arm_after_sending();
        self.ack.on_data_sent(self.now);
        self.emit(start, length, data_flags(length, fin, pushed))
    }

    fn emit_again(&mut self, again: Sent) -> Segment {
        let fin = self.tx.fin && again.end() > self.tx.end;
        let length = again.length - u16::from(fin);
        self.recovery.on_sent(if self.congestion.smss() == 1 { 1 } else { u64::from(again.length) });
        self.tx.last_sent_at = self.now;
        let emptied = again.start + u64::from(length) == self.tx.end;
        self.emit(again.start, length, data_flags(length, fin, emptied))
    }

    /// Makes a segment. Whatever leaves carries the acknowledgement.
    fn emit(&mut self, position: u64, length: u16, flags: Flags) -> Segment {
        let buffer = u64::from(self.profile.receive_buffer);
        self.rx.edge = self.rx.offer(buffer, u64::from(self.payload_max()));
        self.rx.acknowledged = self.rx.next;
        self.ack.on_acknowledged(self.profile.delayed_ack);
        (self.timers.ack, self.timers.compression) = (None, None);
        let mut sack = self.sack_blocks();
        if length > self.payload_limit(&sack) {
            sack = SackBlocks::default();
        }
        self.rx.repeated = None;
        Segment {
            seq: self.tx.initial.at(position),
            ack: self.terms.peer_initial.at(self.rx.next),
            window: (self.rx.window() >> self.terms.own_scale).min(65_535) as u16,
            length,
            flags,
            timestamps: self
                .terms
                .timestamps
                .then(|| Timestamps { value: self.timestamp(), echo: self.terms.recent }),
            sack,
            ..Segment::default()
        }
    }

    /// RFC 2018 §4: as many blocks as fit 40 bytes of options, what came twice first (RFC 2883 §4), then the latest.
    fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if self.terms.sack {
            let most = if self.terms.timestamps { 3 } else { 4 };
            let repeated = self.rx.repeated.iter().filter(|_| self.profile.dsack);
            for range in repeated.chain(self.rx.ranges()).take(most) {
                let initial = self.terms.peer_initial;
                blocks.push(initial.at(range.start), initial.at(range.end));
            }
        }
        blocks
    }

    fn payload_limit(&self, sack: &SackBlocks) -> u16 {
        self.payload_max() - sack.option_bytes()
    }

    fn arm_after_sending(&mut self) {
        if self.may_probe_tail() {
            self.arm_tail_probe();
        } else if self.timers.retransmission.is_none_or(|(purpose, _)| purpose == Purpose::WindowProbe) {
            self.arm(Purpose::Timeout, self.rtt.timeout(&self.profile.rto));
        }
    }

    /// RFC 8985 §7.2, with Linux's allowances: the peer may delay the acknowledgement of a single segment.
    fn arm_tail_probe(&mut self) {
        let patience = match self.rtt.srtt() {
            Some(srtt) if self.board.len() == 1 => srtt * 2 + self.profile.rto.min,
            Some(srtt) => srtt * 2 + Duration::from_ms(2),
            None => self.profile.rto.initial,
        };
        let timeout = self.rtt.timeout(&self.profile.rto);
        self.arm(Purpose::TailProbe, patience.min(timeout));
    }

    /// What is left of the retransmission timeout of the first segment.
    fn timeout_left(&self) -> Duration {
        let timeout = self.rtt.timeout(&self.profile.rto);
        let waited = self.board.first().map_or(Duration::ZERO, |first| self.now.since(first.at));
        timeout.saturating_sub(waited)
    }

    /// At the end of a drain: what stopped the sender, and whether the peer's window must be probed.
    fn settle(&mut self) {
        let full = self.board.in_flight() + self.congestion.smss() > self.congestion.window;
        let limited = self.tx.held_back || full;
        if self.tx.sent_any || limited {
            let (acknowledged, next) = (self.tx.acknowledged, self.tx.next);
            self.congestion.note_usage(self.board.outstanding(), limited, acknowledged, next);
        }
        (self.tx.held_back, self.tx.sent_any) = (false, false);
        let waits = self.tx.unsent() > 0 || self.tx.fin_unsent();
        if waits && self.board.is_empty() && self.timers.retransmission.is_none() && self.is_synchronised() {
            let timeout = self.rtt.base_timeout(&self.profile.rto).as_ns();
            // An answer shows that the peer lives, but not that it will read soon: the interval goes on growing.
            let doubled = Duration::from_ns(timeout.saturating_mul(1 << self.tx.window_probes.min(20)));
            self.arm(Purpose::WindowProbe, doubled.min(self.profile.rto.max));
        }
    }
}

fn data_flags(length: u16, fin: bool, pushed: bool) -> Flags {
    let mut flags = Flags::ACK;
    if length > 0 && pushed {
        flags = flags.with(Flags::PSH);
    }
    if fin { flags.with(Flags::FIN) } else { flags }
}
