//! What an arriving segment does (RFC 9293 §3.10.7).

use crate::endpoint::{Endpoint, State};
use crate::receive::{Arrival, Range};
use crate::segment::{Flags, Segment};

impl Endpoint {
    /// A segment has arrived.
    pub fn receive(&mut self, now: mqttlab_units::Instant, segment: &Segment) {
        self.advance_clock(now);
        match self.state {
            State::Closed if segment.flags.has(Flags::RST) => {}
            State::Closed => self.refuse(segment),
            State::Listen => self.receive_in_listen(segment),
            State::SynSent => self.receive_in_syn_sent(segment),
            _ => self.receive_synchronised(segment),
        }
    }

    /// All states from SYN-RECEIVED on (RFC 9293 §3.10.7.4).
    fn receive_synchronised(&mut self, segment: &Segment) {
        let Some(start) = segment.seq.position(self.terms.peer_initial, self.rx.next) else {
            return self.challenge(segment);
        };
        if self.is_outdated(segment) || !self.is_acceptable(segment, start) {
            return self.on_unacceptable(segment, start);
        }
        if segment.flags.has(Flags::RST) && self.state == State::TimeWait {
            // A late reset must not cut TIME-WAIT short (RFC 1337), and there is nobody left to tell.
            return;
        }
        if segment.flags.has(Flags::RST) {
            // Only an exact hit resets; anything else might be forged (RFC 5961 §3.2).
            return if start == self.rx.next { self.end_by_reset() } else { self.challenge(segment) };
        }
        if segment.flags.has(Flags::SYN) {
            return self.challenge(segment);
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let Some(ack) = segment.ack.position(self.tx.initial, self.tx.acknowledged) else { return };
        if self.state == State::SynReceived {
            if ack != 1 {
                return self.refuse(segment);
            }
            self.establish(segment);
        }
        if ack > self.tx.next {
            return self.challenge(segment);
        }
        self.note_timestamp(segment, start);
        self.probes = 0;
        self.touch_keep_alive();
        if ack >= self.tx.acknowledged {
            self.take_acknowledgement(segment, ack);
        }
        if segment.sequence_length() > 0 && self.state != State::Closed {
            self.take_data(segment, start);
        }
    }

    /// PAWS (RFC 7323 §5), for segments that carry something: acknowledgements alone may be reordered freely.
    fn is_outdated(&self, segment: &Segment) -> bool {
        let Some(stamps) = segment.timestamps.filter(|_| self.terms.timestamps) else { return false };
        let older = stamps.value.wrapping_sub(self.terms.recent) > 1 << 31;
        older && segment.sequence_length() > 0 && !segment.flags.has(Flags::RST)
    }

    /// Whether any of the segment lies in the window. A late acknowledgement of before the last one sent is let
    /// through, as Linux does, so that reordering does not make acknowledgements answer each other.
    fn is_acceptable(&self, segment: &Segment, start: u64) -> bool {
        let end = start + segment.sequence_length();
        if segment.sequence_length() == 0 {
            return end >= self.rx.acknowledged && start <= self.rx.edge.max(self.rx.next);
        }
        end > self.rx.next && (start < self.rx.edge || start <= self.rx.next)
    }

    fn on_unacceptable(&mut self, segment: &Segment, start: u64) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if self.state == State::SynReceived && segment.flags.has(Flags::SYN) {
            if segment.flags.has(Flags::ACK) && segment.ack == self.tx.initial.at(1) {
                // Both had opened at once (RFC 9293 figure 7).
                self.establish(segment);
            } else {
                // The SYN-ACK was lost, or the peer is impatient.
                if let Some(stamps) = segment.timestamps.filter(|_| self.profile.syn.echoes_latest) {
                    self.terms.recent = stamps.value;
                }
                self.handshake.due = true;
            }
            return;
        }
        if self.state == State::TimeWait {
            self.begin_time_wait();
        }
        let old_data = segment.length > 0;
        if old_data && start < self.rx.next {
            let end = (start + u64::from(segment.length)).min(self.rx.next);
            self.rx.repeated = Some(Range { start, end });
        }
        let ends_there = start + segment.sequence_length() == self.rx.acknowledged;
        if self.profile.echoes_repetitions && ends_there && segment.sequence_length() > 0 {
            self.note_timestamp(segment, start);
        }
        self.ack.on_disorder(old_data, self.profile.delayed_ack);
        // The acknowledgement in it may be news even so (RFC 9293 §3.10.7.4, last paragraph of the first step).
        if let Some(ack) = segment.ack.position(self.tx.initial, self.tx.acknowledged)
            && segment.flags.has(Flags::ACK)
            && self.is_synchronised()
            && ack >= self.tx.acknowledged
            && ack <= self.tx.next
            && old_data
        {
            self.take_acknowledgement(segment, ack);
        }
    }

