//! Frames of one capture in the order of their times.
//!
//! A capture of several queues of a card, or of several interfaces, stores frames a little out of order: they are put in order,
//! as far as they are near each other or a single one is not. A time that goes back further is another thing: the clock was set, or captures were put
//! one behind the other. Then the times behind are taken to go on from the last one before.
//!
//! A clock that goes back by less looks like frames out of order. What a connection's end sent tells the two apart: its time stamps
//! (RFC 7323 §3), or its sequence and acknowledgment numbers, grow in the order of the file, and the times of the frames do not.

use std::collections::VecDeque;

use mqttlab_capture::analysis::after;
use mqttlab_capture::{Bits, CapturedFrame, LinkTransit, LinkType, TcpHeader, TransportHeader, dissect};
use mqttlab_units::{Duration, Instant};

/// A frame that waits for its turn.
pub struct HeldFrame {
    /// When it was captured.
    pub time: Instant,
    /// Whether the capture says so.
    pub is_timed: bool,
    /// Frames that the capture dropped in front of it.
    pub dropped_before: u64,
    /// The capture's number of the interface.
    pub interface: u32,
    /// What the frame begins with.
    pub link_type: LinkType,
    /// Its length on the wire, in bytes.
    pub original_len: u32,
    /// The bytes that were captured.
    pub data: Vec<u8>,
    /// How it crossed its link, where mqttlab wrote that down.
    pub transit: Option<LinkTransit>,
}

impl HeldFrame {
    /// A place for a frame.
    pub fn empty() -> HeldFrame {
        HeldFrame {
            time: Instant::ZERO,
            is_timed: true,
            dropped_before: 0,
            interface: 0,
            link_type: LinkType::RAW,
            original_len: 0,
            data: Vec::new(),
            transit: None,
        }
    }

    /// The frame, as its reader gave it.
    pub fn frame(&self) -> CapturedFrame<'_> {
        let HeldFrame { time, is_timed, interface, link_type, original_len, ref data, .. } = *self;
        CapturedFrame { time, is_timed, interface, link_type, original_len, data }
    }

    /// The header of its TCP segment.
    fn segment(&self) -> Option<TcpHeader> {
        match dissect(&self.frame()) {
            TransportHeader::Tcp(segment, _) => Some(segment),
            _ => None,
        }
    }

    /// Takes a frame out of its reader's hands.
    pub fn hold(&mut self, frame: &CapturedFrame<'_>) {
        self.time = frame.time;
        self.is_timed = frame.is_timed;
        self.interface = frame.interface;
        self.link_type = frame.link_type;
        self.original_len = frame.original_len;
        self.data.clear();
        self.data.extend_from_slice(frame.data);
    }
}

/// Frames that were read and wait for their turn.
#[derive(Default)]
pub struct Sorting {
    /// By time; equal ones in the order of the file.
    waiting: VecDeque<HeldFrame>,
    /// A frame whose time is far behind: alone, if the next one's is not.
    suspect: Option<HeldFrame>,
    /// Room of frames that are gone.
    rooms: Vec<HeldFrame>,
    /// The latest time that was read, and that of the frame that was handed out last.
    latest: Instant,
    handed_out: Instant,
    /// How far all the following times are moved.
    moved: Duration,
    /// Frames that were put in order.
    swapped: u64,
    /// Frames that came too late to be put in order.
    late: u64,
    /// How often the clock went back.
    steps: u64,
    /// Frames that their sender sent after one whose time is later, and by how much at most.
    sent_after: u64,
    sent_after_by: Duration,
}

impl Sorting {
    /// The time of the next frame.
    pub fn time(&self) -> Option<Instant> {
        self.waiting.front().map(|held| held.time)
    }

