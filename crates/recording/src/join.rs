//! Messages: what was sent beside what arrived.
//!
//! The rows of a message are scattered over four spools. They are brought together by publisher and sequence, a
//! range of these at a time, so that memory is bounded whatever the length of the run: a first pass counts rows
//! by blocks of sequences and cuts the ranges, then each range takes one pass over the spools. When the rows are
//! few enough, the first pass has kept them and is the only one. The table comes out ordered by publisher, sequence
//! and receiver, whichever thread pushed first.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use mqttlab_units::Instant;

use crate::error::Result;
use crate::hash::FoldedHash;
use crate::layout::Layout;
use crate::record::Record;
use crate::rows::{Acknowledged, MessageFate, Phase, Received, Sent, Unsent};
use crate::spool::{Reader, Spool};
use crate::table::{FileSize, TableWriter};
use crate::tables::{MessageColumns, MessageRow};

/// What the messages say about a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub sent: u64,
    pub unsent: u64,
    pub acknowledged: u64,
    pub acknowledged_ns: u128,
    pub delivered: u64,
    pub lost: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub late: u64,
    pub foreign: u64,
}

/// Rows by fate.
pub(crate) type Fates = BTreeMap<&'static str, u64>;

/// Writes `messages` to `to` from the spools in `from`.
pub(crate) fn messages(
    from: &Path,
    to: &Path,
    layout: &Layout,
    range_rows: u64,
) -> Result<(FileSize, Vec<Tally>, Fates)> {
    let (survey, rows) = Survey::of(from, range_rows)?;
    let mut out = Out {
        layout,
        table: TableWriter::create(to)?,
        tallies: vec![Tally::default(); layout.clients.len()],
        fates: [0; MessageFate::ALL.len()],
    };
    if let Some(rows) = rows {
        rows.ordered().write(&mut out)?;
    } else {
        let blocks = survey.blocks.iter().map(|(&block, &count)| (block, count)).collect();
        for range in ranges(&blocks, BLOCK_BITS, range_rows) {
            Rows::read(from, &range, &survey)?.ordered().write(&mut out)?;
        }
    }
    if survey.foreign {
        write_foreign(from, &mut out)?;
    }
    let met = MessageFate::ALL.iter().zip(out.fates).filter(|(_, count)| *count > 0);
    let fates = met.map(|(fate, count)| (fate.as_str(), count)).collect();
    Ok((out.table.finish()?, out.tallies, fates))
}

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

fn key(publisher: u32, sequence: u32) -> u64 {
    u64::from(publisher) << 32 | u64::from(sequence)
}

/// Calls `each` with every row of a spool, if there is one.
pub(crate) fn for_each<R: Record>(
    dir: &Path,
    spool: Spool,
    mut each: impl FnMut(R, &[u8]) -> Result<()>,
) -> Result<()> {
    Reader::open(spool, dir)?.map_or(Ok(()), |mut reader| reader.for_each(&mut each))
}

/// What the first pass finds out.
#[derive(Default)]
struct Survey {
    /// Rows by block of keys.
    blocks: HashMap<u64, u64, FoldedHash>,
    /// Whether there are deliveries that no publisher is known for.
    foreign: bool,
    /// One bit for each delivery in the order of the spool: whether a later message came before it.
    overtaken: Vec<u64>,
    /// The highest sequence that came from a publisher to a subscriber so far.
    latest: HashMap<(u32, u32), u32, FoldedHash>,
}

/// The rows that the first pass has met, until they are too many to be kept.
struct Kept {
    rows: Option<Rows>,
    room: u64,
}

impl Survey {
    /// Counts the rows, and hands out all of them when there are no more than `rows_max`.
    fn of(dir: &Path, rows_max: u64) -> Result<(Survey, Option<Rows>)> {
        let mut survey = Survey::default();
        let mut kept = Kept { rows: Some(Rows::default()), room: rows_max };
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
            if delivery % 64 == 0 {
                survey.overtaken.push(0);
            }
            let known =
                row.publisher.map(|publisher| (publisher, survey.delivered(delivery, publisher, &row)));
            delivery += 1;
            let Some((publisher, overtaken)) = known else {
                survey.foreign = true;
                return Ok(());
            };
            let key = key(publisher, row.sequence);
            kept.keep(|rows| rows.deliveries.push(Delivery { key, overtaken, row }))
        })?;
        survey.latest.clear();
        Ok((survey, kept.rows))
    }

    fn count(&mut self, publisher: u32, sequence: u32) {
        *self.blocks.entry(key(publisher, sequence) >> BLOCK_BITS).or_default() += 1;
    }

    /// Counts a delivery whose publisher is known, and says whether a later message came before it.
    fn delivered(&mut self, delivery: usize, publisher: u32, row: &Received) -> bool {
        self.count(publisher, row.sequence);
        let latest = self.latest.entry((row.subscriber, publisher)).or_insert(row.sequence);
        let overtaken = row.sequence < *latest;
        self.overtaken[delivery / 64] |= u64::from(overtaken) << (delivery % 64);
        *latest = row.sequence.max(*latest);
        overtaken
    }

    fn was_overtaken(&self, delivery: usize) -> bool {
        self.overtaken[delivery / 64] >> (delivery % 64) & 1 == 1
    }
}

