//! Ending a connection: in order (RFC 9293 §3.6), by reset, by giving up; and probing a silent peer.

use mqttlab_units::Instant;

use crate::endpoint::{Endpoint, State};
use crate::segment::{Flags, Segment};
use crate::sequence::Seq;

/// A reset that waits to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reset {
    seq: Seq,
    ack: Option<Seq>,
}

impl Endpoint {
    /// The application will write no more; it may go on reading (`shutdown(SHUT_WR)`).
    pub fn shutdown(&mut self, now: Instant) {
        self.advance_clock(now);
        match self.state {
            // The FIN waits for the handshake (RFC 9293 §3.10.4): the SYN may have to be repeated.
            State::SynReceived => {}
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            State::Listen => self.state = State::Closed,
            State::SynSent => self.drop_attempt(),
            _ => return,
        }
        self.tx.fin = self.state != State::Closed;
    }

    /// The application wants no more of the connection (`close`). What it has written is still delivered; but
    /// data that it has not read, or that comes later, resets the connection (RFC 1122 §4.2.2.13).
    pub fn close(&mut self, now: Instant) {
        self.advance_clock(now);
        if self.is_synchronised() && self.rx.unread() > 0 {
            return self.abort(now);
        }
        self.reader_gone = true;
        self.shutdown(now);
        if self.state == State::FinWait2 {
            self.arm_last_wait();
        }
    }

    /// Ends the connection at once with a reset (RFC 9293 §3.10.5).
    pub fn abort(&mut self, now: Instant) {
        self.advance_clock(now);
        match self.state {
            State::Closed | State::TimeWait => {}
            State::Listen | State::SynSent => self.drop_attempt(),
            _ => {
                self.reset_due = Some(Reset { seq: self.tx.initial.at(self.tx.next), ack: None });
                self.end();
            }
        }
    }

    /// The reset that is due.
    pub(crate) fn next_reset(&mut self) -> Option<Segment> {
        let Reset { seq, ack } = self.reset_due.take()?;
        let flags = if ack.is_some() { Flags::RST.with(Flags::ACK) } else { Flags::RST };
        Some(Segment { seq, ack: ack.unwrap_or_default(), flags, ..Segment::default() })
    }

    /// Nobody here is expecting this segment (RFC 9293 §3.5.2 group 1).
    pub(crate) fn refuse(&mut self, segment: &Segment) {
        self.reset_due = Some(if segment.flags.has(Flags::ACK) {
            Reset { seq: segment.ack, ack: None }
        } else {
            let end = Seq(segment.seq.0.wrapping_add(segment.sequence_length() as u32));
            Reset { seq: Seq(0), ack: Some(end) }
        });
    }

    pub(crate) fn abort_with_reset(&mut self) {
        self.reset_due = Some(Reset { seq: self.tx.initial.at(self.tx.next), ack: None });
        self.events.reset = true;
        self.end();
    }

    /// The peer has reset the connection.
    pub(crate) fn end_by_reset(&mut self) {
        self.events.reset = true;
        self.end();
    }

    /// Nobody answers.
    pub(crate) fn give_up(&mut self) {
        self.events.timed_out = true;
        self.end();
    }

    /// The peer's FIN, once all before it has come.
    pub(crate) fn after_peers_fin(&mut self) {
        let Some(fin) = self.rx.fin.filter(|fin| *fin <= self.rx.next && !self.rx.fin_taken) else { return };
        self.rx.next = fin + 1;
        self.rx.fin_taken = true;
        (self.ack.owed, self.ack.urgent) = (true, true);
        self.events.peer_closed = true;
        match self.state {
            State::SynReceived | State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.begin_time_wait(),
            _ => {}
        }
    }

    /// Once our FIN is acknowledged.
    pub(crate) fn after_our_fin(&mut self) {
        if !self.tx.fin || self.tx.acknowledged <= self.tx.end {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.reader_gone {
                    self.arm_last_wait();
                }
            }
            State::Closing => self.begin_time_wait(),
            State::LastAck => {
                self.events.closed = true;
                self.end();
            }
            _ => {}
        }
    }

    /// TIME-WAIT, from its beginning (RFC 9293 §3.6.1).
    pub(crate) fn begin_time_wait(&mut self) {
        self.events.closed |= self.state != State::TimeWait;
        self.state = State::TimeWait;
        self.timers.stop_all();
        self.arm_last_wait();
    }

    /// Nobody reads any more: the peer's FIN is not waited for forever.
    fn arm_last_wait(&mut self) {
        let at = self.profile.granularity.deadline(self.now, self.profile.time_wait);
        self.timers.time_wait = Some(at);
    }

    /// Something was heard from the peer: the keep-alive timer starts anew.
    pub(crate) fn touch_keep_alive(&mut self) {
        if let Some(policy) = self.profile.keep_alive
            && self.state != State::TimeWait
        {
            self.timers.keep_alive = Some(self.profile.granularity.deadline(self.now, policy.idle));
        }
    }

    /// The peer has been silent for long (RFC 9293 §3.8.4).
    pub(crate) fn on_keep_alive(&mut self) {
        let Some(policy) = self.profile.keep_alive else { return };
        self.timers.keep_alive = Some(self.profile.granularity.deadline(self.now, policy.interval));
        // Data in flight tests the peer by itself.
        if !self.board.is_empty() {
            return;
        }
        if u32::from(self.probes) >= policy.probes {
            self.reset_due = Some(Reset { seq: self.tx.initial.at(self.tx.next), ack: None });
            return self.give_up();
        }
        self.probes = self.probes.saturating_add(1);
        self.window_probe_due = true;
    }

    fn drop_attempt(&mut self) {
        self.events.closed = true;
        self.end();
    }

    fn end(&mut self) {
        self.state = State::Closed;
        self.timers.stop_all();
        (self.ack.owed, self.ack.urgent) = (false, false);
        self.handshake.due = false;
        (self.tail_probe_due, self.window_probe_due) = (false, false);
    }
}
