//! What events make of one publication of a client: since when its messages are others, and what is due besides.

use std::collections::VecDeque;

use mqttlab_units::{Duration, Instant};

use crate::{ChangedRate, ClientsChange};

/// Other messages, and messages more.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangedArrivals {
    /// What messages are from an instant on, by number.
    contents: Vec<(Instant, usize)>,
    /// How often they are due from an instant on.
    pub(super) rates: Vec<(Instant, Option<ChangedRate>)>,
    /// How many are due at an instant, besides the others.
    bursts: VecDeque<(Instant, u32)>,
}

impl ChangedArrivals {
    /// What events, in the order of time since `from`, make of a publication; `None` where they leave it alone.
    pub(super) fn of<'e>(
        events: impl Iterator<Item = &'e (Duration, ClientsChange)>,
        publication: usize,
        from: Instant,
    ) -> Option<ChangedArrivals> {
        let mut found = ChangedArrivals::default();
        for (at, change) in events {
            let at = from + *at;
            match change {
                ClientsChange::Publish { publications } => {
                    let those = publications.iter().filter(|change| change.publication == publication);
                    for change in those {
                        found.contents.push((at, change.content));
                        found.rates.push((at, change.rate));
                    }
                }
                ClientsChange::Burst { publications, messages } if publications.contains(&publication) => {
                    found.bursts.push_back((at, *messages));
                }
                _ => {}
            }
        }
        (!found.contents.is_empty() || !found.bursts.is_empty()).then_some(found)
    }

    /// Whether the rate is another one at any time.
    pub(super) fn has_rates(&self) -> bool {
        self.rates.iter().any(|(_, rate)| rate.is_some())
    }

    /// What messages of an instant are; `None`: what the publication says.
    pub(super) fn content(&self, at: Instant) -> Option<usize> {
        let place = self.contents.partition_point(|(from, _)| *from <= at);
        Some(self.contents[place.checked_sub(1)?].1)
    }

    /// When the next message of a burst is due.
    pub(super) fn next_of_burst(&self) -> Option<Instant> {
        self.bursts.front().map(|(at, _)| *at)
    }

    /// A message of the burst has been taken.
    pub(super) fn take_of_burst(&mut self) {
        if let Some((_, left)) = self.bursts.front_mut() {
            *left -= 1;
            if *left == 0 {
                self.bursts.pop_front();
            }
        }
    }

    /// When messages are due again of which none is due at `now`; `until` where that is not before.
    pub(super) fn paused_until(&self, now: Instant, until: Instant) -> Option<Instant> {
        let is_pause = |(_, rate): &&(Instant, Option<ChangedRate>)| rate.is_some();
        let place = self.rates.partition_point(|(from, _)| *from <= now);
        self.rates[..place].last().filter(is_pause)?;
        let next = self.rates[place..].iter().find(|rate| !is_pause(rate));
        Some(next.map_or(until, |(at, _)| (*at).min(until)))
    }
}