impl Kept {
    fn keep(&mut self, keep: impl FnOnce(&mut Rows)) -> Result<()> {
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
struct Rows {
    sent: Vec<Sent>,
    unsent: Vec<Unsent>,
    acknowledged: Vec<Acknowledged>,
    deliveries: Vec<Delivery>,
}

#[derive(Clone, Copy)]
struct Delivery {
    key: u64,
    overtaken: bool,
    row: Received,
}

impl Rows {
    fn read(dir: &Path, range: &Range<u64>, survey: &Survey) -> Result<Rows> {
        let mut rows = Rows::default();
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
            take_if(range, key, Delivery { key, overtaken, row }, &mut rows.deliveries)
        })?;
        Ok(rows)
    }

    /// Each kind ordered by key. Rows of the same key stay in the order in which they were pushed.
    fn ordered(self) -> Rows {
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
        Rows { sent, unsent, acknowledged, deliveries }
    }

    /// Walks all four kinds side by side.
    fn write(&self, out: &mut Out<'_>) -> Result<()> {
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
            let here = deliveries.partition_point(|delivery| delivery.key == at);
            let (these, rest) = deliveries.split_at(here);
            deliveries = rest;
            while acknowledged.next_if(|row| key(row.publisher, row.sequence) < at).is_some() {}
            out.message(&Message {
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
struct Message<'a> {
    publisher: u32,
    sequence: u32,
    sent: Option<&'a Sent>,
    unsent: Option<&'a Unsent>,
    acknowledged: Option<Instant>,
    /// Ordered by receiver.
    deliveries: &'a [Delivery],
}

struct Out<'a> {
    layout: &'a Layout,
    table: TableWriter<MessageColumns<'static>>,
    tallies: Vec<Tally>,
    /// Rows by the number of their fate.
    fates: [u64; MessageFate::ALL.len()],
}

impl<'a> Out<'a> {
    fn message(&mut self, message: &Message<'_>) -> Result<()> {
        let mut row = self.blank(message);
        if let Some(sent) = message.sent {
            self.count_sent(sent, message.acknowledged);
        } else if message.unsent.is_some() && message.deliveries.is_empty() {
            self.count(message.publisher, |tally| tally.unsent += 1);
            row.fate = MessageFate::Unsent;
            return self.row(&row);
        }
        let expected = message.sent.map_or(&[][..], |sent| self.layout.receivers_of(sent.topic));
        if expected.is_empty() && message.deliveries.is_empty() {
            row.fate = MessageFate::NoReceiver;
            return self.row(&row);
        }
        self.receivers(&row, expected, message.deliveries)
    }

    /// Walks those who should have received the message beside those who did, both in order.
    fn receivers(&mut self, row: &MessageRow<'_>, expected: &[u32], deliveries: &[Delivery]) -> Result<()> {
        let mut expected = expected.iter().copied().peekable();
        for copies in deliveries.chunk_by(|one, other| one.row.subscriber == other.row.subscriber) {
            let subscriber = copies[0].row.subscriber;
            while let Some(passed_over) = expected.next_if(|&receiver| receiver < subscriber) {
                self.lost(row, passed_over)?;
            }
            expected.next_if_eq(&subscriber);
            for (copy, delivery) in copies.iter().enumerate() {
                self.delivered(row, delivery, copy > 0)?;
            }
        }
        expected.try_for_each(|passed_over| self.lost(row, passed_over))
    }

    fn lost(&mut self, row: &MessageRow<'_>, subscriber: u32) -> Result<()> {
        self.count(subscriber, |tally| tally.lost += 1);
        self.row(&MessageRow { subscriber: Some(subscriber), fate: MessageFate::Lost, ..*row })
    }

    fn delivered(&mut self, row: &MessageRow<'_>, delivery: &Delivery, duplicate: bool) -> Result<()> {
        let received_ns = delivery.row.received.as_ns();
        // The clock is one for all; a delivery before its intended time comes only from a foreign recording.
        let latency_ns = row.intended_ns.and_then(|intended_ns| received_ns.checked_sub(intended_ns));
        let late =
            !duplicate && latency_ns.zip(self.layout.late_after_ns).is_some_and(|(took, most)| took > most);
        // A repeated message may come behind later ones (MQTT 5 §4.6): only its first copy keeps the order.
        let out_of_order = delivery.overtaken && !duplicate;
        self.count(delivery.row.subscriber, |tally| {
            tally.delivered += u64::from(!duplicate);
            tally.duplicates += u64::from(duplicate);
            tally.out_of_order += u64::from(out_of_order);
            tally.late += u64::from(late);
        });
        self.row(&MessageRow {
            fate: if duplicate { MessageFate::Duplicate } else { MessageFate::Delivered },
            phase: if row.intended_ns.is_some() { row.phase } else { self.phase(delivery.row.received) },
            out_of_order,
            late,
            latency_ns,
            payload_bytes: delivery.row.payload_bytes,
            ..delivery_of(row, &delivery.row)
        })
    }

    fn foreign(&mut self, received: &Received) -> Result<()> {
        self.count(received.subscriber, |tally| tally.foreign += 1);
        let row = MessageRow { publisher: None, sequence: None, fate: MessageFate::Foreign, ..EMPTY };
        let phase = self.phase(received.received);
        self.row(&MessageRow { phase, payload_bytes: received.payload_bytes, ..delivery_of(&row, received) })
    }

    /// The part of a row that is the same for every receiver.
    fn blank(&self, message: &Message<'_>) -> MessageRow<'a> {
        let (sent, unsent) = (message.sent, message.unsent);
        let layout = self.layout;
        let topic = sent.map(|row| row.topic).or(unsent.map(|row| row.topic));
        let intended = sent.map(|row| row.intended).or(unsent.map(|row| row.intended));
        let payload_bytes = sent.map(|row| row.payload_bytes).or(unsent.map(|row| row.payload_bytes));
        MessageRow {
            publisher: Some(message.publisher),
            sequence: Some(message.sequence),
            topic: topic.and_then(|topic| layout.topics.get(topic as usize)).map(|topic| &*topic.name),
            phase: self.phase(intended.unwrap_or_default()),
            qos: sent.map(|row| row.qos).or(unsent.map(|row| row.qos)),
            payload_bytes: payload_bytes.unwrap_or_default(),
            retain: sent.is_some_and(|row| row.retain),
            intended_ns: intended.map(Instant::as_ns),
            sent_ns: sent.map(|row| row.sent.as_ns()),
            written_ns: sent.and_then(|row| row.written).map(Instant::as_ns),
            acknowledged_ns: message.acknowledged.map(Instant::as_ns),
            ..EMPTY
        }
    }

    fn phase(&self, at: Instant) -> Phase {
        if at.as_ns() < self.layout.warm_up_end_ns {
            Phase::WarmUp
        } else if at.as_ns() < self.layout.measurement_end_ns {
            Phase::Measurement
        } else {
            Phase::CoolDown
        }
    }

    fn count_sent(&mut self, sent: &Sent, acknowledged: Option<Instant>) {
        let took = acknowledged.and_then(|at| at.checked_since(sent.sent));
        self.count(sent.publisher, |tally| {
            tally.sent += 1;
            tally.acknowledged += u64::from(took.is_some());
            tally.acknowledged_ns += took.map_or(0, |took| u128::from(took.as_ns()));
        });
    }

    /// Counts for a client, if the layout knows it: a spool that was damaged may name any number.
    fn count(&mut self, client: u32, count: impl FnOnce(&mut Tally)) {
        if let Some(tally) = self.tallies.get_mut(client as usize) {
            count(tally);
        }
    }

    fn row(&mut self, row: &MessageRow<'_>) -> Result<()> {
        self.fates[row.fate as usize] += 1;
        self.table.push(|columns, place| columns.set(place, row))
    }
}

/// `row` with what the receiver saw.
fn delivery_of<'a>(row: &MessageRow<'a>, received: &Received) -> MessageRow<'a> {
    MessageRow {
        subscriber: Some(received.subscriber),
        qos_delivered: Some(received.qos),
        retained: received.retained,
        dup: received.dup,
        identified: Some(received.identified),
        received_ns: Some(received.received.as_ns()),
        ..*row
    }
}

/// Deliveries that no publisher is known for, as they came.
fn write_foreign(from: &Path, out: &mut Out<'_>) -> Result<()> {
    for_each(
        from,
        Spool::Received,
        |row: Received, _| {
            if row.publisher.is_none() { out.foreign(&row) } else { Ok(()) }
        },
    )
}

/// A block is this many bits of the key: 65536 messages of one publisher.
const BLOCK_BITS: u32 = 16;
/// Rows in memory at a time: about 150 MiB of them, with the copy that is put in order.
pub(crate) const RANGE_ROWS: u64 = 1 << 20;
const EMPTY: MessageRow<'static> = MessageRow {
    publisher: None,
    sequence: None,
    topic: None,
    subscriber: None,
    fate: MessageFate::Lost,
    phase: Phase::WarmUp,
    qos: None,
    qos_delivered: None,
    payload_bytes: 0,
    retain: false,
    retained: false,
    dup: false,
    out_of_order: false,
    late: false,
    identified: None,
    intended_ns: None,
    sent_ns: None,
    written_ns: None,
    acknowledged_ns: None,
    received_ns: None,
    latency_ns: None,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, DirectRecorder, Identified, Topic};
    use mqttlab_units::Seed;

    #[test]
    fn ranges_hold_no_more_rows_than_they_may_and_leave_no_key_out() {
        let blocks = BTreeMap::from([(0, 3), (1, 4), (5, 2), (6, 20), (7, 1)]);
        assert_eq!(ranges(&blocks, 4, 7), [0..32, 80..96, 96..112, 112..128]);
    }

    #[test]
    fn the_table_does_not_depend_on_how_many_rows_are_in_memory() {
        let root = std::env::temp_dir().join(format!("mqttlab-join-{}", std::process::id()));
        let layout = random_spools(&root.join("spools"));
        let table = |rows: u64| {
            let to = root.join(rows.to_string());
            std::fs::create_dir_all(&to).unwrap();
            let (_, tallies, fates) = messages(&root.join("spools"), &to, &layout, rows).unwrap();
            (std::fs::read(to.join("messages.parquet")).unwrap(), format!("{tallies:?}"), fates)
        };
        let whole = table(RANGE_ROWS);
        assert_eq!(whole.2.keys().count(), 5, "every fate but no_receiver was met: {:?}", whole.2);
        assert!(table(1) == whole && table(500) == whole);
        std::fs::remove_dir_all(&root).unwrap();
    }

    /// Twenty publishers whose messages are sent, lost, repeated and not sent, in no order at all.
    fn random_spools(dir: &Path) -> Layout {
        let client = Client { name: "c".into(), group: "g".into(), host: 0 };
        let topics = vec![Topic { name: "t".into(), receivers: 0 }];
        let receivers = vec![vec![0, 1, 2]];
        let layout = Layout { clients: vec![client; 20], topics, receivers, ..Layout::default() };
        let mut recorder = DirectRecorder::create(dir, "{}", &layout).unwrap();
        let mut dice = Seed(3).dice();
        for _ in 0..5_000 {
            let publisher = dice.below(20) as u32;
            let sequence = dice.below(200_000) as u32;
            let at = Instant::from_ns(dice.below(1_000_000));
            let (topic, qos, payload_bytes) = (0, 1, 9);
            match dice.below(5) {
                0 => {
                    recorder.unsent(&Unsent { publisher, sequence, topic, qos, payload_bytes, intended: at })
                }
                1 => recorder.acknowledged(&Acknowledged { publisher, sequence, at }),
                2 | 3 => recorder.sent(&Sent {
                    publisher,
                    sequence,
                    topic,
                    qos,
                    retain: false,
                    payload_bytes,
                    intended: at,
                    sent: at,
                    written: None,
                }),
                _ => (0..1 + dice.below(3)).try_for_each(|subscriber| {
                    recorder.received(&Received {
                        subscriber: subscriber as u32 % 2,
                        publisher: Some(publisher).filter(|publisher| *publisher > 0),
                        sequence,
                        qos,
                        dup: false,
                        retained: false,
                        payload_bytes,
                        received: at,
                        identified: Identified::Payload,
                    })
                }),
            }
            .unwrap();
        }
        recorder.write_spools().unwrap();
        layout
    }
}