    /// Tells the peer what is expected (RFC 5961 "challenge ACK").
    pub(crate) fn challenge(&mut self, segment: &Segment) {
        if self.is_synchronised() && !(segment.flags.has(Flags::RST) && self.state == State::TimeWait) {
            (self.ack.owed, self.ack.urgent) = (true, true);
        }
    }

    /// RFC 7323 §4.3: the timestamp to echo is that of the segment that the last acknowledgement was about.
    fn note_timestamp(&mut self, segment: &Segment, start: u64) {
        let Some(stamps) = segment.timestamps.filter(|_| self.terms.timestamps) else { return };
        let newer = stamps.value.wrapping_sub(self.terms.recent) < 1 << 31;
        if newer && start <= self.rx.acknowledged {
            self.terms.recent = stamps.value;
        }
    }

    fn take_data(&mut self, segment: &Segment, start: u64) {
        let whole = start + u64::from(segment.length);
        if self.reader_gone && segment.length > 0 && whole > self.rx.next {
            // Nobody will ever read it (RFC 1122 §4.2.2.13).
            return self.abort_with_reset();
        }
        let end = whole.min(self.rx.edge).max(start);
        let ends = segment.flags.has(Flags::FIN) && end == whole;
        if ends {
            self.rx.fin = Some(end);
        }
        // Beyond a gap a FIN is kept and selectively acknowledged like a byte; in order it is counted apart, below.
        let beyond = ends && start > self.rx.next;
        if (segment.length > 0 || beyond) && self.rx.fin.is_none_or(|fin| end <= fin) {
            self.take_bytes(segment, start, end + u64::from(beyond));
        }
        self.after_peers_fin();
    }

    fn take_bytes(&mut self, segment: &Segment, start: u64, end: u64) {
        let policy = self.profile.delayed_ack;
        match self.rx.accept(start, end) {
            Arrival::InOrder { filled } => {
                self.events.readable = true;
                let circumstances = self.circumstances();
                let push = segment.flags.has(Flags::PSH);
                let delay = self.ack.on_data(segment.length, push, policy, &circumstances);
                if filled && !self.rx.has_gap() {
                    self.ack.on_disorder(false, policy);
                } else if filled {
                    self.on_gap();
                }
                if let (Some(delay), None) = (delay, self.timers.ack) {
                    self.timers.ack = Some(self.profile.granularity.ack_deadline(self.now, delay));
                }
            }
            Arrival::OutOfOrder => self.on_gap(),
            Arrival::Duplicate => self.ack.on_disorder(true, policy),
        }
    }

    /// Something has come beyond a gap, or before one.
    fn on_gap(&mut self) {
        let circumstances = self.circumstances();
        let policy = self.profile.delayed_ack;
        if let Some(wait) = self.ack.on_gap(self.rx.next, self.terms.sack, policy, &circumstances) {
            self.timers.compression = Some(self.now + wait);
        }
    }
}
