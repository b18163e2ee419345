//! Sums by keys of which few are met again and again.

use std::hash::Hash;

use mqttlab_recording::NumberMap;

/// Sums by key. The key that was met last in each slot needs no hash.
#[derive(Debug)]
pub(crate) struct Tallies<K, V> {
    places: NumberMap<K, u32>,
    sums: Vec<V>,
    latest: [Option<(K, u32)>; SLOTS],
}

impl<K: Copy, V> Default for Tallies<K, V> {
    fn default() -> Tallies<K, V> {
        Tallies { places: NumberMap::default(), sums: Vec::new(), latest: [None; SLOTS] }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Tallies<K, V> {
    /// The sum of a key; `slot`: a number that differs between keys that take turns.
    #[inline]
    pub(crate) fn of(&mut self, slot: u64, key: K) -> &mut V {
        let latest = &mut self.latest[slot as usize % SLOTS];
        let place = match *latest {
            Some((known, place)) if known == key => place,
            _ => {
                let sums = &mut self.sums;
                let place = *self.places.entry(key).or_insert_with(|| {
                    sums.push(V::default());
                    sums.len() as u32 - 1
                });
                *latest = Some((key, place));
                place
            }
        };
        &mut self.sums[place as usize]
    }

    /// Each key with its sum, in no order that two runs share.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.places.iter().map(|(key, &place)| (key, &self.sums[place as usize]))
    }
}

const SLOTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_share_a_slot_have_sums_of_their_own() {
        let mut tallies = Tallies::<i64, u64>::default();
        for number in 0..1000 {
            *tallies.of(number % 3, (number % 7) as i64) += 1;
        }
        let mut found: Vec<_> = tallies.iter().map(|(&key, &sum)| (key, sum)).collect();
        found.sort_unstable();
        let expected = (0..7).map(|key| (key, if key < 6 { 143 } else { 142 })).collect::<Vec<_>>();
        assert_eq!(found, expected);
    }
}
