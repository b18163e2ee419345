//! Which packet identifiers are in use, for an outbox so full that most are.
//!
//! A queue that grows behind a window of 65535 has all identifiers but a few in flight, and a side that repeats by the
//! clock has them acknowledged out of order: the free one may be anywhere, and those in use may have been given on as
//! many laps as there are. A bit and a lap for each identifier tell both at once; they take 270 kB, so that an outbox
//! has them only while it needs them.

/// Identifiers in use, and the lap on which each was given.
#[derive(Clone, Debug)]
pub(crate) struct InUse {
    /// By identifier; 0 where it is free, as laps begin at 1.
    laps: Vec<u32>,
    /// A bit for each identifier; that of 0, which is none ([MQTT-2.2.1-3]), is always set.
    bits: Vec<u64>,
}

impl InUse {
    /// Of these laps and identifiers.
    pub(crate) fn of(every: impl Iterator<Item = (u32, u16)>) -> InUse {
        let mut in_use = InUse { laps: vec![0; IDENTIFIERS], bits: vec![0; IDENTIFIERS / BITS] };
        in_use.bits[0] = 1;
        for (lap, id) in every {
            in_use.insert(lap, id);
        }
        in_use
    }

    /// An identifier is given.
    pub(crate) fn insert(&mut self, lap: u32, id: u16) {
        self.laps[usize::from(id)] = lap;
        self.bits[usize::from(id) / BITS] |= 1 << (usize::from(id) % BITS);
    }

    /// An identifier is free again.
    pub(crate) fn remove(&mut self, id: u16) {
        self.laps[usize::from(id)] = 0;
        self.bits[usize::from(id) / BITS] &= !(1 << (usize::from(id) % BITS));
    }

    /// When an identifier in use was given.
    pub(crate) fn lap_of(&self, id: u16) -> Option<u32> {
        Some(self.laps[usize::from(id)]).filter(|&lap| lap > 0)
    }

    /// The next free identifier behind this one, which itself comes last; `None` while all are in use.
    pub(crate) fn free_behind(&self, id: u16) -> Option<u16> {
        // Behind the last one, so that an identifier rests as long as it can before it is given again.
        let from = usize::from(id) + 1;
        self.free_from(from).or_else(|| self.free_from(0))
    }

    fn free_from(&self, from: usize) -> Option<u16> {
        let first = from / BITS;
        let free = |place: usize| self.bits.get(place).map_or(0, |bits| !bits);
        // Identifiers before `from` in its own word are masked out.
        let in_first = free(first) & (u64::MAX << (from % BITS));
        let (place, bits) = std::iter::once((first, in_first))
            .chain((first + 1..self.bits.len()).map(|place| (place, free(place))))
            .find(|(_, bits)| *bits != 0)?;
        Some((place * BITS) as u16 + bits.trailing_zeros() as u16)
    }
}

const IDENTIFIERS: usize = 1 << 16;
const BITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_free_identifier_is_found_across_the_end_and_zero_is_none() {
        let mut in_use = InUse::of((1..=u16::MAX).map(|id| (u32::from(id), id)));
        assert_eq!(in_use.free_behind(77), None);
        for free in [64, 65_535, 1] {
            in_use.remove(free);
            assert_eq!(in_use.lap_of(free), None);
            let found = [0, free - 1, free, u16::MAX].map(|id| in_use.free_behind(id));
            assert_eq!(found, [Some(free); 4]);
            in_use.insert(9, free);
            assert_eq!(in_use.lap_of(free), Some(9));
        }
        in_use.remove(700);
        in_use.remove(900);
        assert_eq!([699, 700, 899, 900].map(|id| in_use.free_behind(id)), [700, 900, 900, 700].map(Some));
    }
}
