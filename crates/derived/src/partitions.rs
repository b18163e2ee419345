//! Records in parts: what is small stays in memory, what is large goes, packed, into a file beside the result.
//!
//! A part is read when its turn comes, so that no more than one of each kind is in memory as a whole. Of a file a part has
//! many pieces, for all parts are written at once and none of them may hold more than [`PIECE_BYTES`] until then.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mqttlab_recording::{Error, NumberMap, Result};

/// What a part gathers before it is written.
const PIECE_BYTES: usize = 1 << 13;

/// A record that can be told as numbers. Each is stored as its difference to the record's before it in the part, so that
/// small differences take little room.
pub(crate) trait Packed<const N: usize>: Copy {
    fn fields(&self) -> [i64; N];
    fn of(fields: &[i64; N]) -> Self;
}

/// Records in a number of parts.
pub(crate) enum Partitions<T, const N: usize> {
    Kept(Vec<Vec<T>>),
    Stored(StoredPartitions<N>),
}

/// Parts in a file, which goes with them.
pub(crate) struct StoredPartitions<const N: usize> {
    path: PathBuf,
    file: File,
    end: u64,
    parts: Vec<StoredPartition<N>>,
}

struct StoredPartition<const N: usize> {
    packed: Vec<u8>,
    latest: [i64; N],
    records: usize,
    /// Where its pieces lie in the file.
    pieces: Vec<(u64, u32)>,
}

impl<T: Packed<N>, const N: usize> Partitions<T, N> {
    /// So many parts, in memory, or in a file of that name in `dir`.
    pub(crate) fn new(count: usize, stored: bool, dir: &Path, name: &str) -> Result<Partitions<T, N>> {
        if !stored {
            return Ok(Partitions::Kept((0..count).map(|_| Vec::new()).collect()));
        }
        let path = dir.join(format!("{name}.tmp"));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|source| disk("create", &path, source))?;
        let part = || StoredPartition { packed: Vec::new(), latest: [0; N], records: 0, pieces: Vec::new() };
        Ok(Partitions::Stored(StoredPartitions {
            path,
            file,
            end: 0,
            parts: (0..count).map(|_| part()).collect(),
        }))
    }

    /// How many parts there are.
    pub(crate) fn count(&self) -> usize {
        match self {
            Partitions::Kept(parts) => parts.len(),
            Partitions::Stored(stored) => stored.parts.len(),
        }
    }

    /// Makes room for so many records in all, where they are kept.
    pub(crate) fn make_room(&mut self, records: usize) {
        if let Partitions::Kept(parts) = self {
            let each = records / parts.len();
            parts.iter_mut().for_each(|part| part.reserve_exact(each));
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, part: usize, record: &T) -> Result<()> {
        match self {
            Partitions::Kept(parts) => {
                parts[part].push(*record);
                Ok(())
            }
            Partitions::Stored(stored) => stored.put(part, &record.fields()),
        }
    }

    /// The records of a part, in the order in which they were pushed. Those in memory are there once.
    pub(crate) fn read_part(&mut self, part: usize) -> Result<Vec<T>> {
        match self {
            Partitions::Kept(parts) => Ok(std::mem::take(&mut parts[part])),
            Partitions::Stored(stored) => stored.read(part),
        }
    }
}

