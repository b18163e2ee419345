//! The endpoint: the application's verbs, what an arriving segment does (RFC 9293 §3.10.7), the clock, and the drain.
//!
//! It owns the state of the connection and composes the parts; what happens within a half is the half's business.

use std::collections::VecDeque;
use std::sync::Arc;

use mqttlab_units::{Duration, Instant};

use crate::context::{Effects, EndpointContext, EndpointCounters};
use crate::handshake::TcpHandshake;
use crate::output::{Broken, Events, TcpEvent, TcpOutput};
use crate::profile::{Nagle, Profile};
use crate::receive::Receiver;
use crate::recovery::RecoveryPhase;
use crate::reset::Reset;
use crate::segment::{Ecn, Flags, Segment};
use crate::send::{OutgoingSegment, Sender};
use crate::sequence::Seq;
use crate::state::ConnectionState;
use crate::terms::Terms;
use crate::timers::Purpose;

/// Who begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the SYN when told to [`open`](Endpoint::open).
    Active,
    /// Listens for a SYN from the start.
    Passive,
}

/// A look inside, for tests: amounts are in the unit of the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Connection state.
    pub state: ConnectionState,
    /// Where loss recovery is.
    pub phase: RecoveryPhase,
    /// Congestion window in segments or bytes, as the profile counts.
    pub congestion_window: u64,
    /// Slow start threshold in the same unit; `u64::MAX` before the first loss.
    pub slow_start_threshold: u64,
    /// What is in the network as far as the sender knows, in the same unit.
    pub in_flight: u64,
    /// Bytes sent and not acknowledged.
    pub unacknowledged_bytes: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Retransmission timeout, backed off.
    pub rto: Duration,
    /// Largest payload of a segment without SACK blocks, in bytes.
    pub payload_max: u16,
}

/// What the sending half knows of itself at a moment, in bytes, as the kernel says it of a socket (`TCP_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpState {
    /// Retransmission timeout, backed off.
    pub rto: Duration,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Congestion window; where the profile counts segments, so many full ones.
    pub congestion_window_bytes: u64,
    /// Slow start threshold; `None` before the first loss.
    pub slow_start_threshold_bytes: Option<u64>,
    /// Bytes written and not sent.
    pub unsent_bytes: u64,
    /// Bytes sent and not acknowledged.
    pub unacknowledged_bytes: u64,
}

/// One end of a connection. See the crate's documentation for the contract.
#[derive(Clone, Debug)]
pub struct Endpoint {
    cx: EndpointContext,
    fx: Effects,
    state: ConnectionState,
    handshake: TcpHandshake,
    tx: Sender,
    rx: Receiver,
    reset_due: Option<Reset>,
    /// What was sent again while an arriving segment was looked at; with room only while there is something.
    #[allow(clippy::box_collection)]
    early: Option<Box<VecDeque<Segment>>>,
    /// Something has happened since there was nothing to send.
    needs_poll: bool,
}

impl Endpoint {
    /// A closed (or listening) endpoint. Endpoints of one host share the profile by `Arc`.
    pub fn new(profile: impl Into<Arc<Profile>>, role: Role) -> Endpoint {
        Endpoint::with_initial_sequence(profile, role, Seq(0))
    }

    /// As [`new`](Endpoint::new), with the initial sequence number of its own stream.
    pub fn with_initial_sequence(profile: impl Into<Arc<Profile>>, role: Role, initial: Seq) -> Endpoint {
        let profile = profile.into();
        Endpoint {
            fx: Effects::default(),
            state: if role == Role::Active { ConnectionState::Closed } else { ConnectionState::Listen },
            handshake: TcpHandshake::default(),
            tx: Sender::new(&profile, initial),
            rx: Receiver::new(&profile),
            reset_due: None,
            early: None,
            needs_poll: false,
            cx: EndpointContext { now: Instant::ZERO, profile, terms: Terms::default() },
        }
    }

    /// Sends the SYN. Nothing happens unless the endpoint is active and closed.
    pub fn open(&mut self, now: Instant) {
        self.advance_clock(now);
        // A connection that has ended is closed, too, but its SYN was sent: it is not opened twice.
        if self.state == ConnectionState::Closed && self.tx.recovery.flight.next == 0 {
            self.state = ConnectionState::SynSent;
            self.handshake = TcpHandshake::begin(now, false);
        }
    }

