//! The messages of a recording: its first deliveries, and what names PUBLISHes that carry no identity.

use std::path::Path;

use mqttlab_recording::reading::{ABSENT, TableReader, Vocabulary, Wanted};
use mqttlab_recording::{NumberMap, NumberSet, Result};

use crate::attribution::message_ranges::Ranges;
use crate::settings::RunSettings;

/// Below this a payload carries no identity; the order tells (`docs/reference/recording.md`).
const IDENTITY_BYTES: i64 = 9;

/// The first delivery of a message whose publisher is known. Instants that are not known are [`ABSENT`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredDelivery {
    pub(crate) row: u64,
    pub(crate) publisher: i64,
    pub(crate) sequence: i64,
    pub(crate) subscriber: i64,
    pub(crate) qos: i8,
    pub(crate) qos_delivered: i8,
    pub(crate) intended_ns: i64,
    pub(crate) sent_ns: i64,
    pub(crate) written_ns: i64,
    pub(crate) received_ns: i64,
}

/// A message by its topic, at somebody who sent or received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ordered {
    pub(crate) at_ns: i64,
    pub(crate) sequence: i64,
    pub(crate) publisher: i64,
    /// Who received it; the publisher where it was sent.
    pub(crate) client: i64,
    pub(crate) topic: i64,
}

/// What tells of messages by their order and by times.
#[derive(Default)]
pub(crate) struct MessageOrder {
    /// Messages whose payloads have no room for an identity, in the order of their sending.
    pub(crate) sent: Vec<Ordered>,
    /// Deliveries that their order identified, in the order of receiving.
    pub(crate) received: Vec<Ordered>,
    /// What programs sent, and what was received of that, by the times at which frames show it.
    pub(crate) sent_by_programs: Vec<Ordered>,
    pub(crate) received_of_programs: Vec<Ordered>,
    /// Topics that messages were published to.
    pub(crate) topics: NumberSet<i64>,
    /// The longest payload of these messages, by topic.
    pub(crate) longest: NumberMap<i64, i64>,
}

const DELIVERY_COLUMNS: [(&str, Wanted); 11] = [
    ("publisher", Wanted::Integers),
    ("sequence", Wanted::Integers),
    ("subscriber", Wanted::Integers),
    ("fate", Wanted::Words),
    ("qos", Wanted::Integers),
    ("qos_delivered", Wanted::Integers),
    ("intended_ns", Wanted::Integers),
    ("sent_ns", Wanted::Integers),
    ("written_ns", Wanted::Integers),
    ("received_ns", Wanted::Integers),
    ("identified", Wanted::Words),
];

const ORDER_COLUMNS: [(&str, Wanted); 8] = [
    ("publisher", Wanted::Integers),
    ("sequence", Wanted::Integers),
    ("subscriber", Wanted::Integers),
    ("sent_ns", Wanted::Integers),
    ("received_ns", Wanted::Integers),
    ("topic", Wanted::Words),
    ("payload_bytes", Wanted::Integers),
    ("identified", Wanted::Words),
];

/// Reads the deliveries, and hands out those of each range; its rows are at hand when its last row is read.
pub(crate) fn for_each_range(
    dir: &Path,
    words: &mut Vocabulary,
    ranges: &Ranges,
    mut take: impl FnMut(usize, Vec<StoredDelivery>, &Vocabulary) -> Result<()>,
) -> Result<()> {
    let Some(table) = TableReader::open(dir, "messages")? else {
        return take(0, Vec::new(), words);
    };
    let [delivered, ambiguous] = [&b"delivered"[..], b"ambiguous"].map(|word| i64::from(words.code(word)));
    let level = |qos: i64| if qos == ABSENT { -1 } else { qos as i8 };
    let (mut number, mut range, mut found) = (0, 0, Vec::new());
    table.for_each_batch(&DELIVERY_COLUMNS, words, |columns, rows, words| {
        for row in 0..rows {
            if ranges.end(range) == Some(number) {
                take(range, std::mem::take(&mut found), words)?;
                range += 1;
            }
            let at = |column: usize| columns[column].integers[row];
            let [intended_ns, sent_ns, written_ns, received_ns] = [at(6), at(7), at(8), at(9)];
            // Only what was due at a known time and came has a latency to be divided. A guess has none.
            if at(3) == delivered && at(10) != ambiguous && intended_ns != ABSENT && received_ns != ABSENT {
                found.push(StoredDelivery {
                    row: number,
                    publisher: at(0),
                    sequence: at(1),
                    subscriber: at(2),
                    qos: level(at(4)),
                    qos_delivered: level(at(5)),
                    intended_ns,
                    sent_ns,
                    written_ns,
                    received_ns,
                });
            }
            number += 1;
        }
        Ok(())
    })?;
    take(range, found, words)
}

impl MessageOrder {
    pub(crate) fn read(dir: &Path, words: &mut Vocabulary, settings: &RunSettings) -> Result<MessageOrder> {
        let mut found = MessageOrder::default();
        let Some(table) = TableReader::open(dir, "messages")? else { return Ok(found) };
        let order = i64::from(words.code(b"order"));
        table.for_each_batch(&ORDER_COLUMNS, words, |columns, rows, _| {
            for row in 0..rows {
                let at = |column: usize| columns[column].integers[row];
                let [publisher, sequence, subscriber, sent_ns, received_ns, topic] =
                    [at(0), at(1), at(2), at(3), at(4), at(5)];
                found.topics.insert(topic);
                let sent = Ordered { at_ns: sent_ns, sequence, publisher, client: publisher, topic };
                let received = Ordered { at_ns: received_ns, client: subscriber, ..sent };
                if settings.is_program(publisher) {
                    found.sent_by_programs.push(sent);
                    found.received_of_programs.push(received);
                    // They may put more around a payload than is a message's.
                    found.longest.insert(topic, i64::MAX);
                    continue;
                }
                let (is_sent, is_received) =
                    (sent_ns != ABSENT && at(6) < IDENTITY_BYTES, received_ns != ABSENT && at(7) == order);
                if is_sent {
                    found.sent.push(sent);
                }
                if is_received {
                    found.received.push(received);
                }
                if is_sent || is_received {
                    let longest = found.longest.entry(topic).or_default();
                    *longest = at(6).max(*longest);
                }
            }
            Ok(())
        })?;
        found.put_in_order();
        Ok(found)
    }

    /// How many rows tell of a message by its order or its time.
    pub(crate) fn rows(&self) -> usize {
        [&self.sent, &self.received, &self.sent_by_programs, &self.received_of_programs]
            .map(Vec::len)
            .iter()
            .sum()
    }

    fn put_in_order(&mut self) {
        // A message that several receive has a row for each.
        self.sent.sort_unstable();
        self.sent.dedup();
        self.received.sort_by_key(|one| (one.at_ns, one.sequence));
        for timed in [&mut self.sent_by_programs, &mut self.received_of_programs] {
            timed.retain(|one| one.at_ns != ABSENT);
            timed.sort_unstable();
            timed.dedup();
        }
    }
}
