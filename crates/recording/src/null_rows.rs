//! Which rows of a page have no value, and how a page says so.

use crate::encoding::{put_run, put_truths, put_varint};
use crate::pages::PAGE_ROWS;

/// The rows of a page without a value: one bit for each row.
pub(crate) struct NullRows {
    bits: Box<[u64; PAGE_ROWS / 64]>,
    in_chunk: u64,
}

impl Default for NullRows {
    fn default() -> Self {
        NullRows { bits: Box::new([0; PAGE_ROWS / 64]), in_chunk: 0 }
    }
}

impl NullRows {
    /// The row in this place has no value.
    #[inline]
    pub(crate) fn set(&mut self, place: usize) {
        self.bits[place / 64] |= 1 << (place % 64);
    }

    /// Begins a page's body with the definition levels, moves the values of the rows that have one to the front,
    /// and says how many these are. The next page begins.
    pub(crate) fn put<T: Copy>(
        &mut self,
        rows: usize,
        values: &mut [T; PAGE_ROWS],
        body: &mut Vec<u8>,
    ) -> usize {
        let absent = self.bits.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let start = body.len();
        body.extend([0; 4]);
        if absent == 0 || absent == rows {
            put_run(u64::from(absent == 0), rows, 1, body);
        } else {
            let present = self.present(rows);
            put_varint((rows as u64).div_ceil(8) << 1 | 1, body);
            put_truths(&present, rows, body);
            close_up(&present, values);
        }
        let length = (body.len() - start - 4) as u32;
        body[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.in_chunk += absent as u64;
        self.bits.fill(0);
        rows - absent
    }

    /// How many rows of the column chunk had no value. The next chunk begins.
    pub(crate) fn end_chunk(&mut self) -> u64 {
        std::mem::take(&mut self.in_chunk)
    }

    /// One bit for each row that has a value.
    fn present(&self, rows: usize) -> [u64; PAGE_ROWS / 64] {
        let mut present = self.bits.map(|word| !word);
        for (word, bits) in present.iter_mut().enumerate() {
            let rows = rows.saturating_sub(word * 64);
            *bits &= if rows < 64 { (1 << rows) - 1 } else { u64::MAX };
        }
        present
    }
}

fn close_up<T: Copy>(present: &[u64], values: &mut [T; PAGE_ROWS]) {
    let mut kept = 0;
    for (word, &bits) in present.iter().enumerate() {
        let mut bits = bits;
        while bits != 0 {
            values[kept] = values[word * 64 + bits.trailing_zeros() as usize];
            kept += 1;
            bits &= bits - 1;
        }
    }
}
