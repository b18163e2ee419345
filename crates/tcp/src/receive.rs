//! The receiving half: what has come, in order and not, the window that is offered, and what is said about both.
//!
//! Reassembly keeps ranges, not bytes. Beside the ranges it remembers in which order they last grew, latest first, because
//! that is the order in which SACK blocks report them (RFC 2018 §4).

use std::ops::Range;

use mqttlab_units::{Duration, OptionalInstant, RangeSet};

use crate::ack::{Acknowledger, Circumstances};
use crate::context::{Effects, EndpointContext};
use crate::ecn::{CongestionEcho, Quickly};
use crate::memory::ReceiveMemory;
use crate::profile::Profile;
use crate::segment::{Flags, SackBlocks, Segment, Timestamps};
use crate::sequence::Seq;

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// IRS: the peer's initial sequence number.
    initial: Seq,
    /// RCV.NXT: the next position expected.
    next: u64,
    /// Where the application has read to.
    read: u64,
    /// The right edge of the window as last advertised.
    edge: u64,
    /// RCV.NXT when an acknowledgement was last sent (RFC 7323 `Last.ACK.sent`).
    last_acked: u64,
    /// The timestamp to be echoed (RFC 7323 `TS.Recent`).
    ts_recent: u32,
    /// Where the peer's FIN is, once known.
    fin: Option<u64>,
    /// All before the FIN has come, and the FIN has been counted.
    fin_taken: bool,
    /// What has come out of order; `None` where nothing ever has, as on most of a million connections.
    beyond: Option<Box<BeyondGap>>,
    /// What the buffer's memory offers, where it counts memory.
    memory: Option<ReceiveMemory>,
    /// When to acknowledge.
    pub ack: Acknowledger,
    echo: CongestionEcho,
    /// The application reads no more.
    pub abandoned: bool,
}

/// What has come beyond a gap.
#[derive(Clone, Debug, Default)]
struct BeyondGap {
    ranges: RangeSet,
    /// Where they begin, in the order in which they last grew.
    recent: Vec<u64>,
    /// What came again and has not been told of (D-SACK, RFC 2883).
    repeated: Option<Range<u64>>,
}

/// What of the sending half the timing of acknowledgements depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    pub rto: Duration,
    pub srtt: Option<Duration>,
}

/// What a piece of stream turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentArrival {
    /// It moved RCV.NXT, possibly over data that had come before.
    InOrder {
        /// Whether data beyond a gap was waiting: then the sender should know at once (RFC 5681 §4.2).
        filled: bool,
    },
    /// Beyond a gap, and new or not.
    OutOfOrder,
    /// Nothing new.
    Duplicate,
}

impl Receiver {
    pub fn new(profile: &Profile) -> Receiver {
        let whole = u64::from(profile.receive_buffer);
        let buffer = if profile.truesize { profile.first_window(profile.mss) } else { whole };
        Receiver {
            initial: Seq(0),
            next: 0,
            read: 1,
            edge: 0,
            last_acked: 0,
            ts_recent: 0,
            fin: None,
            fin_taken: false,
            beyond: None,
            memory: profile.truesize.then(|| ReceiveMemory::new(profile.first_window(profile.mss))),
            ack: Acknowledger::new(profile.mss, buffer),
            echo: CongestionEcho::default(),
            abandoned: false,
        }
    }

    /// The peer's SYN.
    pub fn on_syn(&mut self, cx: &EndpointContext, syn: &Segment) {
        let stamps = syn.timestamps.filter(|_| cx.terms.timestamps);
        self.ts_recent = stamps.map_or(0, |stamps| stamps.value);
        self.initial = syn.seq;
        (self.next, self.last_acked) = (1, 0);
        // Our own SYN may have offered a window already, which must not shrink (RFC 9293 §3.8.6).
        self.edge = self.edge.max(1 + cx.profile.first_window(cx.payload_max()));
    }

    /// The peer's SYN came again, and this stack echoes the latest one's timestamp.
    pub fn on_repeated_syn(&mut self, syn: &Segment) {
        self.ts_recent = syn.timestamps.map_or(self.ts_recent, |stamps| stamps.value);
    }

    /// Where a segment begins in the peer's stream.
    pub fn position(&self, segment: &Segment) -> Option<u64> {
        segment.seq.position(self.initial, self.next)
    }

