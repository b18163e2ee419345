//! Sums over messages: by groups, publication, QoS, phase, fate and cause.
//!
//! Latencies are counted in 128 ranges for each doubling, so that a quantile is off by 1/256 of itself at most. Their
//! number, sum, smallest and largest are exact.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::Path;

use mqttlab_rows::{Layout, LossCause, MessageFate, Phase, Word};
use mqttlab_units::Histogram;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::footer::FileSize;
use crate::hash::NumberMap;
use crate::table::TableWriter;
use crate::tables::{LatencySumColumns, LatencySumRow, MessageRow, MessageSumColumns, MessageSumRow};

/// What sums are by. Groups have the numbers of their first clients' places among the groups; words have their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SumKey {
    publisher_group: Option<u16>,
    publication: Option<u16>,
    subscriber_group: Option<u16>,
    qos: Option<u8>,
    phase: u8,
    fate: u8,
    cause: Option<u8>,
}

/// One sum.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct MessageSum {
    rows: u64,
    messages: u64,
    messages_first: u64,
    payload_bytes: u64,
    out_of_order: u64,
    late: u64,
    received: u64,
    received_bytes: u64,
    written_bytes: u64,
    written_first_bytes: u64,
    wanted: u64,
    intended_ns: Option<(u64, u64)>,
    received_last_ns: Option<u64>,
    age_ns: u128,
    latency: TimeSums,
    acknowledgement: TimeSums,
}

/// How often which time occurred, with what a histogram does not tell exactly.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TimeSums {
    count: u64,
    sum: u128,
    squares: u128,
    ends: Option<(u64, u64)>,
    buckets: Histogram<7>,
}

/// The sums of a run, and which message is being counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MessageSums {
    sums: Vec<(SumKey, MessageSum)>,
    #[serde(skip)]
    places: NumberMap<SumKeyWord, usize>,
    #[serde(skip)]
    groups: Vec<u16>,
    #[serde(skip)]
    window: (u64, u64),
    /// The message whose rows come, and the subscribers' groups that it has had.
    #[serde(skip)]
    current: Option<(u32, u32)>,
    #[serde(skip)]
    had: Vec<Option<u16>>,
}

/// A key in one number.
type SumKeyWord = u64;

impl MessageSums {
    /// Prepares for rows of a run of this layout.
    pub(crate) fn begin(&mut self, layout: &Layout) {
        self.groups = numbers(layout);
        self.window = (layout.warm_up_end_ns, layout.measurement_end_ns);
        self.places = self.sums.iter().enumerate().map(|(place, (key, _))| (key.word(), place)).collect();
    }

    /// Adds a row. With `is_again` it is of a message that has been counted.
    pub(crate) fn count(&mut self, row: &MessageRow<'_>, is_again: bool) {
        let subscriber_group = self.group(row.subscriber);
        let is_message = !is_again
            && !matches!(row.fate, MessageFate::Duplicate | MessageFate::Foreign | MessageFate::Will);
        let name = row.publisher.zip(row.sequence);
        if name != self.current {
            self.current = name;
            self.had.clear();
        }
        let is_first = is_message && self.had.is_empty();
        let is_new = is_message && !self.had.contains(&subscriber_group);
        if is_new {
            self.had.push(subscriber_group);
        }
        let key = self.key(row, subscriber_group);
        let (from, until) = self.window;
        let sum = self.sum(key);
        sum.add(row);
        sum.messages += u64::from(is_new);
        sum.messages_first += u64::from(is_first);
        let is_within = |at: Option<u64>| at.is_some_and(|at| from <= at && at < until);
        if row.fate == MessageFate::Delivered && is_within(row.received_ns) {
            sum.received += 1;
            sum.received_bytes += u64::from(row.payload_bytes);
        }
        if is_within(row.written_ns.or(row.sent_ns)) {
            let bytes = row.topic.map_or(0, str::len) as u64 + u64::from(row.payload_bytes) + 1;
            sum.written_bytes += if is_new { bytes } else { 0 };
            sum.written_first_bytes += if is_first { bytes } else { 0 };
        }
        if is_first && let Some(took) = row.acknowledged_ns.zip(row.sent_ns) {
            sum.acknowledgement.add(took.0.saturating_sub(took.1));
        }
    }

