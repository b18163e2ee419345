//! The frames of a recording, one row for each link that a frame came to.

use std::path::Path;

use mqttlab_recording::reading::{ABSENT, ColumnValues, TableReader, Vocabulary, Wanted};
use mqttlab_recording::{NumberMap, Result};

use crate::partitions::Packed;
use crate::settings::RunSettings;

/// What became of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StoredFate {
    #[default]
    Other,
    Delivered,
    Duplicated,
    Dropped,
}

/// A frame on one link. Numbers that are not there are [`ABSENT`], in columns too narrow for that -1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkFrame {
    /// Its place in the table.
    pub(crate) place: u64,
    pub(crate) frame: u64,
    pub(crate) entered: i64,
    pub(crate) start: i64,
    pub(crate) sent: i64,
    pub(crate) delivered: i64,
    pub(crate) stream_offset: i64,
    pub(crate) ack_rtt: i64,
    /// How far the farthest selective acknowledgement lies beyond the acknowledgement.
    pub(crate) sacked_beyond: i64,
    pub(crate) seq: i64,
    pub(crate) ack: i64,
    pub(crate) repetition: i64,
    pub(crate) connection: i64,
    pub(crate) frame_bytes: u32,
    pub(crate) ip_bytes: u32,
    pub(crate) payload_bytes: u32,
    /// The number of its frame among those of its connection, once these are gathered.
    pub(crate) nth: u32,
    pub(crate) source_port: i32,
    pub(crate) destination_port: i32,
    pub(crate) from_host: i32,
    pub(crate) to_host: i32,
    /// PUBLISH packets, and all control packets, that became complete with it.
    pub(crate) publishes: u16,
    pub(crate) packets: u16,
    pub(crate) marks: u8,
    pub(crate) link: u16,
    pub(crate) hop: u8,
    pub(crate) hops: u8,
    pub(crate) flags: i16,
    pub(crate) fate: StoredFate,
    /// Whether it goes down its link.
    pub(crate) down: bool,
    /// Whether it left the link with a mark of congestion. Not kept: it is counted when rows are read.
    pub(crate) is_marked: bool,
}

impl LinkFrame {
    /// Whether this is where it came to its first link.
    pub(crate) fn is_first(&self) -> bool {
        self.hop == 0
    }

    /// Whether it, or the copy that a link made of it, reached the end of its last link.
    pub(crate) fn has_arrived(&self) -> bool {
        self.hop + 1 == self.hops && matches!(self.fate, StoredFate::Delivered | StoredFate::Duplicated)
    }

    /// Whether it carries bytes of a stream.
    pub(crate) fn has_data(&self) -> bool {
        self.stream_offset != ABSENT && self.payload_bytes > 0
    }

    /// Position behind the last of them.
    pub(crate) fn end(&self) -> i64 {
        self.stream_offset + i64::from(self.payload_bytes)
    }

    /// Whether it has one of these flags of TCP.
    pub(crate) fn has_flag(&self, flag: i16) -> bool {
        self.flags >= 0 && self.flags & flag != 0
    }
}

pub(crate) const FIN: i16 = 1;
pub(crate) const SYN: i16 = 2;
pub(crate) const RST: i16 = 4;
pub(crate) const ACK: i16 = 16;
pub(crate) const CWR: i16 = 128;

/// Wireshark's marks that are counted, by their bits in [`LinkFrame::marks`].
pub(crate) const MARKS: [&str; 6] = [
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "duplicate_ack",
    "zero_window",
];

const COLUMNS: [(&str, Wanted); 29] = [
    ("frame", Wanted::Integers),
    ("entered_ns", Wanted::Integers),
    ("start_ns", Wanted::Integers),
    ("sent_ns", Wanted::Integers),
    ("delivered_ns", Wanted::Integers),
    ("stream_offset", Wanted::Integers),
    ("ack_rtt_ns", Wanted::Integers),
    ("sack", Wanted::Texts),
    ("seq", Wanted::Integers),
    ("ack", Wanted::Integers),
    ("repetition", Wanted::Integers),
    ("connection", Wanted::Integers),
    ("frame_bytes", Wanted::Integers),
    ("ip_bytes", Wanted::Integers),
    ("payload_bytes", Wanted::Integers),
    ("source_port", Wanted::Integers),
    ("destination_port", Wanted::Integers),
    ("from_host", Wanted::Integers),
    ("to_host", Wanted::Integers),
    ("mqtt", Wanted::Told(carried)),
    ("marks", Wanted::Words),
    ("link", Wanted::Integers),
    ("hop", Wanted::Integers),
    ("hops", Wanted::Integers),
    ("flags", Wanted::Integers),
    ("fate", Wanted::Words),
    ("direction", Wanted::Words),
    ("cause", Wanted::Words),
    ("ecn", Wanted::Integers),
];

