//! The receiving half's memory: what has come, in order and not, and the window that it offers.
//!
//! Reassembly keeps ranges, not bytes. The ranges are ordered by when they last grew, latest first, because that
//! is the order in which SACK blocks report them (RFC 2018 §4).

/// Bytes beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub start: u64,
    pub end: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// RCV.NXT: the next position expected.
    pub next: u64,
    /// Where the application has read to.
    pub read: u64,
    /// The right edge of the window as last advertised.
    pub edge: u64,
    /// RCV.NXT when an acknowledgement was last sent.
    pub acknowledged: u64,
    /// Where the peer's FIN is, once known.
    pub fin: Option<u64>,
    /// All before the FIN has come, and the FIN has been counted.
    pub fin_taken: bool,
    ranges: Vec<Range>,
    /// What came again and has not been told of (RFC 2883).
    pub repeated: Option<Range>,
}

/// What a piece of stream turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
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
    pub fn new() -> Receiver {
        Receiver {
            next: 0,
            read: 1,
            edge: 0,
            acknowledged: 0,
            fin: None,
            fin_taken: false,
            ranges: Vec::new(),
            repeated: None,
        }
    }

    /// In-order bytes that the application has not read.
    pub fn unread(&self) -> u64 {
        let data_end = if self.fin.is_some_and(|fin| self.next > fin) { self.next - 1 } else { self.next };
        data_end.saturating_sub(self.read)
    }

    pub fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// The ranges beyond the gap, latest first.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// The peer's window as advertised: how much it may still send.
    pub fn window(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// Takes the bytes from `start` up to `end`.
    pub fn accept(&mut self, start: u64, end: u64) -> Arrival {
        if start < self.next && start < end {
            self.repeated = Some(Range { start, end: end.min(self.next) });
        }
        if end <= self.next {
            return Arrival::Duplicate;
        }
        if start > self.next {
            return self.keep(Range { start, end });
        }
        self.next = end;
        let filled = self.has_gap();
        while let Some(index) = self.ranges.iter().position(|range| range.start <= self.next) {
            let range = self.ranges.swap_remove(index);
            self.next = self.next.max(range.end);
        }
        Arrival::InOrder { filled }
    }

    /// The right edge to advertise. It never moves left (RFC 9293 §3.8.6), and right only in steps worth a
    /// segment (RFC 1122 §4.2.3.3).
    pub fn offer(&self, buffer: u64, mss: u64) -> u64 {
        let edge = self.next + buffer.saturating_sub(self.unread());
        let step = mss.min(buffer / 2).max(1);
        if edge >= self.edge + step { edge } else { self.edge.max(self.next) }
    }

    fn keep(&mut self, mut new: Range) -> Arrival {
        let touches = |a: &Range, b: &Range| a.start <= b.end && b.start <= a.end;
        if self.ranges.iter().any(|range| range.start <= new.start && new.end <= range.end) {
            self.repeated = Some(new);
            return Arrival::OutOfOrder;
        }
        while let Some(index) = self.ranges.iter().position(|range| touches(range, &new)) {
            let old = self.ranges.remove(index);
            new = Range { start: old.start.min(new.start), end: old.end.max(new.end) };
        }
        self.ranges.insert(0, new);
        Arrival::OutOfOrder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> Receiver {
        Receiver { next: 1, edge: 1001, ..Receiver::new() }
    }

    #[test]
    fn rfc2018_4_the_range_that_grew_last_comes_first() {
        let mut rx = receiver();
        for (start, end) in [(101, 201), (301, 401), (501, 601), (201, 251)] {
            assert_eq!(rx.accept(start, end), Arrival::OutOfOrder);
        }
        let starts: Vec<u64> = rx.ranges().iter().map(|range| range.start).collect();
        assert_eq!(starts, [101, 501, 301]);
        assert_eq!(rx.accept(510, 520), Arrival::OutOfOrder);
        assert_eq!(rx.accept(0, 1), Arrival::Duplicate);
        assert_eq!(rx.accept(1, 101), Arrival::InOrder { filled: true });
        assert_eq!((rx.next, rx.ranges().len()), (251, 2));
    }

    #[test]
    fn rfc1122_4_2_3_3_the_window_opens_in_segments_only() {
        let mut rx = receiver();
        rx.accept(1, 1001);
        rx.read = 201;
        assert_eq!(rx.offer(1000, 500), 1001, "200 bytes are not worth an update");
        rx.read = 501;
        assert_eq!(rx.offer(1000, 500), 1501);
    }
}
