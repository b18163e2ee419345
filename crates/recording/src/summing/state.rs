//! What is known of the messages that were added up, and is written down with each fold.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use mqttlab_rows::{Layout, MessageFate, Phase, Sent, Unsent};
use serde::{Deserialize, Serialize};

use super::sample::Sample;
use super::sums::MessageSums;
use crate::client_tally::ClientTally;
use crate::error::{Error, ErrorContext, Result};
use crate::flow::Flow;
use crate::latest::{Latest, StoredLatest};
use crate::message_rows::{GatheredMessage, Survey, key};
use crate::spool::{Spool, SpoolReader};
use crate::waiting::Heard;

/// The state of a run of which sums are kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FoldState {
    pub(crate) sample: Sample,
    /// One bit for each QoS, by publisher.
    qos: BTreeMap<u32, u8>,
    pub(crate) sums: MessageSums,
    pub(crate) tallies: Vec<ClientTally>,
    pub(crate) fates: [u64; MessageFate::ALL.len()],
    pub(crate) flow: Flow,
    pub(crate) heard: Heard,
    /// The names that were added up, as ranges in order.
    added: Vec<(u64, u64)>,
    /// The highest sequence that came to a subscriber from a publisher.
    order: Vec<(u32, u32, u32)>,
    /// One bit for each carried delivery, and their number.
    pub(crate) overtaken: (Vec<u64>, usize),
    /// The last messages that were added up.
    latest: StoredLatest,
    /// The first sequences of measurement and cool-down, by publisher.
    phases: BTreeMap<u32, [Option<u32>; 2]>,
    /// Carried QoS 2 messages that found no place at their broker.
    pub(crate) crowded: BTreeSet<u64>,
}

impl FoldState {
    /// As the last fold left it in `from`; of a run that was not folded yet an empty one.
    pub(crate) fn load(from: &Path) -> Result<FoldState> {
        let path = from.join(STATE);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| Error::Damaged { path, what: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FoldState::default()),
            Err(source) => Err(Error::Disk { action: "read", path, source }),
        }
    }

    pub(crate) fn store(&self, to: &Path) -> Result<()> {
        let path = to.join(STATE);
        let json = serde_json::to_vec(self).expect("a state is made of numbers");
        fs::write(&path, json).on("write", &path)
    }

    /// Counts the messages that were written since the last fold, for the sample.
    pub(crate) fn count_new(&mut self, from: &Path, layout: &Layout) -> Result<()> {
        if let Some(mut reader) = SpoolReader::open(Spool::Sent, from)? {
            reader.for_each(|row: Sent, _| {
                self.sample.count_sent(layout, &row);
                Ok(())
            })?;
        }
        if let Some(mut reader) = SpoolReader::open(Spool::Unsent, from)? {
            reader.for_each(|row: Unsent, _| {
                self.sample.count_unsent(&row);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// A survey that goes on where the last one ended.
    pub(crate) fn survey(&self) -> Survey {
        let latest =
            self.order.iter().map(|&(subscriber, publisher, sequence)| ((subscriber, publisher), sequence));
        let (overtaken, carried) = self.overtaken.clone();
        Survey { latest: latest.collect(), overtaken, carried, ..Survey::default() }
    }

    pub(crate) fn note_order(&mut self, survey: &mut Survey) {
        let latest = std::mem::take(&mut survey.latest).into_iter();
        self.order =
            latest.map(|((subscriber, publisher), sequence)| (subscriber, publisher, sequence)).collect();
        self.order.sort_unstable();
    }

    /// The last messages of those that were added up.
    pub(crate) fn latest(&self) -> Latest {
        Latest::from(&self.latest)
    }

    pub(crate) fn note_latest(&mut self, latest: &Latest) {
        self.latest = StoredLatest::from(latest);
    }

    /// Whether a message was added up.
    pub(crate) fn has_added(&self, publisher: u32, sequence: u32) -> bool {
        self.added_key(key(publisher, sequence))
    }

    /// As [`Self::has_added`], of a name in one number.
    pub(crate) fn added_key(&self, key: u64) -> bool {
        let after = self.added.partition_point(|&(begin, _)| begin <= key);
        after.checked_sub(1).is_some_and(|before| key < self.added[before].1)
    }

    /// Adds names, which come in order, to those that were added up.
    pub(crate) fn add(&mut self, keys: &[u64]) {
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(self.added.len() + 1);
        let mut put = |(begin, end): (u64, u64)| match merged.last_mut() {
            Some(last) if last.1 >= begin => last.1 = last.1.max(end),
            _ => merged.push((begin, end)),
        };
        let mut new = keys.iter().peekable();
        for &range in &self.added {
            while let Some(&key) = new.next_if(|&&key| key < range.0) {
                put((key, key + 1));
            }
            put(range);
        }
        new.for_each(|&key| put((key, key + 1)));
        self.added = merged;
    }

    /// Takes note of where phases begin, and with which QoS somebody publishes.
    pub(crate) fn note(&mut self, message: &GatheredMessage<'_>, phase: Phase) {
        let qos = message.sent.map_or(0, |sent| 1 << sent.qos.min(2));
        *self.qos.entry(message.publisher).or_default() |= qos;
        let place = match phase {
            Phase::WarmUp => return,
            Phase::Measurement => 0,
            Phase::CoolDown => 1,
        };
        let first = &mut self.phases.entry(message.publisher).or_default()[place];
        *first = Some(first.map_or(message.sequence, |known| known.min(message.sequence)));
    }

    /// The phase of a message that was added up, by those of its publisher's others.
    pub(crate) fn phase_of(&self, publisher: u32, sequence: u32) -> Phase {
        let [measurement, cool_down] = self.phases.get(&publisher).copied().unwrap_or_default();
        let has_begun = |first: Option<u32>| first.is_some_and(|first| first <= sequence);
        match (has_begun(cool_down), has_begun(measurement)) {
            (true, _) => Phase::CoolDown,
            (_, true) => Phase::Measurement,
            _ => Phase::WarmUp,
        }
    }

    /// The QoS of a message that was added up, whose copy was delivered with another: the lowest that its publisher had and that
    /// this may be of.
    pub(crate) fn qos_of(&self, publisher: u32, delivered: u8) -> u8 {
        let known = self.qos.get(&publisher).copied().unwrap_or_default();
        (delivered..3).find(|qos| known & 1 << qos != 0).unwrap_or(delivered)
    }
}

const STATE: &str = "state.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_added_up_are_found_again_whatever_their_order() {
        let mut state = FoldState::default();
        state.add(&[3, 4, 9]);
        state.add(&[1, 5, 6, 8, 20]);
        assert_eq!(state.added, [(1, 2), (3, 7), (8, 10), (20, 21)]);
        state.add(&[2, 7]);
        assert_eq!(state.added, [(1, 10), (20, 21)]);
        assert!(state.has_added(0, 1) && state.has_added(0, 9) && state.has_added(0, 20));
        assert!(!state.has_added(0, 0) && !state.has_added(0, 10) && !state.has_added(1, 3));
    }
}