/// Reads every row of `packets`, in its order, and hands it out with the number of the cause of its loss.
pub(crate) fn for_each(
    dir: &Path,
    words: &mut Vocabulary,
    mut take: impl FnMut(&LinkFrame, i64) -> Result<()>,
) -> Result<u64> {
    let Some(table) = TableReader::open(dir, "packets")? else { return Ok(0) };
    let names =
        ["delivered", "duplicated", "dropped", "down"].map(|name| i64::from(words.code(name.as_bytes())));
    let mut place = 0;
    let mut marks = Vec::new();
    table.for_each_batch(&COLUMNS, words, |columns, rows, words| {
        // Of one length, which is known: no row is looked for behind it. Texts have no numbers.
        let of = |column: usize| if column == SACK { 0 } else { column };
        let numbers = std::array::from_fn(|column| &columns[of(column)].integers[..rows]);
        for row in 0..rows {
            let mut found = read(&numbers, &columns[SACK], row, &names);
            found.place = place;
            found.marks = marks_of(numbers[20][row], words, &mut marks);
            take(&found, numbers[27][row])?;
            place += 1;
        }
        Ok(())
    })?;
    Ok(place)
}

/// The frames of one connection, or those of none.
#[derive(Clone, Copy)]
pub(crate) struct ConnectionFrames<'a> {
    /// In the order of the table.
    pub(crate) rows: &'a [LinkFrame],
    /// How many frames came to links: [`LinkFrame::nth`] is below.
    pub(crate) frames: usize,
}