impl<const N: usize> StoredPartitions<N> {
    fn put(&mut self, part: usize, fields: &[i64; N]) -> Result<()> {
        let one = &mut self.parts[part];
        for (field, latest) in fields.iter().zip(&mut one.latest) {
            // Wrapping: two fields may be further apart than an i64 reaches, and reading wraps back.
            let step = field.wrapping_sub(*latest);
            *latest = *field;
            // Small steps either way in few bytes: the sign is the lowest bit, the rest follows 7 bits at a time.
            let mut rest = (step << 1 ^ step >> 63) as u64;
            while rest >= 0x80 {
                one.packed.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            one.packed.push(rest as u8);
        }
        one.records += 1;
        if one.packed.len() >= PIECE_BYTES { self.write(part) } else { Ok(()) }
    }

    fn write(&mut self, part: usize) -> Result<()> {
        let one = &mut self.parts[part];
        let written = self.file.write_all_at(&one.packed, self.end);
        written.map_err(|source| disk("write", &self.path, source))?;
        one.pieces.push((self.end, one.packed.len() as u32));
        self.end += one.packed.len() as u64;
        one.packed.clear();
        Ok(())
    }

    fn read<T: Packed<N>>(&mut self, part: usize) -> Result<Vec<T>> {
        self.write(part)?;
        let one = &mut self.parts[part];
        // Its room is another's from now on.
        one.packed = Vec::new();
        let mut records = Vec::with_capacity(one.records);
        let (mut latest, mut bytes) = ([0_i64; N], Vec::new());
        for &(place, size) in &one.pieces {
            bytes.resize(size as usize, 0);
            let read = self.file.read_exact_at(&mut bytes, place);
            read.map_err(|source| disk("read", &self.path, source))?;
            // A record lies in one piece.
            let mut rest = bytes.iter();
            while rest.len() > 0 {
                latest.iter_mut().for_each(|field| *field = field.wrapping_add(unpack(&mut rest)));
                records.push(T::of(&latest));
            }
        }
        Ok(records)
    }
}

fn unpack(bytes: &mut std::slice::Iter<'_, u8>) -> i64 {
    let (mut packed, mut shift) = (0_u64, 0);
    for &byte in bytes.by_ref() {
        packed |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    (packed >> 1) as i64 ^ -((packed & 1) as i64)
}

impl<const N: usize> Drop for StoredPartitions<N> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn disk(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Disk { action, path: path.to_owned(), source }
}

/// The part, of so many, of a connection or a client. Neighbouring numbers belong to clients alike: they are spread.
pub(crate) fn part_of(number: i64, count: usize) -> usize {
    ((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % count
}

/// Records by a number, in the order of these numbers; records of one number stay in their order.
pub(crate) struct ByNumber {
    /// Where each record is.
    places: Vec<u32>,
    /// Where each number's end, among these places.
    ends: Vec<usize>,
}

impl ByNumber {
    /// Numbers are few beside records: these are counted, and only those are sorted.
    pub(crate) fn of<T>(records: &[T], number_of: impl Fn(&T) -> i64) -> ByNumber {
        // Most numbers count connections or clients from 0, and need no hash.
        let small = 2 * records.len() as i64 + 1024;
        let (mut near, mut far) = (Vec::new(), NumberMap::<i64, u32>::default());
        let mut counted: Vec<(i64, usize)> = Vec::new();
        let mut index = |record: &T| {
            let number = number_of(record);
            let place = if (0..small).contains(&number) {
                let at = number as usize;
                if at >= near.len() {
                    near.resize(at + 1, u32::MAX);
                }
                &mut near[at]
            } else {
                far.entry(number).or_insert(u32::MAX)
            };
            if *place == u32::MAX {
                *place = counted.len() as u32;
                counted.push((number, 0));
            }
            counted[*place as usize].1 += 1;
            *place
        };
        let indices: Vec<u32> = records.iter().map(&mut index).collect();
        let mut sorted: Vec<usize> = (0..counted.len()).collect();
        sorted.sort_unstable_by_key(|&place| counted[place].0);
        let (mut ends, mut next, mut end) = (Vec::with_capacity(sorted.len()), vec![0; sorted.len()], 0);
        for place in sorted {
            next[place] = end;
            end += counted[place].1;
            ends.push(end);
        }
        let mut places = vec![0; records.len()];
        for (record, index) in (0..).zip(indices) {
            let next = &mut next[index as usize];
            places[*next] = record;
            *next += 1;
        }
        ByNumber { places, ends }
    }

    /// The places of each number's records.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u32]> {
        slices(&self.places, &self.ends)
    }
}

/// Brings records together by a number, in the order of these numbers; records of one number stay in their order. Returns where
/// each number's end.
pub(crate) fn bring_together<T: Copy>(records: &mut [T], number_of: impl Fn(&T) -> i64) -> Vec<usize> {
    let ByNumber { places, ends } = ByNumber::of(records, number_of);
    if ends.len() > 1 {
        let moved: Vec<T> = places.into_iter().map(|place| records[place as usize]).collect();
        records.copy_from_slice(&moved);
    }
    ends
}

/// The slices that end at these places, in their order.
pub(crate) fn slices<'a, T>(records: &'a [T], ends: &'a [usize]) -> impl Iterator<Item = &'a [T]> {
    let mut begin = 0;
    ends.iter().map(move |&end| &records[std::mem::replace(&mut begin, end)..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Packed<2> for (i64, i64) {
        fn fields(&self) -> [i64; 2] {
            [self.0, self.1]
        }

        fn of(&[one, other]: &[i64; 2]) -> (i64, i64) {
            (one, other)
        }
    }

    #[test]
    fn records_come_back_from_memory_and_from_a_file_that_is_gone_afterwards() {
        let dir = std::env::temp_dir().join(format!("mqttlab-parts-of-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        for stored in [false, true] {
            let mut parts = Partitions::<(i64, i64), 2>::new(7, stored, &dir, "records").unwrap();
            assert_eq!(fs::read_dir(&dir).unwrap().count(), usize::from(stored));
            let record = |number: i64| (number * number, if number % 3 == 0 { i64::MIN } else { i64::MAX });
            for number in 0..50_000 {
                parts.push(number as usize % 7, &record(number)).unwrap();
            }
            for part in (0..7).rev() {
                let expected: Vec<_> = (0..50_000).filter(|number| number % 7 == part).map(record).collect();
                assert!(parts.read_part(part as usize).unwrap() == expected);
            }
            assert_eq!(parts.read_part(0).unwrap().is_empty(), !stored);
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn records_are_brought_together_by_their_numbers_and_stay_in_their_order() {
        let mut records: Vec<(i64, i64)> = (0..1000).map(|place| ((place * 7919) % 13 - 5, place)).collect();
        let mut expected = records.clone();
        expected.sort();
        let ends = bring_together(&mut records, |record| record.0);
        assert_eq!(records, expected);
        let numbers: Vec<i64> = slices(&records, &ends).map(|slice| slice[0].0).collect();
        assert_eq!(numbers, (-5..8).collect::<Vec<_>>());
        assert!(slices(&records, &ends).all(|slice| slice.iter().all(|record| record.0 == slice[0].0)));
        assert!(bring_together(&mut [], |record: &(i64, i64)| record.0).is_empty());
    }
}