    /// Frames that wait, by time.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &HeldFrame> {
        self.waiting.iter()
    }

    /// The first frame that was read, as far as it is here: also one whose time is far behind.
    pub fn first(&self) -> Option<&HeldFrame> {
        self.waiting.front().or(self.suspect.as_ref())
    }

    /// Whether more frames are to be read before the next one is known.
    pub fn wants_more(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Room for a frame.
    pub fn room(&mut self) -> HeldFrame {
        self.rooms.pop().unwrap_or_else(HeldFrame::empty)
    }

    /// A frame whose room can be used again.
    pub fn give_back(&mut self, held: HeldFrame) {
        self.rooms.push(held);
    }

    /// The next frame.
    pub fn next(&mut self) -> Option<HeldFrame> {
        let held = self.waiting.pop_front()?;
        self.handed_out = self.handed_out.max(held.time);
        Some(held)
    }

    /// A frame was read.
    pub fn put(&mut self, mut held: HeldFrame) {
        if !held.is_timed {
            return self.waiting.push_back(held);
        }
        held.time = self.moved_on(held.time);
        if let Some(suspect) = self.suspect.take() {
            if held.time >= self.latest {
                self.insert(suspect);
            } else {
                let back = self.step(suspect);
                held.time = Instant::from_ns(held.time.as_ns().saturating_add(back.as_ns()));
            }
        }
        match self.latest.checked_since(held.time) {
            Some(back) if back >= STEP => self.suspect = Some(held),
            Some(back) if !back.is_zero() => self.insert(held),
            _ => {
                self.latest = held.time;
                self.waiting.push_back(held);
            }
        }
    }

    /// No more frames come.
    pub fn end(&mut self) {
        if let Some(suspect) = self.suspect.take() {
            self.step(suspect);
        }
    }

    fn moved_on(&self, time: Instant) -> Instant {
        Instant::from_ns(time.as_ns().saturating_add(self.moved.as_ns()))
    }

    /// The clock went back before this frame. Says how far.
    fn step(&mut self, mut held: HeldFrame) -> Duration {
        let back = self.latest.checked_since(held.time).unwrap_or_default();
        self.steps += 1;
        self.moved = self.moved.saturating_add(back);
        held.time = self.latest;
        self.waiting.push_back(held);
        back
    }

    /// A frame is not in its place.
    fn insert(&mut self, held: HeldFrame) {
        self.swapped += 1;
        self.late += u64::from(held.time < self.handed_out);
        let place = self.waiting.partition_point(|other| other.time <= held.time);
        if let Some(segment) = held.segment() {
            let later = self.waiting.range(place..).rev().take(COMPARED_MAX);
            let earlier_sent = later
                .filter(|other| other.interface == held.interface)
                .filter_map(HeldFrame::segment)
                .find(|other| was_sent_after(&segment, other));
            if let Some(other) = earlier_sent {
                self.sent_after += 1;
                let back = other.time.checked_since(held.time).unwrap_or_default();
                self.sent_after_by = self.sent_after_by.max(back);
            }
        }
        self.waiting.insert(place, held);
    }

    /// What is wrong with the times of a capture.
    pub fn report_disorder(&self, label: &str, reasons: &mut Vec<String>, warnings: &mut Vec<String>) {
        if self.steps > 0 {
            let (times, moved) = (if self.steps == 1 { "" } else { " in all" }, self.moved);
            reasons.push(format!(
                "The clock of {label} went back by {moved}{times}, or captures were put one behind the other: the times behind \
                 are taken to go on from the last one before. Latencies across such a place are not known."
            ));
        }
        if self.sent_after > 0 {
            let (frames, back) = (self.sent_after, self.sent_after_by);
            reasons.push(format!(
                "{frames} frames of {label} have earlier times than frames that the same end of their connection sent before \
                 them: the clock went back, by {back} at least. Latencies across such a place are not known."
            ));
        }
        if self.late > 0 {
            reasons.push(format!(
                "{} frames of {label} stand far from their place in the order of times: some segments may count as \
                 retransmissions that are none. Put them in order first (reordercap).",
                self.late
            ));
        }
        if self.swapped > self.late {
            warnings.push(format!(
                "{} frames of {label} are stored out of the order of their times; they were put in order, and have other \
                 numbers than in the file.",
                self.swapped - self.late
            ));
        }
    }
}

/// Whether one end of a connection sent a segment after another one, by what it counts.
fn was_sent_after(this: &TcpHeader, other: &TcpHeader) -> bool {
    if this.source != other.source || this.destination != other.destination || this.bits.has(Bits::SYN) {
        return false;
    }
    match (this.options.timestamps, other.options.timestamps) {
        (Some((this, _)), Some((other, _))) => after(this, other),
        // One number alone also grows where a segment was repeated.
        _ => after(this.sequence, other.sequence) && after(this.acknowledgment, other.acknowledgment),
    }
}

/// Frames are not stored further than this from their place, unless a single one is.
const STEP: Duration = Duration::from_ms(100);
/// Frames that one out of order is compared with.
const COMPARED_MAX: usize = 64;
/// Frames that wait.
const WAITING_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(times_ms: &[u64]) -> (Vec<u64>, Sorting) {
        let (mut sorting, mut out) = (Sorting::default(), Vec::new());
        let mut take = |sorting: &mut Sorting| {
            if let Some(held) = sorting.next() {
                out.push(held.time.as_ns() / 1_000_000);
                sorting.give_back(held);
            }
        };
        for &ms in times_ms {
            let mut held = sorting.room();
            held.time = Instant::from_ns(ms * 1_000_000);
            sorting.put(held);
            if !sorting.wants_more() {
                take(&mut sorting);
            }
        }
        sorting.end();
        (0..=WAITING_MAX).for_each(|_| take(&mut sorting));
        (out, sorting)
    }

    #[test]
    fn frames_that_are_near_their_place_are_put_in_order() {
        let (out, sorting) = sorted(&[5_000, 5_003, 5_001, 5_002, 5_010]);
        assert_eq!(out, [5_000, 5_001, 5_002, 5_003, 5_010]);
        assert_eq!((sorting.swapped, sorting.late, sorting.steps), (2, 0, 0));
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on_from_the_last_time_before() {
        let (out, sorting) = sorted(&[5_000, 5_010, 1_000, 1_005, 1_200, 900]);
        assert_eq!(out, [5_000, 5_010, 5_010, 5_015, 5_210, 5_210]);
        assert_eq!((sorting.moved, sorting.steps), (Duration::from_ms(4_310), 2));
        let (mut reasons, mut warnings) = (Vec::new(), Vec::new());
        sorting.report_disorder("a", &mut reasons, &mut warnings);
        assert!(reasons[0].starts_with("The clock of a went back by"), "{reasons:?}");
        assert!(warnings.is_empty());
    }

    #[test]
    fn a_single_frame_behind_a_pause_was_swapped_with_its_neighbour() {
        let (out, sorting) = sorted(&[5_000, 5_500, 5_100, 5_501, 6_000]);
        assert_eq!(out, [5_000, 5_100, 5_500, 5_501, 6_000]);
        assert_eq!((sorting.swapped, sorting.steps), (1, 0));
    }

    #[test]
    fn what_comes_too_late_is_counted() {
        let mut times = vec![5_000; 600];
        times.extend([5_090; WAITING_MAX + 1]);
        times.extend([5_050, 5_090]);
        let (_, sorting) = sorted(&times);
        assert_eq!((sorting.swapped, sorting.late, sorting.steps), (1, 1, 0));
    }
}