    /// Takes up to `bytes` from the application into the send buffer and says how many. When that is not all,
    /// [`TcpEvent::Writable`] follows once there is room. Bytes may be written before the connection stands.
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        self.write_as(now, bytes, false)
    }

    /// As [`write`](Endpoint::write), by a program that has written to another socket since it wrote to this one.
    pub fn write_apart(&mut self, now: Instant, bytes: u64) -> u64 {
        self.write_as(now, bytes, true)
    }

    /// The application takes up to `bytes` of what is readable; says how many there were.
    pub fn read(&mut self, now: Instant, bytes: u64) -> u64 {
        self.advance_clock(now);
        let taken = self.rx.read(bytes);
        if taken > 0 && self.state.peer_may_send() {
            self.rx.after_read(&self.cx, self.tx.round_trip(&self.cx));
        }
        taken
    }

    /// The application will write no more; it may go on reading (`shutdown(SHUT_WR)`).
    pub fn shutdown(&mut self, now: Instant) {
        self.advance_clock(now);
        let Some(next) = self.state.on_shutdown() else { return };
        // No FIN may leave before the handshake: CLOSE deletes the connection (RFC 9293 §3.10.4, SYN-SENT).
        if self.state == ConnectionState::SynSent {
            return self.enter(ConnectionState::Closed);
        }
        self.state = next;
        if next != ConnectionState::Closed {
            self.tx.finish();
        }
    }

    /// The application wants no more of the connection (`close`). What it has written is still delivered; but
    /// data that it has not read, or that comes later, resets the connection (RFC 1122 §4.2.2.13).
    pub fn close(&mut self, now: Instant) {
        self.advance_clock(now);
        if self.state.is_synchronised() && self.rx.unread() > 0 {
            return self.abort(now);
        }
        self.rx.abandoned = true;
        self.shutdown(now);
        // It was shut down before, and our FIN is acknowledged: no further event would start the wait (`__tcp_close`).
        if self.state == ConnectionState::FinWait2 {
            self.fx.arm_last_wait(&self.cx);
        }
    }

    /// Ends the connection at once with a reset (RFC 9293 §3.10.5).
    pub fn abort(&mut self, now: Instant) {
        self.advance_clock(now);
        match self.state {
            // Both FINs were exchanged: an ABORT sends no reset any more (RFC 9293 §3.10.5).
            ConnectionState::Closed | ConnectionState::TimeWait => {}
            ConnectionState::Listen | ConnectionState::SynSent => self.enter(ConnectionState::Closed),
            _ => self.end_with_reset(),
        }
    }

    /// Nagle's algorithm off (`TCP_NODELAY`) or as the profile has it.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.tx.set_nagle(if nodelay { Nagle::Off } else { self.cx.profile.nagle });
    }

    /// How many bytes [`read`](Endpoint::read) would return.
    pub fn readable(&self) -> u64 {
        self.rx.unread()
    }

    /// The connection's state.
    pub fn state(&self) -> ConnectionState {
        self.state
    }

    /// What has happened so far.
    pub fn counters(&self) -> EndpointCounters {
        self.fx.counters
    }

    /// The offset in the own stream that a segment *from this endpoint* begins at, `None` for a SYN.
    pub fn sent_offset(&self, segment: &Segment) -> Option<u64> {
        let flight = &self.tx.recovery.flight;
        segment.seq.position(flight.initial, flight.next)?.checked_sub(1)
    }

    /// A look inside.
    pub fn info(&self) -> Info {
        let recovery = &self.tx.recovery;
        Info {
            state: self.state,
            phase: recovery.phase(),
            congestion_window: recovery.congestion.window.cwnd,
            slow_start_threshold: recovery.congestion.window.ssthresh,
            in_flight: recovery.flight.in_flight(),
            unacknowledged_bytes: self.tx.unacknowledged(),
            srtt: recovery.rtt.srtt(),
            rto: recovery.rto(&self.cx),
            payload_max: self.cx.payload_max(),
        }
    }

    /// What a recording keeps of the endpoint over time.
    pub fn tcp_state(&self) -> TcpState {
        let recovery = &self.tx.recovery;
        let window = recovery.congestion.window;
        let bytes = |units: u64| units / window.smss * u64::from(self.cx.payload_max());
        TcpState {
            rto: recovery.rto(&self.cx),
            srtt: recovery.rtt.srtt(),
            congestion_window_bytes: bytes(window.cwnd),
            slow_start_threshold_bytes: (window.ssthresh < u64::MAX).then(|| bytes(window.ssthresh)),
            unsent_bytes: self.tx.unsent(),
            unacknowledged_bytes: self.tx.unacknowledged(),
        }
    }

    /// When [`tick`](Endpoint::tick) is due next. A peek: asking changes nothing.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.fx.timers.next()
    }

    /// Lets every timer fire that is due.
    pub fn tick(&mut self, now: Instant) {
        self.advance_clock(now);
        self.rx.tick(&self.cx, &mut self.fx, self.tx.round_trip(&self.cx));
        if let Some((purpose, at)) = self.fx.timers.retransmission
            && at <= now
        {
            // First, for what the timer was set for may set it again.
            self.fx.timers.retransmission = None;
            let goes_on = match purpose {
                Purpose::Handshake => self.handshake.on_timeout(&self.cx, &mut self.fx),
                _ => self.tx.on_timer(&self.cx, &mut self.fx, purpose),
            };
            if !goes_on {
                self.fx.events.broken = Some(Broken::TimedOut);
                self.end();
            }
        }
        if self.fx.timers.keep_alive.is_due(now) {
            self.on_keep_alive_timer();
        }
        if self.fx.timers.time_wait.is_due(now) {
            // FIN-WAIT-2 after a full close ends here, too; TIME-WAIT has told of its end before.
            self.fx.events.closed |= self.state != ConnectionState::TimeWait;
            self.fx.timers.stop_all();
            self.state = ConnectionState::Closed;
        }
    }

    /// A segment has arrived.
    pub fn receive(&mut self, now: Instant, segment: &Segment) {
        self.advance_clock(now);
        match self.state {
            // A reset is never answered by a reset (RFC 9293 §3.10.7.1), or two hosts would go on for ever.
            ConnectionState::Closed if segment.flags.has(Flags::RST) => {}
            ConnectionState::Closed => self.reset_due = Some(Reset::answer(segment)),
            ConnectionState::Listen => self.receive_in_listen(segment),
            ConnectionState::SynSent => self.receive_in_syn_sent(segment),
            _ => self.receive_synchronised(segment),
        }
    }

    /// The next thing to carry out; drain until `None`. Segments come first.
    pub fn poll(&mut self) -> Option<TcpOutput> {
        self.poll_transmit().map(TcpOutput::Transmit).or_else(|| self.next_event().map(TcpOutput::Event))
    }

    /// The next segment to hand to the network; events stay for [`poll`](Endpoint::poll).
    pub fn poll_transmit(&mut self) -> Option<Segment> {
        if !self.needs_poll {
            return None;
        }
        let segment = self.next_segment();
        self.needs_poll = segment.is_some();
        self.fx.counters.segments += u64::from(self.needs_poll);
        segment
    }

    /// To be called before anything happens to the endpoint.
    fn advance_clock(&mut self, now: Instant) {
        assert!(now >= self.cx.now, "time ran back from {} to {now}", self.cx.now);
        self.cx.now = now;
        self.needs_poll = true;
    }

    fn write_as(&mut self, now: Instant, bytes: u64, apart: bool) -> u64 {
        self.advance_clock(now);
        let is_over = matches!(self.state, ConnectionState::Closed | ConnectionState::TimeWait);
        if self.tx.is_finished() || self.rx.abandoned || is_over {
            return 0;
        }
        self.tx.write(&self.cx, bytes, apart)
    }

    /// The next segment, if any must leave now. A reset goes first, for nothing may follow it; then data, which carries an
    /// acknowledgement that is due; then, if there was none, what has no data.
    fn next_segment(&mut self) -> Option<Segment> {
        // Made before the data of the last segment were taken: they acknowledge less than what is made now.
        if let Some(early) = &mut self.early {
            if let Some(segment) = early.pop_front() {
                return Some(segment);
            }
            self.early = None;
        }
        if let Some(reset) = self.reset_due.take() {
            return Some(reset.segment());
        }
        match self.state {
            ConnectionState::Closed | ConnectionState::Listen => return None,
            ConnectionState::SynSent | ConnectionState::SynReceived => return self.next_syn(),
            // Our FIN is acknowledged, and with it all that came before.
            ConnectionState::TimeWait | ConnectionState::FinWait2 => {}
            _ => {
                let limit = self.payload_limit();
                if let Some(outgoing) = self.tx.next(&self.cx, &mut self.fx, limit) {
                    return Some(self.emit(outgoing));
                }
            }
        }
        if let Some(probe) = self.tx.take_probe(&mut self.fx) {
            return Some(self.emit(probe));
        }
        if self.rx.ack.is_due() {
            return Some(self.emit(OutgoingSegment::bare(self.tx.recovery.flight.next)));
        }
        // Last: only now is it known whether a window, or nothing to send, has stopped the sender.
        self.tx.on_drained(&self.cx, &mut self.fx, self.state.is_synchronised());
        None
    }

    /// The largest payload that leaves now.
    fn payload_limit(&self) -> u16 {
        self.rx.payload_limit(&self.cx).min(self.tx.segment_max(&self.cx))
    }

    /// The SYN or SYN-ACK, when one is due.
    fn next_syn(&mut self) -> Option<Segment> {
        let wait = self.handshake.take_due(&self.cx)?;
        self.fx.arm(&self.cx, Purpose::Handshake, wait);
        let flight = &mut self.tx.recovery.flight;
        // SND.NXT is ISS + 1 from the first SYN on (RFC 9293 §3.10.1); a repetition does not move it.
        flight.next = flight.next.max(1);
        let mut segment = Segment { seq: flight.initial, ..self.handshake.segment(&self.cx) };
        self.rx.acknowledge_in_syn(&mut segment);
        Some(segment)
    }

    /// Makes a segment. Whatever leaves carries the acknowledgement.
    fn emit(&mut self, outgoing: OutgoingSegment) -> Segment {
        if outgoing.is_new {
            // Before the acknowledgement is counted as sent: data soon after data makes the connection interactive.
            self.rx.ack.on_data_sent(self.cx.now);
        }
        let OutgoingSegment { position, length, flags, is_new } = outgoing;
        let mut segment = Segment { seq: self.tx.seq(position), length, flags, ..Segment::default() };
        // What is sent again is not (RFC 3168 §6.1.5), nor what has no data (§6.1.4).
        if self.cx.terms.ecn && is_new && length > 0 {
            segment.ecn = Ecn::Ect0;
            if self.tx.recovery.reduced.take_due() {
                segment.flags = segment.flags.with(Flags::CWR);
            }
        }
        self.rx.acknowledge(&self.cx, &mut self.fx, &mut segment);
        segment
    }

    fn next_event(&mut self) -> Option<TcpEvent> {
        let events = &mut self.fx.events;
        if Events::take(&mut events.connected) {
            return Some(TcpEvent::Connected);
        }
        if Events::take(&mut events.acknowledged) {
            // What is acknowledged has left the buffer, which a writer may be waiting for (`tcp_check_space`).
            events.writable |= self.tx.writer_waits();
            return Some(TcpEvent::Acknowledged(self.tx.acknowledged_offset()));
        }
        if Events::take(&mut events.writable)
            && let Some(space) = self.tx.take_writable(&self.cx)
        {
            return Some(TcpEvent::Writable(space));
        }
        if Events::take(&mut events.readable) {
            return Some(TcpEvent::Readable(self.rx.readable_offset()));
        }
        events.next_last()
    }

    /// LISTEN (RFC 9293 §3.10.7.2).
    fn receive_in_listen(&mut self, segment: &Segment) {
        // There is nothing yet that a reset could end (first check).
        if segment.flags.has(Flags::RST) {
            return;
        }
        // Nothing was sent from here, so that whatever it acknowledges is of an older connection (second check).
        if segment.flags.has(Flags::ACK) {
            self.reset_due = Some(Reset::answer(segment));
        } else if segment.flags.has(Flags::SYN) {
            self.cx.terms = Terms::agree(&self.cx.profile, segment);
            self.rx.on_syn(&self.cx, segment);
            self.state = ConnectionState::SynReceived;
            self.handshake = TcpHandshake::begin(self.cx.now, true);
        }
    }

    /// SYN-SENT (RFC 9293 §3.10.7.3).
    fn receive_in_syn_sent(&mut self, segment: &Segment) {
        let acknowledges = segment.flags.has(Flags::ACK);
        // First check: it acknowledges another SYN than ours, of an older connection.
        if acknowledges && segment.ack != self.tx.seq(1) {
            if !segment.flags.has(Flags::RST) {
                self.reset_due = Some(Reset::answer(segment));
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            // Nobody listens there; a reset that acknowledges nothing may be anybody's.
            if acknowledges {
                self.fx.events.broken = Some(Broken::Refused);
                self.end();
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.cx.terms = Terms::agree(&self.cx.profile, segment);
        self.rx.on_syn(&self.cx, segment);
        if acknowledges {
            self.establish(segment);
            // The peer is in SYN-RECEIVED until this acknowledgement reaches it (RFC 9293 §3.5, figure 6).
            self.rx.ack.at_once();
        } else {
            // Both have opened at once (RFC 9293 figure 7).
            self.state = ConnectionState::SynReceived;
            self.handshake = TcpHandshake::begin(self.cx.now, true);
        }
    }

    /// All states from SYN-RECEIVED on (RFC 9293 §3.10.7.4): sequence number, RST, SYN, ACK, data, FIN, in this order.
    fn receive_synchronised(&mut self, segment: &Segment) {
        let Some(start) = self.rx.position(segment) else {
            return self.challenge(segment);
        };
        if self.rx.is_outdated(&self.cx, segment) || !self.rx.is_acceptable(segment, start) {
            return self.on_unacceptable(segment, start);
        }
        if segment.flags.has(Flags::RST) && self.state == ConnectionState::TimeWait {
            // A late reset must not cut TIME-WAIT short (RFC 1337), and there is nobody left to tell.
            return;
        }
        if segment.flags.has(Flags::RST) {
            // Only an exact hit resets; anything else might be forged (RFC 5961 §3.2).
            if !self.rx.expects(start) {
                return self.challenge(segment);
            }
            self.fx.events.broken = Some(Broken::Reset);
            return self.end();
        }
        // Whatever its number, a SYN does not reset: the peer that has really begun anew answers with a reset (RFC
        // 5961 §4.2).
        if segment.flags.has(Flags::SYN) {
            return self.challenge(segment);
        }
        // Fifth check: what does not acknowledge is dropped.
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        let Some(ack) = self.tx.acked_position(segment) else { return };
        if self.state == ConnectionState::SynReceived {
            // Only our SYN was sent: anything else is of an older connection (fifth check, SYN-RECEIVED).
            if ack != 1 {
                self.reset_due = Some(Reset::answer(segment));
                return;
            }
            self.establish(segment);
        }
        if ack > self.tx.recovery.flight.next {
            // It acknowledges what was never sent (RFC 5961 §5.2).
            return self.challenge(segment);
        }
        // Before the acknowledgement is taken: what leaves because of it echoes this segment's timestamp.
        self.rx.note_timestamp(&self.cx, segment, start);
        self.tx.on_heard();
        // TIME-WAIT has no peer to be kept alive; its own timer ends it.
        if self.state != ConnectionState::TimeWait {
            self.fx.touch_keep_alive(&self.cx);
        }
        self.take_acknowledgement(segment, ack);
        if segment.sequence_length() > 0 && self.state != ConnectionState::Closed {
            // What the acknowledgement shows to be lost is sent again before the data are looked at, so that it does not
            // acknowledge them yet (`tcp_rcv_established`; BSD's `tcp_input` too).
            let limit = self.payload_limit();
            while let Some(again) = self.tx.next_retransmission(&self.cx, &mut self.fx, limit) {
                let again = self.emit(again);
                self.early.get_or_insert_default().push_back(again);
            }
            self.take_data(segment, start);
        }
    }

    /// A segment outside the window, or an outdated one (RFC 9293 §3.10.7.4, first check).
    fn on_unacceptable(&mut self, segment: &Segment, start: u64) {
        // First check: an unacceptable reset gets no answer.
        if segment.flags.has(Flags::RST) {
            return;
        }
        if self.state == ConnectionState::SynReceived && segment.flags.has(Flags::SYN) {
            if segment.flags.has(Flags::ACK) && segment.ack == self.tx.seq(1) {
                // Both had opened at once (RFC 9293 figure 7).
                self.establish(segment);
            } else {
                // The SYN-ACK was lost, or the peer is impatient.
                if self.cx.profile.syn.echoes_latest {
                    self.rx.on_repeated_syn(segment);
                }
                self.handshake.repeat();
            }
            return;
        }
        if self.state == ConnectionState::TimeWait {
            // The peer has not got our last acknowledgement: 2 MSL begin anew (RFC 9293 §3.10.7.4).
            self.enter(ConnectionState::TimeWait);
        }
        self.rx.on_unacceptable(&self.cx, segment, start);
        // The acknowledgement in it may be news even so (RFC 9293 §3.10.7.4, last paragraph of the first step).
        if self.rx.discards(&self.cx, segment, start) {
            return;
        }
        if let Some(ack) = self.tx.acked_position(segment)
            && segment.flags.has(Flags::ACK)
            && self.state.is_synchronised()
            && ack <= self.tx.recovery.flight.next
            && segment.length > 0
        {
            self.take_acknowledgement(segment, ack);
        }
    }

    fn take_acknowledgement(&mut self, segment: &Segment, ack: u64) {
        if ack < self.tx.recovery.flight.una {
            return self.tx.recovery.on_outdated_ack(&self.cx, &mut self.fx, segment, ack);
        }
        self.tx.on_ack(&self.cx, &mut self.fx, segment, ack);
        if self.tx.fin_is_acknowledged() {
            let next = self.state.on_fin_acknowledged();
            if next != self.state {
                self.enter(next);
            }
        }
    }

    fn take_data(&mut self, segment: &Segment, start: u64) {
        if self.rx.refuses(segment, start) {
            self.fx.events.broken = Some(Broken::Reset);
            return self.end_with_reset();
        }
        let path = self.tx.round_trip(&self.cx);
        if self.rx.take(&self.cx, &mut self.fx, path, segment, start) {
            let next = self.state.on_peer_fin();
            if next != self.state {
                self.enter(next);
            }
        }
    }

    /// The peer has acknowledged the SYN.
    fn establish(&mut self, segment: &Segment) {
        // A FIN that was asked for meanwhile follows at once.
        self.state =
            if self.tx.is_finished() { ConnectionState::FinWait1 } else { ConnectionState::Established };
        self.fx.events.connected = true;
        self.fx.timers.retransmission = None;
        let measured = self.handshake.round_trip(&self.cx, segment);
        self.tx.recovery.establish(&self.cx, measured, self.handshake.path_is_lossy());
        self.tx.expand_buffer(&self.cx);
        // The window of a SYN or SYN-ACK is never scaled (RFC 7323 §2.2).
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.cx.terms.peer_scale };
        self.tx.window.begin(segment, scale);
        self.fx.touch_keep_alive(&self.cx);
    }

    /// The peer has been silent for long (RFC 9293 §3.8.4).
    fn on_keep_alive_timer(&mut self) {
        let Some(policy) = self.cx.profile.keep_alive else { return };
        self.fx.timers.keep_alive = self.cx.deadline(policy.interval).into();
        if !self.tx.keep_alive(policy.probes) {
            // The peer may live, but not with this connection (RFC 1122 §4.2.3.6).
            self.fx.events.broken = Some(Broken::TimedOut);
            self.end_with_reset();
        }
    }

    /// Tells the peer what is expected (RFC 5961 "challenge ACK").
    fn challenge(&mut self, segment: &Segment) {
        // RFC 1337: a reset does not end TIME-WAIT, and no answer would help its sender.
        let late_reset = segment.flags.has(Flags::RST) && self.state == ConnectionState::TimeWait;
        if self.state.is_synchronised() && !late_reset {
            self.rx.ack.at_once();
        }
    }

    /// Enters a state that follows a FIN, or the end.
    fn enter(&mut self, state: ConnectionState) {
        match state {
            ConnectionState::TimeWait => {
                // From its beginning (RFC 9293 §3.6.1), which the application is told of as the end.
                self.fx.events.closed |= self.state != ConnectionState::TimeWait;
                self.fx.timers.stop_all();
                self.fx.arm_last_wait(&self.cx);
            }
            // Nobody reads any more: the peer's FIN is not waited for forever (Linux `tcp_fin_timeout`).
            ConnectionState::FinWait2 if self.rx.abandoned => self.fx.arm_last_wait(&self.cx),
            ConnectionState::Closed => {
                self.fx.events.closed = true;
                self.end();
            }
            _ => {}
        }
        self.state = state;
    }

    /// We reset the connection.
    fn end_with_reset(&mut self) {
        self.reset_due = Some(Reset::at(self.tx.seq(self.tx.recovery.flight.next)));
        self.end();
    }

    fn end(&mut self) {
        self.state = ConnectionState::Closed;
        self.fx.timers.stop_all();
        self.rx.ack.stop();
        self.handshake.stop();
        self.tx.stop();
    }
}