    /// Whether it begins exactly where the next byte is expected.
    pub fn expects(&self, start: u64) -> bool {
        start == self.next
    }

    /// In-order bytes that the application has not read.
    pub fn unread(&self) -> u64 {
        // The FIN takes a position, but is no byte.
        let data_end = if self.fin.is_some_and(|fin| self.next > fin) { self.next - 1 } else { self.next };
        data_end.saturating_sub(self.read)
    }

    /// How much of the stream can be read or has been, as an offset.
    pub fn readable_offset(&self) -> u64 {
        self.read + self.unread() - 1
    }

    /// The application takes up to `bytes`; says how many there were.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.unread());
        self.read += taken;
        taken
    }

    /// The application has read something, which may be worth a window update or a delayed acknowledgement.
    pub fn after_read(&mut self, cx: &EndpointContext, path: RoundTrip) {
        let circumstances = self.circumstances(cx, path);
        self.ack.on_read(cx.profile.delayed_ack, &circumstances);
    }

    /// The timers of acknowledgements that are due.
    pub fn tick(&mut self, cx: &EndpointContext, fx: &mut Effects, path: RoundTrip) {
        if fx.timers.ack.is_due(cx.now) {
            fx.timers.ack = OptionalInstant::NONE;
            let circumstances = self.circumstances(cx, path);
            self.ack.on_timer(cx.profile.delayed_ack, &circumstances);
        }
        if fx.timers.compression.is_due(cx.now) {
            fx.timers.compression = OptionalInstant::NONE;
            self.ack.on_compression_timer();
        }
    }

    /// PAWS (RFC 7323 §5), for segments that carry something: acknowledgements alone may be reordered freely.
    pub fn is_outdated(&self, cx: &EndpointContext, segment: &Segment) -> bool {
        let Some(stamps) = segment.timestamps.filter(|_| cx.terms.timestamps) else { return false };
        let older = stamps.value.wrapping_sub(self.ts_recent) > 1 << 31;
        // A reset is not judged by its timestamp (RFC 7323 §5.3 R1).
        older && segment.sequence_length() > 0 && !segment.flags.has(Flags::RST)
    }

    /// Whether any of the segment lies in the window (RFC 9293 §3.10.7.4, first check). A late acknowledgement of before
    /// the last one sent is let through, as Linux does, so that reordering does not make acknowledgements answer each other.
    pub fn is_acceptable(&self, segment: &Segment, start: u64) -> bool {
        let end = start + segment.sequence_length();
        if segment.sequence_length() == 0 {
            return end >= self.last_acked && start <= self.edge.max(self.next);
        }
        end > self.next && (start < self.edge || start <= self.next)
    }

    /// RFC 7323 §4.3: the timestamp to echo is that of the segment that the last acknowledgement was about, so that a
    /// delayed acknowledgement measures the delay, too.
    pub fn note_timestamp(&mut self, cx: &EndpointContext, segment: &Segment, start: u64) {
        let Some(stamps) = segment.timestamps.filter(|_| cx.terms.timestamps) else { return };
        let newer = stamps.value.wrapping_sub(self.ts_recent) < 1 << 31;
        if newer && start <= self.last_acked {
            self.ts_recent = stamps.value;
        }
    }

    /// A segment outside the window, or an outdated one: the peer is told what is expected.
    pub fn on_unacceptable(&mut self, cx: &EndpointContext, segment: &Segment, start: u64) {
        let old_data = segment.length > 0;
        if old_data && start < self.next {
            let end = (start + u64::from(segment.length)).min(self.next);
            self.beyond.get_or_insert_default().repeated = Some(start..end);
        }
        let ends_there = start + segment.sequence_length() == self.last_acked;
        if cx.profile.echoes_repetitions && ends_there && segment.sequence_length() > 0 {
            self.note_timestamp(cx, segment, start);
        }
        self.ack.on_disorder(old_data, cx.profile.delayed_ack);
    }

    /// Whether a segment that is not acceptable is discarded with the acknowledgement in it. Linux accepts what ends where the
    /// last acknowledgement was about or behind that, and discards the rest (`tcp_sequence`, `tcp_validate_incoming`). So a
    /// repetition that was needless may carry the only news of what has arrived, and the sender waits for its timer.
    pub fn discards(&self, cx: &EndpointContext, segment: &Segment, start: u64) -> bool {
        let ends_before = start + segment.sequence_length() < self.last_acked;
        let is_beyond = start > self.edge.max(self.next);
        cx.profile.echoes_repetitions && (ends_before || is_beyond || self.is_outdated(cx, segment))
    }

    /// Whether a segment brings data that nobody will ever read (RFC 1122 §4.2.2.13).
    pub fn refuses(&self, segment: &Segment, start: u64) -> bool {
        self.abandoned && segment.length > 0 && start + u64::from(segment.length) > self.next
    }

    /// Takes data and FIN of an acceptable segment. Says whether the peer's FIN is reached with it.
    pub fn take(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        path: RoundTrip,
        segment: &Segment,
        start: u64,
    ) -> bool {
        if cx.terms.ecn && segment.length > 0 {
            match self.echo.on_data(segment) {
                Quickly::AsUsual => {}
                Quickly::TwoQuick => self.ack.on_congestion(cx.profile.delayed_ack),
                Quickly::Now => self.ack.at_once(),
            }
        }
        let whole = start + u64::from(segment.length);
        // What lies behind the window is cut off, and a FIN with it.
        let end = whole.min(self.edge).max(start);
        let ends = segment.flags.has(Flags::FIN) && end == whole;
        if ends {
            self.fin = Some(end);
        }
        // Beyond a gap a FIN is kept and selectively acknowledged like a byte; in order it is counted apart, below.
        let beyond = ends && start > self.next;
        if (segment.length > 0 || beyond) && self.fin.is_none_or(|fin| end <= fin) {
            self.take_bytes(cx, fx, path, segment, start..end + u64::from(beyond));
        }
        self.take_fin(fx)
    }

    /// Puts the acknowledgement on a segment that leaves: whatever leaves carries it.
    pub fn acknowledge(&mut self, cx: &EndpointContext, fx: &mut Effects, segment: &mut Segment) {
        self.edge = self.next_edge(cx);
        self.last_acked = self.next;
        self.ack.on_acknowledged(cx.profile.delayed_ack);
        (fx.timers.ack, fx.timers.compression) = Default::default();
        segment.ack = self.initial.at(self.next);
        if self.echo.is_due() {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        // Shifted, so cut and never rounded up: the peer may use no more than there is (RFC 7323 §2.3).
        segment.window = (self.window() >> cx.terms.own_scale).min(65_535) as u16;
        let stamps = || Timestamps { value: cx.timestamp(), echo: self.ts_recent };
        segment.timestamps = cx.terms.timestamps.then(stamps);
        // Data that was cut for fewer blocks goes out without any.
        if segment.length <= self.payload_limit(cx) {
            segment.sack = self.sack_blocks(cx);
        }
        if let Some(beyond) = &mut self.beyond {
            beyond.repeated = None;
        }
    }

    /// As [`acknowledge`](Receiver::acknowledge), of a SYN or SYN-ACK.
    pub fn acknowledge_in_syn(&mut self, segment: &mut Segment) {
        if segment.flags.has(Flags::ACK) {
            segment.ack = self.initial.at(self.next);
        }
        if let Some(stamps) = &mut segment.timestamps {
            stamps.echo = self.ts_recent;
        }
        self.edge = self.next + u64::from(segment.window);
        self.last_acked = self.next;
    }

    /// The largest payload beside the options that a segment carries now.
    pub fn payload_limit(&self, cx: &EndpointContext) -> u16 {
        cx.payload_max() - self.sack_option_bytes(cx)
    }

    /// What SACK blocks take of a segment's payload now.
    fn sack_option_bytes(&self, cx: &EndpointContext) -> u16 {
        let has_blocks = |beyond: &BeyondGap| !beyond.ranges.is_empty() || beyond.repeated.is_some();
        if !cx.terms.sack || !self.beyond.as_deref().is_some_and(has_blocks) {
            return 0;
        }
        self.sack_blocks(cx).option_bytes()
    }

    /// RFC 2018 §4: as many blocks as fit 40 bytes of options, what came twice first (RFC 2883 §4), then the latest.
    fn sack_blocks(&self, cx: &EndpointContext) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if cx.terms.sack {
            let most = if cx.terms.timestamps { 3 } else { 4 };
            let repeated = self.beyond.iter().filter_map(|beyond| beyond.repeated.clone());
            let repeated = repeated.filter(|_| cx.profile.dsack);
            let kept = self.beyond.iter().flat_map(|beyond| beyond.latest());
            for range in repeated.chain(kept).take(most) {
                blocks.push(self.initial.at(range.start), self.initial.at(range.end));
            }
        }
        blocks
    }

    fn take_bytes(
        &mut self,
        cx: &EndpointContext,
        fx: &mut Effects,
        path: RoundTrip,
        segment: &Segment,
        bytes: Range<u64>,
    ) {
        let policy = cx.profile.delayed_ack;
        match self.accept(bytes) {
            SegmentArrival::InOrder { filled } => {
                fx.events.readable = true;
                let circumstances = self.circumstances(cx, path);
                let push = segment.flags.has(Flags::PSH);
                if let Some(memory) = &mut self.memory {
                    let is_news = segment.length > self.ack.segment_bytes();
                    let mss = u64::from(cx.payload_max());
                    memory.on_data(cx.profile.receive_buffer.into(), segment.length.into(), mss, is_news);
                }
                let delay = self.ack.on_data(segment.length, push, policy, &circumstances);
                // At once when no gap is left (`tcp_data_queue`); one of several counts as another report of a gap.
                if filled && !self.has_gap() {
                    self.ack.on_disorder(false, policy);
                } else if filled {
                    self.on_gap(cx, fx, path);
                }
                // The first segment that may wait starts the timer; later ones do not put it off.
                if let Some(delay) = delay.filter(|_| fx.timers.ack.is_none()) {
                    fx.timers.ack = cx.profile.ack_deadline(cx.now, delay).into();
                }
            }
            SegmentArrival::OutOfOrder => self.on_gap(cx, fx, path),
            SegmentArrival::Duplicate => self.ack.on_disorder(true, policy),
        }
    }

    /// Something has come beyond a gap, or before one.
    fn on_gap(&mut self, cx: &EndpointContext, fx: &mut Effects, path: RoundTrip) {
        let circumstances = self.circumstances(cx, path);
        let policy = cx.profile.delayed_ack;
        if let Some(wait) = self.ack.on_gap(self.next, cx.terms.sack, policy, &circumstances) {
            // Linux has a high-resolution timer for it (`compressed_ack_timer`), which no tick rounds.
            fx.timers.compression = (cx.now + wait).into();
        }
    }

    /// Counts the peer's FIN, once all before it has come.
    fn take_fin(&mut self, fx: &mut Effects) -> bool {
        let Some(fin) = self.fin.filter(|fin| *fin <= self.next && !self.fin_taken) else { return false };
        self.next = fin + 1;
        self.fin_taken = true;
        self.ack.at_once();
        fx.events.peer_closed = true;
        true
    }

    /// Takes the bytes of a range.
    fn accept(&mut self, bytes: Range<u64>) -> SegmentArrival {
        if bytes.start < self.next && !bytes.is_empty() {
            let repeated = bytes.start..bytes.end.min(self.next);
            self.beyond.get_or_insert_default().repeated = Some(repeated);
        }
        if bytes.end <= self.next {
            return SegmentArrival::Duplicate;
        }
        if bytes.start > self.next {
            self.keep(bytes);
            return SegmentArrival::OutOfOrder;
        }
        self.next = bytes.end;
        let filled = self.has_gap();
        if let Some(beyond) = &mut self.beyond {
            self.next = beyond.take_from(self.next);
        }
        SegmentArrival::InOrder { filled }
    }

    /// Whether something has come beyond a gap.
    fn has_gap(&self) -> bool {
        self.beyond.as_ref().is_some_and(|beyond| !beyond.ranges.is_empty())
    }

    /// Keeps what lies beyond a gap; its range is the one that grew last.
    fn keep(&mut self, new: Range<u64>) {
        let beyond = self.beyond.get_or_insert_default();
        if beyond.ranges.contains(&new) {
            beyond.repeated = Some(new);
            return;
        }
        let merged = beyond.ranges.insert(new);
        beyond.recent.retain(|start| !merged.contains(start));
        beyond.recent.insert(0, merged.start);
    }

    /// How many bytes an empty buffer can take.
    fn buffer(&self, cx: &EndpointContext) -> u64 {
        let set = u64::from(cx.profile.receive_buffer);
        self.memory.map_or(set, |memory| memory.window(set, cx.terms.own_scale))
    }

    /// By how much the window must open to be worth saying: a segment (RFC 1122 §4.2.3.3). Linux leaves that to the unit of
    /// a scaled window (`__tcp_select_window`), and small buffers show it.
    fn window_step(&self, cx: &EndpointContext) -> u64 {
        if self.memory.is_some() { 1 } else { u64::from(cx.payload_max()) }
    }

    /// How much the peer may still send, as it was told.
    fn window(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// The right edge to advertise.
    fn next_edge(&self, cx: &EndpointContext) -> u64 {
        let Some(memory) = self.memory.filter(|_| cx.terms.own_scale == 0) else {
            return self.offer(self.buffer(cx), self.window_step(cx));
        };
        let last = self.edge.saturating_sub(self.last_acked);
        let segment = self.ack.segment_bytes().into();
        let window = memory.unscaled_window(cx.profile.receive_buffer.into(), self.unread(), last, segment);
        self.edge.max(self.next + window)
    }

    /// The right edge by what an empty buffer takes. It never moves left (RFC 9293 §3.8.6), and right only in steps worth a
    /// segment (RFC 1122 §4.2.3.3).
    fn offer(&self, buffer: u64, mss: u64) -> u64 {
        let edge = self.next + buffer.saturating_sub(self.unread());
        let step = mss.min(buffer / 2).max(1);
        if edge >= self.edge + step { edge } else { self.edge.max(self.next) }
    }

    fn circumstances(&self, cx: &EndpointContext, path: RoundTrip) -> Circumstances {
        let buffer = self.buffer(cx);
        Circumstances {
            now: cx.now,
            rto: path.rto,
            rto_min: cx.profile.rto.min,
            srtt: path.srtt,
            unacknowledged: self.next - self.last_acked,
            unread: self.unread(),
            advertised: self.edge.saturating_sub(self.last_acked),
            window: self.window(),
            window_now: self.next_edge(cx) - self.next,
            buffer,
        }
    }
}