impl<'a> ConnectionFrames<'a> {
    pub(crate) fn of(rows: &'a mut [LinkFrame], seen: &mut Vec<(u64, u32)>) -> ConnectionFrames<'a> {
        let frames = number_frames(rows, seen);
        ConnectionFrames { rows, frames }
    }
}

/// Numbers the frames of a connection's rows in the order in which they come first; returns how many there are. `seen` is for
/// the frames met so far, and for use again.
pub(crate) fn number_frames(rows: &mut [LinkFrame], seen: &mut Vec<(u64, u32)>) -> usize {
    seen.clear();
    let (mut late, mut count) = (NumberMap::default(), 0);
    for row in rows {
        // Frames are numbered as they are sent, so that most are either new or among the last ones.
        if seen.last().is_none_or(|&(frame, _)| row.frame > frame) {
            seen.push((row.frame, count));
        } else {
            let near = seen.iter().rev().take(NEAR_FRAMES).find(|(frame, _)| *frame == row.frame);
            let place = || seen.binary_search_by_key(&row.frame, |&(frame, _)| frame).ok();
            row.nth = match near.or_else(|| place().map(|place| &seen[place])) {
                Some(&(_, nth)) => nth,
                None => *late.entry(row.frame).or_insert(count),
            };
            count += u32::from(row.nth == count);
            continue;
        }
        row.nth = count;
        count += 1;
    }
    count as usize
}

/// Frames that are looked through from the last one.
const NEAR_FRAMES: usize = 8;

/// How many rows `packets` has.
pub(crate) fn count(dir: &Path) -> Result<u64> {
    Ok(TableReader::open(dir, "packets")?.map_or(0, |table| table.rows()))
}

/// CE in the `ecn` column (RFC 3168 §5).
const CONGESTION_EXPERIENCED: i64 = 3;

/// The place of `sack` in [`COLUMNS`], which alone is text.
const SACK: usize = 7;

#[inline(always)]
fn read(numbers: &[&[i64]; COLUMNS.len()], sack: &ColumnValues, row: usize, names: &[i64; 4]) -> LinkFrame {
    let at = |column: usize| numbers[column][row];
    let narrow = |column: usize| if at(column) == ABSENT { -1 } else { at(column) as i32 };
    let size = |column: usize| at(column).max(0) as u32;
    let carried = at(19).max(0);
    let [delivered, duplicated, dropped, down] = *names;
    let ack = at(9);
    LinkFrame {
        place: 0,
        frame: at(0) as u64,
        entered: at(1),
        start: at(2),
        sent: at(3),
        delivered: at(4),
        stream_offset: at(5),
        ack_rtt: at(6),
        sacked_beyond: sack.text(row).map_or(ABSENT, |sack| beyond(sack, ack)),
        seq: at(8),
        ack,
        repetition: at(10),
        connection: at(11),
        frame_bytes: size(12),
        ip_bytes: size(13),
        payload_bytes: size(14),
        nth: 0,
        source_port: narrow(15),
        destination_port: narrow(16),
        from_host: narrow(17),
        to_host: narrow(18),
        publishes: (carried >> 16) as u16,
        packets: carried as u16,
        marks: 0,
        link: size(21) as u16,
        hop: size(22) as u8,
        hops: size(23) as u8,
        flags: narrow(24) as i16,
        fate: match at(25) {
            fate if fate == delivered => StoredFate::Delivered,
            fate if fate == duplicated => StoredFate::Duplicated,
            fate if fate == dropped => StoredFate::Dropped,
            _ => StoredFate::Other,
        },
        down: at(26) == down,
        is_marked: at(28) == CONGESTION_EXPERIENCED,
    }
}

/// How many PUBLISH packets, from bit 16 on, and how many packets the `mqtt` column names: `PUBLISH(1,7) PUBACK(3)`.
fn carried(text: &[u8]) -> i64 {
    let words = text.split(|&byte| byte == b' ');
    words.fold(0, |found, word| found + 1 + (i64::from(word.starts_with(b"PUBLISH(")) << 16))
}

/// How far the farthest edge of a `sack` column, `100-200 300-400`, lies beyond the acknowledgement. Numbers wrap.
fn beyond(sack: &[u8], ack: i64) -> i64 {
    if ack == ABSENT {
        return ABSENT;
    }
    let blocks = std::str::from_utf8(sack).unwrap_or_default().split(' ');
    let edges = blocks.filter_map(|block| block.rsplit('-').next()?.parse::<i64>().ok());
    edges.map(|edge| wrapped(edge - ack)).max().unwrap_or(ABSENT)
}

/// The difference of two sequence numbers, each taken to be near the other.
pub(crate) fn wrapped(difference: i64) -> i64 {
    (difference + 3 * (1 << 31)).rem_euclid(1 << 32) - (1 << 31)
}

/// The bits of a list of marks, which is looked at once.
fn marks_of(code: i64, words: &Vocabulary, known: &mut Vec<Option<u8>>) -> u8 {
    let Ok(place) = usize::try_from(code) else { return 0 };
    if known.len() <= place {
        known.resize(place + 1, None);
    }
    *known[place].get_or_insert_with(|| {
        let text = words.word(code as u32);
        let bit = |mark: &str| MARKS.iter().position(|&known| known == mark).map_or(0, |bit| 1 << bit);
        text.split(',').map(bit).fold(0, |bits: u8, bit| bits | bit)
    })
}

/// How many numbers a packed row has.
pub(crate) const FIELDS: usize = 24;

impl Packed<FIELDS> for LinkFrame {
    fn fields(&self) -> [i64; FIELDS] {
        fields(self)
    }

