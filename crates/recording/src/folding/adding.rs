//! One fold: settled messages go into the sums, the others to where the next one finds them.

use std::path::Path;

use mqttlab_rows::{Acknowledged, Dropped, Layout, Received, Receivers, Sent, SummaryRule};
use mqttlab_units::Instant;

use super::carry::Carry;
use crate::error::Result;
use crate::fate::Judge;
use crate::hash::NumberMap;
use crate::join::{RANGE_ROWS, TableOut, dropped};
use crate::latest::Latest;
use crate::message_rows::{
    BLOCK_BITS, GatheredDelivery, GatheredMessage, GatheredRows, Survey, for_each, key, ranges,
};
use crate::origin::CopyOrigin;
use crate::spool::Spool;
use crate::summing::SummedMessages;

/// Adds up the messages in `from` that are settled. The others, and the sample, are carried to `to`. Answers how many bytes
/// these are.
pub(crate) fn fold(
    from: &Path,
    to: &Path,
    layout: &Layout,
    judge: &Judge<'_>,
    rule: &SummaryRule,
) -> Result<u64> {
    let summed = SummedMessages::load(from, layout, rule)?;
    let (survey, rows) = Survey::of(from, RANGE_ROWS, summed.survey())?;
    let mut fold = Fold {
        carry: Carry::create(to)?,
        added: Vec::new(),
        crowded: Vec::new(),
        latest: summed.state.latest(),
        retained: retained(from)?,
        out: TableOut::new(layout, judge, dropped(from)?, Some(summed)),
    };
    if let Some(rows) = rows {
        rows.ordered(judge).each(&mut |message| fold.message(message))?;
    } else {
        let blocks = survey.blocks.iter().map(|(&block, &count)| (block, count)).collect();
        for range in &ranges(&blocks, BLOCK_BITS, RANGE_ROWS) {
            let rows = GatheredRows::read(from, range, &survey)?.ordered(judge);
            rows.each(&mut |message| fold.message(message))?;
        }
    }
    fold.finish(from, to, survey)
}

/// The message that the broker keeps of each topic, as far as its publishers tell: a copy of it may be asked for at any time.
fn retained(from: &Path) -> Result<NumberMap<u32, (Instant, u64)>> {
    let mut retained = NumberMap::default();
    for_each(from, Spool::Sent, |row: Sent, _| {
        if row.retain {
            let last = (row.sent, key(row.publisher, row.sequence));
            let known = retained.entry(row.topic).or_insert(last);
            *known = last.max(*known);
        }
        Ok(())
    })?;
    Ok(retained)
}

struct Fold<'a> {
    out: TableOut<'a>,
    carry: Carry,
    /// The names that are added up now.
    added: Vec<u64>,
    crowded: Vec<u64>,
    latest: Latest,
    retained: NumberMap<u32, (Instant, u64)>,
}

impl Fold<'_> {
    fn message(&mut self, message: &GatheredMessage<'_>) -> Result<()> {
        if self.out.has_added(message) {
            return self.out.again(message);
        }
        let key = key(message.publisher, message.sequence);
        if !self.is_sampled(message) && self.is_settled(message) {
            self.added.push(key);
            self.latest.note(message, self.out.judge());
            self.out.note(message);
            return self.out.message(message);
        }
        if let Some(sent) = message.sent
            && self.out.is_crowded(sent, message.acknowledged)
        {
            self.crowded.push(key);
        }
        self.carry.message(message)
    }

    fn is_sampled(&self, message: &GatheredMessage<'_>) -> bool {
        let summed = self.out.summed.as_ref().expect("a fold adds up");
        summed.is_sampled(message.publisher, message.sequence)
    }

    /// Whether nothing that comes later can change what became of a message.
    fn is_settled(&self, message: &GatheredMessage<'_>) -> bool {
        let Some(sent) = message.sent else {
            return message.unsent.is_some() && message.deliveries.is_empty();
        };
        let key = key(sent.publisher, sent.sequence);
        let is_kept = self.retained.get(&sent.topic).is_some_and(|(_, last)| *last == key);
        // Where a copy came from, events say that come later.
        let is_undecided = message.deliveries.iter().any(|copy| copy.origin == CopyOrigin::NotDecided);
        if is_undecided || is_kept || sent.qos > 0 && message.acknowledged.is_none() {
            return false;
        }
        let expected = self.out.layout().receivers_of(sent.topic, sent.publisher);
        let dropped = self.out.drops_of(key);
        let mut live = message.deliveries.iter().filter(|copy| is_live(copy)).map(|copy| copy.row.subscriber);
        let has = |receiver: u32| {
            message.deliveries.iter().any(|copy| is_live(copy) && copy.row.subscriber == receiver)
                || dropped.iter().any(|(whom, _)| whom.is_none_or(|whom| whom == receiver))
        };
        // Most topics have one receiver, and few have many, whose deliveries are in their order.
        let all_have = if expected.len() > 8 && dropped.is_empty() {
            expected.iter().all(|receiver| live.by_ref().any(|subscriber| subscriber == receiver))
        } else {
            expected.iter().all(has)
        };
        all_have && self.shares_have(message, expected, self.out.layout().shares_of(sent.topic))
    }

    /// Whether each shared subscription has a message, or where nobody knows whose copies are whose, as many others as there are.
    fn shares_have(&self, message: &GatheredMessage<'_>, expected: Receivers<'_>, shares: u32) -> bool {
        let topic = message.sent.map_or(0, |sent| sent.topic);
        if let Some(unserved) = self.out.topic_shares.unserved(topic, message.deliveries) {
            return unserved.is_empty();
        }
        let copies = message.deliveries.chunk_by(|one, other| one.row.subscriber == other.row.subscriber);
        let others = copies
            .filter(|copies| copies.iter().any(is_live) && !expected.contains(copies[0].row.subscriber));
        shares == 0 || others.count() >= shares as usize
    }

    /// Carries what belongs to no message that is known, and writes down what was added up.
    fn finish(mut self, from: &Path, to: &Path, mut survey: Survey) -> Result<u64> {
        let mut state = self.out.into_state();
        state.add(&self.added);
        for_each(from, Spool::Received, |row: Received, _| match row.publisher {
            None => self.carry.received(&row, false),
            Some(_) => Ok(()),
        })?;
        for_each(from, Spool::Acknowledged, |row: Acknowledged, _| {
            if state.has_added(row.publisher, row.sequence) { Ok(()) } else { self.carry.acknowledged(&row) }
        })?;
        for_each(from, Spool::Dropped, |row: Dropped, _| {
            if state.has_added(row.publisher, row.sequence) { Ok(()) } else { self.carry.dropped(&row) }
        })?;
        state.note_order(&mut survey);
        state.note_latest(&self.latest);
        let crowded = state.crowded.iter().chain(&self.crowded).copied();
        state.crowded = crowded.filter(|key| !state.added_key(*key)).collect();
        let (overtaken, bytes) = self.carry.finish()?;
        state.overtaken = overtaken;
        state.store(to)?;
        Ok(bytes)
    }
}

fn is_live(copy: &GatheredDelivery) -> bool {
    copy.origin == CopyOrigin::Live
}
