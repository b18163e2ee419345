//! What is added up of messages that leave no rows: sums, a tally for each client, and which of the others are of the sample.
//!
//! A fold ([`crate::folding`]) adds while the run goes on, the last pass ([`crate::join`]) at its end.

mod sample;
mod state;
mod sums;

use std::collections::BTreeMap;
use std::path::Path;

use mqttlab_rows::{Layout, MessageFate, SummaryRule};

use crate::error::Result;
use crate::footer::FileSize;
use crate::message_rows::Survey;
use crate::tables::MessageRow;
use sample::zeros;
use sums::write_tables;

pub(crate) use state::FoldState;

/// The messages that were added up, and which of the others are of the sample.
pub(crate) struct SummedMessages {
    pub(crate) state: FoldState,
    least_zeros: u32,
    /// Whether the rows that come are of a message that was added up before.
    pub(crate) is_again: bool,
}

impl SummedMessages {
    /// As the last fold left them in `from`, with what was written since then counted for the sample.
    pub(crate) fn load(from: &Path, layout: &Layout, rule: &SummaryRule) -> Result<SummedMessages> {
        let mut state = FoldState::load(from)?;
        state.count_new(from, layout)?;
        state.sums.begin(layout);
        state.tallies.resize(layout.clients.len(), Default::default());
        let least_zeros = state.sample.least_zeros(rule.rows_most);
        Ok(SummedMessages { state, least_zeros, is_again: false })
    }

    /// A survey that goes on where the last one ended.
    pub(crate) fn survey(&self) -> Survey {
        self.state.survey()
    }

    /// Adds a row, and says whether the table has it, too.
    pub(crate) fn count(&mut self, row: &MessageRow<'_>) -> bool {
        self.state.sums.count(row, self.is_again);
        let name = row.publisher.zip(row.sequence).filter(|_| !self.is_again);
        name.is_some_and(|(publisher, sequence)| self.is_sampled(publisher, sequence))
    }

    /// A message that was not sent would have reached these.
    pub(crate) fn count_wanted(&mut self, layout: &Layout, row: &MessageRow<'_>, topic: u32) {
        let publisher = row.publisher.expect("somebody was to send it");
        let own = layout.own_receivers.iter().filter(|own| own.client == publisher);
        let changing = |client: u32| {
            let mut changed = layout.changed_receivers.iter().chain(own.clone());
            changed.any(|changed| changed.topic == topic && changed.client == client)
        };
        let receivers = layout.receivers_of(topic, publisher).iter().filter(|&client| !changing(client));
        self.state.sums.count_wanted(row, receivers, layout.shares_of(topic));
    }

    /// Writes the tables of sums. Answers which messages are of the sample.
    pub(crate) fn write(
        self,
        to: &Path,
        layout: &Layout,
        files: &mut BTreeMap<String, FileSize>,
    ) -> Result<String> {
        write_tables(to, layout, &self.state.sums, files)?;
        Ok(format!("1 in {}", 1_u64 << self.least_zeros))
    }

    pub(crate) fn is_sampled(&self, publisher: u32, sequence: u32) -> bool {
        zeros(publisher, sequence) >= self.least_zeros
    }
}

/// What a copy of a message counts as that was added up before.
pub(crate) fn fate_again(is_retained: bool) -> MessageFate {
    if is_retained { MessageFate::Retained } else { MessageFate::Duplicate }
}
