//! Deliveries that nothing traces to a message, or to one of several alike: when they came, for a message that did not arrive may be
//! among them.
//!
//! A stranger may flood the topics of a run. Only deliveries as large as one of the run's messages are kept, and no more than
//! [`SPANS_MOST`] instants; beyond that neighbours are joined to spans. A message that may be within a span is unknown. Nothing is called
//! lost because an instant was given up.
//!
//! What it does not tell: how many of the deliveries of a span there were at one of its instants.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mqttlab_rows::{Identified, LossCause, Received, Sent};
use mqttlab_units::Instant;

use crate::error::Result;
use crate::message_rows::for_each;
use crate::spool::Spool;

/// The first and the last instant of deliveries that are not told apart.
type Span = (Instant, Instant);

/// By receiver and size.
#[derive(Default)]
pub(crate) struct UntracedDeliveries {
    foreign: DeliverySpans,
    /// Of messages with the same content as others.
    ambiguous: DeliverySpans,
}

/// When deliveries came.
#[derive(Default)]
struct DeliverySpans {
    spans: BTreeMap<(u32, u32), Vec<Span>>,
    kept: usize,
    most: usize,
    joined: u64,
}

impl UntracedDeliveries {
    /// Of the deliveries in the spools of `from`.
    pub(crate) fn read(from: &Path, most: usize) -> Result<UntracedDeliveries> {
        let mut sizes = BTreeSet::new();
        for_each(from, Spool::Sent, |row: Sent, _| {
            sizes.insert(row.payload_bytes);
            Ok(())
        })?;
        let (mut foreign, mut ambiguous) = (DeliverySpans::of(most), DeliverySpans::of(most));
        for_each(from, Spool::Received, |row: Received, _| {
            let of = (row.subscriber, row.payload_bytes);
            match row.publisher {
                None if row.identified != Identified::Will && sizes.contains(&row.payload_bytes) => {
                    foreign.note(of, row.received);
                }
                Some(_) if row.identified == Identified::Ambiguous => ambiguous.note(of, row.received),
                _ => {}
            }
            Ok(())
        })?;
        for found in [&mut foreign, &mut ambiguous] {
            found.spans.values_mut().for_each(put_in_order);
        }
        Ok(UntracedDeliveries { foreign, ambiguous })
    }

    /// Whether a receiver had one of a size from an instant on, up to another one, if there is one: why it may be a message.
    pub(crate) fn any(&self, of: (u32, u32), since: Instant, until: Option<Instant>) -> Option<LossCause> {
        let causes = [(&self.ambiguous, LossCause::EqualContent), (&self.foreign, LossCause::Untraced)];
        causes.into_iter().find(|(found, _)| found.any(of, since, until)).map(|(_, cause)| cause)
    }

    /// What to read before the fates of messages that did not arrive; `None` where every instant was kept.
    pub(crate) fn warning(&self) -> Option<String> {
        self.foreign.warning()
    }
}

impl DeliverySpans {
    fn of(most: usize) -> DeliverySpans {
        DeliverySpans { most, ..DeliverySpans::default() }
    }

    fn any(&self, of: (u32, u32), since: Instant, until: Option<Instant>) -> bool {
        self.spans.get(&of).is_some_and(|spans| {
            let next = spans.partition_point(|(_, last)| *last < since);
            spans.get(next).is_some_and(|(first, _)| until.is_none_or(|until| *first <= until))
        })
    }

    fn warning(&self) -> Option<String> {
        let spans: usize = self.spans.values().map(Vec::len).sum();
        (self.joined > 0).then(|| {
            format!(
                "Foreign deliveries as large as messages of this run were too many to keep the time of each: they are kept as {spans} \
                 spans. What did not arrive and may be among them is unknown, not lost."
            )
        })
    }

    fn note(&mut self, of: (u32, u32), at: Instant) {
        self.spans.entry(of).or_default().push((at, at));
        self.kept += 1;
        if self.kept > self.most {
            self.halve();
        }
    }

    /// Joins neighbours by twos.
    fn halve(&mut self) {
        for spans in self.spans.values_mut() {
            put_in_order(spans);
            let joined = spans.chunks(2).map(|pair| (pair[0].0, pair[pair.len() - 1].1)).collect::<Vec<_>>();
            self.joined += (spans.len() - joined.len()) as u64;
            *spans = joined;
        }
        self.kept = self.spans.values().map(Vec::len).sum();
        // Where there are as many receivers and sizes as spans there is nothing left to join.
        self.most = self.most.max(2 * self.kept);
    }
}

/// Puts spans in order, with those joined that have an instant in common.
fn put_in_order(spans: &mut Vec<Span>) {
    spans.sort_unstable();
    spans.dedup_by(|next, before| {
        let is_within = next.0 <= before.1;
        if is_within {
            before.1 = before.1.max(next.1);
        }
        is_within
    });
}

/// Instants that are kept: 16 MiB of them.
pub(crate) const SPANS_MOST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(times: impl IntoIterator<Item = u64>, most: usize) -> DeliverySpans {
        let mut untraced = DeliverySpans::of(most);
        times.into_iter().for_each(|ns| untraced.note((2, 20), Instant::from_ns(ns)));
        untraced.spans.values_mut().for_each(put_in_order);
        untraced
    }

    fn any(untraced: &DeliverySpans, since: u64, until: Option<u64>) -> bool {
        untraced.any((2, 20), Instant::from_ns(since), until.map(Instant::from_ns))
    }

    #[test]
    fn every_instant_is_kept_as_long_as_there_is_room() {
        let untraced = noted([30, 10, 20, 10], 4);
        assert_eq!(untraced.warning(), None);
        assert!(any(&untraced, 10, Some(10)) && any(&untraced, 11, Some(20)) && any(&untraced, 30, None));
        assert!(!any(&untraced, 11, Some(19)) && !any(&untraced, 31, None));
        assert!(!untraced.any((3, 20), Instant::ZERO, None) && !untraced.any((2, 21), Instant::ZERO, None));
    }

    #[test]
    fn a_flood_is_kept_as_few_spans_in_which_each_of_its_instants_lies() {
        // Two bursts in an order of their own, and a second of silence between them.
        let burst = |from: u64| (0..50_000).map(move |nth| from + nth * 7_919 % 50_000);
        let times: Vec<u64> = burst(0).chain(burst(1_000_000_000)).collect();
        let untraced = noted(times.iter().copied(), 64);
        assert!(untraced.spans[&(2, 20)].len() <= 64);
        assert!(untraced.warning().is_some_and(|words| words.contains("unknown, not lost")));
        assert!(times.iter().all(|&ns| any(&untraced, ns, Some(ns))));
        assert!(!any(&untraced, 1_000_050_000, None), "what came after the last one is among none");
    }

    #[test]
    fn receivers_that_have_one_each_are_kept_apart_whatever_the_room() {
        let mut untraced = DeliverySpans::of(4);
        (0..1_000).for_each(|who| untraced.note((who, 20), Instant::from_ns(u64::from(who))));
        let alone = |who: u32| untraced.any((who, 20), Instant::ZERO, Some(Instant::from_ns(who.into())));
        assert!((0..1_000).all(alone) && untraced.warning().is_none());
    }
}
