//! Times of which the evidence is not whole, by client.

use std::collections::BTreeMap;

use mqttlab_units::Instant;

/// Times of which the evidence is not whole. They are kept apart only as long as they are few.
#[derive(Default)]
pub struct Gaps {
    of: BTreeMap<Option<u32>, Vec<(Instant, Instant)>>,
}

impl Gaps {
    /// What a client sent or received in this time may be missing; `None`: what anybody did.
    pub fn note(&mut self, client: Option<u32>, from: Instant, until: Instant) {
        let gaps = self.of.entry(client).or_default();
        if let Some(last) = gaps.last_mut()
            && (from <= last.1 && until >= last.0 || gaps.len() >= GAPS_MAX)
        {
            let last = gaps.last_mut().expect("there is one");
            *last = (last.0.min(from), last.1.max(until));
            return;
        }
        gaps.push((from, until));
    }

    /// Whether all of a client's evidence is there.
    pub fn has_none(&self, client: u32) -> bool {
        !self.of.contains_key(&None) && !self.of.contains_key(&Some(client))
    }

    /// All of them: whose, from when, until when.
    pub fn all(&self) -> impl Iterator<Item = (Option<u32>, Instant, Instant)> {
        self.of
            .iter()
            .flat_map(|(&client, gaps)| gaps.iter().map(move |&(from, until)| (client, from, until)))
    }
}

/// Gaps of one client that are kept apart; what comes later makes the last one longer.
const GAPS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_that_touch_are_one_and_there_are_never_too_many() {
        let at = Instant::from_ns;
        let mut gaps = Gaps::default();
        gaps.note(Some(1), at(5), at(10));
        gaps.note(Some(1), at(8), at(20));
        gaps.note(None, at(1), at(2));
        assert_eq!(gaps.all().collect::<Vec<_>>(), [(None, at(1), at(2)), (Some(1), at(5), at(20))]);
        for place in 0..10_000 {
            gaps.note(Some(2), at(10 * place), at(10 * place + 1));
        }
        assert_eq!(gaps.all().filter(|gap| gap.0 == Some(2)).count(), GAPS_MAX);
        assert_eq!(gaps.all().last().map(|gap| gap.2), Some(at(99_991)));
    }
}
