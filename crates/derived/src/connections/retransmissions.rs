//! What senders sent again, and what for: judged from the frames of our own links, which know what had arrived when.
//!
//! A segment with data, SYN or FIN is *sent again* where the recording counts it so (`repetition` in `packets`). Its kind:
//!
//! - `spurious`: every byte of it, SYN and FIN included, had arrived undamaged at its receiver's host before it came to
//!   its first link. Whatever the sender knew, it was not needed.
//! - `fast`: not spurious, and before it left, acknowledgements that had come back to its sender's host spoke for a loss:
//!   something had been acknowledged that was sent after the copy before it (a selective acknowledgement beyond it, or one
//!   that answers another repetition: RFC 6675, RFC 8985), or three had repeated the number at which it begins (RFC 5681).
//! - `timer_or_probe`: none of these. A retransmission timer or a loss probe sent it; frames do not tell which.
//! - `unknown`: the recording has no earlier copy of a part of it, so that nothing can be said.
//!
//! A link's own copies are not sent again by anybody, and are not among these.

use mqttlab_recording::NumberMap;
use mqttlab_recording::reading::ABSENT;

use crate::network::frame_rows::{ACK, FIN, LinkFrame, SYN, StoredFate, wrapped};

/// Why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Retransmission {
    Fast,
    TimerOrProbe,
    Spurious,
    Unknown,
}

impl Retransmission {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Retransmission::Fast => "fast",
            Retransmission::TimerOrProbe => "timer_or_probe",
            Retransmission::Spurious => "spurious",
            Retransmission::Unknown => "unknown",
        }
    }
}

/// Acknowledgements with one number that speak for a loss (RFC 5681 §3.2).
const DUPLICATES_WANTED: usize = 3;
const NEVER: i64 = i64::MAX;

/// The frames of a connection, or of none, whose segments were sent again.
pub(crate) fn sent_again(rows: &[LinkFrame], early_ns: i64) -> NumberMap<u64, Retransmission> {
    let is_again =
        |row: &&LinkFrame| row.is_first() && row.fate != StoredFate::Duplicated && row.repetition > 0;
    let mut found: NumberMap<u64, Retransmission> =
        rows.iter().filter(is_again).map(|row| (row.frame, Retransmission::Unknown)).collect();
    let placed = |row: &&LinkFrame| row.connection != ABSENT && row.seq != ABSENT;
    let mut ports: Vec<i32> =
        rows.iter().filter(is_again).filter(placed).map(|row| row.source_port).collect();
    ports.sort_unstable();
    ports.dedup();
    if ports.is_empty() {
        return found;
    }
    let mut segments: Vec<&LinkFrame> = rows.iter().filter(placed).collect();
    // By the time of sending: the table's order is that of the last links' rows.
    segments.sort_by_key(|row| row.entered);
    for port in ports {
        SegmentHistory::of(&segments, port).judge(early_ns, &mut found);
    }
    found
}

/// One direction of a connection. Positions count from its first segment's sequence number.
#[derive(Default)]
struct SegmentHistory {
    /// Of each segment that was sent, in order.
    sent: Vec<SentSegment>,
    /// Of each segment that arrived, in the order of entering the last link.
    arrived: Vec<ArrivedSegment>,
    /// Of each acknowledgement that came back, in the order of arriving.
    acks: Vec<ReturnedAck>,
}

struct SentSegment {
    frame: u64,
    repetition: i64,
    entered: i64,
    start: i64,
    end: i64,
}

struct ArrivedSegment {
    frame: u64,
    at: i64,
    start: i64,
    end: i64,
}

struct ReturnedAck {
    sent: i64,
    at: i64,
    position: i64,
    is_bare: bool,
    /// The highest position that had been acknowledged selectively by then; -1 for none.
    sacked: i64,
}

/// Positions of sequence numbers, which wrap: each is taken to be the one nearest to the one before.
#[derive(Default)]
struct Positions {
    latest: Option<i64>,
    position: i64,
}

impl Positions {
    fn of(&mut self, number: i64) -> i64 {
        self.position += self.latest.replace(number).map_or(0, |before| wrapped(number - before));
        self.position
    }
}

