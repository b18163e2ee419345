//! How many deliveries of a run were to happen, how many did, and whether that stopped at some time.
//!
//! What it does not know: whose they are, and what explains those that are missing.

use mqttlab_rows::{MessageFate, Phase};
use serde::{Deserialize, Serialize};

use crate::tables::MessageRow;

/// How many deliveries the measurement's messages were to have, and whether the others would have come in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flow {
    /// The time from the end of the measurement to the end of the run.
    pub cool_down_ns: u64,
    /// When the run ended.
    pub end_ns: u64,
    /// When the last first delivery happened.
    pub last_ns: u64,
    /// Deliveries that the measurement's messages were to have.
    pub expected: u64,
    /// Those that had neither happened nor been lost at the end.
    pub under_way: u64,
    /// Those that happened.
    pub delivered: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Messages of the measurement that no subscription was for.
    pub without_receiver: u64,
    /// First deliveries of the whole run.
    pub arrived: u64,
    /// Those that took longer than a third of the cool-down.
    pub slow: u64,
}

impl Flow {
    /// Takes a row of the messages' table into account.
    pub(crate) fn count(&mut self, row: &MessageRow<'_>) {
        if row.phase == Phase::Measurement {
            use MessageFate::{Delivered, Lost, NoReceiver, UnderWay, Unknown};
            self.expected += u64::from(matches!(row.fate, Delivered | Lost | UnderWay | Unknown));
            self.under_way += u64::from(row.fate == UnderWay);
            self.delivered += u64::from(row.fate == Delivered);
            self.lost += u64::from(row.fate == Lost);
            self.without_receiver += u64::from(row.fate == NoReceiver);
        }
        if row.fate == MessageFate::Delivered {
            self.arrived += 1;
            self.last_ns = self.last_ns.max(row.received_ns.unwrap_or(0));
            self.slow += u64::from(row.latency_ns.is_none_or(|took| took > self.cool_down_ns / 3));
        }
    }

    /// What to read before the numbers of a run to which nothing was delivered. That is no fault of the instrument: a scenario may
    /// ask for it.
    pub(crate) fn warning(&self) -> Option<String> {
        let Flow { expected, delivered, lost, under_way, without_receiver, .. } = *self;
        if delivered > 0 || expected + without_receiver == 0 {
            return None;
        }
        if expected == 0 {
            return Some(format!(
                "Nothing was delivered: no subscription was for any of the {without_receiver} messages of the measurement when the \
                 broker had them."
            ));
        }
        let unknown = expected - lost - under_way;
        let fates = [("lost", lost), ("under way at the end", under_way), ("of unknown fate", unknown)];
        let fates =
            fates.iter().filter(|(_, count)| *count > 0).map(|(fate, count)| format!("{count} {fate}"));
        Some(format!(
            "Nothing was delivered: of {expected} expected deliveries none happened ({}).",
            fates.collect::<Vec<_>>().join(", ")
        ))
    }

    /// Whether deliveries were under way at the end although the cool-down lasted three times the p99 of those that
    /// happened, which is as much as that 1 % of them took longer than a third of it: most of them, or a twentieth
    /// where in the whole cool-down nothing came. A flow that is only slow, or more than its link carries, has late
    /// deliveries until the end.
    ///
    /// `under_way`: those of them that nothing explains.
    pub(crate) fn stood_still(&self, under_way: u64) -> bool {
        let silent = self.end_ns.saturating_sub(self.last_ns) >= self.cool_down_ns;
        let many = 2 * under_way > self.expected
            || silent && under_way >= UNDER_WAY_MIN && 20 * under_way >= self.expected;
        self.arrived > 0 && many && 100 * self.slow <= self.arrived
    }

    /// Since when, where nothing came any more.
    pub(crate) fn since(&self) -> String {
        let silent = self.end_ns.saturating_sub(self.last_ns) >= self.cool_down_ns;
        if !silent {
            return String::new();
        }
        format!(
            "nothing arrived after {:.3} s of the run, which ended at {:.3} s; ",
            s(self.last_ns),
            s(self.end_ns)
        )
    }
}

/// Fewer deliveries under way tell nothing of the broker.
const UNDER_WAY_MIN: u64 = 10;

/// In seconds.
pub(crate) fn s(ns: u64) -> f64 {
    ns as f64 / 1e9
}