impl BeyondGap {
    /// The ranges, the one that grew last first.
    fn latest(&self) -> impl Iterator<Item = Range<u64>> {
        self.recent.iter().filter_map(|&start| self.ranges.range_at(start))
    }

    /// Everything before `next` has come, and so may have what lies behind it: up to where all has come now.
    fn take_from(&mut self, mut next: u64) -> u64 {
        // An acknowledgement that advances may list its blocks in any order (RFC 2018 §4 binds those that do not).
        while let Some(index) = self.recent.iter().position(|&start| start <= next) {
            let range = self.ranges.range_at(self.recent.swap_remove(index));
            next = range.map_or(next, |range| next.max(range.end));
        }
        self.ranges.take_from(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> Receiver {
        Receiver { next: 1, edge: 1001, ..Receiver::new(&Profile::named("linux")) }
    }

    #[test]
    fn rfc2018_4_the_range_that_grew_last_comes_first() {
        let mut rx = receiver();
        for range in [101..201, 301..401, 501..601, 201..251] {
            assert_eq!(rx.accept(range), SegmentArrival::OutOfOrder);
        }
        assert_eq!(rx.beyond.as_ref().unwrap().recent, [101, 501, 301]);
        assert_eq!(rx.accept(510..520), SegmentArrival::OutOfOrder);
        assert_eq!(rx.beyond.as_ref().unwrap().repeated, Some(510..520));
        assert_eq!(rx.accept(0..1), SegmentArrival::Duplicate);
        assert_eq!(rx.accept(1..101), SegmentArrival::InOrder { filled: true });
        let beyond = rx.beyond.unwrap();
        assert_eq!((rx.next, beyond.recent.len(), beyond.ranges.len()), (251, 2, 2));
    }

    #[test]
    fn rfc1122_4_2_3_3_the_window_opens_in_segments_only() {
        let mut rx = receiver();
        rx.accept(1..1001);
        rx.read = 201;
        assert_eq!(rx.offer(1000, 500), 1001, "200 bytes are not worth an update");
        rx.read = 501;
        assert_eq!(rx.offer(1000, 500), 1501);
    }
}
