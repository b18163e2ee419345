//! Sums over the frames of each link, and over slices of its time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mqttlab_recording::reading::{ABSENT, Vocabulary};
use mqttlab_recording::{LinkSumRow, LinkSumWriter, NumberMap, Result, SliceRow, SliceWriter};

use crate::network::frame_rows::{LinkFrame, StoredFate};

/// Slices that cover a run, at most; at least 48 do.
const SLICES_MAX: i64 = 120;
const SLICE_NS_MIN: i64 = 1_000_000;

/// What the frames of one link sum to.
#[derive(Clone, Debug)]
struct LinkSums {
    frames: u64,
    bytes: u64,
    delivered: u64,
    dropped: u64,
    marked: u64,
    sent_bytes: u64,
    busy: Option<i64>,
    first: i64,
    last: i64,
    waited: u64,
    wait: i64,
    wait_max: Option<i64>,
    rows: u64,
    rows_bytes: u64,
    causes: BTreeMap<i64, u64>,
}

impl Default for LinkSums {
    fn default() -> LinkSums {
        LinkSums {
            frames: 0,
            bytes: 0,
            delivered: 0,
            dropped: 0,
            marked: 0,
            sent_bytes: 0,
            busy: None,
            first: i64::MAX,
            last: i64::MIN,
            waited: 0,
            wait: 0,
            wait_max: None,
            rows: 0,
            rows_bytes: 0,
            causes: BTreeMap::new(),
        }
    }
}

/// All links, by their numbers; those between them that have no row, too.
#[derive(Debug, Default)]
pub(crate) struct Links {
    sums: Vec<LinkSums>,
    /// Frames that a link has marked: those behind it see the same mark.
    marked: BTreeSet<u64>,
}

impl Links {
    /// Counts a row, and the number of the word for the cause of its loss.
    pub(crate) fn count(&mut self, row: &LinkFrame, cause: i64) {
        let link = usize::from(row.link);
        if link >= self.sums.len() {
            self.sums.resize_with(link + 1, LinkSums::default);
        }
        let sums = &mut self.sums[link];
        let size = u64::from(row.frame_bytes);
        // A link's copy is no frame that was offered: it takes no bytes of the rate and no time.
        let is_original = row.fate != StoredFate::Duplicated;
        sums.rows += 1;
        sums.rows_bytes += size;
        sums.delivered += u64::from(row.delivered != ABSENT);
        sums.dropped += u64::from(row.fate == StoredFate::Dropped);
        sums.first = sums.first.min(row.entered);
        sums.last = sums.last.max(row.entered).max(row.sent);
        if is_original && row.is_marked {
            sums.marked += u64::from(self.marked.insert(row.frame));
        }
        if is_original {
            sums.frames += 1;
            sums.bytes += size;
            sums.sent_bytes += if row.sent == ABSENT { 0 } else { size };
        }
        if row.start != ABSENT {
            let wait = row.start - row.entered;
            sums.waited += 1;
            sums.wait += wait;
            sums.wait_max = sums.wait_max.max(Some(wait));
            if row.sent != ABSENT {
                let busy = if is_original { row.sent - row.start } else { 0 };
                sums.busy = Some(sums.busy.unwrap_or(0) + busy);
            }
        }
        if cause != ABSENT {
            *sums.causes.entry(cause).or_insert(0) += 1;
        }
    }

    pub(crate) fn write(&self, out: &Path, words: &Vocabulary) -> Result<()> {
        let mut table = LinkSumWriter::create(out)?;
        for (link, sums) in (0..).zip(&self.sums).filter(|(_, sums)| sums.rows > 0) {
            let causes = sums.causes(words);
            table.push(&LinkSumRow {
                link,
                frames: sums.frames,
                bytes: sums.bytes,
                frames_delivered: sums.delivered,
                frames_dropped: sums.dropped,
                frames_marked: sums.marked,
                sent_bytes: sums.sent_bytes,
                busy_ns: sums.busy.map(|busy| busy as u64),
                span_ns: (sums.last - sums.first) as u64,
                frames_waited: sums.waited,
                wait_ns: sums.wait as u64,
                wait_max_ns: sums.wait_max.map(|wait| wait as u64),
                rows: sums.rows,
                rows_bytes: sums.rows_bytes,
                drops_by_cause: (!causes.is_empty()).then_some(&causes),
            })?;
        }
        table.finish()?;
        Ok(())
    }
}

impl LinkSums {
    /// How many for which cause, the most frequent first.
    fn causes(&self, words: &Vocabulary) -> String {
        let named = self.causes.iter().map(|(&cause, &count)| (count, words.word(cause as u32)));
        let mut named: Vec<_> = named.filter(|(_, cause)| !cause.is_empty()).collect();
        // By the words where counts are equal, for numbers of words differ from run to run.
        named.sort_by(|(count, cause), (other, other_cause)| other.cmp(count).then(cause.cmp(other_cause)));
        let parts: Vec<String> = named.iter().map(|(count, cause)| format!("{count} {cause}")).collect();
        parts.join(", ")
    }
}

