//! Of each publisher, topic, QoS and receiver: the last message that arrived, and those between which a connection ended.
//!
//! ```text
//!   arrived    1   2   3           7   8        a connection ended between 3 and 7: what it is that 4, 5 and 6
//!                        └── turn ──┘            are lost by, the connections say
//! ```
//!
//! Retained copies do not count: they come from the broker's store, past whatever is on its way.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use mqttlab_rows::Sent;
use mqttlab_units::Instant;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::fate::Judge;
use crate::hash::FoldedHash;
use crate::message_rows::{GatheredMessage, GatheredRows, Survey};
use crate::origin::CopyOrigin;
use crate::turn::{Arrival, Turn};

/// Publisher, topic, QoS and receiver.
type FlowKey = (u32, u32, u8, u32);

/// What has arrived of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct FlowArrivals {
    /// The highest sequence, and when it came.
    last: (u32, u64),
    /// The highest that came in order. On which connection others came says nothing of those between them.
    in_order: Option<Arrival>,
}

/// The last message of each flow, and its turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Latest {
    arrivals: HashMap<FlowKey, FlowArrivals, FoldedHash>,
    turns: HashMap<FlowKey, Vec<Turn>, FoldedHash>,
}

/// As it is kept between folds: lists in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoredLatest {
    arrivals: Vec<(FlowKey, FlowArrivals)>,
    turns: Vec<(FlowKey, Vec<Turn>)>,
}

impl From<&StoredLatest> for Latest {
    fn from(stored: &StoredLatest) -> Latest {
        Latest {
            arrivals: stored.arrivals.iter().copied().collect(),
            turns: stored.turns.iter().cloned().collect(),
        }
    }
}

impl From<&Latest> for StoredLatest {
    fn from(latest: &Latest) -> StoredLatest {
        let mut arrivals: Vec<_> = latest.arrivals.iter().map(|(&key, &last)| (key, last)).collect();
        let mut turns: Vec<_> = latest.turns.iter().map(|(&key, turns)| (key, turns.clone())).collect();
        arrivals.sort_unstable_by_key(|known| known.0);
        turns.sort_unstable_by_key(|known| known.0);
        StoredLatest { arrivals, turns }
    }
}

impl Latest {
    /// With what the rows of these ranges say.
    pub(crate) fn with_ranges(
        mut self,
        from: &Path,
        ranges: &[Range<u64>],
        survey: &Survey,
        judge: &Judge<'_>,
    ) -> Result<Latest> {
        for range in ranges {
            self = self.with(&GatheredRows::read(from, range, survey)?.ordered(judge), judge);
        }
        Ok(self)
    }

    /// With what these rows say, which come behind all before, but for those that a fold has added up.
    pub(crate) fn with(mut self, rows: &GatheredRows, judge: &Judge<'_>) -> Latest {
        let _ = rows.each(&mut |message| {
            self.note(message, judge);
            Ok(())
        });
        self
    }

    /// Takes note of a message that is added up.
    pub(crate) fn note(&mut self, message: &GatheredMessage<'_>, judge: &Judge<'_>) {
        let Some(sent) = message.sent else { return };
        for delivery in message.deliveries.iter().filter(|delivery| delivery.origin == CopyOrigin::Live) {
            let key = (sent.publisher, sent.topic, sent.qos, delivery.row.subscriber);
            let arrival = Arrival {
                sequence: sent.sequence,
                sent_ns: sent.sent.as_ns(),
                received_ns: delivery.row.received.as_ns(),
                qos: delivery.row.qos,
            };
            let known = self.arrivals.entry(key).or_default();
            known.last = known.last.max((arrival.sequence, arrival.received_ns));
            let before = known.in_order;
            // A second copy says nothing new.
            if delivery.overtaken || before.is_some_and(|before| before.sequence == arrival.sequence) {
                continue;
            }
            if before.is_some_and(|before| before.sequence > arrival.sequence) {
                self.narrow(&key, &arrival, judge);
                continue;
            }
            known.in_order = Some(arrival);
            let turn = Turn { before, after: arrival };
            if judge.ended_within(&key, &turn) {
                self.turns.entry(key).or_default().push(turn);
            }
        }
    }

    /// Takes note of a message between the two of a turn: connections ended before it, after it, or both.
    fn narrow(&mut self, key: &FlowKey, arrival: &Arrival, judge: &Judge<'_>) {
        let Some(turns) = self.turns.get_mut(key) else { return };
        let Some(place) = turns.iter().position(|turn| turn.holds(arrival.sequence)) else { return };
        let turn = turns[place];
        let parts = [
            Turn { before: turn.before, after: *arrival },
            Turn { before: Some(*arrival), after: turn.after },
        ];
        turns.splice(place..=place, parts.into_iter().filter(|part| judge.ended_within(key, part)));
    }

    /// When the last message reached the receiver, if that was a later one than this.
    pub(crate) fn overtakes(&self, sent: &Sent, subscriber: u32) -> Option<Instant> {
        let key = (sent.publisher, sent.topic, sent.qos, subscriber);
        let (sequence, received_ns) = self.arrivals.get(&key)?.last;
        (sequence > sent.sequence).then_some(Instant::from_ns(received_ns))
    }

    /// Between which messages that did arrive a connection ended, and this one did not arrive.
    pub(crate) fn turn(&self, sent: &Sent, subscriber: u32) -> Option<Turn> {
        let turns = self.turns.get(&(sent.publisher, sent.topic, sent.qos, subscriber))?;
        turns.iter().find(|turn| turn.holds(sent.sequence)).copied()
    }
}