    fn of(fields: &[i64; FIELDS]) -> LinkFrame {
        row_of(fields)
    }
}

/// The row as numbers. Times are told from the entering, which they are near.
fn fields(row: &LinkFrame) -> [i64; FIELDS] {
    let since = |at: i64| match at.wrapping_sub(row.entered) {
        _ if at == ABSENT => 0,
        later @ 0.. => later + 1,
        earlier => earlier,
    };
    let or_minus_1 = |value: i64| if value == ABSENT { -1 } else { value };
    let fate = match row.fate {
        StoredFate::Other => 0,
        StoredFate::Delivered => 1,
        StoredFate::Duplicated => 2,
        StoredFate::Dropped => 3,
    };
    let small = i64::from(row.hop) | i64::from(row.hops) << 8 | fate << 16 | i64::from(row.down) << 20;
    [
        row.place as i64,
        row.frame as i64,
        row.entered,
        since(row.start),
        since(row.sent),
        since(row.delivered),
        or_minus_1(row.stream_offset),
        or_minus_1(row.ack_rtt),
        row.sacked_beyond,
        or_minus_1(row.seq),
        or_minus_1(row.ack),
        or_minus_1(row.repetition),
        or_minus_1(row.connection),
        row.frame_bytes.into(),
        row.ip_bytes.into(),
        row.payload_bytes.into(),
        row.source_port.into(),
        row.destination_port.into(),
        i64::from(row.from_host) << 32 | i64::from(row.to_host as u32),
        i64::from(row.publishes) << 16 | i64::from(row.packets),
        row.marks.into(),
        row.link.into(),
        small,
        row.flags.into(),
    ]
}

fn row_of(fields: &[i64; FIELDS]) -> LinkFrame {
    let &[place, frame, entered, start, sent, delivered, ref rest @ ..] = fields;
    let at = |since: i64| match since {
        0 => ABSENT,
        1.. => entered.wrapping_add(since - 1),
        _ => entered.wrapping_add(since),
    };
    let known = |value: i64| if value == -1 { ABSENT } else { value };
    let small = rest[16];
    LinkFrame {
        place: place as u64,
        frame: frame as u64,
        entered,
        start: at(start),
        sent: at(sent),
        delivered: at(delivered),
        stream_offset: known(rest[0]),
        ack_rtt: known(rest[1]),
        sacked_beyond: rest[2],
        seq: known(rest[3]),
        ack: known(rest[4]),
        repetition: known(rest[5]),
        connection: known(rest[6]),
        frame_bytes: rest[7] as u32,
        ip_bytes: rest[8] as u32,
        payload_bytes: rest[9] as u32,
        nth: 0,
        source_port: rest[10] as i32,
        destination_port: rest[11] as i32,
        from_host: (rest[12] >> 32) as i32,
        to_host: rest[12] as i32,
        publishes: (rest[13] >> 16) as u16,
        packets: rest[13] as u16,
        marks: rest[14] as u8,
        link: rest[15] as u16,
        hop: small as u8,
        hops: (small >> 8) as u8,
        flags: rest[17] as i16,
        fate: match small >> 16 & 3 {
            1 => StoredFate::Delivered,
            2 => StoredFate::Duplicated,
            3 => StoredFate::Dropped,
            _ => StoredFate::Other,
        },
        down: small >> 20 & 1 == 1,
        is_marked: false,
    }
}

/// Whether a frame is one that the tables of the network layer count: of a broker's connection, and no link's copy.
#[inline]
pub(crate) fn is_counted(row: &LinkFrame, settings: &RunSettings) -> bool {
    row.fate != StoredFate::Duplicated
        && settings.is_server_s(row.source_port.into(), row.destination_port.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_row_comes_back_with_what_was_absent() {
        let row = LinkFrame {
            place: 7,
            frame: 21,
            entered: 7_000_000,
            start: ABSENT,
            sent: 6_999_999,
            delivered: 7_000_005,
            stream_offset: 0,
            ack_rtt: ABSENT,
            sacked_beyond: ABSENT,
            seq: 4_294_967_295,
            ack: ABSENT,
            repetition: 0,
            connection: ABSENT,
            frame_bytes: 1514,
            source_port: -1,
            destination_port: 65_535,
            from_host: -1,
            to_host: 7,
            publishes: 3,
            packets: 4,
            marks: 0b10_0001,
            link: 300,
            hop: 1,
            hops: 2,
            flags: -1,
            fate: StoredFate::Duplicated,
            down: true,
            ..LinkFrame::default()
        };
        assert_eq!(format!("{:?}", LinkFrame::of(&row.fields())), format!("{row:?}"));
    }

    #[test]
    fn frames_are_numbered_as_they_come_first_whatever_their_order() {
        let frames = [3_u64, 3, 5, 9, 5, 4, 20, 4, 1, 30, 31, 32, 33, 34, 35, 36, 37, 38, 3, 1];
        let mut rows = frames.map(|frame| LinkFrame { frame, ..LinkFrame::default() });
        let count = number_frames(&mut rows, &mut vec![(7, 7)]);
        let mut first = Vec::new();
        for row in rows {
            if !first.contains(&row.frame) {
                first.push(row.frame);
            }
            assert_eq!(first[row.nth as usize], row.frame);
        }
        assert_eq!(count, first.len());
    }

    #[test]
    fn what_a_segment_carries_and_how_far_it_is_acknowledged_is_read_from_its_words() {
        assert_eq!(carried(b"PUBLISH(1,7) PUBACK(3) PUBLISH(0)"), 2 << 16 | 3);
        assert_eq!(beyond(b"100-200 4294967290-20", 4_294_967_280), 216);
        assert_eq!(beyond(b"", 5), ABSENT);
    }
}
