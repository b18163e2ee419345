//! The rows of messages, brought together from four spools, by publisher and sequence.
//!
//! A first pass counts rows by blocks of sequences, from which ranges are cut, so that memory is bounded whatever the
//! length of the run; then each range takes one pass over the spools.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use mqttlab_rows::{Acknowledged, Identified, Layout, Received, Record, Sent, Unsent};
use mqttlab_units::Instant;

use crate::error::Result;
use crate::fate::Judge;
use crate::hash::FoldedHash;
use crate::origin::CopyOrigin;
use crate::spool::{self, Spool, SpoolReader};

/// Cuts the counted blocks into ranges of keys with at most `rows` rows each; a block with more is a range alone.
pub(crate) fn ranges(blocks: &BTreeMap<u64, u64>, block_bits: u32, rows: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut gathered = 0;
    for (&block, &count) in blocks {
        let keys = block << block_bits..(block + 1) << block_bits;
        match ranges.last_mut() {
            Some(last) if gathered + count <= rows => {
                last.end = keys.end;
                gathered += count;
            }
            _ => {
                ranges.push(keys);
                gathered = count;
            }
        }
    }
    ranges
}

pub(crate) fn key(publisher: u32, sequence: u32) -> u64 {
    u64::from(publisher) << 32 | u64::from(sequence)
}

/// Calls `each` with every row that a fold carried, then with those of a spool, if there is one, and then with those that were found
/// in frames.
pub(crate) fn for_each<R: Record>(
    dir: &Path,
    spool: Spool,
    mut each: impl FnMut(R, &[u8]) -> Result<()>,
) -> Result<()> {
    for path in [spool.carried_path(dir), spool.path(dir), spool.seen_path(dir)] {
        if let Some(mut reader) = SpoolReader::open_at(spool, path)? {
            reader.for_each(&mut each)?;
        }
    }
    Ok(())
}

/// What the first pass finds out.
#[derive(Default)]
pub(crate) struct Survey {
    /// Rows by block of keys.
    pub(crate) blocks: HashMap<u64, u64, FoldedHash>,
    /// Whether there are deliveries that no publisher is known for.
    pub(crate) foreign: bool,
    /// Whether there are deliveries of one of several messages alike.
    pub(crate) ambiguous: bool,
    /// One bit for each delivery in the order of the spool: whether a later message came before it.
    pub(crate) overtaken: Vec<u64>,
    /// Of how many deliveries, the first ones, a fold has found that out.
    pub(crate) carried: usize,
    /// The highest sequence that came from a publisher to a subscriber so far.
    pub(crate) latest: HashMap<(u32, u32), u32, FoldedHash>,
}

/// The rows that the first pass has met, until they are too many to be kept.
struct KeptRow {
    rows: Option<GatheredRows>,
    room: u64,
}

impl Survey {
    /// Counts the rows, and hands out all of them when there are no more than `rows_max`.
    /// Goes on from what a fold has found out.
    pub(crate) fn of(
        dir: &Path,
        rows_max: u64,
        mut survey: Survey,
    ) -> Result<(Survey, Option<GatheredRows>)> {
        let mut kept = KeptRow { rows: Some(GatheredRows::with_room(dir, rows_max)), room: rows_max };
        for_each(dir, Spool::Sent, |row: Sent, _| {
            survey.count(row.publisher, row.sequence);
            kept.keep(|rows| rows.sent.push(row))
        })?;
        for_each(dir, Spool::Unsent, |row: Unsent, _| {
            survey.count(row.publisher, row.sequence);
            kept.keep(|rows| rows.unsent.push(row))
        })?;
        for_each(dir, Spool::Acknowledged, |row: Acknowledged, _| {
            survey.count(row.publisher, row.sequence);
            kept.keep(|rows| rows.acknowledged.push(row))
        })?;
        let mut delivery = 0;
        for_each(dir, Spool::Received, |row: Received, _| {
            if delivery / 64 == survey.overtaken.len() {
                survey.overtaken.push(0);
            }
            let known =
                row.publisher.map(|publisher| (publisher, survey.delivered(delivery, publisher, &row)));
            delivery += 1;
            survey.ambiguous |= row.identified == Identified::Ambiguous;
            let Some((publisher, overtaken)) = known else {
                survey.foreign = true;
                return Ok(());
            };
            let key = key(publisher, row.sequence);
            kept.keep(|rows| rows.deliveries.push(GatheredDelivery::new(key, overtaken, row)))
        })?;
        Ok((survey, kept.rows))
    }

    fn count(&mut self, publisher: u32, sequence: u32) {
        *self.blocks.entry(key(publisher, sequence) >> BLOCK_BITS).or_default() += 1;
    }