/// Sums over slices of time, by link, whether down it, and slice.
#[derive(Debug)]
pub(crate) struct Slices {
    length: i64,
    sums: Vec<SliceSums>,
    known: NumberMap<(u16, bool, i64), u32>,
    /// Of each link up it and down it the slice that was counted last, and where its sums are: frames come in the order of time.
    latest: Vec<(i64, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SliceSums {
    busy: i64,
    link_bytes: u64,
    frame_bytes: u64,
    ip_bytes: u64,
    payload_bytes: u64,
    mqtt_payload_bytes: u64,
}

impl Slices {
    /// Slices of a length so that 48 to 120 cover a span of time: 1, 2 or 5 times a power of ten, and 1 ms at least.
    pub(crate) fn new(span: i64) -> Slices {
        let mut decade = SLICE_NS_MIN;
        let length = loop {
            let covers = |factor: &i64| decade.saturating_mul(*factor).saturating_mul(SLICES_MAX) >= span;
            if let Some(factor) = [1, 2, 5].into_iter().find(covers) {
                break factor * decade;
            }
            decade *= 10;
        };
        Slices { length, sums: Vec::new(), known: NumberMap::default(), latest: Vec::new() }
    }

    /// Counts a frame where its last bit went out, and the time for which it kept the transmitter busy. `counted`: whether
    /// it is of a broker's connection.
    pub(crate) fn count(&mut self, row: &LinkFrame, counted: bool) {
        if row.sent == ABSENT || row.fate == StoredFate::Duplicated {
            return;
        }
        let (length, last) = (self.length, row.sent.div_euclid(self.length));
        let sums = self.of(row, last);
        sums.link_bytes += u64::from(row.frame_bytes);
        if counted {
            sums.frame_bytes += u64::from(row.frame_bytes);
            sums.ip_bytes += u64::from(row.ip_bytes);
            sums.payload_bytes += u64::from(row.payload_bytes);
        }
        if row.start == ABSENT {
            return;
        }
        // Most frames go out within one slice.
        let begin = row.start.max(last.saturating_mul(length));
        sums.busy += row.sent.saturating_sub(begin).max(0);
        if begin != row.start {
            self.keep_busy(row, last);
        }
    }

    /// Counts the time before the slice `last`, in which the frame's last bit went out.
    fn keep_busy(&mut self, row: &LinkFrame, last: i64) {
        let length = self.length;
        for slice in row.start.div_euclid(length)..last {
            let end = (slice + 1).saturating_mul(length);
            let (from, to) = (row.start.max(slice.saturating_mul(length)), row.sent.min(end));
            if to > from {
                self.of(row, slice).busy += to - from;
            }
        }
    }

    /// Counts the application payload that a frame completed on its link.
    pub(crate) fn complete(&mut self, row: &LinkFrame, payload_bytes: u64) {
        self.of(row, row.sent.div_euclid(self.length)).mqtt_payload_bytes += payload_bytes;
    }

    /// The sums of the frame's link in a slice.
    #[inline]
    fn of(&mut self, row: &LinkFrame, slice: i64) -> &mut SliceSums {
        let way = usize::from(row.link) * 2 + usize::from(row.down);
        if way >= self.latest.len() {
            // No slice has this number: the shortest is a million nanoseconds.
            self.latest.resize(way + 1, (i64::MIN, 0));
        }
        let latest = &mut self.latest[way];
        if latest.0 != slice {
            let sums = &mut self.sums;
            let place = *self.known.entry((row.link, row.down, slice)).or_insert_with(|| {
                sums.push(SliceSums::default());
                sums.len() as u32 - 1
            });
            *latest = (slice, place);
        }
        &mut self.sums[latest.1 as usize]
    }

    pub(crate) fn write(&self, out: &Path) -> Result<()> {
        let mut table = SliceWriter::create(out)?;
        let mut sorted: Vec<_> = self.known.iter().collect();
        // A table of numbers has no order that two runs share.
        sorted.sort_unstable_by_key(|&(&place, _)| place);
        for (&(link, down, slice), &place) in sorted {
            let sums = &self.sums[place as usize];
            table.push(&SliceRow {
                link,
                direction: if down { "down" } else { "up" },
                at_ns: slice.saturating_mul(self.length) as u64,
                length_ns: self.length as u64,
                busy_ns: sums.busy as u64,
                link_bytes: sums.link_bytes,
                frame_bytes: sums.frame_bytes,
                ip_bytes: sums.ip_bytes,
                payload_bytes: sums.payload_bytes,
                mqtt_payload_bytes: sums.mqtt_payload_bytes,
            })?;
        }
        table.finish()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_a_span_with_48_to_120_of_a_round_length() {
        for span in [1, 119_000_000, 121_000_000, 7_300_000_000, 3_600_000_000_000] {
            let length = Slices::new(span).length;
            assert!(length * SLICES_MAX >= span, "{span}");
            assert!(length == SLICE_NS_MIN || length * 47 <= span, "{span}: {length}");
        }
    }

    #[test]
    fn times_of_a_damaged_table_make_slices_as_well() {
        assert!(Slices::new(i64::MAX).length <= i64::MAX / 47);
        assert_eq!(Slices::new(i64::MIN).length, SLICE_NS_MIN);
    }
}
