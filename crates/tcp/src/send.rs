//! The sending half: what the application has written, and which of it leaves next.
//!
//! Whether something may leave is asked in this order: is a tail loss probe due, then it goes before all else; is something
//! lost, then nothing new before it (RFC 6675 §5 step C); does the peer's window take it; is it worth a segment (Nagle's
//! algorithm, silly window avoidance); does the congestion window let it go. Buffers that hold too little of it to be
//! worth a segment wait for more to be written or acknowledged.

use mqttlab_units::{Duration, Instant};

use crate::coalescing::SkbCoalescing;
use crate::context::{Effects, EndpointContext};
use crate::profile::{Nagle, Profile};
use crate::receive::RoundTrip;
use crate::recovery::Recovery;
use crate::recovery::scoreboard::SentSegment;
use crate::segment::{Flags, Segment};
use crate::send_memory::{DESCRIPTOR, SendMemory, WriteRoom, room_for_windows};
use crate::sequence::Seq;
use crate::timers::Purpose;
use crate::window::PeerWindow;

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// What is in flight, and what to do about its loss; SND.UNA and SND.NXT are there.
    pub recovery: Recovery,
    /// The peer's window.
    pub window: PeerWindow,
    /// One past the last byte that the application has written; the FIN's position.
    end: u64,
    /// No more will be written.
    fin: bool,
    /// The skbs of what is written.
    coalescing: SkbCoalescing,
    /// Of payload, or of memory.
    buffer_bytes: u64,
    /// Where the buffer counts memory, and may be full.
    memory: Option<Box<SendMemory>>,
    nagle: Nagle,
    /// End of the last segment sent that was not full (Linux `snd_sml`).
    small_end: u64,
    last_sent_at: Instant,
    /// A window probe may fill a window that is too small to be worth a segment.
    sws_override: bool,
    /// A segment without data must leave that makes the peer answer.
    probe_due: bool,
    /// Such probes without an answer.
    probes: u8,
    /// Window probes since something could last be sent, answered or not.
    window_probes: u8,
    /// In the present drain: the congestion window stopped it; something new was sent.
    cwnd_limited: bool,
    sent_any: bool,
    /// A write was cut short.
    writer_waits: bool,
}

/// A segment's place in the stream; what it acknowledges is not the sending half's to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingSegment {
    pub position: u64,
    pub length: u16,
    pub flags: Flags,
    /// It carries data for the first time.
    pub is_new: bool,
}

impl OutgoingSegment {
    /// A segment without data.
    pub fn bare(position: u64) -> OutgoingSegment {
        OutgoingSegment { position, length: 0, flags: Flags::ACK, is_new: false }
    }
}

impl Sender {
    pub fn new(profile: &Profile, initial: Seq) -> Sender {
        Sender {
            recovery: Recovery::new(profile, initial),
            window: PeerWindow::default(),
            // Position 0 is the SYN's.
            end: 1,
            fin: false,
            coalescing: SkbCoalescing::default(),
            buffer_bytes: profile.send_buffer.into(),
            // One that was set is small, and looked at from the beginning.
            memory: (profile.send_truesize && profile.send_buffer_max.is_none()).then(Box::default),
            nagle: profile.nagle,
            small_end: 0,
            last_sent_at: Instant::ZERO,
            sws_override: false,
            probe_due: false,
            probes: 0,
            window_probes: 0,
            cwnd_limited: false,
            sent_any: false,
            writer_waits: false,
        }
    }

    /// Takes up to `bytes` into the buffer and says how many; `apart` when the program has written to another socket since.
    pub fn write(&mut self, cx: &EndpointContext, bytes: u64, apart: bool) -> u64 {
        let accepted = self.take(cx, bytes);
        if cx.profile.skb_coalescing {
            let full = u64::from(cx.payload_max());
            self.coalescing.write(self.recovery.flight.next, self.end, accepted, apart, full);
        }
        self.end += accepted;
        self.writer_waits |= accepted < bytes;
        accepted
    }

    /// How many of so many bytes the buffer takes.
    fn take(&mut self, cx: &EndpointContext, bytes: u64) -> u64 {
        if !cx.profile.send_truesize {
            return bytes.min(self.space());
        }
        let limit = self.buffer_bytes;
        if self.memory.is_none() && self.memory_at_most(cx) + bytes <= limit {
            return bytes;
        }
        let PeerWindow { largest, edge, .. } = self.window;
        let room = WriteRoom { limit, skb_bytes: self.skb_bytes(cx), half: largest / 2, edge };
        self.advance_memory();
        let Recovery { flight, .. } = &self.recovery;
        let begin = || SendMemory::begin(flight.una.clamp(1, self.end), flight.ends(), self.end);
        let memory = self.memory.get_or_insert_with(|| Box::new(begin()));
        memory.write(room, self.end, bytes)
    }