    /// A message that was not sent would have had these receivers, and so many of shared subscriptions.
    pub(crate) fn count_wanted(
        &mut self,
        row: &MessageRow<'_>,
        receivers: impl Iterator<Item = u32>,
        shares: u32,
    ) {
        let members = receivers.map(|receiver| (self.group(Some(receiver)), 1));
        let mut wanted: Vec<(Option<u16>, u64)> = members.collect();
        wanted.push((None, u64::from(shares)));
        for (subscriber_group, count) in wanted.into_iter().filter(|(_, count)| *count > 0) {
            let key = SumKey { cause: None, ..self.key(row, subscriber_group) };
            self.sum(key).wanted += count;
        }
    }

    /// First deliveries that took longer, or nobody knows how long.
    pub(crate) fn slower_than(&self, most_ns: u64) -> u64 {
        let delivered = self.sums.iter().filter(|(key, _)| key.fate == MessageFate::Delivered.code());
        let slower = delivered.map(|(_, sum)| {
            let above = sum.latency.buckets.ranges().filter(|(begin, ..)| *begin > most_ns);
            above.map(|(.., count)| count).sum::<u64>() + (sum.rows - sum.latency.count)
        });
        slower.sum()
    }

    /// Where a row is added.
    fn key(&self, row: &MessageRow<'_>, subscriber_group: Option<u16>) -> SumKey {
        SumKey {
            publisher_group: self.group(row.publisher),
            publication: row.publication,
            subscriber_group,
            qos: row.qos,
            phase: row.phase.code(),
            fate: row.fate.code(),
            cause: row.cause.map(Word::code),
        }
    }

    fn group(&self, client: Option<u32>) -> Option<u16> {
        self.groups.get(client? as usize).copied()
    }

    fn sum(&mut self, key: SumKey) -> &mut MessageSum {
        let sums = &mut self.sums;
        let place = *self.places.entry(key.word()).or_insert_with(|| {
            sums.push((key, MessageSum::default()));
            sums.len() - 1
        });
        &mut self.sums[place].1
    }
}

impl SumKey {
    fn word(&self) -> SumKeyWord {
        let group = |group: Option<u16>| u64::from(group.unwrap_or(u16::MAX));
        // A group has sixteen publications at most, and words are fewer.
        let small = |code: Option<u8>| u64::from(code.unwrap_or(u8::MAX) & 0x1f);
        let publication = self.publication.map(|number| number as u8);
        group(self.publisher_group) << 48
            | group(self.subscriber_group) << 32
            | small(publication) << 20
            | small(self.qos) << 15
            | small(Some(self.phase)) << 10
            | small(Some(self.fate)) << 5
            | small(self.cause)
    }
}

impl MessageSum {
    fn add(&mut self, row: &MessageRow<'_>) {
        self.rows += 1;
        self.payload_bytes += u64::from(row.payload_bytes);
        self.out_of_order += u64::from(row.out_of_order);
        self.late += u64::from(row.late);
        if let Some(at) = row.intended_ns {
            let (first, last) = self.intended_ns.unwrap_or((at, at));
            self.intended_ns = Some((first.min(at), last.max(at)));
        }
        self.received_last_ns = self.received_last_ns.max(row.received_ns);
        if row.fate == MessageFate::Retained {
            let age =
                row.received_ns.zip(row.sent_ns).and_then(|(received, sent)| received.checked_sub(sent));
            self.age_ns += u128::from(age.unwrap_or(0));
        }
        if row.fate == MessageFate::Delivered
            && let Some(took) = row.latency_ns
        {
            self.latency.add(took);
        }
    }
}

impl TimeSums {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum += u128::from(ns);
        self.squares += u128::from(ns) * u128::from(ns);
        let (least, most) = self.ends.unwrap_or((ns, ns));
        self.ends = Some((least.min(ns), most.max(ns)));
        self.buckets.count(ns, 1);
    }

    /// The standard deviation of a sample.
    fn deviation(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        // About the mean in whole nanoseconds: about zero the difference of two large numbers would be left.
        let (count, mean) = (u128::from(self.count), self.sum / u128::from(self.count));
        let spread = (self.squares + count * mean * mean).saturating_sub(2 * mean * self.sum) as f64;
        let rest = (self.sum - count * mean) as f64;
        Some(((spread - rest * rest / count as f64) / (count - 1) as f64).max(0.0).sqrt())
    }
}

