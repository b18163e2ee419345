//! The endpoint: its state, the application's verbs, the clock, and the drain.

use std::sync::Arc;

use mqttlab_units::{Duration, Instant};

use crate::ack::{Acknowledger, Circumstances};
use crate::close::Reset;
use crate::congestion::Congestion;
use crate::handshake::{Handshake, Terms};
use crate::output::{Event, Events, Output};
use crate::profile::{Nagle, Profile};
use crate::receive::Receiver;
use crate::recovery::{Phase, Recovery};
use crate::rto::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::send::Sender;
use crate::timers::{Purpose, Timers};
use crate::{Segment, Seq};

/// Who begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the SYN when told to [`open`](Endpoint::open).
    Active,
    /// Listens for a SYN from the start.
    Passive,
}

/// Connection states (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
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

/// A look inside, for reports and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Connection state.
    pub state: State,
    /// Where loss recovery is.
    pub phase: Phase,
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

/// One end of a connection. See the crate's documentation for the contract.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) profile: Arc<Profile>,
    pub(crate) now: Instant,
    pub(crate) state: State,
    pub(crate) nagle: Nagle,
    pub(crate) handshake: Handshake,
    pub(crate) terms: Terms,
    pub(crate) tx: Sender,
    pub(crate) board: Scoreboard,
    pub(crate) recovery: Recovery,
    pub(crate) congestion: Congestion,
    pub(crate) rtt: RttEstimator,
    pub(crate) rx: Receiver,
    pub(crate) ack: Acknowledger,
    pub(crate) timers: Timers,
    pub(crate) events: Events,
    pub(crate) counters: Counters,
    pub(crate) reset_due: Option<Reset>,
    pub(crate) tail_probe_due: bool,
    pub(crate) window_probe_due: bool,
    /// Something has happened since there was nothing to send.
    stirred: bool,
    /// The application reads no more.
    pub(crate) reader_gone: bool,
    /// A write was cut short.
    pub(crate) writer_waits: bool,
    /// Probes of a closed window or a silent peer without an answer.
    pub(crate) probes: u8,
    /// Retransmission timeouts without an answer.
    pub(crate) retries: u8,
}

impl Endpoint {
    /// A closed (or listening) endpoint. Endpoints of one host share the profile by `Arc`.
    pub fn new(profile: impl Into<Arc<Profile>>, role: Role) -> Endpoint {
        Endpoint::with_initial_sequence(profile, role, Seq(0))
    }

    /// As [`new`](Endpoint::new), with the initial sequence number of its own stream.
    pub fn with_initial_sequence(profile: impl Into<Arc<Profile>>, role: Role, initial: Seq) -> Endpoint {
        let profile = profile.into();
        let state = if role == Role::Active { State::Closed } else { State::Listen };
        Endpoint {
            now: Instant::ZERO,
            state,
            nagle: profile.nagle,
            handshake: Handshake::default(),
            terms: Terms::default(),
            tx: Sender::new(initial),
            board: Scoreboard::new(profile.window_unit),
            recovery: Recovery::new(),
            congestion: Congestion::new(&profile, profile.mss),
            rtt: RttEstimator::new(),
            rx: Receiver::new(),
            ack: Acknowledger::new(profile.mss, u64::from(profile.receive_buffer)),
            timers: Timers::default(),
            events: Events::default(),
            counters: Counters::default(),
            reset_due: None,
            tail_probe_due: false,
            window_probe_due: false,
            stirred: false,
            reader_gone: false,
            writer_waits: false,
            probes: 0,
            retries: 0,
            profile,
        }
    }

