//! Numbers of which there are few: a dictionary for them.

use crate::encoding::Integer;
use crate::pages::PAGE_ROWS;

/// The distinct values of a column chunk, each with its index, as long as there are at most 256.
pub(crate) struct Distinct<T> {
    /// In the order of their indices.
    values: Vec<T>,
    /// Values with their indices in the lowest byte. A value that is not in its own slot is in one of the next.
    slots: Box<[u64; SLOTS]>,
    /// The indices of the page that was looked up last.
    indices: Box<[u8; PAGE_ROWS]>,
}

impl<T: Integer> Default for Distinct<T> {
    fn default() -> Self {
        let (slots, indices) = (Box::new([VACANT; SLOTS]), Box::new([0; PAGE_ROWS]));
        Distinct { values: Vec::new(), slots, indices }
    }
}

impl<T: Integer> Distinct<T> {
    /// Looks up the index of each value, and learns those that are new; `None` when there are too many. No value may
    /// be larger than [`VALUE_MAX`].
    pub(crate) fn look_up(&mut self, values: &[T]) -> Option<()> {
        let (runs, rest) = values.as_chunks::<RUN>();
        for (number, run) in runs.iter().enumerate() {
            let start = number * RUN;
            let (slots, indices) = (&*self.slots, self.indices[start..].first_chunk_mut::<RUN>()?);
            let mut wrong = 0;
            // Without a way out in the middle there is less to decide.
            for (index, value) in indices.iter_mut().zip(run) {
                let found = slots[slot(value.bits())];
                *index = found as u8;
                wrong |= found >> 8 ^ value.bits();
            }
            if wrong != 0 {
                self.learn(run, start)?;
            }
        }
        self.learn(rest, runs.len() * RUN)
    }

    /// The indices that were looked up last, so many of them.
    pub(crate) fn indices(&self, count: usize) -> &[u8] {
        &self.indices[..count]
    }

    /// Looks up values that may not be in their own slots.
    #[cold]
    fn learn(&mut self, values: &[T], start: usize) -> Option<()> {
        for (number, &value) in values.iter().enumerate() {
            self.indices[start + number] = self.find(value)?;
        }
        Some(())
    }

    /// The index of a value; `None` when it is one too many.
    fn find(&mut self, value: T) -> Option<u8> {
        let mut at = slot(value.bits());
        while self.slots[at] != VACANT {
            if self.slots[at] >> 8 == value.bits() {
                return Some(self.slots[at] as u8);
            }
            at = (at + 1) % SLOTS;
        }
        let index = u8::try_from(self.values.len()).ok()?;
        self.slots[at] = value.bits() << 8 | u64::from(index);
        self.values.push(value);
        Some(index)
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The dictionary page.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page = Vec::new();
        self.values.iter().for_each(|value| value.put(&mut page));
        page
    }
}

/// The multiplication spreads neighbouring values over all slots.
#[inline(always)]
fn slot(bits: u64) -> usize {
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS)) as usize
}

/// Values that are looked up together.
const RUN: usize = 32;
const SLOT_BITS: u32 = 10;
const SLOTS: usize = 1 << SLOT_BITS;
const VACANT: u64 = u64::MAX;
/// A slot has 56 bits for the value, and all ones are vacant.
pub(crate) const VALUE_MAX: u64 = (VACANT >> 8) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_lead_back_to_their_values() {
        let values: Vec<u64> = (0..1000).map(|n| n * n % 251 * 1024).chain([VALUE_MAX, 0]).collect();
        let mut known = Distinct::default();
        known.look_up(&values).unwrap();
        let back: Vec<u64> =
            known.indices(values.len()).iter().map(|&index| known.values[usize::from(index)]).collect();
        assert_eq!(back, values);
    }

    #[test]
    fn the_257th_value_is_one_too_many() {
        let values: Vec<u32> = (0..257).collect();
        assert!(Distinct::default().look_up(&values[..256]).is_some());
        assert!(Distinct::default().look_up(&values).is_none());
    }
}