impl SegmentHistory {
    fn of(segments: &[&LinkFrame], port: i32) -> SegmentHistory {
        let mut way = SegmentHistory::default();
        let (mut positions, mut first) = (Positions::default(), None);
        for row in segments.iter().filter(|row| row.source_port == port) {
            first.get_or_insert(row.seq);
            let start = positions.of(row.seq);
            // It takes no place in the stream: an acknowledgement, or a probe without data.
            if row.repetition == ABSENT {
                continue;
            }
            let flags = i64::from(row.has_flag(SYN)) + i64::from(row.has_flag(FIN));
            let end = start + i64::from(row.payload_bytes) + flags;
            if row.is_first() && row.fate != StoredFate::Duplicated {
                let (frame, repetition, entered) = (row.frame, row.repetition, row.entered);
                way.sent.push(SentSegment { frame, repetition, entered, start, end });
            }
            if row.has_arrived() {
                way.arrived.push(ArrivedSegment { frame: row.frame, at: row.delivered, start, end });
            }
        }
        way.acknowledge(segments, port, first.unwrap_or(0));
        way
    }

    /// Takes what came back. Positions count from the sequence number `first`.
    fn acknowledge(&mut self, segments: &[&LinkFrame], port: i32, first: i64) {
        let back = || {
            let of_way =
                |row: &&&LinkFrame| row.destination_port == port && row.has_flag(ACK) && row.ack != ABSENT;
            segments.iter().filter(of_way)
        };
        let mut set_out = NumberMap::default();
        for row in back() {
            set_out.entry(row.frame).or_insert(row.entered);
        }
        let (mut positions, mut base) = (Positions::default(), None);
        let mut arrived = Vec::new();
        for row in back() {
            // The first acknowledgement lies close behind the first segment.
            let base = *base.get_or_insert_with(|| wrapped(row.ack - first));
            let position = base + positions.of(row.ack);
            if row.has_arrived() {
                arrived.push((row.delivered, position, row));
            }
        }
        // What the sender knew it knew in the order of arriving, whatever was reordered on the way.
        arrived.sort_by_key(|&(at, _, _)| at);
        let mut sacked = -1;
        for (at, position, row) in arrived {
            if row.sacked_beyond != ABSENT {
                sacked = sacked.max(position + row.sacked_beyond);
            }
            let is_bare = row.payload_bytes == 0 && !row.has_flag(SYN | FIN);
            self.acks.push(ReturnedAck { sent: set_out[&row.frame], at, position, is_bare, sacked });
        }
    }

    /// The kind of each repetition.
    fn judge(&self, early_ns: i64, found: &mut NumberMap<u64, Retransmission>) {
        let again: Vec<usize> = (0..self.sent.len()).filter(|&row| self.sent[row].repetition > 0).collect();
        let answered = self.answered(&again);
        let mut pieces = Pieces::of(self);
        for &row in &again {
            let segment = &self.sent[row];
            let (first, before, arrived) = pieces.earlier_copies(row);
            let until = segment.entered.saturating_add(early_ns);
            let kind = if first >= row {
                Retransmission::Unknown
            // Before the other kinds: what had arrived was not needed, whatever made the sender repeat it.
            } else if arrived < segment.entered {
                Retransmission::Spurious
            // RFC 6675, RFC 8985, RFC 5681, in this order: the first that speaks for a loss suffices.
            } else if self.sacked_by(until) > pieces.highest[before]
                || answered[again.partition_point(|&other| other <= before)] <= until
                || self.duplicates(segment.start, self.sent[before].entered, until) >= DUPLICATES_WANTED
            {
                Retransmission::Fast
            } else {
                Retransmission::TimerOrProbe
            };
            found.insert(segment.frame, kind);
            pieces.sent(row);
        }
    }