    /// Counts a delivery whose publisher is known, and says whether a later message came before it.
    fn delivered(&mut self, delivery: usize, publisher: u32, row: &Received) -> bool {
        self.count(publisher, row.sequence);
        if delivery < self.carried {
            return self.was_overtaken(delivery);
        }
        // A copy of the store comes past whatever is on its way. So may any with RETAIN where Retain As Published is asked for.
        if row.retained {
            return false;
        }
        let latest = self.latest.entry((row.subscriber, publisher)).or_insert(row.sequence);
        let overtaken = row.sequence < *latest;
        self.overtaken[delivery / 64] |= u64::from(overtaken) << (delivery % 64);
        *latest = row.sequence.max(*latest);
        overtaken
    }

    pub(crate) fn was_overtaken(&self, delivery: usize) -> bool {
        self.overtaken[delivery / 64] >> (delivery % 64) & 1 == 1
    }
}

impl KeptRow {
    fn keep(&mut self, keep: impl FnOnce(&mut GatheredRows)) -> Result<()> {
        if self.room == 0 {
            self.rows = None;
        }
        if let Some(rows) = &mut self.rows {
            self.room -= 1;
            keep(rows);
        }
        Ok(())
    }
}

/// The rows of one range.
#[derive(Default)]
pub(crate) struct GatheredRows {
    sent: Vec<Sent>,
    unsent: Vec<Unsent>,
    acknowledged: Vec<Acknowledged>,
    deliveries: Vec<GatheredDelivery>,
}

#[derive(Clone, Copy)]
pub(crate) struct GatheredDelivery {
    pub(crate) key: u64,
    pub(crate) overtaken: bool,
    pub(crate) origin: CopyOrigin,
    pub(crate) row: Received,
}

impl GatheredDelivery {
    fn new(key: u64, overtaken: bool, row: Received) -> GatheredDelivery {
        GatheredDelivery { key, overtaken, origin: CopyOrigin::of_flag(row.retained), row }
    }
}

impl GatheredRows {
    /// With room for what the spools hold, as far as their sizes tell, so that nothing is copied while it grows. Nothing
    /// where all of them together hold more than `rows_max` rows.
    fn with_room(dir: &Path, rows_max: u64) -> GatheredRows {
        let spools = [Spool::Sent, Spool::Unsent, Spool::Acknowledged, Spool::Received];
        let counts = spools.map(|spool| spool::records_in_file(spool, dir));
        if counts.iter().sum::<u64>() > rows_max {
            return GatheredRows::default();
        }
        let [sent, unsent, acknowledged, deliveries] = counts.map(|count| count as usize);
        GatheredRows {
            sent: Vec::with_capacity(sent),
            unsent: Vec::with_capacity(unsent),
            acknowledged: Vec::with_capacity(acknowledged),
            deliveries: Vec::with_capacity(deliveries),
        }
    }

    pub(crate) fn read(dir: &Path, range: &Range<u64>, survey: &Survey) -> Result<GatheredRows> {
        let mut rows = GatheredRows::default();
        for_each(dir, Spool::Sent, |row: Sent, _| {
            take_if(range, key(row.publisher, row.sequence), row, &mut rows.sent)
        })?;
        for_each(dir, Spool::Unsent, |row: Unsent, _| {
            take_if(range, key(row.publisher, row.sequence), row, &mut rows.unsent)
        })?;
        for_each(dir, Spool::Acknowledged, |row: Acknowledged, _| {
            take_if(range, key(row.publisher, row.sequence), row, &mut rows.acknowledged)
        })?;
        let mut delivery = 0;
        for_each(dir, Spool::Received, |row: Received, _| {
            let overtaken = survey.was_overtaken(delivery);
            delivery += 1;
            let Some(publisher) = row.publisher else { return Ok(()) };
            let key = key(publisher, row.sequence);
            take_if(range, key, GatheredDelivery::new(key, overtaken, row), &mut rows.deliveries)
        })?;
        Ok(rows)
    }

    /// Each kind ordered by key. Rows of the same key stay in the order in which they were pushed. Of each delivery it is said
    /// where it came from.
    pub(crate) fn ordered(self, judge: &Judge<'_>) -> GatheredRows {
        let mut sent = ordered(self.sent, |row| (key(row.publisher, row.sequence), 0));
        // The last one said is what holds.
        sent.reverse();
        sent.dedup_by_key(|row| key(row.publisher, row.sequence));
        sent.reverse();
        let mut unsent = ordered(self.unsent, |row| (key(row.publisher, row.sequence), 0));
        unsent.dedup_by_key(|row| key(row.publisher, row.sequence));
        let mut acknowledged = ordered(self.acknowledged, |row| (key(row.publisher, row.sequence), 0));
        acknowledged.dedup_by_key(|row| key(row.publisher, row.sequence));
        let deliveries = ordered(self.deliveries, |delivery| (delivery.key, delivery.row.subscriber));
        let rows = GatheredRows { sent, unsent, acknowledged, deliveries };
        if judge.trusts_retain() { rows } else { rows.with_origins(judge) }
    }