    /// No less than the memory that is taken, known without looking at it: most programs write little, and there may be
    /// thousands of connections.
    fn memory_at_most(&self, cx: &EndpointContext) -> u64 {
        let flight = &self.recovery.flight;
        let unsent = self.unsent() / self.skb_bytes(cx) + 1;
        self.buffered() + (flight.len() as u64 + unsent) * DESCRIPTOR
    }

    /// A buffer that was not set makes room for the congestion window (Linux `tcp_sndbuf_expand`).
    pub fn expand_buffer(&mut self, cx: &EndpointContext) {
        let Some(most) = cx.profile.send_buffer_max else { return };
        let window = self.recovery.congestion.window;
        let segments =
            INITIAL_SEGMENTS.max(window.cwnd / window.smss).max(u64::from(self.recovery.rack.degree()) + 1);
        let room = room_for_windows(segments, cx.terms.mss.into());
        self.buffer_bytes = self.buffer_bytes.max(room.min(most.into()));
    }

    /// Tells the memory what was sent and acknowledged meanwhile.
    fn advance_memory(&mut self) {
        let flight = &self.recovery.flight;
        if let Some(memory) = &mut self.memory {
            memory.advance(flight.una.clamp(1, self.end), flight.next.clamp(1, self.end));
        }
    }

    /// The most that an skb holds: whole segments, half of the peer's largest window (Linux `tcp_xmit_size_goal`).
    fn skb_bytes(&self, cx: &EndpointContext) -> u64 {
        let segment = u64::from(cx.payload_max().min(self.segment_max(cx)));
        let half = self.window.largest / 2;
        (half.min(SKB_BYTES_MAX) / segment * segment).max(segment)
    }