    /// Takes up to `bytes` from the application into the send buffer and says how many. When that is not all,
    /// [`Event::Writable`] follows once there is room. Bytes may be written before the connection stands.
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        self.take_from_application(now, bytes, false)
    }

    /// As [`write`](Endpoint::write), by a program that has written to another socket since it wrote to this one.
    pub fn write_apart(&mut self, now: Instant, bytes: u64) -> u64 {
        self.take_from_application(now, bytes, true)
    }

    fn take_from_application(&mut self, now: Instant, bytes: u64, apart: bool) -> u64 {
        self.advance_clock(now);
        if self.tx.fin || self.reader_gone || self.state == State::Closed || self.state == State::TimeWait {
            return 0;
        }
        let accepted = bytes.min(self.send_space());
        if self.profile.gathers {
            let full = u64::from(self.payload_max());
            self.tx.gathering.write(self.tx.next, self.tx.end, accepted, apart, full);
        }
        self.tx.end += accepted;
        self.writer_waits |= accepted < bytes;
        accepted
    }

    /// The application takes up to `bytes` of what is readable; says how many there were.
    pub fn read(&mut self, now: Instant, bytes: u64) -> u64 {
        self.advance_clock(now);
        let taken = bytes.min(self.rx.unread());
        self.rx.read += taken;
        // After its FIN the peer has no use for a window.
        let peer_sends = matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        if taken > 0 && peer_sends {
            let circumstances = self.circumstances();
            self.ack.on_read(self.profile.delayed_ack, &circumstances);
        }
        taken
    }

    /// Nagle's algorithm off (`TCP_NODELAY`) or as the profile has it.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.nagle = if nodelay { Nagle::Off } else { self.profile.nagle };
    }

    /// How many bytes [`write`](Endpoint::write) would accept.
    pub fn send_space(&self) -> u64 {
        let buffered = self.tx.end - self.tx.acknowledged.clamp(1, self.tx.end);
        self.send_capacity().saturating_sub(buffered)
    }

    /// How many bytes [`read`](Endpoint::read) would return.
    pub fn readable(&self) -> u64 {
        self.rx.unread()
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The offset in the own stream that a segment *from this endpoint* begins at, `None` for a SYN.
    pub fn sent_offset(&self, segment: &Segment) -> Option<u64> {
        segment.seq.position(self.tx.initial, self.tx.next)?.checked_sub(1)
    }

    /// A look inside.
    pub fn info(&self) -> Info {
        Info {
            state: self.state,
            phase: self.recovery.phase,
            congestion_window: self.congestion.window,
            slow_start_threshold: self.congestion.threshold,
            in_flight: self.board.in_flight(),
            unacknowledged_bytes: self.tx.next - self.tx.acknowledged,
            srtt: self.rtt.srtt(),
            rto: self.rtt.timeout(&self.profile.rto),
            payload_max: self.payload_max(),
        }
    }

    /// When [`tick`](Endpoint::tick) is due next. A peek: asking changes nothing.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Lets every timer fire that is due.
    pub fn tick(&mut self, now: Instant) {
        self.advance_clock(now);
        if self.timers.ack.is_some_and(|at| at <= now) {
            self.timers.ack = None;
            let circumstances = self.circumstances();
            self.ack.on_timer(self.profile.delayed_ack, &circumstances);
        }
        if self.timers.compression.is_some_and(|at| at <= now) {
            self.timers.compression = None;
            self.ack.on_compression_timer();
        }
        if let Some((purpose, at)) = self.timers.retransmission
            && at <= now
        {
            self.timers.retransmission = None;
            match purpose {
                Purpose::Handshake => self.on_handshake_timeout(),
                Purpose::Timeout => self.on_retransmission_timeout(),
                Purpose::TailProbe => self.on_tail_probe(),
                Purpose::Reordering => self.on_reordering_timeout(),
                Purpose::WindowProbe => self.on_window_probe(),
            }
        }
        if self.timers.keep_alive.is_some_and(|at| at <= now) {
            self.on_keep_alive();
        }
        if self.timers.time_wait.is_some_and(|at| at <= now) {
            self.events.closed |= self.state != State::TimeWait;
            self.timers.stop_all();
            self.state = State::Closed;
        }
    }

    /// The next thing to carry out; drain until `None`. Segments come first.
    pub fn poll(&mut self) -> Option<Output> {
        if self.stirred {
            if let Some(segment) = self.next_segment() {
                self.counters.segments += 1;
                return Some(Output::Transmit(segment));
            }
            self.stirred = false;
        }
        self.next_event().map(Output::Event)
    }

    /// To be called before anything happens to the endpoint.
    pub(crate) fn advance_clock(&mut self, now: Instant) {
        assert!(now >= self.now, "time ran back from {} to {now}", self.now);
        self.now = now;
        self.stirred = true;
    }

    /// Whether both sides know each other's sequence numbers.
    pub(crate) fn is_synchronised(&self) -> bool {
        self.state >= State::Established
    }

    /// The timestamp clock.
    pub(crate) fn timestamp(&self) -> u32 {
        (self.now.as_ns() / self.profile.timestamp_tick.as_ns().max(1)) as u32
    }

    pub(crate) fn circumstances(&self) -> Circumstances {
        let buffer = u64::from(self.profile.receive_buffer);
        Circumstances {
            now: self.now,
            rto: self.rtt.timeout(&self.profile.rto),
            rto_min: self.profile.rto.min,
            srtt: self.rtt.srtt(),
            unacknowledged: self.rx.next - self.rx.acknowledged,
            unread: self.rx.unread(),
            advertised: self.rx.edge.saturating_sub(self.rx.acknowledged),
            window: self.rx.window(),
            window_now: self.rx.offer(buffer, u64::from(self.payload_max())) - self.rx.next,
            buffer,
        }
    }

    fn send_capacity(&self) -> u64 {
        let fixed = u64::from(self.profile.send_buffer);
        let Some(most) = self.profile.send_buffer_max else { return fixed };
        // Linux (`tcp_sndbuf_expand`) keeps room for twice the congestion window.
        let windows = 2 * self.congestion.window / self.congestion.smss() * u64::from(self.payload_max());
        windows.clamp(fixed, u64::from(most).max(fixed))
    }

    fn next_event(&mut self) -> Option<Event> {
        let events = &mut self.events;
        if Events::take(&mut events.connected) {
            return Some(Event::Connected);
        }
        if Events::take(&mut events.acknowledged) {
            events.writable |= self.writer_waits;
            return Some(Event::Acknowledged(self.tx.acknowledged.clamp(1, self.tx.end) - 1));
        }
        if Events::take(&mut events.writable) {
            // Half a buffer at least, so that a writer is not woken for every byte; Linux takes a third.
            let space = self.send_space();
            if 3 * space >= self.send_capacity() {
                self.writer_waits = false;
                return Some(Event::Writable(space));
            }
        }
        let events = &mut self.events;
        if Events::take(&mut events.readable) {
            return Some(Event::Readable(self.rx.read + self.rx.unread() - 1));
        }
        let rest = [
            (&mut events.peer_closed, Event::PeerClosed),
            (&mut events.closed, Event::Closed),
            (&mut events.reset, Event::Reset),
            (&mut events.timed_out, Event::TimedOut),
        ];
        rest.into_iter().find_map(|(flag, event)| Events::take(flag).then_some(event))
    }
}