    fn with_origins(mut self, judge: &Judge<'_>) -> GatheredRows {
        let mut origins = Vec::with_capacity(self.deliveries.len());
        // Nothing here can fail.
        let _ = self.each(&mut |message| {
            let mut before = None;
            for copy in message.deliveries {
                let came = before.replace(copy.row.subscriber) == Some(copy.row.subscriber);
                origins.push(judge.origin(&copy.row, message.sent, message.acknowledged, came));
            }
            Ok(())
        });
        self.deliveries.iter_mut().zip(origins).for_each(|(copy, origin)| copy.origin = origin);
        self
    }

    /// Whether some message has not reached everyone who should have it.
    pub(crate) fn misses_any(&self, layout: &Layout) -> bool {
        let mut misses = false;
        // Nothing here can fail.
        let _ = self.each(&mut |message| {
            let Some(sent) = message.sent else { return Ok(()) };
            let expected = layout.receivers_of(sent.topic, sent.publisher);
            let mut reached = message.deliveries.iter().map(|delivery| delivery.row.subscriber).peekable();
            let reaches = |receiver: u32| {
                while reached.next_if(|subscriber| *subscriber < receiver).is_some() {}
                reached.peek() == Some(&receiver)
            };
            misses |= layout.shares_of(sent.topic) > 0 || !expected.iter().all(reaches);
            Ok(())
        });
        misses
    }

    /// Walks all four kinds side by side.
    pub(crate) fn each(&self, each: &mut impl FnMut(&GatheredMessage<'_>) -> Result<()>) -> Result<()> {
        let mut sent = self.sent.iter().peekable();
        let mut unsent = self.unsent.iter().peekable();
        let mut acknowledged = self.acknowledged.iter().peekable();
        let mut deliveries = self.deliveries.as_slice();
        loop {
            let keys = [
                sent.peek().map(|row| key(row.publisher, row.sequence)),
                unsent.peek().map(|row| key(row.publisher, row.sequence)),
                deliveries.first().map(|delivery| delivery.key),
            ];
            let Some(at) = keys.into_iter().flatten().min() else { return Ok(()) };
            // The next row or two are the answer. A binary search over all that is left would miss the cache at each probe.
            let here = deliveries.iter().take_while(|delivery| delivery.key == at).count();
            let (these, rest) = deliveries.split_at(here);
            deliveries = rest;
            while acknowledged.next_if(|row| key(row.publisher, row.sequence) < at).is_some() {}
            each(&GatheredMessage {
                publisher: (at >> 32) as u32,
                sequence: at as u32,
                sent: sent.next_if(|row| key(row.publisher, row.sequence) == at),
                unsent: unsent.next_if(|row| key(row.publisher, row.sequence) == at),
                acknowledged: acknowledged
                    .next_if(|row| key(row.publisher, row.sequence) == at)
                    .map(|row| row.at),
                deliveries: these,
            })?;
        }
    }
}

/// The rows by key, equal ones in the order that they had. Keys are moved about in place of rows, which are several
/// times as large.
fn ordered<R: Copy>(rows: Vec<R>, key: impl Fn(&R) -> (u64, u32)) -> Vec<R> {
    if rows.is_sorted_by_key(&key) {
        return rows;
    }
    let mut keys: Vec<u128> = Vec::with_capacity(rows.len());
    for (place, row) in rows.iter().enumerate() {
        let (first, second) = key(row);
        keys.push(u128::from(first) << 64 | u128::from(second) << 32 | place as u128);
    }
    keys.sort_unstable();
    keys.iter().map(|&key| rows[key as u32 as usize]).collect()
}

fn take_if<R>(range: &Range<u64>, key: u64, row: R, rows: &mut Vec<R>) -> Result<()> {
    if range.contains(&key) {
        rows.push(row);
    }
    Ok(())
}

/// Everything that is known about one message.
pub(crate) struct GatheredMessage<'a> {
    pub(crate) publisher: u32,
    pub(crate) sequence: u32,
    pub(crate) sent: Option<&'a Sent>,
    pub(crate) unsent: Option<&'a Unsent>,
    pub(crate) acknowledged: Option<Instant>,
    /// Ordered by receiver.
    pub(crate) deliveries: &'a [GatheredDelivery],
}

/// A block is this many bits of the key: 65536 messages of one publisher.
pub(crate) const BLOCK_BITS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_no_more_rows_than_they_may_and_leave_no_key_out() {
        let blocks = BTreeMap::from([(0, 3), (1, 4), (5, 2), (6, 20), (7, 1)]);
        assert_eq!(ranges(&blocks, 4, 7), [0..32, 80..96, 96..112, 112..128]);
    }
}