    /// Free bytes of the buffer.
    fn space(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.buffered())
    }

    /// A byte is kept until it is acknowledged.
    fn buffered(&self) -> u64 {
        self.end - self.recovery.flight.una.clamp(1, self.end)
    }

    /// Whether a write was cut short.
    pub fn writer_waits(&self) -> bool {
        self.writer_waits
    }

    /// The space that a waiting writer is told of. A third of the buffer at least, so that it is not woken for every byte
    /// (Linux `sk_stream_is_writeable`).
    pub fn take_writable(&mut self, cx: &EndpointContext) -> Option<u64> {
        let Recovery { flight, congestion, .. } = &self.recovery;
        // A window that is full is what stops the sender, and not the buffer (`tcp_should_expand_sndbuf`).
        if flight.in_flight() < congestion.window.cwnd {
            self.expand_buffer(cx);
        }
        self.advance_memory();
        let (space, limit) = (self.space(), self.buffer_bytes);
        let wakes = self.memory.as_ref().map_or(3 * space >= limit, |memory| memory.wakes(limit));
        wakes.then(|| {
            self.writer_waits = false;
            space
        })
    }

    /// Nagle's algorithm.
    pub fn set_nagle(&mut self, nagle: Nagle) {
        self.nagle = nagle;
    }

    /// No more will be written: a FIN follows the last byte.
    pub fn finish(&mut self) {
        self.fin = true;
    }

    /// Whether no more will be written.
    pub fn is_finished(&self) -> bool {
        self.fin
    }

    /// Whether the peer has acknowledged our FIN.
    pub fn fin_is_acknowledged(&self) -> bool {
        self.fin && self.recovery.flight.una > self.end
    }

    /// The connection is at its end.
    pub fn stop(&mut self) {
        self.recovery.stop();
        self.probe_due = false;
    }

    /// Bytes written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.recovery.flight.next)
    }

    /// Bytes sent and not yet acknowledged, the FIN's position included.
    pub fn unacknowledged(&self) -> u64 {
        self.recovery.flight.next - self.recovery.flight.una
    }

    /// How much of the stream is acknowledged, as an offset.
    pub fn acknowledged_offset(&self) -> u64 {
        // SYN and FIN are acknowledged, too, but are no bytes of the stream.
        self.recovery.flight.una.clamp(1, self.end) - 1
    }

    /// The sequence number of a position.
    pub fn seq(&self, position: u64) -> Seq {
        self.recovery.flight.initial.at(position)
    }

    /// The position that a segment acknowledges.
    pub fn acked_position(&self, segment: &Segment) -> Option<u64> {
        segment.ack.position(self.recovery.flight.initial, self.recovery.flight.una)
    }

    /// What the timing of acknowledgements depends on.
    pub fn round_trip(&self, cx: &EndpointContext) -> RoundTrip {
        RoundTrip { rto: self.recovery.rto(cx), srtt: self.recovery.rtt.srtt() }
    }

    /// The peer was heard of: probes are answered.
    pub fn on_heard(&mut self) {
        self.probes = 0;
    }

    /// Takes the acknowledgement of an acceptable segment: `ack` is its position.
    pub fn on_ack(&mut self, cx: &EndpointContext, fx: &mut Effects, segment: &Segment, ack: u64) {
        let (flight, scale) = (&self.recovery.flight, cx.terms.peer_scale);
        let advanced = ack > flight.una;
        // RFC 5681 §2, before the window is looked at: a segment that moves it is no duplicate.
        let updates_window = if cx.profile.fresh_is_no_duplicate {
            self.window.is_fresh(segment, scale)
        } else {
            !self.window.is_unchanged_by(segment, ack, scale)
        };
        let duplicate = !advanced && segment.sequence_length() == 0 && !updates_window && !flight.is_empty();
        self.window.update(segment, ack, scale);
        fx.events.acknowledged |= advanced;
        self.recovery.on_ack(cx, fx, segment, ack, duplicate);
    }

    /// The retransmission timer fired. `false` when the peer is given up.
    pub fn on_timer(&mut self, cx: &EndpointContext, fx: &mut Effects, purpose: Purpose) -> bool {
        match purpose {
            // The endpoint has repeated the SYN itself.
            Purpose::Handshake => true,
            Purpose::Timeout => self.recovery.on_rto(cx, fx),
            Purpose::TailProbe => {
                self.recovery.on_probe_timer(cx, fx);
                true
            }
            Purpose::Reordering => {
                self.recovery.on_reordering_timer(cx, fx);
                true
            }
            Purpose::WindowProbe => self.on_window_probe_timer(cx),
        }
    }

    /// Asks a silent peer for an answer (RFC 9293 §3.8.4). `false` after `most` that went unanswered.
    pub fn keep_alive(&mut self, most: u32) -> bool {
        // Data in flight tests the peer by itself.
        if !self.recovery.flight.is_empty() {
            return true;
        }
        if u32::from(self.probes) >= most {
            return false;
        }
        self.probes = self.probes.saturating_add(1);
        self.probe_due = true;
        true
    }

    /// The probe that must leave: it repeats the last acknowledged position, without data, as Linux does.
    pub fn take_probe(&mut self, fx: &mut Effects) -> Option<OutgoingSegment> {
        if !std::mem::take(&mut self.probe_due) {
            return None;
        }
        fx.counters.retransmissions += 1;
        Some(OutgoingSegment::bare(self.recovery.flight.una - 1))
    }

    /// The next segment with data or FIN that must leave now, with `limit` bytes of payload at most.
    pub fn next(&mut self, cx: &EndpointContext, fx: &mut Effects, limit: u16) -> Option<OutgoingSegment> {
        if self.recovery.take_probe_due() {
            return self.next_tail_probe(cx, fx, limit);
        }
        if self.recovery.prefers_new_data() {
            if let Some(new) = self.next_new(cx, fx, limit) {
                return Some(new);
            }
            self.recovery.end_new_data();
        }
        if self.recovery.flight.has_waiting() {
            return self.next_retransmission(cx, fx, limit);
        }
        self.next_new(cx, fx, limit)
    }

    /// The next segment that carries something for the first time.
    fn next_new(&mut self, cx: &EndpointContext, fx: &mut Effects, limit: u16) -> Option<OutgoingSegment> {
        let length = self.sendable(cx, limit)?;
        // A FIN by itself is nothing in bytes, but needs room like a byte.
        if !self.recovery.has_room_for(cx, self.recovery.congestion.units(length).max(1)) {
            self.cwnd_limited = true;
            return None;
        }
        Some(self.send_new(cx, fx, length, limit))
    }

    /// The next segment to send again, if the congestion window lets one go.
    pub fn next_retransmission(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        limit: u16,
    ) -> Option<OutgoingSegment> {
        if !self.recovery.flight.has_waiting() || !self.recovery.may_retransmit(cx) {
            return None;
        }
        self.recovery.before_sending(cx, self.last_sent_at);
        let again = self.recovery.retransmit(cx, fx, limit)?;
        Some(self.repeat(cx, again))
    }

    /// At the end of a drain: what stopped the sender, and whether the peer's window must be probed.
    pub fn on_drained(&mut self, cx: &EndpointContext, fx: &mut Effects, synchronised: bool) {
        let waits = self.unsent() > 0 || self.fin_is_unsent();
        let Recovery { flight, congestion, .. } = &mut self.recovery;
        // Only where there was something new to send (`tcp_write_xmit`): a window that is full of repetitions is not used.
        let full = flight.in_flight() + congestion.window.smss > congestion.window.cwnd;
        let limited = (self.sent_any || waits) && (self.cwnd_limited || full);
        if self.sent_any || limited {
            congestion.note_usage(flight.outstanding(), limited, flight.una, flight.next);
        }
        (self.cwnd_limited, self.sent_any) = (false, false);
        let is_quiet = self.recovery.flight.is_empty() && fx.timers.retransmission.is_none();
        // With nothing in flight no acknowledgement will come: a lost window update would be waited for for ever (RFC
        // 9293 §3.8.6.1).
        if waits && is_quiet && synchronised {
            let timeout = self.recovery.rtt.base_timeout(&cx.profile.rto).as_ns();
            // An answer shows that the peer lives, but not that it will read soon: the interval goes on growing.
            let doubled = Duration::from_ns(timeout.saturating_mul(1 << self.window_probes.min(20)));
            fx.arm(cx, Purpose::WindowProbe, doubled.min(cx.profile.rto.max));
        }
    }

    /// The longest segment that the peer's window makes worth sending (Linux `tcp_bound_to_half_wnd`).
    pub fn segment_max(&self, cx: &EndpointContext) -> u16 {
        let largest = self.window.largest;
        if !cx.profile.half_window_segments || largest == 0 {
            return u16::MAX;
        }
        let most = if largest > HALVED_FROM_BYTES { largest / 2 } else { largest };
        most.clamp(SEGMENT_BYTES_MIN, u16::MAX.into()) as u16
    }

    fn fin_is_unsent(&self) -> bool {
        self.fin && self.recovery.flight.next <= self.end
    }

    /// The window was closed for a whole probe interval (RFC 9293 §3.8.6.1).
    fn on_window_probe_timer(&mut self, cx: &EndpointContext) -> bool {
        // Unanswered ones: a peer that answers with a closed window is never given up (RFC 9293 §3.8.6.1, MUST-37).
        if u32::from(self.probes) >= cx.profile.retries {
            return false;
        }
        self.probes = self.probes.saturating_add(1);
        self.window_probes = self.window_probes.saturating_add(1);
        // The peer's window is open but too small to be worth it: send what fits (RFC 1122 §4.2.3.4 (4)).
        self.sws_override = self.window.edge > self.recovery.flight.next;
        self.probe_due = !self.sws_override;
        true
    }

    /// RFC 8985 §7.3: new data if there is any that fits the peer's window, whatever Nagle's algorithm says, else the
    /// last segment again.
    fn next_tail_probe(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        limit: u16,
    ) -> Option<OutgoingSegment> {
        let length = self.unsent().min(u64::from(limit));
        let fits = length > 0 && self.recovery.flight.next + length <= self.window.edge;
        let probe = if fits {
            self.send_new(cx, fx, length as u16, limit)
        } else {
            let last = self.recovery.repeat_last(cx, fx)?;
            self.repeat(cx, last)
        };
        self.recovery.on_probe_sent(cx, fx, !fits);
        Some(probe)
    }

    /// Bytes of the next new segment as far as buffer, peer's window, Nagle and silly-window avoidance
    /// (RFC 1122 §4.2.3.4) let it leave now; zero for a FIN by itself.
    fn sendable(&self, cx: &EndpointContext, limit: u16) -> Option<u16> {
        let unsent = self.unsent();
        if unsent == 0 && !self.fin_is_unsent() {
            return None;
        }
        let full = u64::from(limit);
        let next = self.recovery.flight.next;
        let room = self.window.edge.saturating_sub(next);
        // An skb that is closed leaves as it is, and does not wait for more.
        let closed = self.coalescing.closed.saturating_sub(next);
        let coalesced = if closed > 0 { closed } else { unsent };
        let length = coalesced.min(full).min(room);
        // The final FIN is not held back by Nagle's algorithm (`tcp_nagle_test`), nor the data that go with it.
        let ends = self.fin_is_unsent() && length == unsent && room > length;
        // RFC 1122 §4.2.3.4: a full segment (1), all that is queued (2), a fraction of the largest window (3); (4) is
        // the override.
        let worthwhile = length == full
            || ends
            || closed > 0 && length == closed
            || length > 0 && length == unsent && self.nagle_permits()
            || self.fills_window(cx, length, room)
            // Half of the largest window is worth it where a full segment may never fit (RFC 1122 §4.2.3.4 (3)).
            || length > 0 && length < unsent && 2 * length >= self.window.largest;
        let overridden = self.sws_override && length > 0;
        (worthwhile || overridden).then_some(length as u16)
    }

    /// Whether these bytes end a train of segments at the edge of the window: Linux sends an skb as far as the window goes,
    /// if at least one full segment of it fits, and Nagle's algorithm does not hold the rest (`tcp_mss_split_point`).
    fn fills_window(&self, cx: &EndpointContext, length: u64, room: u64) -> bool {
        let next = self.recovery.flight.next;
        let is_train = self.sent_any && self.memory.as_ref().is_none_or(|memory| memory.continues(next));
        cx.profile.skb_coalescing && is_train && length > 0 && length == room && self.nagle == Nagle::Off
    }

    fn nagle_permits(&self) -> bool {
        match self.nagle {
            Nagle::Off => true,
            Nagle::Classic => self.recovery.flight.is_empty(),
            // `tcp_minshall_check`: full segments in flight hold nothing back.
            Nagle::Minshall => self.small_end <= self.recovery.flight.una,
        }
    }

    fn send_new(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        length: u16,
        limit: u16,
    ) -> OutgoingSegment {
        self.recovery.before_sending(cx, self.last_sent_at);
        // Idle since the last segment sent, not received: a request would hide the pause before its answer (RFC 5681 §4.1).
        if self.recovery.flight.is_empty() {
            let idle = cx.now.since(self.last_sent_at);
            let timeout = self.recovery.rto(cx);
            self.recovery.congestion.on_idle(idle, timeout, cx.profile.slow_start_after_idle);
        }
        let end = self.recovery.flight.next + u64::from(length);
        let emptied = u64::from(length) == self.unsent();
        // The last buffered segment must carry PSH (RFC 9293 §3.9.1.2, MUST-61); Linux sets it where an skb is
        // closed, too.
        let pushed = emptied || end == self.coalescing.closed;
        // A FIN takes a sequence number, which the peer's window must have.
        let fin = self.fin && emptied && self.window.edge > end;
        if length < limit {
            self.small_end = end;
        }
        let position = self.recovery.on_new_data(cx, fx, length + u16::from(fin), pushed);
        self.last_sent_at = cx.now;
        (self.sws_override, self.window_probes) = (false, 0);
        self.sent_any = true;
        fx.counters.data_segments += u64::from(length > 0);
        OutgoingSegment { position, length, flags: data_flags(length, fin, pushed), is_new: true }
    }

    fn repeat(&mut self, cx: &EndpointContext, again: SentSegment) -> OutgoingSegment {
        let fin = self.fin && again.end() > self.end;
        let length = again.length - u16::from(fin);
        self.last_sent_at = cx.now;
        let flags = data_flags(length, fin, again.was_pushed());
        OutgoingSegment { position: again.start, length, flags, is_new: false }
    }
}

fn data_flags(length: u16, fin: bool, pushed: bool) -> Flags {
    let mut flags = Flags::ACK;
    if length > 0 && pushed {
        flags = flags.with(Flags::PSH);
    }
    if fin { flags.with(Flags::FIN) } else { flags }
}

/// `TCP_INIT_CWND`, whatever the initial window is.
const INITIAL_SEGMENTS: u64 = 10;
/// `GSO_LEGACY_MAX_SIZE`, without the room for headers.
const SKB_BYTES_MAX: u64 = 65_536 - 257;
/// `TCP_MSS_DEFAULT`: smaller windows are not halved.
const HALVED_FROM_BYTES: u64 = 536;
/// RFC 791's smallest datagram, without the headers of IP and of TCP with timestamps.
const SEGMENT_BYTES_MIN: u64 = 68 - 52;