/// The number of each client's group, in the order of their first clients.
fn numbers(layout: &Layout) -> Vec<u16> {
    let mut known: HashMap<&str, u16> = HashMap::new();
    let numbers = layout.clients.iter().map(|client| {
        let next = known.len() as u16;
        *known.entry(&client.group).or_insert(next)
    });
    numbers.collect()
}

/// Writes the tables of the sums.
pub(crate) fn write_tables(
    to: &Path,
    layout: &Layout,
    sums: &MessageSums,
    files: &mut BTreeMap<String, FileSize>,
) -> Result<()> {
    let numbers = numbers(layout);
    let name = |group: Option<u16>| {
        let client = numbers.iter().position(|number| Some(*number) == group)?;
        Some(&*layout.clients[client].group)
    };
    let mut table = TableWriter::<MessageSumColumns<'static>>::create(to)?;
    let mut histograms = TableWriter::<LatencySumColumns<'static>>::create(to)?;
    let mut ordered: Vec<&(SumKey, MessageSum)> = sums.sums.iter().collect();
    ordered.sort_by_key(|(key, _)| *key);
    for (number, (key, sum)) in ordered.into_iter().enumerate() {
        let ends = (name(key.publisher_group), name(key.subscriber_group));
        let row = row_of(key, sum, ends);
        table.push(|columns, place| columns.set(place, &row))?;
        for (quantity, histogram) in [("latency", &sum.latency), ("acknowledgement", &sum.acknowledgement)] {
            for (from_ns, to_ns, count) in histogram.buckets.ranges() {
                let row = LatencySumRow { sum: number as u32, quantity, from_ns, to_ns, count };
                histograms.push(|columns, place| columns.set(place, &row))?;
            }
        }
    }
    files.insert("message_sums.parquet".into(), table.finish()?);
    files.insert("latency_sums.parquet".into(), histograms.finish()?);
    Ok(())
}

fn row_of<'a>(key: &SumKey, sum: &MessageSum, ends: (Option<&'a str>, Option<&'a str>)) -> MessageSumRow<'a> {
    let phases = [Phase::WarmUp, Phase::Measurement, Phase::CoolDown];
    let is_retained = key.fate == MessageFate::Retained.code() && sum.rows > 0;
    MessageSumRow {
        publisher_group: ends.0,
        publication: key.publication,
        subscriber_group: ends.1,
        qos: key.qos,
        phase: phases.into_iter().find(|phase| phase.code() == key.phase).unwrap_or(Phase::WarmUp),
        fate: MessageFate::ALL[usize::from(key.fate)],
        cause: key.cause.map(|cause| LossCause::ALL[usize::from(cause)]),
        count: sum.rows,
        messages: sum.messages,
        messages_first: sum.messages_first,
        payload_bytes: sum.payload_bytes,
        out_of_order: sum.out_of_order,
        late: sum.late,
        received: sum.received,
        received_bytes: sum.received_bytes,
        written_bytes: sum.written_bytes,
        written_first_bytes: sum.written_first_bytes,
        wanted: sum.wanted,
        intended_first_ns: sum.intended_ns.map(|(first, _)| first),
        intended_last_ns: sum.intended_ns.map(|(_, last)| last),
        received_last_ns: sum.received_last_ns,
        age_mean_ns: is_retained.then(|| sum.age_ns as f64 / sum.rows as f64),
        latencies: sum.latency.count,
        latency_sum_ns: u64::try_from(sum.latency.sum).unwrap_or(u64::MAX),
        latency_deviation_ns: sum.latency.deviation(),
        latency_least_ns: sum.latency.ends.map(|(least, _)| least),
        latency_most_ns: sum.latency.ends.map(|(_, most)| most),
        acknowledged: sum.acknowledgement.count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_64_bits_are_written_and_read_again() {
        let mut histogram = TimeSums::default();
        [3_000_000_000_000_000_000, 4_000_000_000_000_000_000].into_iter().for_each(|ns| histogram.add(ns));
        let again: TimeSums = serde_json::from_slice(&serde_json::to_vec(&histogram).unwrap()).unwrap();
        assert_eq!((again.squares, again.ends), (histogram.squares, histogram.ends));
    }
}