    /// By when the sender had been told that this repetition, or one after it, had arrived; one more: never.
    fn answered(&self, again: &[usize]) -> Vec<i64> {
        let mut told = vec![NEVER; again.len() + 1];
        let arrived: NumberMap<u64, i64> = self.arrived.iter().map(|one| (one.frame, one.at)).collect();
        let mut by_sending: Vec<&ReturnedAck> = self.acks.iter().collect();
        by_sending.sort_by_key(|one| one.sent);
        let (mut highest, mut numbers) = (i64::MIN, Vec::with_capacity(by_sending.len()));
        for one in &by_sending {
            highest = highest.max(one.position);
            numbers.push(highest);
        }
        let mut soonest = vec![NEVER; by_sending.len() + 1];
        for place in (0..by_sending.len()).rev() {
            soonest[place] = soonest[place + 1].min(by_sending[place].at);
        }
        let is_selective = self.acks.last().is_some_and(|one| one.sacked >= 0);
        for (place, &row) in again.iter().enumerate() {
            let Some(&at) = arrived.get(&self.sent[row].frame) else { continue };
            // With selective acknowledgements the next one tells; without, the one whose number covers it.
            let mut after = by_sending.partition_point(|one| one.sent < at);
            if !is_selective {
                after = after.max(numbers.partition_point(|&number| number < self.sent[row].end));
            }
            told[place] = soonest[after];
        }
        // An answer to a later repetition speaks for the loss of the earlier ones, too (RFC 8985 §6.2).
        for place in (0..again.len()).rev() {
            told[place] = told[place].min(told[place + 1]);
        }
        told
    }

    /// The highest position that had been acknowledged selectively by then.
    fn sacked_by(&self, at: i64) -> i64 {
        let count = self.acks.partition_point(|one| one.at <= at);
        count.checked_sub(1).map_or(-1, |last| self.acks[last].sacked)
    }

    /// How many bare acknowledgements repeated a number in this time.
    fn duplicates(&self, number: i64, after: i64, until: i64) -> usize {
        let begin = self.acks.partition_point(|one| one.at <= after);
        let end = self.acks.partition_point(|one| one.at <= until).max(begin);
        let count = self.acks[begin..end].iter().filter(|one| one.position == number && one.is_bare).count();
        // The first with a number is news of its own, and no duplicate (RFC 5681 §2).
        let is_first_new = begin == 0 || self.acks[begin - 1].position != number;
        count - usize::from(is_first_new && count > 0)
    }
}

/// A stream cut wherever a segment begins or ends, so that every segment is a row of whole pieces.
struct Pieces {
    spans: Vec<(usize, usize)>,
    /// The segment that brought a piece first, and the last one so far, in the order of sending: many leave at one instant.
    first: Vec<usize>,
    latest: Vec<usize>,
    /// When a copy of it had arrived.
    arrived: Vec<i64>,
    /// How far the stream had been sent with each segment.
    highest: Vec<i64>,
}

impl Pieces {
    fn of(way: &SegmentHistory) -> Pieces {
        let mut cuts: Vec<i64> = way.sent.iter().flat_map(|one| [one.start, one.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let place = |position: i64| cuts.partition_point(|&cut| cut < position);
        let spans: Vec<_> = way.sent.iter().map(|one| (place(one.start), place(one.end))).collect();
        let mut first = vec![usize::MAX; cuts.len()];
        for (row, &(begin, end)) in spans.iter().enumerate() {
            first[begin..end].iter_mut().for_each(|piece| *piece = row.min(*piece));
        }
        let mut arrived = vec![NEVER; cuts.len()];
        for one in &way.arrived {
            let (begin, end) = (place(one.start), place(one.end));
            arrived[begin..end].iter_mut().for_each(|piece| *piece = one.at.min(*piece));
        }
        let mut highest: Vec<i64> = way.sent.iter().map(|one| one.end).collect();
        for row in 1..highest.len() {
            highest[row] = highest[row].max(highest[row - 1]);
        }
        Pieces { spans, latest: first.clone(), first, arrived, highest }
    }

    /// By which segment all of this one had been sent, which had a part of it last, and when all had arrived.
    fn earlier_copies(&self, row: usize) -> (usize, usize, i64) {
        let (begin, end) = self.spans[row];
        let last = |of: &[usize]| of[begin..end].iter().copied().max().unwrap_or(row);
        let arrived = self.arrived[begin..end].iter().copied().max().unwrap_or(NEVER);
        (last(&self.first), last(&self.latest), arrived)
    }

    /// The segment has left once more.
    fn sent(&mut self, row: usize) {
        let (begin, end) = self.spans[row];
        self.latest[begin..end].fill(row);
    }
}
