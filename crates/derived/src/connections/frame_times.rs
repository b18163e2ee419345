//! The time of a packet of several segments, divided by all of its frames.
//!
//! ```text
//!   transmitted:       ▒▒▒▒▒▒▒▒  ▒▒▒▒▒▒▒▒▒▒    ▒▒▒▒     some frame of it was on a transmitter
//!   queued:          ░░        ░░                       none was, and some waited in a queue
//!   neither:                               ____         its bytes waited at their sender, or had been lost
//! ```
//!
//! A large message keeps a slow link busy while later bytes wait in the socket, in a queue, or for a repetition. None of
//! that costs time as long as the link transmits others of its bytes. So transmission counts first, then queues, and the rest
//! is what the last frame had waited for. The parts are given as instants one behind another; their sums are true, and their
//! order in time is not.
//!
//! What it does not model: the transmission of frames that were lost behind it, which is time for the loss.

use crate::connections::segment_flight::SegmentFlight;
use crate::instants::{MaybeInstant, PackedInstant};

/// Where the frames of a packet were when, as spans of time.
#[derive(Default)]
pub(crate) struct FrameTimes {
    transmitted: Vec<(i64, i64)>,
    /// In queues or on transmitters.
    on_way: Vec<(i64, i64)>,
}

impl FrameTimes {
    /// Takes a frame: when it came to the link, left its queue, and had left its transmitter.
    pub(crate) fn add(&mut self, [entered, start, sent]: [i64; 3]) {
        self.transmitted.push((start, sent));
        self.on_way.push((entered, sent));
    }

    /// Divides the time of a packet from an instant until its arrival.
    pub(crate) fn divide(mut self, flight: SegmentFlight, begins: MaybeInstant) -> SegmentFlight {
        let ends = [begins, flight.went.get(), flight.started(), flight.arrived.get()];
        let [Some(begins), Some(went), Some(started), Some(arrived)] = ends else { return flight };
        // The last frame's own way, over all links.
        self.transmitted.push((started, arrived));
        self.on_way.push((went, arrived));
        let [transmitted, on_way] = [self.transmitted, self.on_way].map(merged);
        let mut at = begins;
        // How much of the time up to an instant was spent at the sender: behind what was counted before.
        let mut counted = begins;
        let mut waited = |until: MaybeInstant| {
            let until = until?.clamp(counted, went.max(counted));
            at += (until - counted) - covered(&on_way, counted, until);
            counted = until;
            Some(at)
        };
        let resumed = waited(flight.resumed.get());
        let tail = flight.tail;
        let [nagle_until, socket_until, held_until] =
            [tail.nagle_until, tail.socket_until, tail.held_until].map(|at| waited(at.get()));
        let Some(left) = waited(Some(went)) else { return flight };
        let packed = PackedInstant::from;
        let mut divided = SegmentFlight { resumed: packed(resumed), went: packed(Some(left)), ..flight };
        divided.tail.nagle_until = packed(nagle_until);
        divided.tail.socket_until = packed(socket_until);
        divided.tail.held_until = packed(held_until);
        let queue = covered(&on_way, begins, arrived) - covered(&transmitted, begins, arrived);
        divided.queue = packed(Some(queue));
        divided
    }
}

/// Spans in order, those that meet as one.
fn merged(mut spans: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    spans.sort_unstable();
    let mut found: Vec<(i64, i64)> = Vec::with_capacity(spans.len());
    for (from, until) in spans {
        match found.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => found.push((from, until)),
        }
    }
    found
}

/// How much of a time such spans cover.
fn covered(spans: &[(i64, i64)], from: i64, until: i64) -> i64 {
    let first = spans.partition_point(|&(_, ends)| ends <= from);
    let within = spans[first..].iter().take_while(|&&(begins, _)| begins < until);
    within.map(|&(begins, ends)| ends.min(until) - begins.max(from)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::segment_flight::WaitEnd;

    fn at(instant: i64) -> PackedInstant {
        PackedInstant::from(Some(instant))
    }

    /// Of a packet that began at 0: its last frame came to the link at 60, left the queue at 80 and arrived at 100.
    fn flight() -> SegmentFlight {
        let tail = WaitEnd { nagle_until: at(10), socket_until: at(60), held_until: at(60), frame: at(1) };
        let [went, queue, arrived, resumed] = [60, 20, 100, 10].map(at);
        SegmentFlight { frame: at(7), went, queue, arrived, resumed, first: WaitEnd::default(), tail }
    }

    /// Retransmission, socket, queue and wire.
    fn lengths(flight: &SegmentFlight) -> [i64; 4] {
        let known = |at: PackedInstant| at.get().unwrap();
        let (resumed, went, started) = (known(flight.resumed), known(flight.went), flight.started().unwrap());
        [resumed, went - resumed, started - went, known(flight.arrived) - started]
    }

    #[test]
    fn while_a_link_transmits_bytes_of_a_packet_the_others_wait_for_nothing_else() {
        let mut times = FrameTimes::default();
        times.add([0, 0, 40]);
        times.add([5, 40, 80]);
        assert_eq!(lengths(&times.divide(flight(), Some(0))), [0, 0, 0, 100]);
    }

    #[test]
    fn what_no_frame_spends_in_queue_or_transmitter_is_what_the_last_had_waited_for() {
        let mut times = FrameTimes::default();
        // From 20 to 30 it waits behind others, and from 50 on nothing is under way before the last frame.
        times.add([4, 4, 20]);
        times.add([6, 30, 50]);
        assert_eq!(lengths(&times.divide(flight(), Some(0))), [4, 10, 30, 56]);
        assert_eq!(lengths(&FrameTimes::default().divide(flight(), Some(0))), [10, 50, 20, 20]);
    }

    #[test]
    fn a_packet_that_never_arrived_is_not_divided() {
        let unknown = SegmentFlight { arrived: PackedInstant::NONE, ..flight() };
        assert_eq!(FrameTimes::default().divide(unknown, Some(0)).went.get(), Some(60));
        assert_eq!(FrameTimes::default().divide(flight(), None).went.get(), Some(60));
    }
}
