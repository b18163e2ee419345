//! How long segments take from one capture to another, and what that says of the clocks.
//!
//! ```text
//!   client ──── capture A ──── a ───► capture B ──── server       up:   time at B − time at A = offset + a
//!          ◄───           ◄── b ────                              down: time at B − time at A = offset − b
//! ```
//!
//! A segment takes some time from one capture to the other. So the offset is at most the least difference in one direction,
//! and at least the greatest one in the other (as in NTP, RFC 5905 §8). Which of both is nearer to the client follows: its
//! differences upward are the greater ones. Clocks that drift apart contradict every offset.

use std::collections::BTreeMap;

use mqttlab_capture::SocketEndpoint;
use mqttlab_units::Duration;

use super::clocks::seconds;

/// Sender and receiver of a segment.
type Ends = [SocketEndpoint; 2];

/// Differences of two captures' times, least and greatest, of one direction of a connection.
#[derive(Clone, Copy)]
struct Differences {
    least: i64,
    greatest: i64,
}

/// Differences upward and downward, by the ends of connections in the first capture.
type ConnectionDifferences = BTreeMap<Ends, [Option<Differences>; 2]>;

/// Bounds of the offset.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// At least.
    pub low: i64,
    /// At most.
    pub high: i64,
}

/// How long segments took from one capture to another.
#[derive(Default)]
pub struct Passages {
    of_pairs: BTreeMap<(u16, u16), ConnectionDifferences>,
}

impl Passages {
    /// A segment between these ends, of the connection as it was seen first, was seen in a second capture so much later.
    pub fn add(&mut self, pair: (u16, u16), [from, to]: Ends, passed_ns: i64) {
        let (pair, passed_ns) =
            if pair.0 <= pair.1 { (pair, passed_ns) } else { ((pair.1, pair.0), -passed_ns) };
        let (ends, way) = if from <= to { ([from, to], 0) } else { ([to, from], 1) };
        let connections = self.of_pairs.entry(pair).or_default();
        if connections.len() >= CONNECTIONS_MAX && !connections.contains_key(&ends) {
            return;
        }
        let ways = connections.entry(ends).or_default();
        let known = ways[way].get_or_insert(Differences { least: passed_ns, greatest: passed_ns });
        known.least = known.least.min(passed_ns);
        known.greatest = known.greatest.max(passed_ns);
    }

    /// The bounds of each pair of captures: how far the clock of the second is ahead.
    pub fn bounds(&self) -> BTreeMap<(u16, u16), Bounds> {
        let all = self.of_pairs.iter().filter_map(|(pair, connections)| {
            let bounds = connections.values().filter_map(|ways| Some(bounds([ways[0]?, ways[1]?])));
            let within = |one: Bounds, other: Bounds| Bounds {
                low: one.low.max(other.low),
                high: one.high.min(other.high),
            };
            bounds.reduce(within).map(|bounds| (*pair, bounds))
        });
        all.collect()
    }

    /// Clocks that drift apart, of captures with these names.
    pub fn drifting(&self, names: &[String]) -> Vec<String> {
        let bounds = self.bounds().into_iter();
        bounds.filter_map(|(pair, bounds)| bounds.contradiction(pair, names)).collect()
    }
}

impl Bounds {
    /// Why there is no offset within the bounds, where there is none.
    pub fn contradiction(&self, (one, other): (u16, u16), names: &[String]) -> Option<String> {
        if self.low <= self.high + JITTER_NS {
            return None;
        }
        let [one, other] = [one, other].map(|file| &names[usize::from(file)]);
        Some(format!(
            "The clocks of {one} and {other} drift apart, by {} s or more: no difference between them is right for all segments of \
             the connections that both hold. Latencies between them are not known.",
            seconds(Duration::from_ns((self.low - self.high) as u64))
        ))
    }
}

/// One direction is that away from the first capture: its differences are the greater ones.
fn bounds([one, other]: [Differences; 2]) -> Bounds {
    let as_one = Bounds { low: other.greatest, high: one.least };
    let as_other = Bounds { low: one.greatest, high: other.least };
    if as_one.high - as_one.low >= as_other.high - as_other.low { as_one } else { as_other }
}

/// A mirror port, or a card that stamps frames itself, may be that much late.
const JITTER_NS: i64 = 1_000_000;
/// Connections of two captures that are compared.
const CONNECTIONS_MAX: usize = 1 << 12;
/// Clocks of captures count microseconds.
pub const TOLERANCE_NS: i64 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn end(last: u8) -> SocketEndpoint {
        SocketEndpoint { address: [10, 0, 0, last].into(), port: 1883 }
    }

    /// Segments that take 5 ms up and 7 ms down, where the second clock is so far ahead; each time with what has come.
    fn passages(ahead_ms: &[i64]) -> Passages {
        let mut passages = Passages::default();
        for ahead_ms in ahead_ms {
            passages.add((0, 1), [end(1), end(2)], (ahead_ms + 5) * MS);
            passages.add((1, 0), [end(2), end(1)], -(ahead_ms - 7) * MS);
        }
        passages
    }

    #[test]
    fn the_offset_lies_between_the_differences_of_both_directions() {
        let [bounds] = passages(&[2_000]).bounds().into_values().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!([bounds.low, bounds.high], [1_993 * MS, 2_005 * MS]);
        let names = ["a", "b"].map(str::to_owned);
        assert!(passages(&[2_000, 2_001]).drifting(&names).is_empty(), "within what the network takes");
        let [ref words] = passages(&[2_000, 2_080]).drifting(&names)[..] else { panic!() };
        assert!(words.starts_with("The clocks of a and b drift apart, by 0.068 s or more"), "{words}");
    }
}
